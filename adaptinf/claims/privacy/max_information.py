"""Claims about the max-information correction that a privacy guarantee allows, or does not."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_STATED = Claim(
    "inference.corrections.information_of_log.why_not",
    "the log has no reward-level privacy guarantee ('reward_guarantee'), and none follows from a "
    "record-level guarantee that excludes the participant's own action",
    "needs",
)
ANTICIPATING = Claim(
    "inference.corrections.information.guarantee_refusal",
    "the correction requires a guarantee that covers all actions jointly, but a guarantee with "
    "notion='anticipating' excludes each participant's own action",
    "needs",
)
INFINITE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "epsilon is infinite, so no bound on the max-information is available",
    "needs",
)
APPROXIMATE = Claim(
    "inference.corrections.information.guarantee_refusal",
    "the bound requires pure differential privacy, but delta = {delta:g} is positive",
    "needs",
)

BITS = Claim(
    "inference.corrections.information.Correction.describe",
    "max-information of at most {bits:.1f} bits ({setting}, beta = {beta} at alpha = {alpha:g})",
    "phrase",
)
MOMENTS = Claim(
    "inference.corrections.information.Correction.describe",
    "moment bound ({setting}, alpha = {alpha:g})",
    "phrase",
)
IMPOSSIBLE = Claim(
    "inference.corrections.information.Correction.vacuous",
    "{bound}, which rules out an informative correction at this epsilon and sample size",
    "note",
)
REQUIRED = Claim(
    "inference.corrections.information.Correction.level",
    "{bound}: significance requires a p-value of at most {level}",
    "note",
)
COVERS_RELEASES = Claim(
    "inference.corrections.information.Correction.coverage",
    "The correction is valid if the choice of tests depends only on actions, contexts and releases, and "
    "not otherwise on rewards.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.corrections.information.Correction.coverage",
    "The correction is valid for tests selected using only actions and contexts. If any part of a test, "
    "such as its null value, was chosen using the released values, set chosen_from='releases'.",
    "note",
)
