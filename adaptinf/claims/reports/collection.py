"""Statements in a report on how a log was collected, and on what may be shown to whom."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNNAMED_DESIGN = Claim(
    "reports.collection_facts.design_told", "the log does not record which design was used", "note"
)
DEPENDS = Claim("reports.collection_facts.traits_told", "the choice of arm depends on {contexts}", "note")
INDEPENDENT = Claim(
    "reports.collection_facts.traits_told", "assignment does not depend on contexts", "assumes"
)
POSSIBLY = Claim("reports.collection_facts.traits_told", "assignment may depend on contexts", "note")
ADAPTS = Claim("reports.collection_facts.traits_told", "earlier rewards affect later assignments", "note")
DOES_NOT_ADAPT = Claim(
    "reports.collection_facts.traits_told", "earlier rewards do not affect later assignments", "note"
)
DEPENDED = Claim("reports.collection_facts.traits_told", "the choice of arm depended on contexts", "note")
REWARDS_UNSTATED = Claim(
    "reports.collection_facts.traits_told",
    "assignment may depend on past rewards; the log does not rule this out",
    "assumes",
)
CONTEXTS_UNSTATED = Claim(
    "reports.collection_facts.traits_told",
    "contexts may have affected assignment (the log does not say)",
    "assumes",
)
UNSTATED = Claim(
    "reports.collection_facts.traits_told",
    "assignment may depend on both past rewards and contexts, because the log rules out neither",
    "assumes",
)
SUMS = Claim(
    "reports.collection_facts.log_facts",
    "data summed by arm and batch (number of batches: {batches:,})",
    "note",
)

UNCOVERED = Claim(
    "reports.collection_facts.uncovered_promise", "no privacy guarantee covers this report", "caution"
)
BEYOND_GUARANTEE = Claim(
    "reports.collection_facts.uncovered_promise",
    "the privacy guarantee ({guarantee}) does not cover this report",
    "caution",
)
NO_PRIVACY = Claim(
    "reports.collection_facts.guarantee_facts", "the design is not differentially private", "note"
)
SHOWS_RELEASES = Claim(
    "reports.collection_facts.guarantee_facts",
    "these results use only private releases, to which the guarantee applies",
    "reason",
)
SHOWS_RAW = Claim(
    "reports.collection_facts.guarantee_facts",
    "these results use the raw log and have no privacy guarantee; publish only log.public()",
    "caution",
)
