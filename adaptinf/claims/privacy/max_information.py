"""What is said of the max-information correction that a privacy guarantee allows, or does not."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_STATED = Claim(
    "inference.corrections.information_of_log.why_not",
    "no reward-level privacy guarantee is stated (an anticipating record-level one implies none); pass "
    "reward_guarantee= if the design has one",
    "needs",
)
ANTICIPATING = Claim(
    "inference.corrections.information.guarantee_refusal",
    "an anticipating guarantee does not cover the joint distribution of all actions",
    "needs",
)
INFINITE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "epsilon is infinite, so that the guarantee does not bound the information",
    "needs",
)
APPROXIMATE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "the bound needs pure differential privacy, and delta = {delta:g} is positive",
    "needs",
)

BITS = Claim(
    "inference.corrections.information.Correction.describe",
    "max-information {bits:.1f} bits ({setting}, beta = {beta} at alpha = {alpha:g})",
    "note",
)
MOMENTS = Claim(
    "inference.corrections.information.Correction.describe",
    "moment bound ({setting}, alpha = {alpha:g})",
    "note",
)
IMPOSSIBLE = Claim(
    "inference.corrections.information.Correction.vacuous",
    "{bound}: no correction is possible at this epsilon and n",
    "note",
)
REQUIRED = Claim(
    "inference.corrections.information.Correction.level",
    "{bound}: a p-value must be at most {level}",
    "note",
)
COVERS_RELEASES = Claim(
    "inference.corrections.information.Correction.coverage",
    "Tests may be chosen from actions, contexts and releases, but not from the rewards.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.corrections.information.Correction.coverage",
    "It covers tests chosen from actions and contexts, but not those whose terms, null or centre were chosen "
    "from the releases: chosen_from='releases' does.",
    "note",
)
