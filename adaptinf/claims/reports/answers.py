"""What a report answers to the items of checklists."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_CONSORT, _ICH = "reports.checklist.checklist", "reports.regulatory.regulatory"
UPDATES = Claim(_CONSORT, "{batches:,} batches; whether criteria were binding is {yours}", "note")
ALLOCATION = Claim(_CONSORT, "assignment probabilities are logged ({status}) and {moved}", "note")
NONE_MISSING = Claim(_CONSORT, "no reward of the log is missing", "note")
NO_INTERVALS = Claim(_CONSORT, "no valid intervals; effect sizes and precision are {yours}", "caution")
METHODS = Claim(_CONSORT, "the paragraph on methods above", "note")
INTERIM = Claim(_CONSORT, "allocation over the rounds is drawn above; the rest is {yours}", "note")
PLANNED = Claim(
    _CONSORT,
    "operating characteristics by simulation, in the appendix below; the sample size is {yours}",
    "note",
)

LARGEST_BIAS = Claim(
    _ICH,
    "largest {bias:.3g} (standard error of the simulation {error:.2g}; {term}; {scenario}, {rounds:,} "
    "rounds)",
    "note",
)
UNIFORM = Claim(_ICH, "uniform weights: the estimates of all arms refer to the same period", "note")
WEIGHTED = Claim(
    _ICH,
    "weights {weights!r}: if means drift, they estimate a differently weighted average; an added "
    "analysis with uniform weights is {yours}",
    "caution",
)
SIMULATED = Claim(
    _ICH,
    "the table of the plan: {scenarios} scenarios, {sizes} sizes, {trials:,} trials each, with Monte-Carlo "
    "errors; the seed and why these scenarios are {yours}",
    "note",
)
ESTIMATED = Claim(_ICH, "{estimator}, intervals {validity}; the paragraph on methods has more", "note")
