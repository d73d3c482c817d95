"""Which confidence sequence a log supports: checks that come before any number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.choice import choose
from adaptinf.inference.sequences.bounded_scores import Weights
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import check_alpha, choice_problem, count_problem, number_problem
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["ESTIMATORS", "METHODS", "Quantity", "Settings", "settle"]

METHODS = ("betting", "empirical-bernstein", "normal-mixture", "asymptotic")
ESTIMATORS = ("sample-mean", "ipw", "aipw")
_T_OPT, _START = 1000, 100
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One quantity: its arms, for sequences of their own rewards, and its weights, for scores."""

    codes: tuple[int, ...]
    weights: Weights


@dataclass(frozen=True, slots=True)
class Settings:
    """A sequence that the log supports."""

    method: str
    estimator: str
    alpha: float
    sigma: float | None
    floor: float | None
    t_opt: float
    start: int
    low: float
    width: float
    bounded: bool


def settle(
    log: AdaptiveLog,
    quantities: tuple[Quantity, ...],
    method: str,
    alpha: float,
    estimator: str | None,
    sigma: float | None,
    floor: float | None,
    t_opt: int | None,
    start: int | None,
) -> Settings:
    """Check what was asked for against the log."""
    asked = (method, alpha, estimator, sigma, floor, t_opt, start)
    try:
        return _settled(log, quantities, *asked)
    except InvalidForLog as error:
        ways = _ways(log, quantities, method, float(alpha), error)
        raise InvalidForLog(error.method, error.reason, ways) from None


def _ways(
    log: AdaptiveLog, quantities: tuple[Quantity, ...], method: str, alpha: float, error: InvalidForLog
) -> list[str]:
    """What an error offers: changes to the log or the call, and the sequences that do run."""
    scale = "method='normal-mixture' on sample means with sigma=, a scale of their noise that is known"
    ways = [way for way in error.alternatives if way != scale]
    if scale in error.alternatives and _runs(log, quantities, "normal-mixture", alpha, "sample-mean", 1.0):
        ways.append(scale)
    runs = {
        (one, scores): _runs(log, quantities, one, alpha, scores)
        for one in dict.fromkeys((method, "betting", "asymptotic"))
        for scores in ESTIMATORS
    }
    same = [f"estimator={scores!r}" for (one, scores), fine in runs.items() if fine and one == method]
    others = [
        f"method={one!r}, estimator={scores!r}"
        for (one, scores), fine in runs.items()
        if fine and one != method
    ]
    return [*ways, *same, *others[:3]]


def _runs(
    log: AdaptiveLog,
    quantities: tuple[Quantity, ...],
    method: str,
    alpha: float,
    estimator: str,
    sigma: float | None = None,
) -> bool:
    try:
        _settled(log, quantities, method, alpha, estimator, sigma, None, None, None)
    except (InvalidForLog, ParameterError):
        return False
    return True


def _settled(
    log: AdaptiveLog,
    quantities: tuple[Quantity, ...],
    method: str,
    alpha: float,
    estimator: str | None,
    sigma: float | None,
    floor: float | None,
    t_opt: int | None,
    start: int | None,
) -> Settings:
    policy = not quantities[0].codes
    _check_arguments(method, alpha, estimator, sigma, floor, t_opt, start, policy)
    chosen = _estimator(log, quantities, estimator, policy)
    if sigma is not None and chosen != "sample-mean":
        problem = f"sigma describes rewards, and the scores of {chosen} have another scale: leave it out"
        if estimator is None and _runs(log, quantities, method, alpha, "sample-mean", sigma):
            problem += ", or ask for estimator='sample-mean' if contexts had no part in the choice"
        raise ParameterError("ConfidenceSequence.fit", [problem])
    if chosen != "sample-mean":
        for quantity in quantities:
            _check_propensities(log, quantity, method, chosen, floor)
    low, high = _range(log, method, chosen, sigma)
    bounded = math.isfinite(high)
    return Settings(
        method=method,
        estimator=chosen,
        alpha=float(alpha),
        sigma=sigma,
        floor=floor,
        t_opt=float(_T_OPT if t_opt is None else t_opt),
        start=_START if start is None else int(start),
        low=low if bounded else 0.0,
        width=high - low if bounded else 1.0,
        bounded=bounded,
    )


def _check_arguments(
    method: Any, alpha: Any, estimator: Any, sigma: Any, floor: Any, t_opt: Any, start: Any, policy: bool
) -> None:
    problems = choice_problem("method", method, METHODS)
    if estimator is not None:
        problems += choice_problem("estimator", estimator, ESTIMATORS)
    if policy and estimator == "sample-mean":
        problems.append("a policy's value needs scores: estimator must be ipw or aipw, got 'sample-mean'")
    if sigma is not None:
        problems += number_problem("sigma", sigma, 0.0, open_low=True)
        if method in METHODS and method != "normal-mixture":
            problems.append(f"sigma belongs to the normal mixture, not to {method}")
    if floor is not None:
        problems += number_problem("floor", floor, 0.0, 1.0, open_low=True)
        if estimator == "sample-mean":
            problems.append("floor bounds propensities, and sample means use none: leave it out")
    if t_opt is not None:
        problems += count_problem("t_opt", t_opt)
        if method in ("betting", "empirical-bernstein"):
            problems.append(f"t_opt belongs to mixtures and the asymptotic sequence, not to {method}")
    if start is not None:
        problems += count_problem("start", start, 2)
        if method in METHODS and method != "asymptotic":
            problems.append(f"start belongs to the asymptotic sequence, not to {method}")
    try:
        check_alpha("ConfidenceSequence.fit", alpha)
    except ParameterError as error:
        problems += error.problems
    if problems:
        raise ParameterError("ConfidenceSequence.fit", problems)


def _estimator(
    log: AdaptiveLog, quantities: tuple[Quantity, ...], estimator: str | None, policy: bool
) -> str:
    if policy:
        return estimator or "ipw"
    if estimator in ("ipw", "aipw"):
        return estimator
    codes = np.array(sorted({code for q in quantities for code in q.codes}), dtype=np.int64)
    try:
        choose("ConfidenceSequence.fit", log, codes, "sample-mean", None, None)
    except InvalidForLog as error:
        if estimator is None and log.arrays.propensity is not None:
            return "ipw"
        raise InvalidForLog(error.method, error.reason, [profile_of(log).in_place_of_means]) from None
    if estimator is None and not profile_of(log).context_free and _serve(log, quantities):
        return "ipw"
    return "sample-mean"


def _serve(log: AdaptiveLog, quantities: tuple[Quantity, ...]) -> bool:
    """Whether the propensities are the design's own and positive."""
    try:
        for quantity in quantities:
            _check_scores(log, quantity.weights, "ipw scores")
    except InvalidForLog:
        return False
    return True


def _range(log: AdaptiveLog, method: str, estimator: str, sigma: float | None) -> tuple[float, float]:
    unbounded = method == "asymptotic" or sigma is not None
    if log.reward_range is None or not np.all(np.isfinite(log.reward_range)):
        if unbounded:
            return 0.0, math.inf
        raise InvalidForLog(
            f"the {method} sequence",
            "it needs rewards with known bounds, and the log has no finite reward_range",
            [
                "AdaptiveLog(..., reward_range=) where the bounds hold by the nature of the rewards",
                "method='normal-mixture' on sample means with sigma=, a scale of their noise that is known",
            ],
        )
    low, high = log.reward_range
    outside = (log.arrays.reward < low) | (log.arrays.reward > high)
    if not np.any(outside):
        return float(low), float(high)
    raise InvalidForLog(
        f"the {method} sequence",
        f"{int(outside.sum())} rewards lie outside the log's reward_range ({low:g}, {high:g})",
        ["a log whose reward_range holds", "a log without one, and method='asymptotic'"],
    )


def _check_propensities(
    log: AdaptiveLog, quantity: Quantity, method: str, estimator: str, floor: float | None
) -> None:
    subject = f"the {method} sequence on {estimator} scores"
    _check_scores(log, quantity.weights, subject)
    needs_floor = method == "normal-mixture" or (method != "asymptotic" and estimator == "aipw")
    if needs_floor and floor is None:
        _check_predictable(log, quantity.weights, subject)
    if floor is not None:
        _check_floor(log, quantity.weights, floor)


def _check_scores(log: AdaptiveLog, weights: Weights, subject: str) -> None:
    if log.arrays.propensity is None:
        raise InvalidForLog(subject, "the log has no propensities", [])
    if log.propensity_status == "estimated":
        reason = "its propensities are estimates, and the scores need the design's own"
        raise InvalidForLog(subject, reason, [])
    _check_positive(log, weights, subject)


def _check_positive(log: AdaptiveLog, weights: Weights, subject: str) -> None:
    arrays = log.arrays
    used = weights.arms != 0.0
    if arrays.propensities is not None:
        impossible = used & (arrays.propensities <= 0.0)
    else:
        assert arrays.propensity is not None
        others = arrays.action[:, None] != np.arange(log.n_arms)[None, :]
        impossible = used & others & (arrays.propensity >= 1.0)[:, None]
    if np.any(impossible):
        rounds = np.flatnonzero(impossible.any(axis=1))
        arm = log.arms[int(np.argmax(impossible[rounds[0]]))]
        where = f"in {len(rounds)} of {log.n_rounds} rounds"
        reason = f"it weights arm {arm!r} where that could not be chosen, {where}"
        raise InvalidForLog(subject, reason, [])


def _check_predictable(log: AdaptiveLog, weights: Weights, subject: str) -> None:
    ways = ["floor=, a smallest propensity that the design guaranteed in advance"]
    if log.arrays.propensities is None:
        reason = "its scores' bounds need every arm's propensity, and the log has the chosen arm's alone"
        raise InvalidForLog(subject, reason, ways)
    if log.context:
        reason = "its scores' bounds must be known before the context is, and propensities may depend on it"
        raise InvalidForLog(subject, reason, ways)
    if weights.by_context and np.any(log.arrays.propensities <= 0.0):
        reason = "for a policy that changes from round to round every arm needs a positive propensity"
        raise InvalidForLog(subject, reason, [])


def _check_floor(log: AdaptiveLog, weights: Weights, floor: float) -> None:
    arrays = log.arrays
    assert arrays.propensity is not None
    used: IntArray = np.flatnonzero(weights.by_context | np.any(weights.arms != 0.0, axis=0))
    if arrays.propensities is not None:
        lowest = arrays.propensities[:, used].min(axis=1)
    else:
        lowest = np.where(np.isin(arrays.action, used), arrays.propensity, 1.0)
    smallest = float(lowest.min(initial=1.0))
    if smallest < floor * (1.0 - _TOLERANCE):
        problem = f"floor must hold in every round, got {floor:g} where the log has a propensity {smallest:g}"
        raise ParameterError("ConfidenceSequence.fit", [problem])
    at = np.flatnonzero(lowest == floor)
    if len(at) == 1 and at[0] < log.n_rounds - 1:
        problem = (
            f"floor = {floor:g} is the smallest propensity of this log, reached once in the middle: a floor "
            "that was fitted on the log bounds nothing. Give the one that the design guaranteed before the "
            "data (if it is this number, give one a little below)"
        )
        raise ParameterError("ConfidenceSequence.fit", [problem])
