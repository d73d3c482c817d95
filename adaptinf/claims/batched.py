"""What is said of batched least squares."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

NO_BATCHES = Claim(
    "inference.arms.batched.usable_batches", "it needs batches, and the log has none (give batch=)", "needs"
)
MOVE_WITHIN = Claim(
    "inference.arms.batched.usable_batches",
    "propensities move within {n} batches ({which}), where nothing may adapt",
    "needs",
)
LACKING = Claim(
    "inference.arms.batched.usable_batches",
    "{n} of {batches} batches ({which}) lack one of the arms or a third reward",
    "needs",
)
BENT = Claim(
    "inference.arms.batched.usable_batches",
    "{lacking}; which ones can depend on earlier batches' rewards, so that leaving them out would bend the "
    "law of the statistic",
    "needs",
)
DRIFTS = Claim(
    "inference.arms.batched.drifting_test", "The arms' means may drift from batch to batch.", "note"
)
"""Of the test of a difference that may drift, too."""

REASON = Claim(
    "inference.arms.batched.usable_batches",
    "within a batch nothing adapts: each has its own t statistic; exact for normal rewards",
    "reason",
)
ASSUMES = (
    Claim("always", "arms are drawn with the same probabilities throughout a batch", "assumes"),
    Claim(
        "always",
        "one difference throughout (the arms' means may drift together from batch to batch)",
        "assumes",
        check="inference.arms.contrast.Contrast.batch_test",
    ),
    Claim("always", "one variance within a batch", "assumes"),
    contexts.NO_PART,
)
"""Of a row of `recommend`, and of a fit."""

UNVARYING = Claim("unvarying", "in a batch the rewards do not vary: there is no estimate", "caution")
FIT = (
    *ASSUMES,
    Claim("left_out", "{lacking}: left out, as {why}.", "note"),
    Claim("is_exact", "The law of the statistic is exact for normal rewards.", "note"),
    Part("rare_notes", "note"),
    Part("rare_cautions", "caution"),
    Part("profile.share_cautions", "caution"),
    Claim(
        "moved_inside",
        "the arms' shares move within batches, where their probabilities are taken to stay: a drift that "
        "arms share biases the difference (batches within which they stay, such as hours, would do without "
        "that)",
        "caution",
    ),
    UNVARYING,
)
"""Of a fit, in the order in which its table has them."""
