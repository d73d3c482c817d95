"""Contrasts of several arms with one control: the scores of all pairs are computed in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.scores.means import FEW_SCORES, ScoreMeans
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.inference.scores.outcome_predictions import Outcome
    from adaptinf.inference.validity.profile import LogProfile


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of a table; codes has shape (P, 2), and the second column is the control."""

    profile: LogProfile
    codes: IntArray
    at_once: bool = True
    _scores: dict[tuple[str | None, bool], tuple[ScoreMeans, ...]] = field(default_factory=dict, init=False)

    def means(
        self, profile: LogProfile, pair: IntArray, weights: str | None, model: Outcome | None
    ) -> ScoreMeans | None:
        """Estimates of both means of a pair, from one pass for all pairs; None if that is not possible."""
        if not self.at_once or profile is not self.profile or not self._serves(weights, model):
            return None
        place = int(np.flatnonzero(self.codes[:, 0] == pair[0])[0])
        return self._of(weights, running=model is not None)[place]

    def _serves(self, weights: str | None, model: Outcome | None) -> bool:
        """Whether a single pass is used: for long logs, running means, and weights known in each round."""
        profile = self.profile
        if profile.sums is not None or profile.propensities is None or profile.repeated_units:
            return False
        if model is not None and (model.seen is not None or not isinstance(model.values, str)):
            return False
        if profile.log.n_rounds * self.codes.size <= FEW_SCORES:
            return False
        return weights == "uniform" or (weights == "combined" and self._by_rounds())

    def _by_rounds(self) -> bool:
        """Whether the combined weights of every pair are based on the propensities of the same round."""
        profile = self.profile
        batched = profile.log.arrays.batch is not None
        settled = batched and profile.fixed_before_contexts[np.unique(self.codes)].all()
        return profile.fixed_in_time or bool(settled)

    def _of(self, weights: str | None, *, running: bool) -> tuple[ScoreMeans, ...]:
        key = weights, running
        if key not in self._scores:
            from adaptinf.inference.scores.pair_scores import pair_scores  # Numba is loaded when it pays

            profile, arrays = self.profile, self.profile.log.arrays
            assert profile.propensity is not None
            assert profile.propensities is not None
            columns = (arrays.action, arrays.reward, profile.propensity, profile.propensities)
            time, uniform = times_of(profile.log.n_rounds, arrays.batch), weights == "uniform"
            self._scores[key] = pair_scores(columns, self.codes, time, uniform=uniform, running=running)
        return self._scores[key]
