"""What is said where outcomes are rare, or rewards skewed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CORRECTED = Claim(
    "inference.validity.rare.law_of_parts",
    "Intervals and p-values are corrected for skewness, as the rewards are skewed: Hall's transformation of "
    "each mean, and MOVER for differences. The standard errors are the usual ones.",
    "note",
)
SKEWNESS_UNKNOWN = Claim(
    "skewness_unknown",
    "the sums do not tell how skewed rewards are (sum_cubes=), nor how rare others than the commonest "
    "(nonzero=): with skewed rewards or rare outcomes intervals are too short",
    "caution",
)
NO_INTERVAL = Claim(
    "inference.validity.rare.without_interval",
    "{terms}: no test or interval, as fewer than {fewest} outcomes other than the commonest (their number "
    "in brackets) tell too little of how far the estimate may be off.",
    "note",
)
FEW_OUTCOMES = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: fewer than {enough} outcomes other than the commonest (their number in brackets), "
    "intervals may be too short",
    "caution",
)
SKEWED_THOUGH_CORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: the rewards are skewed, and rounds that weigh much are few, so that intervals "
    "may be too short, although they are corrected for skewness",
    "caution",
)
SKEWED_UNCORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: the rewards are skewed, and rounds that weigh much are few, so that intervals "
    "may be too short, as they allow for no skewness",
    "caution",
)
FEW_EVENTS = Claim(
    "inference.arms.circumstances.laws.shape_cautions",
    "{arms}: after weighting, fewer than {fewest} effective outcomes differ from the commonest, which "
    "can make intervals far too short",
    "caution",
)
UNVARYING = Claim(
    "inference.arms.circumstances.laws.unvarying",
    "{arm}: its rewards do not vary, so there is no test or interval for it, nor for differences from "
    "it (exact ones require sample means)",
    "caution",
)
UNVARYING_COUNTS = Claim(
    "inference.arms.circumstances.laws.unvarying",
    "{arm}: constant rewards give differences from it no standard error; their interval is based on counts",
    "caution",
)
