"""A record of behaviour: named entries, each a value of JSON or the error that stood in its way."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LARGE = 1_000  # numbers that are stored one by one; of more, a few and some sums
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
CLOCK = re.compile(r"\b\d\d:\d\d:\d\d\b")


class Book:
    """Entries by key, seconds by section, and the keys that are wanted where not all are."""

    def __init__(self, wanted: Callable[[str], bool] | None = None) -> None:
        self.entries: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.places: dict[str, str] = {}
        self._wanted = wanted

    def wants(self, key: str) -> bool:
        return self._wanted is None or self._wanted(key)

    def add(self, key: str, make: Callable[[], Any]) -> None:
        """Keep what `make` gives, the warnings it causes, or the error that it raises."""
        if not self.wants(key):
            return
        if key in self.entries:
            raise KeyError(f"two entries are called {key}")
        self.entries[key] = self.tidy(guarded(make))

    def tidy(self, value: Any) -> Any:
        """The same with places, addresses and times of day taken out of every text."""
        if isinstance(value, str):
            for place, name in self.places.items():
                value = value.replace(place, name)
            return CLOCK.sub("<TIME>", ADDRESS.sub(" at <ADDRESS>", value))
        if isinstance(value, dict):
            return {self.tidy(key): self.tidy(part) for key, part in value.items()}
        return [self.tidy(part) for part in value] if isinstance(value, list) else value

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def write(self, path: str | Path) -> None:
        text = json.dumps(self.entries, indent=0, sort_keys=True)
        data = text.encode()
        Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def read_entries(path: str | Path) -> dict[str, Any]:
    """The entries of a file that `Book.write` wrote."""
    data = Path(path).read_bytes()
    entries: dict[str, Any] = json.loads(gzip.decompress(data) if str(path).endswith(".gz") else data)
    return entries


def guarded(make: Callable[[], Any]) -> Any:
    """What `make` gives, packed, with its warnings; or class and text of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = packed(make())
        except Exception as error:
            value = {"error": type(error).__name__, "text": str(error)}
    told = sorted({f"{one.category.__name__}: {one.message}" for one in caught if _own(one)})
    return {"value": value, "warnings": told} if told else value


def _own(warning: Any) -> bool:
    return not any(name in warning.category.__name__ for name in ("Numba", "Deprecation", "Resource"))


def digest(values: Any) -> str:
    """Kind, shape and hash of an array's bytes; texts are hashed as a list."""
    array = np.ascontiguousarray(values)
    data = repr(array.tolist()).encode() if array.dtype.kind in "OUST" else array.tobytes()
    shape = "x".join(map(str, array.shape))
    return f"{array.dtype.kind}{array.dtype.itemsize} {shape} {hashlib.sha256(data).hexdigest()[:24]}"


def packed(value: Any) -> Any:
    """A value of JSON that says the same."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return packed(value.item())
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, np.ndarray):
        return _numbers(value)
    if isinstance(value, pd.Index):
        return [str(label) for label in value]
    if isinstance(value, pd.Series):
        return {"index": packed(value.index), "values": _numbers(value.to_numpy())}
    if isinstance(value, pd.DataFrame):
        return {"index": _index(value.index)} | {str(n): _numbers(value[n].to_numpy()) for n in value}
    if isinstance(value, Mapping):
        return {str(key): packed(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [packed(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    return str(value)


def fields_of(value: Any) -> dict[str, Any]:
    """The public fields of a dataclass, packed."""
    names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
    return {name: packed(getattr(value, name)) for name in names}


def _index(index: pd.Index) -> Any:
    return f"0 to {len(index) - 1}" if isinstance(index, pd.RangeIndex) else packed(index)


def _numbers(array: np.ndarray) -> Any:
    if array.dtype.kind not in "fiub":
        texts = [packed(part) for part in array.tolist()]
        return texts if len(texts) <= LARGE else [digest(array.astype(str)), *texts[:5]]
    if array.size <= LARGE:
        return packed(array.tolist())
    if array.dtype.kind in "iub":
        return digest(array.astype(np.int64))
    flat = array.astype(float).ravel()
    known = np.where(np.isfinite(flat), flat, 0.0)
    ramp = np.linspace(1.0, 2.0, flat.size)
    sums = [
        math.fsum(known),
        math.fsum(known * ramp),
        math.fsum(known**2),
        float(flat.size - np.isfinite(flat).sum()),
    ]
    return {"shape": list(array.shape), "sums": sums, "first": packed(flat[:20].tolist())}
