"""A log between its arrays and a file: canonical columns with labels, and plain metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
