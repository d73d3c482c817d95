"""What is said of sample means: plain, with exact tests, or with corrected columns."""

from __future__ import annotations

from adaptinf.claims import contexts, units
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.stationarity import MEANS_STAY

SHORT_RUNS = Claim(
    "stable",
    "simulated on UCB of width 2 with two equal arms (0/1 rewards, mean .5), nominal 95% intervals of the "
    "difference cover 93.9% at 1,000 rounds and 94.3% at 10,000; audit.stability measures whether counts "
    "have settled",
    "caution",
)
VARIATION = Claim(
    "inference.arms.facts.sample_means.SampleFacts.vary",
    "re-simulated arm counts vary by {variation:.0%} of their median",
    "note",
)
BIASED = Claim("biased", "sample means are biased by adaptivity", "needs")
OPENING = Claim("worth", "Sample means: {worth}.", "note")
"""Of a fit, and of one that was taken for the reason of its row of `recommend`."""

NEEDS = (
    Part("profile.context_refusal", "needs"),
    Part("profile.unit_refusal", "needs"),
    Claim("counts_vary", "{vary}, above {most:.0%}: sample means are not normal", "needs"),
    BIASED,
    Claim("unstable", "{biased}, and {design} is not stable: {condition} ({source})", "needs"),
)
REASONS = (
    Claim("not_adaptive", "{why}: the arms' rewards are plain samples", "reason"),
    Claim("counts_settled", "{vary}: they have settled", "reason"),
    Claim("stable_design", "{design} is stable, its arm counts settle ({source})", "reason"),
)
ASSUMES = (
    MEANS_STAY,
    Claim("simulated", "the simulated environment is right", "assumes"),
    Claim("stable_if", "{condition}, and a long run", "assumes"),
    contexts.NO_PART,
)
CAUTIONS = (Part("shares_moved", "caution"), SHORT_RUNS)
"""Of a row of `recommend` with t-tests, and no correction."""

ONE_RATE = Claim("is_exact", "rewards are independent, with one success rate an arm", "assumes")
NOT_BINARY = Claim("not_binary", "it needs rewards that take two values, such as 0 and 1", "needs")
EXACT_NEEDS = (
    Part("profile.context_refusal", "needs"),
    NOT_BINARY,
    Part("profile.unit_refusal", "needs"),
    Claim("profile.adaptive", "exact for counts fixed in advance, and adaptivity moves them", "needs"),
)
EXACT_REASONS = (Claim("not_adaptive", "0/1 rewards, and {why}", "reason"),)
EXACT_ASSUMES = (ONE_RATE, contexts.NO_PART)
EXACT_CAUTIONS = (Part("shares_moved", "caution"),)
"""With exact binomial tests."""

CORRECTED_NEEDS = (
    Part("profile.context_refusal", "needs"),
    Claim(
        "units_of_rows",
        "{refusal}; correction_for(log, unit='person') corrects p-values by person",
        "needs",
    ),
    Part("profile.unit_refusal", "needs"),
    Claim("not_adaptive", "no correction is due: {why}", "needs"),
    Part("profile.no_correction", "needs"),
)
GUARANTEED = Claim(
    "short",
    "the guarantee bounds what adaptivity can do: {bound}; intervals about {ratio:.2g} times as long as "
    "those of alee",
    "reason",
)
CORRECTED_REASONS = (
    Claim("vacuous", "vacuous: {bound}", "reason"),
    GUARANTEED,
    Claim("long", "{guaranteed}, which is therefore put first unless exactness is needed", "reason"),
)
CORRECTED_ASSUMES = (
    Claim("guaranteed", "the stated guarantee", "assumes"),
    Claim("one_law", "independent rewards with one law an arm", "assumes"),
    Part("mixed", "assumes"),
)
CORRECTED_CAUTIONS = (
    Claim("useless", "no interval is of any use", "caution"),
    Claim("of_tails", "the t approximation may fail so far out in the tail", "caution"),
    Claim(
        "contexts_untold",
        "{label} only if contexts had no part in the choice, which the log does not say",
        "caution",
    ),
)
"""With corrected columns."""

_WORTH = "inference.arms.facts.sample_means.SampleFacts.worth"
UNITS_DEPEND = Claim(
    _WORTH,
    "not valid where units have several rounds, which are not independent; a naive baseline",
    "note",
)
NOT_DUE = Claim(_WORTH, "{why}; no correction is due", "note")
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
    "The log has contexts: a sample mean is that of the rounds the arm got, which is the arm's mean only "
    "if the context had no part in the choice.",
    "note",
)

TAKEN_AS_ADAPTIVE = Claim(
    "design_untold",
    "The log does not name its design, which is therefore taken to be adaptive (adaptive=False says that "
    "assignment did not react to outcomes).",
    "note",
)
UNCORRECTED = Claim("no_corrected_columns", "No corrected columns: {reason}.", "note")
FEW_EVENTS = Claim(
    "few_events",
    "An arm has fewer than {fewest} successes or failures: exact binomial tests of means, and the "
    "Agresti-Caffo adjustment of differences.",
    "note",
)
FIT = (
    ONE_RATE,
    OPENING,
    MIXED,
    TAKEN_AS_ADAPTIVE,
    UNCORRECTED,
    FEW_EVENTS,
    units.NOT_BY_UNIT,
    Claim("moved_with_propensities", "{moved} (aipw, by the propensities, does without that)", "caution"),
    Claim(
        "moved_with_batches",
        "{moved} (p < {p:g}; Contrast compares arms within batches by estimator='batched')",
        "caution",
    ),
    Claim(
        "moved_without_batches",
        "{moved} (p < {p:g}; give batch=, stretches in which they stay, to compare arms within these)",
        "caution",
    ),
    Part("wrong_propensities", "caution"),
    Part("sums_cautions", "caution"),
    Part("profile.share_cautions", "caution"),
)
"""Of a fit, in the order in which its table has them."""
