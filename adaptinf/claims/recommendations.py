"""What is said of methods side by side, where one is recommended."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

LENGTHS = Claim(
    "inference.recommend.table.Recommendation.summary",
    "Length is the expected length of the 95% interval relative to that of the first method, based on "
    "counts, propensities, and the pooled mean and variance of rewards (rewards of single arms are not "
    "used).",
    "note",
)
COUNTS_VARY = Claim(
    "inference.recommend.facts.facts_of",
    "in simulations, the standard deviation is {variation:.1%} of the median",
    "note",
)
NO_PART = Claim("inference.recommend.facts.contexts_told", "{contexts} (not used to choose arms)", "note")
HAD_PART = Claim("inference.recommend.facts.contexts_told", "{contexts} (used to choose arms)", "note")
NO_SEQUENCE_OF_RATIOS = Claim(
    "inference.recommend.recommendation.recommend",
    "confidence sequences are available for means and differences, not for ratios",
    "needs",
)
STOPPED_BY_PLAN = Claim(
    "inference.recommend.recommendation.recommend",
    "the method requires a fixed number of rounds, but a prespecified rule chose it",
    "needs",
)
STOPPED_BY_DATA = Claim(
    "inference.recommend.recommendation.recommend",
    "the number of rounds must be fixed in advance, but it depended on the data",
    "needs",
)
