"""What `CATE.from_formula` asks of a log: the rounds, covariates and weights of a projection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import propensities
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog
from adaptinf.inference.effects.effect_weights import Past, combined_weights, contrast_weights, past_of
from adaptinf.inference.effects.group_question import Rounds, arm_pair, arm_propensities, weightable_rounds
from adaptinf.inference.effects.group_scores import group_codes
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.formulas import CovariateModel, covariate_model
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.scores.inverse import Fixed, indicators
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ProjectionQuestion:
    """An arm's effect over another as a function of covariates; marked (T,), pair (2,), control first."""

    profile: LogProfile
    formula: str
    covariates: CovariateModel
    treatment: Any
    control: Any
    marked: BoolArray | None
    pair: IntArray

    @cached_property
    def propensities(self) -> FloatArray | None:
        """Propensities of both arms in every round, as far as the log contains them; shape (T, 2)."""
        return arm_propensities(self.profile, self.pair)

    @cached_property
    def rounds(self) -> Rounds:
        """The rounds in which both arms could be chosen."""
        log = self.profile.log
        if log.arrays.propensity is None:
            raise InvalidForLog("aipw", propensities.NEEDED(), [claims.GROUPS_INSTEAD()])
        return weightable_rounds(self.profile, self.marked, self.propensities)

    @property
    def kept(self) -> IntArray:
        """Indices of the rounds that are used, shape (n,)."""
        return np.flatnonzero(self.rounds.keep)

    @cached_property
    def unit(self) -> IntArray | None:
        """Units of the rounds that are used, shape (n,); None if every unit has one round."""
        units, keep = self.profile.units, self.rounds.keep
        return None if units is None or not self.profile.repeats_in(keep) else units[keep]

    @cached_property
    def chosen(self) -> FloatArray:
        """Indicators of the arm that was chosen in each round that is used, shape (n, 2)."""
        chosen = indicators(self.profile.log.arrays.action, self.pair)[self.kept]
        counts = chosen.sum(axis=0)
        empty = [repr(arm) for arm, n in zip((self.control, self.treatment), counts, strict=True) if n == 0]
        if empty:
            reason = claims.NEVER_CHOSEN(arms=" and ".join(empty))
            raise InvalidForLog(
                "a projection of the effect", reason, ["other rounds (rounds=)", "other arms"]
            )
        return chosen

    @cached_property
    def saturated(self) -> bool:
        """Whether the formula contains a separate effect for every combination of contexts."""
        columns = [values[self.rounds.keep] for values in self.profile.log.arrays.context.values()]
        width = len(self.covariates.names)
        # Counting distinct rows of continuous contexts is slow, so columns with too many values are ruled out
        # first.
        if any(len(np.unique(column)) > width for column in columns if column.dtype.kind in "fiub"):
            return False
        return len(group_codes(columns)[1]) == width

    @cached_property
    def past(self) -> Past:
        """What was known before the contexts of each round used, except its cell in saturated formulas."""
        contexts, kept = self.profile.log.arrays.context, self.kept
        cell = np.zeros(len(kept), dtype=np.int64)
        if self.saturated:
            cell = group_codes([values[kept] for values in contexts.values()])[0]
        return past_of(self.profile, cell, self.rounds.keep, others=not self.saturated)

    @cached_property
    def combined(self) -> tuple[FloatArray, Fixed] | None:
        """Combined weights, shape (n,), that do not depend on the round's context, and their source."""
        if self.propensities is None:
            return None
        movers = not (self.profile.context_free or self.saturated)
        return combined_weights(self.propensities[self.kept], self.past, movers=movers)

    @property
    def default_weights(self) -> str:
        """Combined weights, or uniform ones if combined weights could change the estimand or link units."""
        return "uniform" if self.combined is None or self.unit is not None else "combined"

    def weights(self, kind: str, decay: float | None) -> FloatArray:
        """Weights for the rounds that are used, shape (n,), which both arms share."""
        both, kept = self.propensities, self.kept
        if both is None:
            if kind != "uniform":
                method = f"a projection with {kind} weights"
                raise InvalidForLog(method, effects.LACKS_BOTH_PROPENSITIES(), ["uniform weights"])
            return np.ones(len(kept))
        if kind == "combined" and self.combined is not None:
            return self.combined[0]
        return contrast_weights(both, kind, decay)[kept]

    @property
    def alternatives(self) -> list[str]:
        """The alternatives that error messages should suggest."""
        return [effects.MARK_THE_ROUNDS(), *([] if self.profile.log.releases.empty else ["released"])]


def projection_question(
    formula: str, log: AdaptiveLog, treatment: Any, control: Any, rounds: Any, trusted: bool = False
) -> ProjectionQuestion:
    """Check and complete the user's request."""
    require_log("CATE.from_formula", log)
    treatment, control, problems = arm_pair(log, treatment, control)
    if not log.context:
        problems.append("the log has no context columns for a formula: pass context= when creating the log")
    refuse("CATEProjection", [*problems, *BOOLEAN("trusted", trusted)])
    covariates = covariate_model("CATEProjection", formula, log, trusted=trusted)
    marked = round_mask("CATE", log, rounds)
    pair = np.array([log.arms.index(control), log.arms.index(treatment)])
    return ProjectionQuestion(profile_of(log), formula, covariates, treatment, control, marked, pair)
