"""Claims about the public part of a log, in its statement."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

SIMULATED_NOISE = Claim(
    "simulated_noise",
    "These releases are NOT PRIVATE: the noise is simulated, and the low-order digits of a release can "
    "reveal the data. The guarantee holds for the mechanism, not for these numbers.",
    "caution",
)
PRICE = Claim(
    "price",
    "The privacy guarantee is per {unit}. For a person who contributes m times as many rounds as the "
    "guarantee covers, epsilon is m times as large{delta}.",
    "note",
)
MORE_DELTA = Claim("price", ", and delta increases by a factor of more than m", "phrase")
FIXED = Claim(
    "always",
    "The number of rounds, the arms, the context groups and the design parameters are assumed to have "
    "been fixed before the first round; the privacy guarantee depends on this assumption.",
    "assumes",
)
OPENING = (
    Claim(
        "always",
        "This is the public part of an adaptive experiment's log and contains only data covered by the "
        "privacy guarantee.",
        "note",
    ),
    Claim("guarantee", "Privacy guarantee: {guarantee}{source}.", "note"),
    Part("notion", "note"),
    Part("guarantee_reasons", "note"),
    SIMULATED_NOISE,
    Claim(
        "exact_noise",
        "The noise was drawn by an exact sampler without a fixed seed (noise='release').",
        "note",
    ),
    Claim(
        "unknown_noise",
        "It is not stated whether the privacy noise was generated for an actual release or only for "
        "simulation.",
        "note",
    ),
    PRICE,
    FIXED,
)
"""Text before the lists of included and excluded parts."""

ALL_BUT_OWN_ACTION = Claim(
    "anticipating",
    "For each participant, the guarantee covers all outputs jointly, except the participant's own action.",
    "note",
)
RECORD = Claim(
    "protects_records", "A record consists of one participant's context and potential rewards.", "note"
)
NOTION = (
    Claim(
        "standard",
        "The privacy guarantee applies jointly to all outputs in this public part of the log.",
        "note",
    ),
    ALL_BUT_OWN_ACTION,
    Claim("protects_rewards", "Contexts are assumed to be public.", "assumes"),
    RECORD,
)
"""What the guarantee covers, in one line."""
