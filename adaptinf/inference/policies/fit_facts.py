"""Facts on which claims about policy values depend, for one kind of weights and for a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import Finding, units
from adaptinf.claims import policies as claims
from adaptinf.claims.facts import KindOfWeights
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.policies.policy_question import UNOBSERVED, PolicyQuestion
from adaptinf.inference.policies.policy_scores import SHARED, PolicyFit, PolicyOptions
from adaptinf.inference.policies.policy_weights import NEAREST
from adaptinf.inference.scores.means import effective_events
from adaptinf.inference.scores.moving_effects import SEEN, moving_effects
from adaptinf.inference.scores.unit_errors import FEWEST_EVENTS
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.inference.validity.rare import PartsLaw
from adaptinf.inference.validity.units import FEW_UNITS, event_gaps, unit_cautions, unit_notes
from adaptinf.texts import several
from adaptinf.typing import BoolArray

_SHOWN = 8
_NEEDS_SETTLING = "min-variance"
"""Weights for which, as for contextual weights, estimates are normal only if propensities converge."""


class WeightFacts(KindOfWeights):
    """Facts about one kind of weights."""

    def __init__(
        self, question: PolicyQuestion, estimator: str, weights: str | None, *, contextual: bool = False
    ) -> None:
        self.question, self.profile = question, question.profile
        self.estimator, self.weights, self.contextual = estimator, weights, contextual

    @property
    def name(self) -> str:
        """The name of the method in tables and errors."""
        if self.is_cadr:
            return "cadr"
        name = f"{self.estimator} with {self.weights} weights"
        if self.weights in SHARED:
            return name
        return f"{name}, {'contextual' if self.contextual else 'non-contextual'}"

    @property
    def rounds_refusal(self) -> str:
        return self.profile.unit_refusal if self.is_cadr else ""

    @property
    def support_refusal(self) -> str:
        return refusal(self.question.check_support, self.name)

    @property
    def propensities_refusal(self) -> str:
        return refusal(self.question.check_propensities, self.name)

    @property
    def weights_refusal(self) -> str:
        """The reason why weights that are specific to a policy, or shared by both, cannot be computed."""
        if self.is_combined:
            return refusal(self.question.check_combined, self.name)
        if self.is_uniform and self.question.snapshots is None:
            return ""
        return refusal(self.question.check_logging, self.name)

    @property
    def contextual_by_unit(self) -> bool:
        return self.contextual and self.profile.repeated_units

    @property
    def is_cadr(self) -> bool:
        return self.estimator == "cadr"

    @property
    def is_stable(self) -> bool:
        return self.weights == "stable-variance" and not self.contextual

    @property
    def is_stable_by_context(self) -> bool:
        return self.weights == "stable-variance" and self.contextual

    @property
    def is_least(self) -> bool:
        return self.weights == _NEEDS_SETTLING and not self.contextual

    @property
    def is_least_by_context(self) -> bool:
        return self.weights == _NEEDS_SETTLING and self.contextual

    @property
    def allows_drift(self) -> bool:
        return self.weights in SHARED

    @property
    def allows_no_drift(self) -> bool:
        return not self.allows_drift

    @property
    def drift_found(self) -> Finding | None:
        """Drift in the rewards of some arm; None if drift is not tested, or is harmless.

        Drift is harmless if propensities, and therefore weights, are constant.
        """
        if self.profile.constant_propensities or (self.question.contrast and self.is_cadr):
            return None
        found: Finding | None = self.profile.drift_of(range(self.profile.log.n_arms))
        return found

    @property
    def rewards_equal(self) -> bool:
        return not self.profile.varied

    @property
    def hardly_chosen(self) -> dict[str, str]:
        """Policies that have no interval because of arms with at most one reward."""
        shares = zip(self.question.policies, self.question.unobserved(2), strict=True)
        names = [one.name for one, share in shares if share >= UNOBSERVED]
        return {"policies": several(names, _SHOWN)} if names and self.profile.varied else {}

    @property
    def policies_are_given(self) -> bool:
        return True

    @property
    def needs_settling(self) -> bool:
        return (self.contextual or self.weights == _NEEDS_SETTLING) and self.profile.adaptive

    @property
    def knows_chosen_alone(self) -> bool:
        return self.profile.log.arrays.propensities is None

    @property
    def tied(self) -> str:
        ties = self.profile.repeated_units and self.profile.moves and not self.is_uniform
        return units.TIED() if ties else ""

    @property
    def small_propensities(self) -> bool:
        if self.tied or self.unsettled:
            return False
        return bool(self.question.check_propensities(self.name).min(initial=1.0) < SMALL)


class FitFacts(WeightFacts):
    """Facts about a fit, its distribution and its options."""

    def __init__(
        self,
        question: PolicyQuestion,
        terms: Sequence[str],
        fit: PolicyFit,
        options: PolicyOptions,
        law: PartsLaw,
    ) -> None:
        super().__init__(question, options.estimator, options.weights, contextual=options.contextual)
        self.terms, self.fit, self.options, self.law = terms, fit, options, law
        self.log, self.logging = question.profile.log, options.logging

    @property
    def _context_free(self) -> bool:
        """Whether weights specific to a policy are computed as if propensities did not depend on contexts."""
        known = self.logging
        return known is not None and known.evaluate is None and not known.lagged and not self.is_combined

    @property
    def contexts_unused(self) -> bool:
        return self._context_free and self.profile.has_contexts

    @property
    def contexts_untold(self) -> bool:
        return self._context_free and not self.profile.has_contexts

    @property
    def outcome_note(self) -> str:
        """A note on the outcome model; with errors by unit, running means leave out a unit's own rounds."""
        model = self.options.outcome
        if model is None:
            return ""
        return (
            model.note if self.fit.units is None or not isinstance(model.values, str) else units.OTHERS_MEAN()
        )

    @property
    def is_of_values(self) -> bool:
        """Whether values have errors by round; if not, the notes on units state the degrees of freedom."""
        return not self.question.contrast and self.fit.units is None

    @property
    def is_of_differences(self) -> bool:
        return self.question.contrast and self.fit.units is None

    @property
    def uniform_of_adaptive(self) -> bool:
        return self.is_uniform and self.profile.adaptive

    @property
    def uniform_difference(self) -> bool:
        """Whether uniform weights replace combined weights, which would make a difference normal."""
        return self.uniform_of_adaptive and self.question.contrast and not self.profile.repeated_units

    @property
    def uniform_value(self) -> bool:
        """Whether uniform weights replace stable-variance weights, which would make a value normal."""
        return self.uniform_of_adaptive and not self.question.contrast and not self.profile.repeated_units

    @property
    def uniform_for_want_of_policies(self) -> bool:
        """Whether weights are uniform because the design's policies at all contexts are unknown."""
        return self.uniform_value and self.options.defaulted and not self.question.settled_logging

    @property
    def combined_by(self) -> dict[str, str]:
        """The source of the propensities that determine combined weights."""
        return {"by": self._forecast} if self.is_combined else {}

    @property
    def _forecast(self) -> str:
        if self.logging is not None:
            return claims.BY_OWN() if self.logging.rows is not None else claims.BY_DESIGN()
        batched = self.log.arrays.batch is not None
        return (claims.BY_BATCH_BEFORE if batched else claims.BY_ROUNDS_BEFORE)(nearest=NEAREST)

    @property
    def by_snapshots(self) -> dict[str, int]:
        known = self.logging
        return {} if known is None or known.evaluate is None else {"snapshots": len(known.starts)}

    @property
    def lagged(self) -> bool:
        return self.logging is not None and self.logging.evaluate is None and self.logging.lagged

    @property
    def burnt_in(self) -> dict[str, int]:
        if not self.is_cadr:
            return {}
        weighted = int(np.count_nonzero(self.fit.rows["weights"], axis=0).min())
        return {"burn_in": self.options.burn_in, "weighted": weighted, "rounds": self.log.n_rounds}

    @property
    def first_without(self) -> bool:
        """Whether the first round has no weight only because contexts are missing."""
        model = self.options.outcome
        by_mean = self.logging is not None and not self.contextual and (model is None or model.start == 0)
        return by_mean and not self.is_cadr and not bool(self.fit.rows["weights"][0].all())

    @property
    def unit_notes(self) -> list[str]:
        """Notes on the basis of errors by unit, or on the reason why there are none."""
        if self.fit.units is None or self.fit.events is None:
            return []
        notes = unit_notes(self.profile, self.profile.n_units, self.log.n_rounds)
        return [*notes, *event_gaps(self.terms, self.fit.events, FEWEST_EVENTS)]

    @cached_property
    def _gone(self) -> list[dict[str, Any]]:
        """Policies with arms that were never chosen."""
        never = self.log._rounds_by_arm() == 0
        arms = ", ".join(str(arm) for arm, gone in zip(self.log.arms, never, strict=True) if gone)
        shares = zip(self.question.policies, self.question.unobserved(), strict=True)
        return [{"policy": one.name, "share": share, "arms": arms} for one, share in shares if share > 0.0]

    @property
    def never_chosen(self) -> list[dict[str, Any]]:
        return [one for one in self._gone if one["share"] >= UNOBSERVED]

    @property
    def left_out(self) -> list[dict[str, Any]]:
        return [one for one in self._gone if one["share"] < UNOBSERVED]

    @property
    def chosen_once(self) -> list[dict[str, Any]]:
        pairs = zip(
            self.question.policies, self.question.unobserved(2), self.question.unobserved(), strict=True
        )
        return [
            {"policy": one.name, "share": share} for one, share, none in pairs if share >= UNOBSERVED > none
        ]

    @property
    def _counted(self) -> BoolArray:
        """Terms with the interval of a sum of events, which is valid even if there are few events."""
        return np.zeros(len(self.terms), dtype=bool) if self.law.counted is None else self.law.counted

    @property
    def constant_scores(self) -> list[dict[str, str]]:
        equal = (np.diag(self.fit.covariance) == 0.0) & ~self._counted
        return [{"term": one} for one, same in zip(self.terms, equal, strict=True) if same]

    @property
    def unweighted(self) -> list[dict[str, str]]:
        if self.fit.ess.max() != 0.0:
            return []
        numbers = zip(self.terms, self.fit.estimate, np.diag(self.fit.covariance), strict=True)
        return [{"term": one} for one, mean, size in numbers if not np.isfinite(mean) and size != 0.0]

    @property
    def _drift_spoils(self) -> bool:
        """Whether each policy has separate weights although rewards were not declared to be free of drift."""
        common = self.allows_drift or (self.question.contrast and self.is_cadr)
        # A trend need not be visible: drift within each day, for instance, leaves none.
        return not (common or self.options.stationary or self.profile.constant_propensities)

    @property
    def own_weights(self) -> dict[str, str]:
        alone = self._drift_spoils and not self.question.contrast
        return {"weights": self.weights or self.options.label} if alone else {}

    @property
    def own_weights_of_pair(self) -> dict[str, str | None]:
        return {"weights": self.weights} if self._drift_spoils and self.question.contrast else {}

    @property
    def differences_move(self) -> list[dict[str, Any]]:
        """Differences that change over time, for which combined weights have another estimand."""
        if not self.is_combined:
            return []
        unit = None if self.fit.units is None else self.profile.units
        found = moving_effects(self.fit.rows["scores"], self.fit.rows["weights"], self.fit.df, unit)
        return [
            {"term": term, "p": p}
            for term, p in zip(self.terms, found, strict=True)
            if p < SEEN / len(self.terms)
        ]

    @property
    def unit_cautions(self) -> list[str]:
        """Reasons why errors by unit may be too small."""
        if self.fit.units is None or self.fit.events is None:
            return []
        counts, model = (self.fit.units, self.fit.events), self.options.outcome
        found = unit_cautions(
            self.profile, self.profile.n_units, self.terms, *counts, uniform=self.is_uniform
        )
        own = model is not None and not isinstance(model.values, str) and model.start > 0
        return [*found, units.OWN_PAST()] if own else found

    @property
    def tiny_propensity(self) -> dict[str, float]:
        least = self.fit.min_propensity.min(initial=1.0)
        return {"least": least, "size": self.fit.ess.min()} if least < TINY_PROPENSITY else {}

    @property
    def few_events(self) -> dict[str, float]:
        """The smallest effective size, if it means few uncommon outcomes that the interval does not count."""
        sizes, rate = self.fit.ess[~self._counted & (self.fit.ess > 0.0)], self.profile.rare_rate
        if rate == 0.0 or not np.any(effective_events(sizes, rate) < FEW_EVENTS):
            return {}
        size = sizes.min()
        return {"size": size, "rate": rate, "worth": effective_events(size, rate), "enough": FEW_EVENTS}

    @property
    def few_effective(self) -> list[dict[str, Any]]:
        fit = self.fit
        cautioned = self._counted if fit.units is None else fit.units < FEW_UNITS
        numbers = zip(self.terms, fit.df + 1.0, np.diag(fit.covariance), cautioned, strict=True)
        return [
            {"term": term, "worth": worth, "enough": FEW_EFFECTIVE}
            for term, worth, variance, told in numbers
            if worth < FEW_EFFECTIVE and variance > 0.0 and not told
        ]
