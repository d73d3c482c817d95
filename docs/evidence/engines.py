"""Tables in odd types and with odd entries from nine sources and as a log: makes docs/evidence/engines.md.

What must come of a table is computed by plain Python from its rows: sums, or the codes that it is refused by.
Every source has to give these sums to 1e-12, or be refused by the same codes, in three time zones.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import engine_tables
import evidence
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from engine_tables import Table

COMMAND = "python docs/evidence/engines.py"
ZONES = ("UTC", "America/New_York", "Asia/Tokyo")
LIMIT = 1e-12
PIECES = 3
ROLES = {"action": "arm", "reward": "y", "batch": "day"}
SAME, OTHER, RAW = "same", "other", "raw"


def file(table: Table, folder: Path) -> Any:
    """One Parquet file."""
    place = folder / "whole.parquet"
    content = table.parts[0] if table.parts and "file" in table.sources else table.arrow
    _write(content, place)
    return place


def several(table: Table, folder: Path) -> Any:
    """Several files by a name with a star."""
    parts = table.parts
    if not parts:
        cut = table.arrow
        size = -(-cut.num_rows // PIECES) or 1
        parts = tuple(cut[place * size : (place + 1) * size] for place in range(PIECES))
    for place, part in enumerate(parts):
        _write(part, folder / f"part_{place}.parquet")
    return folder / "part_*.parquet"


def _write(content: pa.Table | bytes, place: Path) -> None:
    if isinstance(content, bytes):
        place.write_bytes(content)
    else:
        pq.write_table(content, place)


def duckdb_relation(table: Table, folder: Path) -> Any:
    """A relation of DuckDB on Arrow's memory."""
    import duckdb

    return duckdb.from_arrow(table.arrow)


def ibis_table(table: Table, folder: Path) -> Any:
    """A table of ibis on DuckDB over a file."""
    import ibis

    return ibis.duckdb.connect().read_parquet(file(table, folder))


def dask_frame(table: Table, folder: Path) -> Any:
    """A frame of Dask, of Arrow-backed pandas in three partitions."""
    import dask.dataframe as dd

    return dd.from_pandas(arrow_pandas(table, folder), npartitions=PIECES)


def arrow_pandas(table: Table, folder: Path) -> Any:
    """A frame of pandas with Arrow's types."""
    return table.arrow.to_pandas(types_mapper=pd.ArrowDtype)


def polars_frame(table: Table, folder: Path) -> Any:
    """A frame of Polars."""
    import polars as pl

    return pl.from_arrow(table.arrow)


SOURCES: dict[str, Callable[[Table, Path], Any]] = {
    "file": file,
    "glob": several,
    "DuckDB": duckdb_relation,
    "ibis": ibis_table,
    "pandas": lambda table, folder: table.arrow.to_pandas(),
    "Arrow-backed": arrow_pandas,
    "pyarrow": lambda table, folder: table.arrow,
    "Polars": polars_frame,
    "Dask": dask_frame,
}
LOG = "log"


def of_log(table: Table) -> Any:
    """Sums of the log itself, whose batches were cut by plain Python."""
    import adaptinf as ai

    frame, options = table.arrow.to_pandas(), dict(table.options)
    every, zone = options.pop("every", None), options.pop("timezone", None)
    centre, by = options.pop("centre", None), options.pop("by", ())
    if every is not None:
        entries = table.arrow.column("day").to_pylist()
        cut = [None if entry is None else engine_tables.batch_of(entry, every, zone) for entry in entries]
        frame["day"] = pd.Series(cut, dtype="datetime64[us]")
    log = ai.AdaptiveLog(frame, **ROLES, **options, context=[by] if by else ())
    return ai.Sums.of_log(log, centre=centre, by=by)


def outcome(make: Callable[[], Any], table: Table, batches: bool = True) -> tuple[str, str]:
    """Whether a source gives what must come of a table, and what it gives where it does not."""
    from adaptinf.errors import AdaptinfError, LogValidationError

    try:
        found = make()
    except LogValidationError as error:
        codes = tuple(sorted({problem.code for problem in error.problems}))
        return (
            (SAME, "") if codes == tuple(sorted(table.refused)) else (OTHER, f"refused: {', '.join(codes)}")
        )
    except AdaptinfError as error:
        kind = type(error).__name__
        return (SAME, "") if (kind,) == table.refused else (OTHER, f"{kind}: {error}")
    except Exception as error:
        return RAW, f"{type(error).__name__}: {str(error)[:200]}"
    if table.refused:
        return OTHER, f"summed, and should be refused: {', '.join(table.refused)}"
    return differing(found, table, batches)


def differing(sums: Any, table: Table, batches: bool) -> tuple[str, str]:
    """Whether sums are those of plain Python, relative to sums of absolute values; batches by their order."""
    due, frame = engine_tables.expected(table), sums.frame
    names = sorted({key[0] for key in due})
    own = sorted(set(frame["batch"]))
    if len(own) != len(names) or len(frame) != len(due):
        return OTHER, f"{len(own)} batches and {len(frame)} cells for {len(names)} and {len(due)}"
    if batches and [_stamp(one) for one in own] != [_stamp(one) for one in names]:
        return OTHER, f"batches {own[:2]} for {names[:2]}"
    place = dict(zip(own, names, strict=True))
    scale = max(abs(values[1]) for values in due.values()) or 1.0
    scales = (1.0, scale, max(values[2] for values in due.values()) or 1.0, 1.0)
    worst = 0.0
    for row in frame.to_dict("records"):
        group = [row[name] for name in sums.group_names]
        values = due[place[row["batch"]], *group, row["arm"]]
        got = [row[name] for name in ("n", "sum", "sum_squares", "propensity")]
        gaps = [abs(one - other) / size for one, other, size in zip(got, values, scales, strict=True)]
        worst = max([worst, *(gap for gap, value in zip(gaps, values, strict=True) if not np.isnan(value))])
    return (SAME, "") if worst <= LIMIT else (OTHER, f"sums differ by {worst:.1e}")


def _stamp(batch: Any) -> Any:
    """A batch as a number, or a time of Python."""
    time = isinstance(batch, (datetime.datetime, np.datetime64))
    return pd.Timestamp(batch).to_datetime64() if time else float(batch)


def measured(table: Table) -> dict[str, tuple[str, str]]:
    """The outcome of every source that can hold a table."""
    import adaptinf as ai
    from adaptinf.log.validation import OF_AGGREGATES, nested_options

    options = nested_options(table.options, OF_AGGREGATES)
    found = {}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, source in SOURCES.items():
            if table.sources and name not in table.sources:
                continue
            folder = Path(place) / name
            folder.mkdir()
            try:
                made = source(table, folder)
            except Exception as error:  # an engine that has no such type
                found[name] = "none", f"{type(error).__name__}: {str(error)[:100]}"
                continue
            found[name] = outcome(lambda made=made: ai.aggregate(made, **ROLES, **options), table)
        if (not table.sources or LOG in table.sources) and not (table.refused and "every" in table.options):
            found[LOG] = outcome(lambda: of_log(table), table, batches=False)
    return found


def in_zone(zone: str, quick: bool) -> dict[str, dict[str, tuple[str, str]]]:
    """Outcomes of all tables in a process whose time zone is another."""
    arguments = [sys.executable, __file__, "--measure", *(["--quick"] if quick else [])]
    told = subprocess.run(
        arguments, env={**os.environ, "TZ": zone}, check=True, capture_output=True, text=True
    )
    return {
        name: {source: tuple(one) for source, one in each.items()}
        for name, each in json.loads(told.stdout).items()
    }


MARKS = {SAME: "=", OTHER: "differs", RAW: "RAW ERROR", "none": "no such type", None: ""}


def page(found: dict[str, dict[str, dict[str, tuple[str, str]]]], tables: list[Table]) -> str:
    """The page: a line a table."""
    columns = [*SOURCES, LOG]
    rows, counts, odd = [], dict.fromkeys((SAME, OTHER, RAW), 0), []
    for table in tables:
        cells = []
        for source in columns:
            each = {zone: found[zone][table.name].get(source, (None, "")) for zone in found}
            worst = max((one[0] for one in each.values()), key=[None, "none", SAME, OTHER, RAW].index)
            cells.append(MARKS[worst])
            for zone, (kind, told) in each.items():
                counts[kind] = counts.get(kind, 0) + 1
                if kind in (OTHER, RAW, "none") and zone == next(iter(found)):
                    odd.append(f"- {table.name}, {source}: {' '.join(told.split())}")
        due = f"refused: {', '.join(table.refused)}" if table.refused else "sums"
        rows.append(f"| {table.name} | {due} | {' | '.join(cells)} |")
    summed = sum(not table.refused for table in tables)
    answers = counts[SAME] + counts[OTHER] + counts[RAW]
    size = engine_tables.DAYS * engine_tables.ROWS
    listed = "\n".join(["", "## Limitations and differences of sources", "", *odd, ""]) if odd else ""
    return f"""# One table, one answer, in every engine

Command: `{COMMAND}`. Seed: {engine_tables.SEED}. Date: {evidence.stamp()}.

{len(tables)} tables of {size} rows, of which {summed} must be summed and {len(tables) - summed} must be
refused, are read from nine sources and as a log, in the time zones {", ".join(ZONES[:-1])} and {ZONES[-1]}.
The correct result for a table is computed by plain Python from its rows. The result consists of the numbers
of rounds, the sums of rewards and of their squares, and the mean propensities, by batch and arm, which a
source must reproduce to {LIMIT:.0e}; for a table that is refused, it consists of the codes of all problems.

Of {answers:,} answers, {counts[SAME]:,} are the same (=), {counts[OTHER]} differ, and {counts[RAW]} are
errors raised by an engine. A blank means that the source cannot store the table (a frame cannot be several
files), or that it cannot be read as a log (`every=` truncates times only in `aggregate`). Files are Parquet,
read by DuckDB; the ibis table is a DuckDB table over a file; Dask's partitions are pandas frames with Arrow's
types.

| table | what must come | {" | ".join(columns)} |
| --- | --- |{" :-: |" * len(columns)}
{chr(10).join(rows)}
{listed}"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--measure", action="store_true", help="print the outcomes in this time zone as JSON")
    options = parser.parse_args()
    tables = engine_tables.tables()[:: 8 if options.quick else 1]
    if options.measure:
        print(json.dumps({table.name: measured(table) for table in tables}))
        return
    found = {zone: in_zone(zone, options.quick) for zone in ZONES}
    evidence.publish(page(found, tables), __file__, options)
    kinds = [kind for each in found.values() for sources in each.values() for kind, _ in sources.values()]
    if OTHER in kinds or RAW in kinds:
        raise SystemExit("sources differ")


if __name__ == "__main__":
    main()
