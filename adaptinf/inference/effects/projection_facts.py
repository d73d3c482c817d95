"""Facts on which claims about projections on covariates depend, for a log with given weights or a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import units
from adaptinf.claims.facts import Fitted
from adaptinf.inference.effects import group_facts
from adaptinf.inference.effects.group_facts import WeightFacts, lagged_by
from adaptinf.inference.scores.unit_errors import FEWEST_EVENTS, units_with, units_with_events
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import SMALL
from adaptinf.inference.validity.units import event_gaps, unit_cautions, unit_notes
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.projections.projection_question import ProjectionQuestion
    from adaptinf.inference.scores.inverse import Fixed
    from adaptinf.inference.scores.outcome_predictions import Outcome
    from adaptinf.inference.validity.rare import PartsLaw


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionFit:
    """Results of a projection, with the options used; df, ess and lowest have shape (p,)."""

    covariance: str
    outcome: Outcome
    law: PartsLaw
    error_gaps: Sequence[str]
    df: FloatArray
    ess: FloatArray
    lowest: FloatArray


class ProjectionFacts(Fitted[ProjectionFit], WeightFacts):
    """Facts about a projection; without a fit, for a row of `recommend`."""

    always = True
    is_projection = True
    pair_shares_drift = True
    question: ProjectionQuestion

    def __init__(self, question: ProjectionQuestion, weights: str, decay: float | None) -> None:
        self.question, self.profile = question, question.profile
        self.weights, self.decay = weights, decay

    @property
    def lacks_decay(self) -> bool:
        return self.weights == "two-point" and self.decay is None

    @property
    def rounds_refusal(self) -> str:
        return refusal(lambda: self.question.chosen)

    @property
    def by_unit(self) -> bool:
        return self.question.unit is not None

    @property
    def averages_by_weight(self) -> bool:
        return not self.is_uniform

    @property
    def fixed_by(self) -> Fixed | None:
        """Which propensities fix combined weights before a context is observed; None if none do."""
        combined = self.question.combined if self.weights == "combined" else None
        return None if combined is None else combined[1]

    @cached_property
    def is_fixed(self) -> bool:
        """Whether weights do not depend on the round's context."""
        return self.is_uniform or self.question.past.free or self.fixed_by is not None

    @property
    def is_saturated(self) -> bool:
        return self.is_fixed and self.question.saturated

    @property
    def is_best_approximation(self) -> bool:
        return self.is_fixed and not self.question.saturated and not self.question.rounds.left_out

    @property
    def rests_on_t_law(self) -> bool:
        return self.is_best_approximation and self.is_uniform

    @property
    def weighed_contexts(self) -> dict[str, str]:
        if self.is_saturated or self.is_best_approximation:
            return {}
        return {"weights": "the rounds used" if self.is_fixed else "the weights"}

    @property
    def formula(self) -> dict[str, str]:
        return {"formula": self.question.formula.strip(), "covariance": self.fit.covariance}

    @property
    def rounds_notes(self) -> Sequence[str]:
        return self.question.rounds.notes

    @property
    def model_note(self) -> str:
        own = not self.by_unit or isinstance(self.fit.outcome.values, np.ndarray)
        return self.fit.outcome.note if own else units.OTHERS_MEAN()

    @cached_property
    def _arms(self) -> list[str]:
        return [str(self.question.control), str(self.question.treatment)]

    @cached_property
    def _units(self) -> tuple[int, int, FloatArray, FloatArray]:
        """Numbers of units and of rounds and, for each arm, of its units and of its units with an event."""
        chosen, unit = self.question.chosen, self.question.unit
        assert unit is not None
        reward = self.profile.log.arrays.reward[self.question.kept]
        events, had = units_with_events(chosen, reward, unit), units_with(chosen, unit)
        return len(np.unique(unit)), len(unit), np.asarray(had, dtype=np.float64), events

    @property
    def has_errors(self) -> bool:
        """Whether enough units have an event, if errors are clustered by unit."""
        return not self.by_unit or bool(self._units[3].min() >= FEWEST_EVENTS)

    @property
    def unit_notes(self) -> list[str]:
        if not self.by_unit:
            return []
        n_units, n_rounds, _, events = self._units
        return [
            *unit_notes(self.profile, n_units, n_rounds),
            *event_gaps(self._arms, events, FEWEST_EVENTS),
        ]

    @property
    def unit_cautions(self) -> list[str]:
        if not self.by_unit:
            return []
        n_units, _, had, events = self._units
        return unit_cautions(self.profile, n_units, self._arms, had, events, uniform=self.is_uniform)

    @property
    def lagged_by(self) -> dict[str, str]:
        return lagged_by(self.fixed_by)

    @property
    def low_propensities(self) -> dict[str, float]:
        lowest = float(self.fit.lowest[0])
        return {"least": lowest} if lowest < SMALL else {}

    @property
    def bare_columns(self) -> list[dict[str, str]]:
        """Indicator columns for which an arm was never observed."""
        x = self.question.covariates.matrix[self.question.kept]
        binary = ((x == 0.0) | (x == 1.0)).all(axis=0)
        bare = binary & ((x.T @ self.question.chosen) == 0.0).any(axis=1)
        names = self.question.covariates.names
        return [{"name": name} for name, flag in zip(names, bare, strict=True) if flag]

    @property
    def error_gaps(self) -> Sequence[str]:
        return self.fit.error_gaps

    @property
    def law_notes(self) -> Sequence[str]:
        return self.fit.law.notes

    @property
    def law_cautions(self) -> Sequence[str]:
        return self.fit.law.cautions

    @property
    def few_effective(self) -> dict[str, Any]:
        return group_facts.few_effective(self.question.covariates.names, self.fit.df, self.fit.law.std_error)

    @property
    def tiny_propensities(self) -> list[dict[str, Any]]:
        return group_facts.tiny_propensities(["the projection"], self.fit.lowest[:1], self.fit.ess[:1])
