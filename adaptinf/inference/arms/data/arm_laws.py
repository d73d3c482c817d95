"""Distributions of arm means and their differences, and how rare outcomes and skewness affect intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import rare_outcomes
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.question import CountedArms
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.event_sums import EventSums
from adaptinf.inference.distributions.references import BinomialReference, Reference, recoded
from adaptinf.inference.distributions.sample_shape import combined_skewness
from adaptinf.inference.distributions.skewed import SkewedReference, skewed_difference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS, DifferenceReference, agresti_caffo
from adaptinf.inference.scores.means import effective_events
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.rare import (
    RARE,
    SHOWN,
    are_sums,
    rare_cautions,
    rare_notes,
    tail_errors,
    without_interval,
)
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import ArmFit, Question

_LITTLE = 0.1
"""Smallest share of a difference's squared skewness for which an arm is named as a cause of it."""


def mean_reference(question: Question, fit: ArmFit, kind: str) -> Reference:
    """Distribution of the means: corrected for skewness, or exact."""
    if kind == "hall":
        return SkewedReference(fit.estimate, fit.std_error, _skewness(question, fit), fit.degrees)
    low, high = fit.values
    return recoded(BinomialReference(fit.successes, fit.pulls), low, high - low)


def difference_reference(
    question: Question, fit: ArmFit, kind: str, difference: float, df: float
) -> Reference:
    """Distribution of the first mean minus the second, corrected for skewness or two-valued rewards."""
    if kind == "hall":
        return _mover_reference(question, fit, difference, df)
    step = fit.values[1] - fit.values[0]
    if kind == "exact":
        means = fit.successes / np.maximum(fit.pulls, 1.0)
        law = BoundedDifferenceReference(means[:1], fit.pulls[:1], means[1:], fit.pulls[1:])
        return recoded(law, 0.0, step)
    counts = (fit.pulls[:1], fit.successes[:1], fit.pulls[1:], fit.successes[1:])
    return DifferenceReference(agresti_caffo(*counts, step))


def with_counts(
    question: Question, fit: ArmFit, events: Callable[[Question, ArmFit], EventSums | None]
) -> ArmFit:
    """The fit, with distributions of sums of events for arms with few events, if they can be computed."""
    own, pooled = question.profile.uncommon[question.codes], question.profile.rare_rate
    rate = np.where(np.isfinite(own), own, 0.5) / np.maximum(fit.pulls, 1.0)
    least = np.minimum(rate, pooled or 0.5)
    worth = np.where(np.isfinite(own), effective_events(fit.ess, least), np.inf)
    few = (fit.pulls > 1.0) & (((worth < FEW_EVENTS) & (least <= RARE)) | without_interval(own))
    few &= (own > 0.0) | (question.profile.two_values is not None)
    sums = events(question, fit) if few.any() and fit.kept is None else None
    if sums is None:
        return fit
    size = np.array([fit.difference(0, 1)[1]]) if question.contrast else fit.std_error
    serves = are_sums(sums, np.nan_to_num(size))
    few = few & (serves if len(serves) == len(few) else serves.all())
    counted = CountedArms(sums.enlarged(size), few, np.minimum(worth, own))
    return replace(fit, counted=counted) if few.any() else fit


def without_rare(question: Question, fit: ArmFit) -> ArmFit:
    """The fit, without standard errors for arms whose outcomes are too rare for them."""
    rare = without_interval(_uncommon(question, fit))
    if fit.counted is not None:
        rare |= fit.counted.few & without_interval(question.profile.uncommon[question.codes])
    hidden = np.where(rare, np.nan, 0.0)
    sample = None if fit.sample is None else replace(fit.sample, std_error=fit.sample.std_error + hidden)
    return replace(fit, covariance=fit.covariance + hidden[:, None] + hidden[None, :], sample=sample)


def shape_notes(question: Question, fit: ArmFit, kind: str) -> list[str]:
    """Notes on why some arms have no interval, and whether intervals are corrected."""
    alone = _by_moments(question, fit)
    notes: list[str] = [rare_outcomes.CORRECTED()] if kind == "hall" and alone.any() else []
    notes += rare_notes(fit.labels, np.where(alone, _uncommon(question, fit), np.inf))
    if fit.counted is not None:
        few = np.flatnonzero(fit.counted.few).tolist()
        worth = several([f"{fit.labels[j]} ({fit.counted.worth[j]:.1f})" for j in few], SHOWN)
        notes.append(rare_outcomes.COUNTED(terms=worth, enough=FEW_EVENTS))
    return notes


def shape_cautions(question: Question, fit: ArmFit, kind: str) -> list[str]:
    """Cautions about intervals that may be too short because of the distribution of an arm's rewards."""
    alone = _by_moments(question, fit)
    uncommon = np.where(alone, _uncommon(question, fit), np.inf)
    skewness = np.where(alone, expected_skewness(question, fit), 0.0)
    tails = _tails(question, fit, skewness) if kind == "hall" else None
    found = list(rare_cautions(fit.labels, uncommon, skewness, tails))
    share = uncommon / np.maximum(fit.pulls, 1.0)
    with np.errstate(invalid="ignore"):
        events = np.where(np.isfinite(share), effective_events(fit.ess, share), np.inf)
    few = (fit.pulls > 0) & (events < FEW_EVENTS) & ~without_interval(uncommon)
    arms = [f"{fit.labels[j]} ({events[j]:.1f})" for j in np.flatnonzero(few)]
    if arms:
        found.append(rare_outcomes.FEW_EVENTS(arms=", ".join(arms), fewest=FEW_EVENTS))
    return found


def unvarying(question: Question, fit: ArmFit, test: str) -> list[str]:
    """Cautions about arms whose rewards are constant, so that no standard error can be estimated."""
    unknown = (fit.std_error == 0.0) & _by_moments(question, fit)
    arms = [arm for arm, one in zip(fit.labels, unknown, strict=True) if one]
    if test not in ("exact", "few"):
        return [rare_outcomes.UNVARYING(arm=arm) for arm in arms]
    return [rare_outcomes.UNVARYING_COUNTS(arm=arm) for arm in arms if question.contrast]


def _by_moments(question: Question, fit: ArmFit) -> BoolArray:
    """Arms whose intervals are not based on counted events, shape (k,); none if a contrast's interval is."""
    if fit.counted is None:
        return np.ones(len(fit.labels), dtype=bool)
    return np.zeros(len(fit.labels), dtype=bool) if question.contrast else ~fit.counted.few


def expected_skewness(question: Question, fit: ArmFit) -> FloatArray:
    """Squared skewness of the arms' estimates, computed from that of the pooled rewards; shape (k,).

    Suppose that rewards have variance s^2 and third central moment c. Apart from the error of m, the second
    and third central moments of the numerator of sum h (m + 1{A = k} (y - m) / e) / sum h are sum h^2 s^2 / e
    and sum h^3 c / e^2, over all rounds. The squared skewness is therefore c^2 / s^6 times (sum h^3 / e^2)^2
    / (sum h^2 / e)^3. The sums of h^3 / e^3 and h^2 / e^2 over the rounds in which the arm was chosen are
    unbiased estimates of these sums, and require only the chosen arm's propensity. An arm's own rewards are
    not used: if their skewness is small by chance, their variance tends to be small as well.
    """
    return np.asarray(compared(question).squared_skewness * fit.evenness_lost, dtype=np.float64)


def _tails(question: Question, fit: ArmFit, skewness: FloatArray) -> FloatArray:
    """Tail errors of corrected intervals, shape (k,); for a contrast, 0 for arms that do not cause them."""
    doubt = compared(question).skewness_doubt
    if not question.contrast:
        return tail_errors(skewness, doubt)
    variance = fit.std_error**2
    both = combined_skewness(skewness[None], variance[None])
    own = skewness * variance**3 / max(float(variance.sum()) ** 3, 1e-300)
    return np.where(own > _LITTLE * both, tail_errors(both, doubt), 0.0)


def _mover_reference(question: Question, fit: ArmFit, difference: float, df: float) -> Reference:
    """Distribution of the first arm's mean minus the second arm's mean, by MOVER."""
    size = fit.std_error if fit.sample is None else fit.sample.std_error
    spread = size[0] * size[1]
    correlation = fit.covariance[0, 1] / spread if spread > 0.0 else 0.0
    return skewed_difference(
        np.array([difference]),
        size[None, ::-1],
        _skewness(question, fit)[None, ::-1],
        np.array([df]),
        np.array([correlation]),
    )


def _uncommon(question: Question, fit: ArmFit) -> FloatArray:
    """Number of uncommon outcomes of each arm, or inf if it has no standard error; shape (k,)."""
    return np.where(fit.std_error > 0.0, question.profile.uncommon[question.codes], np.inf)


def _skewness(question: Question, fit: ArmFit) -> FloatArray:
    """Skewness of the arms' estimates, from the rounds' contributions to their errors; shape (k,)."""
    if question.profile.repeated_units:
        raise InvalidForLog(
            "Hall's interval", "it requires independent rounds, but units have several rounds", ["test='t'"]
        )
    if math.isnan(compared(question).squared_skewness):
        raise InvalidForLog(
            "Hall's interval",
            "the sums do not contain the skewness of the rewards: sum_cubes= is required",
            ["test='t'"],
        )
    if fit.skewness is not None:
        return np.nan_to_num(fit.skewness)
    return question.profile.own_skewness(question.codes)
