"""What is said of arms that could not be chosen in every round."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_DRAWN = Claim(
    "never_drawn",
    "arm {arm!r} was never drawn at random, its propensity is 0 or 1 in every round: there is nothing to "
    "weight",
    "needs",
)
NEVER_TOGETHER = Claim(
    "never_together",
    "arm {arm!r} has propensity 0 in {n} of {rounds} rounds: in no round could {arms} have been chosen, and "
    "there is nothing to weight",
    "needs",
)
TAKEN_AWAY = Claim(
    "taken_away",
    "arm {arm!r} has propensity 0 in {n} of {rounds} rounds, where it could not have been chosen: {design} "
    "takes arms away by what it learns, and rounds that rewards select are no fair sample",
    "needs",
)
NEEDS = (NEVER_DRAWN, NEVER_TOGETHER, TAKEN_AWAY)
"""Of inverse weighting, where an arm could not be chosen in some rounds."""

DIFFERS_AS_MUCH = Claim(
    "compared_in_common",
    "arms, which are compared in common rounds, differ as much in others",
    "assumes",
    check="inference.diagnostics.arms",
)
SAME_ELSEWHERE = Claim(
    "same_elsewhere",
    "{same} the same in the rounds that are used as in those that it is wanted for",
    "assumes",
    check="inference.diagnostics.arms",
)
LEFT_OUT = Claim(
    "left_out",
    "Left out of {rounds} rounds: {left}, in which {arm} could not be chosen (propensity 0).",
    "note",
)
DIFFERENT_ROUNDS = Claim(
    "different_rounds",
    "arms could be chosen in different rounds, and each mean is over its own: a drift that arms share tells "
    "equal arms apart (Contrast compares two in common rounds)",
    "caution",
)
BY_TURNS = Claim(
    "by_turns",
    "arms could be chosen or not by turns, as where contexts decide which are on offer: they are compared in "
    "common rounds, and taken to differ as much in others",
    "caution",
)
GONE = Claim(
    "gone",
    "{arms}: there are rounds after which an arm could no longer be chosen; if its rewards were the reason, "
    "the estimate is biased",
    "caution",
)
FIT = (DIFFERS_AS_MUCH, SAME_ELSEWHERE, LEFT_OUT, DIFFERENT_ROUNDS, BY_TURNS, GONE)
"""Of a fit by inverse weighting."""
