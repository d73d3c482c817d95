"""A log between its arrays and a file: canonical columns with labels, and plain metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.validation import Label, LogArrays, label_array
from adaptinf.typing import IntArray

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
)


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log as it stands in a file; columns (T,)."""

    columns: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    releases: pd.DataFrame


def canonical_columns(
    arrays: LogArrays,
    arms: Sequence[Label],
    phases: Sequence[str],
    rounds: NDArray[Any] | None,
    units: NDArray[Any] | None,
) -> dict[str, NDArray[Any]]:
    """Columns of the canonical frame in order, each of shape (T,), with labels for codes."""
    named: dict[str, NDArray[Any] | None] = {
        "t": np.arange(1, len(arrays.action) + 1) if rounds is None else rounds,
        "unit_id": units,
        "action": label_array(arms)[arrays.action],
        "reward": arrays.reward,
        "propensity": arrays.propensity,
    }
    if arrays.propensities is not None:
        for code, arm in enumerate(arms):
            named[f"propensity_{arm}"] = arrays.propensities[:, code]
    named["batch"] = arrays.batch
    named["phase"] = None if arrays.phase is None else label_array(phases)[arrays.phase]
    named["randomised"] = arrays.randomised
    named.update(arrays.context)
    return {name: values for name, values in named.items() if values is not None}


def storable(columns: dict[str, NDArray[Any]], arms: Sequence[Label]) -> dict[str, NDArray[Any]]:
    """Canonical columns whose actions a file can hold: as text where the arms are of several types."""
    if len(set(map(str, arms))) < len(arms):
        raise ParameterError(
            "AdaptiveLog", [f"arms that read the same cannot be told apart in a file: {arms!r}"]
        )
    if len(arms) and label_array(arms).dtype.kind == "O":
        actions = columns["action"]
        columns = columns | {"action": np.array([str(arm) for arm in actions], dtype=object)}
    return columns


def restored_arrays(stored: StoredLog) -> LogArrays:
    """Arrays of a log that was stored."""
    columns, metadata = stored.columns, stored.metadata
    arms: tuple[Label, ...] = metadata["arms"]
    by_arm = [f"propensity_{arm}" for arm in arms]
    return LogArrays(
        action=_codes(columns["action"], arms),
        reward=columns["reward"],
        propensity=columns.get("propensity"),
        propensities=np.column_stack([columns[name] for name in by_arm]) if by_arm[0] in columns else None,
        batch=columns.get("batch"),
        phase=_codes(columns["phase"], metadata["phases"]) if "phase" in columns else None,
        randomised=columns.get("randomised"),
        context={name: columns[name] for name in metadata["context"]},
    )


def _codes(values: NDArray[Any], labels: Sequence[Label]) -> IntArray:
    """Positions of labels, which are told apart by their text."""
    positions = {str(label): code for code, label in enumerate(labels)}
    codes, distinct = pd.factorize(values)
    unknown = [label for label in distinct.tolist() if str(label) not in positions]
    if unknown:
        raise ParameterError(
            "read_log", [f"the file has labels that its metadata does not know: {unknown!r}"]
        )
    return np.array([positions[str(label)] for label in distinct.tolist()], dtype=np.int64)[codes]


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns hold the same values; NaN equals NaN."""
    floats = first.dtype.kind == "f" and second.dtype.kind == "f"
    return bool(np.array_equal(first, second, equal_nan=floats))
