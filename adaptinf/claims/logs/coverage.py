"""What is said of each part of a private log: whether its guarantee covers it, and why or why not.

Of each list the first claim that is so decides: a reason says that the part is covered, a need that it is
not.
"""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DECLARED = Claim("always", "the value was declared before the trial", "reason")
OWN_ACTION = Claim(
    "anticipating",
    "the guarantee excludes a participant's own action, which can reveal the participant's context",
    "needs",
)

ACTIONS_ARE_OUTPUTS = Claim("always", "the guarantee covers actions jointly with the releases", "reason")
ACTION = (OWN_ACTION, ACTIONS_ARE_OUTPUTS)
"""Actions, and what is counted from them."""

ESTIMATED = Claim(
    "has_estimates", "propensities are estimates from the data, not probabilities set by the design", "needs"
)
BY_CONTEXT = Claim(
    "outputs_by_context",
    "a round's propensity can reveal its context, because the propensity given each context can be "
    "computed from the releases",
    "needs",
)
COMPUTED = Claim(
    "always",
    "propensities are computed only from covered outputs (actions, proposals and releases)",
    "reason",
)
PROPENSITY = (
    ESTIMATED,
    BY_CONTEXT,
    Claim(
        "outputs_without_propensities",
        "propensities may depend on data other than actions and releases",
        "needs",
    ),
    OWN_ACTION,
    COMPUTED,
)

COUNTS_ROUNDS = Claim("counts_rounds", "the column only numbers the rounds", "reason")
ROUND = (
    COUNTS_ROUNDS,
    Claim("always", "times and round numbers supplied by the user are not covered", "needs"),
)

PHASE_BY_CALENDAR = Claim("phase_by_calendar", "phases follow a calendar fixed in advance", "reason")
PHASE_BY_OUTPUTS = Claim("phase_by_outputs", "phases are determined by actions and releases", "reason")
PHASE = (
    PHASE_BY_CALENDAR,
    PHASE_BY_OUTPUTS,
    Claim("always", "the design does not specify that phases depend only on covered outputs", "needs"),
)

CONTEXT_IS_PUBLIC = Claim("context_is_public", "the context was declared public", "reason")
CONTEXT_IS_PRIVATE = Claim("always", "the context was not declared public", "needs")
CONTEXT = (
    Claim("protects_contexts", "contexts are protected data, because the guarantee is per {unit}", "needs"),
    CONTEXT_IS_PUBLIC,
    CONTEXT_IS_PRIVATE,
)

OUTCOME = Claim("always", "additional outcomes are protected data, like rewards", "needs")
REWARD = Claim("always", "rewards are the protected data", "needs")
UNIT = Claim("always", "the identities of participants are not covered", "needs")
COLUMNS = {
    "t": ROUND,
    "action": ACTION,
    "phase": PHASE,
    "unit_id": (UNIT,),
    "reward": (REWARD,),
    "received": (Claim("always", "the arms actually received are not covered", "needs"),),
    "observation": (Claim("always", "the pattern of observed rewards is not covered", "needs"),),
    "outcome_round": (Claim("always", "the arrival times of outcomes are not covered", "needs"),),
    "batch": (
        Claim("always", "batch boundaries may reflect more than the calendar and covered outputs", "needs"),
    ),
    "randomised": (Claim("always", "the design's coin flips are not covered", "needs"),),
}
"""Columns by their canonical names, but for contexts, propensities and further outcomes."""

RELEASES = Claim("always", "releases are covered outputs, and their noise scales were declared", "reason")
DESIGN = Claim("always", "the name and parameters of the design were declared before the trial", "reason")
RECOMMENDED = Claim("recommends_by_releases", "the recommendation is computed from releases", "reason")
STOPPED_BY_DATA = Claim(
    "stopped_by_data",
    "the number of rounds when the trial was stopped, covered only if the decision to stop used outputs "
    "alone",
    "reason",
)
SO_FAR = Claim(
    "ended_early",
    "the number of rounds depends only on when the log was created, and this time was chosen without "
    "regard to outcomes",
    "reason",
)
FIELDS = {
    "releases": (RELEASES,),
    "design": (DESIGN,),
    "arms": (DECLARED,),
    "guarantee": (DECLARED,),
    "noise": (DECLARED,),
    "n_rounds": (
        Claim("length_by_releases", "the number of rounds is determined by the releases", "reason"),
        STOPPED_BY_DATA,
        SO_FAR,
        DECLARED,
    ),
    "pulls": ACTION,
    "recommended": (
        RECOMMENDED,
        Claim("always", "the recommendation may use data other than the releases", "needs"),
    ),
    "reward_range": (Claim("always", "the reward range may have been computed from the data", "needs"),),
    "adaptive_rounds": (
        Claim("always", "this number may depend on coin flips, which are not covered", "needs"),
    ),
    "seeds, timestamps, delays": (Claim("always", "seeds, timestamps and delays are not covered", "needs"),),
    "counts of missing or clipped outcomes": (
        Claim("always", "these counts are computed from rewards", "needs"),
    ),
    "digests of the log": (Claim("always", "a digest could confirm a guess of the log's contents", "needs"),),
}
"""What is no column, in the order in which it is shown."""

UNPROMISED = Claim("log.coverage.not_covered", "the log has no privacy guarantee: {reasons}", "needs")
INFINITE = Claim("log.coverage.not_covered", "the guarantee has infinite epsilon and covers nothing", "needs")
