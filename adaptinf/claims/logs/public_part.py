"""What is said of the public part of a log, in its statement."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

SIMULATED_NOISE = Claim(
    "simulated_noise",
    "Noise: simulation. It is NOT PRIVATE against anyone who sees all digits of a release: the "
    "guarantee holds for the mechanism, not for these numbers.",
    "caution",
)
PRICE = Claim(
    "price",
    "It is per {unit}: for someone with m times as many rounds epsilon is m times as large{delta}.",
    "note",
)
MORE_DELTA = Claim("price", ", and delta is more than m times as large", "note")
FIXED = Claim(
    "always",
    "It assumes that the number of rounds, the arms, the groups of contexts and the design's "
    "parameters were fixed before the first round.",
    "assumes",
)
OPENING = (
    Claim(
        "always",
        "The part of an adaptive experiment's log that its privacy guarantee covers, and nothing else.",
        "note",
    ),
    Claim("guarantee", "Guarantee: {guarantee}{source}.", "note"),
    Part("notion", "note"),
    Part("guarantee_reasons", "note"),
    SIMULATED_NOISE,
    Claim("exact_noise", "Noise: release, exact noise that is never seeded.", "note"),
    Claim("unknown_noise", "Noise: not stated.", "note"),
    PRICE,
    FIXED,
)
"""Before the lists of what is in it and what is left out."""

ALL_BUT_OWN_ACTION = Claim(
    "anticipating",
    "It protects everything jointly except the participant's own action.",
    "note",
)
RECORD = Claim("protects_records", "A record is a participant's context and potential rewards.", "note")
NOTION = (
    Claim("standard", "It protects everything in here jointly.", "note"),
    ALL_BUT_OWN_ACTION,
    Claim("protects_rewards", "Contexts are assumed to be public.", "assumes"),
    RECORD,
)
"""What the guarantee covers, in one line."""
