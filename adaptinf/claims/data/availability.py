"""Claims about arms that could not be chosen in every round."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_DRAWN = Claim(
    "never_drawn",
    "arm {arm!r} was never assigned at random (its propensity is always 0 or 1), so inverse-propensity "
    "weighting cannot estimate its mean",
    "needs",
)
NEVER_TOGETHER = Claim(
    "never_together",
    "{arms} were never all available in the same round (arm {arm!r} was unavailable in {n} of {rounds} "
    "rounds)",
    "needs",
)
TAKEN_AWAY = Claim(
    "taken_away",
    "{design} drops arms on the basis of earlier rewards: arm {arm!r} had propensity 0 in {n} rounds "
    "out of {rounds}, and its remaining rounds are a selected sample",
    "needs",
)
NEEDS = (NEVER_DRAWN, NEVER_TOGETHER, TAKEN_AWAY)
"""Claims for inverse weighting if an arm could not be chosen in some rounds."""

DIFFERS_AS_MUCH = Claim(
    "compared_in_common",
    "differences between arms are the same in included and excluded rounds",
    "assumes",
    check="elsewhere_found",
    short="equal differences in excluded rounds",
)
"""A claim for three or more arms, of which some differences can be observed in both sets of rounds."""
SAME_ELSEWHERE = Claim(
    "same_elsewhere",
    "{same} the same in excluded rounds as in those used for estimation",
    "assumes",
    short="excluded rounds do not differ",
)
"""A claim that no log can check: in excluded rounds, one of the arms in question has no rewards."""
LEFT_OUT = Claim(
    "left_out",
    "Rounds in which {arm} has propensity 0 are excluded ({left} of {rounds} rounds).",
    "note",
    short="{left} of {rounds} rounds without {arm} left out",
)
DIFFERENT_ROUNDS = Claim(
    "different_rounds",
    "arms were available in different rounds, so common drift can produce spurious differences in "
    "means; use Contrast to compare two arms in rounds in which both were available",
    "caution",
)
OTHER_ELSEWHERE = Claim(
    "inference.arms.data.data_facts.AvailabilityFacts.elsewhere_found",
    "the difference between {one!r} and {other!r} may depend on whether all arms were available (p = "
    "{p:.1g}), so estimates from rounds with both of these arms available may not apply to the whole log",
    "caution",
)
BY_TURNS = Claim(
    "by_turns",
    "the availability of arms changed often, perhaps in response to contexts, so comparisons may not "
    "apply to rounds in which some of the compared arms were unavailable",
    "caution",
)
GONE = Claim(
    "gone",
    "estimates for {arms} are biased if an arm became unavailable because of its rewards",
    "caution",
)
FIT = (DIFFERS_AS_MUCH, SAME_ELSEWHERE, LEFT_OUT, DIFFERENT_ROUNDS, BY_TURNS, GONE)
"""Claims for a fit by inverse weighting."""
