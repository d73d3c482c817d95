"""Every sentence that the library says of a log, one place each; `Claim` is what they are made of."""

from adaptinf.claims.claim import Claim, Part, Said, first, said
from adaptinf.claims.views import also_assumed, assumptions, sentence, under_table

__all__ = ["Claim", "Part", "Said", "also_assumed", "assumptions", "first", "said", "sentence", "under_table"]
