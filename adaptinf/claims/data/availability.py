"""What is said of arms that could not be chosen in every round."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_DRAWN = Claim(
    "never_drawn",
    "arm {arm!r} was never randomised (every propensity is 0 or 1), so its mean cannot be "
    "estimated by inverse weighting",
    "needs",
)
NEVER_TOGETHER = Claim(
    "never_together",
    "{arms} were never available in the same round (the propensity of arm {arm!r} is 0 in {n} of "
    "{rounds} rounds)",
    "needs",
)
TAKEN_AWAY = Claim(
    "taken_away",
    "{design} removes arms based on earlier rewards: arm {arm!r} was unavailable (propensity 0) in "
    "{n} of {rounds} rounds, and its remaining rounds are a selected sample",
    "needs",
)
NEEDS = (NEVER_DRAWN, NEVER_TOGETHER, TAKEN_AWAY)
"""Of inverse weighting, where an arm could not be chosen in some rounds."""

DIFFERS_AS_MUCH = Claim(
    "compared_in_common",
    "differences between arms are the same in rounds that the comparison leaves out",
    "assumes",
)
SAME_ELSEWHERE = Claim(
    "same_elsewhere",
    "{same} the same in the rounds left out as in the rounds used",
    "assumes",
)
LEFT_OUT = Claim(
    "left_out",
    "Rounds in which {arm} could not be chosen (propensity 0) are left out: {left} (of {rounds} rounds).",
    "note",
)
DIFFERENT_ROUNDS = Claim(
    "different_rounds",
    "arms were available in different rounds, so under a common drift equal arms may appear to "
    "have different means (Contrast compares two arms in their common rounds)",
    "caution",
)
BY_TURNS = Claim(
    "by_turns",
    "the set of available arms changed often, possibly depending on contexts: comparisons use "
    "rounds common to the arms and assume that the differences are the same in other rounds",
    "caution",
)
GONE = Claim(
    "gone",
    "estimates for {arms} are biased if an arm became unavailable because of its rewards",
    "caution",
)
FIT = (DIFFERS_AS_MUCH, SAME_ELSEWHERE, LEFT_OUT, DIFFERENT_ROUNDS, BY_TURNS, GONE)
"""Of a fit by inverse weighting."""
