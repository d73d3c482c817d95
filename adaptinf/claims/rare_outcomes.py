"""Claims about rare outcomes and skewed rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNCOMMON = Claim(
    "inference.validity.rare.without_interval", "rewards that differ from the most frequent value", "phrase"
)
"""The rarer of two values, which is counted if numbers may be too small."""
CORRECTED = Claim(
    "inference.validity.rare.law_of_parts",
    "Intervals and p-values are corrected for skewness of the rewards, by Hall's transformation for "
    "means and by the MOVER method for differences. Standard errors are not corrected.",
    "note",
)
UNANSWERED = Claim(
    "inference.arms.choice.rare_labels",
    "no interval is given for {arms}, because there are fewer than {fewest} {uncommon} (counts in "
    "parentheses)",
    "caution",
    phrases={"uncommon": UNCOMMON},
)
"""For a row of `recommend`."""
COUNTED = Claim(
    "inference.validity.rare.law_of_parts",
    "For {terms}, intervals and p-values treat {uncommon} as weighted Poisson counts (gamma limits of "
    "Fay and Feuer, combined by the MOVER method), because their effective number (in parentheses) is "
    "below {enough}. Standard errors may be underestimated.",
    "note",
    phrases={"uncommon": UNCOMMON},
)
SHAPE_UNKNOWN = Claim(
    "shape_unknown",
    "intervals may undercover if outcomes are rare or rewards are skewed; sums show rare outcomes only "
    "with nonzero=, and skewness only with sum_cubes=",
    "caution",
)
SKEWNESS_UNKNOWN = Claim(
    "skewness_unknown",
    "intervals may undercover if rewards are skewed; the logged sums do not show skewness without sum_cubes=",
    "caution",
)
"""Where outcomes were counted."""
NO_INTERVAL = Claim(
    "inference.validity.rare.without_interval",
    "For {terms}, tests and intervals are omitted: there are fewer than {fewest} {uncommon} (counts in "
    "parentheses).",
    "missing",
    phrases={"uncommon": UNCOMMON},
)
FEW_OUTCOMES = Claim(
    "inference.validity.rare.rare_cautions",
    "intervals for {terms} may undercover, because fewer than {enough} {uncommon} were observed (counts "
    "in parentheses)",
    "caution",
    phrases={"uncommon": UNCOMMON},
)
SKEWED_THOUGH_CORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "even skewness-corrected intervals may undercover: the skewness of rewards for {terms} is too large, or "
    "known too imprecisely, for the number of rounds",
    "caution",
)
SKEWED_UNCORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "a few rounds with skewed rewards dominate the estimates for {terms}, so intervals without skewness "
    "correction may undercover",
    "caution",
)
FEW_EVENTS = Claim(
    "inference.arms.data.arm_laws.shape_cautions",
    "intervals may undercover substantially for {arms}: the effective number of {uncommon} (in "
    "parentheses) is below {fewest}",
    "caution",
    phrases={"uncommon": UNCOMMON},
)
UNVARYING = Claim(
    "inference.arms.data.arm_laws.unvarying",
    "all rewards of arm {arm} are equal, so this estimator provides no test of its mean or of its "
    "differences from other arms; estimator='sample-mean' gives exact tests and intervals",
    "caution",
)
UNVARYING_COUNTS = Claim(
    "inference.arms.data.arm_laws.unvarying",
    "contrasts with arm {arm} have intervals based on counts of reward values but no standard errors, "
    "because the arm's rewards do not vary",
    "caution",
)
