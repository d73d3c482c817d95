"""Means of arms over the bins of a locally private trial, from what its server knows.

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
        Of `LDPBandit`. Its releases alone are read: contexts, arms and rewards of participants are not
        among what a server has.

    Raises
    ------
    ParameterError
        If it is not a log.
    InvalidForLog
        If the log does not have the releases, or two of its arms read the same.

    Notes
    -----
    There is one term for each bin that was ever active and each arm that it began with. It estimates
    E[f_k(X) | X in the bin], f_k(x) being the arm's expected reward (clipped to [0, 1]) in context x, over
    the law of the contexts of the trial's participants, whose contexts must be independent and of one law.
    Auxiliary logs have a say in where the bins are, and none in the estimates. `Estimand.group` is the bin,
    as pairs (low, high) of its edges.

    Reports on an arm end when the arm is dropped or the bin is halved, which follows from the same sums, so
    the ratio of the sums is not normal about the truth. Two methods allow for it:

    * ``"budget"``: the server weighs the reports of a bin's life so that their squared weights add up to at
      most 1; where the life ends sooner than planned, what is missing is filled up by a normal coin. The
      statistic is then normal in the limit for every term, whatever stops it. Intervals have their nominal
      coverage. Of an arm that was dropped early much is left to the coin, and the interval is wide.
    * ``"anytime"``: a supermartingale test, valid in finite samples whenever the sums end. No coin; wider
      intervals, with coverage above the nominal one, for arms that stayed.

    Every term has an interval. If counts drown in noise it is nearly all of [0, 1] or, now and then, a point
    that misses. There is no estimate where the other arms of the bin tell that the count would be less than
    three standard deviations of its noise: this describes a ratio, and selects no intervals.

    Coverage refers to each available term, and not of terms chosen because of their estimates, of having one,
    or of how long they were reported on.

    The coin is made of `rng` and of all digits of the releases. It is the same in each analysis of a log,
    and an analyst who tries several `rng` must not choose among them.

    Rewards that are not binary have a smaller variance than f (1 - f), which "budget" uses: its intervals
    are conservative then.

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
        """Estimates, tests and intervals.

        Parameters
        ----------
        method : {"budget", "anytime"}
            Normal in the limit with nominal coverage, or conservative in finite samples.
        null : float
            Mean that the tests are against.
        rng : int
            Seed that is mixed into the coin of "budget".

        Returns
        -------
        Results
            `private` is True. The estimate is sum / count, cut to [0, 1], with a count of at least one
            standard deviation of its noise; it is not what the interval is made of, and lies outside now and
            then. The interval is the hull of the accepted means. Details: ``participants``,
            ``released_count``, and ``spent``, the share of the budget that reports spent.

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
    """Ratio of the sums, within [0, 1], and its standard error; NaN if counts may be lost in noise."""
    noise = 2.0 * known.scale**2 * known.participants
    count = np.maximum(known.count, np.sqrt(noise))
    estimate = np.clip(known.total / count, 0.0, 1.0)
    # Delta method: sum / count errs by (sum - ratio count) / count, and sum and count have noise alike.
    variance = noise * (1.0 + estimate**2) + count * estimate * (1.0 - estimate)
    clear = known.clear()
    return np.where(clear, estimate, np.nan), np.where(clear, np.sqrt(variance) / count, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _BinMethod:
    """One way to test the means of bins, with the notes under its table."""

    fit: Callable[[BinReports, int], InvertedTest]
    claims: tuple[Claim | Part, ...]


def _budget(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(BudgetTest(known, coins(known, rng)), claims.NORMAL_WITH_COIN(), exact=False)


def _anytime(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(AnytimeTest(known), "anytime-valid mixture", exact=True)


_METHODS = {"budget": _BinMethod(_budget, claims.BUDGET), "anytime": _BinMethod(_anytime, claims.ANYTIME)}
