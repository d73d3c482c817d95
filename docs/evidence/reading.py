"""One experiment from fourteen sources through four doors, in six types of outcome and four of labels.

Makes docs/evidence/reading.md. What must come of each is computed by plain Python from the rows, by a rule
that was written before the first run (`due`): the mean of every arm to 1e-12, or one refusal by its codes.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

COMMAND = "python docs/evidence/reading.py"
SEED, ROUNDS, DAYS, LIMIT = 20261127, 120, 4, 1e-12
SAME, REFUSED, OTHER, RAW, NONE = "same", "refused", "other", "raw", "none"
DOORS = ("log", "sums", "aggregate", "CLI")
LABELS: dict[str, tuple[Any, Any]] = {
    "int": (1, 2),
    "text": ("NA", "b"),
    "category": ("a", "b c"),
    "bool": (False, True),
}
OUTCOMES: dict[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "0/1": (lambda y: y % 2, pa.int64()),
    "bool": (lambda y: bool(y % 2), pa.bool_()),
    "int8": (lambda y: y, pa.int8()),
    "Decimal": (lambda y: Decimal(y) / 8, pa.decimal128(12, 6)),
    "float32": (lambda y: y / 8, pa.float32()),
    "text": (lambda y: "Y" if y % 2 else "N", pa.string()),
}
Rows = list[dict[str, Any]]


def rows_of(outcome: str, labels: str) -> Rows:
    """Rounds: day, arm, outcome, propensity; the last day has one small outcome of each arm."""
    rng = np.random.default_rng(SEED)
    make, (first, second) = OUTCOMES[outcome][0], LABELS[labels]
    arms, values = rng.integers(2, size=ROUNDS), rng.integers(-2, 3, size=ROUNDS)
    return [
        {
            "day": 1 + row * DAYS // ROUNDS,
            "arm": second if arm else first,
            "y": make(int(value)),
            "p": 0.5,
        }
        for row, (arm, value) in enumerate(zip(arms, values, strict=True))
    ]


def sums_of(rows: Rows, outcome: str) -> Rows:
    """The same by day and arm; sums are in the type of the outcome as far as it has them."""
    found = []
    for day in range(1, DAYS + 1):
        for arm in dict.fromkeys(row["arm"] for row in rows):
            mine = [row["y"] for row in rows if (row["day"], row["arm"]) == (day, arm)]
            ys = [1 if y == "Y" else 0 if y == "N" else y for y in mine]
            total, squares = sum(ys), sum(y * y for y in ys)
            if outcome == "text":
                total, squares = str(total), str(squares)
            if outcome == "bool":
                total, squares = bool(total % 2), bool(squares % 2)
            found.append({"day": day, "arm": arm, "n": len(ys), "s": total, "q": squares, "p": 0.5})
    return found


def due(source: str, door: str, outcome: str, rows: Rows) -> dict[str, float] | tuple[str, ...] | None:
    """What must come: means of the arms by their text, codes of a refusal; None if there is no such door.

    The rule: the command line takes files and standard input. Text is an outcome where the door can be told
    which one is a success, and is refused by `aggregate`, which cannot. Sums that are truth values are
    refused; sums that are text are numbers in a file of text, where everything is, and refused in any other.
    Whatever else is the same.
    """
    if door == "CLI" and source not in FILES:
        return None
    if door == "aggregate" and outcome == "text":
        return ("non-numeric-reward",)
    as_text = source in TEXTS
    if door == "sums" and (outcome == "bool" or (outcome == "text" and not as_text)):
        return "non-numeric-sum", "non-numeric-sum_squares"
    means: dict[str, list[float]] = {}
    for row in rows:
        y = row["y"]
        means.setdefault(str(row["arm"]), []).append(float(y == "Y" if isinstance(y, str) else y))
    return {arm: sum(values) / len(values) for arm, values in means.items()}


def typed(rows: Rows, outcome: str, labels: str) -> pa.Table:
    """Rows as Arrow has them, in the types that are requested."""
    kind = OUTCOMES[outcome][1]
    types = {"y": kind, "s": kind, "q": kind, "day": pa.int64(), "n": pa.int64(), "p": pa.float64()}
    columns = {}
    for name in rows[0]:
        values = pa.array([row[name] for row in rows], types.get(name))
        columns[name] = values.dictionary_encode() if name == "arm" and labels == "category" else values
    return pa.table(columns)


def text(rows: Rows, sep: str = ",", decimal: str = ".") -> bytes:
    """Rows as delimited text."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=sep)
    writer.writerow(rows[0])
    for row in rows:
        cells = [str(value) for value in row.values()]
        numbers = [isinstance(value, float | Decimal) for value in row.values()]
        pairs = zip(cells, numbers, strict=True)
        writer.writerow([cell.replace(".", decimal) if number else cell for cell, number in pairs])
    return sink.getvalue().encode()


def lines(rows: Rows) -> bytes:
    """Rows as JSON, an object a line."""
    plain = [{k: float(v) if isinstance(v, Decimal) else v for k, v in row.items()} for row in rows]
    return "".join(json.dumps(row) + "\n" for row in plain).encode()


def written(folder: Path, name: str, data: bytes | pa.Table) -> Path:
    """A file with these bytes, or this table."""
    place = folder / name
    if isinstance(data, bytes):
        place.write_bytes(data)
    elif place.suffix == ".parquet":
        pq.write_table(data, place)
    else:
        with ipc.new_file(str(place), data.schema) as writer:
            writer.write_table(data)
    return place


def arrow_pandas(table: pa.Table) -> pd.DataFrame:
    """A frame of pandas with Arrow's types."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def of_dask(table: pa.Table) -> Any:
    """A frame of Dask in three partitions."""
    import dask.dataframe as dd

    return dd.from_pandas(arrow_pandas(table), npartitions=3)


def of_duckdb(table: pa.Table) -> Any:
    """A relation of DuckDB on Arrow's memory."""
    import duckdb

    return duckdb.from_arrow(table)


def of_polars(table: pa.Table) -> Any:
    """A frame of Polars."""
    import polars as pl

    return pl.from_arrow(table)


TEXTS: dict[str, tuple[str, Callable[[Rows], bytes]]] = {
    "CSV": ("x.csv", text),
    "TSV": ("x.tsv", lambda rows: text(rows, "\t")),
    "; and ,": ("x.csv", lambda rows: text(rows, ";", ",")),
    "gzip": ("x.csv.gz", lambda rows: gzip.compress(text(rows))),
    "standard input": ("-", text),
}
FILES: dict[str, tuple[str, Callable[[Rows], bytes] | None]] = {
    **TEXTS,
    "JSON lines": ("x.jsonl", lines),
    "Parquet": ("x.parquet", None),
    "Arrow file": ("x.arrow", None),
}
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "nullable": lambda table: table.to_pandas().convert_dtypes(),
    "Arrow-backed": arrow_pandas,
    "Polars": of_polars,
    "Dask": of_dask,
    "DuckDB": of_duckdb,
}
SOURCES = (*FILES, *FRAMES)


@contextlib.contextmanager
def opened(source: str, rows: Rows, outcome: str, labels: str) -> Iterator[Any]:
    """What a user would hand over."""
    table = typed(rows, outcome, labels)
    if source in FRAMES:
        yield FRAMES[source](table)
        return
    name, make = FILES[source]
    data = table if make is None else make(rows)
    if name == "-":
        kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))  # type: ignore[arg-type]
        try:
            yield "-"
        finally:
            sys.stdin = kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield written(Path(folder), name, data)


ROLES = {"action": "arm", "reward": "y", "propensity": "p", "batch": "day"}
SUMS = {"batch": "day", "arm": "arm", "n": "n", "sum": "s", "sum_squares": "q", "propensity": "p"}


def means(door: str, held: Any, outcome: str) -> dict[str, float]:
    """Means of the arms by one door."""
    import adaptinf as ai

    success = {"success": "Y"} if outcome == "text" else {}
    if door == "CLI":
        return of_command(str(held), success)
    if door == "log":
        made = ai.read_log(held, **ROLES, **success)
    elif door == "sums":
        made = ai.Sums(held, **SUMS)
    else:
        made = ai.aggregate(held, **ROLES)
    table = ai.ArmMeans(made).fit(estimator="sample-mean").to_frame()
    return dict(zip(map(str, made.arms), table["estimate"], strict=True))


def of_command(name: str, success: dict[str, str]) -> dict[str, float]:
    """Means of the arms by ``adaptinf analyze``."""
    from adaptinf.cli import main

    options = {**ROLES, **success}
    flags = [part for role, column in options.items() for part in (f"--{role}", column)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["analyze", name, *flags, "--estimator", "sample-mean", "--format", "json"])
    if code:
        raise AssertionError(err.getvalue())
    results = json.loads(out.getvalue())["results"]
    return {str(row["term"]): row["estimate"] for row in results}


def outcome_of(source: str, door: str, outcome: str, labels: str) -> tuple[str, str]:
    """Whether what came is what must come, and what came where it is not."""
    from adaptinf.errors import AdaptinfError, LogValidationError

    rows = rows_of(outcome, labels)
    wanted = due(source, door, outcome, rows)
    if wanted is None:
        return NONE, ""
    held = sums_of(rows, outcome) if door == "sums" else rows
    try:
        with opened(source, held, outcome, labels) as made:
            found = means(door, made, outcome)
    except LogValidationError as error:
        codes = tuple(sorted({problem.code for problem in error.problems}))
        return (REFUSED, "") if codes == wanted else (OTHER, f"refused: {error}")
    except (AdaptinfError, AssertionError) as error:
        return OTHER, f"{type(error).__name__}: {error}"
    except Exception as error:
        return RAW, f"{type(error).__name__}: {str(error)[:300]}"
    if not isinstance(wanted, dict):
        return OTHER, f"read, and should be refused: {', '.join(wanted)}"
    if found.keys() != wanted.keys():
        return OTHER, f"arms {sorted(found)} for {sorted(wanted)}"
    gap = max(abs(found[arm] - wanted[arm]) for arm in wanted)
    return (SAME, "") if gap <= LIMIT else (OTHER, f"means differ by {gap:.1e}")


def page(found: dict[tuple[str, str, str, str], tuple[str, str]]) -> str:
    """The page: a line for a source, a column for a door."""
    counts = {kind: sum(one[0] == kind for one in found.values()) for kind in (SAME, REFUSED, OTHER, RAW)}
    lines = []
    for source in SOURCES:
        cells = []
        for door in DOORS:
            own = [one[0] for key, one in found.items() if key[:2] == (source, door)]
            told = [f"{own.count(kind)} {kind}" for kind in (SAME, REFUSED, OTHER, RAW) if kind in own]
            cells.append(", ".join(told))
        lines.append(f"| {source} | {' | '.join(cells)} |")
    odd = [
        f"- {', '.join(key)}: {' '.join(told.split())}"
        for key, (kind, told) in found.items()
        if kind in (OTHER, RAW)
    ]
    listed = "\n".join(["", "## What is otherwise", "", *odd, ""]) if odd else ""
    asked = sum(counts.values())
    return f"""# One experiment, one answer, however it is brought

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

With {len(SOURCES)} sources, {len(DOORS)} entry points (`read_log`, `Sums`, `aggregate`, `adaptinf analyze`),
{len(OUTCOMES)} types of outcome ({", ".join(OUTCOMES)}) and {len(LABELS)} types of labels
({", ".join(LABELS)}), there are {asked:,} possible uses, with {ROUNDS} rounds each. The expected result is
computed by plain Python from the rows, by a rule that was written before the first run: the mean of every arm
to {LIMIT:.0e}, or a refusal with exactly the expected codes.

Of {asked:,} uses, {counts[SAME]:,} give the same means, {counts[REFUSED]:,} the expected refusal,
{counts[OTHER]:,} a different result, and {counts[RAW]:,} an error that is not one of adaptinf's own.

The refused uses are text outcomes in `aggregate`, which has no `success=`; sums that are booleans; and sums
stored as text in anything other than a text file. The command line accepts only files and standard input. One
of the text labels is `NA`.

| source | {" | ".join(DOORS)} |
| --- |{" --- |" * len(DOORS)}
{chr(10).join(lines)}
{listed}"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    keys = [(s, d, o, k) for s in SOURCES for d in DOORS for o in OUTCOMES for k in LABELS]
    keys = keys[:: 11 if options.quick else 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {key: outcome_of(*key) for key in keys}
    evidence.publish(page(found), __file__, options)
    if {OTHER, RAW} & {kind for kind, _ in found.values()}:
        raise SystemExit("sources differ")


if __name__ == "__main__":
    main()
