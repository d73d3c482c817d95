"""Which estimator of arm means a log supports: defaults, and refusals that name the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.maxinfo import correction_for
from adaptinf.inference.streams import impossible_rounds
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "ESTIMATORS",
    "TESTS",
    "WEIGHTS",
    "Choice",
    "arm_codes",
    "choose",
    "default_estimator",
    "floor_decay",
    "is_adaptive",
    "is_binary",
]

ESTIMATORS = ("sample-mean", "ipw", "aipw", "alee")
WEIGHTS = ("uniform", "sqrt", "two-point")
_WEIGHTLESS = {"sample-mean": "sample means take", "alee": "ALEE takes"}
TESTS = ("auto", "normal", "t", "exact")

_BY_FINITE_CONTEXT = frozenset({"ConSE", "DPConSE"})
_BY_CONTEXT_VECTOR = frozenset({"LinPriv", "LinUCB"})


@dataclass(frozen=True, slots=True)
class Choice:
    """A valid way to estimate arm means from a log.

    Attributes
    ----------
    estimator : {"sample-mean", "ipw", "aipw", "alee", "batched"}
        Estimator; ``"batched"`` is for contrasts alone.
    weights : {"uniform", "sqrt", "two-point"} or None
        Weights of the scores of IPW and AIPW.
    decay : float or None
        Decay of the propensity floor, for two-point weights.
    """

    estimator: str
    weights: str | None = None
    decay: float | None = None


def arm_codes(subject: str, log: AdaptiveLog, arms: Sequence[Any]) -> IntArray:
    """Codes of arm labels.

    Parameters
    ----------
    subject : str
        What was called.
    log : AdaptiveLog
        The log.
    arms : sequence of labels
        Arms of the log.

    Returns
    -------
    ndarray of int64, shape (k,)
        Positions in ``log.arms``.

    Raises
    ------
    ParameterError
        If a label is unknown or repeated, or there is none.
    """
    known = ", ".join(map(repr, log.arms))
    problems = [f"there is no arm {arm!r}; the log has {known}" for arm in arms if arm not in log.arms]
    if len(set(arms)) < len(arms):
        problems.append(f"an arm is named more than once: {', '.join(map(repr, arms))}")
    if not arms:
        problems.append(f"name at least one arm; the log has {known}")
    if problems:
        raise ParameterError(subject, problems)
    return np.array([log.arms.index(arm) for arm in arms], dtype=np.int64)


def floor_decay(log: AdaptiveLog) -> float | None:
    """Decay of the design's propensity floor scale * t^-decay.

    Parameters
    ----------
    log : AdaptiveLog
        The log.

    Returns
    -------
    float or None
        None where the log's design does not state a floor.
    """
    floor = None if log.design is None else log.design.parameters.get("floor")
    if not isinstance(floor, (tuple, list, np.ndarray)) or len(floor) != 2:
        return None
    return float(floor[1])


def is_adaptive(log: AdaptiveLog) -> bool:
    """Whether rewards may have changed later actions: unless the log says that none could.

    Parameters
    ----------
    log : AdaptiveLog
        The log.
    """
    uniform = log.design is not None and log.design.name == "Uniform"
    return not uniform and log.adaptive_rounds != 0


def is_binary(reward: FloatArray) -> bool:
    """Whether all rewards are 0 or 1.

    Parameters
    ----------
    reward : ndarray, shape (T,)
        Rewards.
    """
    return bool(np.all((reward == 0.0) | (reward == 1.0)))


def default_estimator(log: AdaptiveLog, arms: Sequence[Any] | None = None) -> Choice:
    """Estimator of arm means that `ArmMeans` and `Contrast` take where none is asked for.

    Parameters
    ----------
    log : AdaptiveLog
        The log.
    arms : sequence of labels, optional
        The arms of interest, by default all.

    Returns
    -------
    Choice
        With every arm's propensity known and positive, AIPW with two-point weights where the design states
        how its propensity floor decays, else with sqrt weights; with the chosen arm's propensity alone, AIPW
        with uniform weights; otherwise sample means.

    Raises
    ------
    ParameterError
        If an arm is unknown or repeated.

    Examples
    --------
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> action, reward, propensity = np.array([0, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.2])
    >>> arrays = LogArrays(action=action, reward=reward, propensity=propensity)
    >>> default_estimator(AdaptiveLog.from_arrays(arrays, arms=("a", "b")))
    Choice(estimator='aipw', weights='uniform', decay=None)
    """
    codes = arm_codes("default_estimator", log, log.arms if arms is None else arms)
    if log.arrays.propensity is None or np.any(_impossible(log, codes)):
        return Choice("sample-mean")
    return Choice("aipw", *_default_weights(log))


def choose(
    subject: str,
    log: AdaptiveLog,
    codes: IntArray,
    estimator: str | None,
    weights: str | None,
    decay: float | None,
) -> Choice:
    """Complete and check what a user asked for.

    Parameters
    ----------
    subject : str
        What was called.
    log : AdaptiveLog
        The log.
    codes : ndarray of int64, shape (k,)
        The arms of interest.
    estimator, weights : str, optional
        Members of `ESTIMATORS` and `WEIGHTS`.
    decay : float, optional
        Decay of the propensity floor, for two-point weights.

    Returns
    -------
    Choice
        A valid one.

    Raises
    ------
    ParameterError
        If the names or their combination make no sense.
    InvalidForLog
        If the log does not support them.
    """
    if estimator is None and (weights is not None or decay is not None):
        estimator = "aipw"
    _check_names(subject, estimator, weights, decay)
    if estimator is None:
        chosen = default_estimator(log, [log.arms[code] for code in codes])
        if chosen.estimator == "sample-mean":
            _check_not_by_context(log)
        return chosen
    if estimator in _WEIGHTLESS:
        _check_not_by_context(log, estimator)
        return Choice(estimator)
    _check_propensities(log, codes, estimator)
    if decay is not None:
        weights = "two-point"
    if weights is None:
        return Choice(estimator, *_default_weights(log))
    if weights == "uniform":
        return Choice(estimator, weights)
    if log.arrays.propensities is None:
        raise InvalidForLog(
            f"{estimator} with {weights} weights",
            "they need every arm's propensity at every round, and the log has the chosen arm's alone",
            [f"{estimator} with uniform weights", _sample_mean_here(log)],
        )
    if weights == "sqrt":
        return Choice(estimator, weights)
    return Choice(estimator, weights, _decay(subject, log, decay))


def _default_weights(log: AdaptiveLog) -> tuple[str, float | None]:
    if log.arrays.propensities is None:
        return "uniform", None
    decay = floor_decay(log)
    if decay is not None and 0.0 <= decay < 1.0:
        return "two-point", decay
    return "sqrt", None


def _decay(subject: str, log: AdaptiveLog, decay: float | None) -> float:
    stated = floor_decay(log) if decay is None else decay
    if stated is None:
        problem = (
            "two-point weights need decay=, the exponent a of a propensity floor that falls like t^-a (fixed "
            "in advance, never fitted on the log); the log's design states none"
        )
        raise ParameterError(subject, [problem])
    return float(stated)


def _check_names(subject: str, estimator: str | None, weights: str | None, decay: object) -> None:
    problems = []
    if estimator == "batched":
        problems.append("estimator 'batched' is for contrasts: use Contrast(log, treatment=, control=)")
    elif estimator is not None and estimator not in ESTIMATORS:
        problems.append(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    if weights is not None and weights not in WEIGHTS:
        problems.append(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r}")
    if estimator in _WEIGHTLESS and (weights is not None or decay is not None):
        problems.append(
            f"{_WEIGHTLESS[estimator]} no weights: leave weights and decay out, or ask for ipw or aipw"
        )
    if decay is not None:
        if weights in ("uniform", "sqrt"):
            problems.append(f"decay belongs to two-point weights, not to {weights}")
        if isinstance(decay, bool) or not isinstance(decay, Real) or not 0.0 <= float(decay) < 1.0:
            problems.append(f"decay must be in [0, 1), got {decay!r}")
    if problems:
        raise ParameterError(subject, problems)


def _check_not_by_context(log: AdaptiveLog, estimator: str = "sample-mean") -> None:
    if _assigns_by_context(log):
        raise InvalidForLog(
            estimator,
            f"{' over '.join(_designs(log))} assigns arms by context, so that the arms' rounds are different "
            "mixes of contexts, whose means cannot be compared",
            [_by_context(log)],
        )


def _designs(log: AdaptiveLog) -> tuple[str, ...]:
    """Name of the log's design, and of the one that a mixture wraps."""
    if log.design is None:
        return ()
    inner = log.design.parameters.get("design")
    return (log.design.name,) if inner is None else (log.design.name, str(inner))


def _assigns_by_context(log: AdaptiveLog) -> bool:
    return not (_BY_FINITE_CONTEXT | _BY_CONTEXT_VECTOR).isdisjoint(_designs(log))


def _by_context(log: AdaptiveLog) -> str:
    if not _BY_CONTEXT_VECTOR.isdisjoint(_designs(log)):
        return "a regression of an arm's rewards on its own context vectors"
    return f"CATE by {', '.join(log.context) or 'the context'}"


def _check_propensities(log: AdaptiveLog, codes: IntArray, estimator: str) -> None:
    if log.arrays.propensity is None:
        raise InvalidForLog(
            estimator,
            "it needs propensities, and the log has none (give propensity= or propensities= if known)",
            [_sample_mean_here(log)],
        )
    impossible = _impossible(log, codes)
    if np.any(impossible):
        worst = int(np.argmax(impossible))
        raise InvalidForLog(
            estimator,
            f"arm {log.arms[codes[worst]]!r} has propensity 0 in {int(impossible[worst])} of {log.n_rounds} "
            "rounds, where it could not have been chosen: there is nothing to weight",
            [_sample_mean_here(log), "an analysis of the randomised rounds alone"],
        )


def _sample_mean_here(log: AdaptiveLog) -> str:
    """What sample means are worth for this log."""
    if _assigns_by_context(log):
        return _by_context(log)
    if not is_adaptive(log):
        return "sample-mean"
    if correction_for(log) is not None:
        return "sample-mean with its corrected columns"
    return "sample-mean as a naive baseline, not valid under adaptivity"


def _impossible(log: AdaptiveLog, codes: IntArray) -> IntArray:
    """Number of rounds in which each arm could not be chosen, as far as the log tells; shape (k,)."""
    arrays = log.arrays
    if arrays.propensities is not None:
        return impossible_rounds(arrays.propensities, codes)
    if arrays.propensity is None:
        return np.zeros(len(codes), dtype=np.int64)
    sure = np.bincount(arrays.action[arrays.propensity >= 1.0], minlength=log.n_arms)
    return np.asarray(sure.sum() - sure[codes], dtype=np.int64)
