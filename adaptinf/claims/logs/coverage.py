"""What is said of each part of a private log: whether its guarantee covers it, and why or why not.

Of each list the first claim that is so decides: a reason says that the part is covered, a need that it is
not.
"""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DECLARED = Claim("always", "declared beforehand", "reason")
OWN_ACTION = Claim(
    "anticipating",
    "the guarantee leaves out a participant's own action, which can name their context",
    "needs",
)

ACTIONS_ARE_OUTPUTS = Claim("always", "actions are outputs, protected jointly with the releases", "reason")
ACTION = (OWN_ACTION, ACTIONS_ARE_OUTPUTS)
"""Actions, and what is counted from them."""

ESTIMATED = Claim("has_estimates", "estimated from the data: they are no numbers of the design", "needs")
BY_CONTEXT = Claim(
    "outputs_by_context",
    "a round's can name its context; those of each context follow from releases",
    "needs",
)
COMPUTED = Claim("always", "computed from actions, proposals and releases, which are outputs", "reason")
PROPENSITY = (
    ESTIMATED,
    BY_CONTEXT,
    Claim(
        "outputs_without_propensities",
        "the design does not state that they follow from actions and releases",
        "needs",
    ),
    OWN_ACTION,
    COMPUTED,
)

COUNTS_ROUNDS = Claim("counts_rounds", "it counts the rounds", "reason")
ROUND = (
    COUNTS_ROUNDS,
    Claim("always", "times and numbers of rounds that a user gave are no outputs", "needs"),
)

PHASE_BY_CALENDAR = Claim("phase_by_calendar", "it follows from the calendar", "reason")
PHASE_BY_OUTPUTS = Claim("phase_by_outputs", "it follows from actions and releases", "reason")
PHASE = (
    PHASE_BY_CALENDAR,
    PHASE_BY_OUTPUTS,
    Claim("always", "it is not stated to follow from outputs alone", "needs"),
)

CONTEXT_IS_PUBLIC = Claim("context_is_public", "declared public", "reason")
CONTEXT_IS_PRIVATE = Claim("always", "it was not declared public", "needs")
CONTEXT = (
    Claim("protects_contexts", "the guarantee is per {unit}: contexts are what it protects", "needs"),
    CONTEXT_IS_PUBLIC,
    CONTEXT_IS_PRIVATE,
)

OUTCOME = Claim("always", "outcomes are what is protected, as rewards are", "needs")
REWARD = Claim("always", "rewards are what is protected", "needs")
UNIT = Claim("always", "who took part is no output", "needs")
COLUMNS = {
    "t": ROUND,
    "action": ACTION,
    "phase": PHASE,
    "unit_id": (UNIT,),
    "reward": (REWARD,),
    "received": (Claim("always", "what a participant took is no output", "needs"),),
    "observation": (Claim("always", "which rewards are observed is no output", "needs"),),
    "outcome_round": (Claim("always", "times are no outputs", "needs"),),
    "batch": (
        Claim("always", "batches are not stated to follow from the calendar or from outputs", "needs"),
    ),
    "randomised": (Claim("always", "it shows the design's coins", "needs"),),
}
"""Columns by their canonical names, but for contexts, propensities and further outcomes."""

RELEASES = Claim("always", "outputs, with the scales of their noise, which are declared", "reason")
DESIGN = Claim("always", "its name and parameters are declared beforehand", "reason")
RECOMMENDED = Claim("recommends_by_releases", "computed from releases", "reason")
FIELDS = {
    "releases": (RELEASES,),
    "design": (DESIGN,),
    "arms": (DECLARED,),
    "guarantee": (DECLARED,),
    "noise": (DECLARED,),
    "n_rounds": (
        Claim("length_by_releases", "decided by releases", "reason"),
        Claim(
            "ended_early",
            "how many had come when the log was made, at a moment that nobody chose by outcomes",
            "reason",
        ),
        DECLARED,
    ),
    "pulls": ACTION,
    "recommended": (
        RECOMMENDED,
        Claim("always", "the design does not state that it is computed from releases", "needs"),
    ),
    "reward_range": (Claim("always", "it may have been taken from the data", "needs"),),
    "adaptive_rounds": (Claim("always", "it may count coins that are no outputs", "needs"),),
    "seeds, timestamps, delays": (Claim("always", "they are no outputs", "needs"),),
    "counts of missing or clipped outcomes": (Claim("always", "they are computed from rewards", "needs"),),
    "digests of the log": (Claim("always", "guesses at the log can be checked against them", "needs"),),
}
"""What is no column, in the order in which it is shown."""

UNPROMISED = Claim("log.coverage.not_covered", "nothing is promised: {reasons}", "needs")
INFINITE = Claim("log.coverage.not_covered", "the guarantee is infinite", "needs")
