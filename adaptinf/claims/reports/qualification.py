"""Text in the qualification of an installation."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_EXTRAS = "qualification.extras.requirement_rows"

EDITABLE = Claim(
    "qualification.installed.Package.row",
    "There is no record of these files, because adaptinf was installed in editable mode or runs from its "
    "source tree; changed files can be detected only by comparison with an earlier report (--compare).",
    "caution",
)
NO_RECORD = Claim(
    "qualification.installed.Package.row",
    "The installer recorded no digests for the files of this package, so they cannot be checked.",
    "caution",
)
NOT_INSTALLED = Claim(
    _EXTRAS,
    "adaptinf runs from a source tree and is not installed, so its requirements are unknown.",
    "caution",
)
NO_METADATA = Claim(
    _EXTRAS,
    "The metadata of this installation do not list this extra; reinstall adaptinf.",
    "caution",
)
NO_RELEASE = Claim(_EXTRAS, "Without it, there is no exact noise for private releases and trials.", "note")
NO_PLOTS = Claim(_EXTRAS, "Without it, there are no plots, and reports have no figures.", "note")
NO_LARGE = Claim(_EXTRAS, "Without it, files larger than memory cannot be aggregated.", "note")
NO_TRIAL = Claim(_EXTRAS, "Without it, live trials cannot be run.", "note")
NO_SERVE = Claim(_EXTRAS, "Without it, a trial cannot be served over HTTP.", "note")
NO_POSTGRES = Claim(_EXTRAS, "Without it, PostgreSQL cannot be used to store trials.", "note")
NO_TABLES = Claim(_EXTRAS, "Without it, summaries cannot be converted to Great Tables.", "note")
NO_WORD = Claim(_EXTRAS, "Without it, reports cannot be written as Word files.", "note")
NO_CLI = Claim(_EXTRAS, "Without it, the shell cannot complete the names of commands and columns.", "note")
NO_CLUSTER = Claim(_EXTRAS, "Without it, simulations cannot run on several machines.", "note")
PASSED = Claim(
    "qualification.qualified.Qualification.sentence",
    "This installation is qualified: all {run} checks passed. Checks that could not be run: {untested}.",
    "note",
)
FAILED = Claim(
    "qualification.qualified.Qualification.sentence",
    "This installation is not qualified: {failed} of {run} checks failed, and {untested} could not be run.",
    "caution",
)
DIGEST = Claim(
    "qualification.qualified.Qualification.to_dict",
    "SHA-256 of the JSON report without this field, with sorted keys and without spaces.",
    "note",
)
