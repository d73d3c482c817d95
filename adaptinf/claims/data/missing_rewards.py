"""What is said of rewards that are missing, or late."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

SHARES = Claim("shares", "Rewards missing: {shares}.", "note")
AS_STATED = Claim(
    "as_stated", "a reward is observed with the probability that the log gives, whatever it is", "assumes"
)
AT_RANDOM = Claim("at_random", "rewards are missing at random given {given}", "assumes")
STEADY = Claim("estimates_shares", "shares observed or means stay the same", "assumes")
TOO_MANY_VALUES = Claim("left_out", "Shares observed are not by {names}, of too many values.", "note")
WEIGHTED = Claim("weighted", "Scores are weighted by the share observed so far{within}.", "note")
BEFORE_OBSERVED = Claim(
    "before_observed",
    "Rounds before an arm's first observed reward have no weight ({n} at most).",
    "note",
)
BEFORE_KNOWN = Claim("before_known", "Rounds before any reward was known have no weight.", "note")
SHARES_DIFFER = Claim(
    "shares_differ",
    "arms differ in the share of missing rewards (chi-squared {statistic:.1f}, {df} df, p = {p:.2g}): if "
    "what is missing depends on the rewards themselves, estimates are biased, and missing='worst' tells by "
    "how much at most",
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
    "Outcome model: the arm's mean over earlier rewards{known}{within}.",
    "note",
)
ENDS = Claim(
    "inference.results.ends.both_ends",
    "{missing} Estimates with missing rewards at their ends: {ends}. The table shows the {lead}; intervals "
    "hold whatever the missing rewards are, and p-values are those of the nearer end (1 between the ends).",
    "note",
)
