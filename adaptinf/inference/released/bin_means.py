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

from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.released.bin_sums import BinReports, read_reports
from adaptinf.inference.released.bin_tests import AnytimeTest, BudgetTest, InvertedTest, coins
from adaptinf.inference.released.units import refuse_repeated_units
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.facts import LogFacts
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import FINITE, Count, OneOf, check
from adaptinf.typing import FloatArray

_SHOWN = 10


class BinMeans:
    """Expected rewards of arms, averaged over the bins of a locally private trial.

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
    that the ratio of the sums is not normal about the truth. Two methods allow for it:

    * ``"budget"``: the server weighs the reports of a bin's life so that their squared weights add up to at
      most 1; where the life ends sooner than planned, what is missing is filled up by a normal coin. The
      statistic is then normal in the limit for every term, whatever stops it. Intervals have their nominal
      coverage. Of an arm that was dropped early much is left to the coin, and the interval is wide.
    * ``"anytime"``: a supermartingale test, valid in finite samples whenever the sums end. No coin; wider
      intervals, with coverage above the nominal one, for arms that stayed.

    Every term has an interval. Where counts drown in noise it is nearly all of [0, 1] or, now and then, a
    point that misses. There is no estimate where the other arms of the bin tell that the count would be less
    than three standard deviations of its noise: this describes a ratio, and selects no intervals.

    Coverage is of each term that there is, and not of terms chosen because of their estimates, of having
    one, or of how long they were reported on.

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
            notes=(_SHARED, _METHODS[method].note(spent, rng), *_term_notes(terms, estimate, reference)),
            private=True,
        )


def _box(low: FloatArray, high: FloatArray) -> tuple[tuple[float, float], ...]:
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _ratio(known: BinReports) -> tuple[FloatArray, FloatArray]:
    """Ratio of the sums within [0, 1] and its standard error; NaN where counts may drown in noise."""
    noise = 2.0 * known.scale**2 * known.participants
    count = np.maximum(known.count, np.sqrt(noise))
    estimate = np.clip(known.total / count, 0.0, 1.0)
    variance = noise * (1.0 + estimate**2) + count * estimate * (1.0 - estimate)
    clear = known.clear()
    return np.where(clear, estimate, np.nan), np.where(clear, np.sqrt(variance) / count, np.nan)


_SHARED = (
    "From released sums of noisy reports alone. Rewards were clipped to [0, 1]: the means are those of "
    "clipped rewards, over the law of the contexts within each bin."
)


@dataclass(frozen=True, slots=True, eq=False)
class _BinMethod:
    """One way to test the means of bins, and the note under its table."""

    fit: Callable[[BinReports, int], InvertedTest]
    note: Callable[[FloatArray, int], str]


def _budget(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(BudgetTest(known, coins(known, rng)), "normal, budget filled by a coin", exact=False)


def _budget_note(spent: FloatArray, rng: int) -> str:
    return (
        "Reports on an arm end when their own sums say so. What was left of each term's variance budget "
        f"(median {np.median(1.0 - spent):.0%}, largest {np.max(1.0 - spent):.0%}) is filled by a normal "
        f"coin, made of rng={rng} and the releases."
    )


def _anytime(known: BinReports, rng: int) -> InvertedTest:
    return InvertedTest(AnytimeTest(known), "anytime-valid mixture", exact=True)


def _anytime_note(spent: FloatArray, rng: int) -> str:
    return "Tests are valid whenever reports on an arm end, in finite samples, and conservative."


_METHODS = {"budget": _BinMethod(_budget, _budget_note), "anytime": _BinMethod(_anytime, _anytime_note)}


def _term_notes(terms: tuple[str, ...], estimate: FloatArray, reference: InvertedTest) -> tuple[str, ...]:
    limits = reference.interval(float(np.log(0.05)))
    whole = [term for term, (low, high) in zip(terms, limits, strict=True) if low <= 0.0 and high >= 1.0]
    points = [term for term, (low, high) in zip(terms, limits, strict=True) if low == high]
    absent = [term for term, value in zip(terms, estimate, strict=True) if np.isnan(value)]
    told = (
        (absent, "no estimate, counts in the bin may drown in their noise; the interval stands"),
        (whole, "the 95% interval is all of [0, 1]: the reports say nothing"),
        (points, "no mean in [0, 1] is accepted at 5%, the interval is the one that fits best"),
    )
    return tuple(f"{_listed(which)}: {text}." for which, text in told if which)


def _listed(terms: list[str]) -> str:
    more = len(terms) - _SHOWN
    return "; ".join(terms[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
