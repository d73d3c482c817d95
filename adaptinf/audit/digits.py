"""What the low-order bits of released floats give away."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.audit.lower_bound import Found
from adaptinf.typing import FloatArray

__all__ = ["digits_event", "finest_bit", "lowest_bit"]

_NO_BIT = 1_024.0
"""For zero: above every exponent of a float."""


def lowest_bit(values: Any) -> FloatArray:
    """Exponent of the lowest set bit of each float: the value is an odd multiple of two to this power.

    Parameters
    ----------
    values : array_like of float
        Finite numbers of any shape.

    Returns
    -------
    ndarray of float, of the shape of `values`
        Whole numbers from -1074 to 1023; 1024 for a zero.

    Notes
    -----
    A sum of a float and noise is rounded to the spacing of floats near the larger of the two. Noise added to
    1 that ends near 0 is a multiple of 2^-53, noise added to 0 that ends there almost never is: an onlooker
    who sees all digits tells the two apart without error.

    References
    ----------
    Mironov, I. (2012). On significance of the least significant bits for differential privacy. CCS.

    Examples
    --------
    >>> lowest_bit([1.0, 0.75, 6.0])
    array([ 0., -2.,  1.])
    """
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    _, place = np.frexp((whole & -whole).astype(np.float64))
    return np.where(whole == 0, _NO_BIT, exponent - 54.0 + place)


def finest_bit(values: Any) -> FloatArray:
    """Smallest `lowest_bit` of the floats of each run, shape (runs,); NaN is no float of a run."""
    rows = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    missing = np.isnan(rows)
    return np.asarray(np.where(missing, _NO_BIT, lowest_bit(np.where(missing, 0.0, rows))).min(axis=1))


def digits_event(found: Found, subject: str, several: bool = False) -> str:
    """The event in words, of one released number or of any of several."""
    if found.cut >= _NO_BIT:
        return f"{subject} {'are' if several else 'is'} {'zero' if found.upper else 'anything'}"
    if several:
        words = "none has a set bit below" if found.upper else "one has a set bit at or below"
        return f"of {subject} {words} 2^{found.cut:.0f}"
    words = "no set bit below" if found.upper else "a set bit at or below"
    return f"{subject} has {words} 2^{found.cut:.0f}"
