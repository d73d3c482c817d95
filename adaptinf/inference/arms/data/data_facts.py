"""Facts on which claims about changing arms, missing or late rewards, releases and sums depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Finding
from adaptinf.claims.data.availability import OTHER_ELSEWHERE
from adaptinf.inference.arms.data.arm_availability import ALARM, differs_elsewhere
from adaptinf.inference.arms.data.weight_propensities import changes_often
from adaptinf.inference.arms.question import Question
from adaptinf.inference.scores.missing import (
    observed_counts,
)
from adaptinf.log.traits import ADDED
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums


class AvailabilityFacts:
    """Facts about the rounds in which arms could be chosen, if one of the arms was sometimes unavailable.

    If `levels` is true, the arms share their weights, so each mean refers to the rounds of all arms.
    """

    def __init__(self, question: Question, *, levels: bool = False) -> None:
        self.question, self.profile, self.levels = question, question.profile, levels

    @cached_property
    def _possible(self) -> BoolArray:
        """The rounds (for sums, the batches) that the estimate of each arm uses, shape (T or B, k)."""
        return self.profile.possible(self.question.codes, jointly=self.question.contrast)

    @property
    def _arms(self) -> list[str]:
        return [str(self.profile.log.arms[code]) for code in self.question.codes]

    @property
    def never_drawn(self) -> dict[str, Any]:
        drawn = (self._possible & self.profile.drawn(self.question.codes)).any(axis=0)
        never = np.flatnonzero(self._possible.any(axis=0) & ~drawn)
        return {"arm": self.profile.log.arms[self.question.codes[never[0]]]} if len(never) else {}

    @property
    def never_together(self) -> dict[str, Any]:
        if self._possible.any():
            return {}
        return {**self._worst, "arms": "the two arms" if self.question.contrast else "the requested arms"}

    @property
    def taken_away(self) -> dict[str, Any]:
        traits = self.profile.traits
        if traits is None or not traits.adapts or (self._undealt | self._unjoined).all():
            return {}
        return {**self._worst, "design": self.profile.design_title}

    @property
    def _worst(self) -> dict[str, Any]:
        """The arm that was available least often."""
        counts, log = self.profile.impossible[self.question.codes], self.profile.log
        worst = int(np.argmax(counts))
        arm = log.arms[self.question.codes[worst]]
        return {"arm": arm, "n": int(counts[worst]), "rounds": log.n_rounds}

    @property
    def _undealt(self) -> BoolArray:
        """The rounds that each arm's estimate uses, except initial rounds assigned by a fixed schedule."""
        return self._possible[dealt_rounds(self.profile) :]

    @property
    def _unjoined(self) -> BoolArray:
        """The rounds of `_undealt` before an arm joined; later rounds are not selected by rewards."""
        undealt, design = self._undealt, self.profile.log.design
        joined = {} if design is None else dict(design.parameters.get(ADDED, ()))
        if not joined or len(self._possible) != self.profile.log.n_rounds:
            return np.zeros_like(undealt)
        first = np.array([joined.get(self.profile.log.arms[code], 0) for code in self.question.codes])
        if self.question.contrast or self.levels:
            first = np.full(undealt.shape[1], first.max())
        rounds = np.arange(len(self._possible) - len(undealt), len(self._possible))
        return np.asarray(rounds[:, None] < first, dtype=bool)

    @property
    def compared_in_common(self) -> bool:
        return self.levels

    @cached_property
    def elsewhere_found(self) -> Finding | None:
        """Whether two arms differ by another amount when a third is unavailable; None if not testable."""
        found = differs_elsewhere(self.profile, np.asarray(self.question.codes))
        if found is None:
            return None
        if found.pvalue >= ALARM:
            return Finding()
        arms = self.profile.log.arms
        return Finding((OTHER_ELSEWHERE(one=arms[found.first], other=arms[found.second], p=found.pvalue),))

    @property
    def same_elsewhere(self) -> dict[str, str]:
        if self.levels:
            return {}
        return {"same": "the difference is" if self.question.contrast else "each mean is"}

    @property
    def left_out(self) -> dict[str, Any]:
        left, arms = self.profile.piece_sizes @ ~self._possible, self._arms
        if self.question.contrast:
            told, arm = f"{int(left[0])}", f"{arms[0]} or {arms[1]}"
        else:
            told = ", ".join(f"{int(n)} for {arm}" for arm, n in zip(arms, left, strict=True) if n)
            arm = "an arm"
        return {"rounds": self.profile.log.n_rounds, "left": told, "arm": arm}

    @property
    def _several(self) -> bool:
        question = self.question
        return not question.contrast and not question.stationary and len(question.codes) > 1

    @property
    def different_rounds(self) -> bool:
        return self._several and not self.levels

    @property
    def by_turns(self) -> bool:
        if not self._several or not self.levels or self.profile.fixed_in_time:
            return False
        return changes_often(self._possible)

    @property
    def gone(self) -> dict[str, str]:
        if not self.profile.adaptive:
            return {}
        arms = self._arms
        gone = [arm for arm, here in zip(arms, self._undealt.T, strict=True) if _leaves(here)]
        if gone and self.question.contrast:
            gone = arms
        return {"arms": " and ".join(gone)} if gone else {}


def dealt_rounds(profile: LogProfile) -> int:
    """Number of initial rounds that the design assigned by a fixed schedule."""
    if profile.traits is None or profile.traits.dealt == 0 or profile.propensity is None:
        return 0
    start = profile.propensity[: profile.traits.dealt * profile.log.n_arms] >= 1.0
    return len(start) if start.all() else int(np.argmin(start))


def _leaves(possible: BoolArray) -> bool:
    """Whether an arm was possible in some round and impossible in a later one; possible has shape (T,)."""
    known = np.flatnonzero(possible)
    return len(known) > 0 and not possible[known[0] :].all()


_DIFFERENT = 0.01
"""Arms are reported to differ in their shares of missing rewards if the p-value is below this threshold."""


def shares_of(log: AdaptiveLog) -> dict[str, str]:
    """The share and the number of missing rewards for each arm."""
    observed = log.arrays.observed
    if observed is None:
        return {}
    drawn = log._rounds_by_arm()
    gone = np.bincount(log.arrays.action[~observed], minlength=log.n_arms)
    shares = ", ".join(
        f"{arm} {lost / rounds:.1%} ({lost} of {rounds})" if rounds else f"{arm} never chosen"
        for arm, lost, rounds in zip(log.arms, gone.tolist(), drawn.tolist(), strict=True)
    )
    return {"shares": shares}


FILLED = "rewards that were observed"
"""Key under which a log whose missing rewards were replaced records which rewards were observed."""


def at_one_end(log: AdaptiveLog, values: float | Mapping[Any, float]) -> AdaptiveLog:
    """A log with missing rewards set to one end of their range, and a record of the observed rewards."""
    filled = log.filled(values)
    filled.kept[FILLED] = log.arrays.observed
    return filled


def was_filled(log: AdaptiveLog) -> bool:
    """Whether a log's missing rewards were set to one end of their range."""
    return FILLED in log.kept


class MissingRewardsFacts:
    """Facts about scores that use only rounds whose rewards are observed and known.

    The contexts in `used` define strata of the observed shares; those in `left_out` have too many values.
    `ready`, with shape (T, k), marks the rounds that have a weight.
    """

    def __init__(
        self, question: Question, used: Sequence[str], left_out: Sequence[str], ready: BoolArray
    ) -> None:
        self.question, self.profile, self.log = question, question.profile, question.profile.log
        self._used, self._left_out, self._ready = used, left_out, ready

    @property
    def estimates_shares(self) -> bool:
        """Whether the probabilities of observing a reward are estimated, because none are stated."""
        return self.log.arrays.observed is not None and self.log.arrays.observation is None

    @property
    def as_stated(self) -> bool:
        return self.log.arrays.observed is not None and self.log.arrays.observation is not None

    @property
    def at_random(self) -> dict[str, str]:
        given = f"the arm and {', '.join(self._used)}" if self._used else "the arm"
        return {"given": given} if self.estimates_shares else {}

    @property
    def shares(self) -> dict[str, str]:
        return shares_of(self.log)

    @property
    def left_out(self) -> dict[str, str]:
        return {"names": ", ".join(self._left_out)} if self.estimates_shares and self._left_out else {}

    @property
    def weighted(self) -> dict[str, str]:
        within = f" in strata of {', '.join(self._used)}" if self._used else ""
        return {"within": within} if self.estimates_shares else {}

    @property
    def before_observed(self) -> dict[str, int]:
        if not self.estimates_shares:
            return {}
        return {"n": int(np.max(np.count_nonzero(~self._ready, axis=0)))}

    @property
    def before_known(self) -> bool:
        return self.log.arrays.observed is None

    @property
    def shares_differ(self) -> dict[str, Any]:
        observed = self.log.arrays.observed
        if observed is None or not self.estimates_shares:
            return {}
        drawn, seen = observed_counts(self.log.arrays.action, observed, self.log.n_arms)
        table = np.array([seen, drawn - seen])[:, self.question.codes]
        table = table[:, table.sum(axis=0) > 0.0]
        if table.shape[1] < 2 or np.any(table.sum(axis=1) == 0.0):
            return {}
        # scipy.stats takes longer to load than the first table takes without it.
        from scipy.stats import chi2_contingency

        found = chi2_contingency(table, correction=False)
        if not found.pvalue < _DIFFERENT:
            return {}
        return {"statistic": found.statistic, "df": found.dof, "p": found.pvalue}


class ReleasedPairFacts:
    """Facts for a pair of the log's arms."""

    def __init__(self, question: Question) -> None:
        self.question, self.profile = question, question.profile

    @property
    def contexts_found(self) -> None:
        """None, because a table of releases cannot show findings that require rows."""

    @property
    def means_stay(self) -> bool:
        return True

    @property
    def drift_found(self) -> None:
        """None, because a table of releases reveals nothing about the rewards behind them."""

    @property
    def several_pairs(self) -> bool:
        return self.profile.log.n_arms > 2


_FEW_IN_A_BATCH = 10
"""Number of an arm's rounds in a batch below which its share estimates its propensity poorly."""


class SumsWeightsFacts:
    """Facts about weights that may not be available for sums."""

    def __init__(self, profile: LogProfile, weights: str) -> None:
        self.profile, self.weights = profile, weights

    @property
    def totals_by_unit(self) -> bool:
        return self.profile.repeated_units

    @property
    def weights_by_round(self) -> bool:
        return self.weights == "two-point"

    @property
    def moves_within_batches(self) -> bool:
        moving = np.any(self.profile.moving_batches) or not self.profile.fixed_before_contexts.all()
        return self.weights == "sqrt" and bool(moving)


class SumsFacts:
    """Facts about estimates of arm means from sums."""

    def __init__(self, question: Question, sums: Sums) -> None:
        self.question, self.profile, self.sums = question, question.profile, sums

    @property
    def read(self) -> dict[str, Any]:
        return self.profile.read_facts()

    @property
    def without_batches(self) -> bool:
        return not self.sums.batched and self.sums.adaptive is not False

    @property
    def shape_unknown(self) -> bool:
        return not self.profile.knows_skewness and not self.profile.knows_rarity

    @property
    def skewness_unknown(self) -> bool:
        return not self.profile.knows_skewness and self.profile.knows_rarity

    @property
    def few_in_a_batch(self) -> dict[str, int]:
        if not self.sums.shares:
            return {}
        # Batches without rounds of an arm are left out of its mean.
        counts = self.sums.cells.pulls[:, self.question.codes]
        least = int(counts.min(where=counts > 0.0, initial=_FEW_IN_A_BATCH))
        return {"n": least, "enough": _FEW_IN_A_BATCH} if least < _FEW_IN_A_BATCH else {}
