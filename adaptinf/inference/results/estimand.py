"""What the terms of a result estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.claims import tables
from adaptinf.inference.distributions.base import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.distributions.student_sums import BatchedReference
from adaptinf.inference.distributions.two_samples import DifferenceReference
from adaptinf.texts import several
from adaptinf.typing import FloatArray

LONGEST = 1e6
"""Length, in spreads of the rewards, from which an interval says nothing."""
_OF_REWARDS = ("arm-mean", "contrast", "received-contrast", "cate", "interaction", "bin-mean")
_RELATIVE = ("lift", "ratio-lift")
_NOT_LONG = (NormalReference, StudentReference, BinomialReference, BatchedReference, DifferenceReference)
_WIDE = 1e3
"""Spreads from which a standard error may give an interval that is too long; from 1 df on none is else."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Estimand:
    """What one term of a result estimates.

    Attributes
    ----------
    kind : str
        ``"arm-mean"``, ``"contrast"``, ``"lift"``, ``"ratio"``, ``"ratio-contrast"``, ``"ratio-lift"``,
        ``"cate"``, ``"interaction"``, ``"projection"``, ``"policy-value"``, ``"policy-contrast"``,
        ``"bin-mean"`` or ``"coefficient"``: mean reward of an arm; difference of two arms, or the ratio of
        their means less 1; the same of a ratio metric, an arm's mean reward over its mean of a denominator;
        that difference within a group, the difference of two groups in it, or a coefficient of its projection
        on covariates; value of a policy, or difference of two; mean of an arm over a bin of the contexts;
        coefficient of a regression of rewards, of one arm's where there is an arm.
    arm, treatment, control, group : label or None
        The arm of a mean, the arms of a difference (treatment minus control) and its group; for policies,
        their names; the group of a bin is its ranges, ((low, high), ...).
    term : str or None
        Name of a coefficient.
    denominator : str or None
        Name of what a ratio metric divides by.
    """

    kind: str
    arm: Any = None
    treatment: Any = None
    control: Any = None
    group: Any = None
    term: str | None = None
    denominator: str | None = None


def meaningful(
    limits: FloatArray, estimands: Sequence[Estimand], spread: float, std_error: FloatArray
) -> FloatArray:
    """Limits with NaN for intervals that are too long to say anything; infinite ends stay.

    Shapes: limits (k, 2), std_error (k,); returns (k, 2).

    Lengths are in spreads of the rewards, which are of one scale with means, differences and values; relative
    effects are in units of the control's mean, and whatever has a scale of its own in standard errors.
    """
    scale = _scales(estimands, spread, std_error)
    with np.errstate(invalid="ignore", over="ignore"):
        length = limits[:, 1] - limits[:, 0]
        long = np.isfinite(limits).all(axis=1) & (scale > 0.0) & (length > LONGEST * scale)
    return np.where(long[:, None], np.nan, limits)


def may_lack_meaning(
    reference: Reference, estimands: Sequence[Estimand], spread: float, std_error: FloatArray
) -> bool:
    """Whether an interval may be so long, to be asked before one is computed; std_error (k,)."""
    if any(one.kind in _RELATIVE for one in estimands) or not isinstance(reference, _NOT_LONG):
        return True
    if isinstance(reference, StudentReference) and (reference.df < 1.0).any():
        return True
    with np.errstate(invalid="ignore"):
        return bool((std_error > _WIDE * _scales(estimands, spread, std_error)).any())


def without_meaning(
    limits: FloatArray,
    terms: Sequence[str],
    estimands: Sequence[Estimand],
    spread: float,
    std_error: FloatArray,
) -> tuple[str, ...]:
    """Why terms have no interval where theirs says nothing; shapes as in `meaningful`."""
    with np.errstate(invalid="ignore"):
        left = meaningful(limits, estimands, spread, std_error)
    lacking = np.isnan(left[:, 0]) & ~np.isnan(limits[:, 0])
    if not lacking.any():
        return ()
    names = several([str(term) for term, one in zip(terms, lacking, strict=True) if one], _SHOWN)
    scale = scale_of(estimands[int(np.argmax(lacking))].kind, spread)
    return (tables.TOO_LONG(terms=names, longest=int(LONGEST), scale=scale),)


def _scales(estimands: Sequence[Estimand], spread: float, std_error: FloatArray) -> FloatArray:
    """What lengths are compared with, by term; (k,)."""
    scale = np.array([_scale(one.kind, spread) for one in estimands])
    return np.where(np.isnan(scale), std_error, scale)


def _scale(kind: str, spread: float) -> float:
    if kind in _RELATIVE:
        return 1.0
    return spread if kind in _OF_REWARDS or kind.startswith("policy-") else np.nan


def scale_of(kind: str, spread: float) -> str:
    """What the lengths of intervals are compared with."""
    if kind in _RELATIVE:
        return tables.OF_CONTROL()
    return tables.OF_ERROR() if np.isnan(_scale(kind, spread)) else tables.OF_REWARDS()
