"""Facts about every regression: rounds, contexts, units, and rare outcomes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import Finding, propensities, said
from adaptinf.claims.contexts import NEVER_RANDOM
from adaptinf.claims.regression import regressions as claims
from adaptinf.claims.units import NOT_BY_UNIT
from adaptinf.inference.regression.design import CoefficientFit, FitOptions, RegressionData
from adaptinf.inference.regression.facts.residual_trends import residual_trends
from adaptinf.inference.regression.least_squares import BY_CLUSTER
from adaptinf.inference.regression.rare_coefficients import RareCoefficients, rare_coefficients
from adaptinf.inference.validity.constant_means import absences, with_absences
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.units import unit_count_cautions
from adaptinf.typing import IntArray

_CONTEXTS, _ARMS = 5, 8
"""Largest numbers of contexts and of arms that a sentence lists."""


class RegressionFacts:
    """Facts about a log and, once the caller has set `fit`, about a fit."""

    fit: CoefficientFit
    """The fit that notes and cautions describe, before coefficients with rare outcomes are removed."""

    def __init__(self, data: RegressionData, profile: LogProfile, options: FitOptions | None = None) -> None:
        self.data, self.profile = data, profile
        self.options = FitOptions("") if options is None else options

    @property
    def always(self) -> bool:
        return True

    @property
    def all_rounds(self) -> dict[str, Any]:
        return {"formula": self.data.formula, "n": self.data.nobs} if self.data.arm is None else {}

    @property
    def rounds_of_arm(self) -> dict[str, Any]:
        data = self.data
        if data.arm is None:
            return {}
        how = f", selected as {data.selector!r}" if data.selector is not None else ""
        return {
            "formula": data.formula,
            "n": data.nobs,
            "rounds": data.n_rounds,
            "arm": data.arm,
            "how": how,
        }

    @property
    def never_chosen(self) -> dict[str, str]:
        log = self.profile.log
        never = np.flatnonzero(np.bincount(log.arrays.action, minlength=log.n_arms) == 0)
        if self.data.arm is not None or len(never) == 0:
            return {}
        return {"arms": some([repr(log.arms[code]) for code in never], _ARMS)}

    @property
    def omitted(self) -> dict[str, str]:
        """Contexts that may have affected the choice of arms and are not among the columns.

        The rounds of different arms then have different mixes of these contexts, which no adjustment for
        adaptive collection corrects. A context that also affects rewards would appear as an effect of the
        arm.
        """
        data, profile, log = self.data, self.profile, self.profile.log
        if profile.context_free or (profile.constant_propensities and not profile.decides_by_context):
            return {}
        known = {log.columns.get(name, name) for name in data.covariates}
        relevant = log.context
        if data.arm is not None and profile.by_own_vectors:
            relevant = tuple(name for name in relevant if name.endswith(f"_{data.arm}"))
        left = [name for name in relevant if name not in known]
        if log.context_free is False:
            left.append(claims.UNNAMED_CONTEXTS())
        return {"contexts": some(left, _CONTEXTS)} if left else {}

    @property
    def propensities_right(self) -> list[str]:
        """The assumption if rewards cannot have affected assignment because propensities are constant."""
        return said((propensities.RIGHT,), self) if self.profile.constant_propensities else []

    @cached_property
    def arms_used(self) -> IntArray:
        """Codes of the arms in the rounds used."""
        return np.flatnonzero(np.bincount(self.data.action, minlength=self.data.n_arms))

    @property
    def never_random(self) -> str:
        """A statement that no arm was drawn at random, for regressions on several arms; otherwise empty."""
        several = len(self.arms_used) > 1
        return NEVER_RANDOM() if several and self.profile.never_random else ""

    @property
    def assumes_constant(self) -> bool:
        """Whether changing coefficients would invalidate the method."""
        return True

    @cached_property
    def drift_found(self) -> Finding | None:
        """Drift in the residual rewards of an arm; None if drift is not tested, or is harmless."""
        harmless = not (self.data.adaptive or self.profile.shares_move)
        if harmless or not self.assumes_constant or self.profile.incomplete:
            return None
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            trends = residual_trends(self.data, self.profile)
        found = trends.of(self.arms_used, self.profile.log.arms, claims.COEFFICIENTS_DRIFT)
        missing = () if self.options.stationary else absences(self.profile, self.arms_used)
        return with_absences(found, missing)

    @property
    def no_trend(self) -> bool:
        return self.drift_found is not None and not self.drift_found.contradicted

    @property
    def coefficients_may_move(self) -> bool:
        several = self.data.adaptive and self.data.arm is None
        return several and not self.options.stationary and self.drift_found is None

    @property
    def perfect(self) -> bool:
        """Whether the fit explains all variation, so that residuals are 0."""
        return not np.all(self.fit.std_error > 0.0)

    @cached_property
    def rare(self) -> RareCoefficients:
        """The coefficients that depend on rare outcomes, and the statements about them."""
        return rare_coefficients(self.data, self.fit)

    @cached_property
    def repeated_units(self) -> bool:
        """Whether the log identifies units, some of which have several of the rounds used."""
        units = self.profile.log.units
        rounds = self.data.rounds
        return units is not None and len(set(units[rounds].tolist())) < len(rounds)

    @property
    def units_ignored(self) -> str:
        ignored = self.repeated_units and self.options.covariance not in BY_CLUSTER
        return NOT_BY_UNIT() if ignored else ""

    @property
    def no_sandwich(self) -> bool:
        """Whether the covariance that units require is not available under adaptive collection."""
        return bool(self.units_ignored) and self.data.adaptive

    @property
    def few_units(self) -> list[str]:
        units = self.profile.log.units
        if units is None or not self.repeated_units or self.options.covariance not in BY_CLUSTER:
            return []
        return unit_count_cautions(self.profile, len(set(units[self.data.rounds].tolist())))


def some(names: list[str], most: int) -> str:
    """Text with the first of these names, and an indication if there are more."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
