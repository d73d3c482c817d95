"""What is said of each part of a private log: whether its guarantee covers it, and why or why not.

Of each list the first claim that is so decides: a reason says that the part is covered, a need that it is
not.
"""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DECLARED = Claim("always", "declared beforehand", "reason")
OWN_ACTION = Claim(
    "anticipating",
    "the guarantee does not cover a participant's own action, which can reveal their context",
    "needs",
)

ACTIONS_ARE_OUTPUTS = Claim("always", "actions are outputs, protected jointly with the releases", "reason")
ACTION = (OWN_ACTION, ACTIONS_ARE_OUTPUTS)
"""Actions, and what is counted from them."""

ESTIMATED = Claim("has_estimates", "they are estimated from the data, not set by the design", "needs")
BY_CONTEXT = Claim(
    "outputs_by_context",
    "the propensity of a round can reveal its context; those of each context follow from the releases",
    "needs",
)
COMPUTED = Claim("always", "computed from actions, proposals and releases, which are outputs", "reason")
PROPENSITY = (
    ESTIMATED,
    BY_CONTEXT,
    Claim(
        "outputs_without_propensities",
        "the design may compute them from more than actions and releases",
        "needs",
    ),
    OWN_ACTION,
    COMPUTED,
)

COUNTS_ROUNDS = Claim("counts_rounds", "it counts the rounds", "reason")
ROUND = (
    COUNTS_ROUNDS,
    Claim("always", "times and round numbers supplied by the user are not outputs", "needs"),
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
    Claim("protects_contexts", "the guarantee is per {unit} and protects contexts", "needs"),
    CONTEXT_IS_PUBLIC,
    CONTEXT_IS_PRIVATE,
)

OUTCOME = Claim("always", "outcomes are protected, like rewards", "needs")
REWARD = Claim("always", "rewards are what is protected", "needs")
UNIT = Claim("always", "who took part is not an output", "needs")
COLUMNS = {
    "t": ROUND,
    "action": ACTION,
    "phase": PHASE,
    "unit_id": (UNIT,),
    "reward": (REWARD,),
    "received": (Claim("always", "what a participant received is not an output", "needs"),),
    "observation": (Claim("always", "which rewards were observed is not an output", "needs"),),
    "outcome_round": (Claim("always", "times are not outputs", "needs"),),
    "batch": (Claim("always", "batches may depend on more than the calendar and the outputs", "needs"),),
    "randomised": (Claim("always", "it shows the design's coin flips", "needs"),),
}
"""Columns by their canonical names, but for contexts, propensities and further outcomes."""

RELEASES = Claim("always", "outputs; the scales of their noise are declared", "reason")
DESIGN = Claim("always", "its name and parameters are declared beforehand", "reason")
RECOMMENDED = Claim("recommends_by_releases", "computed from releases", "reason")
STOPPED_BY_DATA = Claim(
    "stopped_by_data",
    "the rounds when the trial was stopped, covered only if nothing but outputs had a part in that decision",
    "reason",
)
SO_FAR = Claim(
    "ended_early",
    "the rounds so far when the log was made, at a time chosen without regard to outcomes",
    "reason",
)
FIELDS = {
    "releases": (RELEASES,),
    "design": (DESIGN,),
    "arms": (DECLARED,),
    "guarantee": (DECLARED,),
    "noise": (DECLARED,),
    "n_rounds": (
        Claim("length_by_releases", "decided by releases", "reason"),
        STOPPED_BY_DATA,
        SO_FAR,
        DECLARED,
    ),
    "pulls": ACTION,
    "recommended": (
        RECOMMENDED,
        Claim("always", "the design may compute it from more than the releases", "needs"),
    ),
    "reward_range": (Claim("always", "it may have been taken from the data", "needs"),),
    "adaptive_rounds": (Claim("always", "it may count coin flips that are not outputs", "needs"),),
    "seeds, timestamps, delays": (Claim("always", "they are not outputs", "needs"),),
    "counts of missing or clipped outcomes": (Claim("always", "they are computed from rewards", "needs"),),
    "digests of the log": (Claim("always", "a guess at the log could be checked against them", "needs"),),
}
"""What is no column, in the order in which it is shown."""

UNPROMISED = Claim("log.coverage.not_covered", "nothing is promised: {reasons}", "needs")
INFINITE = Claim("log.coverage.not_covered", "the guarantee is infinite", "needs")
