"""What is said of means by bin of a locally private trial."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

NO_BIN_SUMS = Claim(
    "inference.released.bin_sums.read_reports",
    "the log contains no released sums by context bin",
    "needs",
)
NO_STAGES = Claim(
    "inference.released.bin_sums.read_reports",
    "the released sums by bin lack weighted sums for each stage (spent, weighted_count_...)",
    "needs",
)
SAME_LABELS = Claim(
    "inference.released.bin_sums.read_reports",
    "two arms have the same printed label, so their releases cannot be distinguished",
    "needs",
)
SUMS_MISSING = Claim(
    "inference.released.bin_sums.read_reports",
    "released sums are missing for at least one combination of bin and arm",
    "needs",
)
NORMAL_WITH_COIN = Claim(
    "inference.released.bin_tests.BudgetTest",
    "normal, with the variance budget filled by a random draw",
    "note",
)
"""The name of a law."""
REPORTS_ALONE = Claim(
    "of_reports",
    "Estimates are based only on released sums of noisy reports. Each mean averages over the "
    "distribution of contexts within its bin.",
    "note",
)
COIN = Claim(
    "coin",
    "Reporting for an arm stops at a time that depends on its own reports. The unused part of each "
    "variance budget (median {median:.0%}, maximum {largest:.0%}) is filled by a normal draw, seeded by "
    "rng={rng} and the releases.",
    "note",
)
ANYTIME_VALID = Claim(
    "of_reports",
    "Tests are conservative and valid in finite samples under any rule for stopping the reports.",
    "note",
)
NO_ESTIMATE = Claim(
    "no_estimate",
    "Noise may dominate the counts for {terms}, so no estimate is given; confidence intervals remain valid.",
    "note",
)
WHOLE_RANGE = Claim(
    "whole_range",
    "The reports are uninformative for {terms}: the 95% interval is the whole range [0, 1].",
    "note",
)
SINGLE_POINT = Claim(
    "single_point",
    "For {terms}, the 5% test rejects every mean in [0, 1], so the interval is the single best-fitting mean.",
    "note",
)
_ENDS = (NO_ESTIMATE, WHOLE_RANGE, SINGLE_POINT)
BUDGET = (REPORTS_ALONE, Part("clipped", "note"), COIN, *_ENDS)
ANYTIME = (REPORTS_ALONE, Part("clipped", "note"), ANYTIME_VALID, *_ENDS)
