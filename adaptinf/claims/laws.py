"""Names of the distributions of estimates, as shown in tables."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

HALL = Claim(
    "inference.distributions.skewed.SkewedSumReference",
    "t with skewness correction (Hall's transformation and MOVER)",
    "phrase",
)
GAMMA = Claim(
    "inference.distributions.event_sums.EventSumReference",
    "gamma for sums of rare events (Fay and Feuer's limits and MOVER)",
    "phrase",
)
BY_BATCH = Claim(
    "inference.distributions.student_sums.BatchedReference.name",
    "average of independent t variables, one per batch",
    "phrase",
)
TRUNCATED = Claim(
    "inference.winners.winner_law.WinnerLaw", "truncated normal (conditional on selection)", "phrase"
)
LARGEST_T = Claim(
    "inference.results.multiplicity.at_once_note",
    "the distribution of the maximum t statistic",
    "phrase",
    short="maximum t",
)
BONFERRONI = Claim(
    "inference.results.multiplicity.at_once_note", "Bonferroni's method", "phrase", short="Bonferroni"
)
