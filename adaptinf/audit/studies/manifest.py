"""What a study is: grid, seed, parameters and versions, with a fingerprint equal in every process."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import platform
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.studies.folder import write_json
from adaptinf.compilation import package_hash
from adaptinf.errors import ParameterError

_PINNED = frozenset({"adaptinf", "builtins", "numba", "numpy", "pandas", "scipy", "statsmodels"})
"""Packages whose functions are known by name: their versions are recorded elsewhere."""


def fingerprint(value: Any) -> str:
    """Hash of what a value is made of: numbers, arrays, attributes, and the code of functions.

    A function counts with its byte code, its defaults, what it closes over and the globals that it names,
    and so do the functions of your own that it calls by name. What it looks up in other ways (a file, an
    attribute of a module) is not seen.
    """
    digest = hashlib.sha256()
    for token in _tokens(value, {}):
        digest.update(len(token).to_bytes(8) + token)
    return digest.hexdigest()[:16]


def _tokens(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[bytes]:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    if id(value) in seen:
        yield f"again {seen[id(value)][0]}".encode()
        return
    # The value is kept, as the address of one that is gone may become another's.
    seen[id(value)] = (len(seen), value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"array {value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (np.ndarray, tuple, list)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for entry in list(value):
            yield from _tokens(entry, seen)
    elif isinstance(value, (set, frozenset)):
        yield f"{type(value).__name__} {len(value)}".encode()
        yield from sorted(fingerprint(entry).encode() for entry in value)
    elif isinstance(value, Mapping):
        yield f"{type(value).__name__} {len(value)}".encode()
        for key, entry in value.items():
            yield from _tokens(key, seen)
            yield from _tokens(entry, seen)
    elif isinstance(value, (pd.DataFrame, pd.Series)):
        yield type(value).__name__.encode()
        frame = value.to_frame() if isinstance(value, pd.Series) else value
        for name, column in frame.items():
            yield from _tokens((str(name), column.to_list()), {})
    else:
        yield from _object_tokens(value, seen)


def _object_tokens(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[bytes]:
    if isinstance(value, types.CodeType):
        yield value.co_code
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_argcount, value.co_flags)
        yield from _tokens((*names, value.co_consts), {})
    elif isinstance(value, types.ModuleType):
        yield f"module {value.__name__} {getattr(value, '__version__', '')}".encode()
    elif isinstance(value, functools.partial):
        yield b"partial"
        yield from _tokens((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.MethodType):
        yield b"method"
        yield from _tokens((value.__func__, value.__self__), seen)
    elif isinstance(function := getattr(value, "py_func", value), types.FunctionType):
        yield from _function_tokens(function, seen)
    elif isinstance(value, type):
        yield from _class_tokens(value, seen)
    elif isinstance(value, np.random.SeedSequence):
        yield from _tokens(("SeedSequence", value.entropy, value.spawn_key), seen)
    else:
        yield from _tokens(type(value), seen)
        yield from _tokens(_state(value), seen)


def _function_tokens(function: types.FunctionType, seen: dict[int, tuple[int, Any]]) -> Iterator[bytes]:
    if _pinned(function):
        yield f"function {function.__module__}.{function.__qualname__}".encode()
        return
    yield b"function"
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    yield from _tokens((function.__code__, function.__defaults__, function.__kwdefaults__, cells), seen)
    for name in sorted(_global_names(function.__code__)):
        if name in function.__globals__:
            yield name.encode()
            yield from _tokens(function.__globals__[name], seen)


def _class_tokens(kind: type, seen: dict[int, tuple[int, Any]]) -> Iterator[bytes]:
    yield f"class {kind.__module__}.{kind.__qualname__}".encode()
    if not _pinned(kind):
        for name, member in sorted(vars(kind).items()):
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(inner, types.FunctionType):
                yield name.encode()
                yield from _tokens(inner, seen)


def _pinned(value: Any) -> bool:
    module = getattr(value, "__module__", None) or "builtins"
    # A local function or a lambda of a pinned module is still told apart by its code.
    return module.partition(".")[0] in _PINNED and "<" not in value.__qualname__


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _state(value: Any) -> Any:
    """What tells an object from others of its class."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    state = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    state.update(getattr(value, "__dict__", {}))
    if state:
        return state
    text = repr(value)
    return "" if " at 0x" in text else text


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
