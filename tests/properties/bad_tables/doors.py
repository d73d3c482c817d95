"""The doors of the library, what must come out of one, and what came out."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiment import Rows

from adaptinf import AdaptiveLog, ArmMeans, Sums, aggregate, read_log
from adaptinf.cli import main
from adaptinf.errors import AdaptinfError, AdaptinfWarning
from adaptinf.log.validation import nested_options

LIMIT = 1e-12
OUTCOMES = ("right", "refused", "nameless", "good, refused", "traceback", "silent")
"""Right: read as it must be. Refused: as it must be, by an error that names the cause. Nameless: refused by
one that does not. Good, refused: what must be read. Traceback: any other exception, or a warning of another
library. Silent: read with other values than these, or although it must be refused.
"""
ROLES: dict[str, Any] = {
    "action": "arm",
    "reward": "y",
    "propensity": "p",
    "batch": "day",
    "unit": "who",
    "context": ["region", "x"],
}
OF_SUMS = {
    "batch": "day", "arm": "arm", "n": "n", "sum": "s", "sum_squares": "q", "propensity": "p"
}  # fmt: skip
SUMMED = ("action", "reward", "propensity", "propensities", "batch", "arms", "every")
"""Arguments that `aggregate` has too."""


@dataclass(frozen=True)
class Right:
    """Rows that must be read; further columns by their names in the log."""

    rows: Rows
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """Patterns that the text of the error must have, each somewhere."""

    named: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What came out of a door: means and numbers of rows by arm, and whole columns of a log."""

    means: dict[str, float]
    counts: dict[str, int] | None = None
    columns: dict[str, list[Any]] | None = None


@dataclass(frozen=True)
class Use:
    """One door that is given one damaged thing."""

    door: str
    run: Callable[[], Seen]
    due: Right | Refused


@dataclass(frozen=True)
class Verdict:
    """An outcome, and what was said or raised."""

    outcome: str
    told: str = ""


def line(number: int, part: str = "") -> str:
    """A pattern of an error that names a line."""
    return rf"\blines?\b[^\]]*\b{number}\b" + (rf" of {re.escape(part)}" if part else "")


def row(number: int) -> str:
    """A pattern of an error that names a row of a frame."""
    return rf"\[rows? [\d, ]*\b{number}\b"


def in_engine(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """What `aggregate` must name: an engine has no lines, so that the number of rows stands for them."""
    return tuple(
        r"in [\d,]+ rows?\b|\blines?\b|must contain numbers|contains no labels"
        if pattern.startswith((r"\blines?\b", r"\[line "))
        else pattern
        for pattern in patterns
    )


def column(name: str) -> str:
    """A pattern of an error that names a column."""
    return rf"'{re.escape(name)}'"


def seen_log(log: AdaptiveLog) -> Seen:
    """Columns of a log by the names of the roles."""
    arrays = log.arrays
    observed = [True] * log.n_rounds if arrays.observed is None else arrays.observed.tolist()
    rewards = zip(log.column("reward").tolist(), observed, strict=True)
    columns: dict[str, list[Any]] = {
        "arm": [log.arms[code] for code in arrays.action],
        "y": [value if known else None for value, known in rewards],
        **{name: values.tolist() for name, values in arrays.context.items()},
    }
    if arrays.propensity is not None:
        columns["p"] = arrays.propensity.tolist()
    if arrays.batch is not None:
        columns["day"] = arrays.batch.tolist()
    if log.units is not None:
        columns["who"] = log.units.tolist()
    if arrays.propensities is not None:
        columns |= {f"p of {arm}": arrays.propensities[:, code].tolist() for code, arm in enumerate(log.arms)}
    return Seen(_fitted(log) if all(observed) else _means(columns), None, columns)


def _means(columns: Mapping[str, list[Any]]) -> dict[str, float]:
    """Means of the rewards that were observed; estimates for gaps are of other kinds."""
    held: dict[str, list[float]] = {}
    for arm, value in zip(columns["arm"], columns["y"], strict=True):
        held.setdefault(str(arm), []).extend([] if value is None else [value])
    return {arm: sum(values) / len(values) for arm, values in held.items() if values}


def _fitted(data: Any) -> dict[str, float]:
    table = ArmMeans(data).fit(estimator="sample-mean").to_frame()
    return dict(zip(map(str, data.arms), table["estimate"].tolist(), strict=True))


def seen_sums(sums: Sums) -> Seen:
    """Means and numbers of rounds by arm."""
    counts = sums.frame.groupby("arm", observed=True)["n"].sum()
    return Seen(_fitted(sums), {str(arm): int(n) for arm, n in counts.items() if n})


def log_of(source: Any, options: Mapping[str, Any]) -> Callable[[], Seen]:
    """The door of `read_log`."""
    return lambda: seen_log(read_log(source, **options))


def frame_of(frame: Any, options: Mapping[str, Any]) -> Callable[[], Seen]:
    """The door of `AdaptiveLog`."""
    return lambda: seen_log(AdaptiveLog(frame, **nested_options(options)))


def aggregate_of(source: Any, options: Mapping[str, Any]) -> Callable[[], Seen]:
    """The door of `aggregate`; options of reading go with it."""
    reading = {name: value for name, value in options.items() if name in OF_READING}
    own = {name: value for name, value in options.items() if name in SUMMED}
    return lambda: seen_sums(aggregate(source, **own, **({"reading": reading} if reading else {})))


OF_READING = ("sep", "decimal", "encoding", "missing_values", "round_propensities", "timezone")


def sums_of_table(source: Any, options: Mapping[str, Any]) -> Callable[[], Seen]:
    """The door of `Sums`."""
    return lambda: seen_sums(Sums(source, **options))


def stdin_of(data: bytes, run: Callable[[], Seen]) -> Callable[[], Seen]:
    """A door that reads standard input."""

    def read() -> Seen:
        with as_stdin(data):
            return run()

    return read


@contextlib.contextmanager
def as_stdin(data: bytes) -> Iterator[None]:
    """Bytes as standard input."""
    kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdin = kept


class OfCommand(AdaptinfError):
    """What the command line says as it refuses."""


def command_of(path: Path | str, options: Mapping[str, Any], data: bytes | None = None) -> Callable[[], Seen]:
    """``adaptinf validate``, and the means of ``adaptinf analyze`` where it finds nothing wrong."""
    flags = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, list) else [value]:
            flags += [flag] if each is True else [flag, str(each)]

    def read() -> Seen:
        found = ""
        for words in (["validate"], ["analyze", "--estimator", "sample-mean", "--format", "json"]):
            out, err = io.StringIO(), io.StringIO()
            given = contextlib.nullcontext() if data is None else as_stdin(data)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), given:
                code = main([words[0], str(path), *flags, *words[1:]])
            if code:
                raise OfCommand(err.getvalue())
            found = out.getvalue()
        return Seen({str(each["term"]): each["estimate"] for each in json.loads(found)["results"]})

    return read


def judge(use: Use) -> Verdict:
    """Give a damaged thing to its door, and say what became of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", AdaptinfWarning)
            seen = use.run()
    except AdaptinfError as error:
        told = str(error)
        if isinstance(use.due, Right):
            return Verdict("good, refused", told)
        lacking = [pattern for pattern in use.due.named if not re.search(pattern, told)]
        return Verdict("nameless", f"lacks {lacking}: {told}") if lacking else Verdict("refused", told)
    except (Exception, SystemExit) as error:
        return Verdict("traceback", f"{type(error).__name__}: {error}")
    if isinstance(use.due, Refused):
        return Verdict("silent", "was read, and must be refused")
    told = difference(use.due, seen)
    return Verdict("silent", told) if told else Verdict("right")


def difference(due: Right, seen: Seen) -> str:
    """What is another than it must be; empty where nothing is."""
    known = [each for each in due.rows if each["y"] is not None]
    means: dict[str, list[float]] = {}
    for each in known:
        means.setdefault(str(each["arm"]), []).append(float(each["y"]))
    if set(means) != set(seen.means):
        return f"arms {sorted(seen.means)} for {sorted(means)}"
    for arm, values in means.items():
        mean = sum(values) / len(values)
        if not abs(seen.means[arm] - mean) <= LIMIT * max(1.0, abs(mean)):
            return f"mean of {arm!r} is {seen.means[arm]!r} for {mean!r}"
    if seen.counts is not None and seen.counts != {arm: len(values) for arm, values in means.items()}:
        return f"rows by arm are {seen.counts}"
    return "" if seen.columns is None else _other_column(due, seen.columns)


def _other_column(due: Right, columns: Mapping[str, list[Any]]) -> str:
    days: list[Any] = []
    for each in due.rows:
        if each.get("day") not in days:
            days.append(each.get("day"))
    for name, found in columns.items():
        if name == "day":
            wanted = [days.index(each["day"]) for each in due.rows]
        else:
            wanted = list(due.columns.get(name) or [each.get(name) for each in due.rows])
        if len(wanted) != len(found):
            return f"{len(found)} rows for {len(wanted)}"
        for number, (one, two) in enumerate(zip(wanted, found, strict=True)):
            if not _alike(one, two):
                return f"column {name!r} has {two!r} in row {number} for {one!r}"
    return ""


def _alike(one: Any, two: Any) -> bool:
    """Whether two values are equal; numbers are no text and no truth values, as labels."""
    if one is None or two is None:
        return one is two
    if isinstance(one, float) and isinstance(two, float):
        return abs(one - two) <= LIMIT * max(1.0, abs(one))
    return isinstance(one, str) == isinstance(two, str) and bool(one == two)
