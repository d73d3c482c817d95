"""Statements of a log about privacy besides its guarantee."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MOST_ROUNDS = Claim(
    "log.provenance.Promises.person_guarantee",
    "the maximum number of rounds per unit ({most}) was computed from the data; set 'rounds_per_unit' to "
    "a limit fixed in advance",
    "caution",
)
PERSON = Claim(
    "log.provenance.Promises.promises", "guarantee for a unit with several rounds: {guarantee}", "note"
)
ADAPTIVE = Claim(
    "log.provenance.Promises.adaptive_told",
    "assignment {reacted} to outcomes, as declared by the user",
    "assumes",
    short="assignment {reacted} to outcomes",
)
