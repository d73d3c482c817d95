"""Every sentence that the library states about a log, each defined once; `Claim` is the building block."""

from adaptinf.claims.claim import Claim, Finding, Part, Said, first, said
from adaptinf.claims.views import (
    also_assumed,
    assumptions,
    contradictions,
    of_terms,
    sentence,
    under_table,
    with_status,
)

__all__ = [
    "Claim",
    "Finding",
    "Part",
    "Said",
    "also_assumed",
    "assumptions",
    "contradictions",
    "first",
    "of_terms",
    "said",
    "sentence",
    "under_table",
    "with_status",
]
