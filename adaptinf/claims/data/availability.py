"""What is said of arms that could not be chosen in every round."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_DRAWN = Claim(
    "never_drawn",
    "arm {arm!r} was never randomised (its propensity is always 0 or 1), so inverse-propensity "
    "weighting cannot estimate its mean",
    "needs",
)
NEVER_TOGETHER = Claim(
    "never_together",
    "{arms} were never available together (arm {arm!r} was unavailable in {n} of {rounds} rounds)",
    "needs",
)
TAKEN_AWAY = Claim(
    "taken_away",
    "{design} drops arms on the basis of earlier rewards: arm {arm!r} had propensity 0 in {n} of "
    "{rounds} rounds, so its other rounds are a selected sample",
    "needs",
)
NEEDS = (NEVER_DRAWN, NEVER_TOGETHER, TAKEN_AWAY)
"""Of inverse weighting, where an arm could not be chosen in some rounds."""

DIFFERS_AS_MUCH = Claim(
    "compared_in_common",
    "differences between arms are the same in included and excluded rounds",
    "assumes",
)
SAME_ELSEWHERE = Claim(
    "same_elsewhere",
    "{same} the same in the rounds left out as in the rounds used",
    "assumes",
)
LEFT_OUT = Claim(
    "left_out",
    "Rounds with propensity 0 for {arm} are excluded: {left} (out of {rounds}).",
    "note",
)
DIFFERENT_ROUNDS = Claim(
    "different_rounds",
    "arms were available in different rounds, so common drift can make arms with equal means appear "
    "different (Contrast compares two arms in rounds that offered both)",
    "caution",
)
BY_TURNS = Claim(
    "by_turns",
    "the set of available arms changed often, perhaps depending on contexts: arms are compared only in "
    "their common rounds, and their differences are assumed to be the same in all other rounds",
    "caution",
)
GONE = Claim(
    "gone",
    "estimates for {arms} are biased if an arm became unavailable because of its rewards",
    "caution",
)
FIT = (DIFFERS_AS_MUCH, SAME_ELSEWHERE, LEFT_OUT, DIFFERENT_ROUNDS, BY_TURNS, GONE)
"""Of a fit by inverse weighting."""
