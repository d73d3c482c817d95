"""What a report says of how a log was collected, and of what may be shown to whom."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNNAMED_DESIGN = Claim("reports.collection.design_told", "not named in the log", "note")
CONTEXTS = {
    "no": Claim("reports.collection.traits_told", "contexts do not move the choice", "assumes"),
    "groups": Claim("reports.collection.traits_told", "the choice depends on a group", "note"),
    "vectors": Claim(
        "reports.collection.traits_told", "the choice depends on a context vector of each arm", "note"
    ),
    "position": Claim(
        "reports.collection.traits_told", "the choice depends on the position of the context", "note"
    ),
    "yes": Claim("reports.collection.traits_told", "the choice depends on the context", "note"),
    "unknown": Claim("reports.collection.traits_told", "contexts may move the choice", "note"),
}
"""By what a design states of its use of contexts."""
ADAPTS = Claim("reports.collection.traits_told", "rewards move later choices", "note")
DOES_NOT_ADAPT = Claim("reports.collection.traits_told", "rewards do not move later choices", "note")
STATED = Claim(
    "reports.collection.traits_told",
    "assignment {reacted} to outcomes, as stated; contexts are taken to have moved the choice",
    "assumes",
)
UNSTATED = Claim(
    "reports.collection.traits_told",
    "not stated: rewards and contexts are taken to have moved the choice",
    "assumes",
)
SUMS = Claim("reports.collection.log_facts", "sums by batch and arm, {batches:,} batches", "note")

NOT_COVERED = Claim(
    "reports.collection.not_covered_told",
    "Not covered: this report shows raw numbers of a private trial, and {promise}. It is for whoever may "
    "see the data. What may be published is log.public(), whose report is report(log.public(), path).",
    "caution",
)
UNCOVERED = Claim("reports.collection.not_covered_told", "no guarantee of privacy covers it", "caution")
BEYOND_GUARANTEE = Claim(
    "reports.collection.not_covered_told", "the guarantee ({guarantee}) does not cover it", "caution"
)
NO_PRIVACY = Claim("reports.collection.guarantee_facts", "the design promises no privacy", "note")
SHOWS_RELEASES = Claim(
    "reports.collection.guarantee_facts", "covered: it shows the private releases alone", "reason"
)
SHOWS_RAW = Claim(
    "reports.collection.guarantee_facts",
    "not covered: it shows figures of the raw log; log.public() is the part that may be published",
    "caution",
)
