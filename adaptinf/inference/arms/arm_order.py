"""The order in which methods for arm means and contrasts, including sequences, are recommended."""

from __future__ import annotations

from adaptinf.inference.validity.order import Order, Rank

PLANNED_LOOKS = "planned looks"
"""The number of rounds was determined by the stopping rule in the trial's plan."""
PLAIN_SAMPLES = "plain samples"
"""Nothing can have changed the arms' probabilities."""
STATIONARY = "stationary"
"""According to the user, no mean drifts."""
BY_UNIT = "by unit"
"""Units have several rounds."""
ESTIMATED = "estimated"
"""The propensities are only estimates, so ALEE, which needs no propensities, comes first."""
RARELY_DRAWN = "rarely drawn"
"""Propensities are so low that estimates with uniform weights, unlike those of ALEE, are far from normal."""
DRIFT = "drift"
"""Each arm has separate weights, which are not valid under drift, and drift has not been ruled out."""


def _scores(estimator: str, *weights: str, when: tuple[str, ...] = ()) -> list[str]:
    """Names of the variants of inverse weighting, in the order of their weights."""
    circumstances = f": {', '.join(when)}" if when else ""
    return [f"{estimator} {kind}{circumstances}" for kind in weights]


ORDER = Order(
    [
        # Only the plan of a trial with looks accounts for them.
        PLANNED_LOOKS,
        # Plain samples have the shortest intervals and need no assumptions about how arms were chosen.
        f"sample-mean: {PLAIN_SAMPLES}",
        f"exact tests: {PLAIN_SAMPLES}",
        # Without drift, separate weights for each arm keep the variance even, and arms need not be compared
        # over the same rounds.
        *_scores("aipw", "two-point", "sqrt", "uniform", when=(STATIONARY,)),
        # Weights computed from propensities make the rounds of a unit dependent; uniform weights do not.
        *_scores("aipw", "uniform", when=(BY_UNIT,)),
        # Known propensities account for adaptivity, and weights that arms share account for drift that they
        # share.
        *_scores("aipw", "joint", "combined", "uniform", "two-point", "sqrt"),
        # If nothing adapted but shares moved, only comparisons within batches compare arms at the same times.
        "batched: shares moved",
        "sample-mean: contexts decide",
        "sample-mean: not adaptive",
        "exact tests",
        # Simulation or a privacy guarantee shows that adaptivity can do little harm here.
        "sample-mean: counts settled",
        "corrected: short",
        # ALEE needs no propensities, but it assumes that no mean drifts.
        "alee",
        "alee self-normalised: refused",
        # Estimated propensities are one more assumption than ALEE makes.
        *_scores("aipw", "joint", "combined", "uniform", "two-point", "sqrt", when=(ESTIMATED,)),
        # Sample means are valid here only in long runs of designs whose counts settle.
        "sample-mean",
        *_scores("aipw", "uniform", when=(RARELY_DRAWN,)),
        "batched",
        # Privacy noise makes these intervals longer than those computed from the log itself.
        "released",
        # Drift or moderate horizons may invalidate these; corrected intervals may be very long.
        *_scores("aipw", "two-point", when=(DRIFT,)),
        "alee self-normalised",
        "corrected",
        *_scores("aipw", "sqrt", when=(DRIFT,)),
        "corrected: refused",
        # IPW does the same as AIPW without an outcome model, so its intervals are longer.
        *_scores("ipw", "two-point", "sqrt", "uniform", when=(STATIONARY,)),
        *_scores("ipw", "uniform", when=(BY_UNIT,)),
        *_scores("ipw", "joint", "combined", "uniform", "two-point", "sqrt"),
        *_scores("aipw", "uniform", when=(RARELY_DRAWN, ESTIMATED)),
        *_scores("aipw", "two-point", "sqrt", when=(DRIFT, ESTIMATED)),
        *_scores("ipw", "joint", "combined", "uniform", "two-point", "sqrt", when=(ESTIMATED,)),
        # Sequences hold at every round, which is more than was asked for, so they are wider.
        "sequences",
        *_scores("ipw", "uniform", when=(RARELY_DRAWN,)),
        *_scores("ipw", "two-point", "sqrt", when=(DRIFT,)),
        # These sequences follow sample means of arms, whose choice may have depended on contexts.
        "sequences: contexts",
        *_scores("ipw", "uniform", when=(RARELY_DRAWN, ESTIMATED)),
        *_scores("ipw", "two-point", "sqrt", when=(DRIFT, ESTIMATED)),
        # The guarantee is vacuous, or the method cannot be applied to such data.
        "of no use",
    ]
)
"""Methods in order, each in the circumstances stated; the first are recommended first."""


def place_of_scores(estimator: str, weights: str, *when: str) -> Rank:
    """The rank of AIPW or IPW with one kind of weights in given circumstances."""
    return ORDER[_scores(estimator, weights, when=when)[0]]
