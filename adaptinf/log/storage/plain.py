"""Plain values as JSON that keeps their types: tuples, arrays, infinities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import ParameterError

_TAGS = frozenset({"float", "tuple", "array", "dict"})


def encode(value: object) -> Any:
    """Plain value as JSON that `decode` turns back into the very same value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        items = [encode(item) for item in value.ravel().tolist()]
        return {"array": {"dtype": value.dtype.str, "shape": list(value.shape), "values": items}}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value) and not _TAGS & set(value):
            return {key: encode(item) for key, item in value.items()}
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise ParameterError("AdaptiveLog", [f"a file cannot hold {value!r} of type {type(value).__name__}"])


def decode(value: Any) -> Any:
    """Plain value from what `encode` returned."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (tag := next(iter(value))) in _TAGS:
        return _DECODERS[tag](value[tag])
    return {key: decode(item) for key, item in value.items()}


def _decode_array(stored: dict[str, Any]) -> NDArray[Any]:
    values, dtype = stored["values"], np.dtype(stored["dtype"])
    longest = max((len(item) for item in values if isinstance(item, str)), default=0)
    if dtype.kind not in "biufUO" or (dtype.kind == "U" and dtype.itemsize > 4 * max(longest, 1)):
        raise ValueError(f"an array of {longest} characters an entry cannot be of type {dtype}")
    flat = np.empty(len(values), dtype=dtype)
    for position, item in enumerate(values):
        flat[position] = decode(item)
    return flat.reshape(stored["shape"])


def _decode_float(text: str) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"{text!r:.40} is no infinity, and not NaN")
    return float(text)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": _decode_float,
    "tuple": lambda items: tuple(decode(item) for item in items),
    "array": _decode_array,
    "dict": lambda pairs: {decode(key): decode(item) for key, item in pairs},
}
