"""What is so of some terms of a table: those without a number, and those that little data carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.claims import Said
from adaptinf.claims.effects import by_group as claims
from adaptinf.inference.released.group_effects import Reason
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, TINY_PROPENSITY
from adaptinf.texts import several
from adaptinf.typing import FloatArray

_SHOWN, _FEW = 8, 3


def some(terms: Sequence[str]) -> str:
    """The first terms, and how many more there are."""
    return several(terms, _SHOWN, "; ")


def by_reason(terms: Sequence[str], reasons: Sequence[Reason | None]) -> list[Said]:
    """Each reason once, with the terms of which it holds; terms (G,), reasons (G,)."""
    found: dict[Any, tuple[Reason, list[str]]] = {}
    for term, reason in zip(terms, reasons, strict=True):
        if reason is not None:
            claim, values = reason
            found.setdefault((claim, *values.items()), (reason, []))[1].append(term)
    return [claim(terms=some(named), **values) for (claim, values), named in found.values()]


def gap_notes(terms: Sequence[str], counts: FloatArray, std_error: FloatArray) -> list[Said]:
    """Why groups have no estimate or no standard error; counts (G, 2), std_error (G,)."""
    reasons = [
        _gap(control, treatment, error) for (control, treatment), error in zip(counts, std_error, strict=True)
    ]
    notes = by_reason(terms, reasons)
    many = sum(reason is not None for reason in reasons) > _FEW
    return [*notes, claims.SMALL_GROUPS()] if many else notes


def _gap(control: float, treatment: float, std_error: float) -> Reason | None:
    fewer = min(control, treatment)
    if fewer < 1:
        return (claims.NEITHER_ARM if control == treatment else claims.ONE_ARM_MISSING), {}
    if np.isnan(std_error):
        return (claims.SINGLE_REWARD if fewer < 2 else claims.NO_VARIATION), {}
    return None


def few_effective(terms: Sequence[str], df: FloatArray, std_error: FloatArray) -> dict[str, Any]:
    """Terms whose standard error rests on fewer than 20 rounds' worth of rewards; df, std_error (k,)."""
    found = [
        term
        for term, freedom, size in zip(terms, df, std_error, strict=True)
        if freedom + 1.0 < FEW_EFFECTIVE and size > 0.0
    ]
    if not found:
        return {}
    least = float(np.min(df[std_error > 0.0])) + 1.0
    return {"terms": some(found), "least": least, "enough": FEW_EFFECTIVE}


def tiny_propensities(terms: Sequence[str], lowest: FloatArray, ess: FloatArray) -> list[dict[str, Any]]:
    """Terms whose estimate divides by a tiny propensity; lowest, ess (k,)."""
    return [
        {"term": term, "least": low, "size": size}
        for term, low, size in zip(terms, lowest, ess, strict=True)
        if low < TINY_PROPENSITY
    ]
