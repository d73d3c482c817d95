"""Text on the first screen of a report: which intervals are shown, for which rows and which data."""

from __future__ import annotations

from adaptinf.claims import tables
from adaptinf.claims.claim import Claim

_SHOWN = "reports.shown_numbers.Shown"
SINGLE = Claim(_SHOWN, "{level} confidence intervals", "phrase")
EACH = Claim(_SHOWN, "{level} confidence intervals for individual rows", "phrase")
AT_ONCE = Claim(_SHOWN, "simultaneous {level} confidence intervals for all {count} rows", "phrase")
CORRECTED = Claim(_SHOWN, "{level} confidence intervals, corrected for adaptive assignment", "phrase")
NAIVE = Claim(_SHOWN, "naive {level} intervals, invalid for adaptively collected data", "phrase")
SEQUENCE = Claim(_SHOWN, "{level} confidence sequences", "phrase")

COMPARISONS = Claim(_SHOWN, "{count} comparisons", "phrase")
MULTIPLICITY = {
    "max-t": Claim(
        _SHOWN, "P-values are adjusted for {terms}, and intervals are simultaneous (based on {law}).", "note"
    ),
    "holm": tables.ADJUSTED["holm"],
    "bh": tables.ADJUSTED["bh"],
    "": Claim(_SHOWN, "P-values and intervals are not adjusted for multiplicity ({terms}).", "caution"),
}
"""Text about several rows, by the adjustment of the table."""

HIGHEST = Claim(_SHOWN, "The {shown} highest of {count} estimates.", "note")
CLEAREST = Claim(_SHOWN, "The {shown} of {count} rows with the smallest p-values.", "note")

_SENTENCE = "reports.first_screen.lead"
CAUTIONED = Claim(_SENTENCE, "{cautions}, shown below the figure", "caution")
NO_RESULT = Claim(_SENTENCE, "No result: {why}", "caution")
ROUNDS = Claim(_SENTENCE, "{rounds:,} rounds of {design}", "phrase")

_DATA = "reports.data_digest.sources_of"
NAMED = Claim(_DATA, "{name} (SHA-256 {digest})", "phrase")
ROWS = Claim(_DATA, "{name} (SHA-256 of the rows {digest})", "phrase")
SUMMED = Claim(_DATA, "sums by arm and batch (SHA-256 of their table {digest})", "phrase")

AUTHORISED = Claim("reports.writing.report", "people authorised to see the data", "phrase")
PRIVATE = Claim(
    "reports.writing.report",
    "Everything inside this frame is computed from protected data, and {promise}. Share it only with "
    "{authorised}.",
    "caution",
    phrases={"authorised": AUTHORISED},
)
PUBLISH = Claim(
    "reports.writing.report", "For a version that may be published, use report(log.public(), path).", "advice"
)
PRIVATE_FILE = Claim(
    "reports.word_document.word_document",
    "The results in this file were computed from protected data, and {promise}. Show them only to "
    "{authorised}. {publish}",
    "caution",
    phrases={"authorised": AUTHORISED, "publish": PUBLISH},
)
NO_PUBLIC = Claim("reports.writing.report", "Nothing from this trial may be published: {why}", "caution")
NEEDS_LOG_TO_PUBLISH = Claim(
    "reports.writing.report",
    "This report was created without the log. {publish}",
    "advice",
    phrases={"publish": PUBLISH},
)
