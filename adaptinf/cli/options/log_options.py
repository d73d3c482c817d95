"""Options for the contents of a log file, how it is read, and how the data were collected."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from adaptinf.cli.grammar import CommandParser, path_of
from adaptinf.cli.options.flag_columns import COLUMNS, HELP, SUMS
from adaptinf.errors import ParameterError

_PERIODS = ("hour", "day", "week", "month")
_PLAIN = (
    *("arms", "context", "epsilon", "success", "missing", "adaptive", "stopping"),
    *("sep", "decimal", "encoding", "missing_values", "date_format", "timezone", "every"),
    *("sort", "round_propensities"),
)
LOG_USAGE = "FILE... --action COLUMN --reward COLUMN [options]"


def add_log_options(parser: CommandParser) -> None:
    """Files of a log, and all options that describe them."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=path_of,
        help="CSV or Parquet; - is standard input; several files, or a pattern such as 'logs/*.csv', form "
        "one log",
    )
    columns = parser.add_argument_group(
        "columns", "Files written by adaptinf store their column roles: do not name columns for them."
    )
    columns.add_argument("--action", action="append", metavar="COLUMN", help=HELP["action"])
    for role in COLUMNS[1:]:
        _add_column(columns, role)
    columns.add_argument(
        "--propensities",
        action="append",
        type=_pairs,
        metavar="ARM=COLUMN[,...]",
        help="probability of each arm, chosen or not, as a column or a number; or a pattern of column names "
        "such as p_{arm}, or their common prefix (default: columns propensity_ARM); or a column of "
        "lists in the order of --arms; or 'from batches', if the propensities of chosen arms are "
        "constant within batches",
    )
    columns.add_argument("--arms", type=_listed, metavar="ARM[,...]", help="all arms, in this order")
    columns.add_argument(
        "--context", action="append", metavar="COLUMN", help="known before the choice; may be repeated"
    )
    _add_reading(parser.add_argument_group("reading"))
    _add_statements(parser.add_argument_group("what is known about the collection of the data"))
    sums = parser.add_argument_group("a table of sums", "One row per batch and arm, instead of rounds.")
    for role in SUMS:
        _add_column(sums, role)


def _add_column(group: Any, role: str) -> None:
    group.add_argument(f"--{role.replace('_', '-')}", metavar="COLUMN", help=HELP[role])


def _add_reading(group: Any) -> None:
    """How text in a file is converted to numbers, times and labels."""
    group.add_argument(
        "--sep", metavar="TEXT", help="field separator of a CSV file, if it cannot be detected"
    )
    group.add_argument("--decimal", metavar="TEXT", help="decimal sign, such as ,")
    group.add_argument("--encoding", metavar="NAME", help="encoding of the text, such as utf-16 or cp1252")
    group.add_argument(
        "--missing-values",
        action="append",
        metavar="TEXT",
        help="text that represents a missing value, in every column; may be repeated",
    )
    group.add_argument(
        "--success",
        type=_success,
        metavar="TEXT",
        help="label that counts as 1 in a reward column with two labels; or LABEL=NUMBER[,...] for every "
        "label",
    )
    group.add_argument(
        "--date-format", metavar="FORMAT", help="of dates in the round or batch column, such as %%d/%%m/%%Y"
    )
    group.add_argument(
        "--timezone", metavar="ZONE", help="time zone in which days begin, such as Europe/Berlin"
    )
    group.add_argument("--every", choices=_PERIODS, help="form batches from the times in the batch column")
    for flag, said in (
        ("--sort", "sort rows by the round column or, without one, by the batch column"),
        ("--round-propensities", "propensities were rounded: make each row sum to 1 within rounding error"),
    ):
        group.add_argument(flag, action="store_const", const=True, help=said)


def _add_statements(group: Any) -> None:
    """The user's statements about the collection."""
    group.add_argument(
        "--adaptive",
        action=argparse.BooleanOptionalAction,
        help="whether assignment depended on earlier outcomes; --no-adaptive gives the classical analysis",
    )
    group.add_argument(
        "--stopping",
        choices=("fixed", "data-chosen", "planned"),
        help="what determined the number of rounds: fixed in advance, chosen after seeing outcomes, or a "
        "planned rule",
    )
    group.add_argument(
        "--missing",
        choices=("drop", "bounds", "worst", "best"),
        help="what a missing reward means: missing at random given the arm (and context), or any value in "
        "the reward range",
    )
    group.add_argument(
        "--reward-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="smallest and largest reward"
    )
    group.add_argument(
        "--epsilon",
        type=float,
        help="pure differential privacy of the actions, per reward: adds corrected columns to sample means",
    )


def _success(text: str) -> str | dict[str, float]:
    """The success label, or numbers by label if the text contains ``=``."""
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    if len({label for label, _, _ in pairs}) < len(pairs):
        raise ValueError(text)
    return {label: float(number) for label, _, number in pairs}


def _pairs(text: str) -> dict[str, str] | str:
    """Columns by arm, or a pattern; text with a single ``=`` is one pair, so names may contain commas."""
    return _split(text) if "=" in text else text


def _listed(text: str) -> list[str]:
    """Labels between commas."""
    return text.split(",")


def shares(text: str) -> dict[str, float]:
    """Numbers by arm."""
    return {arm: float(number) for arm, number in _split(text).items()}


def _split(text: str) -> dict[str, str]:
    parts = [text] if text.count("=") == 1 else text.split(",")
    pairs = dict(part.split("=", 1) for part in parts)
    if len(pairs) < len(parts):
        raise ValueError(text)
    return pairs


_pairs.__name__ = "ARM=COLUMN list"
_success.__name__ = "TEXT=NUMBER list"
shares.__name__ = "ARM=NUMBER list"


def log_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Options for the file, under the names that `read_log` uses."""
    named = {name: getattr(arguments, name) for name in (*COLUMNS, *SUMS, *_PLAIN)}
    options = {name: value for name, value in named.items() if value is not None}
    if len(options.get("action", ())) == 1:
        [options["action"]] = arguments.action
    if arguments.reward_range is not None:
        options["reward_range"] = tuple(arguments.reward_range)
    if arguments.propensities is not None:
        options["propensities"] = _merged(arguments.propensities)
    return options


def _merged(given: Sequence[dict[str, str] | str]) -> dict[str, str] | str:
    merged: dict[str, str] = {}
    for pairs in given:
        if isinstance(pairs, str):
            if len(given) > 1:
                raise ParameterError(
                    "--propensities",
                    [f"the pattern {pairs!r} matches all columns: it must be the only entry"],
                )
            return pairs
        repeated = [arm for arm in pairs if arm in merged]
        if repeated:
            raise ParameterError("--propensities", [f"arm {arm!r} is given twice" for arm in repeated])
        merged |= pairs
    return merged
