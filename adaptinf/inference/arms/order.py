"""The order in which methods for arm means and contrasts are recommended, including sequences."""

from __future__ import annotations

from adaptinf.inference.validity.order import Order, Rank

PLAIN_SAMPLES = "plain samples"
"""Nothing can have changed the arms' probabilities."""
STATIONARY = "stationary"
"""No mean drifts, according to the user."""
BY_UNIT = "by unit"
"""Units have several rounds."""
ESTIMATED = "estimated"
"""Propensities are only estimated, whereas ALEE needs none."""
RARELY_DRAWN = "rarely drawn"
"""With uniform weights, estimates are far from normal at typical numbers of rounds, unlike ALEE's."""
DRIFT = "drift"
"""Each arm has separate weights, which fail under drift, and drift has not been ruled out."""


def _scores(estimator: str, *weights: str, when: tuple[str, ...] = ()) -> list[str]:
    """Names of variants of inverse weighting, in the order in which their weights are named."""
    circumstances = f": {', '.join(when)}" if when else ""
    return [f"{estimator} {kind}{circumstances}" for kind in weights]


ORDER = Order(
    [
        # Plain samples have the shortest intervals, and assume nothing of how arms were chosen.
        f"sample-mean: {PLAIN_SAMPLES}",
        f"exact tests: {PLAIN_SAMPLES}",
        # Without a drift each arm's own weights keep variances even; means then need not share times.
        *_scores("aipw", "two-point", "sqrt", "uniform", when=(STATIONARY,)),
        # Weights made from propensities tie units together; uniform ones do not.
        *_scores("aipw", "uniform", when=(BY_UNIT,)),
        # Known propensities answer for adaptivity; weights that arms share, for a drift that they share.
        *_scores("aipw", "joint", "combined", "uniform", "two-point", "sqrt"),
        # Nothing adapted, and shares moved: within batches alone are arms of the same times.
        "batched: shares moved",
        "sample-mean: contexts decide",
        "sample-mean: not adaptive",
        "exact tests",
        # Simulation, or a guarantee, says how little adaptivity can do.
        "sample-mean: counts settled",
        "corrected: short",
        # Without propensities; it assumes that no mean drifts.
        "alee",
        "alee self-normalised: refused",
        # An estimated propensity is one more assumption than ALEE makes.
        *_scores("aipw", "joint", "combined", "uniform", "two-point", "sqrt", when=(ESTIMATED,)),
        # In long runs of designs whose counts settle.
        "sample-mean",
        *_scores("aipw", "uniform", when=(RARELY_DRAWN,)),
        "batched",
        # Noise makes it longer than what reads the log itself.
        "released",
        # A drift, or moderate horizons, may spoil these; corrected columns may be very long.
        *_scores("aipw", "two-point", when=(DRIFT,)),
        "alee self-normalised",
        "corrected",
        *_scores("aipw", "sqrt", when=(DRIFT,)),
        "corrected: refused",
        # What AIPW does, without an outcome model, hence longer.
        *_scores("ipw", "two-point", "sqrt", "uniform", when=(STATIONARY,)),
        *_scores("ipw", "uniform", when=(BY_UNIT,)),
        *_scores("ipw", "joint", "combined", "uniform", "two-point", "sqrt"),
        *_scores("aipw", "uniform", when=(RARELY_DRAWN, ESTIMATED)),
        *_scores("aipw", "two-point", "sqrt", when=(DRIFT, ESTIMATED)),
        *_scores("ipw", "joint", "combined", "uniform", "two-point", "sqrt", when=(ESTIMATED,)),
        # They hold at every round, which is more than was asked, and are longer for it.
        "sequences",
        *_scores("ipw", "uniform", when=(RARELY_DRAWN,)),
        *_scores("ipw", "two-point", "sqrt", when=(DRIFT,)),
        # Contexts may have had a part in the choice of arms whose plain means they follow.
        "sequences: contexts",
        *_scores("ipw", "uniform", when=(RARELY_DRAWN, ESTIMATED)),
        *_scores("ipw", "two-point", "sqrt", when=(DRIFT, ESTIMATED)),
        # A vacuous guarantee, and methods that cannot be asked of such data.
        "of no use",
    ]
)
"""Cases of methods; a refused variant of inverse weighting replaces the usual case."""


def place_of_scores(estimator: str, weights: str, *when: str) -> Rank:
    """The rank of AIPW or IPW with one kind of weights in given circumstances."""
    return ORDER[_scores(estimator, weights, when=when)[0]]
