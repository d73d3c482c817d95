"""The folder of a study: its manifest with a fingerprint, shards during the run, one table per cell."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import shutil
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from adaptinf.audit.simulation.engine import Chunk, Kept, total_seconds
from adaptinf.audit.simulation.measures import PARTS, BlockSums, Gap, Key
from adaptinf.compilation import package_hash
from adaptinf.errors import AdaptinfError, AdaptinfWarning, ParameterError
from adaptinf.files import atomic_write, file_digest

_KEY = b"adaptinf.study"
_KEY_FIELDS = [
    pa.field("block", pa.int64()),
    pa.field("analysis", pa.string()),
    pa.field("term", pa.string()),
    pa.field("truth", pa.float64()),
    pa.field("null", pa.float64()),
    pa.field("gap", pa.string()),
    pa.field("gaps", pa.int64()),
    pa.field("reason", pa.string()),
]
_BLOCK_SCHEMA = pa.schema(
    [
        *_KEY_FIELDS,
        *(pa.field(name, pa.float64()) for name in PARTS),
        # Parquet gives elements of lists this name, and schemas must be equal.
        pa.field("widths", pa.list_(pa.field("element", pa.float64()))),
    ]
)


class Damaged(AdaptinfError):
    """A file of a study is missing, truncated, altered, or belongs to another study."""


def write_parquet(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    """Write a table with metadata and a digest of both, atomically."""
    stored = {**metadata, "digest": _digest(table, metadata)}
    whole = table.replace_schema_metadata({_KEY: json.dumps(stored).encode()})
    atomic_write(path, lambda file: pq.write_table(whole, file, compression="zstd", write_page_checksum=True))


def read_parquet(path: Path, fingerprint: str) -> tuple[pa.Table, dict[str, Any]]:
    """Read a table and its metadata."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing") from error
    try:
        table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        metadata = json.loads(table.schema.metadata[_KEY])
        table = table.replace_schema_metadata(None)
        whole = metadata.pop("digest") == _digest(table, metadata)
    except Exception as error:
        # A damaged file can make the reader raise nearly any exception.
        raise Damaged(f"{path} cannot be read: {error!r:.200}") from error
    if not whole:
        raise Damaged(f"{path} is damaged: its digest does not match")
    if metadata["fingerprint"] != fingerprint:
        raise Damaged(f"{path} belongs to another study")
    return table, metadata


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON, atomically."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    atomic_write(path, lambda file: file.write(text.encode()))


def _digest(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name} {column.type} {len(column)} {column.null_count}".encode())
        if pa.types.is_floating(column.type) and column.null_count == 0:
            digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
        else:
            digest.update(json.dumps(column.to_pylist()).encode())
    return digest.hexdigest()


def block_table(chunk: Chunk) -> pa.Table:
    """Sums of a chunk: for each block its regret, one row per term, and one row per gap and reason."""
    rows: list[tuple[Any, ...]] = []
    for block, sums in enumerate(chunk.blocks):
        rows.append((block, *[None] * 7, *sums.regret.tolist(), None))
        for key, parts in sums.parts.items():
            widths = np.concatenate([np.zeros(0), *sums.widths.get(key, [])]).tolist()
            rows.append((block, *key, None, None, None, *parts.tolist(), widths))
        for (kind, analysis, term), reasons in sums.gaps.items():
            for reason, runs in reasons.items():
                rows.append(
                    (block, analysis, term, None, None, kind, runs, reason, *[0.0] * len(PARTS), None)
                )
    columns = list(zip(*rows, strict=True)) or [()] * len(_BLOCK_SCHEMA)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _BLOCK_SCHEMA, strict=True)]
    return pa.table(arrays, schema=_BLOCK_SCHEMA)


def sums_of(table: pa.Table) -> list[BlockSums]:
    """The blocks of a chunk, read from its table."""
    data = table.to_pydict()
    parts = np.column_stack([np.array(data[name], dtype=np.float64) for name in PARTS])
    blocks = [BlockSums() for _ in range(1 + max(data["block"], default=-1))]
    for row, block in enumerate(data["block"]):
        analysis, term = data["analysis"][row], data["term"][row]
        if analysis is None:
            blocks[block].regret = parts[row]
        elif data["gap"][row] is None:
            key = Key(analysis, term, data["truth"][row], data["null"][row])
            blocks[block].parts[key] = parts[row]
            blocks[block].widths[key] = [np.array(data["widths"][row], dtype=np.float64)]
        else:
            gap = Gap(data["gap"][row], analysis, term)
            blocks[block].add_gap(gap, data["reason"][row], data["gaps"][row])
    return blocks


def kept_table(kept: Sequence[Kept]) -> pa.Table:
    """Results of single runs, one row per run, analysis and term."""
    labels: dict[str, list[Any]] = {"analysis": [], "term": []}
    dictionaries: dict[str, dict[str, int]] = {"analysis": {}, "term": {}}
    runs: list[Any] = [np.zeros(0, np.int64)]
    values: list[Any] = [np.zeros((0, 5))]
    for part in kept:
        n_terms = len(part.keys)
        for field, known in dictionaries.items():
            codes = [known.setdefault(getattr(key, field), len(known)) for key in part.keys]
            labels[field].append(np.tile(np.array(codes, dtype=np.int32), part.runs.size))
        runs.append(np.repeat(part.runs, n_terms))
        values.append(part.values.reshape(-1, 5))
    numbers = np.concatenate(values)
    columns: dict[str, Any] = {"run": np.concatenate(runs)}
    for field, codes_of in labels.items():
        column_codes = np.concatenate([np.zeros(0, np.int32), *codes_of])
        names = pa.array(list(dictionaries[field]), pa.string())
        columns[field] = pa.DictionaryArray.from_arrays(pa.array(column_codes), names)
    for column, name in enumerate(("estimate", "std_error", "low", "high", "pvalue")):
        columns[name] = np.ascontiguousarray(numbers[:, column])
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder in which a study stores its results."""

    root: Path
    fingerprint: str
    labels: tuple[str, ...]
    keep: bool = False

    def _cell(self, index: int) -> Path:
        return self.root / "cells" / f"{self.labels[index]}.parquet"

    def _times(self, index: int) -> Path:
        return self.root / "times" / f"{self.labels[index]}.json"

    def _shards(self, index: int) -> Path:
        return self.root / "shards" / self.labels[index]

    def _estimates(self, index: int, start: int) -> Path:
        return self.root / "estimates" / self.labels[index] / f"{start:09d}.parquet"

    def prepare(self) -> None:
        """Create the folders, and remove incomplete files left by a killed process."""
        for index in range(len(self.labels)):
            folders = [self._cell(index).parent, self._times(index).parent, self._shards(index)]
            for folder in [*folders, *([self._estimates(index, 0).parent] if self.keep else [])]:
                folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.root.rglob(".*.tmp"):
            leftover.unlink(missing_ok=True)

    def save(self, index: int, chunk: Chunk) -> int:
        """Write a chunk, and return its number of runs; the shard of sums, written last, marks completion."""
        metadata = {
            "fingerprint": self.fingerprint,
            "cell": self.labels[index],
            "start": chunk.start,
            "stop": chunk.stop,
            "estimates": None,
        }
        if self.keep:
            path = self._estimates(index, chunk.start)
            write_parquet(path, kept_table(chunk.kept), metadata)
            metadata["estimates"] = file_digest(path)
        path = self._shards(index) / f"{chunk.start:09d}.parquet"
        write_parquet(path, block_table(chunk), {**metadata, "seconds": chunk.seconds})
        return chunk.stop - chunk.start

    def has_chunk(self, index: int, start: int, stop: int) -> bool:
        """Whether a chunk has been computed and is intact; damaged chunks are reported."""
        path = self._shards(index) / f"{start:09d}.parquet"
        return path.exists() and self._whole(self._read_shard, index, start, stop)

    def has_cell(self, index: int) -> bool:
        """Whether the table of a cell exists and is intact; damaged tables are reported."""
        return self._cell(index).exists() and self._whole(self.table, index)

    def _whole(self, read: Any, *arguments: Any) -> bool:
        try:
            read(*arguments)
        except Damaged as damage:
            warnings.warn(f"{damage}; it is recomputed", AdaptinfWarning, stacklevel=4)
            return False
        return True

    def _read_shard(self, index: int, start: int, stop: int) -> tuple[list[BlockSums], dict[str, Any]]:
        path = self._shards(index) / f"{start:09d}.parquet"
        table, metadata = read_parquet(path, self.fingerprint)
        if (metadata["cell"], metadata["start"], metadata["stop"]) != (self.labels[index], start, stop):
            raise Damaged(f"the runs in {path} are not those that the file's name states")
        self._check_estimates(index, {str(start): metadata["estimates"]})
        return sums_of(table), metadata

    def _check_estimates(self, index: int, digests: dict[str, str | None]) -> None:
        for start, digest in digests.items():
            path = self._estimates(index, int(start))
            if self.keep and file_digest(path) != digest:
                raise Damaged(f"{path} is missing or damaged")

    def finish(self, index: int, chunks: Sequence[tuple[int, int]], tabulate: Any) -> None:
        """Merge the shards of a cell, in order, into its table; then remove them."""
        total, seconds, estimates = BlockSums(), list[dict[str, float]](), dict[str, str | None]()
        for start, stop in chunks:
            blocks, metadata = self._read_shard(index, start, stop)
            for block in blocks:
                total.merge(block)
            seconds.append(metadata["seconds"])
            estimates[str(start)] = metadata["estimates"]
        write_json(self._times(index), total_seconds(seconds))
        metadata = {"fingerprint": self.fingerprint, "cell": self.labels[index]}
        stored = estimates if self.keep else {}
        write_parquet(self._cell(index), tabulate(index, total), {**metadata, "estimates": stored})
        self.sweep(index)

    def sweep(self, index: int) -> None:
        """Remove the shards of a finished cell."""
        shutil.rmtree(self._shards(index), ignore_errors=True)

    def table(self, index: int) -> pa.Table:
        """The table of a finished cell."""
        table, metadata = read_parquet(self._cell(index), self.fingerprint)
        if metadata["cell"] != self.labels[index]:
            raise Damaged(f"the cell in {self._cell(index)} is not the one that the file's name states")
        self._check_estimates(index, metadata["estimates"])
        return table

    def seconds(self, index: int) -> dict[str, float]:
        """Processor seconds of a finished cell by analysis; empty if they were lost."""
        try:
            found: dict[str, float] = json.loads(self._times(index).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def estimates(self, index: int) -> pa.Table:
        """Stored results of the runs of a finished cell, in the order of the runs."""
        paths = sorted(self._estimates(index, 0).parent.glob("*.parquet"))
        tables = [read_parquet(path, self.fingerprint)[0] for path in paths]
        return pa.concat_tables(tables).unify_dictionaries()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other processes, if the system can lock files."""
        with (self.root / ".lock").open("a") as file:
            _lock(file.fileno(), self.root)
            yield


def _lock(handle: int, root: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        # The operating system releases the lock when the process ends, however it ends, so no stale lock can
        # remain.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ParameterError("study", [f"another process is running the study in {root}"]) from None


# Functions of these packages are identified by name, because the versions of the packages are recorded
# separately.
_PINNED = frozenset({"adaptinf", "builtins", "numba", "numpy", "pandas", "scipy", "statsmodels"})


def fingerprint(value: Any) -> str:
    """Hash of the contents of a value, including numbers, arrays, attributes and the code of functions."""
    # A function is identified by its byte code, its defaults, its closure, the globals that it names, and the
    # user's own functions that it calls by name. Anything that it looks up in other ways (in a file, or as an
    # attribute of a module) is not noticed.
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
    # The value is kept alive, because its address could otherwise be reused for another object.
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
    # Local functions and lambdas of a pinned module have no name of their own, so their code distinguishes
    # them.
    return module.partition(".")[0] in _PINNED and "<" not in value.__qualname__


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _state(value: Any) -> Any:
    """The attributes that distinguish an object from other objects of its class."""
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
    """Versions of everything on which the numbers, or the bytes of the tables, depend."""
    found = {"sources": package_hash()[:16], "python": ".".join(platform.python_version_tuple()[:2])}
    return {**found, **{name: str(import_module(name).__version__) for name in _PACKAGES}}


def described(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The text and the fingerprint of each value."""
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
    """Write a study's manifest, or check that the existing one agrees with it."""
    manifest = {"format": _FORMAT, **manifest}
    path = folder / FILE
    if not path.exists():
        others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        if others:
            problem = f"{folder} contains other files ({', '.join(others[:5])}): use a separate folder"
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
        advice = (
            f"to resume, use the same arguments as before; to read what is stored, use "
            f"audit.Study.load({str(folder)!r}); to run another study, use another folder"
        )
        raise ParameterError(f"study in {folder}", [*problems, advice])
    return stored


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder."""
    try:
        manifest = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise ParameterError("study", [f"{folder} contains no study: {FILE} is missing"]) from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ParameterError(
            "study", [f"{folder / FILE} is damaged or was written by another version of adaptinf"]
        )
    return manifest


def differences(stored: Any, asked: Any, path: str = "") -> Iterator[str]:
    """List differences between two manifests, one sentence per difference."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        if set(stored) == set(asked) == {"is", "fingerprint"}:
            if stored["is"] != asked["is"]:
                yield f"{path} was {stored['is']} before, but is now {asked['is']}"
            elif stored["fingerprint"] != asked["fingerprint"]:
                yield f"{path} ({asked['is']}) has changed: its numbers or its code differ"
            return
        if list(stored) != list(asked) and set(stored) == set(asked):
            yield (
                f"{path or 'the manifest'} was in the order {', '.join(stored)} before, but is now in the "
                f"order {', '.join(asked)}"
            )
        for name in {**stored, **asked}:
            where = f"{path}[{name!r}]" if path in ("designs", "environments", "analyses", "truth") else ""
            where = where or (f"{path}.{name}" if path else name)
            if name not in asked:
                yield f"{where} was present before and is now absent"
            elif name not in stored:
                yield f"{where} was absent before"
            else:
                yield from differences(stored[name], asked[name], where)
    elif stored != asked:
        note = ": adaptinf's own code has changed (set same_sources=False to resume anyway)"
        yield (
            f"{path} was {stored!r} before, but is now {asked!r}{note if path == 'versions.sources' else ''}"
        )


def seed_of(root: np.random.SeedSequence) -> dict[str, Any]:
    """A seed sequence as plain values."""
    entropy: Any = root.entropy
    whole = int(entropy) if isinstance(entropy, Integral) else [int(part) for part in entropy]
    return {"entropy": whole, "spawn_key": [int(key) for key in root.spawn_key]}


def root_of(seed: Mapping[str, Any]) -> np.random.SeedSequence:
    """The seed sequence described by plain values."""
    return np.random.SeedSequence(seed["entropy"], spawn_key=tuple(seed["spawn_key"]))
