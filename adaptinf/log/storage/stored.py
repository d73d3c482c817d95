"""A log between its arrays and a file: canonical columns with labels, and plain metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.validation import Label, LogArrays, label_array

# Attributes of a log that are plain values themselves.
PLAIN_FIELDS = (
    "arms",
    "phases",
    "reward_range",
    "propensity_status",
    "noise",
    "adaptive_rounds",
    "released_rounds",
    "rounds_per_unit",
    "guarantee_source",
    "recommended",
    "context_free",
    "adaptive",
    "stopping",
    "missing",
)
METADATA_FIELDS = (
    *PLAIN_FIELDS,
    "context",
    "outcomes",
    "names",
    "has_rounds",
    "guarantee",
    "reward_guarantee",
    "design",
    "traits",
)
LATER_FIELDS = ("missing", "outcomes", "adaptive", "stopping")
"""Fields that files of earlier versions do not have."""


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log as it stands in a file; columns (T,)."""

    columns: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    releases: pd.DataFrame
    not_covered: Mapping[str, str] = field(default_factory=dict)
    """Columns outside the log's privacy guarantee, with the reason; a file tells them, none is read."""
    report: Any = None
    """Where the log came from and what was done to it, as plain values."""


def canonical_columns(
    arrays: LogArrays,
    arms: Sequence[Label],
    phases: Sequence[str],
    rounds: NDArray[Any] | None,
    units: NDArray[Any] | None,
    outcome_rounds: NDArray[Any] | None = None,
) -> dict[str, NDArray[Any]]:
    """Columns of the canonical frame in order, each of shape (T,), with labels for codes."""
    named: dict[str, NDArray[Any] | None] = {
        "t": np.arange(1, len(arrays.action) + 1) if rounds is None else rounds,
        "unit_id": units,
        "action": label_array(arms)[arrays.action],
        "received": None if arrays.received is None else label_array(arms)[arrays.received],
        "reward": arrays.recorded,
        "observation": arrays.observation,
        "outcome_round": outcome_rounds,
        "propensity": arrays.propensity,
    }
    if arrays.propensities is not None:
        for code, arm in enumerate(arms):
            named[f"propensity_{arm}"] = arrays.propensities[:, code]
    named["batch"] = arrays.batch
    named["phase"] = None if arrays.phase is None else label_array(phases)[arrays.phase]
    named["randomised"] = arrays.randomised
    known = {name: values for name, values in named.items() if values is not None}
    return {**known, **arrays.context, **arrays.outcomes}


def storable(columns: dict[str, NDArray[Any]], arms: Sequence[Label]) -> dict[str, NDArray[Any]]:
    """Canonical columns whose actions a file can hold: as text where the arms are of several types."""
    if len(set(map(str, arms))) < len(arms):
        raise ParameterError(
            "AdaptiveLog", [f"arms that read the same cannot be told apart in a file: {arms!r}"]
        )
    if len(arms) and label_array(arms).dtype.kind == "O":
        for name in ("action", "received"):
            if name in columns and columns[name].dtype.kind == "O":
                columns = columns | {name: np.array([str(arm) for arm in columns[name]], dtype=object)}
    return columns


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns hold the same values; NaN equals NaN."""
    gaps = first.dtype.kind == second.dtype.kind and first.dtype.kind in "fM"
    return bool(np.array_equal(first, second, equal_nan=gaps))


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
