"""LinUCB and LinPriv: parameters, guarantees, choice of the noise, refusals, runs and replicates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.designs import Uniform
from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_noise import noise_bounds, noise_law
from adaptinf.designs.contextual.ridge_kernel import _choose, _update
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import GAUSSIAN, LAPLACE, Buffer, Recorder
from adaptinf.privacy.real_mechanisms import analytic_scale
from adaptinf.privacy.tree_sums import noise_nodes
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.simulation.environments.vector_arms import LinearArms

THETA = np.array([[0.6, 0.2, 0.1], [0.1, 0.7, 0.3], [0.3, 0.3, 0.3]])
ORTHANT = LinearArms(THETA, contexts="orthant", rewards="bernoulli")


# --- parameters and guarantees ---


def test_every_bad_parameter_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        LinPriv(
            epsilon=math.nan,
            delta=1.0,
            calibration="mine",
            noise="cauchy",
            counter="tree",
            noise_width="none",
            failure=0.0,
            regularisation=0.0,
            bound=-1.0,
            dimension=0,
        )
    message = str(caught.value)
    names = ("epsilon", "delta", "calibration", "noise must", "counter", "noise_width", "failure")
    for name in (*names, "regularisation", "bound", "dimension"):
        assert name in message
    with pytest.raises(ParameterError, match=r"regularisation(.|\n)*failure(.|\n)*noise_scale(.|\n)*bound"):
        LinUCB(regularisation=-1.0, failure=2.0, noise_scale=-0.1, bound=math.inf)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"noise": "gaussian"}, "delta must be above 0 if the noise is normal"),
        ({"noise": "laplace", "delta": 1e-6}, "delta must be 0 with Laplace noise"),
        ({"calibration": "published", "delta": 1e-6}, "must be omitted"),
        ({"calibration": "published", "counter": "binary"}, "must be omitted"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"delta": -1e-9}, "delta must be at least 0"),
    ],
)
def test_bad_combinations(parameters: dict[str, object], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        LinPriv(**{"epsilon": 1.0, **parameters})  # type: ignore[arg-type]


def test_guarantees() -> None:
    assert LinUCB().guarantee(100, 3) is None
    pure = LinPriv(epsilon=0.5).guarantee(100, 3)
    assert (pure.epsilon, pure.delta, pure.unit, pure.model, pure.notion) == (
        0.5,
        0.0,
        "reward",
        "central",
        "standard",
    )
    normal = LinPriv(epsilon=0.5, delta=1e-5, noise="gaussian").guarantee(100, 3)
    assert (normal.epsilon, normal.delta) == (0.5, 1e-5)
    published = LinPriv(epsilon=0.5, calibration="published", dimension=9).guarantee(100, 3)
    assert published.epsilon == pytest.approx(1.5)
    assert "sqrt(d)" in published.reasons[0]
    with pytest.raises(ParameterError, match="dimension must be given"):
        LinPriv(epsilon=0.5, calibration="published").guarantee(100, 3)


def test_a_run_knows_its_dimension() -> None:
    log = LinPriv(epsilon=0.5, calibration="published").run(ORTHANT, 50, rng=0)
    assert log.guarantee is not None
    assert log.guarantee.epsilon == pytest.approx(0.5 * math.sqrt(3.0))
    assert log.design is not None
    assert log.design.parameters["dimension"] == 3
    assert log.noise == "simulation"
    assert log.propensity_status == "absent"
    assert log.feedback_rounds == 49
    plain = LinUCB().run(ORTHANT, 50, rng=0)
    assert plain.guarantee is None
    assert plain.noise is None
    assert set(plain.arrays.propensity) == {1.0}


def test_the_smaller_noise_is_taken() -> None:
    """A tiny delta asks for more normal noise than sqrt(d) times Laplace noise is."""
    horizon = 1000
    for dimension, delta in ((5, 1e-5), (1, 1e-300)):
        laplace = noise_law(1.0, 0.0, "smallest", "hybrid", dimension, horizon)
        normal = noise_law(1.0, delta, "gaussian", "hybrid", dimension, horizon)
        smallest = noise_law(1.0, delta, "smallest", "hybrid", dimension, horizon)
        assert not laplace.gaussian
        assert normal.node == pytest.approx(analytic_scale(1.0, delta, math.sqrt(10)))
        # 1023 = 10 trunk noises and 9 nodes of a block of level 9; 10 nodes of a tree of 10 levels
        scale = 2.0 * math.sqrt(dimension)
        assert laplace.largest_variance(horizon) == pytest.approx(
            2.0 * (10 * scale**2 + 9 * (9 * scale) ** 2)
        )
        assert normal.largest_variance(horizon) == pytest.approx(10 * normal.node**2)
        assert smallest == min(laplace, normal, key=lambda law: law.largest_variance(horizon))
        assert smallest.gaussian == (dimension == 5)
        design = LinPriv(epsilon=1.0, delta=delta, dimension=dimension)
        assert design.guarantee(horizon, 2).delta == (delta if dimension == 5 else 0.0)
        assert LinPriv(epsilon=1.0, delta=delta).guarantee(horizon, 2).delta == delta


@pytest.mark.parametrize("law", ["hybrid", "binary", "gaussian"])
def test_noise_stays_below_its_bounds(law: str) -> None:
    """Bounds at a failure of .3, for all counts to 200 at once; they are not loose by much either."""
    dimension, horizon, failure, runs = 3, 200, 0.3, 4000
    delta = 1e-4 if law == "gaussian" else 0.0
    noise = noise_law(2.0, delta, "smallest", law if delta == 0.0 else "hybrid", dimension, horizon)
    assert noise.gaussian == (law == "gaussian")
    bounds = noise_bounds(noise, dimension, horizon, math.log(failure))
    assert np.all(np.diff(bounds[-1, 1:]) > 0.0)
    rng = np.random.default_rng(12)
    missed, close = np.zeros(runs, bool), np.zeros(runs, bool)
    known: dict[tuple[int, int], np.ndarray] = {}
    for count in range(1, horizon + 1):
        # a node is told by its first item and level; blocks of the hybrid counter begin after 2^k
        top = count.bit_length() - 1
        parts, start = [], 0
        if noise.counter == "hybrid":
            parts, start = [(-1, level) for level in range(top + 1)], 1 << top
        for level in reversed(range(top + 1)):
            if (count - (1 << top) if noise.counter == "hybrid" else count) >> level & 1:
                parts.append((start, level))
                start += 1 << level
        trunk_terms, node_terms, level = noise_nodes(noise.counter, count)
        assert len(parts) == trunk_terms + node_terms
        for part in parts:
            if part not in known:
                scale = noise.trunk if part[0] == -1 else noise.node * level
                draw = rng.normal if noise.gaussian else rng.laplace
                known[part] = draw(0.0, scale, (runs, dimension))
        norms = np.linalg.norm(sum(known[part] for part in parts), axis=1)
        bound = bounds[count.bit_length() - 1, count.bit_count()]
        missed |= norms > bound
        close |= norms > 0.7 * bound
    assert missed.mean() < failure
    assert close.mean() > failure


# --- environments ---


def test_refused_before_anything_is_collected() -> None:
    design = LinPriv(epsilon=1.0)
    long = LinearArms(THETA, contexts=np.full((50, 3, 3), 0.6))
    with pytest.raises(ParameterError, match=r"length of at most 1, but the longest has 1\.03923"):
        design.run(long, 50)
    assert LinUCB().run(long, 50, rng=0).n_rounds == 50
    unit = np.full((50, 3, 3), 1.0 / math.sqrt(3.0))
    assert design.run(LinearArms(THETA, contexts=unit), 50, rng=0).n_rounds == 50
    with pytest.raises(ParameterError, match="requires context vectors"):
        design.run(BernoulliArms([0.5, 0.5]), 50)
    with pytest.raises(ParameterError, match="requires context vectors"):
        LinUCB().replicate(BernoulliArms([0.5, 0.5]), 50, 2)
    with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
        design.run(LinearArms(THETA, 0.1, contexts="sphere", rewards="uniform"), 50)
    with pytest.raises(ParameterError, match="dimension is 4, but contexts have 3 coordinates"):
        LinPriv(epsilon=1.0, dimension=4).run(ORTHANT, 50)
    both = LinearArms(THETA, 5.0, contexts=np.full((50, 3, 3), 0.6), rewards="uniform")
    with pytest.raises(ParameterError, match=r"rewards must lie(.|\n)*length of at most 1"):
        design.run(both, 50)


def test_unbounded_rewards_are_clipped_where_they_enter() -> None:
    x = np.full((40, 1, 1), 1.0)
    design = LinPriv(epsilon=1e9)
    log = design.run(LinearArms([[0.5]], 3.0, contexts=x), 40, rng=1)
    assert log.arrays.reward.min() < 0.0 < 1.0 < log.arrays.reward.max()
    sums = np.cumsum(np.clip(log.arrays.reward, 0.0, 1.0))
    assert log.releases["value"].to_numpy() == pytest.approx(sums, abs=1e-6)


# --- noise from outside ---


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_can_be_asked_for_and_handed_in(delta: float) -> None:
    """As a live trial does: an update's noises are listed, drawn elsewhere, and then used in that order."""
    design, dimension, horizon = LinPriv(epsilon=1.0, delta=delta), 3, 16
    program = design.program(ORTHANT, horizon, recording=True)
    tables, state = program.tables, np.zeros(program.state_shape)
    recorder = Recorder(np.zeros(8), np.zeros(8, dtype=np.int64), np.zeros(1, dtype=np.int64))
    buffer = Buffer(np.zeros(0), np.zeros(8), np.zeros(2, dtype=np.int64))
    rng = np.random.default_rng(6)
    sums, pulls, fresh = np.zeros((3, dimension)), np.zeros(3, dtype=int), np.zeros((horizon, dimension))
    for step in range(horizon):
        context = np.abs(rng.normal(size=9)) / 3.0
        arm = _choose(tables, state, context, buffer)
        recorder.asked[0] = buffer.positions[1] = 0
        _update(tables, state.copy(), context, arm, 0.5, recorder)
        assert recorder.asked[0] == dimension
        assert set(recorder.laws[:dimension]) == {GAUSSIAN if delta else LAPLACE}
        buffer.noises[:dimension] = fresh[step] = recorder.scales[:dimension] * rng.normal(size=dimension)
        _update(tables, state, context, arm, 0.5, buffer)
        assert buffer.positions[1] == dimension
        sums[arm] += 0.5 * context.reshape(3, dimension)[arm]
        pulls[arm] += 1
        rows = tables.released[step * dimension : (step + 1) * dimension]
        assert rows[:, :3].tolist() == [[step + 1.0, k, arm] for k in range(dimension)]
        assert rows[:, 4].tolist() == recorder.scales[:dimension].tolist()
        if pulls[arm] == 1:
            assert rows[:, 3] == pytest.approx(sums[arm] + fresh[step], rel=1e-12)
    assert pulls.max() > 1


# --- runs ---


@pytest.mark.parametrize("design", [LinUCB(), LinPriv(epsilon=20.0), LinPriv(epsilon=20.0, delta=1e-6)])
def test_runs_are_replicates(design: LinUCB | LinPriv) -> None:
    sims = design.replicate(ORTHANT, 200, 66, rng=4)
    for run, log in enumerate(design.logs(ORTHANT, 200, 66, rng=4)):
        assert np.array_equal(sims.pulls[run], np.bincount(log.arrays.action, minlength=3))
        assert sims.sums[run].sum() == pytest.approx(log.arrays.reward.sum())
    assert np.array_equal(sims.regret, design.replicate(ORTHANT, 200, 66, rng=4, n_jobs=2).regret)


def test_ties_go_to_the_first_arm() -> None:
    same = LinearArms(np.zeros((3, 2)), 0.1, contexts=np.full((1, 3, 2), 0.5), order="resampled")
    assert LinUCB().run(same, 1, rng=0).arrays.action.tolist() == [0]


@pytest.mark.slow
def test_they_learn() -> None:
    horizon = 20_000
    plain = LinUCB().replicate(ORTHANT, horizon, 16, rng=5).regret.mean()
    private = LinPriv(epsilon=20.0).replicate(ORTHANT, horizon, 16, rng=5).regret.mean()
    normal = LinPriv(epsilon=20.0, delta=1e-6).replicate(ORTHANT, horizon, 16, rng=5).regret.mean()
    uniform = Uniform().replicate(ORTHANT, horizon, 16, rng=5).regret.mean()
    assert plain < 0.12 * uniform
    assert plain < normal < private < 0.5 * uniform
