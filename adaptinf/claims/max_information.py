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
    "the guarantee is anticipating: it does not cover the joint law of all actions",
    "needs",
)
INFINITE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "epsilon is infinite: the guarantee bounds no information",
    "needs",
)
APPROXIMATE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "delta = {delta:g} is positive: the bound is for pure differential privacy (delta = 0)",
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
    "{bound}: no correction possible at this epsilon and n",
    "note",
)
REQUIRED = Claim(
    "inference.corrections.information.Correction.level",
    "{bound}: a p-value must be at most {level}",
    "note",
)
COVERS_RELEASES = Claim(
    "inference.corrections.information.Correction.coverage",
    "It covers tests chosen from actions, contexts and releases, not from the rewards.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.corrections.information.Correction.coverage",
    "It covers tests chosen from actions and contexts. It does not cover tests whose terms, null or centre "
    "were chosen from the releases: chosen_from='releases' does.",
    "note",
)
