"""What is said of sample means: plain, with exact tests, or with corrected columns."""

from __future__ import annotations

from adaptinf.claims import contexts, units
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.stationarity import MEANS_STAY

SHORT_RUNS = Claim(
    "stable",
    "in simulations of UCB (width 2, two arms with 0/1 rewards of mean .5), nominal 95% intervals for the "
    "difference cover 93.9% after 1,000 rounds and 94.3% after 10,000; audit.stability measures whether "
    "counts have settled",
    "caution",
)
VARIATION = Claim(
    "inference.arms.facts.sample_means.SampleFacts.vary",
    "arm counts in re-simulations vary by {variation:.0%} of their median",
    "note",
)
BIASED = Claim("biased", "adaptive assignment biases sample means", "needs")
OPENING = Claim("worth", "Sample means: {worth}.", "note")
"""Of a fit, and of one that was taken for the reason of its row of `recommend`."""

NEEDS = (
    Part("profile.context_refusal", "needs"),
    Part("profile.unit_refusal", "needs"),
    Claim("counts_vary", "{vary}, more than {most:.0%}: sample means are not normal", "needs"),
    BIASED,
    Claim("unstable", "{biased}, and {design} is not stable: {condition} ({source})", "needs"),
)
REASONS = (
    Claim("not_adaptive", "{why}: each arm's rewards are an ordinary sample", "reason"),
    Claim("counts_settled", "{vary}, so they have settled", "reason"),
    Claim("stable_design", "{design} is stable: its arm counts settle ({source})", "reason"),
)
ASSUMES = (
    MEANS_STAY,
    Claim("simulated", "the simulated environment is correct", "assumes"),
    Claim("stable_if", "{condition}, and a long run", "assumes"),
    contexts.NO_PART,
)
CAUTIONS = (Part("shares_moved", "caution"), SHORT_RUNS)
"""Of a row of `recommend` with t-tests, and no correction."""

ONE_RATE = Claim("is_exact", "rewards are independent, with a constant success rate for each arm", "assumes")
NOT_BINARY = Claim("not_binary", "rewards must take only two values, such as 0 and 1", "needs")
EXACT_NEEDS = (
    Part("profile.context_refusal", "needs"),
    NOT_BINARY,
    Part("profile.unit_refusal", "needs"),
    Claim(
        "profile.adaptive",
        "it is exact only for arm counts fixed in advance, and adaptive assignment changes them",
        "needs",
    ),
)
EXACT_REASONS = (Claim("not_adaptive", "0/1 rewards, and {why}", "reason"),)
EXACT_ASSUMES = (ONE_RATE, contexts.NO_PART)
EXACT_CAUTIONS = (Part("shares_moved", "caution"),)
"""With exact binomial tests."""

CORRECTED_NEEDS = (
    Part("profile.context_refusal", "needs"),
    Claim(
        "units_of_rows",
        "{refusal}; correction_for with unit='person' corrects p-values by person",
        "needs",
    ),
    Part("profile.unit_refusal", "needs"),
    Claim("not_adaptive", "there is nothing to correct: {why}", "needs"),
    Part("profile.no_correction", "needs"),
)
GUARANTEED = Claim(
    "short",
    "the guarantee bounds the effect of adaptivity: {bound}; intervals about {ratio:.2g} times the length "
    "of those of alee",
    "reason",
)
VACUOUS = Claim("vacuous", "the guarantee is vacuous: {bound}", "reason")
LONG = Claim("long", "{guaranteed}, which comes first unless exactness is needed", "reason")
CORRECTED_REASONS = (
    VACUOUS,
    GUARANTEED,
    LONG,
)
CORRECTED_ASSUMES = (
    Claim("guaranteed", "the stated guarantee holds", "assumes"),
    Claim("one_law", "rewards are independent, with one distribution per arm", "assumes"),
    Part("mixed", "assumes"),
)
CORRECTED_CAUTIONS = (
    Claim("useless", "no interval is informative", "caution"),
    Claim("of_tails", "the t approximation may be poor at such extreme levels", "caution"),
    Claim(
        "contexts_untold",
        "{label} only if {no_part}, which the log does not state",
        "caution",
    ),
)
"""With corrected columns."""

_WORTH = "inference.arms.facts.sample_means.SampleFacts.worth"
UNITS_DEPEND = Claim(
    _WORTH,
    "not valid, as a unit's rounds are dependent; a naive baseline",
    "note",
)
NOT_DUE = Claim(_WORTH, "valid without correction, because {why}", "note")
LONG_RUNS = Claim(
    _WORTH,
    "valid in long runs of {design}, whose arm counts settle ({source}), given {condition}; {short_runs}",
    "note",
)
NAIVE = Claim(_WORTH, "not valid under adaptivity; a naive baseline", "note")
ACCOUNTED = Claim(_WORTH, "not valid under adaptivity; the corrected columns account for it", "note")
"""What uncorrected sample means of a fit are worth."""
MIXED = Claim(
    "profile.has_contexts",
    "The log has contexts: the mean of an arm's own rounds estimates its overall mean only if assignment "
    "ignored the contexts.",
    "note",
)

TAKEN_AS_ADAPTIVE = Claim(
    "design_untold",
    "The log does not name its design, so assignment is taken to be adaptive (adaptive=False states that "
    "outcomes had no influence on it).",
    "note",
)
UNCORRECTED = Claim("no_corrected_columns", "No corrected columns: {reason}.", "note")
FEW_EVENTS = Claim(
    "few_events",
    "With fewer than {fewest} successes or failures in an arm, means have exact binomial tests, and "
    "differences the Agresti-Caffo adjustment.",
    "note",
)
FIT = (
    Part("propensities_right", "assumes"),
    ONE_RATE,
    OPENING,
    MIXED,
    TAKEN_AS_ADAPTIVE,
    UNCORRECTED,
    FEW_EVENTS,
    units.NOT_BY_UNIT,
    Claim("moved_with_propensities", "{moved} (aipw, which uses the propensities, avoids this)", "caution"),
    Claim(
        "moved_with_batches",
        "{moved} (p < {p:g}; Contrast with estimator='batched' compares arms within batches)",
        "caution",
    ),
    Claim(
        "moved_without_batches",
        "{moved} (p < {p:g}; give batch=, periods of constant shares, to compare arms within each)",
        "caution",
    ),
    Part("sums_cautions", "caution"),
    Part("profile.share_cautions", "caution"),
)
"""Of a fit, in the order in which its table has them."""
