"""Installed packages: versions, and whether their files are those that were installed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

import adaptinf
from adaptinf.claims.reports.qualification import EDITABLE, NO_RECORD
from adaptinf.qualification.requirements import OWN, required
from adaptinf.qualification.rows import FAIL, PASS, UNTESTED, Row

_PART = "Installed files"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package.

    Attributes
    ----------
    name, version : str
        As in its metadata.
    files : dict
        SHA-256 of each file that its record names, or of each file of a source tree, by name.
    changed : list of str
        Files that differ from the record.
    missing : list of str
        Files that the record names and the disk lacks.
    recorded : bool
        Whether there is a record of the installed files.
    """

    name: str
    version: str
    files: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    recorded: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 of the names and digests of all files."""
        lines = (f"{name} {digest}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def row(self) -> Row:
        """Whether the files are those that were installed."""
        name, count = f"{self.name} {self.version}", len(self.files) + len(self.missing)
        if not self.recorded:
            why = EDITABLE() if self.name == OWN else NO_RECORD()
            return Row(_PART, name, "", f"{count:,} files, sha256 {self.digest[:16]}", UNTESTED, why)
        expected = f"{count:,} files as installed"
        faults = [f"changed: {one}" for one in self.changed] + [f"missing: {one}" for one in self.missing]
        if not faults:
            return Row(_PART, name, expected, expected, PASS, f"RECORD; sha256 {self.digest[:16]}")
        more = [f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else []
        return Row(_PART, name, expected, "; ".join([*faults[:_SHOWN], *more]), FAIL, "RECORD")


def packages(extras: tuple[str, ...]) -> list[Package]:
    """The package itself and all packages on which it depends, directly or indirectly, including extras."""
    found, waiting = dict[str, Package](), [OWN]
    while waiting:
        name = waiting.pop()
        if canonicalize_name(name) in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[canonicalize_name(name)] = _package(distribution)
        waiting += [one.name for one in required(distribution, ("", *extras) if name == OWN else ("",))]
    if OWN not in found:
        found[OWN] = _of_sources(adaptinf.__version__)
    return [found.pop(OWN), *(found[name] for name in sorted(found))]


def _package(distribution: metadata.Distribution) -> Package:
    """The state of a package's files."""
    name, version = distribution.metadata["Name"], distribution.version
    files = distribution.files
    if name == OWN and not _own_recorded(distribution):
        return _of_sources(version)
    if not files or not any(file.hash for file in files):
        return Package(name, version, recorded=False)
    made = Package(name, version)
    for file in files:
        if file.hash is None:  # The record itself, and compiled files that are made later.
            continue
        place = Path(str(file.locate()))
        if not place.is_file():
            made.missing.append(str(file))
            continue
        content = place.read_bytes()
        made.files[str(file)] = hashlib.sha256(content).hexdigest()
        if _record_digest(content, file.hash.mode) != file.hash.value:
            made.changed.append(str(file))
    return made


def _record_digest(content: bytes, mode: str) -> str:
    """A digest in the form used in a RECORD file."""
    return base64.urlsafe_b64encode(hashlib.new(mode, content).digest()).decode().rstrip("=")


def _own_recorded(distribution: metadata.Distribution) -> bool:
    """Whether the record names the files from which adaptinf is imported."""
    imported = Path(adaptinf.__file__).resolve()
    return any(
        file.hash is not None and Path(str(file.locate())).resolve() == imported
        for file in distribution.files or ()
        if file.name == imported.name
    )


def _of_sources(version: str) -> Package:
    """The package in a source tree."""
    root = Path(adaptinf.__file__).parent
    paths = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digests = {
        path.relative_to(root.parent).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }
    return Package(OWN, version, digests, recorded=False)
