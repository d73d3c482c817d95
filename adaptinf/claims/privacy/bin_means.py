"""What is said of means by bin of a locally private trial."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

NO_BIN_SUMS = Claim(
    "inference.released.bin_sums.read_reports",
    "the log releases no sums by bin",
    "needs",
)
NO_STAGES = Claim(
    "inference.released.bin_sums.read_reports",
    "the log has sums of reports by bin, but no weighted sums by stage (spent, weighted_count_...)",
    "needs",
)
SAME_LABELS = Claim(
    "inference.released.bin_sums.read_reports",
    "two of its arms print alike, so releases named after one could be the other's",
    "needs",
)
SUMS_MISSING = Claim(
    "inference.released.bin_sums.read_reports",
    "its releases lack some of the sums of a bin and arm",
    "needs",
)
NORMAL_WITH_COIN = Claim("inference.released.bin_tests.BudgetTest", "normal, budget filled by a coin", "note")
"""The name of a law."""
REPORTS_ALONE = Claim(
    "of_reports",
    "From released sums of noisy reports alone. Means are over the law of the contexts within each bin.",
    "note",
)
COIN = Claim(
    "coin",
    "Reports on an arm end when their own sums say so. What remains of each term's variance budget "
    "(median {median:.0%}, largest {largest:.0%}) is filled by a normal draw, seeded by rng={rng} and "
    "the releases.",
    "note",
)
ANYTIME_VALID = Claim(
    "of_reports",
    "Tests are conservative, and valid in finite samples no matter when an arm's reports end.",
    "note",
)
NO_ESTIMATE = Claim(
    "no_estimate",
    "{terms}: no estimate, as noise may swamp the counts in the bin; the interval stands.",
    "note",
)
WHOLE_RANGE = Claim(
    "whole_range", "{terms}: the 95% interval is all of [0, 1]: the reports say nothing.", "note"
)
SINGLE_POINT = Claim(
    "single_point",
    "{terms}: no mean in [0, 1] is accepted at 5%, so the interval is the single mean that fits best.",
    "note",
)
_ENDS = (NO_ESTIMATE, WHOLE_RANGE, SINGLE_POINT)
BUDGET = (REPORTS_ALONE, Part("clipped", "note"), COIN, *_ENDS)
ANYTIME = (REPORTS_ALONE, Part("clipped", "note"), ANYTIME_VALID, *_ENDS)
