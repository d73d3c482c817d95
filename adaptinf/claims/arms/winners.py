"""Claims about the arm with the highest estimate."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.rare_outcomes import UNCOMMON

NORMAL = Claim(
    "inference.winners.winner_law.WinnerLaw",
    "arm estimates are jointly normal with known covariance",
    "assumes",
    short="jointly normal estimates",
)

NO_ERROR = Claim("without_error", "no standard error is available for {arms}", "needs")
NEEDS = (
    Claim(
        "two_ends",
        "rewards are missing, so arm means are only partially identified, and the best arm is unknown",
        "needs",
    ),
    NO_ERROR,
)
"""Claims that apply to any method for arm means."""
NO_COVARIANCE = Claim(
    "inference.winners.winner.Winner.fit",
    "{estimator} does not give the joint covariance matrix of the arm means",
    "needs",
)
TOO_RARE = Claim(
    "too_rare",
    "one or more arms have too few {uncommon} for a normal approximation",
    "needs",
    phrases={"uncommon": UNCOMMON},
)
CORRECTED = Claim(
    "corrected",
    "the correction for adaptivity applies to arms specified in advance, not to an arm selected as the best",
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
    Claim("not_chosen_before", "before the last batch, one or more arms were never chosen", "needs"),
)

OF_COUNTS = Claim(
    "inference.winners.projected.serves",
    "there are too few rare outcomes for normal approximations, so simultaneous intervals are computed "
    "from counts and are valid under any selection rule",
    "reason",
)
WITHIN_PROJECTION = Claim(
    "inference.winners.winner_methods.HYBRID",
    "the interval is valid conditional on the selected arm and is contained in the projection interval "
    "with level 1 - alpha/10",
    "reason",
)
GIVEN_WINNER = Claim(
    "inference.winners.winner_methods.CONDITIONAL",
    "intervals have nominal coverage conditional on which arm was selected",
    "reason",
)
VERY_LONG = Claim(
    "inference.winners.winner_methods.CONDITIONAL",
    "if the selected arm's estimate is close to another arm's, the interval can be very wide, or can be "
    "omitted because it lies outside the reward range",
    "caution",
)
SIMULTANEOUS = Claim(
    "inference.winners.winner_methods.PROJECTION",
    "intervals are simultaneously valid for all arms, so any selection rule is allowed",
    "reason",
)
HAS_NO_PART = Claim(
    "inference.winners.winner_methods.HELD_OUT",
    "the winner is selected using the earlier batches, and its mean is estimated from the last batch only",
    "reason",
)
HARDLY_CHOSEN = Claim(
    "hardly_chosen",
    "no interval can be computed if the winner was chosen at most once in the last batch",
    "caution",
)
HARDLY_VARIED = Claim(
    "hardly_varied",
    "no interval is given if the winner has fewer than {fewest} {uncommon} in the last batch",
    "caution",
    phrases={"uncommon": UNCOMMON},
)

HIGHEST = Claim(
    "inference.winners.winner.Winner.fit",
    "Arm {arm!r} has the highest estimate of the {n} arms compared{beside}.",
    "note",
)
EQUALS = Claim(
    "inference.winners.winner.Winner.fit",
    "Arms {arms} have the same estimate, the highest of the {n} arms compared{beside}; arm {arm!r} is taken "
    "as the winner.",
    "note",
)
BESIDE_CONTROL = Claim("inference.winners.winner.Winner.fit", " (excluding the control)", "phrase")
BESIDE_SECOND = Claim("inference.winners.winner.Winner.fit", ", ahead of arm {second!r}", "phrase")
USUAL = Claim(
    "inference.winners.winner.Winner.fit",
    "The unadjusted estimate of the {what}, {own:.4g} ({interval}), ignores "
    "selection of the arm; the estimate in the table is median-unbiased and accounts for selection.",
    "note",
)
HELD_OUT = Claim(
    "inference.winners.winner.Winner.fit",
    "Arm {arm!r} was selected as the best in the first {first:,} rounds. Results use only the last "
    "{last:,} rounds, which did not affect this selection, so no adjustment is needed.",
    "note",
    short="arm selected in the first {first:,} rounds",
)
HYBRID = Claim(
    "inference.winners.winner_law.WinnerLaw.of",
    "The hybrid method is used: {reason}.",
    "note",
    short="hybrid interval for the selected arm",
)
CONDITIONAL = Claim(
    "inference.winners.winner_law.WinnerLaw.of",
    "The conditional method is used: {reason}. Conditional intervals may be very wide.",
    "note",
    short="conditional interval for the selected arm",
)
PROJECTION = Claim(
    "inference.winners.winner_law.WinnerLaw.of",
    "The projection method is used: the interval for the selected arm is taken from simultaneous "
    "intervals for all arms.",
    "note",
    short="simultaneous interval for the selected arm",
)
TIED = Claim(
    "inference.winners.winner_law.WinnerLaw.of",
    "The winner is tied with another arm or leads by at most {near:g} standard errors, so intervals that "
    "condition on the selection would be misleadingly short; the projection interval and the unadjusted "
    "estimate are shown.",
    "note",
    short="simultaneous interval for the selected arm",
)
PROJECTED = Claim(
    "inference.winners.projected.serves",
    "At least one arm has fewer than {fewest} {uncommon}, so normal approximations are unreliable. The "
    "simultaneous (Bonferroni) interval is computed from the counts of each reward value. The estimate "
    "does not account for selection.",
    "note",
    phrases={"uncommon": UNCOMMON},
    short="simultaneous exact interval for the selected arm",
)
PROJECTED_SKEWED = Claim(
    "inference.winners.projected.skewed",
    "The selected arm's rewards are too skewed for normal approximations at its number of rounds, so "
    "its interval is taken from simultaneous (Bonferroni) intervals that are corrected for skewness. "
    "The estimate accounts for selection only approximately.",
    "note",
    short="simultaneous interval for the selected arm, corrected for skewness",
)
