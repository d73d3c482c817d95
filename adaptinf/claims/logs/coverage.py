"""Claims about each part of a private log: whether its guarantee covers the part, and the reason.

In each list, the first true claim decides: a reason means that the part is covered, a need that it is not.
"""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DECLARED = Claim("always", "the value was declared before the trial", "reason")
OWN_ACTION = Claim(
    "anticipating",
    "the guarantee excludes a participant's own action, which can reveal the participant's context",
    "needs",
)

ACTIONS_ARE_OUTPUTS = Claim("always", "actions and releases are covered jointly", "reason")
ACTION = (OWN_ACTION, ACTIONS_ARE_OUTPUTS)
"""Claims about actions, and counts derived from them."""

ESTIMATED = Claim(
    "has_estimates", "propensities are estimates from the data, not probabilities set by the design", "needs"
)
BY_CONTEXT = Claim(
    "outputs_by_context",
    "a round's propensity, combined with the releases, can reveal the context in that round",
    "needs",
)
COMPUTED = Claim(
    "always",
    "propensities are computed only from actions, proposals and releases, and the guarantee covers all three",
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

COUNTS_ROUNDS = Claim("counts_rounds", "the column contains only consecutive round numbers", "reason")
ROUND = (
    COUNTS_ROUNDS,
    Claim("always", "the guarantee excludes user-supplied times and round numbers", "needs"),
)

PHASE_BY_CALENDAR = Claim("phase_by_calendar", "phases follow a calendar fixed in advance", "reason")
PHASE_BY_OUTPUTS = Claim(
    "phase_by_outputs",
    "phases can be derived from the actions and releases alone",
    "reason",
)
PHASE = (
    PHASE_BY_CALENDAR,
    PHASE_BY_OUTPUTS,
    Claim(
        "always",
        "the design's specification does not state that phases follow from actions and releases alone",
        "needs",
    ),
)

CONTEXT_IS_PUBLIC = Claim("context_is_public", "the context was declared public", "reason")
CONTEXT_IS_PRIVATE = Claim("always", "the context was not declared public", "needs")
CONTEXT = (
    Claim(
        "protects_contexts",
        "contexts are among the data protected by the per-{unit} privacy guarantee",
        "needs",
    ),
    CONTEXT_IS_PUBLIC,
    CONTEXT_IS_PRIVATE,
)

OUTCOME = Claim("always", "the privacy guarantee protects additional outcomes as well as rewards", "needs")
REWARD = Claim("always", "rewards are the data that the guarantee protects", "needs")
UNIT = Claim("always", "the guarantee does not protect participants' identities", "needs")
COLUMNS = {
    "t": ROUND,
    "action": ACTION,
    "phase": PHASE,
    "unit_id": (UNIT,),
    "decision_id": (Claim("always", "decision identifiers can be linked to participants", "needs"),),
    "reward": (REWARD,),
    "received": (
        Claim(
            "always",
            "the guarantee excludes the record of the arms that participants actually received",
            "needs",
        ),
    ),
    "observation": (Claim("always", "the guarantee excludes missingness indicators for rewards", "needs"),),
    "outcome_round": (Claim("always", "the guarantee excludes the arrival times of outcomes", "needs"),),
    "batch": (
        Claim(
            "always",
            "batch boundaries may reflect data besides calendar dates, actions and releases",
            "needs",
        ),
    ),
    "randomised": (Claim("always", "the guarantee excludes the design's random draws", "needs"),),
}
"""Claims about columns by canonical name, except contexts, propensities and further outcomes."""

RELEASES = Claim(
    "always",
    "the privacy guarantee covers all releases, and the noise scale of each release was declared",
    "reason",
)
DESIGN = Claim("always", "the name and parameters of the design were declared before the trial", "reason")
RECOMMENDED = Claim("recommends_by_releases", "the recommendation is computed only from releases", "reason")
BY_RELEASES = Claim(
    "length_by_releases", "the releases, which the guarantee covers, determine the number of rounds", "reason"
)
STOPPED_BY_DATA = Claim(
    "stopped_by_data",
    "the privacy guarantee also covers the number of rounds, provided that the stopping decision was "
    "based only on outputs covered by the guarantee",
    "reason",
)
SO_FAR = Claim(
    "ended_early",
    "the number of rounds reflects when the log was extracted, and that time is assumed to be unrelated to "
    "outcomes",
    "reason",
)
FIELDS = {
    "releases": (RELEASES,),
    "design": (DESIGN,),
    "arms": (DECLARED,),
    "guarantee": (DECLARED,),
    "noise": (DECLARED,),
    "n_rounds": (
        BY_RELEASES,
        STOPPED_BY_DATA,
        SO_FAR,
        DECLARED,
    ),
    "pulls": ACTION,
    "recommended": (
        RECOMMENDED,
        Claim("always", "the recommended arm may not follow from the releases alone", "needs"),
    ),
    "reward_range": (Claim("always", "the reward range may have been computed from the data", "needs"),),
    "feedback_rounds": (
        Claim(
            "always",
            "the number of adaptive rounds may depend on the design's random draws, which the guarantee "
            "excludes",
            "needs",
        ),
    ),
    "seeds, timestamps, delays": (
        Claim("always", "the guarantee excludes seeds, timestamps and delays", "needs"),
    ),
    "counts of missing or clipped outcomes": (
        Claim("always", "the counts are computed from rewards, which are protected data", "needs"),
    ),
    "digests of the log": (
        Claim(
            "always",
            "releasing a hash of the log would let others confirm guesses about its contents",
            "needs",
        ),
    ),
}
"""Claims about parts other than columns, in the order in which they are shown."""

UNPROMISED = Claim("log.public.not_covered", "the log has no privacy guarantee: {reasons}", "needs")
INFINITE = Claim(
    "log.public.not_covered",
    "the privacy guarantee provides no protection, because epsilon is infinite",
    "needs",
)
