"""What is said where outcomes are rare, or rewards skewed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CORRECTED = Claim(
    "inference.validity.rare.law_of_parts",
    "Intervals and p-values are corrected for skewness of the rewards, by Hall's transformation for "
    "means and by the MOVER method for differences. Standard errors are not corrected.",
    "note",
)
SKEWNESS_UNKNOWN = Claim(
    "skewness_unknown",
    "intervals may undercover if rewards are skewed or outcomes are rare, which these sums cannot show "
    "(set sum_cubes= or nonzero=)",
    "caution",
)
NO_INTERVAL = Claim(
    "inference.validity.rare.without_interval",
    "No test or interval is given for {terms}, because fewer than {fewest} rewards are different from "
    "the mode (counts in parentheses).",
    "note",
)
FEW_OUTCOMES = Claim(
    "inference.validity.rare.rare_cautions",
    "intervals for {terms} may undercover: fewer than {enough} rewards differ from the most frequent "
    "value (counts in parentheses)",
    "caution",
)
SKEWED_THOUGH_CORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "even skewness-corrected intervals may undercover: rewards for {terms} are skewed, and a few rounds "
    "carry most of the weight",
    "caution",
)
SKEWED_UNCORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "skewed rewards of a few rounds dominate the estimates for {terms}, so intervals may undercover (no "
    "skewness correction is applied)",
    "caution",
)
FEW_EVENTS = Claim(
    "inference.arms.circumstances.laws.shape_cautions",
    "intervals may undercover substantially for {arms}: after weighting, the effective number of "
    "uncommon rewards (in parentheses) is below {fewest}",
    "caution",
)
UNVARYING = Claim(
    "inference.arms.circumstances.laws.unvarying",
    "all rewards of arm {arm} are equal, so its mean and its differences from other arms cannot be "
    "tested (exact tests and intervals require estimator='sample-mean')",
    "caution",
)
UNVARYING_COUNTS = Claim(
    "inference.arms.circumstances.laws.unvarying",
    "rewards of arm {arm} do not vary, so contrasts with this arm have no standard error, and their "
    "intervals are based on counts",
    "caution",
)
