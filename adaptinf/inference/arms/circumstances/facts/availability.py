"""What claims ask of arms that could not be chosen in every round."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Finding
from adaptinf.claims.data.availability import OTHER_ELSEWHERE
from adaptinf.inference.arms.circumstances.elsewhere import ALARM, differs_elsewhere
from adaptinf.inference.arms.circumstances.rounds import MOST_TURNS
from adaptinf.inference.scores.inverse import indicators, possible_rounds
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question


class AvailabilityFacts:
    """Rounds in which arms could be chosen.

    `levels` says that arms share their weights, so that each mean is for the rounds of all.
    """

    def __init__(self, question: Question, *, levels: bool = False) -> None:
        self.question, self.profile, self.levels = question, question.profile, levels

    @cached_property
    def _impossible(self) -> bool:
        return bool(np.any(self.profile.impossible[self.question.codes]))

    @cached_property
    def _possible(self) -> BoolArray:
        """Rounds that each arm's estimate uses, shape (T, k); batches of sums, (B, k)."""
        profile, codes = self.profile, self.question.codes
        if profile.sums is not None:
            possible = profile.sums.cells.possible[:, codes]
            joint = possible.all(axis=1, keepdims=True)
            return np.broadcast_to(joint, possible.shape) if self.question.contrast else possible
        chosen = indicators(profile.log.arrays.action, codes)
        known = profile.partial_propensities if profile.propensities is None else profile.propensities
        every = None if known is None else known[:, codes]
        own = np.ones(len(chosen)) if profile.propensity is None else profile.propensity
        return possible_rounds(chosen, own, every, jointly=self.question.contrast)

    @property
    def _arms(self) -> list[str]:
        return [str(self.profile.log.arms[code]) for code in self.question.codes]

    # Why there is nothing to weight

    @property
    def never_drawn(self) -> dict[str, Any]:
        if not self._impossible:
            return {}
        drawn = (self._possible & self._drawn).any(axis=0)
        never = np.flatnonzero(self._possible.any(axis=0) & ~drawn)
        return {"arm": self.profile.log.arms[self.question.codes[never[0]]]} if len(never) else {}

    @property
    def never_together(self) -> dict[str, Any]:
        if not self._impossible or self._possible.any():
            return {}
        return {**self._worst, "arms": "the two arms" if self.question.contrast else "the requested arms"}

    @property
    def taken_away(self) -> dict[str, Any]:
        traits = self.profile.traits
        if not self._impossible or traits is None or not traits.adapts or self._undealt.all():
            return {}
        return {**self._worst, "design": self.profile.design_title}

    @property
    def _worst(self) -> dict[str, Any]:
        """The arm that could least often be chosen."""
        counts, log = self.profile.impossible[self.question.codes], self.profile.log
        worst = int(np.argmax(counts))
        arm = log.arms[self.question.codes[worst]]
        return {"arm": arm, "n": int(counts[worst]), "rounds": log.n_rounds}

    @property
    def _undealt(self) -> BoolArray:
        """Rounds that each arm's estimate uses after those at the start that the calendar dealt out."""
        profile = self.profile
        if profile.traits is None or profile.traits.dealt == 0 or profile.propensity is None:
            return self._possible
        start = profile.propensity[: profile.traits.dealt * profile.log.n_arms] >= 1.0
        return self._possible[len(start) if start.all() else int(np.argmin(start)) :]

    @property
    def _drawn(self) -> BoolArray:
        """Rounds in which each arm was neither sure nor impossible, as far as is known; (T, k), or (B, k)."""
        profile, codes = self.profile, self.question.codes
        if profile.sums is not None:
            spread = profile.sums.cells.spread[:, codes]
            return np.asarray(np.isnan(spread) | (spread > 0.0))
        if profile.propensities is not None:
            every = profile.propensities[:, codes]
            return np.asarray((every > 0.0) & (every < 1.0))
        own = np.ones(1) if profile.propensity is None else profile.propensity
        return np.repeat((own < 1.0)[:, None], len(codes), axis=1)

    # What a fit says

    @property
    def compared_in_common(self) -> bool:
        return self._impossible and self.levels

    @cached_property
    def elsewhere_found(self) -> Finding | None:
        """Whether two arms differ otherwise where a third could not be chosen; None where none can tell."""
        found = differs_elsewhere(self.profile, np.asarray(self.question.codes))
        if found is None:
            return None
        if found.pvalue >= ALARM:
            return Finding()
        arms = self.profile.log.arms
        return Finding((OTHER_ELSEWHERE(one=arms[found.first], other=arms[found.second], p=found.pvalue),))

    @property
    def same_elsewhere(self) -> dict[str, str]:
        if not self._impossible or self.levels:
            return {}
        return {"same": "the difference is" if self.question.contrast else "each mean is"}

    @property
    def left_out(self) -> dict[str, Any]:
        if not self._impossible:
            return {}
        sums, arms = self.profile.sums, self._arms
        size = np.ones(len(self._possible)) if sums is None else sums.cells.rounds
        left = size @ ~self._possible
        if self.question.contrast:
            told, arm = f"{int(left[0])}", f"{arms[0]} or {arms[1]}"
        else:
            told = ", ".join(f"{int(n)} for {arm}" for arm, n in zip(arms, left, strict=True) if n)
            arm = "an arm"
        return {"rounds": self.profile.log.n_rounds, "left": told, "arm": arm}

    @property
    def _several(self) -> bool:
        question = self.question
        apart = not question.contrast and not question.stationary and len(question.codes) > 1
        return self._impossible and apart

    @property
    def different_rounds(self) -> bool:
        return self._several and not self.levels

    @property
    def by_turns(self) -> bool:
        if not self._several or not self.levels or self.profile.fixed_in_time:
            return False
        turned = np.count_nonzero(np.diff(self._possible, axis=0), axis=0)
        return bool(np.any(turned > MOST_TURNS))

    @property
    def gone(self) -> dict[str, str]:
        if not self._impossible or not self.profile.adaptive:
            return {}
        arms = self._arms
        gone = [arm for arm, here in zip(arms, self._undealt.T, strict=True) if _leaves(here)]
        if gone and self.question.contrast:
            gone = arms
        return {"arms": " and ".join(gone)} if gone else {}


def _leaves(possible: BoolArray) -> bool:
    """Whether a round in which an arm was possible comes before one in which it was not; possible (T,)."""
    known = np.flatnonzero(possible)
    return len(known) > 0 and not possible[known[0] :].all()
