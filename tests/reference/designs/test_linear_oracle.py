"""LinUCB and LinPriv against a literal reading: every matrix inverted anew in every round."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from adaptinf.designs import Uniform
from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_bands import prediction_bands
from adaptinf.designs.contextual.ridge_kernel import _INVERSE, _LOG_DET, _THETA
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog
from adaptinf.privacy.counter_noise import laplace_norm_bound
from adaptinf.simulation.environments.vector_arms import LinearArms
from adaptinf.simulation.run import Results, empty_record

THETA = np.array([[0.6, 0.2, 0.1], [0.1, 0.7, 0.3], [0.3, 0.3, 0.3]])
ORTHANT = LinearArms(THETA, contexts="orthant", rewards="bernoulli")
SHARED = LinearArms(2.0 * THETA - 0.5, 0.2, shared=True)

# --- nodes of the counters, spelled out as intervals of items ---------------------------------------------


def tree_nodes(count: int) -> list[tuple[int, int]]:
    """(first, last) item of the dyadic intervals that tile 1..count, the largest first."""
    nodes, start = [], 0
    for level in reversed(range(count.bit_length())):
        if (count >> level) & 1:
            nodes.append((start + 1, start + 2**level))
            start += 2**level
    return nodes


@functools.cache
def normal_scale(epsilon: float, delta: float, levels: int) -> float:
    """The sigma with Phi(r/2 - eps/r) - e^eps Phi(-r/2 - eps/r) = delta at r = sqrt(levels) / sigma."""

    def excess(sigma: float) -> float:
        r = math.sqrt(levels) / sigma
        far = math.exp(epsilon) * stats.norm.cdf(-r / 2 - epsilon / r)
        return float(stats.norm.cdf(r / 2 - epsilon / r) - far - delta)

    return float(optimize.brentq(excess, 1e-2, 1e4, xtol=1e-13, rtol=1e-14))


@functools.cache
def nodes_with_scales(design: LinPriv, count: int, horizon: int, d: int) -> list[tuple[int, int, float]]:
    """The noisy intervals that make up a released sum, each with the scale of its noise."""
    levels = horizon.bit_length()
    if design.delta > 0.0:
        sigma = normal_scale(design.epsilon, design.delta, levels)
        return [(first, last, sigma) for first, last in tree_nodes(count)]
    sensitivity = 1.0 if design.calibration == "published" else math.sqrt(d)
    if design.counter == "binary":
        return [(first, last, sensitivity * levels / design.epsilon) for first, last in tree_nodes(count)]
    half = 2.0 * sensitivity / design.epsilon
    top = count.bit_length() - 1
    trunk = [(1, 1, half), *((2 ** (j - 1) + 1, 2**j, half) for j in range(1, top + 1))]
    block = [(2**top + first, 2**top + last, half * top) for first, last in tree_nodes(count - 2**top)]
    return trunk + block


@functools.cache
def norm_bound(design: LinPriv, count: int, horizon: int, d: int, n_arms: int) -> float:
    """What the noise's norm stays below at a count, at that count's share of half of the failure."""
    if count == 0:
        return 0.0
    levels, level = horizon.bit_length(), count.bit_length() - 1
    failure = design.failure or 1.0 / horizon
    share = failure / 2 / n_arms / levels / 2**level
    scales = [scale for _, _, scale in nodes_with_scales(design, count, horizon, d)]
    if design.delta > 0.0:
        return math.sqrt(sum(scale**2 for scale in scales) * stats.chi2.isf(share, d))
    small, *others = sorted({*scales})
    large = others[0] if others else 0.0
    return cached_bound(
        small, scales.count(small), large, scales.count(large) if large else 0, d, math.log(share)
    )


cached_bound = functools.cache(laplace_norm_bound)


# --- the bands, one round after the other -----------------------------------------------------------------


def literal_bands(design: LinUCB | LinPriv, log: AdaptiveLog) -> tuple[np.ndarray, np.ndarray]:
    """Centers and widths of all bands from rewards (LinUCB) or released sums (LinPriv)."""
    horizon, n_arms = log.n_rounds, log.n_arms
    shared = "x1" in log.context
    d = len(log.context) // (1 if shared else n_arms)
    failure = design.failure or 1.0 / horizon
    lam = design.regularisation
    seen: list[list[np.ndarray]] = [[] for _ in range(n_arms)]
    sums = np.zeros((n_arms, d))
    center, width = np.zeros((2, horizon, n_arms))
    releases = log.releases
    if isinstance(design, LinPriv):
        assert releases["round"].tolist() == list(np.repeat(np.arange(1, horizon + 1), d))
        assert releases["name"].tolist() == [f"noisy_xy_{k + 1}" for k in range(d)] * horizon
        assert releases["group"].tolist() == list(np.repeat(log.arrays.action, d))
        values = releases["value"].to_numpy().reshape(horizon, d)
    for t in range(horizon):
        x = np.array(
            [
                [log.arrays.context[f"x{k}" if shared else f"x{k}_{arm}"][t] for k in range(1, d + 1)]
                for arm in range(n_arms)
            ]
        )
        for arm in range(n_arms):
            V = lam * np.eye(d) + sum((np.outer(row, row) for row in seen[arm]), np.zeros((d, d)))
            inverse = np.linalg.inv(V)
            length = math.sqrt(x[arm] @ inverse @ x[arm])
            center[t, arm] = x[arm] @ inverse @ sums[arm]
            log_det = math.log(np.linalg.det(V) / lam**d)
            count = len(seen[arm])
            if isinstance(design, LinUCB):
                radius = design.noise_scale * math.sqrt(log_det + 2 * math.log(n_arms / failure))
                width[t, arm] = length * (radius + math.sqrt(lam) * design.bound)
            elif design.calibration == "published":
                w = math.sqrt(2 * d * math.log((1 + (t + 1) / lam) / failure)) + math.sqrt(lam) * design.bound
                s = math.log(count) ** 1.5 * math.log(n_arms / failure) / design.epsilon if count else 0.0
                width[t, arm] = length * w + s / lam
            else:
                radius = 0.5 * math.sqrt(log_det + 2 * math.log(2 * n_arms / failure))
                s = norm_bound(design, count, horizon, d, n_arms)
                allowance = float(np.linalg.norm(inverse @ x[arm]))
                if design.noise_width == "ridge":
                    allowance = length / math.sqrt(lam)
                width[t, arm] = length * (radius + math.sqrt(lam) * design.bound) + s * allowance
        arm = int(log.arrays.action[t])
        seen[arm].append(x[arm])
        sums[arm] = values[t] if isinstance(design, LinPriv) else sums[arm] + x[arm] * log.arrays.reward[t]
    return center, width


DESIGNS = [
    LinUCB(noise_scale=0.5),
    LinUCB(regularisation=0.1, failure=0.2, noise_scale=0.2, bound=0.7),
    LinPriv(epsilon=30.0),
    LinPriv(epsilon=5.0, counter="binary", failure=0.3, bound=0.8),
    LinPriv(epsilon=100.0, noise_width="ridge", regularisation=20.0),
    LinPriv(epsilon=4.0, delta=1e-5, failure=0.1, regularisation=0.5),
    LinPriv(epsilon=300.0, calibration="published"),
    LinPriv(epsilon=300.0, calibration="published", failure=0.05, regularisation=5.0),
]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
@pytest.mark.parametrize("environment", [ORTHANT, SHARED], ids=["orthant", "shared"])
def test_decisions_and_bands(design: LinUCB | LinPriv, environment: LinearArms) -> None:
    horizon = 400
    log = design.run(environment, horizon, rng=3)
    center, width = literal_bands(design, log)
    index = center + width
    chosen = index[np.arange(horizon), log.arrays.action]
    assert (index.max(axis=1) - chosen).max() < 1e-9
    pulls = np.bincount(log.arrays.action, minlength=3)
    assert pulls.min() >= (15 if environment is ORTHANT else 5), "the arms compete"
    bands = prediction_bands(log)
    assert np.abs(bands.center - center).max() < 1e-10 * np.abs(center).max() + 1e-12
    assert np.abs(bands.width / width - 1.0).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS[2:6], ids=repr)
def test_released_sums_carry_the_noise_of_their_nodes(design: LinPriv) -> None:
    """Node noises, solved from the released sums, are one draw a node and have their law."""
    horizon, d = 1024, 3
    draws: list[np.ndarray] = []
    for seed in range(8):
        log = design.run(ORTHANT, horizon, rng=seed)
        values = log.releases["value"].to_numpy().reshape(horizon, d)
        scales = log.releases["scale"].to_numpy().reshape(horizon, d)
        for arm in range(3):
            rounds = np.flatnonzero(log.arrays.action == arm)
            x = np.stack([log.arrays.context[f"x{k}_{arm}"][rounds] for k in range(1, d + 1)], axis=1)
            sums = np.cumsum(x * log.arrays.reward[rounds, None], axis=0)
            noise = values[rounds] - sums
            known: dict[tuple[int, int, float], np.ndarray] = {}
            for count in range(1, rounds.size + 1):
                nodes = nodes_with_scales(design, count, horizon, d)
                fresh = [node for node in nodes if node not in known]
                assert len(fresh) == 1, "one new node a count"
                rest = sum((known[node] for node in nodes if node in known), np.zeros(d))
                known[fresh[0]] = noise[count - 1] - rest
                assert scales[rounds[count - 1]] == pytest.approx(np.full(d, fresh[0][2]), rel=1e-9)
                draws.append(known[fresh[0]] / fresh[0][2])
    sample = np.array(draws)
    law = stats.norm if design.delta > 0.0 else stats.laplace
    for k in range(d):
        assert stats.kstest(sample[:, k], law.cdf).pvalue > 1e-4
    for first, second in itertools.combinations(range(d), 2):
        assert abs(stats.spearmanr(sample[:, first], sample[:, second]).statistic) < 4.5 / math.sqrt(
            len(sample)
        )


@pytest.mark.parametrize("lam", [1.0, 1e-6])
def test_the_running_inverse_stays_exact(lam: float) -> None:
    """100,000 rounds of rank-one updates against one inversion at the end."""
    horizon = 100_000
    rng = np.random.default_rng(11)
    given = rng.normal(size=(horizon, 1, 4)) * np.array([1.0, 0.3, 0.1, 0.01])
    given /= np.linalg.norm(given, axis=2).max()
    theta = np.array([[0.4, 0.1, -0.3, 0.2]])
    environment = LinearArms(theta, 0.1, contexts=given)
    design = LinUCB(regularisation=lam, failure=0.1)
    program = design.program(environment, horizon, recording=True)
    state = np.zeros(program.state_shape)
    record = empty_record(horizon, 1, True, 4)
    results = Results(np.zeros((1, 1, 1, 1, 3)), np.zeros((1, 0)), np.zeros(1), record)
    stream = np.random.Generator(np.random.SFC64(1))
    program.entry(program.tables, program.world(environment, horizon), stream, state, results)
    x, y = given[:, 0], record.reward
    V = lam * np.eye(4) + x.T @ x
    inverse = state[_INVERSE : _INVERSE + 4, :4]
    exact = np.linalg.inv(V)
    assert np.abs(inverse - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(inverse, inverse.T)
    assert state[_LOG_DET, 0] == pytest.approx(np.linalg.slogdet(V)[1] - 4 * math.log(lam), rel=1e-12)
    assert state[_THETA, :4] == pytest.approx(exact @ (x.T @ y), rel=1e-9)


def test_overridden_rounds_are_learnt_from() -> None:
    log = Mixture(LinUCB(), exploration=0.3).run(ORTHANT, 300, rng=5)
    bands = prediction_bands(log)
    proposal = np.argmax(bands.center + bands.width, axis=1)
    propensity = 0.1 + 0.7 * (proposal == log.arrays.action)
    assert log.arrays.propensity == pytest.approx(propensity)
    assert 0.1 < np.mean(proposal != log.arrays.action) < 0.3


def test_bands_need_a_linear_design() -> None:
    with pytest.raises(InvalidForLog, match="collected by Uniform, not by LinUCB or LinPriv"):
        prediction_bands(Uniform().run(ORTHANT, 20, rng=0))


# --- what one reward can move ---


def released_sums(
    design: LinPriv, changed: int | None, d: int, horizon: int
) -> tuple[np.ndarray, np.ndarray]:
    """Released sums of one arm whose rewards are all 0 but, maybe, a 1 in the round `changed` (from 0)."""
    diagonal, across = np.full(d, 1.0 / math.sqrt(d)), np.zeros(d)
    across[:2] = math.sqrt(0.5), -math.sqrt(0.5)
    contexts = np.tile(across, (horizon, 1, 1))
    contexts[0 if changed is None else changed, 0] = diagonal
    theta = np.zeros((1, d)) if changed is None else diagonal[None]
    log = design.run(LinearArms(theta, 0.0, contexts=contexts), horizon, rng=1)
    assert log.arrays.reward.sum() == pytest.approx(float(changed is not None))
    table = log.releases
    assert len(table) == horizon * d
    return tuple(table[name].to_numpy().reshape(horizon, d) for name in ("value", "scale"))  # type: ignore[return-value]


@pytest.mark.parametrize("horizon", [1, 7, 8, 33])
@pytest.mark.parametrize(
    "design",
    [
        LinPriv(epsilon=0.7),
        LinPriv(epsilon=0.7, counter="binary"),
        LinPriv(epsilon=0.7, delta=1e-3, noise="gaussian"),
        LinPriv(epsilon=0.7, calibration="published", dimension=4),
    ],
    ids=["hybrid", "binary", "gaussian", "published"],
)
def test_a_reward_costs_what_the_guarantee_says(design: LinPriv, horizon: int) -> None:
    """With the same noise, the node sums of neighbours differ by x: over all nodes that is the guarantee."""
    d = 4
    plain, scales = released_sums(design, None, d, horizon)
    losses = []
    for changed in range(horizon):
        moved, _ = released_sums(design, changed, d, horizon)
        nodes: dict[tuple[int, int, float], np.ndarray] = {}
        for count in range(1, horizon + 1):
            parts = nodes_with_scales(design, count, horizon, d)
            fresh = [node for node in parts if node not in nodes]
            difference = moved[count - 1] - plain[count - 1]
            nodes[fresh[0]] = difference - sum((nodes[node] for node in parts if node in nodes), np.zeros(d))
            assert scales[count - 1] == pytest.approx(np.full(d, fresh[0][2]), rel=1e-9)
        if design.delta > 0.0:
            losses.append(sum(np.sum((x / node[2]) ** 2) for node, x in nodes.items()))
        else:
            losses.append(sum(np.abs(x).sum() / node[2] for node, x in nodes.items()))
    guarantee = design.guarantee(horizon, 1)
    if design.delta > 0.0:
        levels = horizon.bit_length()
        assert max(losses) == pytest.approx(levels / normal_scale(0.7, 1e-3, levels) ** 2, rel=1e-9)
        assert (guarantee.epsilon, guarantee.delta) == (0.7, 1e-3)
    else:
        assert max(losses) <= guarantee.epsilon * (1 + 1e-9)
        assert guarantee.delta == 0.0
        assert guarantee.epsilon == pytest.approx(0.7 * (2.0 if design.calibration == "published" else 1.0))
        tight = design.counter == "binary" or horizon == 33
        assert max(losses) > guarantee.epsilon * (1 - 1e-9 if tight else 0.4)
