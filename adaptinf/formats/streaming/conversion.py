"""Folders and files of other formats to Parquet, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from adaptinf.errors import ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.formats.obd import ITEMS
from adaptinf.formats.streaming.decisions import schema_of, survey, tables as decision_tables
from adaptinf.formats.streaming.impressions import layout_of, tables as impression_tables
from adaptinf.formats.tables import names_problems
from adaptinf.log.storage.files import output_problems
from adaptinf.parameters import refuse

SUBJECT = "convert"
_EVENTS = (".dsjson", ".json", ".jsonl")


def convert(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    action_id: str | None = None,
    context: Iterable[str] | None = None,
    affinities: bool = False,
) -> int:
    r"""Write a dsjson log or an Open Bandit folder as Parquet, in batches that need little memory.

    Parameters
    ----------
    source : path
        A dsjson file, a folder of them (``*.dsjson``, ``*.json`` or ``*.jsonl``, one log in the order of
        their names), or a folder of the Open Bandit Dataset.
    output : path
        Name of the Parquet file.
    action_id, context : optional
        As for `read_dsjson`, of dsjson alone.
    affinities : bool
        As for `read_open_bandit`, of such a folder alone.

    Returns
    -------
    int
        Number of rows, which are those of the reader in the order of the files.

    Raises
    ------
    ParameterError
        If an argument makes no sense, or a file cannot be read.
    LogValidationError
        With everything that is wrong with the lines: how many there are of each fault, and the file, line and
        content of the first. Nothing is written then.

    Notes
    -----
    The columns of a dsjson log are ``action``, ``reward`` (minus the cost), ``propensity``,
    ``propensity_<arm>`` of every arm, ``timestamp`` where events have a ``Timestamp``, and the shared
    features. Events are read twice, first for what holds of all of them. Those of an Open Bandit folder keep
    their names: ``timestamp``, ``item_id``, ``position``, ``click``, ``propensity_score``, and the hashed
    features as text. Times with a zone become UTC.

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
    problems = [] if context is None else names_problems("context", context)
    if target.suffix.lower() not in (".parquet", ".pq"):
        problems.append(f"output must end in .parquet or .pq, got {target.name!r}")
    if bandit and (action_id is not None or context is not None):
        problems.append("action_id and context are of dsjson: leave them out for an Open Bandit folder")
    if not bandit and affinities:
        problems.append(f"affinities are of an Open Bandit folder, with {ITEMS}: {place} is none")
    files = [place] if bandit else _event_files(place)
    problems += [problem for each in files for problem in output_problems(str(target), each)]
    if not files:
        problems.append(f"{place} holds neither {ITEMS} nor files that end in {', '.join(_EVENTS)}")
    refuse(SUBJECT, problems)
    if bandit:
        layout = layout_of(place, affinities)
        return _written(target, layout.schema, impression_tables(layout))
    facts = survey(place, files, action_id)
    schema = schema_of(place, facts, context)
    return _written(target, schema, decision_tables(files, facts, schema, action_id))


def _event_files(place: Path) -> list[Path]:
    """Files of a dsjson log, in order."""
    if not place.is_dir():
        return [place]
    return sorted(path for path in place.iterdir() if path.suffix.lower() in _EVENTS)


def _written(target: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    """Write tables as one file, and count their rows."""
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
