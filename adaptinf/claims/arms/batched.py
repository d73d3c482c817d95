"""What is said of batched least squares."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

NO_BATCHES = Claim(
    "inference.arms.batched.usable_batches", "it requires batches, but none are logged (give batch=)", "needs"
)
MOVE_WITHIN = Claim(
    "inference.arms.batched.usable_batches",
    "propensities must be constant within batches, but change in {n} of them ({which})",
    "needs",
)
LACKING = Claim(
    "inference.arms.batched.usable_batches",
    "{n} of {batches} batches ({which}) lack one of the arms or have fewer than three rewards",
    "needs",
)
BENT = Claim(
    "inference.arms.batched.usable_batches",
    "{lacking}; earlier rewards may affect which batches do, and omitting them would distort the "
    "distribution of the statistic",
    "needs",
)
DRIFTS = Claim("inference.arms.batched.drifting_test", "Arm means may change between batches.", "note")
"""Of the test of a difference that may drift, too."""

REASON = Claim(
    "inference.arms.batched.usable_batches",
    "nothing adapts within a batch, so each batch gives a t statistic; exact for normal rewards",
    "reason",
)
ASSUMES = (
    Claim(
        "always",
        "assignment probabilities are constant within batches",
        "assumes",
        check="profile.shares_found",
    ),
    Claim(
        "always",
        "the difference between the arms is constant (their means may drift in parallel)",
        "assumes",
    ),
    Claim("always", "both arms have the same variance within a batch", "assumes"),
    contexts.NO_PART,
)
"""Of a row of `recommend`, and of a fit."""

UNVARYING = Claim("unvarying", "rewards are constant within a batch, so there is no estimate", "caution")
MOVED_INSIDE = Claim(
    "inference.validity.profile.LogProfile.shares_found",
    "the arms' shares change within batches, although constant probabilities are assumed there: any "
    "drift, even a shared one, biases the difference (batches with constant shares, such as hours, "
    "avoid this)",
    "caution",
)
FIT = (
    *ASSUMES,
    Claim("left_out", "{lacking}; leaving them out is valid because {why}.", "note"),
    Claim("is_exact", "The statistic's distribution is exact if rewards are normal.", "note"),
    Part("rare_notes", "note"),
    Part("rare_cautions", "caution"),
    UNVARYING,
)
"""Of a fit, in the order in which its table has them."""
