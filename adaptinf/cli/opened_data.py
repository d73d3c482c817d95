"""Data from files: a log, a table of sums, or the public part of a log, according to a command's options."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adaptinf.claims.tables import CAUTION
from adaptinf.cli.options.asked_options import label
from adaptinf.cli.options.flag_columns import SUMS
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.log.log_reading import dialect_from, named_log, open_source, own_log, uses_of
from adaptinf.log.public import PublicLog
from adaptinf.log.storage.log_files import PARQUET
from adaptinf.log.storage.table_sources import TableSource
from adaptinf.log.storage.text_columns import Use
from adaptinf.log.validation import OF_TABLES, nested_options
from adaptinf.parameters import refuse
from adaptinf.reports.collection_facts import log_cautions
from adaptinf.sums import Sums
from adaptinf.sums.storage import KEY
from adaptinf.texts import visible

_ROLES = ("batch", "propensity", *SUMS, "denominator", "covariate")
_SUMS_NEEDED = ("action", "batch", "n", "sum", "sum_squares")
_OTHERS = ("reward_range", "context", "date_format", "group", "adaptive", "stopping")
_NEEDED = ("action", "reward")
_HOLDER = "{arm}"
_FROM_BATCHES = "from batches"
_PUBLIC = (
    "it is the public part of a log, without rows: use adaptinf analyze or adaptinf report, which do "
    "not require rows"
)


@dataclass(frozen=True, slots=True)
class OpenedData:
    """Data from files, their names in output, and unused columns."""

    data: Any
    name: str
    unused: list[str]
    stored: bool = False
    """Whether the file itself describes its columns."""

    @property
    def log(self) -> AdaptiveLog | Sums:
        """The log or sums; refused for the public part of a log."""
        if isinstance(self.data, PublicLog):
            raise ParameterError(self.name, [_PUBLIC])
        found: AdaptiveLog | Sums = self.data
        return found

    @property
    def kind(self) -> str:
        """What it is."""
        return "table of sums" if isinstance(self.data, Sums) else "log"


def cautions_of(log: AdaptiveLog | Sums | PublicLog) -> list[str]:
    """Evidence against the statements of a log, one line each; none for a public part."""
    found = [] if isinstance(log, PublicLog) else log_cautions(log)
    return [visible(CAUTION(caution=one)) for one in found]


def sources_of(arguments: argparse.Namespace) -> list[Path]:
    """Named files; a pattern that the shell did not expand stands for all matching files."""
    found: list[Path] = []
    for path in arguments.files:
        pattern = glob.has_magic(str(path)) and not path.exists()
        matches = sorted(map(Path, glob.glob(str(path)))) if pattern else [path]
        if not matches:
            raise FileNotFoundError(f"there is no file {path}")
        found += matches
    return found


def opened(sources: Sequence[Path], options: Mapping[str, Any]) -> OpenedData:
    """Data from files, with options as given on the command line."""
    if len(sources) == 1 and _holds_sums(sources[0], options):
        return _opened_sums(sources[0], options)
    source = sources[0] if len(sources) == 1 else list(sources)
    return _opened_sums(source, options) if _named_sums(options) else _opened_log(source, options)


def _named_sums(options: Mapping[str, Any]) -> bool:
    return any(name in options for name in SUMS)


def _holds_sums(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file contains sums: columns of sums are named, or adaptinf wrote the file."""
    if _named_sums(options):
        return True
    if options or path.suffix.lower() not in PARQUET or not path.is_file():
        return False
    try:
        return KEY in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError):  # Problems with the file are reported when it is read.
        return False


def _opened_sums(source: Any, options: Mapping[str, Any]) -> OpenedData:
    """Sums from a file, or from several."""
    if not options:
        return OpenedData(Sums.read_parquet(source), str(source), [], stored=True)
    dialect, options = dialect_from("arguments", options)
    known = {"action", "epsilon", *_ROLES, *_OTHERS}
    problems = [f"{_flag(name)} is required with --n" for name in _SUMS_NEEDED if name not in options]
    problems += [
        f"{_flag(name)} applies to rows, but --n indicates a table of sums"
        for name in options
        if name not in known
    ]
    refuse("arguments", problems)
    content = open_source(source, dialect, options, _flag)
    if not isinstance(content, TableSource):
        raise ParameterError(str(source), ["the file was written by adaptinf"])
    arguments = {name: options[name] for name in (*_ROLES, *_OTHERS) if name in options}
    if "epsilon" in options:
        arguments["guarantee"] = PrivacyGuarantee(epsilon=options["epsilon"], unit="reward")
    named = [
        options["action"],
        *arguments.get("group", ()),
        *(arguments[role] for role in _ROLES if role in arguments),
    ]
    sums = Sums(content, arm=options["action"], **nested_options(arguments, OF_TABLES))
    return OpenedData(sums, content.name, [str(name) for name in content.columns if name not in named])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _opened_log(source: Any, options: Mapping[str, Any]) -> OpenedData:
    """A log from files, or the public part of one."""
    dialect, options = dialect_from("arguments", options)
    content = open_source(source, dialect, options, _flag)
    if not isinstance(content, TableSource):
        return OpenedData(own_log(source, content), str(source), [], stored=True)
    missing = [
        f"--{name} is required: the name of its column (the file has {', '.join(map(repr, content.columns))})"
        for name in _NEEDED
        if name not in options
    ]
    refuse(content.name, missing)
    arguments = dict(options)
    if "epsilon" in arguments:
        arguments["guarantee"] = PrivacyGuarantee(epsilon=arguments.pop("epsilon"), unit="reward")
    _name_propensities(arguments, content)
    log = named_log(content, arguments)
    return OpenedData(log, content.name, [str(name) for name in content.columns if name not in log.columns])


def _name_propensities(arguments: dict[str, Any], content: TableSource) -> None:
    """Replace texts with labels, and a text that is not a column with a number or a pattern."""
    columns, named = content.columns, arguments.get("propensities")
    if "propensity" in arguments:
        arguments["propensity"] = _column_or_number(arguments["propensity"], columns)
    if isinstance(named, dict) or "arms" in arguments:
        action = arguments.get("assigned", arguments["action"])
        known = _labels(content, action, uses_of(arguments, columns))
        if "arms" in arguments:
            arguments["arms"] = [label(arm, known) for arm in arguments["arms"]]
        if isinstance(named, dict):
            arguments["propensities"] = {
                label(arm, known): _column_or_number(column, columns) for arm, column in named.items()
            }
    if isinstance(named, str) and not (_HOLDER in named or named == _FROM_BATCHES or named in columns):
        arguments["propensities"] = named + _HOLDER


def _column_or_number(text: str, columns: Sequence[Any]) -> str | float:
    """A column with that name, otherwise a number, otherwise an invalid name."""
    try:
        return text if text in columns else float(text)
    except ValueError:
        return text


def _labels(content: TableSource, action: str | list[str], uses: Mapping[str, Use]) -> dict[str, Any]:
    """Arms in a column, by their text; empty if there is no such column, or if there are several."""
    if isinstance(action, list):  # A list names columns of 0 and 1, and these names are the arms.
        return {each: each for each in action}
    if list(content.columns).count(action) != 1:
        return {}
    try:
        frame, _ = content.typed({action: uses[action]})
    except ParameterError:  # Problems with this column are reported with all others when the log is built.
        return {}
    return {str(each): each for each in frame[action].unique().tolist()}
