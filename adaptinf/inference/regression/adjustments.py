"""The list of adjustments of `AdaptiveOLS`, the default adjustment, and alternatives for errors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import first, said, sentence
from adaptinf.claims.regression import adjusted_regression, regressions
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import NormalReference
from adaptinf.inference.regression.anytime import ANYTIME
from adaptinf.inference.regression.batched_regression import BatchedTests, batched_coefficients
from adaptinf.inference.regression.design import Adjustment, CoefficientFit, RegressionData, check_freedom
from adaptinf.inference.regression.ellipsoid import ELLIPSOID
from adaptinf.inference.regression.facts.batched_facts import BatchedFacts, DecorrelationFacts
from adaptinf.inference.regression.facts.regression_facts import RegressionFacts
from adaptinf.inference.regression.plain_regression import MAX_INFORMATION, NONE
from adaptinf.inference.regression.weighted.own_weights import WEIGHTED
from adaptinf.parameters import FLAG, OneOf, check

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile


_DECORRELATION = "w-decorrelation"


def _fit_decorrelated(facts: DecorrelationFacts) -> CoefficientFit:
    data = facts.data
    check_freedom(_DECORRELATION, data)
    if reason := first(adjusted_regression.DECORRELATION_NEEDS, facts):
        raise InvalidForLog(_DECORRELATION, reason, said(adjusted_regression.LEFT_ADVICE, facts))
    found = facts.solved
    errors = np.sqrt(np.diag(found.covariance))
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=NormalReference(found.estimate, errors),
        estimator="w-decorrelated",
        covariance=found.covariance,
        details={"error_left": np.linalg.norm(found.remainder, axis=1)},
        df_resid=float(data.nobs - data.size),
    )


DECORRELATION = Adjustment(
    name=_DECORRELATION,
    facts=DecorrelationFacts,
    fit=_fit_decorrelated,
    claims=adjusted_regression.DECORRELATION,
    needs=adjusted_regression.DECORRELATION_NEEDS,
    reasons=adjusted_regression.DECORRELATION_REASONS,
    options=("ridge",),
)
"""This adjustment removes the bias by weights that depend only on the columns."""


def _fit_batched(facts: BatchedFacts) -> CoefficientFit:
    test, drift = facts.test, facts.options.settings.get("drift", False)
    check("batched least squares", test=(test, OneOf("t", "normal")), drift=(drift, FLAG))
    if reason := first(adjusted_regression.BATCHED_NEEDS, facts):
        raise InvalidForLog("batched", reason, ())
    found = facts.usable
    estimate, errors, reference = batched_coefficients(found, np.eye(facts.data.size), test)
    return CoefficientFit(
        estimate=estimate,
        std_error=errors,
        reference=reference,
        estimator="batched",
        df_resid=float(found.df.sum()),
        joint=BatchedTests(found, test, bool(drift)),
    )


BATCHED = Adjustment(
    name="batched",
    facts=BatchedFacts,
    fit=_fit_batched,
    claims=adjusted_regression.BATCHED,
    needs=adjusted_regression.BATCHED_NEEDS,
    reasons=adjusted_regression.BATCHED_REASONS,
    options=("test", "drift"),
)
"""This adjustment fits a separate regression in each batch."""


_ORDER: tuple[Adjustment[Any], ...] = (
    NONE,  # If nothing adapted, least squares is valid and has the shortest intervals.
    # The correction is exact and needs no propensities; it is chosen if it hardly costs length.
    MAX_INFORMATION,
    # Known propensities account for the design, and one weight per round accounts for drift that all arms
    # share.
    WEIGHTED,
    # Separate batches need no propensities, and drift from one batch to the next does no harm to effects of
    # arms.
    BATCHED,
    DECORRELATION,  # Decorrelation has the fewest requirements, but coefficients must be constant.
    # It is used on request only, because its intervals are longer: they allow for a look at any round.
    ANYTIME,
    # It is used on request only, because the user must supply bounds and its intervals are the longest.
    ELLIPSOID,
)
"""Adjustments in order of preference, for the default and for suggestions in error messages."""
ADJUSTMENTS: Mapping[str, Adjustment[Any]] = MappingProxyType({one.name: one for one in _ORDER})
"""Adjustments keyed by name."""
_AFTER_WEIGHTED = _ORDER[_ORDER.index(WEIGHTED) + 1 :]
_DEFAULT = "a regression without adjustment="


def default_adjustment(data: RegressionData, profile: LogProfile) -> tuple[Adjustment[Any], str]:
    """The adjustment that `AdaptiveOLS.fit` uses by default, and the reason.

    The rewards are not used, so the choice does not invalidate the intervals.
    """
    _check_columns(data, profile)
    if data.adaptive:
        _check_units(data, profile)
    weighted = WEIGHTED.facts(data, profile, None)
    for adjustment in _ORDER:
        reason = first(adjustment.reasons, adjustment.facts(data, profile, None))
        if reason:
            passed = weighted.passed_over if adjustment in _AFTER_WEIGHTED else ""
            return adjustment, sentence([reason, passed])
    if data.selector is not None:
        alone = [regressions.BEFOREHAND(), regressions.BASELINE()]
        raise InvalidForLog("a regression of this arm", regressions.SELECTED(selector=data.selector), alone)
    if not first(WEIGHTED.needs, weighted):
        return WEIGHTED, regressions.WEIGHTED_LEFT(reason=weighted.passed_over)
    facts = DECORRELATION.facts(data, profile, None)
    reason = regressions.DECORRELATION_LEFT(reason=first(DECORRELATION.needs, facts))
    ways = said(adjusted_regression.LEFT_ADVICE, facts)
    ways += valid_alternatives(data, profile, DECORRELATION.name)
    raise InvalidForLog(_DEFAULT, reason, [*ways, regressions.BASELINE()])


def valid_alternatives(data: RegressionData, profile: LogProfile, *without: str) -> list[str]:
    """The adjustments for adaptive collection that the log supports, for use in errors."""
    return [
        f"adjustment={one.name!r}"
        for one in _ORDER
        if not one.plain and one.name not in without and not first(one.needs, one.facts(data, profile, None))
    ]


def check_selection(data: RegressionData, adjustment: Adjustment[Any]) -> None:
    """Refuse an arm that was selected by rewards, unless the adjustment covers such a selection."""
    if data.adaptive and data.selector is not None and not adjustment.plain:
        reason = regressions.SELECTION_UNCOVERED(selector=data.selector, name=adjustment.name)
        ways = [regressions.GUARANTEED(), regressions.BEFOREHAND()]
        raise InvalidForLog(f"adjustment={adjustment.name!r}", reason, ways)


def _check_columns(data: RegressionData, profile: LogProfile) -> None:
    """Refuse to choose a default if the regression omits contexts that may have determined the arms."""
    reason = first((regressions.OMITTED,), RegressionFacts(data, profile))
    if not reason:
        return
    ways = [regressions.NAME_CONTEXTS(), regressions.STATE_CONTEXTS()]
    ways += [] if data.propensity is None else [regressions.BY_PROPENSITIES()]
    raise InvalidForLog(_DEFAULT, reason, [*ways, regressions.OWN_CHOICE()])


def _check_units(data: RegressionData, profile: LogProfile) -> None:
    """Refuse to choose a default if errors may be dependent within units."""
    if not RegressionFacts(data, profile).repeated_units:
        return
    selected = data.selector is not None
    way = regressions.BEFOREHAND() if selected else valid_alternatives(data, profile)[0]
    ways = [regressions.INDEPENDENT_ANYHOW(way=way), regressions.BASELINE()]
    raise InvalidForLog(_DEFAULT, regressions.DEPENDENT_UNITS(), ways)
