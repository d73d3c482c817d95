"""Analyses of simulated trials: what they are given and may return, and the value that they are after."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.validity.rare import FEWEST, without_interval
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.simulation.environments import Environment
from adaptinf.texts import absent, listed, literal

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


_RATIOS = {"ratio": "arm-mean", "ratio-contrast": "contrast", "ratio-lift": "lift"}
_KINDS = ("arm-mean", "contrast", "lift", "cate", "bin-mean", *_RATIOS)


def largest_difference(env: Environment) -> float | None:
    """Largest difference between the mean rewards of two arms in a context; None where it is not known."""
    if env.dimension:
        return None
    largest = float((env.means.max(axis=1) - env.means.min(axis=1)).max())
    return largest if np.isfinite(largest) else None


def true_value(estimand: Estimand, env: Environment) -> float:
    """The value of an estimand in an environment.

    Parameters
    ----------
    estimand : Estimand
        Mean of an arm, contrast of two arms, lift of one over the other, the same of a ratio metric, effect
        within a group, or mean of an arm over a bin.
    env : Environment
        Where the truth is known.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If the environment has no such arm or group, no averages over bins, no true mean of a denominator, or
        the estimand is of another kind.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.BernoulliArms([0.25, 0.75])
    >>> log = ai.designs.Uniform().run(env, horizon=100, rng=0)
    >>> result = ai.Contrast(log, treatment=1, control=0).fit()
    >>> ai.audit.true_value(result.estimands[0], env)
    0.5
    """
    if estimand.kind not in _KINDS:
        problem = f"the truth of a {estimand.kind!r} does not follow from an environment: give it by truth="
        raise ParameterError("true_value", [problem])
    kind = _RATIOS.get(estimand.kind, estimand.kind)
    of_arm = kind in ("arm-mean", "bin-mean")
    labels = [estimand.arm] if of_arm else [estimand.treatment, estimand.control]
    unknown = [
        absent("arm", label, env.arms, "the environment has") for label in labels if label not in env.arms
    ]
    if estimand.kind == "cate" and estimand.group not in env.features:
        unknown.append(f"the environment has no context {estimand.group!r}")
    averages = getattr(env, "averages", None) if getattr(env, "rows", None) is None else None
    if estimand.kind == "bin-mean" and averages is None:
        unknown.append("the environment has no averages over bins: SmoothArms has, with uniform contexts")
    if estimand.kind in _RATIOS and estimand.denominator not in env.outcome_means:
        known = listed(env.outcome_means)
        unknown.append(
            f"the environment has no true mean of {estimand.denominator}, the denominator, but of {known}: a "
            "FunctionEnvironment has those of outcome_means=, by the names of its outcomes; or give truth="
        )
    if np.isnan(env.means).any():
        unknown.append(f"{type(env).__name__} was not told its true means: give means= there, or truth=")
    refuse("true_value", unknown)
    codes = [env.arms.index(label) for label in labels]
    if estimand.kind == "cate":
        return float(env.effects(codes[0], codes[1])[env.features.index(estimand.group)])
    if averages is not None and estimand.kind == "bin-mean":
        edges = np.array(estimand.group, dtype=np.float64)
        return float(averages(edges[None, :, 0], edges[None, :, 1])[0, codes[0]])
    every = env.arm_means() if estimand.kind == kind else env.ratios(str(estimand.denominator))
    means = every[codes]
    if kind == "lift":
        return float(means[0] / means[1] - 1.0) if means[1] != 0.0 else float("nan")
    return float(means[0] if kind == "arm-mean" else means[0] - means[1])
