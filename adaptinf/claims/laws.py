"""Names of the laws of estimates, as tables give them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

HALL = Claim(
    "inference.distributions.skewed.SkewedSumReference", "t, corrected for skewness (Hall, MOVER)", "note"
)
BY_BATCH = Claim(
    "inference.distributions.student_sums.BatchedReference.name",
    "average of Student's t over batches",
    "note",
)
TRUNCATED = Claim("inference.winners.law.WinnerLaw", "normal, conditional on the selection", "note")
LARGEST_T = Claim(
    "inference.results.multiplicity.at_once_note",
    "the distribution of the maximum t statistic",
    "note",
)
