"""Best-arm and locally private designs: input that does not fit is refused before anything is collected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.designs import (
    ABSE,
    DPBAI,
    DPOD,
    DPBAIGauss,
    LDPBandit,
    ODLinBAI,
    SequentialHalving,
    Uniform,
)
from adaptinf.designs.base import Design
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import (
    AuxiliaryLog,
    BernoulliArms,
    FiniteContext,
    LinearArms,
    NormalArms,
    SmoothArms,
    UniformArms,
)

FEATURES = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5]]
BY_FEATURES: list[Any] = [
    lambda features: DPBAI(epsilon=1.0, features=features),
    lambda features: DPBAI(epsilon=1.0, features=features, max_det=False),
    lambda features: DPBAIGauss(epsilon=1.0, delta=1e-5, features=features),
    lambda features: DPOD(epsilon=1.0, features=features),
    lambda features: ODLinBAI(features=features),
]
TRIAL = SmoothArms(3, 2)
LOCAL: list[Any] = [
    lambda logs: LDPBandit(epsilon=1.0, auxiliary=logs),
    lambda logs: LDPLinear(epsilon=1.0, auxiliary=logs),
]


def refused(
    design: Design, environment: Any, horizon: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Problems that a run and a replication name, without a program and without a draw."""

    def nothing(*given: Any, **named: Any) -> Any:
        raise AssertionError("something was about to be collected")

    monkeypatch.setattr(type(design), "program", nothing)
    source = np.random.default_rng(0)
    before = source.bit_generator.state
    with pytest.raises(ParameterError) as one:
        design.run(environment, horizon, rng=source)
    with pytest.raises(ParameterError) as many:
        design.replicate(environment, horizon, 10, rng=source)
    assert source.bit_generator.state == before
    assert one.value.problems == many.value.problems
    return one.value.problems


# --- features -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", BY_FEATURES)
def test_features_that_span_too_little(build: Any) -> None:
    with pytest.raises(ParameterError) as error:
        build([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 0.0]])
    (problem,) = error.value.problems
    assert problem.startswith("features must span all 3 coordinates, but those of the 3 arms span only 2")
    assert "rewrite them in 2 coordinates" in problem
    with pytest.raises(ParameterError, match="span all 4 coordinates, but those of the 3 arms span only 3"):
        build(np.eye(3, 4))
    with pytest.raises(ParameterError, match="those of the 2 arms span only 0"):
        build(np.zeros((2, 1)))


@pytest.mark.parametrize("build", BY_FEATURES)
def test_duplicated_arms(build: Any) -> None:
    with pytest.raises(ParameterError) as error:
        build([*FEATURES, FEATURES[1], FEATURES[3]])
    (problem,) = error.value.problems
    assert problem.startswith("arms must have distinct features, but these are equal: arms 1 and 4; 3 and 5")
    assert "keep only one arm for each set of features" in problem


@pytest.mark.parametrize("build", BY_FEATURES)
def test_rank_and_duplicates_are_told_together(build: Any) -> None:
    with pytest.raises(ParameterError) as error:
        build([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0]])
    assert [problem.split()[0] for problem in error.value.problems] == ["features", "arms"]


@pytest.mark.parametrize(
    ("features", "part"),
    [
        ([1.0, 2.0], r"features.reshape\(-1, 1\)"),
        ([[1.0], [math.nan]], "features must be finite, but those of"),
        ([["a"], ["b"]], "features must be numbers"),
        ([[1.0], [2.0, 3.0]], "features must be numbers"),
        ([], "one row per arm and one column per coordinate"),
    ],
)
def test_features_that_are_no_matrix(features: Any, part: str) -> None:
    for build in BY_FEATURES:
        with pytest.raises(ParameterError, match=part):
            build(features)


# --- budget and environment ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "design", [*(build(FEATURES) for build in BY_FEATURES), SequentialHalving()], ids=repr
)
def test_a_budget_below_one_pull_a_phase(design: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    least = design._least_budget(4)
    (problem,) = refused(design, BernoulliArms([0.9, 0.45, 0.2, 0.55]), least - 1, monkeypatch)
    assert problem == (
        f"horizon must be at least {least}, got {least - 1}: the budget leaves less than one pull per arm "
        "in some phase"
    )


@pytest.mark.parametrize("build", [BY_FEATURES[0], BY_FEATURES[2], BY_FEATURES[3]])
def test_everything_about_the_environment_at_once(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = UniformArms([-1.0] * 3, [2.0] * 3)
    problems = refused(build(FEATURES), wide, 1, monkeypatch)
    assert len(problems) == 3
    text = "\n".join(problems)
    assert (
        "rewards must lie in [0, 1], but those of UniformArms lie in [-1, 2]: rescale them by "
        "constants" in text
    )
    assert "features describe 4 arms, but the environment has 3" in text
    assert "horizon must be at least" in text
    seasons = FiniteContext(means=[[0.1] * 4, [0.2] * 4], probabilities=[0.5, 0.5])
    assert any(
        "without using contexts" in problem for problem in refused(build(FEATURES), seasons, 99, monkeypatch)
    )


# --- contexts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [LDPBandit(epsilon=1.0), LDPLinear(epsilon=1.0), ABSE()])
def test_contexts_outside_the_cube(design: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [[0.5, 0.5], [0.2, 1.1], [math.pi, 0.0]]
    beyond = LinearArms(np.eye(2), 0.1, contexts=given, shared=True, rewards="uniform", order="resampled")
    problems = refused(design, beyond, 50, monkeypatch)
    assert any(
        problem.startswith(
            "contexts must lie in the cube [0, 1]^2, but 2 rows do not (the first is row 1): scale"
        )
        for problem in problems
    )
    assert any("rewards must lie in [0, 1]" in problem for problem in problems)
    sphere = LinearArms(np.eye(2), shared=True, order="given")
    assert "the unit sphere do not" in "\n".join(refused(design, sphere, 50, monkeypatch))
    with pytest.raises(ParameterError, match=r"\^2.*1 rows do not, the first being row 0"):
        SmoothArms(3, 2, contexts=[[1.5, 0.5]])


@pytest.mark.parametrize("design", [LDPBandit(epsilon=1.0), LDPLinear(epsilon=1.0), ABSE()])
def test_contexts_that_run_out_are_told_with_the_rest(design: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = SmoothArms(1, 2, contexts=[[0.5, 0.5]])
    text = "\n".join(refused(design, few, 5, monkeypatch))
    assert "the environment must have at least 2 arms, got 1" in text
    assert "horizon must be at most 1, the number of rows of contexts, got 5" in text


# --- auxiliary logs -----------------------------------------------------------------------------------------


def log_of(
    contexts: dict[str, Any],
    arms: tuple[Any, ...] = (0, 1, 2),
    reward: Any = (0.0, 1.0, 0.0),
    reward_range: tuple[float, float] | None = (0.0, 1.0),
) -> AdaptiveLog:
    """A log of three rounds."""
    return AdaptiveLog.from_arrays(
        LogArrays(
            action=np.arange(3) % len(arms),
            reward=np.array(reward),
            propensity=None,
            propensities=None,
            batch=None,
            phase=None,
            randomised=None,
            context={name: np.array(values) for name, values in contexts.items()},
        ),
        arms=arms,
        reward_range=reward_range,
        propensity_status="absent",
    )


X = [0.1, 0.5, 0.9]


@pytest.mark.parametrize("build", LOCAL)
@pytest.mark.parametrize(
    ("log", "reason", "remedy"),
    [
        (
            log_of({"x1": X, "x2": X}, arms=(0, 1)),
            "its arms are [0, 1], but those of the trial are [0, 1, 2]",
            "arms=",
        ),
        (log_of({"x1": X, "x2": X}, arms=(2, 1, 0)), "its arms are [2, 1, 0]", "in the same order"),
        (log_of({"x1": X, "x2": X}, arms=("0", "1", "2")), "its arms are ['0', '1', '2']", "arms="),
        (log_of({"x1": X}), "have 1 coordinates, but those of the trial have 2", "context="),
        (log_of({"x1": X, "x2": X, "x3": X}), "have 3 coordinates", "context="),
        (
            log_of({"x2": X, "x1": X}),
            "its contexts are x2, x1, but those of the trial are x1, x2",
            "order the columns",
        ),
        (log_of({"age": X, "x2": X}), "its contexts are age, x2", "rename"),
        (
            log_of({"x1": X, "x2": X}, reward_range=(0.0, 5.0)),
            "its rewards have the range (0.0, 5.0), but those of the trial have (0.0, 1.0)",
            "rescale both by the same constants",
        ),
    ],
)
def test_an_auxiliary_log_of_another_trial(
    build: Any, log: AdaptiveLog, reason: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = TRIAL.auxiliary(10, rng=0)
    (problem,) = refused(build((good, AuxiliaryLog(log, epsilon=1.0))), TRIAL, 50, monkeypatch)
    assert problem.startswith("auxiliary log 2: ")
    assert reason in problem
    assert remedy in problem


@pytest.mark.parametrize("build", LOCAL)
def test_all_that_is_wrong_with_auxiliary_logs_at_once(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = AuxiliaryLog(log_of({"a": X}, arms=("p", "q"), reward_range=(-1.0, 1.0)), epsilon=1.0)
    problems = refused(build((bad, bad)), TRIAL, 50, monkeypatch)
    assert [problem[:16] for problem in problems] == ["auxiliary log 1:"] * 3 + ["auxiliary log 2:"] * 3


@pytest.mark.parametrize(
    ("contexts", "reward", "parts"),
    [
        (
            {"x1": [0.1, math.nan, 1.5], "x2": X},
            (0.0, 1.0, 0.0),
            ["but 2 rows of column 'x1' do not, the first being row 1"],
        ),
        ({"x1": ["a", "b", "c"], "x2": X}, (0.0, 1.0, 0.0), ["but these columns are not: 'x1'"]),
        (
            {"x1": [0.1, -0.1, 0.2], "x2": [2.0, 0.0, 0.0]},
            (0.0, math.nan, 1.5),
            [
                "column 'x1' do not",
                "column 'x2' do not, the first being row 0",
                "UnitCube",
                "2 do not, in rows 1, 2",
            ],
        ),
    ],
)
def test_an_auxiliary_log_that_no_trial_could_use(contexts: Any, reward: Any, parts: list[str]) -> None:
    with pytest.raises(ParameterError) as error:
        AuxiliaryLog(log_of(contexts, reward=reward), epsilon=0.0)
    assert all(part in str(error.value) for part in [*parts, "epsilon must be above 0"]), str(error.value)


def test_logs_without_contexts_or_of_another_kind() -> None:
    with pytest.raises(ParameterError, match="the log must have context columns"):
        AuxiliaryLog(Uniform().run(NormalArms([0.5, 0.4]), 20, rng=0), epsilon=1.0)
    with pytest.raises(ParameterError, match="log must be an AdaptiveLog, got dict"):
        AuxiliaryLog({}, epsilon=1.0)  # type: ignore[arg-type]
