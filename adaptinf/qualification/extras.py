"""Requirements of the package and of its extras, and what a missing extra disables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from packaging.requirements import Requirement

from adaptinf.claims.claim import Claim
from adaptinf.claims.reports import qualification as claims
from adaptinf.qualification.requirements import OWN, required
from adaptinf.qualification.rows import FAIL, PASS, UNTESTED, Row

_PART = "Requirements"
DISABLED: Mapping[str, Claim] = {
    "release": claims.NO_RELEASE,
    "plots": claims.NO_PLOTS,
    "large": claims.NO_LARGE,
    "trial": claims.NO_TRIAL,
    "serve": claims.NO_SERVE,
    "postgres": claims.NO_POSTGRES,
    "tables": claims.NO_TABLES,
    "word": claims.NO_WORD,
    "cli": claims.NO_CLI,
    "cluster": claims.NO_CLUSTER,
}
"""The features that are missing without each extra."""


def requirement_rows() -> list[Row]:
    """One row for the package itself and one for each extra."""
    try:
        own = metadata.distribution(OWN)
    except metadata.PackageNotFoundError:
        return [Row(_PART, OWN, "", "", UNTESTED, claims.NOT_INSTALLED())]
    known = own.metadata.get_all("Provides-Extra") or []
    plain = {str(one) for one in required(own, ("",))}
    rows = [_row(OWN, sorted(plain), FAIL, "")]
    for extra, disabled in DISABLED.items():
        name, wanted = f"{OWN}[{extra}]", {str(one) for one in required(own, (extra,)) if one.name != OWN}
        if extra in known:
            rows.append(_row(name, sorted(wanted - plain), UNTESTED, disabled()))
        else:
            rows.append(Row(_PART, name, "", "", UNTESTED, claims.NO_METADATA()))
    return rows


def _row(name: str, wanted: list[str], otherwise: str, disabled: str) -> Row:
    """Whether the versions that are installed satisfy requirements; a missing extra is no failure."""
    faults = list(_faults(wanted))
    expected = ", ".join(_short(Requirement(one)) for one in wanted)
    if not faults:
        return Row(_PART, name, expected, ", ".join(_found(wanted)), PASS, "metadata of adaptinf")
    absent = all(one.endswith("missing") for one in faults)
    return Row(_PART, name, expected, ", ".join(faults), otherwise if absent else FAIL, disabled)


def _short(one: Requirement) -> str:
    return f"{one.name}{one.specifier}"


def _found(wanted: list[str]) -> Iterator[str]:
    for one in map(Requirement, wanted):
        yield f"{one.name} {metadata.version(one.name)}"


def _faults(wanted: list[str]) -> Iterator[str]:
    """Packages that are missing or of another version."""
    for one in map(Requirement, wanted):
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            yield f"{one.name} missing"
            continue
        if not one.specifier.contains(version, prereleases=True):
            yield f"{one.name} {version}"
