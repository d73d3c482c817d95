"""Model matrices of columns by their names: no formula is written, and nothing is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.typing import FloatArray, IntArray


def main_effects(
    columns: Mapping[str, NDArray[Any]], rounds: IntArray | None, n: int
) -> tuple[FloatArray, tuple[str, ...]]:
    """A column of ones, numbers as they are, and a column of 0 and 1 for each label but the first.

    Columns (T,), rounds (n,), all of them where None; the entries of a column lie side by side in memory.
    """
    parts = [
        part
        for name, values in columns.items()
        for part in _coded(name, values if rounds is None else values[rounds])
    ]
    x = np.ones((n, 1 + len(parts)), order="F")
    for place, (_, values) in enumerate(parts, start=1):
        x[:, place] = values
    return x, ("Intercept", *(name for name, _ in parts))


def _coded(name: str, values: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """Treatment coding of labels in their order, named as formulaic names it."""
    if values.dtype.kind in "biuf":
        return [(name, values)]
    import pandas as pd

    coded = pd.Categorical(values)
    return [
        (f"{name}[T.{label}]", coded.codes == place) for place, label in enumerate(coded.categories) if place
    ]
