"""Checks of counts and moments for outcomes that are too rare, or too skewed, for intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.claims import rare_outcomes
from adaptinf.inference.distributions.event_sums import EventSumReference, EventSums
from adaptinf.inference.distributions.references import Reference, StudentReference, joined
from adaptinf.inference.distributions.sample_shape import PartShapes
from adaptinf.inference.distributions.skewed import SkewedReference, SkewedSumReference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray

FEWEST = 5
"""An arm has no interval if it has fewer outcomes other than the most common one."""
RARE = 0.1
"""For means of arms, uncommon outcomes are counted only if their share is at most this value."""
CAUTIOUS = 20
"""A caution is given for an interval if there are fewer outcomes other than the most common one."""
SKEWED = 0.01
"""An interval is corrected for skewness if the squared skewness of the estimate is at least this value."""
STRONGLY_SKEWED = 0.5
"""A caution is given for a corrected interval if the squared skewness is above this value."""
MISSED = 0.0125
"""A caution is given for a corrected interval if the predicted error of a 2.5% tail is above this value."""
_TAIL = 0.08458
"""Error of a 2.5% tail of a studentised mean with skewness 1: (2 z^2 + 1) phi(z) / 6 (Hall 1992)."""
TOO_SKEWED = 0.05
"""A caution is given for an uncorrected interval if the squared skewness is above this value."""
_POOR = 2.0
"""Factor by which the squared standard error of a sum of events may exceed the variance of the events."""
SHOWN = 8
"""Largest number of terms that a sentence lists."""


@dataclass(frozen=True, slots=True, eq=False)
class PartsLaw:
    """The distribution of k estimates, with statements about it; std_error (k,), covariance (k, k)."""

    reference: Reference
    std_error: FloatArray
    covariance: FloatArray
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    counted: BoolArray | None = None
    """Whether the distribution of each estimate is that of a sum of events; None if this holds for none."""

    @classmethod
    def student(
        cls, estimate: FloatArray, std_error: FloatArray, covariance: FloatArray, df: FloatArray
    ) -> PartsLaw:
        """Student's t without any statement; estimate, std_error, df (k,), covariance (k, k).

        If an estimate has no standard error, its covariances are NaN.
        """
        unknown = np.where(np.isfinite(std_error), 0.0, np.nan)
        law = StudentReference(estimate, std_error, df)
        return cls(law, std_error, covariance + unknown[:, None] + unknown[None, :])


@dataclass(frozen=True, slots=True, eq=False)
class FewEvents:
    """The events that k estimates are based on, and their effective numbers; worth (k,)."""

    sums: EventSums
    worth: FloatArray

    def counted(self, std_error: FloatArray, uncommon: FloatArray) -> BoolArray:
        """Whether each estimate is a sum of few events; std_error, uncommon (k,)."""
        few = (self.worth < FEW_EVENTS) | without_interval(uncommon)
        return few & are_sums(self.sums, std_error)


def are_sums(sums: EventSums, std_error: FloatArray) -> BoolArray:
    """Whether estimates vary little except for their events; std_error (k,).

    If an outcome model does not predict the common reward, it can add more to the variance than the events
    do.
    """
    variance = (sums.variance + sums.largest**2).sum(axis=1)
    return np.asarray(std_error**2 <= _POOR * variance)


def law_of_parts(
    terms: Sequence[str],
    parts: PartShapes,
    estimate: FloatArray,
    std_error: FloatArray,
    covariance: FloatArray,
    df: FloatArray,
    doubt: float,
    events: FewEvents | None = None,
) -> PartsLaw:
    """Student's t or, for skewed rewards, MOVER over the parts; none if outcomes in a part are too rare.

    Shapes: estimate, std_error, df (k,), covariance (k, k). `doubt` is the relative error of the skewness of
    rewards. An estimate with few `events` has the distribution of a sum of events.
    """
    counted = (
        np.zeros(len(terms), dtype=bool) if events is None else events.counted(std_error, parts.uncommon)
    )
    uncommon = np.where((std_error > 0.0) & ~counted, parts.uncommon, np.inf)
    hidden = np.where(without_interval(uncommon), np.nan, 0.0)
    std_error, covariance = std_error + hidden, covariance + hidden[:, None] + hidden[None, :]
    expected = np.where(counted, 0.0, parts.expected)
    tails = tail_errors(np.where(counted, 0.0, parts.combined), doubt)
    notes, cautions = tuple(rare_notes(terms, uncommon)), rare_cautions(terms, uncommon, expected, tails)
    law: StudentReference | SkewedSumReference = StudentReference(estimate, std_error, df)
    if np.any(expected > SKEWED):
        notes = (rare_outcomes.CORRECTED(), *notes)
        law = _skewed(parts, estimate, std_error, df)
    if events is None or not counted.any():
        return PartsLaw(law, std_error, covariance, notes, cautions)
    least = np.minimum(events.worth, parts.uncommon)
    worth = several([f"{terms[j]} ({least[j]:.1f})" for j in np.flatnonzero(counted).tolist()], SHOWN)
    sums = events.sums.enlarged(std_error)
    notes = (*notes, rare_outcomes.COUNTED(terms=worth, enough=FEW_EVENTS))
    both = with_events(law, estimate, sums, counted, std_error)
    return PartsLaw(both, std_error, covariance, notes, cautions, counted)


def _skewed(
    parts: PartShapes, estimate: FloatArray, std_error: FloatArray, df: FloatArray
) -> SkewedSumReference:
    """The distribution by MOVER over the parts; estimate, std_error, df (k,).

    Parts without rounds have variance 0, which the skewed distribution does not allow, so it is replaced with
    a negligible variance. An estimate with a NaN error still has no interval.
    """
    error = np.maximum(parts.error, 1e-9 * std_error[:, None])
    return SkewedSumReference(estimate, error, parts.skewness, df)


def with_events(
    law: Reference, estimate: FloatArray, sums: EventSums, counted: BoolArray, size: FloatArray
) -> Reference:
    """The distribution of sums of events for counted estimates, and the given distribution for the others.

    Shapes: estimate, counted, size (k,), where `size` contains the standard errors.
    """
    if counted.all():
        return EventSumReference(estimate, sums)
    one = [slice(j, j + 1) for j in range(len(counted))]
    parts: list[Reference] = [
        EventSumReference(estimate[j], sums.of(j)) if counted[j].item() else _only(law, j) for j in one
    ]
    return joined(parts, estimate, size)


def _only(law: Reference, rows: slice) -> Reference:
    """The distribution of the estimates in these rows."""
    if isinstance(law, StudentReference):
        return StudentReference(law.estimate[rows], law.std_error[rows], law.df[rows])
    assert isinstance(law, (SkewedReference, SkewedSumReference))
    return type(law)(law.estimate[rows], law.std_error[rows], law.skewness[rows], law.df[rows])


def without_interval(uncommon: FloatArray) -> BoolArray:
    """Whether terms have too few uncommon outcomes; uncommon (...,), infinite if no outcome is common."""
    return np.asarray(uncommon < FEWEST)


def rare_notes(terms: Sequence[str], uncommon: FloatArray) -> list[str]:
    """Notes on why terms have no interval; uncommon has shape (k,)."""
    few = _named(terms, uncommon, without_interval(uncommon))
    if not few:
        return []
    return [rare_outcomes.NO_INTERVAL(terms=few, fewest=FEWEST)]


def tail_errors(combined: FloatArray, doubt: float) -> FloatArray:
    """Errors in the tail probabilities of 95% intervals after the correction; combined (k,); returns (k,).

    `combined` is the result of `combined_skewness`, and `doubt` is the relative error of the skewness of
    rewards. Their product is the error of the skewness of an estimate.
    """
    return _TAIL * doubt * np.sqrt(combined)


def rare_cautions(
    terms: Sequence[str], uncommon: FloatArray, skewness: FloatArray, tails: FloatArray | None = None
) -> tuple[str, ...]:
    """Cautions that intervals of terms may be too short.

    Shapes: uncommon, skewness, tails (k,). `skewness` is the squared skewness of the estimates. `tails` is
    the result of `tail_errors`, or None if intervals are not corrected for skewness.
    """
    cautions = []
    few = _named(terms, uncommon, ~without_interval(uncommon) & (uncommon < CAUTIOUS))
    if few:
        cautions.append(rare_outcomes.FEW_OUTCOMES(terms=few, enough=CAUTIOUS))
    found = skewness > TOO_SKEWED if tails is None else (skewness > STRONGLY_SKEWED) | (tails > MISSED)
    strong = [term for term, one in zip(terms, found, strict=True) if one]
    if strong:
        corrected = tails is not None
        claim = rare_outcomes.SKEWED_THOUGH_CORRECTED if corrected else rare_outcomes.SKEWED_UNCORRECTED
        cautions.append(claim(terms=several(strong, SHOWN)))
    return tuple(cautions)


def _named(terms: Sequence[str], numbers: FloatArray, flags: BoolArray) -> str:
    """Terms with their numbers, such as "a (3), b (7)"; numbers, flags (k,)."""
    flagged = zip(terms, numbers, flags, strict=True)
    return several([f"{term} ({number:g})" for term, number, flag in flagged if flag], SHOWN)
