"""Which estimator of arm means a log supports: defaults, and refusals that name the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.rules import MIXED, arm_verdicts, first_valid, score_refusal, ways_out
from adaptinf.inference.inputs.arguments import labels, text_problems
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "ESTIMATORS",
    "TESTS",
    "WEIGHTS",
    "Choice",
    "arm_codes",
    "choose",
    "decay_problems",
    "default_estimator",
    "refuse_by_context",
]

ESTIMATORS = ("sample-mean", "ipw", "aipw", "alee")
WEIGHTS = ("uniform", "sqrt", "two-point")
_WEIGHTLESS = {"sample-mean": "sample means take", "alee": "ALEE takes"}
TESTS = ("auto", "normal", "t", "exact")


@dataclass(frozen=True, slots=True)
class Choice:
    """A valid way to estimate arm means from a log."""

    estimator: str
    weights: str | None = None
    decay: float | None = None
    reason: str = field(default="", compare=False, repr=False)


def arm_codes(subject: str, log: AdaptiveLog, arms: Sequence[Any]) -> IntArray:
    """Codes of arm labels; returns (k,)."""
    named, problems = labels("arms", arms)
    if problems:
        raise ParameterError(subject, problems)
    known = ", ".join(map(repr, log.arms))
    problems = [f"there is no arm {arm!r}; the log has {known}" for arm in named if arm not in log.arms]
    if len(set(named)) < len(named):
        problems.append(f"an arm is named more than once: {', '.join(map(repr, named))}")
    if not named:
        problems.append(f"name at least one arm; the log has {known}")
    if problems:
        raise ParameterError(subject, problems)
    return np.array([log.arms.index(arm) for arm in named], dtype=np.int64)


def default_estimator(log: AdaptiveLog, arms: Sequence[Any] | None = None) -> Choice:
    """Estimator of arm means that `ArmMeans` and `Contrast` take where none is asked for."""
    codes = arm_codes("default_estimator", log, log.arms if arms is None else arms)
    first = first_valid(log, codes)
    if first is None:
        raise _by_context(log, "an estimator of arm means", codes)
    weights = first.arguments.get("weights")
    decay = profile_of(log).usable_decay if weights == "two-point" else None
    reason = f"{first.reason}. Caution: {first.warning}" if first.warning else first.reason
    return Choice(first.arguments["estimator"], weights, decay, reason)


def choose(
    subject: str,
    log: AdaptiveLog,
    codes: IntArray,
    estimator: str | None,
    weights: str | None,
    decay: float | None,
) -> Choice:
    """Complete and check what a user asked for; codes (k,)."""
    if estimator is None and (weights is not None or decay is not None):
        estimator = "aipw"
    _check_names(subject, estimator, weights, decay)
    if estimator is None:
        return default_estimator(log, [log.arms[code] for code in codes])
    if estimator in _WEIGHTLESS:
        refuse_by_context(log, codes, estimator)
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
            list(dict.fromkeys([f"{estimator} with uniform weights", *ways_out(log, codes)])),
        )
    if profile_of(log).decides_by_context:
        ways = dict.fromkeys([f"{estimator} with uniform weights", *ways_out(log, codes)])
        raise InvalidForLog(f"{estimator} with {weights} weights", MIXED, list(ways))
    if weights == "sqrt":
        return Choice(estimator, weights)
    return Choice(estimator, weights, _decay(subject, log, decay))


def refuse_by_context(log: AdaptiveLog, codes: IntArray, estimator: str) -> None:
    """Refuse estimators without propensities where contexts may have assigned the arms; codes (k,)."""
    if profile_of(log).context_refusal:
        raise _by_context(log, estimator, codes)


def _by_context(log: AdaptiveLog, estimator: str, codes: IntArray) -> InvalidForLog:
    reason = next(verdict.reason for verdict in arm_verdicts(log, codes) if verdict.name == "alee")
    return InvalidForLog(estimator, reason, ways_out(log, codes))


def _default_weights(log: AdaptiveLog) -> tuple[str, float | None]:
    if log.arrays.propensities is None or not profile_of(log).context_free:
        return "uniform", None
    decay = profile_of(log).usable_decay
    return ("sqrt", None) if decay is None else ("two-point", decay)


def _decay(subject: str, log: AdaptiveLog, decay: float | None) -> float:
    stated = profile_of(log).floor_decay if decay is None else decay
    if stated is None:
        problem = (
            "two-point weights need decay=, the exponent a of a propensity floor that falls like t^-a (fixed "
            "in advance, never fitted on the log); the log's design states none"
        )
        raise ParameterError(subject, [problem])
    return float(stated)


def _check_names(subject: str, estimator: str | None, weights: str | None, decay: object) -> None:
    problems = text_problems(estimator=estimator, weights=weights)
    if problems:
        raise ParameterError(subject, problems)
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
        problems += decay_problems(decay)
    if problems:
        raise ParameterError(subject, problems)


def decay_problems(decay: Any) -> list[str]:
    """What is wrong with the decay of a propensity floor."""
    if isinstance(decay, bool) or not isinstance(decay, Real) or not 0.0 <= float(decay) < 1.0:
        return [
            f"decay must be in [0, 1), got {decay!r:.60}: the exponent of the propensity floor, fixed before "
            "the data and never fitted on the log"
        ]
    return []


def _check_propensities(log: AdaptiveLog, codes: IntArray, estimator: str) -> None:
    reason = score_refusal(log, codes)
    if reason:
        more = [] if log.arrays.propensity is None else ["an analysis of the randomised rounds alone"]
        raise InvalidForLog(estimator, reason, [*ways_out(log, codes), *more])
