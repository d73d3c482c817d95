"""What is said of each part of a private log: whether its guarantee covers it, and why or why not.

Of each list the first claim that is so decides: a reason says that the part is covered, a need that it is
not.
"""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_DECLARED = Claim("always", "declared beforehand", "reason")
_OWN_ACTION = Claim(
    "anticipating",
    "the guarantee leaves out a participant's own action, which can name their context",
    "needs",
)

ACTION = (
    _OWN_ACTION,
    Claim("always", "actions are outputs, protected jointly with the releases", "reason"),
)
"""Actions, and what is counted from them."""

PROPENSITY = (
    Claim("has_estimates", "estimated from the data: they are no numbers of the design", "needs"),
    Claim(
        "outputs_by_context",
        "a round's can name its context; those of each context follow from releases",
        "needs",
    ),
    Claim(
        "outputs_without_propensities",
        "the design does not state that they follow from actions and releases",
        "needs",
    ),
    _OWN_ACTION,
    Claim("always", "computed from actions, proposals and releases, which are outputs", "reason"),
)
COUNTS_ROUNDS = Claim("counts_rounds", "it counts the rounds", "reason")
ROUND = (
    COUNTS_ROUNDS,
    Claim("always", "times and numbers of rounds that a user gave are no outputs", "needs"),
)
PHASE = (
    Claim("phase_by_calendar", "it follows from the calendar", "reason"),
    Claim("phase_by_outputs", "it follows from actions and releases", "reason"),
    Claim("always", "it is not stated to follow from outputs alone", "needs"),
)
CONTEXT = (
    Claim("protects_contexts", "the guarantee is per {unit}: contexts are what it protects", "needs"),
    Claim("context_is_public", "declared public", "reason"),
    Claim("always", "it was not declared public", "needs"),
)
COLUMNS = {
    "t": ROUND,
    "action": ACTION,
    "phase": PHASE,
    "unit_id": (Claim("always", "who took part is no output", "needs"),),
    "reward": (Claim("always", "rewards are what is protected", "needs"),),
    "received": (Claim("always", "what a participant took is no output", "needs"),),
    "observation": (Claim("always", "which rewards are observed is no output", "needs"),),
    "outcome_round": (Claim("always", "times are no outputs", "needs"),),
    "batch": (
        Claim("always", "batches are not stated to follow from the calendar or from outputs", "needs"),
    ),
    "randomised": (Claim("always", "it shows the design's coins", "needs"),),
}
"""Columns by their canonical names, but for contexts, propensities and further outcomes."""
OUTCOME = (Claim("always", "outcomes are what is protected, as rewards are", "needs"),)
"""A column of further outcomes."""

FIELDS = {
    "releases": (Claim("always", "outputs, with the scales of their noise, which are declared", "reason"),),
    "design": (Claim("always", "its name and parameters are declared beforehand", "reason"),),
    "arms": (_DECLARED,),
    "guarantee": (_DECLARED,),
    "noise": (_DECLARED,),
    "n_rounds": (
        Claim("length_by_releases", "decided by releases", "reason"),
        Claim(
            "ended_early",
            "how many had come when the log was made, at a moment that nobody chose by outcomes",
            "reason",
        ),
        _DECLARED,
    ),
    "pulls": ACTION,
    "recommended": (
        Claim("recommends_by_releases", "computed from releases", "reason"),
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
