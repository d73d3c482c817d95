"""What stands under a table whatever its method: its law, corrections, adjustments, and units."""

from __future__ import annotations

from adaptinf.claims import guarantees
from adaptinf.claims.claim import Claim, Part

CORRECTED = Claim(
    "inference.results.footers.Footer.correction",
    "Corrected columns, for adaptive collection under the reward-level guarantee: {correction}. {covers}",
    "note",
)
CORRECTION_IMPOSSIBLE = Claim(
    "inference.results.footers.Footer.correction",
    "Corrected columns: none possible at this epsilon: {correction}. {covers}",
    "note",
)
FAR_OUT = Claim(
    "inference.results.footers.Footer.correction",
    "The {law} approximation may fail so far out in the tail.",
    "note",
)
EXACT_LAW = Claim(
    "exact_law", "P-values and intervals: {law}, exact for any fixed sequence of actions.", "note"
)
LAW = Claim("approximate_law", "P-values and intervals: {law}, an approximation.", "note")
WITHOUT_STD_ERROR = Claim(
    "without_std_error",
    "Standard errors and z are descriptions: p-values and intervals do not use them.",
    "note",
)
CORRECTS_PERSONS = Claim(
    "corrects_persons",
    "Corrected columns take rounds to be independent, and units came back: by person, correction_for(log, "
    "unit='person') corrects a p-value that is valid whatever the dependence within persons.",
    "note",
)
CAUTION = Claim("cautions", "Caution: {caution}.", "caution")
REPEATED_UNITS = Claim(
    "repeated_units",
    "{units} units in {rounds} rounds: rounds of one unit are taken to be as independent, given the past, as "
    "those of different units.",
    "note",
)
CORRECTS_REPEATED_UNITS = Claim(
    "corrects_repeated_units",
    "The corrected columns count rounds, and need them to be independent. correction_for(log, "
    "unit='person') counts persons, for a p-value that allows for dependence within them.",
    "note",
)
FOOTER = (
    EXACT_LAW,
    LAW,
    WITHOUT_STD_ERROR,
    Part("correction", "note"),
    CORRECTS_PERSONS,
    CAUTION,
    Part("notes", "note"),
    Part("efficiency_note", "note"),
    Part("readings", "note"),
    REPEATED_UNITS,
    CORRECTS_REPEATED_UNITS,
    guarantees.WITHDRAWN,
    Part("privacy", "note"),
    guarantees.ALL_ROUNDS_OF_A_UNIT,
    guarantees.AUXILIARY,
    guarantees.SIMULATION_NOISE,
)
"""In the order in which a summary has them."""

HOLM = Claim(
    "inference.results.multiplicity.adjustment_note",
    "Holm: {pvalues} of {count} terms, adjusted for their number whatever their dependence.",
    "note",
)
BH = Claim(
    "inference.results.multiplicity.adjustment_note",
    "BH: {pvalues} of {count} terms, adjusted after Benjamini and Hochberg: bounds the share of false "
    "discoveries if the p-values are independent or positively dependent.",
    "note",
)
AT_ONCE = Claim(
    "inference.results.multiplicity.at_once_note",
    "At once: P is the chance that any of {count} p-values were as small if all nulls were true, and all "
    "intervals hold together at the level, by {method}.",
    "note",
)

NOT_VALID = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Not valid under adaptivity: {estimates}.",
    "note",
)
SINGLES_CORRECTED = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Not corrected: pvalues_corrected and conf_int_corrected are.",
    "note",
)
CONTRASTS_CORRECTED = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Not corrected: Contrast gives corrected columns.",
    "note",
)
FEWEST_FREEDOM = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Degrees of freedom: the fewest of any term involved.",
    "note",
)
NORMAL_FOR = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Normal approximation; the terms' own law is {law}.",
    "note",
)

LATE_COUNTED = Claim(
    "inference.results.facts.LogFacts.released",
    "An outcome that was not in when its window of {window:,} further participants ended counted as "
    "{late:g}: this is {what} within the window, and not the outcome whenever it comes.",
    "note",
)
OWN_NUMBERS = Claim(
    "inference.results.own.result",
    "Numbers of an estimator of the user's own, labelled {validity!r} by the user: how valid they are for "
    "the log was not checked.",
    "note",
)

COMPARED = Claim(
    "inference.results.comparison.Comparison.summary",
    "Intervals at alpha = {alpha:g}; p-values against {nulls}. The choice between methods must not look at "
    "this table.",
    "note",
)
NULLS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary", "{nulls}: they are not to be compared", "note"
)
LOGS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary", "Results of different logs: {results}.", "note"
)
TARGETS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary",
    "{term!r} is not the same target throughout: {targets}.",
    "note",
)
BASELINES = Claim(
    "inference.results.comparison.Comparison.summary",
    "Not valid under adaptivity, as baselines: {results}.",
    "note",
)
CORRECTED_COLUMNS_VALID = Claim(
    "inference.results.comparison.Comparison.summary",
    "Uncorrected numbers not valid under adaptivity: {results}; {whose} corrected columns are {label}, by "
    "the log's guarantee.",
    "note",
)
