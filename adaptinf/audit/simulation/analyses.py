"""What an analysis is given, what it may return, and why a trial has no interval."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from adaptinf.inference.distributions.shape import uncommon_outcomes
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.validity.rare import FEWEST, without_interval
from adaptinf.log import AdaptiveLog
from adaptinf.texts import literal

TEST = "test"
"""Term of a test, which has a p-value and nothing else."""
_STREAM = 0x46495453
_LONGEST = 100


@runtime_checkable
class Test(Protocol):
    """Anything with a p-value: a test of this library, of SciPy, or of your own."""

    @property
    def pvalue(self) -> float:
        """Small where the data speak against the hypothesis."""


Answer: TypeAlias = "Results | Test"
Fit: TypeAlias = "Callable[..., Answer | Mapping[str, Answer]]"


def is_test(answer: Any) -> bool:
    """Whether an analysis returned a test: a number named `pvalue`."""
    return not isinstance(answer, Results) and isinstance(getattr(answer, "pvalue", None), Real)


def takes_rng(fit: Any) -> bool:
    """Whether an analysis has a parameter `rng` that nobody has bound."""
    if isinstance(fit, functools.partial) and "rng" in fit.keywords:
        return False
    try:
        return "rng" in inspect.signature(fit).parameters
    except (TypeError, ValueError):
        return False


def seed_of_trial(root: np.random.SeedSequence, run: int) -> np.random.SeedSequence:
    """What the analyses of a trial draw from: no stream of the trial itself."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _STREAM, run))


def analysed(fit: Any, log: AdaptiveLog, seed: np.random.SeedSequence) -> Any:
    """What an analysis makes of a log; one with a parameter `rng` is given the trial's seed."""
    return fit(log, rng=seed) if takes_rng(fit) else fit(log)


def short(error: BaseException) -> str:
    """An error in one line."""
    text = literal(str(error))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def why_missing(estimand: Estimand, estimate: float, std_error: float, log: AdaptiveLog) -> str:
    """Why a term has no interval in a trial."""
    arms = [arm for arm in (estimand.arm, estimand.treatment, estimand.control) if arm in log.arms]
    codes = [log.arms.index(arm) for arm in arms]
    rounds = np.bincount(log.arrays.action, minlength=log.n_arms)[codes]
    for arm in (arm for arm, chosen in zip(arms, rounds, strict=True) if chosen == 0):
        return f"arm {arm} was never chosen"
    if not math.isfinite(estimate):
        return "no estimate"
    uncommon = uncommon_outcomes(log.arrays.action, log.arrays.reward, log.n_arms)[codes]
    if without_interval(uncommon).any():
        return f"fewer than {FEWEST} outcomes of an arm other than its commonest"
    return "the standard error is 0" if std_error == 0.0 else "an estimate without an interval"
