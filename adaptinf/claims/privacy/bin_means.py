"""Claims about means by bin in a locally private trial."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

NO_BIN_SUMS = Claim(
    "inference.released.bin_tests.read_reports",
    "the log contains no released sums by context bin",
    "needs",
)
NO_STAGES = Claim(
    "inference.released.bin_tests.read_reports",
    "released weighted sums by context bin and stage are missing (columns spent, weighted_count_...)",
    "needs",
)
SAME_LABELS = Claim(
    "inference.released.bin_tests.read_reports",
    "two arms have the same printed label, so their releases cannot be distinguished",
    "needs",
)
SUMS_MISSING = Claim(
    "inference.released.bin_tests.read_reports",
    "some combinations of bin and arm have no released sums",
    "needs",
)
NORMAL_WITH_COIN = Claim(
    "inference.released.bin_tests.BudgetTest",
    "normal, with independent normal noise added so that each test statistic has unit variance",
    "phrase",
)
"""The name of a distribution."""
REPORTS_ALONE = Claim(
    "of_reports",
    "Estimates are based only on released sums of noisy reports. Each mean averages over the "
    "distribution of contexts within its bin.",
    "note",
    short="from released sums",
)
COIN = Claim(
    "coin",
    "Because reporting in each arm stops at a data-dependent time, normal noise is added to exhaust the "
    "arm's variance budget (seeds: rng={rng} and the releases). Added share of the budget: median "
    "{median:.0%}, maximum {largest:.0%}.",
    "note",
)
ANYTIME_VALID = Claim(
    "of_reports",
    "Tests are conservative but valid in finite samples under any stopping rule.",
    "note",
)
NO_ESTIMATE = Claim(
    "no_estimate",
    "Privacy noise may dominate the counts for {terms}, so no estimate is given. Confidence intervals "
    "remain valid.",
    "missing",
)
WHOLE_RANGE = Claim(
    "whole_range",
    "The private reports are uninformative for {terms}: the 95% interval spans the whole range [0, 1].",
    "note",
)
SINGLE_POINT = Claim(
    "single_point",
    "For {terms}, every mean in [0, 1] is rejected at the 5% level, so the interval contains only the "
    "best-fitting mean.",
    "note",
)
_ENDS = (NO_ESTIMATE, WHOLE_RANGE, SINGLE_POINT)
BUDGET = (REPORTS_ALONE, Part("clipped", "note"), COIN, *_ENDS)
ANYTIME = (REPORTS_ALONE, Part("clipped", "note"), ANYTIME_VALID, *_ENDS)
