"""What is said where outcomes are rare, or rewards skewed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CORRECTED = Claim(
    "inference.validity.rare.law_of_parts",
    "Intervals and p-values are corrected for the skewness of the rewards: by Hall's transformation of each "
    "mean, and MOVER for differences. Standard errors are the usual ones.",
    "note",
)
SKEWNESS_UNKNOWN = Claim(
    "skewness_unknown",
    "the sums show neither how skewed rewards are (sum_cubes=) nor how many differ from 0 (nonzero=): with "
    "skewed rewards or rare outcomes intervals are too short",
    "caution",
)
NO_INTERVAL = Claim(
    "inference.validity.rare.without_interval",
    "{terms}: no test or interval, because fewer than {fewest} outcomes (in brackets how many) differ from "
    "the commonest, too few to estimate the error.",
    "note",
)
FEW_OUTCOMES = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: few outcomes differ from the commonest (their number in brackets, below {enough}), so "
    "intervals may be short",
    "caution",
)
SKEWED_THOUGH_CORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: rewards are skewed and a few rounds carry most of the weight, so even corrected intervals may "
    "be short",
    "caution",
)
SKEWED_UNCORRECTED = Claim(
    "inference.validity.rare.rare_cautions",
    "{terms}: intervals ignore skewness and may be short, because skewed rewards of a few rounds dominate "
    "the estimate",
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
