"""LDPLinear: what a report tells, its noise, what is released, and everything that is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.datasets import anes96

import adaptinf as ai
from adaptinf.designs.arms.uniform import Uniform
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.designs.local.local_linear_kernel import _choose, _update, report_radius
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import LAPLACE, Buffer, Recorder, generator
from adaptinf.simulation.environments import BernoulliArms, Classification, LinearArms
from adaptinf.simulation.environments.cube_contexts import UnitCube
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = SmoothArms(3, 2)


def test_guarantees_are_those_of_a_report() -> None:
    design = LDPLinear(epsilon=2.0)
    whole, rewards = design.guarantee(1000, 3), design.reward_guarantee(1000, 3)
    assert (whole.epsilon, whole.delta, whole.unit, whole.model) == (2.0, 0.0, "record", "local")
    assert (whole.notion, rewards.notion) == ("anticipating", "standard")
    assert "the participant's own arm" in whole.reasons[0]
    assert (rewards.epsilon, rewards.unit, rewards.model) == (1.0, "reward", "local")
    log = design.run(ARMS, 50, rng=0)
    assert log.guarantee == whole
    assert log.reward_guarantee == rewards
    assert log.noise == "simulation"
    assert log.feedback_rounds == 49
    assert log.propensity_status == "exact"


@numba.njit
def _one_more(tables: Any, state: Any, context: Any, arm: int, reward: float, source: Any) -> None:
    _choose(tables, state, context, source)
    _update(tables, state, context, arm, reward, source)


def reports_of(design: LDPLinear, theta: np.ndarray, t: int, record: Any, source: Any) -> np.ndarray:
    """What one participant reports on each arm in round t, from the step that parameters take."""
    tables = design.tables(3, 2, horizon=10**9)
    p = theta.shape[1]
    state = np.zeros((4, 2 + 2 * p))
    state[0, 0], state[1:, 0], state[1:, 2 : 2 + p] = t, 5.0, theta
    x, arm, y = record
    _one_more(tables, state, np.array(x), arm, y, source)
    information = state[1:, 0]
    step = tables.reach / tables.squares[0] / np.sqrt(information)
    return (theta - state[1:, 2 : 2 + p]) / step[:, None]


def silent() -> Buffer:
    return Buffer(np.zeros(100), np.zeros(100), np.zeros(2, dtype=np.int64))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The norm that the noise has: the largest change on an arm, summed over arms."""
    return float(np.abs(one - other).max(axis=1).sum())


CORNERS = list(itertools.product([0.0, 0.5, 1.0], repeat=2))
REWARDS = [0.0, 0.3, 1.0, 7.0, -3.0]


@pytest.mark.parametrize(
    ("link", "intercept", "most", "by_reward"),
    [("identity", True, 2.0, 1.0), ("identity", False, 2.0, 1.0), ("logistic", True, 1.99999, 1.0)],
)
@pytest.mark.parametrize("warm_up", [0, 10])
def test_a_report_moves_by_two_with_the_record_and_by_one_with_the_reward(
    link: str, intercept: bool, most: float, by_reward: float, warm_up: int
) -> None:
    """In the greedy stage over all arms; in the warm-up the round decides the arm."""
    design = LDPLinear(epsilon=1.0, link=link, intercept=intercept, warm_up=warm_up, radius=99.0)
    p = 2 + int(intercept)
    seen, rewarded = [], []
    for seed in range(3):
        theta = np.random.default_rng(seed).normal(size=(3, p)) * 3.0 + np.eye(3, p) * 20.0 * (seed - 1)
        arms = [0] if warm_up else [0, 1, 2]
        records = list(itertools.product(CORNERS, arms, REWARDS))
        reports = [reports_of(design, theta, 0, record, silent()) for record in records]
        pairs = list(itertools.combinations(range(len(records)), 2))
        seen += [distance(reports[i], reports[j]) for i, j in pairs]
        rewarded += [distance(reports[i], reports[j]) for i, j in pairs if records[i][:2] == records[j][:2]]
        if warm_up:
            assert all((report[1:] == 0.0).all() for report in reports)
    assert max(seen) <= 2.0 + 1e-9
    assert max(seen) >= most - 1e-9
    assert max(rewarded) == pytest.approx(by_reward)
    scale = design.tables(3, 2, 10).scales[0]
    assert scale == pytest.approx(2.0 / design.epsilon)
    assert design.reward_guarantee(10, 3).epsilon == pytest.approx(by_reward / scale)


@pytest.mark.parametrize(("intercept", "p"), [(True, 3), (False, 2)])
def test_the_radius_asks_for_p_plus_one_laplace_draws_of_scale_two_over_epsilon(
    intercept: bool, p: int
) -> None:
    auxiliary = (ARMS.auxiliary(20, epsilon=5.0, rng=0), ARMS.auxiliary(20, epsilon=0.5, rng=0))
    design = LDPLinear(epsilon=4.0, intercept=intercept, auxiliary=auxiliary)
    tables = design.tables(3, 2, horizon=100)
    np.testing.assert_allclose(tables.scales, [0.4, 4.0, 0.5])
    ask = numba.njit(lambda source, count, scale: report_radius(source, count, scale))
    recorder = Recorder(np.zeros(9), np.full(9, -1), np.zeros(1, dtype=np.int64))
    assert ask(recorder, tables.n_parameters + 1, tables.scales[-1]) == 0.0
    assert recorder.asked[0] == p + 1
    np.testing.assert_array_equal(recorder.laws[: p + 1], LAPLACE)
    np.testing.assert_allclose(recorder.scales[: p + 1], 2.0 / 4.0)
    held = Buffer(np.zeros(0), np.array([1.0, -2.0, 3.0]), np.zeros(2, dtype=np.int64))
    assert ask(held, 3, 99.0) == report_radius(held._replace(positions=np.zeros(2, np.int64)), 3, 9.0) == 6.0


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_noise_has_the_density_that_the_privacy_needs(epsilon: float) -> None:
    """exp(-epsilon max abs(v) / 2): the maximum is Gamma(p) and the rest of v is uniform below it."""
    design = LDPLinear(epsilon=epsilon, warm_up=0, radius=1e6, step=1e-6)
    source = generator(np.random.SeedSequence(7))
    n, p = 6_000, 3
    idle = ((0.5, 0.5), 1, 0.5)
    noise = np.array([reports_of(design, np.zeros((3, p)), 0, idle, source) for _ in range(n)])
    largest = np.abs(noise).max(axis=2)
    for arm in range(3):
        assert stats.kstest(largest[:, arm], stats.gamma(p, scale=2.0 / epsilon).cdf).pvalue > 1e-5
        at = np.abs(noise[:, arm]).argmax(axis=1)
        assert stats.chisquare(np.bincount(at, minlength=p)).pvalue > 1e-5
        top = noise[np.arange(n), arm, at]
        assert stats.binomtest(int((top > 0).sum()), n).pvalue > 1e-5
        others = np.array([np.delete(v, k) / abs(v[k]) for v, k in zip(noise[:, arm], at, strict=True)])
        for column in others.T:
            assert stats.kstest(column, "uniform", args=(-1.0, 2.0)).pvalue > 1e-5
        assert abs(stats.spearmanr(*others.T).statistic) < 4.5 / math.sqrt(n)
    for one, other in itertools.combinations(range(3), 2):
        assert abs(stats.spearmanr(largest[:, one], largest[:, other]).statistic) < 4.5 / math.sqrt(n)
    variance = 4 * (p + 1) * (p + 2) / (3 * epsilon**2)
    assert (noise**2).mean() == pytest.approx(variance, rel=0.08)
    assert design.tables(3, 2, 10).squares[0] == pytest.approx(p * (1 + variance))


def test_arms_take_turns_in_the_warm_up_and_the_best_predictor_is_pulled_after_it() -> None:
    log = LDPLinear(epsilon=1024.0, warm_up=100).run(ARMS, 3_000, rng=1)
    arrays = log.arrays
    assert log.phases == ("warm-up", "greedy")
    assert arrays.phase is not None
    assert arrays.propensities is not None
    np.testing.assert_array_equal(arrays.phase, np.repeat([0, 1], [100, 2_900]))
    np.testing.assert_array_equal(arrays.action[:100], np.arange(100) % 3)
    np.testing.assert_array_equal(arrays.propensities[np.arange(3_000), arrays.action], 1.0)
    np.testing.assert_array_equal(arrays.propensities.sum(axis=1), 1.0)
    table = log.releases.pivot(index="group", columns="name", values="value")
    points = np.stack([arrays.context["x1"], arrays.context["x2"]], axis=1)
    names = ["coefficient_x1", "coefficient_x2"]
    best = (points[-200:] @ table[names].to_numpy().T + table["intercept"].to_numpy()).argmax(axis=1)
    assert (best == arrays.action[-200:]).mean() > 0.95
    assert set(log.releases["scale"]) == {2.0 / 1024.0}
    assert set(log.releases["mechanism"]) == {"noisy gradients"}


@pytest.mark.parametrize(
    ("epsilon", "n", "rounds"), [(1.0, 80_000, 5_232), (1024.0, 80_000, 855), (0.001, 500, 500), (1.0, 1, 1)]
)
def test_the_default_warm_up_grows_with_the_noise(epsilon: float, n: int, rounds: int) -> None:
    """3 ceil(sqrt(n) (1 + s)), s = sqrt(80 / 3) / epsilon, and never more than there are rounds."""
    sims = LDPLinear(epsilon=epsilon).replicate(ARMS, n, 1, rng=0)
    assert sims.released["warm_up"].ravel().tolist() == [rounds]
    s = math.sqrt(80 / 3) / epsilon
    assert rounds == min(n, 3 * math.ceil(math.sqrt(n) * (1 + s)))


@pytest.mark.parametrize("link", ["logistic", "identity"])
@pytest.mark.parametrize(
    "extreme",
    [
        {"epsilon": 1e-30},
        {"epsilon": 1e100},
        {"epsilon": 1e-30, "step": 1e3, "radius": 1e6},
        {"epsilon": 1e100, "step": 1e3, "radius": 1e6},
        {"epsilon": 1.0, "step": 1e-30, "radius": 1e-30},
    ],
)
def test_extreme_parameters_give_numbers_within_the_ball(link: str, extreme: dict[str, float]) -> None:
    design = LDPLinear(link=link, **extreme)  # type: ignore[arg-type]
    values = design.run(ARMS, 300, rng=12).releases["value"].to_numpy()
    table = values.reshape(3, 3)
    slopes = table[:, :2] / 2.0
    length = np.hypot(np.linalg.norm(slopes, axis=1), table[:, 2] + slopes.sum(axis=1))
    bound = extreme.get("radius", 4.0 if link == "logistic" else 1.0)
    assert (length > 0.0).all()
    assert (length <= bound * (1 + 1e-9)).all()


def test_run_is_the_first_replicate_and_workers_change_nothing() -> None:
    design = LDPLinear(epsilon=5.0)
    log = design.run(ARMS, 3_000, rng=8)
    sims = design.replicate(ARMS, 3_000, 70, rng=8)
    assert sims.pulls[0].tolist() == np.bincount(log.arrays.action, minlength=3).tolist()
    again = design.replicate(ARMS, 3_000, 70, rng=8, start=64)
    np.testing.assert_array_equal(again.regret, sims.regret[64:])


def test_learning_grows_with_epsilon() -> None:
    """Uniform choice has a regret of 8,744 here; no arm is a logistic function, though two are near one."""
    regrets = [
        LDPLinear(epsilon=e).replicate(ARMS, 20_000, 12, rng=2).regret.mean() for e in (0.1, 2.0, 1024.0)
    ]
    assert regrets[0] > 0.7 * 8_744
    assert regrets[0] > 1.2 * regrets[1] > 1.2 * 1.5 * regrets[2]
    assert regrets[2] < 0.2 * 8_744


@pytest.mark.parametrize("link", ["logistic", "identity"])
def test_a_linear_environment_is_learnt(link: str) -> None:
    environment = LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", shared=True, rewards="bernoulli")
    uniform = Uniform().replicate(environment, 20_000, 4, rng=3).regret.mean()
    for intercept in (True, False):
        design = LDPLinear(epsilon=64.0, link=link, intercept=intercept)
        assert design.replicate(environment, 20_000, 8, rng=3).regret.mean() < 0.15 * uniform


def test_good_auxiliary_data_help() -> None:
    logs = (ARMS.auxiliary(50_000, epsilon=8.0, rng=15),)
    without = LDPLinear(epsilon=1.0, warm_up=0).replicate(ARMS, 20_000, 16, rng=16).regret
    design = LDPLinear(epsilon=1.0, warm_up=0, auxiliary=logs)
    regret = design.replicate(ARMS, 20_000, 16, rng=16).regret
    error = math.hypot(without.std(ddof=1), regret.std(ddof=1)) / 4.0
    assert without.mean() - regret.mean() > 4.5 * error
    assert regret.mean() < 0.6 * without.mean()
    log = design.run(ARMS, 500, rng=17)
    assert log.guarantee is not None
    assert log.guarantee.epsilon == 1.0
    assert log.design is not None
    assert log.design.parameters["auxiliary"] == [{"n_rounds": 50_000, "epsilon": 8.0}]


def test_the_log_survives_storage_and_the_next_run(tmp_path: Any) -> None:
    first, second = LDPLinear(epsilon=5.0).logs(ARMS, 500, 2, rng=9)
    values = first.releases["value"].to_numpy()
    assert (values != second.releases["value"].to_numpy()).all()
    first.to_parquet(tmp_path / "log.parquet")
    pd.testing.assert_frame_equal(ai.read_log(tmp_path / "log.parquet").releases, first.releases)
    assert first.design is not None
    kept = {name: value for name, value in first.design.parameters.items() if name != "auxiliary"}
    assert LDPLinear(**kept) == LDPLinear(epsilon=5.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0, got 0.0"),
        ({"epsilon": math.inf}, "epsilon must be above 0"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": 1.0, "link": "probit"}, "link must be one of 'logistic', 'identity'"),
        ({"epsilon": 1.0, "intercept": None}, "intercept must be True or False, got None"),
        ({"epsilon": 1.0, "step": 0.0}, "step must be above 0"),
        ({"epsilon": 1.0, "warm_up": -1}, "warm_up, if given, must be a whole number of at least 0"),
        ({"epsilon": 1.0, "step": 1e4}, "step must be above 0 and at most 1000"),
        ({"epsilon": 1.0, "radius": -1.0}, "radius must be above 0"),
        ({"epsilon": 1.0, "radius": 1e7}, "radius must be above 0 and at most 1e"),
        ({"epsilon": 1.0, "auxiliary": [1]}, "auxiliary must be a tuple of AuxiliaryLog"),
    ],
)
def test_parameters_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LDPLinear(**arguments)


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(ParameterError) as error:
        LDPLinear(epsilon=-1.0, link="log", step=math.nan, warm_up=2.5, radius=0.0)  # type: ignore[arg-type]
    assert all(name in str(error.value) for name in ("epsilon", "link", "step", "warm_up", "radius"))


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (BernoulliArms([0.5, 0.4]), "requires context vectors"),
        (LinearArms(np.eye(2), rewards="normal", shared=True), r"contexts must lie in the cube \[0, 1\]\^2"),
        (LinearArms(np.eye(2), contexts="orthant"), "all arms must have the same context vector"),
        (SmoothArms(1, 2), "at least 2 arms"),
    ],
)
def test_environments_that_are_refused(environment: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LDPLinear(epsilon=1.0).run(environment, horizon=1, rng=0)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (SmoothArms(4, 2), r"auxiliary log 1: its arms are \[0, 1, 2, 3\]"),
        (SmoothArms(3, 1), "its contexts have 1 coordinates, but those of the trial have 2"),
    ],
)
def test_auxiliary_logs_that_do_not_fit_are_refused(arms: SmoothArms, message: str) -> None:
    design = LDPLinear(epsilon=1.0, auxiliary=(arms.auxiliary(20, rng=0),))
    with pytest.raises(ParameterError, match=message):
        design.run(ARMS, 10, rng=0)


def test_a_single_pass_over_labelled_rows() -> None:
    survey = anes96.load_pandas().data
    cube = UnitCube(low=[1, 18], high=[7, 100], names=["selfLR", "age"])
    environment = Classification(survey, "vote", ["selfLR", "age"], scaler=cube, order="shuffled")
    rows = len(survey)
    design = LDPLinear(epsilon=8.0)
    sims = design.replicate(environment, rows, 130, rng=7)
    assert np.array_equal(sims.regret, rows - sims.sums.sum(axis=1))
    log = design.run(environment, rows, rng=7)
    assert log.arrays.reward.sum() == sims.sums[0].sum()
    contexts = np.stack([log.arrays.context[name] for name in ("selfLR", "age")], axis=1)
    used = np.unique(contexts, axis=0, return_counts=True)
    there = np.unique(environment.contexts, axis=0, return_counts=True)
    assert np.array_equal(used[0], there[0])
    assert np.array_equal(used[1], there[1])
