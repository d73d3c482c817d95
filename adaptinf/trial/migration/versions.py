"""Versions that make the decisions of a trial: the installed ones, and the last ones in its journal."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import numba
import numpy as np

from adaptinf.compilation import package_hash
from adaptinf.version import __version__

MIGRATED = "migrate"
"""Kind of a row that changes the version that decides."""
VERSIONS, DIFFERING = "versions", "differing"
"""Fields of such a row: the versions that decide from then on, and the number of earlier rows that they would
write differently. If that number is positive, all rows before this one are accepted as written. The first row
also contains versions."""


def installed() -> dict[str, str]:
    """The versions of the software that makes the decisions here; `code` is a hash of adaptinf's files."""
    try:
        noise = {"opendp": version("opendp")}
    except PackageNotFoundError:
        noise = {}
    return {
        "adaptinf": __version__,
        "code": package_hash(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        **noise,
    }


def other_version(decides: str) -> str:
    """Why this version accepts no requests of a trial; empty if it makes the trial's decisions."""
    if decides == __version__:
        return ""
    return (
        f"adaptinf {decides} decides in this trial, and {__version__} is installed: use the former, or "
        "rehearse the change with Trial.migrate(path, rehearse=True) or adaptinf trial migrate --rehearse"
    )


def changes(before: Mapping[str, str]) -> tuple[str, ...]:
    """Software whose installed version differs from the earlier one, in words."""
    here = installed()
    known = [name for name in here if name in before and before[name] != here[name] and name != "code"]
    found = [f"{name} {before[name]} to {here[name]}" for name in known]
    other_code = "code" in before and before["code"] != here["code"]
    return tuple(found or (["adaptinf's code, with the same version"] if other_code else []))
