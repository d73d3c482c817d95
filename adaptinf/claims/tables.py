"""What stands under a table whatever its method: its law, corrections, adjustments, and units."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.privacy import guarantees

CORRECTED = Claim(
    "inference.results.footers.Footer.correction",
    "Corrected columns, for adaptive collection under the reward-level guarantee: {correction}. {covers}",
    "note",
)
CORRECTION_IMPOSSIBLE = Claim(
    "inference.results.footers.Footer.correction",
    "There are no corrected columns: {correction}. {covers}",
    "note",
)
FAR_OUT = Claim(
    "inference.results.footers.Footer.correction",
    "The {law} approximation may fail so far out in the tail.",
    "note",
)
EXACT_LAW = Claim("exact_law", "P-values and intervals: {law}, exact for actions fixed in advance.", "note")
LAW = Claim("approximate_law", "P-values and intervals: {law}, an approximation.", "note")
WITHOUT_STD_ERROR = Claim(
    "without_std_error",
    "Standard errors and z are descriptive: p-values and intervals do not use them.",
    "note",
)
CORRECTS_ROUNDS = Claim(
    "corrects_rounds",
    "Corrected columns count rounds and need them to be independent, but units have several. For a p-value "
    "that is valid under any dependence within units, correction_for(log, unit='person') counts persons.",
    "note",
)
CAUTION = Claim("cautions", "Caution: {caution}.", "caution")
REPEATED_UNITS = Claim(
    "repeated_units",
    "The {rounds} rounds of {units} units are treated as independent given the past, within units as between "
    "them.",
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
    "inference.results.estimand.meaningful",
    "{terms}: no interval, because it would be more than {longest:,} times as long as {scale}: too few "
    "rounds carry the estimate.",
    "note",
)
OF_REWARDS = Claim("inference.results.estimand.meaningful", "the spread of the rewards", "note")
OF_CONTROL = Claim("inference.results.estimand.meaningful", "the control's mean", "note")
OF_ERROR = Claim("inference.results.estimand.meaningful", "the standard error", "note")

HOLM = Claim(
    "inference.results.multiplicity.adjustment_note",
    "Holm: {pvalues} of {count} terms, adjusted for their number under any dependence.",
    "note",
)
BH = Claim(
    "inference.results.multiplicity.adjustment_note",
    "BH: {pvalues}, for {count} terms, adjusted by Benjamini and Hochberg's method, which bounds the share "
    "of false discoveries if p-values are independent or positively dependent.",
    "note",
)
AT_ONCE = Claim(
    "inference.results.multiplicity.at_once_note",
    "At once: P is the chance that any of {count} p-values would be this small if all nulls were true, and "
    "all intervals hold together at their level, by {method}.",
    "note",
)

NOT_VALID = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Not valid under adaptivity: {estimates}.",
    "note",
)
SINGLES_CORRECTED = Claim(
    "inference.results.simultaneous.JointInference.wald_test",
    "Not corrected, unlike pvalues_corrected and conf_int_corrected.",
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
    "Normal approximation; the law of single terms is {law}.",
    "note",
)

LATE_COUNTED = Claim(
    "inference.results.facts.LogFacts.released",
    "An outcome that took longer than {window:,} further participants to arrive counted as {late:g}: this is "
    "{what} within the window, not the eventual outcome.",
    "note",
)
OWN_NUMBERS = Claim(
    "inference.results.own.result",
    "Numbers from the user's own estimator, which the user labels {validity!r}: their validity for the log "
    "was not checked.",
    "note",
)

COMPARED = Claim(
    "inference.results.comparison.Comparison.summary",
    "Intervals at alpha = {alpha:g}; p-values against {nulls}. Do not choose between methods by this table.",
    "note",
)
NULLS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary", "{nulls}, which are not comparable", "note"
)
LOGS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary", "Results of different logs: {results}.", "note"
)
TARGETS_DIFFER = Claim(
    "inference.results.comparison.Comparison.summary",
    "{term!r} is a different target in different results: {targets}.",
    "note",
)
BASELINES = Claim(
    "inference.results.comparison.Comparison.summary",
    "Not valid under adaptivity, as baselines: {results}.",
    "note",
)
CORRECTED_COLUMNS_VALID = Claim(
    "inference.results.comparison.Comparison.summary",
    "{results}: valid under adaptivity in the corrected columns alone, which are {label} by the log's "
    "guarantee.",
    "note",
)
