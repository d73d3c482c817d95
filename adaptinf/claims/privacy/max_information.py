"""What is said of the max-information correction that a privacy guarantee allows, or does not."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_STATED = Claim(
    "inference.corrections.information_of_log.why_not",
    "the log has no reward-level privacy guarantee, and a record-level guarantee that excludes the "
    "participant's own action does not imply one; set reward_guarantee= if the design has one",
    "needs",
)
ANTICIPATING = Claim(
    "inference.corrections.information.guarantee_refusal",
    "the correction requires a guarantee that covers all actions jointly, but an anticipating guarantee "
    "excludes each participant's own action",
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
    "the max-information is at most {bits:.1f} bits ({setting}, beta = {beta} at alpha = {alpha:g})",
    "note",
)
MOMENTS = Claim(
    "inference.corrections.information.Correction.describe",
    "moment bound ({setting}, alpha = {alpha:g})",
    "phrase",
)
IMPOSSIBLE = Claim(
    "inference.corrections.information.Correction.vacuous",
    "{bound}, which allows no valid correction at this epsilon and sample size",
    "note",
)
REQUIRED = Claim(
    "inference.corrections.information.Correction.level",
    "{bound}: significance requires a p-value of at most {level}",
    "note",
)
COVERS_RELEASES = Claim(
    "inference.corrections.information.Correction.coverage",
    "The correction is valid for tests selected using actions, contexts and releases, but not rewards.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.corrections.information.Correction.coverage",
    "The correction is valid if tests were selected using actions and contexts only; if the terms, "
    "null value or centre were selected using releases, set chosen_from='releases'.",
    "note",
)
