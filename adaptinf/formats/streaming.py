"""Files too large for memory: dsjson and Open Bandit, read line by line and written to Parquet in batches."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.files import as_path, atomic_write
from adaptinf.formats.dsjson import (
    OTHER_ACTIONS,
    UNNAMED_ACTION,
    Faults,
    Judged,
    action_labels,
    changing_rates,
    judge,
    nothing_left,
    rounded,
    shared_features,
    unknown_names,
)
from adaptinf.formats.obd import ITEMS, campaign_file, header_problems
from adaptinf.formats.transport import column_of, lines_of, names_problems, numbered_lines
from adaptinf.formats.vw_events import Form, form_problems, offered
from adaptinf.log.storage.log_files import output_problems
from adaptinf.log.validation.row_order import read_times
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray


class Clock:
    """Parses times, and caches the last one."""

    def __init__(self) -> None:
        self._known: list[Any] = []

    def read(self, texts: Sequence[Any]) -> tuple[NDArray[np.datetime64], BoolArray]:
        """Times in UTC, and whether each is invalid or has a zone unlike earlier ones; both of shape (n,)."""
        frame = pd.DataFrame({"time": [*self._known, *texts]}, dtype=object)
        times, wrong = read_times(column_of(frame, "time"))
        skipped = len(self._known)
        values, bad = np.asarray(times.values, dtype="datetime64[us]"), wrong | times.missing
        bad = bad[skipped:] | bad[:skipped].any()
        if not skipped and not bad.all():
            self._known.append(texts[int(np.argmin(bad))])
        return values[skipped:], bad


SUBJECT = "convert"
_DECISIONS = 5_000
_TIME = "timestamp"
_COLUMNS = ("action", "reward", "propensity", _TIME)
_LARGEST = 2**53
_KINDS: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({str}): pa.string(),
}


@dataclass(slots=True)
class Facts:
    """Facts about all events: arms, features with their types, and whether there are times."""

    arms: list[Any] = field(default_factory=list)
    kinds: dict[str, set[type]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    of_actions: dict[str, None] = field(default_factory=dict)
    able: set[Any] = field(default_factory=set)
    rates: set[float] = field(default_factory=set)
    events: int = 0
    skipped: int = 0
    absent: int = 0
    timed: bool = False

    def add(self, event: dict[str, Any], labels: list[Any]) -> None:
        """Process a valid event."""
        if not self.events:
            self.arms, self.timed = labels, "Timestamp" in event
        self.events += 1
        self.rates.add(event.get("pdrop", 0.0))
        self.able.update(labels[at - 1] for at in offered(event))
        for name, value in shared_features(event["c"]):
            self.kinds.setdefault(name, set()).add(type(value))
            self.counts[name] = self.counts.get(name, 0) + 1
            if type(value) is int and abs(value) > _LARGEST:
                self.large.add(name)

    def kept(self, context: Sequence[str] | None) -> list[str]:
        """Features that become columns: those requested, or those that every event has."""
        everywhere = [name for name, count in self.counts.items() if count == self.events]
        return everywhere if context is None else list(context)


def survey(source: Path, files: Sequence[Path], action_id: str | None, form: Form) -> Facts:
    """The first pass; a single error lists all problems with the lines."""
    facts, row = Facts(), 0
    faults = Faults({"unnamed-action": f"{UNNAMED_ACTION} {action_id!r}", "other-actions": OTHER_ACTIONS})
    for path, number, each in _events(files, form):
        facts.skipped += each.skipped
        facts.absent += each.absent
        if each.code:
            faults.add(row, each.code, f"{path.name}, {each.told}")
        elif not each.skipped:
            labels = action_labels(each.event["c"]["_multi"], action_id)
            if action_id is not None:
                parts = (part for part in each.event["c"]["_multi"] if isinstance(part, dict))
                facts.of_actions |= dict.fromkeys(name for part in parts for name, _ in shared_features(part))
            place = f"{path.name}, line {number}"
            if None in labels or len(set(labels)) < len(labels):
                faults.add(row, "unnamed-action", place)
            elif facts.events and set(labels) != set(facts.arms):
                faults.add(row, "other-actions", place)
            else:
                facts.add(each.event, labels)
        row += 1
    if action_id is not None and facts.of_actions and action_id not in facts.of_actions:
        raise ParameterError(
            SUBJECT, [f"{source}: {unknown_names('action', [action_id], facts.of_actions)[0]}"]
        )
    problems = [*faults.problems(), *changing_rates(facts.rates)]
    if problems:
        raise LogValidationError(problems, str(source))
    if not facts.events:
        problem = f"{source} {nothing_left(form, facts.absent)}" if row else f"{source} contains no events"
        raise ParameterError(SUBJECT, [problem])
    if form.slot is not None:
        facts.arms = [arm for arm in facts.arms if arm in facts.able]
    return facts


def schema_of(source: Path, facts: Facts, context: Sequence[str] | None) -> pa.Schema:
    """Columns of the table; a single error lists all invalid ones."""
    kept = facts.kept(context)
    arms = [f"propensity_{arm}" for arm in facts.arms]
    problems = unknown_names("event", kept, facts.counts)
    fields = {"action": _kind([type(arm) for arm in facts.arms]), "reward": pa.float64()}
    fields |= {"propensity": pa.float64(), **dict.fromkeys(arms, pa.float64())}
    fields |= {_TIME: pa.timestamp("us")} if facts.timed else {}
    if fields["action"] is None or len(set(arms)) < len(arms):
        problems.append("actions must have names of one type, all numbers or all text")
    for name in kept if not problems else ():
        kind = _kind(facts.kinds[name])
        if name in _COLUMNS or name in arms:
            problems.append(f"shared features must not be called {name}")
        elif kind is None:
            problems.append(f"the shared feature {name} has values of several types: omit it from context=")
        elif name in facts.large and float in facts.kinds[name]:
            problems.append(rounded(name))
        fields[name] = kind
    if problems:
        raise ParameterError(SUBJECT, [f"{source}: {problem}" for problem in problems])
    return pa.schema(list(fields.items()))


def _kind(types: Any) -> pa.DataType | None:
    return _KINDS.get(frozenset(types))


def decision_tables(
    files: Sequence[Path], facts: Facts, schema: pa.Schema, action_id: str | None, form: Form
) -> Iterator[pa.Table]:
    """The second pass over the events."""
    sound = ((path, number, each.event) for path, number, each in _events(files, form) if not each.skipped)
    clock = Clock()
    while batch := list(islice(sound, _DECISIONS)):
        yield _decision_table(batch, facts, schema, action_id, clock)


def _events(files: Sequence[Path], form: Form) -> Iterator[tuple[Path, int, Judged]]:
    for path in files:
        for number, line in numbered_lines(path, SUBJECT):
            yield path, number, judge(number, line, form)


def _decision_table(
    batch: list[tuple[Path, int, dict[str, Any]]],
    facts: Facts,
    schema: pa.Schema,
    action_id: str | None,
    clock: Clock,
) -> pa.Table:
    """Columns for some events."""
    events = [event for _, _, event in batch]
    places = {arm: place for place, arm in enumerate(facts.arms)}
    share = np.empty((len(places), len(events)))
    columns: dict[str, Any] = {"action": []}
    for row, event in enumerate(events):
        labels = action_labels(event["c"]["_multi"], action_id)
        columns["action"].append(labels[event["a"][0] - 1])
        for place, chance in zip(event["a"], event["p"], strict=True):
            if labels[place - 1] in places:
                share[places[labels[place - 1]], row] = chance
    columns["reward"] = [-float(event["_label_cost"]) for event in events]
    columns["propensity"] = [float(event["p"][0]) for event in events]
    columns |= {f"propensity_{arm}": share[place] for arm, place in places.items()}
    if facts.timed:
        columns[_TIME] = _times(batch, clock)
    features = [dict(shared_features(event["c"])) for event in events]
    for name in schema.names:
        if name not in columns:
            values = [found.get(name) for found in features]
            whole = schema.field(name).type == pa.float64()
            columns[name] = [None if value is None else float(value) for value in values] if whole else values
    try:
        return pa.table([pa.array(columns[each.name], each.type) for each in schema], schema=schema)
    except (pa.ArrowException, OverflowError) as error:
        where = f"{batch[0][0]}, lines {batch[0][1]} to {batch[-1][1]}"
        raise ParameterError(SUBJECT, [f"{where}: Parquet cannot store a value: {error}"]) from error


def _times(batch: list[tuple[Path, int, dict[str, Any]]], clock: Clock) -> Any:
    """Times of the events, in UTC."""
    values, bad = clock.read([event.get("Timestamp") for _, _, event in batch])
    if bad.any():
        path, number, event = batch[int(np.argmax(bad))]
        told = f"{path.name}, line {number}: {event.get('Timestamp')!r:.60}"
        problem = "Timestamp must be a time in ISO 8601 in every event, with a time zone in all or none"
        raise LogValidationError([Problem("bad-time", f"{problem} ({told})")], str(path))
    return values


_IMPRESSIONS = 20_000
_NUMBERS = ("position", "click", "propensity_score")
_MESSAGES = {
    "other-fields": "a row has a different number of fields from the header",
    "bad-time": "timestamp must be a time in ISO 8601, with a time zone in all rows or none",
    "unknown-item": f"the item is not listed in {ITEMS}, which must list all items that could be shown",
    "bad-position": "position must be a whole number",
    "bad-click": "click must be 0 or 1",
    "propensity-out-of-range": "propensity_score must be in (0, 1]",
    "missing-context": "a context is missing",
    "bad-affinity": "an affinity must be a number",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A campaign's file, its header, the retained columns, and the items in their original form."""

    path: Path
    header: list[str]
    schema: pa.Schema
    items: dict[str, Any]


def layout_of(folder: Path, affinities: bool) -> Layout:
    """Layout from the files' headers and the list of items."""
    path = campaign_file(folder, SUBJECT)
    header, listed_header = (next(_rows(each), []) for each in (path, folder / ITEMS))
    problems = header_problems(path, header) + header_problems(folder / ITEMS, listed_header)
    refuse(SUBJECT, [f"{folder}: {problem}" for problem in problems])
    place = listed_header.index("item_id")
    listed = [row[place].strip() for row in islice(_rows(folder / ITEMS), 1, None) if len(row) > place]
    if not listed or "" in listed or len(set(listed)) < len(listed):
        raise ParameterError(SUBJECT, [f"{folder / ITEMS}: item_id must name every item exactly once"])
    whole = all(text.isdecimal() and str(int(text)) == text for text in listed)
    fields = {"timestamp": pa.timestamp("us"), "item_id": pa.int64() if whole else pa.string()}
    fields |= {"position": pa.int64(), "click": pa.int64(), "propensity_score": pa.float64()}
    fields |= {name: pa.string() for name in header if name.startswith("user_feature_")}
    if affinities:
        fields |= {name: pa.float64() for name in header if name.startswith("user-item_affinity_")}
    items = {text: int(text) if whole else text for text in listed}
    return Layout(path, header, pa.schema(list(fields.items())), items)


def impression_tables(layout: Layout) -> Iterator[pa.Table]:
    """Batches of impressions; an error at the end lists all problems, with line numbers."""
    faults, clock, width = Faults(_MESSAGES), Clock(), len(layout.header)
    rows = enumerate(islice(_numbered(layout.path), 1, None))
    while batch := list(islice(rows, _IMPRESSIONS)):
        sound = []
        for row, (number, fields) in batch:
            if len(fields) == width:
                sound.append((row, number, fields))
            else:
                faults.add(row, "other-fields", f"line {number}: {len(fields)}, not {width}")
        table = _impression_table(layout, sound, faults, clock) if sound else None
        if table is not None and not faults.problems():
            yield table
    if problems := faults.problems():
        raise LogValidationError(problems, str(layout.path))


def _impression_table(
    layout: Layout, rows: list[tuple[int, int, list[str]]], faults: Faults, clock: Clock
) -> pa.Table:
    """Columns for some rows; problems are added to the faults."""
    fields = zip(*(fields for _, _, fields in rows), strict=True)
    texts = dict(zip(layout.header, fields, strict=True))

    def refuse_where(bad: BoolArray, code: str, name: str) -> None:
        for place in np.flatnonzero(bad):
            row, number, _ = rows[place]
            faults.add(row, code, f"line {number}: {name} is {texts[name][place]!r:.60}")

    columns: dict[str, Any] = {name: _numbers(texts[name]) for name in _NUMBERS}
    position, click, share = columns.values()
    refuse_where(~(np.isfinite(position) & (position % 1.0 == 0.0)), "bad-position", "position")
    refuse_where((click != 0.0) & (click != 1.0), "bad-click", "click")
    refuse_where(~((share > 0.0) & (share <= 1.0)), "propensity-out-of-range", "propensity_score")
    columns["timestamp"], bad = clock.read(texts["timestamp"])
    refuse_where(bad, "bad-time", "timestamp")
    items = [layout.items.get(text.strip()) for text in texts["item_id"]]
    columns["item_id"] = items
    refuse_where(np.array([item is None for item in items]), "unknown-item", "item_id")
    for each in layout.schema:
        if each.name.startswith("user_feature_"):
            columns[each.name] = texts[each.name]
            refuse_where(
                np.array([not text.strip() for text in texts[each.name]]), "missing-context", each.name
            )
        elif each.name not in columns:
            columns[each.name] = values = _numbers(texts[each.name])
            refuse_where(~np.isfinite(values), "bad-affinity", each.name)
    # If there are faults, the table is not used, and its casts might fail.
    kept = [] if faults.problems() else layout.schema
    return pa.table({each.name: pa.array(columns[each.name]).cast(each.type) for each in kept})


def _numbers(texts: Sequence[str]) -> Any:
    """Numbers parsed from texts, NaN if a text is not a number."""
    return pd.to_numeric(pd.Series(texts, dtype="str"), errors="coerce").to_numpy(dtype=np.float64)


def _rows(path: Path) -> Iterator[list[str]]:
    return (fields for _, fields in _numbered(path))


def _numbered(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Non-blank rows of a CSV file, each with the number of its last line."""
    reader = csv.reader(lines_of(path, SUBJECT), strict=True)
    try:
        for fields in reader:
            if fields and not (len(fields) == 1 and not fields[0].strip()):
                yield reader.line_num, fields
    except csv.Error as error:
        problem = f"{path}: line {reader.line_num}: {error}; its quotation marks do not match"
        raise ParameterError(SUBJECT, [problem]) from None


_EVENTS = (".dsjson", ".json", ".jsonl")


def convert(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    action_id: str | None = None,
    context: Iterable[str] | None = None,
    affinities: bool = False,
    played: str = "first",
    slot: int | None = None,
) -> int:
    r"""Write a dsjson log or an Open Bandit folder as Parquet, in batches that need little memory.

    Parameters
    ----------
    source : path
        A dsjson file, a folder of them (``*.dsjson``, ``*.json`` or ``*.jsonl``, read as one log in the order
        of their names), or a folder of the Open Bandit Dataset.
    output : path
        Name of the Parquet file.
    action_id, context, played, slot : optional
        As in `read_dsjson`, for dsjson only.
    affinities : bool
        As in `read_open_bandit`, for an Open Bandit folder only.

    Returns
    -------
    int
        Number of rows, which are the rows that the reader returns, in the order of the files.

    Raises
    ------
    ParameterError
        If an argument is invalid, or a file cannot be read.
    LogValidationError
        If lines are invalid; the message gives the number of each fault, and the file, line and content of
        the first. Nothing is then written.

    Notes
    -----
    The columns for a dsjson log are ``action``, ``reward`` (minus the cost), ``propensity``,
    ``propensity_<arm>`` for every arm, ``timestamp`` if events have a ``Timestamp``, and the shared features.
    Events are read twice, the first time to collect facts about all of them. The columns of an Open Bandit
    folder keep their names: ``timestamp``, ``item_id``, ``position``, ``click``, ``propensity_score``, and
    the hashed features as text. Times with a time zone are converted to UTC.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp()) / "random" / "men"
    >>> folder.mkdir(parents=True)
    >>> head = "timestamp,item_id,position,click,propensity_score\n"
    >>> rows = ["2019-11-24 00:00:17+00:00,1,2,0,0.5\n", "2019-11-24 00:00:20+00:00,0,1,1,0.5\n"]
    >>> _ = (folder / "men.csv").write_text(head + "".join(rows))
    >>> _ = (folder / "item_context.csv").write_text("item_id\n0\n1\n")
    >>> ai.formats.convert(folder, folder / "men.parquet")
    2
    >>> columns = {"action": "item_id", "reward": "click", "propensity": "propensity_score"}
    >>> sums = ai.aggregate(folder / "men.parquet", **columns, batch="timestamp", every="day")
    >>> sums.arms, sums.n_batches
    ((0, 1), 1)
    """
    context = [context] if isinstance(context, str) else None if context is None else list(context)
    place, target = as_path(SUBJECT, "source", source), as_path(SUBJECT, "output", output)
    bandit = place.is_dir() and (place / ITEMS).is_file()
    form = Form(played, slot)
    problems = ([] if context is None else names_problems("context", context)) + form_problems(form)
    if target.suffix.lower() not in (".parquet", ".pq"):
        problems.append(f"output must end in .parquet or .pq, got {target.name!r}")
    if bandit and (action_id is not None or context is not None):
        problems.append("action_id and context apply only to dsjson: omit them for an Open Bandit folder")
    if bandit and form != Form():
        problems.append("played and slot apply only to dsjson: omit them for an Open Bandit folder")
    if not bandit and affinities:
        problems.append(
            f"affinities apply only to an Open Bandit folder, which contains {ITEMS}: {place} is not one"
        )
    files = [place] if bandit else _event_files(place)
    problems += [problem for each in files for problem in output_problems(str(target), each)]
    if not files:
        problems.append(f"{place} contains neither {ITEMS} nor files that end in {', '.join(_EVENTS)}")
    refuse(SUBJECT, problems)
    if bandit:
        layout = layout_of(place, affinities)
        return _written(target, layout.schema, impression_tables(layout))
    facts = survey(place, files, action_id, form)
    schema = schema_of(place, facts, context)
    return _written(target, schema, decision_tables(files, facts, schema, action_id, form))


def _event_files(place: Path) -> list[Path]:
    """Files of a dsjson log, in order."""
    if not place.is_dir():
        return [place]
    return sorted(path for path in place.iterdir() if path.suffix.lower() in _EVENTS)


def _written(target: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    """Write tables to one file, and count their rows."""
    count = 0

    def fill(file: BinaryIO) -> Any:
        nonlocal count
        with pq.ParquetWriter(file, schema) as writer:
            for table in tables:
                writer.write_table(table)
                count += table.num_rows
        if not count:
            raise ParameterError(SUBJECT, ["the source has no rows"])

    atomic_write(target, fill)
    return count
