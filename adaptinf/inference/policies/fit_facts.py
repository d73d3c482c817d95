"""What claims ask of a fit of policy values, or of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import policies as claims
from adaptinf.claims import units
from adaptinf.inference.distributions.shape import uncommon_outcomes
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.policies.contrast_weights import NEAREST
from adaptinf.inference.policies.question import UNOBSERVED, PolicyQuestion
from adaptinf.inference.policies.scores import PolicyFit, PolicyOptions
from adaptinf.inference.policies.weight_facts import WeightFacts
from adaptinf.inference.scores.by_unit.units import FEWEST_EVENTS
from adaptinf.inference.scores.means import effective_events
from adaptinf.inference.scores.moving_effects import SEEN, moving_effects
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, TINY_PROPENSITY
from adaptinf.inference.validity.rare import PartsLaw
from adaptinf.inference.validity.units import FEW_UNITS, event_gaps, unit_cautions, unit_notes


class FitFacts(WeightFacts):
    """What claims ask of a fit, its law and its options."""

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

    # What it assumes of contexts

    @property
    def _context_free(self) -> bool:
        """Whether weights of a policy's own are made of propensities as if these followed no context."""
        known = self.logging
        return known is not None and known.evaluate is None and not known.lagged and not self.is_combined

    @property
    def contexts_unused(self) -> bool:
        return self._context_free and self.profile.has_contexts

    @property
    def contexts_untold(self) -> bool:
        return self._context_free and not self.profile.has_contexts

    # How its numbers were made

    @property
    def outcome_note(self) -> str:
        """What predicts rewards; running means leave out a unit's own rounds where errors are by unit."""
        model = self.options.outcome
        if model is None:
            return ""
        return (
            model.note if self.fit.units is None or not isinstance(model.values, str) else units.OTHERS_MEAN()
        )

    @property
    def is_of_values(self) -> bool:
        """By round; the notes on units tell their degrees of freedom."""
        return not self.question.contrast and self.fit.units is None

    @property
    def is_of_differences(self) -> bool:
        return self.question.contrast and self.fit.units is None

    @property
    def uniform_of_adaptive(self) -> bool:
        return self.is_uniform and self.profile.adaptive

    @property
    def uniform_difference(self) -> bool:
        """Combined weights would be normal; they are no help where they tie units together."""
        return self.uniform_of_adaptive and self.question.contrast and not self.profile.repeated_units

    @property
    def uniform_value(self) -> bool:
        """Stable-variance weights would be normal; they are no help where they tie units together."""
        return self.uniform_of_adaptive and not self.question.contrast and not self.profile.repeated_units

    @property
    def uniform_for_want_of_policies(self) -> bool:
        """Nobody asked for them, and the design's policies at all contexts are unknown."""
        return self.uniform_value and self.options.defaulted and not self.question.settled_logging

    @property
    def combined_by(self) -> dict[str, str]:
        """Whose propensities decide the weights."""
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
        """It is for want of contexts alone that the first round has no weight."""
        model = self.options.outcome
        by_mean = self.logging is not None and not self.contextual and (model is None or model.start == 0)
        return by_mean and not self.is_cadr and not bool(self.fit.rows["weights"][0].all())

    @property
    def unit_notes(self) -> list[str]:
        """What errors by unit rest on, and why there are none."""
        if self.fit.units is None or self.fit.events is None:
            return []
        notes = unit_notes(self.profile, self.profile.n_units, self.log.n_rounds)
        return [*notes, *event_gaps(self.terms, self.fit.events, FEWEST_EVENTS)]

    # Why a number is missing

    @cached_property
    def _gone(self) -> list[dict[str, Any]]:
        """Policies with arms that were never chosen."""
        never = np.bincount(self.log.arrays.action, minlength=self.log.n_arms) == 0
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
    def constant_scores(self) -> list[dict[str, str]]:
        variances = np.diag(self.fit.covariance)
        return [{"term": one} for one, size in zip(self.terms, variances, strict=True) if size == 0.0]

    @property
    def unweighted(self) -> list[dict[str, str]]:
        if self.fit.ess.max() != 0.0:
            return []
        numbers = zip(self.terms, self.fit.estimate, np.diag(self.fit.covariance), strict=True)
        return [{"term": one} for one, mean, size in numbers if not np.isfinite(mean) and size != 0.0]

    # Why numbers may be worth less

    @property
    def _drift_spoils(self) -> bool:
        """Whether each policy has weights of its own, where nobody says that rewards stay."""
        common = self.allows_drift or (self.question.contrast and self.is_cadr)
        # No trend has to show: a drift by the hour has none.
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
        """Differences that are seen to move, so that combined weights and the period answer two questions."""
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
        """Why errors by unit may be too small."""
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
        """The smallest effective size is worth few outcomes other than the commonest."""
        reward, sizes = self.profile.rewards, self.fit.ess[self.fit.ess > 0.0]
        uncommon = float(uncommon_outcomes(np.zeros(len(reward), dtype=np.int64), reward, 1)[0])
        rate = uncommon / max(len(reward), 1)
        if not 0.0 < rate < 1.0 or not np.any(effective_events(sizes, rate) < FEW_EVENTS):
            return {}
        size = sizes.min()
        return {"size": size, "rate": rate, "worth": effective_events(size, rate), "enough": FEW_EVENTS}

    @property
    def few_effective(self) -> list[dict[str, Any]]:
        fit = self.fit
        few_units = np.zeros(len(self.terms), dtype=bool) if fit.units is None else fit.units < FEW_UNITS
        numbers = zip(self.terms, fit.df + 1.0, np.diag(fit.covariance), few_units, strict=True)
        return [
            {"term": term, "worth": worth, "enough": FEW_EFFECTIVE}
            for term, worth, variance, cautioned in numbers
            if worth < FEW_EFFECTIVE and variance > 0.0 and not cautioned
        ]
