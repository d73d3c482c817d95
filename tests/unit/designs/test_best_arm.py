"""Best-arm designs: schedules, guarantees, recommendations, and what is refused."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.datasets import fair

from adaptinf.designs.best_arm.fixed_budget import (
    SequentialHalving,
    halving_sizes,
    max_det_schedule,
    optimal_sizes,
    reserve,
)
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss, ODLinBAI
from adaptinf.errors import ParameterError
from adaptinf.log import read_log
from adaptinf.privacy.real_mechanisms import analytic_scale, classical_scale, gaussian_delta
from adaptinf.simulation.environments import (
    BernoulliArms,
    Classification,
    FiniteContext,
    LinearArms,
    UniformArms,
)

FEATURES = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5]]
MEANS = [0.9, 0.45, 0.2, 0.55]
ARMS = BernoulliArms(MEANS)
DESIGNS = [
    DPBAI(epsilon=2.0, features=FEATURES),
    DPBAI(epsilon=2.0, features=FEATURES, max_det=False),
    DPBAIGauss(epsilon=2.0, delta=1e-3, features=FEATURES),
    DPOD(epsilon=2.0, features=FEATURES),
    ODLinBAI(features=FEATURES),
    SequentialHalving(),
]


# --- schedules ----------------------------------------------------------------------------------------------


def test_the_equations_for_many_arms() -> None:
    found = max_det_schedule(10_000, 16)
    assert found.ratio == pytest.approx(27.65, abs=0.005)
    assert (found.fast_phases, found.phases) == (3, 8)
    assert found.sizes.tolist() == [10_000, 423, 77, 32, 16, 8, 4, 2, 1]
    assert reserve(found, 16) == 3 * 16 + 5 * 64


def test_the_equations_for_the_papers_experiment() -> None:
    found = max_det_schedule(30, 2)
    assert found.ratio == pytest.approx(29 ** (1 / math.log(2)))
    assert (found.fast_phases, found.phases, found.sizes.tolist()) == (1, 1, [30, 1])
    assert reserve(found, 2) == 2


@pytest.mark.parametrize(("n_arms", "dimension"), [(2, 2), (2, 1), (50, 1), (3, 3), (4, 4), (9, 6), (64, 16)])
def test_all_arms_enter_the_first_phase_and_one_leaves_the_last(n_arms: int, dimension: int) -> None:
    found = max_det_schedule(n_arms, dimension)
    assert found.sizes[0] == n_arms
    assert found.sizes[-1] == 1
    assert (np.diff(found.sizes) < 0).all()
    assert found.sizes.size == found.phases + 1 >= 2


def test_one_dimension_has_one_phase_and_an_infinite_ratio() -> None:
    found = max_det_schedule(50, 1)
    assert (found.ratio, found.sizes.tolist()) == (math.inf, [50, 1])
    assert max_det_schedule(2, 1).ratio == 2.0
    assert optimal_sizes(50, 1).tolist() == [50, 1]


def test_halving_takes_ceil_log2_rounds() -> None:
    for n in range(2, 200):
        assert halving_sizes(n).size - 1 == math.ceil(math.log2(n))
        assert optimal_sizes(300, n).size - 1 == math.ceil(math.log2(n))


def test_a_schedule_needs_two_arms_and_a_dimension() -> None:
    with pytest.raises(ParameterError, match=r"n_arms must be[\s\S]*dimension must be"):
        max_det_schedule(1, 0)


@pytest.mark.parametrize(("n_arms", "dimension"), [(7, 1), (30, 2), (9, 3), (4, 4), (17, 5), (40, 6)])
def test_no_budget_is_exceeded_and_none_is_left_unused(n_arms: int, dimension: int) -> None:
    features = np.random.default_rng(n_arms).normal(size=(n_arms, dimension))
    env = BernoulliArms(np.linspace(0.2, 0.8, n_arms))
    designs: list[Any] = [DPBAI(epsilon=0.5, features=features, max_det=keep) for keep in (True, False)]
    designs += [DPOD(epsilon=0.5, features=features), ODLinBAI(features=features), SequentialHalving()]
    for design in designs:
        least = design._least_budget(n_arms)
        for horizon in (least, least + 1, least + 50, 3 * least):
            sims = design.replicate(env, horizon, replications=64, rng=1)
            np.testing.assert_array_equal(sims.pulls.sum(axis=1), horizon)
            decided = sims.released["decided_at"]
            assert (decided <= horizon).all()
            assert (sims.recommended >= 0).all()


# --- runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_the_best_arm_is_named(design: Any) -> None:
    sims = design.replicate(ARMS, horizon=600, replications=512, rng=0)
    assert (sims.recommended == 0).mean() > 0.95
    log = design.run(ARMS, horizon=600, rng=0)
    assert log.recommended == sims.recommended[0]
    np.testing.assert_array_equal(
        np.bincount(log.arrays.action, minlength=4), design.replicate(ARMS, 600, 64, rng=0).pulls[0]
    )
    decided = int(sims.released["decided_at"][0, 0])
    phases = np.array(log.phases)[log.arrays.phase]
    np.testing.assert_array_equal(phases == "leftover", np.arange(600) >= decided)
    assert set(log.arrays.action[decided:].tolist()) <= {log.recommended}
    assert log.feedback_rounds == decided


def test_what_the_floors_leave_over_pulls_the_recommended_arm() -> None:
    """17 rounds for 5 arms: 1 pull of 5, 1 of 3 and 2 of 2 arms, and 5 rounds more."""
    sims = SequentialHalving().replicate(BernoulliArms([0.5] * 5), horizon=17, replications=64, rng=2)
    assert (sims.released["decided_at"] == 12).all()
    named = sims.pulls[np.arange(64), sims.recommended]
    np.testing.assert_array_equal(named, 1 + 1 + 2 + 5)


def test_ties_are_broken_at_random() -> None:
    """Two arms, one pull each, both pay 1: every arm is named in half of the runs."""
    for design in (SequentialHalving(), ODLinBAI(features=np.eye(2))):
        sims = design.replicate(BernoulliArms([1.0, 1.0]), horizon=4, replications=4096, rng=3)
        assert abs((sims.recommended == 0).mean() - 0.5) < 4.0 * 0.5 / 64.0


def test_labels_are_recommended() -> None:
    log = DPBAI(epsilon=1e6, features=np.eye(2)).run(UniformArms([0.0, 0.5], [0.5, 1.0]), 50, rng=0)
    assert log.recommended == 1


def test_a_log_survives_a_file(tmp_path: Path) -> None:
    design = DPBAI(epsilon=2.0, features=FEATURES)
    log = design.run(ARMS, horizon=100, rng=0)
    log.to_parquet(tmp_path / "log.parquet")
    again = read_log(tmp_path / "log.parquet")
    assert again.recommended == log.recommended
    assert again.design == log.design
    assert DPBAI(**again.design.parameters) == design
    assert pickle.loads(pickle.dumps(design)) == design
    assert hash(design) == hash(DPBAI(epsilon=2.0, features=np.array(FEATURES)))
    assert repr(design) == (
        "DPBAI(max_det=True, calibration='corrected', epsilon=2.0, features=<4 arms, 2 coordinates>)"
    )


@pytest.mark.slow
def test_many_arms_and_dimensions_run_in_seconds() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2_000, 32))
    means = features @ rng.normal(size=32)
    means = (means - means.min()) / np.ptp(means)
    log = DPBAI(epsilon=1.0, features=np.column_stack([features, np.ones(2_000)])).run(
        BernoulliArms(means), horizon=50_000, rng=0
    )
    assert means[log.recommended] > 0.9


def test_rows_of_a_labelled_data_set_will_do_without_contexts() -> None:
    data = fair.load_pandas().data.assign(much=lambda data: data["affairs"] > 0)
    environment = Classification(data, "much")
    assert environment.arms == (False, True)
    assert environment.dimension == 0
    assert SequentialHalving().run(environment, 600, rng=9).recommended is False
    with pytest.raises(ParameterError, match="Classification has context vectors"):
        SequentialHalving().run(Classification(data, "much", "age"), 600, rng=9)


# --- guarantees ---------------------------------------------------------------------------------------------


def test_guarantees() -> None:
    for design in [*DESIGNS[:2], DESIGNS[3]]:
        guarantee = design.guarantee(600, 4)
        assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (2.0, 0.0, "reward")
    assert DESIGNS[2].guarantee(600, 4).delta == 1e-3
    for design in DESIGNS[4:]:
        assert design.guarantee(600, 4) is None


def test_the_published_normal_noise_is_judged_by_what_it_gives() -> None:
    proved = DPBAIGauss(epsilon=0.5, delta=1e-5, features=FEATURES, calibration="published")
    assert proved._noise() == pytest.approx(classical_scale(0.5, 1e-5))
    assert proved._noise() > analytic_scale(0.5, 1e-5)
    assert proved.guarantee(600, 4).delta == 1e-5
    for epsilon in (12.0, 20.0):
        beyond = DPBAIGauss(epsilon=epsilon, delta=1e-5, features=FEATURES, calibration="published")
        guarantee = beyond.guarantee(600, 4)
        assert guarantee.delta == gaussian_delta(epsilon, math.sqrt(2 * math.log(1.25e5)) / epsilon) > 1e-5
        assert "proved only for epsilon below 1" in guarantee.reasons[0]
        corrected = DPBAIGauss(epsilon=epsilon, delta=1e-5, features=FEATURES)
        assert gaussian_delta(epsilon, corrected._noise()) == pytest.approx(1e-5, rel=1e-9)
        assert corrected._noise() > beyond._noise()


# --- refusals -----------------------------------------------------------------------------------------------


def test_everything_wrong_with_the_parameters_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        DPBAI(epsilon=0.0, features=[[1.0, 1.0], [1.0, 1.0]], max_det="yes", calibration="free")
    for part in ("epsilon", "span only 1", "arms 0 and 1", "max_det", "calibration"):
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match=r"delta must be below 1[\s\S]*features must be finite"):
        DPBAIGauss(epsilon=1.0, delta=1.0, features=[[np.nan], [1.0]])
    with pytest.raises(ParameterError, match="at least 2 arms"):
        ODLinBAI(features=[[1.0]])
    with pytest.raises(ParameterError, match="delta must be above 0"):
        DPBAIGauss(epsilon=1.0, delta=0.0, features=FEATURES)
    with pytest.raises(ParameterError, match="epsilon"):
        DPOD(epsilon=math.inf, features=FEATURES)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_a_budget_below_one_pull_a_phase_is_refused(design: Any) -> None:
    least = design._least_budget(4)
    assert design.run(ARMS, least, rng=0).n_rounds == least
    with pytest.raises(ParameterError, match=f"horizon must be at least {least}, got {least - 1}"):
        design.run(ARMS, least - 1, rng=0)


def test_least_budgets() -> None:
    assert [design._least_budget(4) for design in DESIGNS] == [4, 4, 4, 4, 4, 8]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_environments_that_do_not_fit_are_refused(design: Any) -> None:
    contexts = FiniteContext(means=[MEANS, MEANS], probabilities=[0.5, 0.5])
    with pytest.raises(ParameterError, match="without using contexts; FiniteContext has 2"):
        design.run(contexts, 600)
    vectors = LinearArms(np.eye(4), contexts="orthant", rewards="bernoulli")
    with pytest.raises(ParameterError, match="LinearArms has context vectors"):
        design.run(vectors, 600)
    if not isinstance(design, SequentialHalving):
        with pytest.raises(ParameterError, match=r"features describe 4 arms, but the environment has 3"):
            design.run(BernoulliArms([0.1, 0.2, 0.3]), 600)
    if design.needs.unit_rewards:
        with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
            design.run(UniformArms([0.0] * 4, [1.1] * 4), 600)
