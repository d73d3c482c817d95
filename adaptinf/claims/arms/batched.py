"""Claims about batched least squares."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

NO_BATCHES = Claim("lacks_batches", "the method requires batches, but the log has none (set batch=)", "needs")
MOVE_WITHIN = Claim(
    "inference.arms.batched.usable_batches",
    "the method requires constant propensities within each batch, but propensities vary within some "
    "batches ({n} in total; numbered from 0: {which})",
    "needs",
)
LACKING = Claim(
    "inference.arms.batched.usable_batches",
    "in {n} of {batches} batches (numbered from 0: {which}), one of the arms has no rewards, or the two "
    "arms together have fewer than three",
    "needs",
)
BENT = Claim(
    "inference.arms.batched.usable_batches",
    "{lacking}; excluding these batches would invalidate the test because, under adaptive assignment, "
    "earlier rewards influence which batches are excluded",
    "needs",
)
DRIFTS = Claim(
    "inference.arms.batched.drifting_test", "The test allows arm means to differ between batches.", "note"
)
"""Claims about the test of a difference that may drift."""

REASON = Claim(
    "inference.arms.batched.usable_batches",
    "assignment does not adapt within batches, so the t test within each batch is valid "
    "(and exact if rewards are normal)",
    "reason",
)
CONSTANT_SHARES = Claim(
    "always",
    "assignment probabilities are constant within batches",
    "assumes",
    check="profile.shares_found",
    short="constant shares within batches",
)
ASSUMES = (
    CONSTANT_SHARES,
    Claim(
        "always",
        "the difference between the arm means is constant over time (parallel drift is allowed)",
        "assumes",
        check="difference_found",
        short="constant difference",
    ),
    Claim(
        "always",
        "both arms have the same reward variance within each batch",
        "assumes",
        short="equal variances within batches",
    ),
    contexts.NO_PART,
)
"""Claims for a row of `recommend`, and for a fit."""

DIFFERENCE_MOVES = Claim(
    "inference.arms.batched.BatchedRow.difference_found",
    "the difference appears to vary between batches (p = {p:.1g}), but this method assumes a constant "
    "difference, so the interval may not cover the average difference",
    "caution",
)
UNVARYING = Claim(
    "unvarying",
    "in at least one batch, all rewards are equal, so the variance estimate for that batch is 0 and the "
    "test statistic cannot be computed",
    "caution",
)
MOVED_INSIDE = Claim(
    "inference.validity.profile.LogProfile.shares_found",
    "arms do not appear to be assigned in constant proportions within batches, so common drift may bias "
    "the estimated difference; use shorter batches with constant assignment probabilities",
    "caution",
)
FIT = (
    *ASSUMES,
    Claim("left_out", "{lacking}; these batches are dropped, which is valid because {why}.", "note"),
    Claim("is_exact", "Inference is exact if rewards are normally distributed.", "note"),
    contexts.NEVER_RANDOM,
    Part("rare_notes", "note"),
    Part("rare_cautions", "caution"),
    UNVARYING,
)
"""Statements about a fit, in the order in which its table shows them."""
