"""One kernel, two sources of noise: drawn on the spot, or drawn beforehand at the scales it will ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import DPConSE, PrivateUCB
from adaptinf.designs.arms import ucb_kernel
from adaptinf.designs.contextual import private_conse_kernel as dp_conse_kernel
from adaptinf.privacy.noise import Buffer, Recorder
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext
from adaptinf.simulation.run import no_outcome

ARMS = BernoulliArms([0.3, 0.5, 0.7])
CONTEXTS = FiniteContext([0.6, 0.4], [[0.2, 0.8], [0.6, 0.2]])


@dataclass
class Driven:
    """What a run that is driven from Python leaves behind."""

    features: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    coins: list[float] = field(default_factory=list)
    noises: list[list[float]] = field(default_factory=list)
    scales: list[list[float]] = field(default_factory=list)
    released: np.ndarray = field(default_factory=lambda: np.zeros((0, 5)))
    outcome: np.ndarray = field(default_factory=lambda: np.zeros(0))


def drive(
    design: Any, module: Any, environment: Environment, horizon: int, rng: np.random.Generator
) -> Driven:
    """Run a design as a live trial does: ask which noises an update needs, draw them, hand them over."""
    program = design.program(environment, horizon, recording=True)
    tables, state, context = program.tables, np.zeros(program.state_shape), np.zeros(1)
    run, room = Driven(), 64
    recorder = Recorder(np.zeros(room), np.zeros(room, dtype=np.int64), np.zeros(1, dtype=np.int64))
    buffer = Buffer(np.zeros(1), np.zeros(room), np.zeros(2, dtype=np.int64))
    for _ in range(horizon):
        feature = int(rng.choice(environment.n_features, p=environment.probabilities[0]))
        context[0] = feature
        buffer.uniforms[0] = rng.uniform()
        buffer.positions[:] = 0
        arm = module._choose(tables, state, context, buffer)
        reward = float(rng.uniform() < environment.means[feature, arm])
        recorder.asked[0] = 0
        module._update(tables, state.copy(), context, arm, reward, recorder)
        scales = recorder.scales[: recorder.asked[0]]
        noises = rng.laplace(size=scales.size) * scales
        buffer.noises[: scales.size] = noises
        module._update(tables, state, context, arm, reward, buffer)
        assert buffer.positions[1] == scales.size  # every noise that was asked for was used
        for name, value in [
            ("features", feature),
            ("actions", arm),
            ("rewards", reward),
            ("coins", buffer.uniforms[0]),
            ("noises", noises.tolist()),
            ("scales", scales.tolist()),
        ]:
            getattr(run, name).append(value)
    outcome = np.zeros(program.n_outcomes)
    getattr(module, "_finish", no_outcome)(tables, state, outcome)
    run.released, run.outcome = tables.released.copy(), outcome
    return run


# --- private UCB ----------------------------------------------------------------------------------------


def literal_running_noise(draws: list[float], counter: str) -> list[float]:
    """Total noise at each count: the draws of the nodes that tile 1..count, node by last item."""
    totals = []
    for count in range(1, len(draws) + 1):
        last, start = count, 0
        total = 0.0
        if counter == "hybrid":
            start = 1 << (count.bit_length() - 1)
            total = sum(draws[(1 << j) - 1] for j in range(start.bit_length()))
        while last > start:
            total += draws[last - 1]
            last -= (last - start) & -(last - start)
        totals.append(total)
    return totals


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_private_ucb_replayed_from_the_values_handed_over(counter: str) -> None:
    design, horizon = PrivateUCB(epsilon=0.7, counter=counter), 250
    run = drive(design, ucb_kernel, ARMS, horizon, np.random.default_rng(5))
    assert [len(noises) for noises in run.noises] == [1] * horizon
    np.testing.assert_array_equal(run.released[:, 0], np.arange(1, horizon + 1))
    np.testing.assert_array_equal(run.released[:, 2], run.actions)
    for arm in range(3):
        rounds = [t for t in range(horizon) if run.actions[t] == arm]
        noise = literal_running_noise([run.noises[t][0] for t in rounds], counter)
        sums = np.cumsum([run.rewards[t] for t in rounds])
        np.testing.assert_allclose(run.released[rounds, 3], sums + noise, rtol=0, atol=1e-10)
        for count, t in enumerate(rounds, start=1):
            level = count.bit_length() - 1
            if counter == "binary":
                scale = horizon.bit_length() / 0.7
            else:
                scale = 2 / 0.7 if count == 1 << level else 2 * level / 0.7
            assert run.scales[t] == [pytest.approx(scale)]


@pytest.mark.parametrize(
    "design",
    [
        PrivateUCB(epsilon=2.0),
        PrivateUCB(epsilon=2.0, counter="binary"),
        PrivateUCB(epsilon=20.0, calibration="published", relaxation=False),
    ],
)
def test_private_ucb_agrees_in_distribution(design: PrivateUCB) -> None:
    horizon, runs = 40, 250
    rng = np.random.default_rng(8)
    driven = [drive(design, ucb_kernel, ARMS, horizon, rng) for _ in range(runs)]
    logs = list(design.logs(ARMS, horizon=horizon, replications=1_000, rng=2))
    one = np.array(
        [[*np.bincount(d.actions, minlength=3), sum(d.rewards), *d.released[-3:, 3]] for d in driven]
    )
    other = np.array(
        [
            [
                *np.bincount(log.arrays.action, minlength=3),
                log.arrays.reward.sum(),
                *log.releases["value"].iloc[-3:],
            ]
            for log in logs
        ]
    )
    p_values = [stats.ks_2samp(one[:, i], other[:, i]).pvalue for i in range(one.shape[1])]
    assert min(p_values) > 1e-4 / len(p_values)


# --- DP-ConSE -------------------------------------------------------------------------------------------


def test_dp_conse_replayed_from_the_values_handed_over() -> None:
    design, horizon, windows = DPConSE(epsilon=1.0, alpha=0.2, first_window=50), 1_200, 4
    environment = FiniteContext([0.6, 0.4], [[0.1, 0.95], [0.6, 0.2]])
    run = drive(design, dp_conse_kernel, environment, horizon, np.random.default_rng(1))
    ends = [50, 150, 350, 600, 1_200]
    assert [t + 1 for t, noises in enumerate(run.noises) if noises] == ends
    features, actions, rewards = map(np.array, (run.features, run.actions, run.rewards))
    rows = iter(run.released)
    decided: dict[int, int] = {}
    totals, start = np.zeros(2), 0
    for end in ends:
        noises, scales = iter(run.noises[end - 1]), iter(run.scales[end - 1])
        for j in range(2):
            here = np.zeros(horizon, dtype=bool)
            here[start:end] = features[start:end] == j
            if end == horizon:
                coins = np.array(run.coins)
                here &= coins < run.outcome[5 + j]
                np.testing.assert_array_equal(
                    actions[here], (coins[here] < 0.5 * run.outcome[5 + j]).astype(int)
                )
            contrast = np.sum((2 * actions[here] - 1) * (rewards[here] - 0.5))
            expected = [(1.0, here.sum(), 2 / 0.4)]
            if j not in decided or end == horizon:
                expected.append((0.0, contrast, 1 / 0.6))
            for name, total, scale in expected:
                row = next(rows)
                assert (row[0], row[1], row[2]) == (end, name, j)
                assert row[4] == pytest.approx(scale)
                assert next(scales) == pytest.approx(scale)
                assert row[3] == pytest.approx(total + next(noises), abs=1e-10)
                if name == 0.0 and end < horizon:
                    n_upper = totals_of(run, end, j) + 5.0 * math.log(2 * 2 * windows * horizon)
                    threshold = math.sqrt(max(n_upper, 0) * math.log(4 * 2 * windows * horizon) / 2)
                    threshold += math.log(2 * 2 * windows * horizon) / 0.6
                    if abs(row[3]) > threshold:
                        decided[j] = int(row[3] > 0)
                elif name == 1.0:
                    totals[j] += row[3] if end < horizon else 0.0
        start = end
    assert not np.any(list(rows))  # no room is used beyond these
    assert decided
    t_min = max(10.0 * math.log(horizon), min(np.maximum(totals, 1.0) ** 0.8))
    assert run.outcome[0] == pytest.approx(t_min)
    np.testing.assert_allclose(run.outcome[5:7], np.minimum(1.0, t_min / np.maximum(totals, 1.0)))


def totals_of(run: Driven, end: int, group: int) -> float:
    rows = (run.released[:, 0] == end) & (run.released[:, 1] == 1.0) & (run.released[:, 2] == group)
    return float(run.released[rows, 3][0])


def test_dp_conse_agrees_in_distribution() -> None:
    design, horizon, runs = DPConSE(epsilon=2.0, alpha=0.6, first_window=40), 240, 120
    rng = np.random.default_rng(3)
    driven = [drive(design, dp_conse_kernel, CONTEXTS, horizon, rng) for _ in range(runs)]
    sims = design.replicate(CONTEXTS, horizon=horizon, replications=2_000, rng=4, by_rounds=True)
    treated = np.array([[*d.outcome, sum(d.actions), sum(d.rewards)] for d in driven])
    other = np.column_stack([sims.outcomes, sims.pulls[..., 1].sum(axis=1), sims.sums.sum(axis=(1, 2))])
    p_values = [stats.ks_2samp(treated[:, i], other[:, i]).pvalue for i in range(other.shape[1])]
    assert min(p_values) > 1e-4 / len(p_values)
