"""Tables of sums on the command line: open and describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from adaptinf.cli.roles import SUMS
from adaptinf.errors import LogValidationError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.storage.log_files import read_file
from adaptinf.parameters import refuse
from adaptinf.reports.collection import arms_summed
from adaptinf.sums import Sums
from adaptinf.sums.storage import KEY
from adaptinf.texts import frame_text

_ROLES = ("batch", "propensity", *SUMS, "denominator", "covariate")
_NEEDED = ("action", "batch", "n", "sum", "sum_squares")
_OTHERS = ("reward_range", "context", "date_format", "group", "adaptive", "stopping")


def holds_sums(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file is of sums: columns of sums are named, or adaptinf wrote them."""
    if any(name in options for name in SUMS):
        return True
    if options or path.suffix.lower() not in (".parquet", ".pq") or not path.is_file():
        return False
    try:
        return KEY in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError):  # whoever reads the file says what is wrong with it
        return False


def open_sums(path: Path, options: Mapping[str, Any]) -> tuple[Sums, list[str]]:
    """Sums from a file, with options as they come from the command line, and columns that were not used."""
    if not options:
        return Sums.read_parquet(path), []
    known = {"action", "epsilon", *_ROLES, *_OTHERS}
    problems = [f"{_flag(name)} is needed beside --n" for name in _NEEDED if name not in options]
    problems += [
        f"{_flag(name)} is of rows, and --n names a table of sums" for name in options if name not in known
    ]
    refuse(str(path), problems)
    frame = read_file(path, named=True)
    refuse(str(path), [] if isinstance(frame, pd.DataFrame) else ["it is a log that adaptinf wrote"])
    arguments = {name: options[name] for name in (*_ROLES, *_OTHERS) if name in options}
    if "epsilon" in options:
        arguments["guarantee"] = PrivacyGuarantee(epsilon=options["epsilon"], unit="reward")
    assert isinstance(frame, pd.DataFrame)
    named = [
        options["action"],
        *arguments.get("group", ()),
        *(arguments[role] for role in _ROLES if role in arguments),
    ]
    try:
        sums = Sums(frame, arm=options["action"], **arguments)
    except LogValidationError as error:
        raise LogValidationError(error.problems, f"the table of sums in {path}") from None
    return sums, [str(name) for name in frame.columns if name not in named]


def further_options(denominator: str | None, covariates: Sequence[str] | None) -> dict[str, str]:
    """Columns of sums of a denominator and of a covariate, as far as they are asked for."""
    several = "a table of sums takes one: several are had from rows, or from sums that adaptinf made"
    refuse("--covariate", [several] if covariates and len(covariates) > 1 else [])
    named = {"denominator": denominator, "covariate": covariates[0] if covariates else None}
    return {role: name for role, name in named.items() if name is not None}


def describe_sums(sums: Sums) -> str:
    """Arms, design and guarantee, and what was seen of each arm."""
    table = arms_summed(sums)
    return f"{sums!r}\n{frame_text(table, na_rep='-', float_format='{:.4g}'.format)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
