"""What a report says of how a log was collected, and of what may be shown to whom."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNNAMED_DESIGN = Claim("reports.collection.design_told", "not named in the log", "note")
DEPENDS = Claim("reports.collection.traits_told", "the choice depends on {contexts}", "note")
INDEPENDENT = Claim("reports.collection.traits_told", "contexts do not move the choice", "assumes")
POSSIBLY = Claim("reports.collection.traits_told", "contexts may move the choice", "note")
ADAPTS = Claim("reports.collection.traits_told", "rewards move later choices", "note")
DOES_NOT_ADAPT = Claim("reports.collection.traits_told", "rewards do not move later choices", "note")
CONTEXTS_UNSTATED = Claim(
    "reports.collection.traits_told", "contexts are assumed to move the choice", "assumes"
)
UNSTATED = Claim(
    "reports.collection.traits_told",
    "not stated: rewards and contexts may both have moved the choice",
    "assumes",
)
SUMS = Claim("reports.collection.log_facts", "sums of {batches:,} batches by arm", "note")

NOT_COVERED = Claim(
    "reports.collection.not_covered_told",
    "Not covered: this report shows raw numbers of a private trial, and {promise}. It is only for "
    "those who may see the data. To publish, use report(log.public(), path).",
    "caution",
)
UNCOVERED = Claim("reports.collection.not_covered_told", "no privacy guarantee covers it", "caution")
BEYOND_GUARANTEE = Claim(
    "reports.collection.not_covered_told", "the guarantee ({guarantee}) does not cover it", "caution"
)
NO_PRIVACY = Claim("reports.collection.guarantee_facts", "the design promises no privacy", "note")
SHOWS_RELEASES = Claim(
    "reports.collection.guarantee_facts", "covered: it shows only the private releases", "reason"
)
SHOWS_RAW = Claim(
    "reports.collection.guarantee_facts",
    "not covered: it shows figures of the raw log; only log.public() may be published",
    "caution",
)
