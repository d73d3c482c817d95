"""Worst-case bias of arm means under differentially private data collection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import COUNT, number_array, refuse
from adaptinf.typing import FloatArray


def bias_bound(guarantee: PrivacyGuarantee, horizon: int, means: ArrayLike) -> FloatArray:
    """Largest possible bias of the sample mean of each arm.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        Standard guarantee for the rewards; a standard record-level guarantee implies one.
    horizon : int
        Number of rounds T.
    means : array_like, shape (k,)
        True or assumed arm means, in [0, 1].

    Returns
    -------
    ndarray, shape (k,)
        (e^epsilon - 1 + T delta) min(mean, 1 - mean). The bound is not capped, so that a vacuous bound
        remains visible. The bound is uninformative if it exceeds `trivial_bias_bound`, and infinite if
        epsilon is infinite.

    Raises
    ------
    ParameterError
        If parameters are out of range (the message lists every problem), or if the guarantee is anticipating.

    Notes
    -----
    Rewards must lie in [0, 1] and be independent across rounds, and every arm must be pulled at least once in
    every run. The bound is a worst case over all designs with this guarantee. For values of epsilon used in
    practice, it is often vacuous; the simulated bias of the actual design is then more informative.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.bias_bound(ai.PrivacyGuarantee(epsilon=0.1), 500, [0.5, 0.9]).round(4)
    array([0.0526, 0.0105])
    """
    values = _means(means)
    problems = _mean_problems(values)
    given: Any = guarantee
    if not isinstance(given, PrivacyGuarantee):
        problems.insert(0, f"guarantee must be PrivacyGuarantee(epsilon=...), got {guarantee!r:.60}")
        raise ParameterError("bias_bound", problems + COUNT("horizon", horizon))
    level = guarantee.reward_level()
    if level is None:
        problems.insert(0, "the guarantee is anticipating; the bound requires a standard one for the rewards")
    problems += COUNT("horizon", horizon)
    if level is None or problems:
        raise ParameterError("bias_bound", problems)
    factor = _expm1(level.epsilon) + int(horizon) * level.delta
    distance = np.minimum(values, 1.0 - values)
    # Rewards whose mean is at the boundary are constant and have no bias, even without a guarantee: the bound
    # is 0, where inf * 0 would be NaN.
    bound = np.zeros_like(distance)
    with np.errstate(over="ignore"):
        np.multiply(factor, distance, out=bound, where=distance > 0.0)
    return bound


def trivial_bias_bound(means: ArrayLike) -> FloatArray:
    """Largest bias that an average of rewards in [0, 1] can have under any design.

    Shapes: means (k,); returns (k,).
    """
    values = _means(means)
    problems = _mean_problems(values)
    refuse("trivial_bias_bound", problems)
    return np.where((values == 0.0) | (values == 1.0), 0.0, np.maximum(values, 1.0 - values))


def _means(means: ArrayLike) -> FloatArray:
    """Means as a flat array; values that are not numbers become NaN, which is refused later."""
    array = number_array(means)
    return np.full(1, math.nan) if array is None else np.atleast_1d(array)


def _expm1(epsilon: float) -> float:
    try:
        return math.expm1(epsilon)
    except OverflowError:
        return math.inf


def _mean_problems(means: FloatArray) -> list[str]:
    if means.ndim != 1:
        return [f"means must contain one value per arm, got shape {means.shape}"]
    bad = [int(i) for i in np.flatnonzero(~((means >= 0.0) & (means <= 1.0)))]
    return [f"means must lie in [0, 1], got {means[bad[0]]:g} for arm {bad[0]}"] if bad else []
