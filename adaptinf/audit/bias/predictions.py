"""Bias of least-squares predictions in re-runs of a linear bandit on the contexts of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.inference.validity.profile import is_binary
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_array, refuse
from adaptinf.simulation.environments import LinearArms
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.typing import FloatArray, IntArray, RandomSource
from adaptinf.workers import spread

_CHUNK = 4 * BLOCK


@dataclass(frozen=True, slots=True, eq=False)
class LinearWorld:
    """Linear arms on the contexts of a log; average (arms, dimension), naive (arms, dimension)."""

    env: LinearArms
    law: str
    average: FloatArray
    naive: FloatArray
    source: str
    notes: tuple[str, ...]


def arm_contexts(log: AdaptiveLog) -> tuple[FloatArray, bool]:
    """Context vectors of a log; returns contexts (T, arms, dimension)."""
    names = log.context
    columns = [log.arrays.context[name] for name in names]
    if not names or any(np.asarray(column).dtype.kind not in "biuf" for column in columns):
        problem = "the log needs the context vectors as numeric context columns"
        raise ParameterError("simulate_bias", [f"{problem}, got {', '.join(names) or 'none'}"])
    matrix = np.stack(columns, axis=1).astype(np.float64)
    size, rest = divmod(len(names), log.n_arms)
    wanted = [f"x{k}_{arm}" for arm in log.arms for k in range(1, size + 1)]
    if rest == 0 and set(wanted) == set(names):
        order = [names.index(name) for name in wanted]
        return matrix[:, order].reshape(log.n_rounds, log.n_arms, size), False
    return np.broadcast_to(matrix[:, None], (log.n_rounds, log.n_arms, len(names))), True


def least_squares(contexts: FloatArray, action: IntArray, reward: FloatArray) -> FloatArray:
    """Least-squares coefficients of each arm.

    Shapes: contexts (T, arms, dimension), action (T,), reward (T,); returns (arms, dimension).
    """
    found = np.full(contexts.shape[1:], np.nan)
    for arm in range(contexts.shape[1]):
        here = action == arm
        if np.count_nonzero(here) >= contexts.shape[2]:
            solution, _, rank, _ = np.linalg.lstsq(contexts[here, arm], reward[here], rcond=None)
            if rank == contexts.shape[2]:
                found[arm] = solution
    return found


def linear_world(log: AdaptiveLog, theta: object = None) -> LinearWorld:
    """Linear arms with a log's coefficients, on its contexts; theta (arms, dimension)."""
    contexts, shared = arm_contexts(log)
    arrays = log.arrays
    naive = least_squares(contexts, arrays.action, arrays.reward)
    if theta is None:
        missing = [
            f"the rounds of arm {log.arms[arm]!r} do not determine its {naive.shape[1]} coefficients: give "
            "means=, the coefficients to suppose, of shape (arms, dimension)"
            for arm in np.flatnonzero(np.isnan(naive).any(axis=1))
        ]
        refuse("simulate_bias", missing)
        coefficients, source = naive, "least squares (not valid under adaptivity)"
    else:
        given = number_array(theta)
        if given is None or given.shape != naive.shape or not np.isfinite(given).all():
            problem = f"means must be coefficients, finite numbers of shape {naive.shape}, got {theta!r:.60}"
            raise ParameterError("simulate_bias", [problem])
        coefficients, source = given, "given"
    expected = np.einsum("tad,ad->ta", contexts, coefficients)
    inside = bool((expected >= 0.0).all() and (expected <= 1.0).all())
    notes = []
    law = "bernoulli" if is_binary(arrays.reward) and inside else "normal"
    if is_binary(arrays.reward) and not inside:
        notes.append("Rewards are normal: means at the log's contexts leave [0, 1].")
    residual = arrays.reward - expected[np.arange(log.n_rounds), arrays.action]
    env = LinearArms(
        coefficients,
        noise=float(residual.std()),
        contexts=contexts[:, 0] if shared else contexts,
        shared=shared,
        rewards=law,
    )
    return LinearWorld(env, law, contexts.mean(axis=0), naive, source, tuple(notes))


def simulated_predictions(
    design: Design, world: LinearWorld, horizon: int, replications: int, rng: RandomSource | None, n_jobs: int
) -> FloatArray:
    """Least-squares predictions of every run at each arm's average context; returns (replications, arms)."""
    root = seed_sequence(rng)
    spans = [(start, min(start + _CHUNK, replications)) for start in range(0, replications, _CHUNK)]
    jobs = [(_predictions, (design, world, horizon, start, stop, root)) for start, stop in spans]
    return np.concatenate(spread(jobs, n_jobs))


def _predictions(
    design: Design, world: LinearWorld, horizon: int, start: int, stop: int, root: np.random.SeedSequence
) -> FloatArray:
    found = np.empty((stop - start, world.env.n_arms))
    for run, log in enumerate(design.logs(world.env, horizon, stop, root, start)):
        contexts, _ = arm_contexts(log)
        coefficients = least_squares(contexts, log.arrays.action, log.arrays.reward)
        found[run] = np.einsum("ad,ad->a", world.average, coefficients)
    return found
