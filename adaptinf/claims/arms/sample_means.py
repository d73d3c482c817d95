"""Claims about sample means: unadjusted, with exact tests, or with corrected columns."""

from __future__ import annotations

from adaptinf.claims import contexts, units
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.logs.statements import NOT_ADAPTIVE
from adaptinf.claims.stationarity import MEANS_STAY, ONLY_SHARES_MOVED

SHORT_RUNS = Claim(
    "stable",
    "intervals may undercover slightly in short runs: in UCB simulations with two identical arms, "
    "nominal 95% intervals for the difference had coverage of 93.9% (1,000 rounds) and 94.3% (10,000 "
    "rounds); see audit.stability",
    "caution",
)
VARIATION = Claim(
    "inference.arms.facts.sample_facts.SampleFacts.vary",
    "the standard deviation of simulated arm counts is {variation:.1%} of their median",
    "note",
)
BIASED = Claim("biased", "sample means are biased under adaptive assignment", "needs")
OPENING = Claim("worth", "Sample means are {worth}.", "note")
"""Claims for a fit, and for one whose validity depended on its row of `recommend`."""

NEEDS = (
    Part("profile.context_refusal", "needs"),
    Part("profile.unit_refusal", "needs"),
    Claim(
        "counts_vary",
        "{vary} (limit: {most:.0%}), so the sample means may not be approximately normal",
        "needs",
    ),
    BIASED,
    Claim(
        "unstable",
        "{biased}, and arm counts do not stabilise under {design}: {condition} ({source})",
        "needs",
    ),
)
REASONS = (
    Claim("not_adaptive", "{why}, so each arm's rewards are a random sample", "reason"),
    Claim(
        "counts_settled",
        "{vary}, so arm counts are stable enough for normal approximations to the sample means",
        "reason",
    ),
    Claim(
        "stable_design",
        "{design} is stable: its arm counts become nearly deterministic in long runs ({source})",
        "reason",
    ),
)
ASSUMES = (
    Part("propensities_right", "assumes"),
    NOT_ADAPTIVE,
    MEANS_STAY,
    Claim(
        "simulated",
        "the model used for simulation correctly describes how rewards are generated",
        "assumes",
        short="the simulated reward model is correct",
    ),
    Claim(
        "stable_if",
        "the number of rounds is large, and the design uses {condition}",
        "assumes",
        short="many rounds",
    ),
    contexts.NO_PART,
)
CAUTIONS = (Part("shares_moved", "caution"), SHORT_RUNS)
"""Claims for a row of `recommend` with t-tests and no correction."""

ONE_RATE = Claim(
    "is_exact",
    "rewards are independent, and each arm has a constant success rate",
    "assumes",
    short="independent rewards, constant success rates",
)
NOT_BINARY = Claim("not_binary", "rewards must be binary (two values, such as 0 and 1)", "needs")
EXACT_NEEDS = (
    Part("profile.context_refusal", "needs"),
    NOT_BINARY,
    Part("profile.unit_refusal", "needs"),
    Claim(
        "profile.adaptive",
        "exact tests require arm counts that do not depend on rewards, but assignment is adaptive",
        "needs",
    ),
)
EXACT_REASONS = (Claim("not_adaptive", "rewards are binary, and {why}", "reason"),)
EXACT_ASSUMES = (Part("propensities_right", "assumes"), NOT_ADAPTIVE, ONE_RATE, contexts.NO_PART)
EXACT_CAUTIONS = (Part("shares_moved", "caution"), Part("absences", "caution"))
"""With exact binomial tests."""

NOTHING_TO_CORRECT = Claim(
    "not_adaptive", "the correction is unnecessary, because the uncorrected results are valid: {why}", "needs"
)
CORRECTED_NEEDS = (
    Part("profile.context_refusal", "needs"),
    Claim(
        "units_of_rows",
        "{refusal} (for a person-level correction, use correction_for with unit='person')",
        "needs",
    ),
    Part("profile.unit_refusal", "needs"),
    NOTHING_TO_CORRECT,
    Part("profile.no_correction", "needs"),
)
GUARANTEED = Claim(
    "short",
    "the privacy guarantee bounds the effect of adaptivity ({bound}), and corrected intervals are about "
    "{ratio:.2g} times as long as ALEE intervals",
    "reason",
)
VACUOUS = Claim(
    "vacuous",
    "the privacy guarantee is too weak: a correction based on it would not yield informative intervals "
    "({bound})",
    "reason",
)
LONG = Claim("long", "{guaranteed}, so ALEE is preferable unless exact inference is required", "reason")
CORRECTED_REASONS = (
    VACUOUS,
    GUARANTEED,
    LONG,
)
CORRECTED_ASSUMES = (
    Claim("guaranteed", "the stated privacy guarantee holds", "assumes", short="the privacy guarantee holds"),
    Claim(
        "one_law",
        "each arm's rewards are independent and identically distributed",
        "assumes",
        short="i.i.d. rewards of each arm",
    ),
    Part("mixed", "assumes"),
)
CORRECTED_CAUTIONS = (
    Claim(
        "useless",
        "the corrected significance level is effectively zero, so all corrected intervals are uninformative",
        "caution",
    ),
    Claim(
        "of_tails",
        "the t approximation may be inaccurate at the very small significance levels that the correction "
        "requires",
        "caution",
    ),
    Claim(
        "contexts_untold",
        "corrected inference ({label}) is valid only if {no_part}; this log cannot confirm that they did not",
        "caution",
    ),
)
"""With corrected columns."""

_WORTH = "inference.arms.facts.sample_facts.SampleFacts.worth"
UNITS_DEPEND = Claim(
    _WORTH,
    "only a naive baseline: rounds of the same unit may be dependent, so inference is not valid",
    "note",
)
NOT_DUE = Claim(_WORTH, "valid without correction, because {why}", "note")
LONG_RUNS = Claim(
    _WORTH,
    "asymptotically valid with {condition}, because arm counts stabilise under {design} ({source}); "
    "{short_runs}",
    "note",
)
STATED = Claim(
    _WORTH,
    "valid only if earlier rewards did not influence assignment, as declared for this log (adaptive=False)",
    "note",
)
NAIVE = Claim(_WORTH, "a naive baseline, not valid if assignment is adaptive", "note")
ACCOUNTED = Claim(_WORTH, "invalid under adaptive assignment, unlike the corrected results", "note")
"""Validity of the uncorrected sample means in a fit."""
MIXED = Claim(
    "profile.has_contexts",
    "The log contains contexts, so an arm's sample mean estimates its overall mean only if contexts did "
    "not influence assignment.",
    "note",
)

TAKEN_AS_ADAPTIVE = Claim(
    "design_untold",
    "No design is logged, so assignment is assumed to be adaptive; set adaptive=False if outcomes did "
    "not affect assignment.",
    "note",
)
UNCORRECTED = Claim("no_corrected_columns", "Corrected results are not given, because {reason}.", "note")
FEW_EVENTS = Claim(
    "few_events",
    "Fewer than {fewest} successes or failures occurred in at least one arm, so means are analysed with "
    "exact binomial methods, and differences with the Agresti-Caffo adjustment.",
    "note",
    short="exact binomial means, Agresti-Caffo differences",
)
MOVED = (
    Claim(
        "moved_with_propensities",
        "{moved}; estimator='aipw' uses the propensities to avoid this bias",
        "caution",
    ),
    Claim(
        "moved_with_batches",
        "{moved} (p < {p:g}); use Contrast with estimator='batched' to compare arms within batches",
        "caution",
    ),
    Claim(
        "moved_with_equal_rewards",
        "{moved} (p < {p:g}); estimator='batched' would compare arms within batches, but some batch has "
        "only rewards of one value: join batches that have the same assignment probabilities (batch=), or "
        "pass propensities='from batches' if every arm was chosen in each batch",
        "caution",
    ),
    Claim(
        "moved_without_batches",
        "{moved} (p < {p:g}); to compare arms within periods of constant assignment probabilities, log "
        "these periods as batches (batch=)",
        "caution",
    ),
)
"""Effects of changing assignment shares on unadjusted means, and alternatives."""
FIT = (
    Part("propensities_right", "assumes"),
    NOT_ADAPTIVE,
    MEANS_STAY,
    ONE_RATE,
    OPENING,
    MIXED,
    TAKEN_AS_ADAPTIVE,
    UNCORRECTED,
    FEW_EVENTS,
    ONLY_SHARES_MOVED,
    units.NOT_BY_UNIT,
    contexts.NEVER_RANDOM,
    Part("moved", "caution"),
    Part("absences", "caution"),
    Part("sums_cautions", "caution"),
    Part("profile.share_cautions", "caution"),
    *arm_fits.FIT,
)
"""Statements about a fit, in the order in which its table shows them."""
