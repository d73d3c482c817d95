"""Whether outcomes are too rare, or rewards too skewed, for intervals, judged by counts and moments."""

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
"""Number of outcomes other than the most common below which an arm has no interval."""
RARE = 0.1
"""Share of outcomes other than the most common up to which few of them are counted for means of arms."""
CAUTIOUS = 20
"""Number of such outcomes below which an interval carries a caution."""
SKEWED = 0.01
"""Squared skewness of an estimate from which its interval is corrected for skewness."""
STRONGLY_SKEWED = 0.5
"""Squared skewness above which a corrected interval carries a caution."""
MISSED = 0.0125
"""Predicted error of a 2.5% tail above which a corrected interval carries a caution."""
_TAIL = 0.08458
"""Error of a 2.5% tail of a studentised mean for a skewness of 1: (2 z^2 + 1) phi(z) / 6 (Hall 1992)."""
TOO_SKEWED = 0.05
"""Squared skewness above which an uncorrected interval carries a caution."""
_POOR = 2.0
"""Factor by which the squared standard error of a sum of events may exceed their variance."""
SHOWN = 8
"""Number of terms that a sentence lists."""


@dataclass(frozen=True, slots=True, eq=False)
class PartsLaw:
    """The distribution of k estimates, and statements about it; std_error (k,), covariance (k, k)."""

    reference: Reference
    std_error: FloatArray
    covariance: FloatArray
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    counted: BoolArray | None = None
    """Estimates whose distribution is that of a sum of events; None if there is none."""

    @classmethod
    def student(
        cls, estimate: FloatArray, std_error: FloatArray, covariance: FloatArray, df: FloatArray
    ) -> PartsLaw:
        """Student's t, without any statement; estimate, std_error, df (k,), covariance (k, k).

        Without a standard error, there is no covariance.
        """
        unknown = np.where(np.isfinite(std_error), 0.0, np.nan)
        law = StudentReference(estimate, std_error, df)
        return cls(law, std_error, covariance + unknown[:, None] + unknown[None, :])


@dataclass(frozen=True, slots=True, eq=False)
class FewEvents:
    """Events behind k estimates, and their effective numbers; worth (k,)."""

    sums: EventSums
    worth: FloatArray

    def counted(self, std_error: FloatArray, uncommon: FloatArray) -> BoolArray:
        """Estimates that are sums of events, and have few of them; std_error, uncommon (k,)."""
        few = (self.worth < FEW_EVENTS) | without_interval(uncommon)
        return few & are_sums(self.sums, std_error)


def are_sums(sums: EventSums, std_error: FloatArray) -> BoolArray:
    """Whether estimates vary little except for their events; std_error (k,).

    An outcome model that misses the common reward adds more to the variance than the events do, and than one
    more event would.
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

    Shapes: estimate, std_error, df (k,), covariance (k, k).

    `doubt` is the relative error of the rewards' skewness. An estimate with few `events` has the distribution
    of their sum.
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
    """MOVER over the parts; estimate, std_error, df (k,).

    Parts without rounds have variance 0, which the skewed distribution does not allow, so a negligible one
    replaces it; a NaN error still gives no interval.
    """
    error = np.maximum(parts.error, 1e-9 * std_error[:, None])
    return SkewedSumReference(estimate, error, parts.skewness, df)


def with_events(
    law: Reference, estimate: FloatArray, sums: EventSums, counted: BoolArray, size: FloatArray
) -> Reference:
    """The distribution of sums of events where estimates are counted, and the given one elsewhere.

    Shapes: estimate, counted, size (k,), the last the standard errors.
    """
    if counted.all():
        return EventSumReference(estimate, sums)
    one = [slice(j, j + 1) for j in range(len(counted))]
    parts: list[Reference] = [
        EventSumReference(estimate[j], sums.of(j)) if counted[j].item() else _only(law, j) for j in one
    ]
    return joined(parts, estimate, size)


def _only(law: Reference, rows: slice) -> Reference:
    """The distribution of one estimate."""
    if isinstance(law, StudentReference):
        return StudentReference(law.estimate[rows], law.std_error[rows], law.df[rows])
    assert isinstance(law, (SkewedReference, SkewedSumReference))
    return type(law)(law.estimate[rows], law.std_error[rows], law.skewness[rows], law.df[rows])


def without_interval(uncommon: FloatArray) -> BoolArray:
    """Terms with too few outcomes other than the most common; uncommon (...,), infinite if none is common."""
    return np.asarray(uncommon < FEWEST)


def rare_notes(terms: Sequence[str], uncommon: FloatArray) -> list[str]:
    """Why terms have no interval; uncommon has shape (k,)."""
    few = _named(terms, uncommon, without_interval(uncommon))
    if not few:
        return []
    return [rare_outcomes.NO_INTERVAL(terms=few, fewest=FEWEST)]


def tail_errors(combined: FloatArray, doubt: float) -> FloatArray:
    """Errors of the tails of 95% intervals that remain after the correction; combined (k,); returns (k,).

    `combined` is from `combined_skewness`, and `doubt` the relative error of the rewards' skewness, so that
    their product is the error of an estimate's skewness.
    """
    return _TAIL * doubt * np.sqrt(combined)


def rare_cautions(
    terms: Sequence[str], uncommon: FloatArray, skewness: FloatArray, tails: FloatArray | None = None
) -> tuple[str, ...]:
    """Why terms' intervals may be too short.

    Shapes: uncommon, skewness (k,), the latter that of the estimates, squared; tails (k,), by `tail_errors`,
    None if intervals are not corrected for skewness.
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
