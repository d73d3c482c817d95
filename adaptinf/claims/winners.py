"""What is said of the arm that did best."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

NORMAL = Claim(
    "inference.winners.law.WinnerLaw",
    "estimates of the arms are jointly normal, with a known covariance",
    "assumes",
)

NO_ERROR = Claim("without_error", "there is no estimate with a standard error of {arms}", "needs")
NEEDS = (
    Claim(
        "two_ends",
        "rewards are missing, so that every mean has two ends, and no arm is known to be the best",
        "needs",
    ),
    NO_ERROR,
)
"""Whatever the method for means of arms."""
NO_COVARIANCE = Claim(
    "inference.winners.model.Winner.fit", "{estimator} has no joint covariance of the arms", "needs"
)
TOO_RARE = Claim("too_rare", "an arm's outcomes are too rare for an estimate that counts as normal", "needs")
MEANS_NEED = (
    Part("no_winner", "needs"),
    Part("reason", "needs"),
    Claim(
        "corrected",
        "its correction is for means of arms that were named beforehand, not for the best of them",
        "needs",
    ),
    TOO_RARE,
)
HELD_OUT_NEEDS = (
    Part("needs_rows", "needs"),
    Claim("no_batches", "the log has no batches to count, or one alone", "needs"),
    Claim("not_chosen_before", "an arm was not chosen before the last batch", "needs"),
)

OF_COUNTS = Claim(
    "inference.winners.exact.serves",
    "outcomes too rare for normal laws, whatever rule names the winner",
    "reason",
)
WITHIN_PROJECTION = Claim(
    "inference.winners.methods.HYBRID",
    "given which arm won, within a projection at a tenth of alpha",
    "reason",
)
GIVEN_WINNER = Claim(
    "inference.winners.methods.CONDITIONAL", "it has its level given which arm won", "reason"
)
VERY_LONG = Claim("inference.winners.methods.CONDITIONAL", "very long where another arm is close", "caution")
SIMULTANEOUS = Claim(
    "inference.winners.methods.PROJECTION",
    "simultaneous for all arms, whatever rule names the winner",
    "reason",
)
HAS_NO_PART = Claim(
    "inference.winners.methods.HELD_OUT",
    "the last batch has no part in naming the winner, and alone estimates it",
    "reason",
)
HARDLY_CHOSEN = Claim(
    "hardly_chosen", "no interval if the winner was hardly chosen in the last batch", "caution"
)

HIGHEST = Claim("inference.winners.exact.serves", "Arm {arm!r} has the highest of {n} estimates.", "note")
HIGHEST_MEAN = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} has the highest of {n} estimates, {own:.4g}; its usual interval, {low:.4g} to {high:.4g}, "
    "takes no notice of that. The estimate shown is median-unbiased.",
    "note",
)
BESIDE_CONTROL = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} has the highest of {n} estimates, the control's apart. The difference is {own:.4g}. Its "
    "usual interval, {low:.4g} to {high:.4g}, takes no notice of that. The estimate shown is "
    "median-unbiased.",
    "note",
)
BESIDE_SECOND = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} has the highest of {n} estimates, arm {second!r} the second highest. The difference is "
    "{own:.4g}. Its usual interval, {low:.4g} to {high:.4g}, takes no notice of that. The estimate shown is "
    "median-unbiased.",
    "note",
)
HELD_OUT = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} has the highest estimate in the first {first:,} rounds; the numbers are from the last "
    "{last:,}, which had no part in that, and need no allowance for it.",
    "note",
)
HYBRID = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Hybrid interval: conditional on which arm won, within the projection at a tenth of alpha.",
    "note",
)
CONDITIONAL = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Conditional interval: it has its level given which arm won, and may be very long.",
    "note",
)
PROJECTION = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Projection: the winner's part of a simultaneous interval for all arms.",
    "note",
)
TIED = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Tied with another one: something else chose between them, and the interval is the projection.",
    "note",
)
PROJECTED = Claim(
    "inference.winners.exact.serves",
    "Fewer than {fewest} outcomes of an arm are not the commonest, so that no estimate counts as normal: the "
    "interval is the projection, the winner's part of intervals for all arms by Bonferroni's inequality, "
    "each by the law of its counts. The estimate shown takes no notice of the choice.",
    "note",
)
