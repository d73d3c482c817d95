"""A score that is learned: naive log-ratios of how often each value, or bin of values, was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.lower_bound import Found
from adaptinf.typing import FloatArray

_BINS = 64
_DISTINCT = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScore:
    """Sum over coordinates of the log-ratio of a value's frequency on the second and the first data set."""

    values: tuple[Any, ...]
    ratios: tuple[FloatArray, ...]
    exact: tuple[bool, ...]

    def scores(self, outputs: Any) -> FloatArray:
        """Score of each run, shape (runs,)."""
        total = np.zeros(outputs.shape[0])
        for column, (values, ratios, exact) in enumerate(
            zip(self.values, self.ratios, self.exact, strict=True)
        ):
            total += ratios[_places(outputs[:, column], values, exact)]
        return total

    def members(self, found: Found) -> Any:
        """Values of the one coordinate that make the event, the most telling first."""
        ratios = np.round(self.ratios[0][:-1], 9)
        inside = ratios >= found.cut if found.upper else ratios <= found.cut
        order = np.argsort(-ratios if found.upper else ratios, kind="stable")
        return self.values[0][order[inside[order]]]

    def event(self, found: Found, subject: str) -> str:
        """The event in words."""
        return (
            f"the log-ratio of {subject}, learned from the first quarter of the runs, is at "
            f"{'least' if found.upper else 'most'} {found.cut:.6g}"
        )


def learn(first: Any, second: Any) -> LearnedScore:
    """Learn a score from outputs on two data sets, each of shape (runs, coordinates)."""
    values, ratios, exact = [], [], []
    for column in range(first.shape[1]):
        pooled = np.concatenate([first[:, column], second[:, column]])
        seen = np.unique(pooled)
        is_exact = seen.size <= _DISTINCT
        if not is_exact:
            seen = np.unique(np.quantile(pooled, np.arange(_BINS) / _BINS))
        counts = [
            np.bincount(_places(side[:, column], seen, is_exact), minlength=seen.size + 1)
            for side in (first, second)
        ]
        values.append(seen)
        ratios.append(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
        exact.append(is_exact)
    return LearnedScore(tuple(values), tuple(ratios), tuple(exact))


def _places(outputs: Any, values: Any, exact: bool) -> Any:
    """Row of each output in a table of values (the last row for unseen ones) or of bins."""
    if not exact:
        return np.clip(np.searchsorted(values, outputs, side="right") - 1, 0, values.size - 1)
    place = np.minimum(np.searchsorted(values, outputs), values.size - 1)
    return np.where(values[place] == outputs, place, values.size)
