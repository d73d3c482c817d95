"""Whether outcomes are too rare, or rewards too skewed, for intervals, judged by counts and moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.claims import rare_outcomes
from adaptinf.inference.distributions.references import Reference, StudentReference
from adaptinf.inference.distributions.sample_shape import PartShapes
from adaptinf.inference.distributions.skewed import SkewedSumReference
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray

FEWEST = 5
"""Number of outcomes other than the most common below which an arm has no interval."""
CAUTIOUS = 20
"""Number of such outcomes below which an interval carries a caution."""
SKEWED = 0.01
"""Squared skewness of an estimate from which its interval is corrected for skewness."""
STRONGLY_SKEWED = 0.5
"""Squared skewness above which a corrected interval carries a caution."""
TOO_SKEWED = 0.05
"""Squared skewness above which an uncorrected interval carries a caution."""
_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class PartsLaw:
    """The distribution of k estimates, and statements about it; std_error (k,), covariance (k, k)."""

    reference: Reference
    std_error: FloatArray
    covariance: FloatArray
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @classmethod
    def student(
        cls, estimate: FloatArray, std_error: FloatArray, covariance: FloatArray, df: FloatArray
    ) -> PartsLaw:
        """Student's t, with nothing to state; estimate, std_error, df (k,), covariance (k, k).

        Without a standard error, there is no covariance.
        """
        unknown = np.where(np.isfinite(std_error), 0.0, np.nan)
        law = StudentReference(estimate, std_error, df)
        return cls(law, std_error, covariance + unknown[:, None] + unknown[None, :])


def law_of_parts(
    terms: Sequence[str],
    parts: PartShapes,
    estimate: FloatArray,
    std_error: FloatArray,
    covariance: FloatArray,
    df: FloatArray,
) -> PartsLaw:
    """Student's t or, for skewed rewards, MOVER over the parts; none if outcomes in a part are too rare.

    Shapes: estimate, std_error, df (k,), covariance (k, k).
    """
    uncommon = np.where(std_error > 0.0, parts.uncommon, np.inf)
    hidden = np.where(without_interval(uncommon), np.nan, 0.0)
    std_error, covariance = std_error + hidden, covariance + hidden[:, None] + hidden[None, :]
    notes, cautions = tuple(rare_notes(terms, uncommon)), rare_cautions(terms, uncommon, parts.expected)
    if not np.any(parts.expected > SKEWED):
        return PartsLaw(StudentReference(estimate, std_error, df), std_error, covariance, notes, cautions)
    # Parts without rounds have variance 0, which the skewed distribution does not allow, so a negligible one
    # replaces it; a NaN error still gives no interval.
    error = np.maximum(parts.error, 1e-9 * std_error[:, None])
    corrected = SkewedSumReference(estimate, error, parts.skewness, df)
    return PartsLaw(corrected, std_error, covariance, (rare_outcomes.CORRECTED(), *notes), cautions)


def without_interval(uncommon: FloatArray) -> BoolArray:
    """Terms with too few outcomes other than the most common; uncommon (...,), infinite if none is common."""
    return np.asarray(uncommon < FEWEST)


def rare_notes(terms: Sequence[str], uncommon: FloatArray) -> list[str]:
    """Why terms have no interval; uncommon has shape (k,)."""
    few = _named(terms, uncommon, without_interval(uncommon))
    if not few:
        return []
    return [rare_outcomes.NO_INTERVAL(terms=few, fewest=FEWEST)]


def rare_cautions(
    terms: Sequence[str], uncommon: FloatArray, skewness: FloatArray, *, corrected: bool = True
) -> tuple[str, ...]:
    """Why terms' intervals may be too short; uncommon, skewness (k,), that of the estimates, squared."""
    cautions = []
    few = _named(terms, uncommon, ~without_interval(uncommon) & (uncommon < CAUTIOUS))
    if few:
        cautions.append(rare_outcomes.FEW_OUTCOMES(terms=few, enough=CAUTIOUS))
    most = STRONGLY_SKEWED if corrected else TOO_SKEWED
    strong = [term for term, one in zip(terms, skewness > most, strict=True) if one]
    if strong:
        claim = rare_outcomes.SKEWED_THOUGH_CORRECTED if corrected else rare_outcomes.SKEWED_UNCORRECTED
        cautions.append(claim(terms=several(strong, _SHOWN)))
    return tuple(cautions)


def _named(terms: Sequence[str], numbers: FloatArray, flags: BoolArray) -> str:
    """Terms with their numbers, such as "a (3), b (7)"; numbers, flags (k,)."""
    flagged = zip(terms, numbers, flags, strict=True)
    return several([f"{term} ({number:g})" for term, number, flag in flagged if flag], _SHOWN)
