"""What a study is: its grid, seed, parameters and versions, as plain values that can be compared."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from adaptinf.audit.studies.fingerprint import fingerprint
from adaptinf.audit.studies.shards import write_json
from adaptinf.compilation import package_hash
from adaptinf.errors import ParameterError

FILE = "manifest.json"
_FORMAT = 2
_PACKAGES = ("adaptinf", "numpy", "scipy", "numba", "pandas", "pyarrow")


def versions() -> dict[str, str]:
    """Versions of whatever the numbers, or the bytes of the tables, depend on."""
    found = {"sources": package_hash()[:16], "python": ".".join(platform.python_version_tuple()[:2])}
    return {**found, **{name: str(import_module(name).__version__) for name in _PACKAGES}}


def described(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Each value's text and fingerprint."""
    return {name: {"is": _text(value), "fingerprint": fingerprint(value)} for name, value in values.items()}


def _text(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name else f"{value!r:.200}".partition(" at 0x")[0]


def identity(manifest: Mapping[str, Any]) -> str:
    """Hash of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def settle(
    folder: Path, manifest: dict[str, Any], drawn: bool = False, same_sources: bool = True
) -> dict[str, Any]:
    """Write a study's manifest, or check that the one that is there says the same."""
    manifest = {"format": _FORMAT, **manifest}
    path = folder / FILE
    if not path.exists():
        others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        if others:
            problem = f"{folder} holds other files ({', '.join(others[:5])}): give a folder of its own"
            raise ParameterError("study", [problem])
        write_json(path, manifest)
        return manifest
    stored = read_manifest(folder)
    if drawn:
        manifest["seed"] = stored.get("seed")
    if not same_sources:
        sources = stored.get("versions", {}).get("sources")
        manifest["versions"] = {**manifest["versions"], "sources": sources}
    problems = list(differences(stored, manifest))
    if problems:
        advice = "to go on, ask for what it was begun with; for anything else give another folder"
        raise ParameterError(f"study in {folder}", [*problems, advice])
    return stored


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder."""
    try:
        manifest = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise ParameterError("study", [f"{folder} holds no study: it has no {FILE}"]) from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ParameterError("study", [f"{folder / FILE} is damaged, or of another version of adaptinf"])
    return manifest


def differences(stored: Any, asked: Any, path: str = "") -> Iterator[str]:
    """Say where two manifests differ, one sentence per difference."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        if set(stored) == set(asked) == {"is", "fingerprint"}:
            if stored["is"] != asked["is"]:
                yield f"{path} was {stored['is']}, now it is {asked['is']}"
            elif stored["fingerprint"] != asked["fingerprint"]:
                yield f"{path} ({asked['is']}) has changed: its numbers or its code are not what they were"
            return
        if list(stored) != list(asked) and set(stored) == set(asked):
            yield f"{path or 'the manifest'} was in the order {', '.join(stored)}, now {', '.join(asked)}"
        for name in {**stored, **asked}:
            where = f"{path}[{name!r}]" if path in ("designs", "environments", "analyses", "truth") else ""
            where = where or (f"{path}.{name}" if path else name)
            if name not in asked:
                yield f"{where} was there, now it is not"
            elif name not in stored:
                yield f"{where} was not there"
            else:
                yield from differences(stored[name], asked[name], where)
    elif stored != asked:
        note = ": adaptinf's own code has changed (same_sources=False goes on all the same)"
        yield f"{path} was {stored!r}, now it is {asked!r}{note if path == 'versions.sources' else ''}"


def seed_of(root: np.random.SeedSequence) -> dict[str, Any]:
    """A seed sequence as plain values."""
    entropy: Any = root.entropy
    whole = int(entropy) if isinstance(entropy, Integral) else [int(part) for part in entropy]
    return {"entropy": whole, "spawn_key": [int(key) for key in root.spawn_key]}


def root_of(seed: Mapping[str, Any]) -> np.random.SeedSequence:
    """The seed sequence of plain values."""
    return np.random.SeedSequence(seed["entropy"], spawn_key=tuple(seed["spawn_key"]))
