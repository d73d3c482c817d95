"""What a log says of privacy beside its guarantee."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MOST_ROUNDS = Claim(
    "log.promises.Promises.person_guarantee",
    "{most} is the largest number of rounds of a unit in this log, which the data determine; "
    "rounds_per_unit= declares a cap fixed in advance",
    "caution",
)
PERSON = Claim("log.promises.Promises.promises", "for a unit with all its rounds: {guarantee}", "note")
ADAPTIVE = Claim(
    "log.promises.Promises.adaptive_told", "assignment {reacted} to outcomes, as stated", "assumes"
)
