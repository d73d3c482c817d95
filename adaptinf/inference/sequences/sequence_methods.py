"""The confidence sequences, with the inputs, requirements and bets of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from adaptinf.inference.sequences.mixtures import (
    BetaBinomialCounts,
    BetaBinomialSide,
    beta_size,
    gamma_side,
)
from adaptinf.inference.sequences.sequence_records import Looks, Scores, SequenceMethod, Settings
from adaptinf.inference.sequences.sides import (
    MixtureSide,
    Side,
    asymptotic_side,
    bernstein_side,
    betting_side,
    mixture_scale,
    running_variance,
)
from adaptinf.inference.sequences.widths import (
    bernstein_distance,
    beta_distance,
    betting_distance,
    gamma_distance,
)
from adaptinf.typing import FloatArray, IntArray


def _betting(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    lower, upper = _floors(scores)
    return betting_side(scores.lower, lower, settings.alpha), betting_side(
        scores.upper, upper, settings.alpha
    )


def _bernstein(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    lower, upper = _floors(scores)
    alpha = settings.alpha
    return bernstein_side(scores.lower, lower, alpha), bernstein_side(scores.upper, upper, alpha)


def _beta_binomial(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    size = beta_size(settings.t_opt, settings.alpha)
    own, mirrored = (np.ascontiguousarray(one, dtype=np.float64) for one in (scores.lower, scores.upper))
    return BetaBinomialSide(own, size), BetaBinomialSide(mirrored, size)


def _gamma_exponential(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    lower, upper = _floors(scores)
    tuning = settings.t_opt, settings.alpha
    return gamma_side(scores.lower, lower, *tuning), gamma_side(scores.upper, upper, *tuning)


def _mixture(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    each = _variances(scores, settings)
    first = each[0] if len(each) else 1.0
    scale = mixture_scale(first * settings.t_opt, settings.alpha)
    shared = np.cumsum(each), scale, settings.lowest
    return MixtureSide.of_scores(scores.lower, *shared), MixtureSide.of_scores(scores.upper, *shared)


def _batch_mixture(looks: Looks, settings: Settings) -> tuple[Side, Side]:
    each = 0.25 if settings.sigma is None else (settings.sigma / settings.width) ** 2
    scale = mixture_scale(each * settings.t_opt, settings.alpha)
    shared = looks.count, each * looks.count, scale, settings.lowest
    lower, upper = (MixtureSide(total, *shared) for total in _both(looks, settings))
    return lower, upper


def _batch_beta_binomial(looks: Looks, settings: Settings) -> tuple[Side, Side]:
    size = beta_size(settings.t_opt, settings.alpha)
    lower, upper = (BetaBinomialCounts(np.rint(total), looks.count, size) for total in _both(looks, settings))
    return lower, upper


def _batch_asymptotic(looks: Looks, settings: Settings) -> tuple[Side, Side]:
    tuning = looks.clock, settings.alpha, settings.t_opt, settings.start, settings.lowest
    lower, upper = (
        asymptotic_side(total, looks.count, looks.spread, *tuning) for total in _both(looks, settings)
    )
    return lower, upper


def _both(looks: Looks, settings: Settings) -> tuple[FloatArray, FloatArray]:
    """Sums of the scores and of their mirror images, shapes (n,)."""
    return looks.total, (looks.count if settings.bounded else 0.0) - looks.total


def _asymptotic(scores: Scores, clock: IntArray, settings: Settings) -> tuple[Side, Side]:
    count = np.arange(1.0, len(scores.lower) + 1.0)
    tuning = clock, settings.alpha, settings.t_opt, settings.start, settings.lowest
    lower, upper = (
        asymptotic_side(np.cumsum(score), count, running_variance(score), *tuning)
        for score in (scores.lower, scores.upper)
    )
    return lower, upper


def _variances(scores: Scores, settings: Settings) -> FloatArray:
    if settings.sigma is not None:
        return np.full(len(scores.lower), (settings.sigma / settings.width) ** 2)
    lower, upper = _floors(scores)
    return np.asarray(0.25 * (1.0 - lower - upper) ** 2, dtype=np.float64)


def _floors(scores: Scores) -> tuple[FloatArray, FloatArray]:
    assert scores.lower_floor is not None
    assert scores.upper_floor is not None
    return scores.lower_floor, scores.upper_floor


_RECORDS = (
    SequenceMethod(
        "betting",
        "betting",
        _betting,
        lambda estimator: estimator == "aipw",
        bets=True,
        distance=betting_distance,
        offered=True,
    ),
    SequenceMethod(
        "empirical-bernstein",
        "empirical Bernstein",
        _bernstein,
        lambda estimator: estimator == "aipw",
        bets=True,
        distance=bernstein_distance,
    ),
    SequenceMethod(
        "beta-binomial",
        "beta-binomial mixture",
        _beta_binomial,
        lambda estimator: False,
        options=("t_opt",),
        two_valued=True,
        distance=beta_distance,
        batch_sides=_batch_beta_binomial,
    ),
    SequenceMethod(
        "gamma-exponential",
        "gamma-exponential mixture",
        _gamma_exponential,
        lambda estimator: estimator == "aipw",
        options=("t_opt",),
        bets=True,
        distance=gamma_distance,
    ),
    SequenceMethod(
        "normal-mixture",
        "normal mixture",
        _mixture,
        lambda estimator: True,
        options=("sigma", "t_opt"),
        batch_sides=_batch_mixture,
    ),
    SequenceMethod(
        "asymptotic",
        "asymptotic",
        _asymptotic,
        lambda estimator: False,
        options=("t_opt", "start"),
        anytime=False,
        offered=True,
        batch_sides=_batch_asymptotic,
    ),
)
METHODS: Mapping[str, SequenceMethod] = MappingProxyType({one.name: one for one in _RECORDS})
"""Sequences by name; `recommend` orders sequences by expected width."""
