"""Claims about rewards that are missing, or late."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

SHARES = Claim("shares", "Rewards missing in each arm: {shares}.", "note")
AS_STATED = Claim(
    "as_stated",
    "each reward is observed with its logged observation probability, independently of the reward's value",
    "assumes",
    short="observation probabilities are right",
)
AT_RANDOM = Claim(
    "at_random",
    "rewards are missing at random given {given}",
    "assumes",
    short="missing at random given {given}",
)
STEADY = Claim(
    "estimates_shares",
    "either observation probabilities or arm means are time-invariant",
    "assumes",
    short="constant observation rates or means",
)
TOO_MANY_VALUES = Claim(
    "left_out",
    "The model for observation probabilities omits variables with too many distinct values: {names}.",
    "note",
)
WEIGHTED = Claim(
    "weighted",
    "Scores are divided by the proportion of the arm's earlier rewards{within} that were observed.",
    "note",
    short="weighted by observed shares",
)
BEFORE_OBSERVED = Claim(
    "before_observed",
    "Rounds before an arm's first observed reward have weight 0 (at most {n} such rounds per arm).",
    "note",
)
BEFORE_KNOWN = Claim("before_known", "Rounds before the first reward was observed have weight 0.", "note")
SHARES_DIFFER = Claim(
    "shares_differ",
    "the proportion of missing rewards appears to differ between arms (chi-squared {statistic:.1f}, "
    "{df} df, p = {p:.2g}); if missingness depends on rewards, estimates are biased (missing='bounds' "
    "gives bounds instead)",
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
"""Claims for a fit that weights by observation probabilities, or waits for late rewards."""

SAME_WEIGHTS = Claim(
    "inference.arms.data.incomplete_rewards.past_outcome",
    "The bounds use the same outcome model as missing='drop' and omit the same initial rounds. With the "
    "same weights, they therefore contain the estimate from missing='drop', apart from random error in "
    "the estimated observation probabilities.",
    "note",
)
LEADS = {
    "worst": Claim("inference.results.ends.both_ends", "the lower bound", "phrase"),
    "best": Claim("inference.results.ends.both_ends", "the upper bound", "phrase"),
    "bounds": Claim("inference.results.ends.both_ends", "the midpoint", "phrase"),
}
"""The bound that serves as the estimate, by the log's statement on missing rewards."""
MEAN = Claim(
    "inference.arms.data.incomplete_rewards.past_outcome",
    "Outcome model: running mean of the arm's rewards{known}{within}.",
    "note",
)
ENDS = Claim(
    "inference.results.ends.both_ends",
    "{missing} Bounds over all possible values of missing rewards: {ends} (estimate: {lead}). Intervals "
    "are valid whatever these values are; p-values are computed from the bound closer to the null "
    "value, or are 1 if the null value lies within the bounds.",
    "note",
    short="bounds over all values of missing rewards",
)
