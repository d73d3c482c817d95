"""Means of arms over the bins of a locally private trial, based on what its server knows.

References
----------
Ma, Jiang, Zhao, Yang, Yu (2025), "Locally private nonparametric contextual multi-armed bandits with transfer
learning" (the design whose reports these are).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adaptinf.claims import Claim, Part, said
from adaptinf.claims.privacy import bin_means as claims
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.released.bin_mean_facts import BinFacts
from adaptinf.inference.released.bin_tests import (
    AnytimeTest,
    BinReports,
    BudgetTest,
    InvertedTest,
    coins,
    read_reports,
)
from adaptinf.inference.released.pair_effects import refuse_repeated_units
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import FINITE, Count, OneOf, check
from adaptinf.typing import FloatArray


class BinMeans:
    """Expected rewards of arms, averaged over each bin of a locally private trial.

    Parameters
    ----------
    log : AdaptiveLog or PublicLog
        The log of an `LDPBandit`. Only its releases are used: a server does not know the contexts, arms and
        rewards of participants.

    Raises
    ------
    ParameterError
        If the argument is not a log.
    InvalidForLog
        If the log lacks the releases, or two of its arms have labels that look the same.

    Notes
    -----
    There is one term for each bin that was ever active and each of its initial arms. The term is the mean of
    f_k(X) given that X is in the bin, where f_k(x) is the arm's expected reward (clipped to [0, 1]) in
    context x. Contexts X of the trial's participants must be independent and identically distributed.
    Auxiliary logs affect where the bins are, but do not enter the estimates. `Estimand.group` is the bin, as
    pairs (low, high) of its edges.

    Reports on an arm end when the arm is dropped or the bin is halved. As both depend on the same sums, the
    ratio of the sums is not normally distributed around the truth. Two methods account for this:

    * ``"budget"``: the server weights the reports during a bin's life so that their squared weights sum to at
      most 1. If the life ends earlier than planned, a normal random number supplies the remainder. The
      statistic is then asymptotically normal for every term, whatever the stopping rule, and intervals have
      their nominal coverage. For an arm that was dropped early, much of the budget is supplied by the random
      number, and the interval is wide.
    * ``"anytime"``: a supermartingale test, which is valid in finite samples whenever the sums end. This
      method needs no random number. For arms that remained, intervals are wider, and their coverage is above
      nominal.

    Every term has an interval. If the noise swamps the counts, the interval is nearly all of [0, 1] or,
    occasionally, a single point that misses. There is no estimate if the other arms of the bin indicate that
    the count would be less than three standard deviations of its noise. This rule concerns only the ratio;
    intervals are not selected by it.

    Coverage refers to each available term, not to terms selected because of their estimates, because an
    estimate exists, or because of how long reports on them continued.

    The random number is derived from `rng` and all digits of the releases, so it is the same in each analysis
    of a log. An analyst who tries several values of `rng` must not choose among the results.

    Rewards that are not binary have a smaller variance than f (1 - f), which "budget" uses, so its intervals
    are conservative for them.

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.LDPBandit(epsilon=8.0).run(ai.environments.SmoothArms(), horizon=600, rng=0)
    >>> result = ai.BinMeans(log).fit()
    >>> result.conf_int().round(2)
                   low  high
    arm 0, bin 0  0.38  0.92
    arm 1, bin 0  0.31  0.64
    arm 2, bin 0  0.00  0.33
    """

    def __init__(self, log: AdaptiveLog | PublicLog) -> None:
        if not isinstance(log, PublicLog):
            require_log("BinMeans", log, incomplete=True)
        refuse_repeated_units("BinMeans", log)
        self.log = log
        self._reports = read_reports(log)

    def fit(self, *, method: str = "budget", null: float = 0.5, rng: int = 0) -> Results:
        """Compute estimates, tests and intervals.

        Parameters
        ----------
        method : {"budget", "anytime"}
            A test that is asymptotically normal with nominal coverage, or one that is conservative in finite
            samples.
        null : float
            Mean under the null hypothesis.
        rng : int
            Seed for the random number of "budget".

        Returns
        -------
        Results
            Results whose `private` is True. The estimate is sum / count, clipped to [0, 1], where the count
            is taken to be at least one standard deviation of its noise. The interval is not based on the
            estimate, and occasionally excludes it. The interval is the convex hull of the accepted means.
            Details: ``participants``, ``released_count``, and ``spent``, the share of the budget used by
            reports.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        check("BinMeans.fit", method=(method, OneOf(*_METHODS)), rng=(rng, Count(0)), null=(null, FINITE))
        known = self._reports
        spent = known.spent.sum(axis=1)
        with np.errstate(under="ignore"):
            reference = _METHODS[method].fit(known, rng)
        estimate, std_error = _ratio(known)
        terms = tuple(f"arm {arm}, bin {number}" for arm, number in zip(known.arms, known.bins, strict=True))
        facts = BinFacts(terms, spent, rng, estimate, reference)
        return Results(
            model="BinMeans",
            estimands=tuple(
                Estimand("bin-mean", arm=arm, group=_box(low, high))
                for arm, low, high in zip(known.arms, known.low, known.high, strict=True)
            ),
            terms=terms,
            estimate=estimate,
            std_error=std_error,
            reference=reference,
            estimator=method,
            facts=LogFacts.released(self.log),
            validity="exact" if reference.exact else "asymptotic",
            null=float(null),
            details={
                "participants": known.participants,
                "released_count": known.count,
                "spent": spent,
            },
            notes=tuple(said(_METHODS[method].claims, facts)),
            private=True,
        )


def _box(low: FloatArray, high: FloatArray) -> tuple[tuple[float, float], ...]:
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _ratio(known: BinReports) -> tuple[FloatArray, FloatArray]:
    """Ratio of the sums, clipped to [0, 1], and its standard error; NaN if noise may dominate the counts."""
    noise = 2.0 * known.scale**2 * known.participants
    count = np.maximum(known.count, np.sqrt(noise))
    estimate = np.clip(known.total / count, 0.0, 1.0)
    # By the delta method, the error of sum / count is (sum - ratio count) / count, and sum and count have the
    # same noise.
    variance = noise * (1.0 + estimate**2) + count * estimate * (1.0 - estimate)
    clear = known.clear()
    return np.where(clear, estimate, np.nan), np.where(clear, np.sqrt(variance) / count, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _BinMethod:
    """A method to test the means of bins, with the notes under its table."""

    fit: Callable[[BinReports, int], InvertedTest]
    claims: tuple[Claim | Part, ...]


def _budget(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(BudgetTest(known, coins(known, rng)), claims.NORMAL_WITH_COIN(), exact=False)


def _anytime(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(AnytimeTest(known), "anytime-valid mixture", exact=True)


_METHODS = {"budget": _BinMethod(_budget, claims.BUDGET), "anytime": _BinMethod(_anytime, claims.ANYTIME)}
