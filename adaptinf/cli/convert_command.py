"""``adaptinf convert``: convert other formats, or files with named columns, to adaptinf files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from adaptinf.cli.grammar import DONE, add_command, path_of
from adaptinf.cli.options.log_options import add_log_options, log_options
from adaptinf.cli.options.output_options import confirm, overwritten
from adaptinf.errors import ParameterError

_TABLES = (".parquet", ".pq", ".csv")


def add_convert(commands: Any, short: str) -> None:
    """Add ``adaptinf convert``."""
    parser = add_command(
        commands,
        "convert",
        convert,
        short=short,
        opening="Write a log as a file that stores its column roles and statements, so no command needs "
        "them again. A dsjson log, or a folder of the Open Bandit Dataset, is converted to Parquet "
        "in batches, so it may be larger than memory.",
        examples=(
            "adaptinf convert visits.csv --action page --reward bought --propensity p \\",
            "    --output log.parquet",
            "adaptinf analyze log.parquet",
            "adaptinf convert logs/2024 --action-id id --output log.parquet",
        ),
        usage="FILE... --output FILE [options]",
    )
    add_log_options(parser)
    other = parser.add_argument_group("other formats")
    other.add_argument("--action-id", metavar="NAME", help="feature that names an action (dsjson)")
    other.add_argument(
        "--played",
        choices=("first", "label"),
        help="which action was played: the first one in a (default), or that of _label_Action (dsjson)",
    )
    other.add_argument("--slot", type=int, metavar="N", help="slot of a conditional bandit, from 1 (dsjson)")
    other.add_argument(
        "--affinities", action="store_true", help="keep user-item affinities too (Open Bandit Dataset)"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", metavar="FILE", type=path_of, required=True, help="name of the .parquet or .csv file"
    )


def convert(arguments: argparse.Namespace) -> int:
    """Write the file, and describe its contents."""
    from adaptinf.cli.opened_data import sources_of

    sources, output = sources_of(arguments), arguments.output
    options = log_options(arguments)
    problems = overwritten(output, sources)
    if output.suffix.lower() not in _TABLES:
        problems.append(f"--output {output} must end in one of {', '.join(_TABLES)}")
    if problems:
        raise ParameterError("arguments", problems)
    if set(options) - {"context"} or _is_table(sources[0]):
        return _log(arguments, sources, options)
    return _other(arguments, sources, options)


def _is_table(path: Path) -> bool:
    return not path.is_dir() and path.suffix.lower() in _TABLES


def _log(arguments: argparse.Namespace, sources: list[Path], options: dict[str, Any]) -> int:
    """A log, or a table of sums, in the format of adaptinf."""
    from adaptinf.cli.opened_data import opened
    from adaptinf.sums import Sums

    given = [name for name in ("action_id", "played", "slot", "affinities") if getattr(arguments, name)]
    if given:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        problem = "applies to dsjson files and Open Bandit folders, not to a table whose columns are named"
        raise ParameterError(flags, [f"{problem}: omit it"])
    log, output = opened(sources, options).log, arguments.output
    if isinstance(log, Sums):
        if output.suffix.lower() == ".csv":
            raise ParameterError("--output", ["sums are stored as Parquet: give the name of a .parquet file"])
        log.to_parquet(output)
        confirm(arguments, output, f"sums of {log.n_rounds:,} rounds")
        return DONE
    (log.to_csv if output.suffix.lower() == ".csv" else log.to_parquet)(output)
    confirm(arguments, output, f"a log of {log.n_rounds:,} rounds")
    return DONE


def _other(arguments: argparse.Namespace, sources: list[Path], options: dict[str, Any]) -> int:
    """Convert rows in another format."""
    from adaptinf.formats import convert as converted

    if len(sources) > 1:
        raise ParameterError(
            str(sources[1]),
            ["files in any other format must be in one folder, which is read as one log: pass the folder"],
        )
    count = converted(
        sources[0],
        arguments.output,
        action_id=arguments.action_id,
        context=options.get("context"),
        affinities=arguments.affinities,
        played=arguments.played or "first",
        slot=arguments.slot,
    )
    confirm(arguments, arguments.output, f"{count:,} rows")
    return DONE
