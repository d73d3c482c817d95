"""Every sentence that the library says of a log, one place each; `Claim` is what they are made of."""

from adaptinf.claims.claim import Claim, Finding, Part, Said, first, said
from adaptinf.claims.views import (
    also_assumed,
    assumptions,
    contradictions,
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
    "said",
    "sentence",
    "under_table",
    "with_status",
]
