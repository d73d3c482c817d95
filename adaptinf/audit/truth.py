"""The value that an analysis is after, where the environment is known."""

from __future__ import annotations

from adaptinf.errors import ParameterError
from adaptinf.inference.results import Estimand
from adaptinf.simulation.environments import Environment

__all__ = ["true_value"]

_KINDS = ("arm-mean", "contrast", "cate")


def true_value(estimand: Estimand, env: Environment) -> float:
    """The value of an estimand in an environment.

    Parameters
    ----------
    estimand : Estimand
        Mean of an arm, contrast of two arms, or effect within a group.
    env : Environment
        Where the truth is known.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If the environment has no such arm or group, or the estimand is of another kind.

    Examples
    --------
    >>> from adaptinf import environments
    >>> true_value(Estimand("contrast", treatment=1, control=0), environments.BernoulliArms([0.25, 0.75]))
    0.5
    """
    if estimand.kind not in _KINDS:
        problem = f"the truth of a {estimand.kind!r} does not follow from an environment: give it by truth="
        raise ParameterError("true_value", [problem])
    labels = [estimand.arm] if estimand.kind == "arm-mean" else [estimand.treatment, estimand.control]
    unknown = [f"the environment has no arm {label!r}" for label in labels if label not in env.arms]
    if estimand.kind == "cate" and estimand.group not in env.features:
        unknown.append(f"the environment has no context {estimand.group!r}")
    if unknown:
        raise ParameterError("true_value", unknown)
    codes = [env.arms.index(label) for label in labels]
    if estimand.kind == "cate":
        return float(env.effects(codes[0], codes[1])[env.features.index(estimand.group)])
    means = env.arm_means()[codes]
    return float(means[0] if estimand.kind == "arm-mean" else means[0] - means[1])
