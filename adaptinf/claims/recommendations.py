"""What is said of methods side by side, where one is recommended."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

LENGTHS = Claim(
    "inference.recommend.table.Recommendation.summary",
    "Length: of the 95% intervals to be expected, over that of the first method; by counts, propensities and "
    "the mean and variance of all rewards together, never by an arm's own.",
    "note",
)
COUNTS_VARY = Claim("inference.recommend.facts.facts_of", "vary by {variation:.1%} of their median", "note")
NO_PART = Claim(
    "inference.recommend.facts.contexts_told", "{contexts}; no part in the choice of arms", "note"
)
PART_OF_OTHERS = Claim(
    "inference.recommend.facts.contexts_told", "{contexts}; others had a part in the choice", "note"
)
NO_SEQUENCE_OF_RATIOS = Claim(
    "inference.recommend.recommendation.recommend",
    "a sequence is of means and their differences, not of ratios",
    "needs",
)
STOPPED_BY_DATA = Claim(
    "inference.recommend.recommendation.recommend",
    "it holds at a number of rounds that was fixed in advance, and the data chose it",
    "needs",
)
