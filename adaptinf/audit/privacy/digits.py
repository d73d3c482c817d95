"""What the low-order bits of released floats give away."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.audit.privacy.lower_bound import Found, LearnedScore
from adaptinf.typing import FloatArray

_NO_BIT = 1_024.0
"""For zero: above every exponent of a float."""
_SHIFT, _STEP, _MISSING = 1_100, 4_096, 0.5
_INFINITE = 1e9
"""Above the code of every float."""


def lowest_bit(values: Any) -> FloatArray:
    """Exponent of the lowest set bit of each float: the value is an odd multiple of two to this power.

    A sum of a float and noise is rounded to the spacing of floats near the larger of the two. Noise added to
    1 that ends near 0 is a multiple of 2^-53, noise added to 0 that ends there almost never is: an onlooker
    who sees all digits tells the two apart without error.

    Mironov, I. (2012). On significance of the least significant bits for differential privacy. CCS.
    """
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    _, place = np.frexp((whole & -whole).astype(np.float64))
    return np.where(whole == 0, _NO_BIT, exponent - 54.0 + place)


def bit_codes(values: Any) -> FloatArray:
    """Sign, power of two below, and lowest set bit of each float of a run, as one number.

    Shapes: values (runs, ...); returns (runs, floats).
    """
    rows = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    known = np.where(np.isfinite(rows), rows, 0.0)
    _, exponent = np.frexp(known)
    codes = np.sign(known) * ((exponent + _SHIFT) * float(_STEP) + lowest_bit(known) + _SHIFT)
    codes = np.where(np.isinf(rows), np.copysign(_INFINITE, rows), codes)
    return np.where(np.isnan(rows), _MISSING, codes)


def digits_event(found: Found, learned: LearnedScore, subject: str) -> str:
    """The event in words, of one released number or of several."""
    if len(learned.values) > 1:
        return learned.event(found, f"the sizes and lowest set bits of {subject}")
    codes = learned.members(found)
    more = f", or one of {codes.size - 1} other such kinds" if codes.size > 1 else ""
    return f"{subject} is {_kind(float(codes[0]))}{more}"


def _kind(code: float) -> str:
    """What is known of a float with this code."""
    if code in (0.0, _MISSING):
        return "zero" if code == 0.0 else "missing"
    if abs(code) == _INFINITE:
        return "plus infinity" if code > 0.0 else "minus infinity"
    exponent, lowest = divmod(int(abs(code)), _STEP)
    side = "above 0" if code > 0.0 else "below 0"
    return (
        f"{side}, of size 2^{exponent - _SHIFT - 1} to 2^{exponent - _SHIFT}, with lowest set bit "
        f"2^{lowest - _SHIFT}"
    )
