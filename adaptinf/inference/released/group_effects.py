"""Effects by group from the private releases of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.inputs.published import has_group_effects
from adaptinf.inference.released.effects import (
    NoisyEffect,
    effect_from_mean,
    effect_from_sums,
    released_estimate,
)
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log import AdaptiveLog, PublicLog

_NAME = "released"


@dataclass(frozen=True, slots=True)
class ReleasedEffects:
    """Effects of arm 1 over arm 0 by group, from private releases alone; estimate (G,), details (G,)."""

    groups: tuple[Any, ...]
    estimate: FloatArray
    effect: NoisyEffect
    details: Mapping[str, FloatArray]
    reasons: Mapping[int, str]
    notes: tuple[str, ...]


def released_effects(log: AdaptiveLog | PublicLog) -> ReleasedEffects:
    """Effects by group from the releases of a log."""
    releases = log.releases
    if not has_group_effects(log):
        reason = (
            "it has no private releases of group effects (contrast_sum and arrivals, or estimate and length)"
        )
        raise InvalidForLog(_NAME, reason, ())
    return _from_sums(log, releases) if "arrivals" in set(releases["name"]) else _from_means(releases)


def _from_sums(log: AdaptiveLog | PublicLog, releases: pd.DataFrame) -> ReleasedEffects:
    last = releases["round"] == log.n_rounds
    counts = _by_group(releases[last & (releases["name"] == "arrivals")])
    sums = _by_group(releases[last & (releases["name"] == "contrast_sum")])
    if counts.empty or set(counts.index) != set(sums.index):
        reason = f"its last round, {log.n_rounds}, has no contrast_sum and arrivals for every group"
        raise InvalidForLog(_NAME, reason, ())
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
            int(
                i
            ): f"no estimate, the released count {arrivals[i]:.1f} is not above T_min/4 = {planned / 4:.1f}"
            for i in np.flatnonzero(low)
        },
        notes=(
            "From the released sum and count of each group's randomised rounds alone. Rewards were clipped "
            "to [0, 1]: the effect is that on clipped rewards.",
            "P-values and intervals invert a test whose law adds the noise of both releases to the sampling "
            "error; the sampling variance is exact for binary rewards and an upper bound for others.",
        ),
    )


def _count_budgets(counts: pd.DataFrame) -> FloatArray:
    """Privacy spent on the counts; infinite for counts that are public, released without noise."""
    with np.errstate(divide="ignore"):
        return 2.0 / _column(counts, "scale")


def _planned_rounds(log: AdaptiveLog | PublicLog, earlier: pd.DataFrame, budgets: FloatArray) -> float:
    """T_min, recomputed from the first half's released counts; its floor is set by the counts' budgets.

    Where these are public it is set by those of the sums.
    """
    alpha = None if log.design is None else log.design.parameters.get("alpha")
    if alpha is None or earlier.empty:
        reason = (
            "the smallest usable count depends on the design's alpha and on the arrivals released in the "
            "first half, and the log does not have both"
        )
        raise InvalidForLog(_NAME, reason, ())
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
        reasons={
            int(i): "no estimate was released (too few arrivals for its length, or an arm without pulls)"
            for i in np.flatnonzero(~np.isfinite(value))
        },
        notes=(
            "From the released differences in means and their lengths alone.",
            "P-values and intervals invert a test whose law adds the noise of the release to the sampling "
            "error, whose variance is at most (1 - effect^2)/length: half of the rounds are on each arm.",
        ),
    )


def _by_group(rows: pd.DataFrame) -> pd.DataFrame:
    """Last release of each group, in the order of the groups."""
    return rows.drop_duplicates("group", keep="last").set_index("group")[["value", "scale"]].sort_index()


def _column(rows: pd.DataFrame, name: str) -> FloatArray:
    return rows[name].to_numpy(dtype=float)
