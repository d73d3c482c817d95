"""Confidence bands of a linear design in every round, recomputed from its log."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_noise import on_grid
from adaptinf.designs.contextual.ridge_kernel import NOISELESS, PROJECTED, PUBLISHED, LinearTables
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_array
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, repr=False)
class PredictionBands:
    """Bands for every arm's expected reward in every round, based on information from before the round.

    Attributes
    ----------
    contexts : ndarray of shape (rounds, arms, dimension)
        Context vectors.
    center : ndarray of shape (rounds, arms)
        Predictions x'theta_hat.
    width : ndarray of shape (rounds, arms)
        Half the width of the bands; the design pulls the arm with the largest center + width.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
    >>> log = ai.designs.LinUCB().run(env, horizon=100, rng=0)
    >>> bands = ai.designs.prediction_bands(log)
    >>> bands.center.shape
    (100, 2)
    """

    contexts: FloatArray
    center: FloatArray
    width: FloatArray

    def __repr__(self) -> str:
        rounds, arms, dimension = self.contexts.shape
        return f"<PredictionBands: {rounds:,} rounds, {arms} arms, {dimension} coordinates>"

    def misses(self, theta: ArrayLike) -> BoolArray:
        """Whether each band fails to cover x'theta, as (rounds, arms), for coefficients (arms, dimension)."""
        coefficients = number_array(theta)
        expected = self.contexts.shape[1:]
        if coefficients is None:
            raise ParameterError("theta", [f"must be numbers of shape {expected}, got {theta!r:.60}"])
        if coefficients.shape != expected:
            raise ParameterError("theta", [f"must have shape {expected}, got {coefficients.shape}"])
        truth = np.einsum("tak,ak->ta", self.contexts, coefficients)
        return np.asarray(np.abs(self.center - truth) > self.width)


def prediction_bands(log: AdaptiveLog) -> PredictionBands:
    """Confidence bands for a LinUCB or LinPriv run, recomputed from its log.

    Parameters
    ----------
    log : AdaptiveLog
        The log of a whole run, starting with its first round, of `LinUCB`, `LinPriv` or a `Mixture` of one of
        them.

    Returns
    -------
    PredictionBands
        Centers and widths of the bands. With probability 1 - `failure`, every band of the run covers, if no
        coefficient vector is longer than `bound` and the rewards are sub-Gaussian with `noise_scale` around
        x'theta (LinUCB) or lie in [0, 1] (LinPriv, for which clipping invalidates this). The published
        calibration of LinPriv has no such guarantee.

    Raises
    ------
    InvalidForLog
        If the log comes from another design, or lacks some of the contexts or releases of a run.

    Notes
    -----
    For LinPriv, only contexts, actions and releases are used, so the bands are as private as these. If
    LinPriv's noise was exact, the contexts are those that the design used, truncated to multiples of 2^-20.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> theta = [[0.9, 0.1], [0.1, 0.9]]
    >>> environment = ai.environments.LinearArms(theta, contexts="orthant", rewards="bernoulli")
    >>> log = ai.designs.LinPriv(epsilon=1.0, failure=0.05).run(environment, horizon=300, rng=0)
    >>> bands = ai.designs.prediction_bands(log)
    >>> bool((np.argmax(bands.center + bands.width, axis=1) == log.arrays.action).all())
    True
    >>> int(bands.misses(theta).sum())
    0
    """
    if not isinstance(log, AdaptiveLog):
        raise ParameterError("prediction_bands", [f"log must be an AdaptiveLog, got {log!r:.60}"])
    design = _design(log)
    contexts = _contexts(log)
    if isinstance(design, LinPriv) and log.noise == "release":
        contexts = on_grid(contexts)
    n_rounds, n_arms, dimension = contexts.shape
    tables = design.tables(n_arms, dimension, n_rounds)
    action = log.arrays.action
    center, width = np.empty((n_rounds, n_arms)), np.empty((n_rounds, n_arms))
    for arm in range(n_arms):
        pulled = action == arm
        before = np.cumsum(pulled) - pulled
        own = contexts[pulled, arm]
        if isinstance(design, LinPriv):
            sums = _released_sums(log, arm, dimension, own.shape[0])
        else:
            sums = np.cumsum(own * log.arrays.reward[pulled, None], axis=0)
        sums = np.concatenate([np.zeros((1, dimension)), sums])
        inverse, log_det = _inverses(own, tables.regularisation)
        estimate = np.einsum("nkl,nl->nk", inverse, sums)
        x = contexts[:, arm]
        center[:, arm] = np.einsum("tk,tk->t", x, estimate[before])
        width[:, arm] = _widths(tables, x, inverse, log_det, before)
    return PredictionBands(contexts, center, width)


def _design(log: AdaptiveLog) -> LinUCB | LinPriv:
    record = log.design
    name = None if record is None else record.name
    parameters = {} if record is None else dict(record.parameters)
    if name == "Mixture":
        name, parameters = parameters["design"], dict(parameters["parameters"])
    if name == "LinUCB":
        return LinUCB(**parameters)
    if name == "LinPriv":
        return LinPriv(**parameters)
    raise InvalidForLog("prediction_bands", f"the log was collected by {name}, not by LinUCB or LinPriv", [])


def _contexts(log: AdaptiveLog) -> FloatArray:
    """Context vectors with shape (rounds, arms, dimension), whether or not they are shared."""
    ends = [""] if "x1" in log.context else [f"_{arm}" for arm in log.arms]
    names = [f"x{k + 1}{end}" for end in ends for k in range(len(log.context) // len(ends))]
    if not names or set(names) != set(log.context):
        raise InvalidForLog(
            "prediction_bands",
            "its context columns differ from those that the design wrote, x1_<arm> or x1 onwards",
            [],
        )
    columns = [np.asarray(log.arrays.context[name], dtype=np.float64) for name in names]
    table = np.stack(columns, axis=1).reshape(log.n_rounds, len(ends), -1)
    return np.ascontiguousarray(np.broadcast_to(table, (log.n_rounds, log.n_arms, table.shape[2])))


def _released_sums(log: AdaptiveLog, arm: int, dimension: int, pulls: int) -> FloatArray:
    """Noisy X'Y for an arm after each of its pulls, shape (pulls, dimension)."""
    own = log.releases[log.releases["group"] == log.arms[arm]]
    sums = [
        own.loc[own["name"] == f"noisy_xy_{k + 1}", "value"].to_numpy(dtype=np.float64)
        for k in range(dimension)
    ]
    if any(values.size != pulls for values in sums):
        raise InvalidForLog(
            "prediction_bands",
            f"arm {log.arms[arm]!r} has {pulls} pulls, but {max(values.size for values in sums)} releases: "
            "a complete run with its releases is required, as stored by run, to_parquet and to_csv",
            [],
        )
    return np.stack(sums, axis=1)


def _inverses(own: FloatArray, regularisation: float) -> tuple[FloatArray, FloatArray]:
    """V^-1 and the logarithm of det V / det(lambda I), before any pull and after each pull."""
    dimension = own.shape[1]
    start = regularisation * np.eye(dimension)
    steps = np.concatenate([start[None], own[:, :, None] * own[:, None, :]])
    matrices = np.cumsum(steps, axis=0)
    log_det = np.linalg.slogdet(matrices / regularisation)[1]
    return np.linalg.inv(matrices), np.asarray(log_det, dtype=np.float64)


def _widths(
    tables: LinearTables, x: FloatArray, inverse: FloatArray, log_det: FloatArray, before: IntArray
) -> FloatArray:
    """Half-widths of the bands of one arm; `before` is its number of pulls before each round."""
    products = np.einsum("tkl,tl->tk", inverse[before], x)
    length = np.sqrt(np.einsum("tk,tk->t", products, x))
    if tables.width == PUBLISHED:
        now = np.arange(1.0, x.shape[0] + 1.0)
        log_terms = np.log1p(now / tables.regularisation) + tables.log_share
        noise = tables.bounds[0, 0] * np.log(np.maximum(before, 1)) ** 1.5 / tables.regularisation
        return np.asarray(length * (np.sqrt(2.0 * tables.dimension * log_terms) + tables.root) + noise)
    radius = tables.noise_scale * np.sqrt(2.0 * (0.5 * log_det[before] + tables.log_share)) + tables.root
    width = length * radius
    if tables.width != NOISELESS:
        bounds = np.array([0.0, *(_bound(tables, count) for count in range(1, inverse.shape[0]))])[before]
        allowance = length / math.sqrt(tables.regularisation)
        if tables.width == PROJECTED:
            allowance = np.linalg.norm(products, axis=1)
        width = width + bounds * allowance
    return np.asarray(width, dtype=np.float64)


def _bound(tables: LinearTables, count: int) -> float:
    return float(tables.bounds[count.bit_length() - 1, count.bit_count()])
