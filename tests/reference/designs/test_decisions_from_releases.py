"""Actions of private designs recomputed, to the last bit, from what an onlooker has: releases and actions.

Plain Python and NumPy: decisions are functions of public constants and contexts, actions and releases.
`DPNAS` does not release the noise of its looks, so that its stopping time cannot be recomputed. The locally
private designs decide by their servers' noisy sums, of which a log has the last ones only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adaptinf import environments
from adaptinf.designs import DPBAI, DPOD, DPConSE, LinPriv, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.designs.arms import ucb_kernel as ucb
from adaptinf.designs.arms.elimination_kernel import elimination_epochs
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.designs.contextual.ridge_kernel import PROJECTED
from adaptinf.log import AdaptiveLog
from adaptinf.privacy.noise import Buffer
from adaptinf.privacy.tree_sums import noise_row
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext, LinearArms


def best_of(indices: list[float]) -> int:
    """The first of the highest."""
    return max(range(len(indices)), key=lambda arm: (indices[arm], -arm))


def released(log: AdaptiveLog) -> Iterator[float]:
    return iter(log.releases["value"].to_numpy())


def private_ucb_actions(design: PrivateUCB, env: Environment, log: AdaptiveLog) -> list[int]:
    tables = design.program(env, log.n_rounds, recording=False).tables
    arms, values = range(tables.n_arms), released(log)
    count, shown = [0] * tables.n_arms, [0.0] * tables.n_arms
    root, base, slope = ([0.0] * tables.n_arms for _ in range(3))
    cell, width, actions = 0, 0.0, []

    def refresh(arm: int) -> None:
        inverse, row = 1.0 / count[arm], noise_row(tables.hybrid, tables.slots, count[arm])
        base[arm] = (shown[arm] + (tables.relaxation + tables.intercept[cell, row])) * inverse
        slope[arm] = tables.slope[cell, row] * inverse

    for now in range(1, log.n_rounds + 1):
        log_now = math.log(float(now))
        if min(count) == 0:
            arm = count.index(0)
        else:
            before = cell
            while now > tables.grid[cell + 1]:
                cell += 1
            if cell != before:
                for arm in arms:
                    refresh(arm)
            arm = best_of([base[arm] + root[arm] * width + slope[arm] * log_now for arm in arms])
        actions.append(arm)
        count[arm] += 1
        root[arm], shown[arm] = math.sqrt(1.0 / count[arm]), next(values)
        refresh(arm)
        width = math.sqrt(tables.width * (math.log(now + 1.0) + tables.log_offset))
    return actions


def elimination_actions(
    design: PrivateSuccessiveElimination, env: Environment, log: AdaptiveLog
) -> list[int]:
    beta = 1.0 / log.n_rounds if design.beta is None else design.beta
    lengths, thresholds = elimination_epochs(env.n_arms, log.n_rounds, beta, design.epsilon)
    left, values, actions, epoch = list(range(env.n_arms)), released(log), [], 0
    while len(left) > 1 and len(actions) < log.n_rounds:
        passes = int(lengths[len(left), epoch])
        actions += left * passes
        if len(actions) <= log.n_rounds:
            means = {arm: next(values) for arm in left}
            least = max(means.values())
            left = [arm for arm in left if not least - means[arm] > thresholds[len(means), epoch]]
            epoch += 1
    actions += left * log.n_rounds
    return actions[: log.n_rounds]


def linpriv_actions(design: LinPriv, env: Environment, log: AdaptiveLog) -> list[int]:
    tables = design.tables(env.n_arms, env.dimension, log.n_rounds)
    d, values = env.dimension, released(log)
    contexts = np.stack(
        [[log.arrays.context[f"x{k + 1}_{arm}"] for k in range(d)] for arm in log.arms]
    )  # (arms, d, T)
    inverse = [
        [[(1.0 / tables.regularisation) * (i == k) for i in range(d)] for k in range(d)] for _ in log.arms
    ]
    theta = [[0.0] * d for _ in log.arms]
    count, log_det, radius, reach = ([0.0] * env.n_arms for _ in range(4))
    actions = []

    def product(arm: int, x: Any) -> list[float]:
        found = []
        for k in range(d):
            total = 0.0
            for other in range(d):
                total += inverse[arm][k][other] * x[other]
            found.append(total)
        return found

    def refresh(arm: int) -> None:
        radius[arm] = math.sqrt(2.0 * (0.5 * log_det[arm] + tables.log_share)) * tables.noise_scale
        pulls = int(count[arm])
        reach[arm] = float(tables.bounds[pulls.bit_length() - 1, pulls.bit_count()]) if pulls else 0.0
        radius[arm] += tables.root

    assert tables.width == PROJECTED
    for arm in range(env.n_arms):
        refresh(arm)
    for now in range(log.n_rounds):
        indices = []
        for arm in range(env.n_arms):
            x, images = contexts[arm, :, now], product(arm, contexts[arm, :, now])
            mean = quadratic = square = 0.0
            for k in range(d):
                mean += theta[arm][k] * x[k]
                quadratic += images[k] * x[k]
                square += images[k] * images[k]
            index = mean + math.sqrt(max(quadratic, 0.0)) * radius[arm]
            indices.append(index + math.sqrt(square) * reach[arm])
        arm = best_of(indices)
        actions.append(arm)
        x, images = contexts[arm, :, now], product(arm, contexts[arm, :, now])
        quadratic = 0.0
        for k in range(d):
            quadratic += images[k] * x[k]
        factor = 1.0 / (1.0 + quadratic)
        for k in range(d):
            for other in range(d):
                inverse[arm][k][other] -= factor * (images[k] * images[other])
        log_det[arm] += math.log1p(quadratic)
        count[arm] += 1.0
        theta[arm] = product(arm, [next(values) for _ in range(d)])
        refresh(arm)
    return actions


ARMS = BernoulliArms([0.6, 0.5, 0.4])
DIRECTIONS = LinearArms([[0.9, 0.1], [0.1, 0.9], [0.5, 0.4]], contexts="orthant", rewards="bernoulli")
REPLAYS: dict[str, tuple[Any, Environment, int, Callable[..., list[int]]]] = {
    "PrivateUCB": (PrivateUCB(epsilon=1.0), ARMS, 3_000, private_ucb_actions),
    "PrivateUCB, binary": (PrivateUCB(epsilon=4.0, counter="binary"), ARMS, 3_000, private_ucb_actions),
    "PrivateUCB, published": (
        PrivateUCB(epsilon=1.0, calibration="published", relaxation=False),
        ARMS,
        3_000,
        private_ucb_actions,
    ),
    "PrivateSuccessiveElimination": (
        PrivateSuccessiveElimination(epsilon=1.0, beta=0.1),
        BernoulliArms([0.9, 0.5, 0.1]),
        20_000,
        elimination_actions,
    ),
    "LinPriv": (LinPriv(epsilon=2.0), DIRECTIONS, 1_000, linpriv_actions),
}


@pytest.mark.parametrize("name", REPLAYS)
def test_all_actions_follow_from_the_releases(name: str) -> None:
    design, env, horizon, replay = REPLAYS[name]
    log = design.run(env, horizon=horizon, rng=5)
    actions = np.array(replay(design, env, log))
    assert np.array_equal(actions, log.arrays.action)
    assert len(set(actions.tolist())) > 1


def test_the_public_state_of_dp_conse_follows_from_the_releases() -> None:
    """Its actions have coins of their own, so that the propensities stand for the decisions."""
    design, horizon = DPConSE(epsilon=1.0, alpha=0.2), 20_000
    env = FiniteContext(probabilities=[0.5, 0.3, 0.2], means=[[0.3, 0.7], [0.6, 0.3], [0.48, 0.52]])
    log = design.run(env, horizon=horizon, rng=3)
    ends = window_ends(horizon, None, 3)
    contrast_scale, arrival_scale = 1.0 / 0.6, 2.0 / 0.4
    log_two = math.log(2.0 * 3 * ends.size * horizon)
    log_four = math.log(2.0) + log_two
    feature, values = log.arrays.context["feature"], released(log)
    pooled, total, treated = [0.0] * 3, [0.0] * 3, np.empty(horizon)
    decided: list[int | None] = [None] * 3
    begin = 0
    for end in ends:
        share = np.array([0.5 if arm is None else float(arm) for arm in decided])
        treated[begin:end] = share[feature[begin:end]]
        for j in range(3):
            arrivals = next(values)
            total[j] += arrivals
            if decided[j] is None:
                contrast = next(values)
                pooled[j] += contrast
                upper = max(arrivals + arrival_scale * log_two, 0.0)
                if abs(contrast) > math.sqrt(0.5 * upper * log_four) + contrast_scale * log_two:
                    decided[j] = int(contrast > 0.0)
        begin = end
    total = [max(1.0, arrivals) for arrivals in total]
    budget = max(4.0 * math.log(horizon) / (0.4 * design.epsilon), math.pow(min(total), 1.0 - design.alpha))
    assert 0 < sum(arm is not None for arm in decided) < 3
    better = np.array([float(pooled[j] > 0.0) if decided[j] is None else decided[j] for j in range(3)])
    inclusion = np.array([min(1.0, budget / arrivals) for arrivals in total])
    treated[begin:] = (0.5 * inclusion + (1.0 - inclusion) * better)[feature[begin:]]
    assert log.arrays.propensities is not None
    assert np.array_equal(log.arrays.propensities[:, 1], treated)


FEATURES = np.array([[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3], [0.7, 0.6], [0.9, 0.2]])


@pytest.mark.parametrize(
    "design",
    [
        DPBAI(epsilon=1.0, features=FEATURES),
        DPBAI(epsilon=1.0, features=FEATURES, max_det=False),
        DPOD(epsilon=1.0, features=FEATURES),
    ],
    ids=["DPBAI", "DPBAI, all arms", "DPOD"],
)
def test_arms_that_are_kept_follow_from_the_releases(design: Any) -> None:
    """Phase by phase: who is left after a phase is what its noisy means, or moments, rank highest."""
    env = environments.BernoulliArms(FEATURES @ [0.5, 0.3])
    for rng in range(3):
        log = design.run(env, horizon=3_000, rng=rng)
        sizes = design.sizes() if isinstance(design, DPOD) else design.schedule().sizes
        left, begin = np.arange(len(FEATURES)), 0
        for kept, (end, part) in zip(sizes[1:], log.releases.groupby("round", sort=True), strict=True):
            pulls = np.bincount(log.arrays.action[begin:end], minlength=len(FEATURES))
            assert set(np.flatnonzero(pulls)) <= set(left.tolist())
            if isinstance(design, DPOD):
                matrix = (FEATURES.T * pulls) @ FEATURES
                estimates = FEATURES @ np.linalg.solve(matrix, part["value"].to_numpy())
            elif len(part) == len(left):
                estimates = np.zeros(len(FEATURES))
                estimates[part["group"].to_numpy()] = part["value"].to_numpy()
            else:
                collection = FEATURES[part["group"].to_numpy()]
                estimates = FEATURES @ np.linalg.solve(collection, part["value"].to_numpy())
            left, begin = left[np.argsort(-estimates[left], kind="stable")][:kept], int(end)
        assert left.tolist() == [log.recommended]
        assert set(log.arrays.action[begin:].tolist()) <= {log.recommended}


def test_equal_releases_make_equal_indices_whatever_the_sum_behind_them() -> None:
    """With noise that makes up for the sums' difference, choices read the same state, to the last bit.

    An index that is added up from the raw sum and the noise is not the same: about one in four differs.
    """
    design, rng = PrivateUCB(epsilon=1.0), np.random.default_rng(0)
    program = design.program(BernoulliArms([0.5, 0.5]), 1_000, recording=False)
    row = noise_row(program.tables.hybrid, program.tables.slots, PULLS)
    allowance = float(program.tables.relaxation + program.tables.intercept[0, row])
    compared = apart = 0
    for _ in range(400):
        first, second = rng.integers(0, PULLS + 1, size=2).astype(float)
        shown = first + float(rng.laplace(scale=30.0))
        noises = shown - first, shown - second
        if first != second and first + noises[0] == shown == second + noises[1]:
            states = [
                pulled(program, total, noise) for total, noise in zip((first, second), noises, strict=True)
            ]
            assert states[0][ucb._SUM, 0] != states[1][ucb._SUM, 0]
            assert states[0][ucb._SHOWN, 0] == shown
            assert np.array_equal(*(state[: ucb._PUBLIC] for state in states))
            compared += 1
            apart += first + (noises[0] + allowance) != second + (noises[1] + allowance)
    assert compared > 200
    assert apart / compared > 0.15


PULLS = 61


def pulled(program: Any, total: float, noise: float) -> np.ndarray:
    """The state after a pull of arm 0 that makes its sum `total` and its counter's noise `noise`."""
    state = np.zeros(program.state_shape)
    state[ucb._COUNT, 0], state[ucb._SUM, 0] = PULLS - 1, total - 1.0
    source = Buffer(np.zeros(0), np.array([noise]), np.zeros(2, dtype=np.int64))
    ucb._update.py_func(program.tables, state, np.zeros(0), 0, 1.0, source)
    return state
