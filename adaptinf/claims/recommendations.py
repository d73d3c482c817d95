"""What is said of methods side by side, where one is recommended."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

LENGTHS = Claim(
    "inference.recommend.table.Recommendation.summary",
    "Length: expected length of the 95% interval relative to the first method's, from counts, propensities, "
    "and the mean and variance of all rewards together, never from one arm's.",
    "note",
)
COUNTS_VARY = Claim("inference.recommend.facts.facts_of", "vary by {variation:.1%} of their median", "note")
NO_PART = Claim("inference.recommend.facts.contexts_told", "{contexts}, not used to choose arms", "note")
PART_OF_OTHERS = Claim(
    "inference.recommend.facts.contexts_told", "{contexts}; others were used to choose arms", "note"
)
NO_SEQUENCE_OF_RATIOS = Claim(
    "inference.recommend.recommendation.recommend",
    "sequences are for means and their differences, not for ratios",
    "needs",
)
STOPPED_BY_PLAN = Claim(
    "inference.recommend.recommendation.recommend",
    "it needs a number of rounds fixed in advance, and a planned rule chose it",
    "needs",
)
STOPPED_BY_DATA = Claim(
    "inference.recommend.recommendation.recommend",
    "it needs a number of rounds fixed in advance, and the data chose it",
    "needs",
)
