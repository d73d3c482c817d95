"""Text on the first screen of a report: which intervals are shown, for which rows and which data."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_SHOWN = "reports.shown_numbers.Shown"
SINGLE = Claim(_SHOWN, "{level} confidence intervals", "phrase")
EACH = Claim(_SHOWN, "{level} confidence intervals for individual rows", "phrase")
AT_ONCE = Claim(_SHOWN, "simultaneous {level} confidence intervals for all {count} rows", "phrase")
CORRECTED = Claim(_SHOWN, "{level} confidence intervals, corrected for adaptive assignment", "phrase")
NAIVE = Claim(_SHOWN, "naive {level} intervals, not valid for adaptively collected data", "phrase")
SEQUENCE = Claim(_SHOWN, "{level} confidence sequences", "phrase")

MULTIPLICITY = {
    "max-t": Claim(
        _SHOWN,
        "P-values are adjusted for {count} comparisons, and the intervals are simultaneous (based on {law}).",
        "note",
    ),
    "holm": Claim(
        _SHOWN,
        "P-values are adjusted for {count} comparisons by Holm's method; intervals are for individual rows.",
        "note",
    ),
    "bh": Claim(
        _SHOWN,
        "P-values are adjusted for {count} comparisons by the Benjamini-Hochberg method; intervals are not "
        "adjusted for multiple rows.",
        "note",
    ),
    "": Claim(_SHOWN, "P-values and intervals are not adjusted for the number of rows ({count}).", "caution"),
}
"""Text about several rows, by the adjustment of the table."""

HIGHEST = Claim(_SHOWN, "The {shown} highest of {count} estimates.", "note")
CLEAREST = Claim(_SHOWN, "The {shown} rows with the smallest p-values, of {count}.", "note")

_SENTENCE = "reports.first_screen.lead"
CAUTIONED = Claim(_SENTENCE, "{cautions}, below the picture", "caution")
NO_RESULT = Claim(_SENTENCE, "No result: {why}", "caution")
ROUNDS = Claim(_SENTENCE, "{rounds:,} rounds of {design}", "phrase")

_DATA = "reports.data_digest.sources_of"
NAMED = Claim(_DATA, "{name} (SHA-256 {digest})", "phrase")
ROWS = Claim(_DATA, "{name} (SHA-256 of the rows {digest})", "phrase")
SUMMED = Claim(_DATA, "sums by arm and batch (SHA-256 of their table {digest})", "phrase")

PRIVATE = Claim(
    "reports.writing.report",
    "Everything inside this frame is computed from protected data, and {promise}. Share it only with people "
    "authorised to see the data.",
    "caution",
)
PRIVATE_FILE = Claim(
    "reports.word_document.word_document",
    "This file contains results computed from protected data, and {promise}. Share it only with people "
    "authorised to see the data; report(log.public(), path) writes a version that may be published.",
    "caution",
)
PUBLISH = Claim(
    "reports.writing.report", "For a version that may be published, use report(log.public(), path).", "advice"
)
NO_PUBLIC = Claim("reports.writing.report", "Nothing from this trial may be published: {why}", "caution")
NEEDS_LOG_TO_PUBLISH = Claim(
    "reports.writing.report",
    "This report was created without the log. To obtain a version for publication, use report(log.public(), "
    "path).",
    "advice",
)
