"""Claims that compare methods, one of which is recommended."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

LENGTHS = Claim(
    "inference.recommend.table.Recommendation.summary",
    "Length is the expected length of the 95% interval relative to the first length listed. It is "
    "computed from counts, propensities, and the overall mean and variance of rewards.",
    "note",
)
LENGTHS_BRIEFLY = Claim(
    "inference.recommend.table.Recommendation.summary",
    "Expected length of 95% intervals, relative to the first method.",
    "note",
)
NO_PART = Claim(
    "inference.recommend.recommendation.contexts_told", "{contexts} (not used to choose arms)", "note"
)
HAD_PART = Claim(
    "inference.recommend.recommendation.contexts_told", "{contexts} (used to choose arms)", "note"
)
NO_SEQUENCE_OF_RATIOS = Claim(
    "inference.recommend.recommendation.recommend",
    "confidence sequences are available for means and differences, not for ratios",
    "needs",
)
STOPPED_BY_PLAN = Claim(
    "inference.recommend.recommendation.recommend",
    "the method requires a fixed sample size, but a prespecified stopping rule determined the number of "
    "rounds",
    "needs",
)
STOPPED_BY_DATA = Claim(
    "inference.recommend.recommendation.recommend",
    "the method requires a prespecified number of rounds, but the number of rounds depended on the data",
    "needs",
)
