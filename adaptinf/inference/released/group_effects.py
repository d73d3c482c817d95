"""Effects by group from the private releases of a log.

Sampling errors are normal and the noise is Laplace, with scales that depend on the true effect. The
distributions of differences and of quadratic forms have no known form. Intervals of the groups are combined
by Bonferroni's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Claim, Said
from adaptinf.claims.privacy import releases
from adaptinf.claims.privacy import releases as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.tails import LOG_2
from adaptinf.inference.inputs.published import has_group_effects
from adaptinf.inference.released.effects import (
    NoisyEffect,
    effect_from_mean,
    effect_from_sums,
    released_estimate,
)
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log import AdaptiveLog, PublicLog

_NAME = "released"
Reason = tuple[Claim, Mapping[str, Any]]
"""A claim about terms, and the values that it needs besides the terms."""


@dataclass(frozen=True, slots=True)
class ReleasedEffects:
    """Effects of arm 1 over arm 0 by group, from private releases alone; estimate and details (G,)."""

    groups: tuple[Any, ...]
    estimate: FloatArray
    effect: NoisyEffect
    details: Mapping[str, FloatArray]
    reasons: Mapping[int, Reason]
    """The reasons why groups have no estimate, keyed by position."""
    notes: tuple[Said, ...]


def released_effects(log: AdaptiveLog | PublicLog) -> ReleasedEffects:
    """Compute effects by group from the releases of a log."""
    releases = log.releases
    if not has_group_effects(log):
        raise InvalidForLog(_NAME, claims.NO_GROUP_EFFECTS(), ())
    return _from_sums(log, releases) if "arrivals" in set(releases["name"]) else _from_means(releases)


def _from_sums(log: AdaptiveLog | PublicLog, releases: pd.DataFrame) -> ReleasedEffects:
    last = releases["round"] == log.n_rounds
    counts = _by_group(releases[last & (releases["name"] == "arrivals")])
    sums = _by_group(releases[last & (releases["name"] == "contrast_sum")])
    if counts.empty or set(counts.index) != set(sums.index):
        raise InvalidForLog(_NAME, claims.UNFINISHED(round=log.n_rounds), ())
    groups = tuple(counts.index.tolist())
    sums = sums.loc[list(groups)]
    budget_sum, budget_count = 1.0 / _column(sums, "scale"), _count_budgets(counts)
    floors = np.where(np.isfinite(budget_count), budget_count, budget_sum)
    planned = _planned_rounds(log, releases[~last & (releases["name"] == "arrivals")], floors)
    total, arrivals = _column(sums, "value"), _column(counts, "value")
    low = arrivals <= 0.25 * planned
    return ReleasedEffects(
        groups=groups,
        estimate=released_estimate(total, arrivals, epsilon_count=budget_count, minimum=0.25 * planned),
        effect=effect_from_sums(
            total, arrivals, epsilon_sum=budget_sum, epsilon_count=budget_count, minimum=0.25 * planned
        ),
        details={"released_count": arrivals, "t_min": np.full(arrivals.shape, planned)},
        reasons={
            int(i): (claims.SMALL_COUNT, {"count": float(arrivals[i]), "least": planned / 4})
            for i in np.flatnonzero(low)
        },
        notes=(claims.SUMS_ALONE(), claims.CLIPPED(), claims.INVERTED(), claims.VARIANCE_OF_SUMS()),
    )


def _count_budgets(counts: pd.DataFrame) -> FloatArray:
    """Privacy parameters spent on the counts; infinite if the counts are public, that is, without noise."""
    with np.errstate(divide="ignore"):
        return 2.0 / _column(counts, "scale")


def _planned_rounds(log: AdaptiveLog | PublicLog, earlier: pd.DataFrame, budgets: FloatArray) -> float:
    """T_min, recomputed from the counts released in the first half, with a floor set by their budgets.

    If the counts are public, the budgets of the sums determine the floor.
    """
    alpha = None if log.design is None else log.design.parameters.get("alpha")
    if alpha is None or earlier.empty:
        raise InvalidForLog(_NAME, claims.NO_LEAST_COUNT(), ())
    totals = np.maximum(earlier.groupby("group")["value"].sum().to_numpy(dtype=float), 1.0)
    least = 4.0 * np.log(log.n_rounds) / budgets.min()
    return float(max(least, totals.min() ** (1.0 - float(alpha))))


def _from_means(releases: pd.DataFrame) -> ReleasedEffects:
    lengths = _by_group(releases[releases["name"] == "length"])
    groups = tuple(lengths.index.tolist())
    estimates = _by_group(releases[releases["name"] == "estimate"]).reindex(list(groups))
    value, scale = _column(estimates, "value"), _column(estimates, "scale")
    length = _column(lengths, "value")
    return ReleasedEffects(
        groups=groups,
        estimate=value,
        effect=effect_from_mean(value, length, scale=scale),
        details={"released_count": length},
        reasons={int(i): (claims.NOT_RELEASED, {}) for i in np.flatnonzero(~np.isfinite(value))},
        notes=(claims.MEANS_ALONE(), claims.INVERTED(), claims.VARIANCE_OF_MEANS()),
    )


def _by_group(rows: pd.DataFrame) -> pd.DataFrame:
    """The last release for each group, in the order of the groups."""
    return rows.drop_duplicates("group", keep="last").set_index("group")[["value", "scale"]].sort_index()


def _column(rows: pd.DataFrame, name: str) -> FloatArray:
    return rows[name].to_numpy(dtype=float)


_BISECTIONS = 50
_DEEPEST = -1e6


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedDifferenceReference:
    """Differences between released effects, with limits from two intervals at alpha/2 each.

    Shapes: plus, minus (k,).

    The interval contains the difference if both intervals contain their effects, which fails with probability
    at most alpha. The p-value is the smallest alpha at which the interval excludes the null.
    """

    effect: NoisyEffect
    plus: IntArray
    minus: IntArray
    name: str = releases.TWO_INTERVALS()
    exact: bool = False
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.array(
            [
                _smallest_level(self._pair_holds(i, j, null)) if self._valid(i, j) else math.nan
                for i, j in zip(self.plus, self.minus, strict=True)
            ],
            dtype=np.float64,
        )

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2); NaN if a group has no interval."""
        low, high = self.effect.interval(log_alpha - LOG_2)
        return np.column_stack((low[self.plus] - high[self.minus], high[self.plus] - low[self.minus]))

    def _valid(self, i: int, j: int) -> bool:
        return bool(self.effect.valid[i] and self.effect.valid[j])

    def _pair_holds(self, i: int, j: int, null: float) -> Callable[[float], bool]:
        pair = _subset(self.effect, np.array([i, j]))

        def holds(log_alpha: float) -> bool:
            low, high = pair.interval(log_alpha - LOG_2)
            # An empty interval is NaN, and comparisons with NaN are false, so it contains nothing.
            return bool(low[0] - high[1] <= null <= high[0] - low[1])

        return holds


def log_common_pvalue(effect: NoisyEffect, groups: IntArray) -> float:
    """Log of the smallest alpha at which the groups' intervals at alpha/G have no value in common.

    Shapes: groups (G,).
    """
    compared = _subset(effect, groups)
    share = math.log(len(groups))

    def overlap(log_alpha: float) -> bool:
        low, high = compared.interval(log_alpha - share)
        return bool(np.max(low) <= np.min(high))

    return _smallest_level(overlap)


def _smallest_level(accepts: Callable[[float], bool]) -> float:
    """Log of the smallest alpha that rejects, for a test that also rejects at every larger alpha."""
    rejected, accepted = 0.0, -1.0
    if accepts(rejected):
        return 0.0
    while not accepts(accepted):
        rejected, accepted = accepted, 2.0 * accepted
        if accepted < _DEEPEST:
            return -math.inf
    for _ in range(_BISECTIONS):
        middle = 0.5 * (rejected + accepted)
        rejected, accepted = (rejected, middle) if accepts(middle) else (middle, accepted)
    return rejected


def _subset(effect: NoisyEffect, rows: IntArray) -> NoisyEffect:
    parts = {
        name: np.broadcast_to(getattr(effect, name), effect.valid.shape)[rows]
        for name in ("center", "size", "scale", "slope", "twin", "valid")
    }
    return replace(effect, **parts)
