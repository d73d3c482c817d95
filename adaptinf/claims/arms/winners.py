"""What is said of the arm that did best."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

NORMAL = Claim(
    "inference.winners.law.WinnerLaw",
    "arm estimates are jointly normal with known covariance",
    "assumes",
)

NO_ERROR = Claim("without_error", "there is no standard error for {arms}", "needs")
NEEDS = (
    Claim(
        "two_ends",
        "rewards are missing: each mean is known only up to bounds, so no arm is known to be best",
        "needs",
    ),
    NO_ERROR,
)
"""Whatever the method for means of arms."""
NO_COVARIANCE = Claim(
    "inference.winners.model.Winner.fit", "{estimator} gives no joint covariance of the arms", "needs"
)
TOO_RARE = Claim("too_rare", "an arm's outcomes are too rare for a normal approximation", "needs")
CORRECTED = Claim(
    "corrected",
    "its correction applies to arms named in advance, not to the best of them",
    "needs",
)
MEANS_NEED = (
    Part("no_winner", "needs"),
    Part("reason", "needs"),
    CORRECTED,
    TOO_RARE,
)
HELD_OUT_NEEDS = (
    Part("needs_rows", "needs"),
    Claim("no_batches", "holding out the last batch requires at least two batches", "needs"),
    Claim("not_chosen_before", "some arm was never chosen before the last batch", "needs"),
)

OF_COUNTS = Claim(
    "inference.winners.exact.serves",
    "simultaneous intervals from counts, as outcomes are rare; valid under any selection rule",
    "reason",
)
WITHIN_PROJECTION = Claim(
    "inference.winners.methods.HYBRID",
    "conditional on which arm won, within the projection at a tenth of alpha",
    "reason",
)
GIVEN_WINNER = Claim("inference.winners.methods.CONDITIONAL", "nominal coverage given the winner", "reason")
VERY_LONG = Claim("inference.winners.methods.CONDITIONAL", "very long if another arm is close", "caution")
SIMULTANEOUS = Claim(
    "inference.winners.methods.PROJECTION",
    "simultaneous for all arms, whatever rule selects the winner",
    "reason",
)
HAS_NO_PART = Claim(
    "inference.winners.methods.HELD_OUT",
    "the winner is chosen without the last batch and estimated from it alone",
    "reason",
)
HARDLY_CHOSEN = Claim(
    "hardly_chosen", "no interval if the last batch has fewer than two rounds of the winner", "caution"
)

HIGHEST = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} has the highest of {n} estimates{beside}.",
    "note",
)
BESIDE_CONTROL = Claim("inference.winners.model.Winner.fit", ", the control's excluded", "note")
BESIDE_SECOND = Claim("inference.winners.model.Winner.fit", ", ahead of arm {second!r}", "note")
USUAL = Claim(
    "inference.winners.model.Winner.fit",
    "The usual {what}, {own:.4g} ({low:.4g} to {high:.4g}), ignores that this arm was chosen; the estimate "
    "shown is median-unbiased.",
    "note",
)
HELD_OUT = Claim(
    "inference.winners.model.Winner.fit",
    "Arm {arm!r} is the winner of the first {first:,} rounds; the numbers are from the last {last:,}, "
    "which had no influence on the choice, so no adjustment is needed.",
    "note",
)
HYBRID = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Hybrid interval: {reason}.",
    "note",
)
CONDITIONAL = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Conditional interval: {reason}, but it may be very long.",
    "note",
)
PROJECTION = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Projection: the winner's part of a simultaneous interval for all arms.",
    "note",
)
TIED = Claim(
    "inference.winners.law.WinnerLaw.of",
    "Tied with another arm: the estimates alone did not decide the choice; the interval is the projection.",
    "note",
)
PROJECTED = Claim(
    "inference.winners.exact.serves",
    "Fewer than {fewest} outcomes of an arm differ from the commonest, so normal approximations fail: the "
    "interval is the winner's among intervals from counts that hold for all arms at once by Bonferroni's "
    "inequality. The estimate shown is not adjusted for the choice.",
    "note",
)
