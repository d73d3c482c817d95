"""What is said of the privacy of the numbers in a table."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

PROMISED = Claim("inference.results.summary.Footer.privacy", "Privacy: {guarantee}.", "note")
AS_STATED = Claim(
    "inference.results.summary.Footer.privacy",
    "Privacy: {guarantee} (stated by the user, not derived by the library).",
    "note",
)
COVERS_NOTHING = Claim(
    "inference.results.summary.Footer.privacy",
    "Because epsilon is infinite, neither actions nor releases are differentially private.",
    "note",
)
COVERS_RELEASES = Claim(
    "inference.results.summary.Footer.privacy",
    "The privacy guarantee covers this table, which uses only private releases.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.results.summary.Footer.privacy",
    "The privacy guarantee covers actions and private releases.",
    "note",
)
COVERS_ACTIONS_OF_OTHERS = Claim(
    "inference.results.summary.Footer.privacy",
    "For each participant, the privacy guarantee covers the private releases and the actions of all "
    "other participants, but not the participant's own action.",
    "note",
)
NOT_COVERED = Claim(
    "inference.results.summary.Footer.privacy",
    "The privacy guarantee does not cover the raw log, its propensities or any estimates computed from "
    "the log, such as those in this table.",
    "note",
)
ALL_ROUNDS_OF_A_UNIT = Claim(
    "all_rounds_of_a_unit", "Privacy guarantee for all rounds of a unit together: {guarantee}.", "note"
)
AUXILIARY = Claim(
    "auxiliary", "Participants in auxiliary logs have separate privacy guarantees: {guarantees}.", "note"
)
WITHDRAWN = Claim(
    "withdrawn",
    "The design is differentially private, but the guarantee does not apply to this log, because {why}.",
    "note",
)
SIMULATION_NOISE = Claim(
    "simulation_noise",
    "Simulated noise does not protect privacy, because its low-order bits can leak data; set "
    "noise='release' for noise that protects privacy.",
    "note",
)
