"""What is said of means by bin of a locally private trial."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NO_BIN_SUMS = Claim(
    "inference.released.bin_sums.read_reports", "the log has no sums of reports by bin", "needs"
)
NO_STAGES = Claim(
    "inference.released.bin_sums.read_reports",
    "the log has sums of reports by bin, but none by stage, with weights (spent, weighted_count_...)",
    "needs",
)
SAME_LABELS = Claim(
    "inference.released.bin_sums.read_reports",
    "two of its arms read the same, so that releases named after one are also the other's",
    "needs",
)
SUMS_MISSING = Claim(
    "inference.released.bin_sums.read_reports",
    "its releases have pairs of a bin and an arm without all of their sums",
    "needs",
)
REPORTS_ALONE = Claim(
    "of_reports",
    "From released sums of noisy reports alone. Rewards were clipped to [0, 1]: the means are those of "
    "clipped rewards, over the law of the contexts within each bin.",
    "note",
)
COIN = Claim(
    "coin",
    "Reports on an arm end when their own sums say so. What was left of each term's variance budget (median "
    "{median:.0%}, largest {largest:.0%}) is filled by a normal coin, made of rng={rng} and the releases.",
    "note",
)
ANYTIME_VALID = Claim(
    "of_reports",
    "Tests are valid whenever reports on an arm end, in finite samples, and conservative.",
    "note",
)
NO_ESTIMATE = Claim(
    "no_estimate",
    "{terms}: no estimate, counts in the bin may drown in their noise; the interval stands.",
    "note",
)
WHOLE_RANGE = Claim(
    "whole_range", "{terms}: the 95% interval is all of [0, 1]: the reports say nothing.", "note"
)
SINGLE_POINT = Claim(
    "single_point",
    "{terms}: no mean in [0, 1] is accepted at 5%, the interval is the one that fits best.",
    "note",
)
_ENDS = (NO_ESTIMATE, WHOLE_RANGE, SINGLE_POINT)
BUDGET = (REPORTS_ALONE, COIN, *_ENDS)
ANYTIME = (REPORTS_ALONE, ANYTIME_VALID, *_ENDS)
