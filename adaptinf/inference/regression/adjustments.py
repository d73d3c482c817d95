"""The adjustments of `AdaptiveOLS`: their list, the default, and what errors offer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from adaptinf.claims.units import NOT_BY_UNIT
from adaptinf.errors import InvalidForLog
from adaptinf.inference.regression.anytime import ANYTIME
from adaptinf.inference.regression.batched import BATCHED
from adaptinf.inference.regression.data import Adjustment, RegressionData
from adaptinf.inference.regression.decorrelation import DECORRELATION, default_refusal
from adaptinf.inference.regression.ellipsoid import ELLIPSOID
from adaptinf.inference.regression.notes import omission_reason, omitted_contexts
from adaptinf.inference.regression.plain import BASELINE, MAX_INFORMATION, NONE
from adaptinf.inference.regression.weighted import WEIGHTED, passed_over
from adaptinf.inference.scores.least_squares import BY_CLUSTER
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.units import unit_count_cautions

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_LIST = (NONE, MAX_INFORMATION, DECORRELATION, BATCHED, WEIGHTED, ELLIPSOID, ANYTIME)
ADJUSTMENTS: Mapping[str, Adjustment] = MappingProxyType({one.name: one for one in _LIST})
"""Adjustments by name."""
BEFOREHAND = "the arm by its label, if it was settled before the data; or all arms, with arm dummies"
_DEFAULT = "a regression without adjustment="


def default_adjustment(data: RegressionData, profile: LogProfile) -> tuple[Adjustment, str]:
    """Adjustment that `AdaptiveOLS.fit` takes where none is asked for, and why.

    The rewards are not read, so that the choice does not spoil the intervals.
    """
    _check_columns(data, profile)
    if data.adaptive:
        _check_units(data, profile)
    for adjustment in sorted(_LIST, key=lambda one: one.rank):
        reason = adjustment.preferred(data, profile)
        if reason:
            passed = passed_over(data, profile) if adjustment.rank > WEIGHTED.rank else ""
            return adjustment, f"{reason}; {passed}" if passed else reason
    if data.selector is not None:
        reason = (
            f"the arm was selected as {data.selector!r} by actions or rewards that are themselves random, "
            "and no correction of any use covers that choice"
        )
        raise InvalidForLog("a regression of this arm", reason, [BEFOREHAND, BASELINE])
    if not refusal(WEIGHTED.check, data, profile):
        return WEIGHTED, f"no other adjustment serves, although {passed_over(data, profile)}"
    reason, ways = default_refusal(data)
    ways += valid_alternatives(data, profile, DECORRELATION.name)
    raise InvalidForLog(_DEFAULT, f"w-decorrelation is what is left, and {reason}", [*ways, BASELINE])


def valid_alternatives(data: RegressionData, profile: LogProfile, *without: str) -> list[str]:
    """Adjustments for adaptive collection that the log supports, for errors."""
    candidates = [one for one in sorted(_LIST, key=lambda one: one.rank) if not one.plain]
    return [
        f"adjustment={one.name!r}"
        for one in candidates
        if one.name not in without and not refusal(one.check, data, profile)
    ]


def check_selection(data: RegressionData, adjustment: Adjustment) -> None:
    """Refuse arms that were selected by what rewards have moved, where the adjustment does not cover it."""
    if data.adaptive and data.selector is not None and not adjustment.plain:
        reason = (
            f"the arm was selected as {data.selector!r} by actions or rewards that are themselves random, "
            f"which {adjustment.name} does not account for"
        )
        ways = ["adjustment='max-information', for a log with a privacy guarantee", BEFOREHAND]
        raise InvalidForLog(f"adjustment={adjustment.name!r}", reason, ways)


def repeated_units(data: RegressionData, profile: LogProfile) -> bool:
    """Whether the log names units, and some have several of the rounds used."""
    units = profile.log.units
    return units is not None and len(set(units[data.rounds].tolist())) < len(data.rounds)


def unit_cautions(
    data: RegressionData, profile: LogProfile, adjustment: Adjustment, covariance: str
) -> tuple[str, ...]:
    """That units have several of the rounds used, where that is not allowed for."""
    if not repeated_units(data, profile):
        return ()
    if covariance not in BY_CLUSTER:
        found = f"units have several rounds: {NOT_BY_UNIT()}"
        if data.adaptive and not adjustment.plain:
            found += "; a covariance by unit for adaptive collection (an adaptive sandwich) is not there"
        return (found,)
    count = len(set(profile.log.units[data.rounds].tolist())) if profile.log.units is not None else 0
    return tuple(unit_count_cautions(profile, count))


def _check_columns(data: RegressionData, profile: LogProfile) -> None:
    """Refuse to choose for regressions that leave out what may have assigned the arms."""
    omitted = omitted_contexts(data, profile)
    if not omitted:
        return
    ways = ["these contexts among the columns", "AdaptiveLog(..., context_free=True) if they had no part"]
    ways += [] if data.propensity is None else ["Contrast or ArmMeans, by propensities"]
    ways.append("an adjustment= of your own choice")
    raise InvalidForLog(_DEFAULT, omission_reason(omitted), ways)


def _check_units(data: RegressionData, profile: LogProfile) -> None:
    """Refuse to choose where errors may depend on each other within units."""
    if not repeated_units(data, profile):
        return
    reason = (
        "units have several rounds, whose errors may depend on each other, and no adjustment for "
        "adaptive collection allows for that"
    )
    named = "an arm that was named before the data, or all arms with arm dummies"
    way = named if data.selector is not None else valid_alternatives(data, profile)[0]
    ways = [f"{way}, which takes them to be independent"]
    raise InvalidForLog(_DEFAULT, reason, [*ways, BASELINE])
