"""What is said of the privacy of the numbers in a table."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

PROMISED = Claim("inference.results.footers.Footer.privacy", "Privacy: {guarantee}.", "note")
AS_STATED = Claim(
    "inference.results.footers.Footer.privacy",
    "Privacy: {guarantee}, stated rather than derived by the library.",
    "note",
)
COVERS_NOTHING = Claim(
    "inference.results.footers.Footer.privacy", "It covers nothing, neither actions nor releases.", "note"
)
COVERS_RELEASES = Claim(
    "inference.results.footers.Footer.privacy",
    "It covers these numbers, because they use private releases only.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.results.footers.Footer.privacy", "It covers the actions and the named releases.", "note"
)
COVERS_ACTIONS_OF_OTHERS = Claim(
    "inference.results.footers.Footer.privacy",
    "It covers other participants' actions, not one's own, and the named releases.",
    "note",
)
NOT_COVERED = Claim(
    "inference.results.footers.Footer.privacy",
    "It excludes the raw log, its propensity columns, and estimates from it such as these.",
    "note",
)
ALL_ROUNDS_OF_A_UNIT = Claim("all_rounds_of_a_unit", "A unit with all of its rounds: {guarantee}.", "note")
AUXILIARY = Claim(
    "auxiliary", "Participants in auxiliary logs have separate guarantees: {guarantees}.", "note"
)
WITHDRAWN = Claim("withdrawn", "Privacy: none, although the design promises it: {why}.", "note")
SIMULATION_NOISE = Claim(
    "simulation_noise",
    "Simulation noise is not private: its low-order bits leak, which those of release noise do not.",
    "note",
)
