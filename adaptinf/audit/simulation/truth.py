"""The value that an analysis is after, where the environment is known."""

from __future__ import annotations

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.results.estimand import Estimand
from adaptinf.parameters import refuse
from adaptinf.simulation.environments import Environment
from adaptinf.texts import absent, listed

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
