"""Claims about the privacy of the numbers in a table."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

PROMISED = Claim(
    "inference.results.explanation.Footer.privacy", "Privacy: {guarantee}.", "privacy", short="{guarantee}"
)
AS_STATED = Claim(
    "inference.results.explanation.Footer.privacy",
    "Privacy: {guarantee} (stated by the user, not derived by the library).",
    "privacy",
    short="{guarantee} (stated by the user)",
)
COVERS_NOTHING = Claim(
    "inference.results.explanation.Footer.privacy",
    "Because epsilon is infinite, neither actions nor releases are differentially private.",
    "privacy",
    short="infinite epsilon: nothing is private",
)
COVERS_RELEASES = Claim(
    "inference.results.explanation.Footer.privacy",
    "The privacy guarantee covers this table, which uses only private releases.",
    "privacy",
    short="covers this table",
)
COVERS_ACTIONS = Claim(
    "inference.results.explanation.Footer.privacy",
    "The privacy guarantee covers actions and private releases.",
    "privacy",
)
COVERS_ACTIONS_OF_OTHERS = Claim(
    "inference.results.explanation.Footer.privacy",
    "For each participant, the privacy guarantee covers the private releases and the actions of all "
    "other participants, but not the participant's own action.",
    "privacy",
)
NOT_COVERED = Claim(
    "inference.results.explanation.Footer.privacy",
    "The privacy guarantee does not cover the raw log, its propensities or any estimates computed from "
    "the log, such as those in this table.",
    "privacy",
    short="does not cover this table",
)
ALL_ROUNDS_OF_A_UNIT = Claim(
    "all_rounds_of_a_unit", "Privacy guarantee for all rounds of a unit together: {guarantee}.", "privacy"
)
AUXILIARY = Claim(
    "auxiliary", "Participants in auxiliary logs have separate privacy guarantees: {guarantees}.", "privacy"
)
WITHDRAWN = Claim(
    "withdrawn",
    "The design is differentially private, but the guarantee does not apply to this log, because {why}.",
    "privacy",
    short="no guarantee: {why}",
)
SIMULATION_NOISE = Claim(
    "simulation_noise",
    "Simulated noise does not protect privacy, because its low-order bits can leak data; set "
    "noise='release' for noise that protects privacy.",
    "privacy",
    short="simulated noise protects nothing",
)
