"""What is said of rewards that are missing, or late."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

SHARES = Claim("shares", "Rewards missing: {shares}.", "note")
AS_STATED = Claim(
    "as_stated", "rewards are observed with the logged probabilities, whatever their values", "assumes"
)
AT_RANDOM = Claim("at_random", "rewards are missing at random given {given}", "assumes")
STEADY = Claim(
    "estimates_shares", "either observation probabilities or means are constant over time", "assumes"
)
TOO_MANY_VALUES = Claim("left_out", "The observed shares ignore {names} (too many values).", "note")
WEIGHTED = Claim(
    "weighted", "Scores are weighted by the inverse of the share observed so far{within}.", "note"
)
BEFORE_OBSERVED = Claim(
    "before_observed",
    "Rounds before an arm's first observed reward have no weight (at most {n} per arm).",
    "note",
)
BEFORE_KNOWN = Claim("before_known", "Rounds before the first known reward have no weight.", "note")
SHARES_DIFFER = Claim(
    "shares_differ",
    "the share of missing rewards differs between arms (chi-squared {statistic:.1f}, {df} df, p = "
    "{p:.2g}): if missingness depends on the rewards, estimates are biased; missing='worst' bounds the "
    "bias",
    "caution",
)
FIT = (
    AS_STATED,
    AT_RANDOM,
    STEADY,
    SHARES,
    TOO_MANY_VALUES,
    WEIGHTED,
    BEFORE_OBSERVED,
    BEFORE_KNOWN,
    SHARES_DIFFER,
)
"""Of a fit that weighs by the probability to observe a reward, or waits for late ones."""

MEAN = Claim(
    "inference.arms.circumstances.deviations.past_outcome",
    "Outcome model: running mean of the arm's rewards{known}{within}.",
    "note",
)
ENDS = Claim(
    "inference.results.ends.both_ends",
    "{missing} Lowest and highest estimates that the missing rewards allow: {ends}. The table shows "
    "the {lead} case. Intervals hold whatever the missing rewards are; p-values are for the end nearer "
    "to the null value (1 if it lies between the ends).",
    "note",
)
