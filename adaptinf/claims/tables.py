"""Text under any table: distribution, corrections, adjustments, and units."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.privacy import guarantees

CORRECTED = Claim(
    "inference.results.explanation.Footer.correction",
    "Corrected p-values and intervals use the reward-level privacy guarantee to account for adaptive "
    "assignment: {correction}.",
    "note",
    short="corrected by max-information",
)
CORRECTION_IMPOSSIBLE = Claim(
    "inference.results.explanation.Footer.correction",
    "No informative corrected p-values or intervals exist: {correction}.",
    "missing",
)
FAR_OUT = Claim(
    "inference.results.explanation.Footer.correction",
    "Corrected inference relies on the extreme tails of the reference distribution, where the "
    "approximation ({law}) may be inaccurate.",
    "note",
)
EXACT_LAW = Claim(
    "inference.results.estimates.Estimates._law_said",
    "Reference distribution: {law}; p-values and intervals are exact if actions are fixed in advance.",
    "note",
    short="reference distribution: {law}",
)
LAW = Claim(
    "inference.results.estimates.Estimates._law_said",
    "Approximate reference distribution: {law}.",
    "note",
    short="reference distribution: {law}",
)
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
NAIVE = Claim(
    "naive",
    "these numbers are not valid, because earlier outcomes may have influenced assignment",
    "caution",
)
ONLY_CORRECTED = Claim(
    "corrected_alone",
    "only the corrected p-values and intervals account for adaptive assignment",
    "caution",
)
REPEATED_UNITS = Claim(
    "repeated_units",
    "The {rounds} rounds, from {units} units, are treated as conditionally independent given the past.",
    "note",
)
OUTSIDE_FAMILY = Claim(
    "outside_family",
    "Simultaneous p-values and intervals leave out {terms}, on which the log has no information.",
    "note",
)
CAUTION = Claim("cautions", "Caution: {caution}.", "caution")
FOOTER = (
    NAIVE,
    ONLY_CORRECTED,
    Part("cautions", "caution"),
    Part("law", "note"),
    WITHOUT_STD_ERROR,
    Part("adjustment", "note"),
    OUTSIDE_FAMILY,
    Part("correction", "note"),
    CORRECTS_ROUNDS,
    Part("notes", "note"),
    Part("efficiency_note", "note"),
    Part("readings", "note"),
    REPEATED_UNITS,
    guarantees.WITHDRAWN,
    Part("privacy", "privacy"),
    guarantees.ALL_ROUNDS_OF_A_UNIT,
    guarantees.AUXILIARY,
    guarantees.SIMULATION_NOISE,
)
"""Lines below a table, in the order of an explanation."""

HEADINGS = {
    "caution": "Cautions",
    "missing": "Missing numbers",
    "note": "How the numbers were computed",
    "assumes": "Assumptions",
    "target": "What is estimated",
    "advice": "Advice",
    "privacy": "Privacy",
}
"""Headings for the parts of an explanation, by the kind of their content."""
CHECKS = {"": "cannot be checked from this log", "checked": "checked", "contradicted": "contradicted"}
"""Statements about an assumption, by the finding of a check."""

TOO_LONG = Claim(
    "inference.results.log_facts.meaningful",
    "The log is uninformative about {terms}: the estimate depends on too few rounds, and its interval "
    "would be wider than {longest:,} times {scale}, so no interval is given.",
    "missing",
)
OF_RANGE = Claim("inference.results.log_facts.meaningful", "the reward range", "phrase")
OF_REWARDS = Claim(
    "inference.results.log_facts.meaningful", "the standard deviation of the rewards", "phrase"
)
OF_CONTROL = Claim("inference.results.log_facts.meaningful", "the mean of the control arm", "phrase")
OF_ERROR = Claim("inference.results.log_facts.meaningful", "the standard error of the estimate", "phrase")

HOLM = Claim(
    "inference.results.multiplicity.adjustment_note",
    "Holm: Holm's method adjusts {pvalues} of {count} terms and controls the familywise error rate "
    "under any dependence.",
    "note",
    short="Holm's adjustment for {count} terms",
)
BH = Claim(
    "inference.results.multiplicity.adjustment_note",
    "BH: the Benjamini-Hochberg method adjusts {pvalues} of {count} terms and controls the false "
    "discovery rate if p-values are independent or positively dependent.",
    "note",
    short="Benjamini-Hochberg adjustment for {count} terms",
)
AT_ONCE = Claim(
    "inference.results.multiplicity.at_once_note",
    "Columns headed 'at once' give p-values adjusted for {count} terms and simultaneous confidence "
    "intervals, based on {method}.",
    "note",
    short="simultaneous for {count} terms ({method.short})",
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
    short="supplied by the user, {validity}",
)

OWN_ASSUMPTION = Claim("inference.results.own.result", "{assumption}", "assumes", short="{assumption}")
OWN_REFERENCE = Claim("inference.results.own.result", "Reference: {reference}.", "note")

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
    "P-value of at most 0.05 (*), 0.01 (**) or 0.001 (***); null value: {nulls}. Corrected p-values are "
    "used where available; columns that are not valid have no stars.",
    "note",
)
ADJUSTED = {
    "holm": Claim(
        "inference.results.multiplicity.adjusted_logs",
        "P-values are adjusted for {terms} by Holm's method; intervals are unadjusted.",
        "note",
    ),
    "bh": Claim(
        "inference.results.multiplicity.adjusted_logs",
        "P-values are adjusted for {terms} by the Benjamini-Hochberg method, but intervals are not.",
        "note",
    ),
    "max-t": Claim(
        "inference.results.comparison.Comparison.summary",
        "P-values and intervals are adjusted for {terms} (max-t); corrected p-values are adjusted by Holm's "
        "method, and corrected intervals are not adjusted.",
        "note",
    ),
}
"""Handling of several terms, by the adjustment of their p-values."""
TERMS_OF_COLUMN = Claim(
    "inference.results.comparison.Comparison.summary", "the terms in each column", "phrase"
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

_ESTIMATOR = "inference.results.explanation.method_line"
ESTIMATORS = {
    "sample-mean": Claim(_ESTIMATOR, "sample means", "phrase", short="Sample means"),
    "ipw": Claim(_ESTIMATOR, "inverse-propensity weighting (IPW)", "phrase", short="IPW"),
    "aipw": Claim(_ESTIMATOR, "augmented inverse-propensity weighting (AIPW)", "phrase", short="AIPW"),
    "alee": Claim(_ESTIMATOR, "adaptive linear estimating equations (ALEE)", "phrase", short="ALEE"),
    "batched": Claim(_ESTIMATOR, "batched least squares", "phrase", short="Batched least squares"),
    "released": Claim(
        _ESTIMATOR, "an estimator based only on the private releases", "phrase", short="Private releases"
    ),
    "difference-in-means": Claim(
        _ESTIMATOR, "differences in means within groups", "phrase", short="Differences in means"
    ),
    "cadr": Claim(
        _ESTIMATOR, "the contextual adaptive doubly robust estimator (CADR)", "phrase", short="CADR"
    ),
    "ols": Claim(_ESTIMATOR, "ordinary least squares", "phrase", short="OLS"),
    "w-decorrelated": Claim(
        _ESTIMATOR, "W-decorrelated least squares", "phrase", short="W-decorrelated least squares"
    ),
    "weighted": Claim(_ESTIMATOR, "weighted least squares", "phrase", short="Weighted least squares"),
    "ridge": Claim(
        _ESTIMATOR,
        "ridge regression with a self-normalised confidence ellipsoid",
        "phrase",
        short="Ridge regression with a confidence ellipsoid",
    ),
}
"""Name of an estimator in a sentence, and in the line on the method."""

_FOUND = "inference.results.sentences.sentence_of"
HIGHER = Claim(
    _FOUND,
    "{treatment} has a {direction} {what} than {control}: difference {estimate} ({interval}).",
    "phrase",
)
UNDECIDED = Claim(
    _FOUND,
    "It is undecided whether {treatment} or {control} has the higher {what}: difference {estimate} "
    "({interval}).",
    "phrase",
)
LIFTED = Claim(
    _FOUND, "The {what} is {size} {direction} for {treatment} than for {control} ({interval}).", "phrase"
)
LIFT_UNDECIDED = Claim(
    _FOUND,
    "It is undecided whether {treatment} or {control} has the higher {what}: lift {estimate} ({interval}).",
    "phrase",
)
LIFTED_ALONE = Claim(_FOUND, "{treatment} has a {direction} {what} (lift {estimate}, {interval})", "phrase")
NO_UNIT = Claim(_FOUND, "relative lifts have no unit: omit unit=", "needs")
IN_GROUP = Claim(_FOUND, "For {group}: {sentence}", "phrase")
LEVEL = Claim(_FOUND, "{term} has {what} {estimate} ({interval}).", "phrase")
LEVELS = Claim(
    _FOUND,
    "Of {count} arms, {high} the highest estimated {what}, {estimate} ({interval}), and {low} the lowest, "
    "{least}{selection}.",
    "phrase",
)
NOT_FOR_SELECTION = Claim(_FOUND, "; the intervals do not allow for this selection", "phrase")
EQUAL_LEVELS = Claim(_FOUND, "{arms} have the same estimated {what}, {estimate} ({interval}).", "phrase")
LACKS_ESTIMATES = Claim(_FOUND, "{sentence} There is no estimate for {terms}.", "phrase")
LACKS_INTERVALS = Claim(_FOUND, "{sentence} There is no interval for {terms}.", "phrase")
BOUNDED_LEVELS = Claim(_FOUND, "For any values of the missing rewards: {levels}.", "phrase")
BOUNDED_LEVEL = Claim(_FOUND, "{term} has {what} {estimate} ({interval})", "phrase")
BEST_ALONE = Claim(_FOUND, "every other arm is ruled out as the best at level {alpha:g}", "phrase")
BEST_OF_SEVERAL = Claim(
    _FOUND, "it is undecided which arm is best: {arms} are not ruled out at level {alpha:g}", "phrase"
)
BEST_NOT_ASKED = Claim(_FOUND, "no test of which arm is best is available", "phrase")
SELECTED = Claim(
    _FOUND,
    "Of {count} arms, {term} has the highest estimate: {what} {estimate} ({interval}, allowing for this "
    "selection); {best}.",
    "phrase",
)
SELECTED_OF_EQUALS = Claim(
    _FOUND,
    "Of {count} arms, {arms} have the same highest estimate; for {term}: {what} {estimate} ({interval}, "
    "allowing for this selection); {best}.",
    "phrase",
)
BEYOND = Claim(_FOUND, "{treatment} has a {direction} {what} (difference {estimate}, {interval})", "phrase")
AGAINST_CONTROL = Claim(_FOUND, "Compared with {control}: {decided}; undecided for {undecided}.", "phrase")
ALL_AGAINST_CONTROL = Claim(_FOUND, "Compared with {control}: {decided}.", "phrase")
NONE_AGAINST_CONTROL = Claim(
    _FOUND, "It is undecided whether any of {count} arms differs from {control} in {what}.", "phrase"
)
OTHERS = {True: Claim(_FOUND, "the other", "phrase"), False: Claim(_FOUND, "the other {count}", "phrase")}
"""Phrases for the other terms, keyed by whether there is only one."""
DECIDED_TERMS = Claim(_FOUND, "Terms that differ from {null:g}: {decided}.", "phrase")
UNDECIDED_TERMS = Claim(_FOUND, "It is undecided whether these differ from {null:g}: {undecided}.", "phrase")
BOTH_TERMS = Claim(_FOUND, "Terms that differ from {null:g}: {decided}; undecided: {undecided}.", "phrase")
OTHER_DECIDED = Claim(_FOUND, "{term}: estimate {estimate} ({interval}).", "phrase")
OTHER_UNDECIDED = Claim(
    _FOUND,
    "{term}: estimate {estimate} ({interval}); it is undecided whether this differs from {null:g}.",
    "phrase",
)
NO_INTERVAL = Claim(_FOUND, "{term}: estimate {estimate}, without an interval (see explain()).", "phrase")
NO_INTERVALS = Claim(_FOUND, "There is no interval for {terms} (see explain()).", "phrase")
NO_ESTIMATES = Claim(_FOUND, "There is no estimate for {terms} (see explain()).", "phrase")
FIRST_NOT_VALID = Claim(_FOUND, "Not valid under adaptive assignment: {sentence}", "phrase")
AFTER_CAUTIONS = Claim(_FOUND, "{sentence} Read the cautions first.", "phrase")

DIFFERENCES = {
    "contrast": "mean {reward}",
    "cate": "mean {reward}",
    "received-contrast": "mean {reward}",
    "ratio-contrast": "ratio of {reward} to {denominator}",
    "policy-contrast": "value",
}
"""The quantities that are compared, by the kind of estimand."""
LIFTS = {"lift": "mean {reward}", "ratio-lift": "ratio of {reward} to {denominator}"}
"""The comparison of relative effects, by the kind of estimand."""
LEVEL_KINDS = {
    "arm-mean": "mean {reward}",
    "bin-mean": "mean {reward}",
    "policy-value": "value",
    "ratio": "ratio of {reward} to {denominator}",
}
"""The estimand for one arm, policy or bin."""
