"""A result that combines two others, with missing rewards set to their lowest and highest values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adaptinf.claims.data.missing_rewards import ENDS, LEADS
from adaptinf.inference.distributions.references import EndsReference
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.tables import format_number

_ORDER = ("exact", "anytime", "asymptotic", "not valid")


def both_ends(low: Results, high: Results, lead: str, missing: str) -> Results:
    """Results with intervals from the lower limit at the lowest extreme to the upper limit at the highest.

    `lead` determines which estimates are reported: those at the ``"worst"`` or the ``"best"`` values or, for
    ``"bounds"``, their mean. `missing` is a statement on the missing rewards.
    """
    first = high if lead == "best" else low
    if lead == "bounds":
        middle = 0.5 * (low.estimate + high.estimate)
        first = replace(low, estimate=middle, std_error=np.full(len(middle), np.nan))
    reference = EndsReference(
        low.estimate, high.estimate, low.std_error, high.std_error, low.reference, high.reference
    )
    ends = "; ".join(
        f"{term}: {format_number(a).strip()} to {format_number(b).strip()}"
        for term, a, b in zip(first.terms, low.estimate, high.estimate, strict=True)
    )
    told = ENDS(missing=missing, ends=ends, lead=LEADS[lead]())
    counts = first.facts.counts
    # Rewards that were filled in are not observed events, so no counts are shown.
    facts = first.facts if counts is None else replace(first.facts, counts=replace(counts, events=None))
    return replace(
        first,
        facts=facts,
        reference=reference,
        covariance=None,
        validity=max(low.validity, high.validity, key=_ORDER.index),
        details={**first.details, "lowest": low.estimate, "highest": high.estimate},
        notes=(told, *dict.fromkeys((*first.notes,))),
        cautions=tuple(dict.fromkeys((*low.cautions, *high.cautions))),
        efficiency_note="",
        private=bool(np.all([low.private, high.private])),
        contrast_of=None,
    )
