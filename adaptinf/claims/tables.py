"""What stands under a table whatever its method: its law, corrections, adjustments, and units."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.privacy import guarantees

CORRECTED = Claim(
    "inference.results.summary.Footer.correction",
    "Corrected p-values and intervals use the reward-level privacy guarantee to account for adaptive "
    "assignment: {correction}. {covers}",
    "note",
)
CORRECTION_IMPOSSIBLE = Claim(
    "inference.results.summary.Footer.correction",
    "No corrected p-values or intervals are given: {correction}. {covers}",
    "note",
)
FAR_OUT = Claim(
    "inference.results.summary.Footer.correction",
    "Corrected inference relies on the extreme tails of the reference distribution, where the "
    "approximation ({law}) may be inaccurate.",
    "note",
)
EXACT_LAW = Claim(
    "exact_law",
    "Reference distribution: {law}; p-values and intervals are exact if actions are fixed in advance.",
    "note",
)
LAW = Claim("approximate_law", "Approximate reference distribution: {law}.", "note")
WITHOUT_STD_ERROR = Claim(
    "without_std_error",
    "Standard errors and z statistics are descriptive; they are not used for p-values or intervals.",
    "note",
)
CORRECTS_ROUNDS = Claim(
    "corrects_rounds",
    "Corrected p-values and intervals treat rounds as independent, although some units have several "
    "rounds. For p-values that are valid under within-unit dependence, use correction_for(log, "
    "unit='person').",
    "note",
)
CAUTION = Claim("cautions", "Caution: {caution}.", "caution")
REPEATED_UNITS = Claim(
    "repeated_units",
    "The {rounds} rounds, from {units} units, are treated as conditionally independent given the past.",
    "note",
)
FOOTER = (
    EXACT_LAW,
    LAW,
    WITHOUT_STD_ERROR,
    Part("correction", "note"),
    CORRECTS_ROUNDS,
    CAUTION,
    Part("notes", "note"),
    Part("efficiency_note", "note"),
    Part("readings", "note"),
    REPEATED_UNITS,
    guarantees.WITHDRAWN,
    Part("privacy", "note"),
    guarantees.ALL_ROUNDS_OF_A_UNIT,
    guarantees.AUXILIARY,
    guarantees.SIMULATION_NOISE,
)
"""In the order in which a summary has them."""

TOO_LONG = Claim(
    "inference.results.log_facts.meaningful",
    "No useful interval exists for {terms}: the estimate depends on too few rounds, and the width of "
    "any interval would exceed {longest:,} times {scale}.",
    "note",
)
OF_REWARDS = Claim("inference.results.log_facts.meaningful", "the spread of the rewards", "phrase")
OF_CONTROL = Claim("inference.results.log_facts.meaningful", "the mean of the control arm", "phrase")
OF_ERROR = Claim("inference.results.log_facts.meaningful", "the standard error of the estimate", "phrase")

HOLM = Claim(
    "inference.results.multiplicity.adjustment_note",
    "Holm: {pvalues} of {count} terms are adjusted by Holm's method, which controls the familywise error "
    "rate under any dependence.",
    "note",
)
BH = Claim(
    "inference.results.multiplicity.adjustment_note",
    "BH: the Benjamini-Hochberg method adjusts {pvalues} of {count} terms and controls the false "
    "discovery rate if p-values are independent or positively dependent.",
    "note",
)
AT_ONCE = Claim(
    "inference.results.multiplicity.at_once_note",
    "Columns headed 'at once' give p-values adjusted for {count} terms and simultaneous confidence "
    "intervals, based on {method}.",
    "note",
)

NOT_VALID = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Tests based on sample means are not valid here.",
    "note",
)
SINGLES_CORRECTED = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Unlike pvalues_corrected and conf_int_corrected, the test shown ignores adaptivity.",
    "note",
)
CONTRASTS_CORRECTED = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "This test is not corrected for adaptivity; use Contrast for corrected p-values and intervals.",
    "note",
)
FEWEST_FREEDOM = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "The test uses the smallest number of degrees of freedom among the tested terms.",
    "note",
)
NORMAL_FOR = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "The joint test uses a normal approximation, although the reference distribution for individual "
    "estimates is {law}.",
    "note",
)

LATE_COUNTED = Claim(
    "inference.results.log_facts.LogFacts.released",
    "Outcomes not observed within {window:,} subsequent enrolments were recorded as {late:g}, so "
    "results refer to {what} within this window rather than to the eventual outcome.",
    "note",
)
OWN_NUMBERS = Claim(
    "inference.results.own.result",
    "This estimator was supplied by the user, who declared its validity to be {validity!r}; whether it "
    "is valid for this log was not checked.",
    "note",
)

INTERVALS = Claim(
    "inference.results.comparison.Comparison.summary", "{level:g}% confidence intervals", "phrase"
)
STD_ERRORS = Claim("inference.results.comparison.Comparison.summary", "standard errors", "phrase")
P_VALUES = Claim(
    "inference.results.comparison.Comparison.summary", "p-values (null value: {nulls})", "phrase"
)
COMPARED = Claim(
    "inference.results.comparison.Comparison.summary",
    "The line below each estimate shows {below}. This table should not be used to choose between methods.",
    "note",
)
STARRED = Claim(
    "inference.results.comparison.Comparison.summary",
    "Stars mark p-values of at most 0.05 (*), 0.01 (**) and 0.001 (***), against a null value of {nulls}. "
    "Corrected p-values are used where there are any; columns that are not valid have no stars.",
    "note",
)
NULLS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary", "{nulls}, so the p-values are not comparable", "note"
)
LOGS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary",
    "The results come from different logs: {results}.",
    "caution",
)
TARGETS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary",
    "The target of {term!r} differs between results: {targets}.",
    "caution",
)
BASELINES = Claim(
    "inference.results.comparison.Comparison.summary",
    "Naive baselines, not valid under adaptive data collection: {results}.",
    "caution",
)
CORRECTED_ROWS_VALID = Claim(
    "inference.results.comparison.Comparison.summary",
    "For {results}, only the rows marked 'corrected' ({what}) account for adaptivity. Their validity is "
    "{label} and depends on the privacy guarantee.",
    "note",
)
