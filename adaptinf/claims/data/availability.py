"""What is said of arms that could not be chosen in every round."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_DRAWN = Claim(
    "never_drawn",
    "arm {arm!r} was never drawn at random (propensities 0 or 1 throughout), so there is nothing to weight",
    "needs",
)
NEVER_TOGETHER = Claim(
    "never_together",
    "in no round could {arms} have been chosen: {n} of {rounds} rounds have propensity 0 for arm {arm!r}",
    "needs",
)
TAKEN_AWAY = Claim(
    "taken_away",
    "arm {arm!r} was impossible in {n} of {rounds} rounds (propensity 0): {design} removes arms based "
    "on earlier rewards, so the other rounds are a selected sample",
    "needs",
)
NEEDS = (NEVER_DRAWN, NEVER_TOGETHER, TAKEN_AWAY)
"""Of inverse weighting, where an arm could not be chosen in some rounds."""

DIFFERS_AS_MUCH = Claim(
    "compared_in_common",
    "arms differ by the same amounts outside the rounds in which they are compared",
    "assumes",
)
SAME_ELSEWHERE = Claim(
    "same_elsewhere",
    "{same} the same in the rounds used as in the rounds of interest",
    "assumes",
)
LEFT_OUT = Claim(
    "left_out",
    "Left out of {rounds} rounds: {left}, where {arm} could not be chosen (propensity 0).",
    "note",
)
DIFFERENT_ROUNDS = Claim(
    "different_rounds",
    "arms could be chosen in different rounds, and each mean is over its own rounds: a shared drift "
    "makes equal arms look different (Contrast compares two arms in common rounds)",
    "caution",
)
BY_TURNS = Claim(
    "by_turns",
    "the arms that could be chosen changed often, as where contexts decide which are on offer: "
    "comparisons use common rounds and assume the same differences elsewhere",
    "caution",
)
GONE = Claim(
    "gone",
    "{arms}: an arm was unavailable after having been available; if that depended on its rewards, the "
    "estimate is biased",
    "caution",
)
FIT = (DIFFERS_AS_MUCH, SAME_ELSEWHERE, LEFT_OUT, DIFFERENT_ROUNDS, BY_TURNS, GONE)
"""Of a fit by inverse weighting."""
