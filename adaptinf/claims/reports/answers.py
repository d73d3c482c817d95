"""Answers of a report to checklist items."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

FOR_AUTHORS = "for the authors of the trial report to add"
"""Placeholder for an answer that only the authors know."""
E20_TOPICS = (
    "why an adaptive design, and why one of this complexity",
    "adaptations and the prespecified rule for them",
    "control of the type I error across the scenarios of the plan",
    "power, or the probability of a correct conclusion, across the scenarios",
    "bias of the estimates under the adaptation",
    "coverage of the intervals under the adaptation",
    "methods of estimation that allow for the adaptation",
    "whether outcomes or the enrolled population drift over time",
    "sensitivity of the estimates to such drift",
    "simulation report: scenarios, numbers of trials, errors, software",
    "who sees interim results, and how they are kept from others",
    "deviations from the planned adaptations, and analyses for them",
)
"""Topics of the draft ICH E20 guideline, in a few words."""

_CONSORT, _ICH = "reports.checklist.checklist", "reports.checklist.regulatory"
UPDATES = Claim(
    _CONSORT,
    "the number of batches was {batches:,}; whether the decision criteria were binding is {for_authors}",
    "note",
)
ALLOCATION = Claim(_CONSORT, "the log contains assignment probabilities ({status}), which {moved}", "note")
NONE_MISSING = Claim(_CONSORT, "no rewards are missing", "note")
NO_INTERVALS = Claim(
    _CONSORT,
    "no valid confidence intervals are available; effect sizes and their precision are {for_authors}",
    "caution",
)
METHODS = Claim(_CONSORT, "see the methods paragraph above", "note")
INTERIM = Claim(
    _CONSORT,
    "the figure above shows allocation over time; further details of interim results and decisions are "
    "{for_authors}",
    "note",
)
PLANNED = Claim(
    _CONSORT,
    "simulated operating characteristics are in the appendix; the justification of the sample size is "
    "{for_authors}",
    "note",
)

LARGEST_BIAS = Claim(
    _ICH,
    "the largest simulated bias is {bias:.3g} (Monte Carlo standard error {error:.2g}), for {term} "
    "in scenario {scenario} with {rounds:,} rounds",
    "note",
)
UNIFORM = Claim(_ICH, "with uniform weights, the estimates for all arms refer to the same period", "note")
WEIGHTED = Claim(
    _ICH,
    "if means drift, estimates with {weights!r} weights target a weighted average over time; a "
    "sensitivity analysis with uniform weights is {for_authors}",
    "caution",
)
SIMULATED = Claim(
    _ICH,
    "each operating characteristic in the planning table is estimated, with its Monte Carlo standard "
    "error, from {trials:,} simulated trials per scenario and sample size (scenarios: {scenarios}; "
    "sample sizes: {sizes}); the seed and choice of scenarios are {for_authors}",
    "note",
)
ESTIMATED = Claim(
    _ICH,
    "estimator: {estimator}; validity of confidence intervals: {validity} (details are in the methods "
    "paragraph)",
    "note",
)
