"""What claims ask of rewards that are missing, or late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.scores.missing import observed_counts

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.log import AdaptiveLog
    from adaptinf.typing import BoolArray

_DIFFERENT = 0.01
"""P-value below which arms are said to differ in the share of missing rewards."""


def shares_of(log: AdaptiveLog) -> dict[str, str]:
    """How many rewards are missing, by arm."""
    observed = log.arrays.observed
    if observed is None:
        return {}
    drawn = np.bincount(log.arrays.action, minlength=log.n_arms)
    gone = np.bincount(log.arrays.action[~observed], minlength=log.n_arms)
    shares = ", ".join(
        f"{arm} {lost / rounds:.1%} ({lost} of {rounds})" if rounds else f"{arm} never chosen"
        for arm, lost, rounds in zip(log.arms, gone.tolist(), drawn.tolist(), strict=True)
    )
    return {"shares": shares}


class MissingRewardsFacts:
    """Scores of rounds whose reward is observed and known.

    `used` and `left_out` are the contexts that make strata of the shares observed, and those of too many
    values; `ready` (T, k) are the rounds with a weight.
    """

    def __init__(
        self, question: Question, used: Sequence[str], left_out: Sequence[str], ready: BoolArray
    ) -> None:
        self.question, self.profile, self.log = question, question.profile, question.profile.log
        self._used, self._left_out, self._ready = used, left_out, ready

    @property
    def estimates_shares(self) -> bool:
        """Nobody states the probabilities to observe a reward."""
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
        from scipy.stats import chi2_contingency  # scipy.stats loads when needed: longer than a first table

        found = chi2_contingency(table, correction=False)
        if not found.pvalue < _DIFFERENT:
            return {}
        return {"statistic": found.statistic, "df": found.dof, "p": found.pvalue}
