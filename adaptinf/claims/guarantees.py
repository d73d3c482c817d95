"""What is said of the privacy of the numbers in a table."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

PROMISED = Claim("inference.results.footers.Footer.privacy", "Privacy: {guarantee}.", "note")
AS_STATED = Claim(
    "inference.results.footers.Footer.privacy",
    "Privacy: {guarantee}, stated and not derived by the library.",
    "note",
)
COVERS_NOTHING = Claim(
    "inference.results.footers.Footer.privacy", "Nothing is covered, neither actions nor releases.", "note"
)
COVERS_RELEASES = Claim(
    "inference.results.footers.Footer.privacy",
    "These numbers come from the private releases alone and are covered by it.",
    "note",
)
COVERS_ACTIONS = Claim(
    "inference.results.footers.Footer.privacy", "It covers the actions and the named releases.", "note"
)
COVERS_ACTIONS_OF_OTHERS = Claim(
    "inference.results.footers.Footer.privacy",
    "It covers the actions of others, not one's own, and the named releases.",
    "note",
)
NOT_COVERED = Claim(
    "inference.results.footers.Footer.privacy",
    "Not covered: the raw log, its propensity columns, and estimates from the raw log, such as these.",
    "note",
)
ALL_ROUNDS_OF_A_UNIT = Claim("all_rounds_of_a_unit", "With all rounds of a unit: {guarantee}.", "note")
AUXILIARY = Claim(
    "auxiliary", "Participants of auxiliary logs have guarantees of their own: {guarantees}.", "note"
)
WITHDRAWN = Claim("withdrawn", "Privacy: none, though the design promises it: {why}.", "note")
SIMULATION_NOISE = Claim(
    "simulation_noise",
    "Simulation noise: not private. Its low-order bits leak; release noise does not.",
    "note",
)
