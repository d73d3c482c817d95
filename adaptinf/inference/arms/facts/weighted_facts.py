"""Facts on which claims about inverse weighting depend, for a log with given weights and for a fit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Finding, first, said
from adaptinf.claims.arms import weighted_arms as claims
from adaptinf.claims.data import availability
from adaptinf.claims.propensities import ROUND_BEFORE, SAME_ROUND, UNSETTLED
from adaptinf.inference.arms.data import arms_by_unit, arms_of_sums, weight_propensities
from adaptinf.inference.arms.data.covariate_adjustment import moved_covariates
from adaptinf.inference.arms.data.data_facts import AvailabilityFacts, was_filled
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.scores.joint_levels import JOINT, too_many
from adaptinf.inference.scores.moving_effects import SEEN
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.inference.validity.units import FEW_UNITS

if TYPE_CHECKING:
    from adaptinf.claims.claim import Kind
    from adaptinf.inference.arms.question import ArmFit, Question

COMMON = "combined"
"""One weight per round for both arms of a contrast, or for all arms of a table."""
OWN = ("two-point", "sqrt")
"""Separate weights for each arm."""
_FEW_ARMS = 3
"""Largest number of arms for which all pairs are compared in any log that fits in memory."""


class WeightedFacts(ArmFacts):
    """Facts about inverse weighting with given weights; without a fit, for a row of `recommend`."""

    def __init__(
        self,
        question: Question,
        weights: str | None,
        *,
        decay: float | None = None,
        augmented: bool = True,
        fit: ArmFit | None = None,
        test: str = "",
    ) -> None:
        super().__init__(question, fit, test)
        self.weights, self.decay, self.unaugmented = weights or "uniform", decay, not augmented
        self.is_uniform, self.is_sqrt = self.weights == "uniform", self.weights == "sqrt"
        self.is_two_point, self.is_combined = self.weights == "two-point", self.weights == COMMON
        self.is_joint, self.means_stay = self.weights == JOINT, self.weights in OWN
        self.pair_shares_drift = question.contrast and not self.means_stay

    @property
    def lacks_propensities(self) -> bool:
        return not self.profile.knows_propensities

    @property
    def availability_refusal(self) -> str:
        return first(availability.NEEDS, self._availability) if self._some_impossible else ""

    @property
    def lacks_decay(self) -> bool:
        return self.weights == "two-point" and self.decay is None and self.profile.may_weigh_rounds

    @property
    def lacks_every_propensity(self) -> bool:
        return not self.is_uniform and not self.profile.knows_every_propensity

    @property
    def sums_refusal(self) -> str:
        if self.is_uniform or self.profile.sums is None:
            return ""
        return arms_of_sums.weights_refusal(self.profile, self.weights)

    @property
    def ties_units(self) -> bool:
        return self.weights == JOINT and self.profile.repeated_units

    @property
    def mixes_ends(self) -> bool:
        return self.weights == JOINT and was_filled(self.profile.log)

    @property
    def incomplete_by_unit(self) -> bool:
        return self.profile.repeated_units and self.profile.incomplete

    @property
    def no_shared_weights(self) -> str:
        if self.weights not in (COMMON, JOINT) or self._even_where_common:
            return ""
        return self.profile.no_shared_weights

    @cached_property
    def _even_where_common(self) -> bool:
        asked = self.is_joint and bool(self.profile.no_shared_weights)
        return asked and weight_propensities.fixed_by(self.question) == "availability"

    @property
    def mixes_contexts(self) -> bool:
        return self.weights in OWN and self.profile.decides_by_context

    @property
    def unsettled(self) -> bool:
        return self.profile.moves and (self.is_uniform or self._even_where_common)

    @property
    def uniform_without_adaptation(self) -> bool:
        return self.is_uniform and not self.profile.moves

    @property
    def uniform_without_contexts(self) -> bool:
        return self.unsettled and not self.profile.context_may_move

    @property
    def uniform_for_contexts(self) -> dict[str, str]:
        if not (self.is_uniform and self.profile.context_may_move):
            return {}
        return {"contexts": self.profile.context_names, "unsettled": UNSETTLED()}

    @property
    def small_propensities(self) -> bool:
        least = self.profile.smallest_propensity[self.question.codes].min(initial=1.0)
        small = not self.is_uniform and not self.tied and self.profile.adaptive and least < SMALL
        return bool(small)

    @property
    def tied(self) -> bool:
        return self.profile.repeated_units and not self.is_uniform and self.profile.moves

    @property
    def table_shares_drift(self) -> bool:
        return not self.question.contrast and self.weights in (COMMON, JOINT)

    @property
    def averages_equally(self) -> bool:
        return self.pair_shares_drift and self.is_uniform

    @property
    def averages_by_weight(self) -> bool:
        return self.weights == COMMON or (self.pair_shares_drift and not self.is_uniform)

    @property
    def means_of_own_rounds(self) -> bool:
        return self.is_uniform and not self.question.contrast

    @property
    def contexts_unused(self) -> bool:
        return self.is_two_point and not self.profile.context_free and not self.has_fit

    @property
    def contexts_untold(self) -> bool:
        log = self.profile.log
        return self.is_two_point and self.has_fit and not log.context and log.context_free is None

    @property
    def drift_untested(self) -> bool:
        return self.means_stay and super().drift_untested

    @property
    def no_trend(self) -> dict[str, str]:
        return super().no_trend if self.means_stay else {}

    @property
    def mix_may_move(self) -> bool:
        return self.means_stay and super().mix_may_move

    @cached_property
    def _some_impossible(self) -> bool:
        """Whether an arm could not be chosen in some rounds."""
        return bool(np.any(self.profile.impossible[self.question.codes]))

    @cached_property
    def _availability(self) -> AvailabilityFacts:
        return AvailabilityFacts(self.question, levels=self.weights in (JOINT, COMMON))

    def _of_availability(self, kind: Kind) -> list[str]:
        return said(availability.FIT, self._availability, kind) if self._some_impossible else []

    @property
    def availability_assumes(self) -> list[str]:
        return self._of_availability("assumes")

    @property
    def availability_notes(self) -> list[str]:
        return self._of_availability("note")

    @property
    def availability_cautions(self) -> list[str]:
        return self._of_availability("caution")

    @property
    def adjusted_by(self) -> dict[str, str]:
        names = () if self.fit.outcome is None else self.fit.outcome.covariates
        return {"names": ", ".join(names)} if names else {}

    @property
    def covariates_found(self) -> Finding | None:
        outcome = self.fit.outcome
        return None if outcome is None else moved_covariates(self.profile, outcome.covariates)

    @property
    def unit_notes(self) -> list[str]:
        return [] if self.fit.by_unit is None else arms_by_unit.fit_notes(self.question, self.fit)

    @property
    def unit_cautions(self) -> list[str]:
        return [] if self.fit.by_unit is None else arms_by_unit.fit_cautions(self.question, self.fit)

    @property
    def outcome_notes(self) -> tuple[str, ...]:
        outcome = self.fit.outcome if self.fit.by_unit is None else None
        return () if outcome is None else (*outcome.notes, outcome.note)

    @property
    def outcome_assumes(self) -> tuple[str, ...]:
        return () if self.fit.outcome is None else self.fit.outcome.assumes

    @property
    def outcome_cautions(self) -> tuple[str, ...]:
        return () if self.fit.outcome is None else self.fit.outcome.cautions

    @property
    def chosen_alone(self) -> bool:
        return not self.profile.knows_every_propensity and not self.profile.rules_out

    @property
    def chosen_alone_in_batches(self) -> bool:
        return not self.profile.knows_every_propensity and self.profile.rules_out

    @property
    def joint_by(self) -> dict[str, str]:
        pairs = claims.AGAINST_ONE() if self._against_one else "all pairs of arms"
        return {"pairs": pairs, **self._fixed_by} if self.is_joint else {}

    @property
    def _against_one(self) -> bool:
        """Whether there are too many arms and rounds for a comparison of every pair."""
        size = len(self.question.codes)
        return size > _FEW_ARMS and too_many(size, self.profile.n_pieces)

    @property
    def _fixed_by(self) -> dict[str, str]:
        settled = self.is_joint and self.profile.fixed_in_time
        return {"by": SAME_ROUND() if settled else weight_propensities.fixed_propensities(self.question)}

    @property
    def combined_by(self) -> dict[str, str]:
        return self._fixed_by if self.is_combined else {}

    @property
    def uniform_of_adaptive(self) -> dict[str, str]:
        adaptive = self.is_uniform and self.profile.adaptive and not self.profile.context_may_move
        return {"unsettled": UNSETTLED()} if adaptive else {}

    @property
    def lagged(self) -> dict[str, str]:
        """Whether each arm's weights are based on the propensities of the previous round."""
        return {"by": ROUND_BEFORE()} if self.is_sqrt and lags(self.question) else {}

    @property
    def two_point_by_context(self) -> dict[str, str]:
        named = self.is_two_point and self.profile.log.context and not self.profile.context_free
        return {"contexts": self.profile.context_names} if named else {}

    @property
    def two_point_decay(self) -> dict[str, float | None]:
        return {"decay": self.decay} if self.is_two_point else {}

    @property
    def _may_drift(self) -> bool:
        """Whether means may drift, which by the hour would make even equal arms appear different."""
        return self.means_stay and not self.stationary

    @property
    def own_weights_unstated(self) -> dict[str, str]:
        unstated = self._may_drift and not self.question.contrast
        return {"weights": self.weights} if unstated else {}

    @property
    def own_weights_of_pair_unstated(self) -> dict[str, str]:
        unstated = self._may_drift and self.question.contrast
        return {"weights": self.weights} if unstated else {}

    @property
    def difference_moves(self) -> dict[str, float]:
        """P-value of a change in the difference over time, whose average would depend on the weights."""
        question = self.question
        shared = question.contrast and self.is_combined and not self.profile.repeated_units
        if not shared or np.any(self.fit.pulls == 0.0):
            return {}
        p = self.fit.movement
        return {"p": p} if p < SEEN / question.family else {}

    @property
    def few_effective(self) -> list[dict[str, Any]]:
        fit = self.fit
        # If there are fewer, another caution already says so.
        many = fit.pulls > 1 if fit.by_unit is None else fit.by_unit.units >= FEW_UNITS
        return [
            {"term": label, "worth": n, "enough": FEW_EFFECTIVE}
            for label, n, counts in zip(fit.labels, fit.degrees + 1.0, many, strict=True)
            if n < FEW_EFFECTIVE and counts
        ]

    @property
    def tiny_propensities(self) -> dict[str, float]:
        tiny = self.fit.min_propensity < TINY_PROPENSITY
        if not np.any(tiny):
            return {}
        return {"least": np.min(self.fit.min_propensity[tiny]), "size": np.min(self.fit.ess[tiny])}


def lags(question: Question) -> bool:
    """Whether each arm's weights are based on the propensities of the previous round."""
    return not question.profile.fixed_before_contexts[question.codes].all()
