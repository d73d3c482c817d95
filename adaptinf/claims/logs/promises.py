"""What a log says of privacy beside its guarantee."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MOST_ROUNDS = Claim(
    "log.promises.Promises.person_guarantee",
    "{most} is the most rounds that a unit of this log has, a fact about the data; rounds_per_unit= "
    "declares a cap that is fixed beforehand",
    "caution",
)
PERSON = Claim("log.promises.Promises.promises", "with all rounds of a unit: {guarantee}", "note")
ADAPTIVE = Claim(
    "log.promises.Promises.adaptive_told", "assignment {reacted} to outcomes, as stated", "assumes"
)
