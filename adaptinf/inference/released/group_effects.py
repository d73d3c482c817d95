"""Effects by group from the private releases of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Claim, Said
from adaptinf.claims.privacy import releases as claims
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
Reason = tuple[Claim, Mapping[str, Any]]
"""A claim on some terms, and its other values."""


@dataclass(frozen=True, slots=True)
class ReleasedEffects:
    """Effects of arm 1 over arm 0 by group, from private releases alone; estimate (G,), details (G,)."""

    groups: tuple[Any, ...]
    estimate: FloatArray
    effect: NoisyEffect
    details: Mapping[str, FloatArray]
    reasons: Mapping[int, Reason]
    """Why groups have no estimate."""
    notes: tuple[Said, ...]


def released_effects(log: AdaptiveLog | PublicLog) -> ReleasedEffects:
    """Effects by group from the releases of a log."""
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
    """Privacy spent on the counts; infinite for counts that are public, released without noise."""
    with np.errstate(divide="ignore"):
        return 2.0 / _column(counts, "scale")


def _planned_rounds(log: AdaptiveLog | PublicLog, earlier: pd.DataFrame, budgets: FloatArray) -> float:
    """T_min, recomputed from the first half's released counts; its floor is set by the counts' budgets.

    Where these are public it is set by those of the sums.
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
    """Last release of each group, in the order of the groups."""
    return rows.drop_duplicates("group", keep="last").set_index("group")[["value", "scale"]].sort_index()


def _column(rows: pd.DataFrame, name: str) -> FloatArray:
    return rows[name].to_numpy(dtype=float)
