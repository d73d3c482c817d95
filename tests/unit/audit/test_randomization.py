"""Randomisation tests: every design can be re-run, what is refused, stopping early, seeds and processes."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf import designs
from adaptinf.audit.randomization.randomization_intervals import fewest_replications, randomization_interval
from adaptinf.audit.randomization.randomization_tests import compare, randomization_test
from adaptinf.audit.randomization.rerun_plan import Draws
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.simulation.environments import (
    BernoulliArms,
    FiniteContext,
    LinearArms,
    NormalArms,
    SmoothArms,
    Tableau,
)

TWO = BernoulliArms([0.4, 0.6])
CONTEXTS = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
VECTORS = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
SHARED = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli", shared=True)
CUBE = SmoothArms(n_arms=2, dimension=2)
FEATURES = [[1.0, 0.0], [0.6, 0.8]]

CASES: list[tuple[designs.Design, Any, int, str]] = [
    (designs.Uniform(), TWO, 100, "assignment"),
    (designs.EpsilonGreedy(exploration=0.3), TWO, 100, "assignment"),
    (designs.Thompson(draws=10), TWO, 100, "assignment"),
    (designs.Thompson(prior="normal"), NormalArms([0.0, 0.1]), 100, "assignment"),
    (PlayTheWinner(), TWO, 100, "assignment"),
    (designs.ConSE(), CONTEXTS, 400, "assignment"),
    (designs.DPConSE(epsilon=1.0), CONTEXTS, 400, "assignment"),
    (designs.Mixture(designs.UCB(), 0.3), TWO, 100, "assignment"),
    (designs.Mixture(designs.ConSE(), 0.3), CONTEXTS, 400, "assignment"),
    (designs.UCB(), TWO, 100, "order"),
    (designs.PrivateUCB(epsilon=1.0), TWO, 100, "order"),
]
COMPILED_LONG: list[tuple[designs.Design, Any, int, str]] = [
    (designs.DPConSE(epsilon=1.0, calibration="published"), CONTEXTS, 400, "assignment"),
    (designs.LDPBandit(epsilon=1.0), CUBE, 400, "assignment"),
    (designs.ABSE(), CUBE, 400, "assignment"),
    (designs.LDPLinear(epsilon=1.0), SHARED, 200, "assignment"),
    (designs.Mixture(designs.LinPriv(epsilon=1.0), 0.3), VECTORS, 100, "assignment"),
    (designs.LinUCB(), VECTORS, 100, "order"),
    (designs.LinPriv(epsilon=1.0), VECTORS, 100, "order"),
    (designs.SuccessiveElimination(), TWO, 400, "order"),
    (designs.PrivateSuccessiveElimination(epsilon=5.0), TWO, 6_000, "order"),
    (designs.SequentialHalving(), TWO, 100, "order"),
    (designs.DPBAI(epsilon=1.0, features=FEATURES), TWO, 2_000, "order"),
]
"""Their kernels take most of the time that it takes to compile all."""


def remade(design: designs.Design) -> designs.Design | None:
    """The design where a log cannot name it in full."""
    local = isinstance(design, (PlayTheWinner, designs.LDPBandit, designs.LDPLinear))
    return design if local else None


@pytest.mark.parametrize(
    ("design", "env", "horizon", "form"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in COMPILED_LONG)],
    ids=lambda part: f"{part!r:.30}",
)
def test_every_design_can_be_re_run(design: designs.Design, env: Any, horizon: int, form: str) -> None:
    log = design.run(env, horizon, rng=3)
    test = randomization_test(log, remade(design), replications=19)
    assert test.resample == form
    assert test.replications == 19
    assert test.draws.shape == (19,)
    assert 1 / 20 <= test.pvalue <= 1.0
    assert test.pvalue * 20 == pytest.approx(round(test.pvalue * 20))
    assert any("drift" in line for line in test.assumptions) is (form == "order")
    assert any("all arms are equal" in line for line in test.assumptions)


@pytest.mark.parametrize(
    ("design", "env"),
    [
        (designs.UCB(), TWO),
        pytest.param(designs.LinUCB(), VECTORS, marks=pytest.mark.slow),
        pytest.param(designs.SuccessiveElimination(), TWO, marks=pytest.mark.slow),
        (designs.EpsilonGreedy(exploration=0.0), TWO),
        pytest.param(designs.SequentialHalving(), TWO, marks=pytest.mark.slow),
    ],
)
def test_a_design_without_coins_is_not_re_run_by_assignment(design: Any, env: Any) -> None:
    log = design.run(env, 300, rng=0)
    with pytest.raises(ParameterError) as caught:
        randomization_test(log, resample="assignment")
    for word in ("no random draws of its own", "p would be 1", 'resample="order"', "Mixture("):
        assert word in str(caught.value)
    assert randomization_test(log, resample="order", replications=19).resample == "order"


def test_a_log_of_another_design_is_refused() -> None:
    log = designs.UCB().run(TWO, 200, rng=0)
    with pytest.raises(ParameterError, match=r"other parameters \(width=2.0 in the log, 0.5 here\)"):
        randomization_test(log, designs.UCB(width=0.5))
    with pytest.raises(ParameterError, match="collected by UCB, not by Thompson"):
        randomization_test(log, designs.Thompson())
    unnamed = AdaptiveLog.from_arrays(log.arrays, arms=log.arms)
    with pytest.raises(ParameterError, match=r"chooses other actions from row \d+ onwards"):
        randomization_test(unnamed, designs.UCB(width=0.1))
    assert randomization_test(unnamed, designs.UCB(), replications=19).design == "UCB"
    with pytest.raises(ParameterError, match="does not name its design"):
        randomization_test(unnamed)


def test_everything_wrong_is_listed() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.raises(ParameterError) as caught:
        randomization_test(
            log,
            statistic="mean",
            resample="rows",
            replications=0,
            rng="seed",  # type: ignore[arg-type]
            treatment=7,
            alternative="both",
            stop_after=0,
            vectorised=1,  # type: ignore[arg-type]
            n_jobs=0,
        )
    names = (
        "statistic", "resample", "replications", "rng", "treatment", "alternative", "stop_after",
        "vectorised", "n_jobs",
    )  # fmt: skip
    for name in names:
        assert any(problem.startswith(name) for problem in caught.value.problems), name
    with pytest.raises(ParameterError, match="log must be an AdaptiveLog"):
        randomization_test([1, 2])  # type: ignore[arg-type]


def test_arms_of_a_contrast() -> None:
    three = BernoulliArms([0.3, 0.5, 0.7])
    log = designs.Uniform().run(three, 200, rng=0)
    assert randomization_test(log, replications=19).statistic_name == "largest-studentised"
    with pytest.raises(ParameterError, match="specify treatment= and control="):
        randomization_test(log, statistic="difference")
    with pytest.raises(ParameterError, match="control must be one of 0, 1, 2, got None"):
        randomization_test(log, treatment=2)
    with pytest.raises(ParameterError, match="two different arms"):
        randomization_test(log, treatment=2, control=2)
    with pytest.raises(ParameterError, match="has no direction"):
        randomization_test(log, statistic="f", alternative="less")
    with pytest.raises(ParameterError, match="omitted with 'f'"):
        randomization_test(log, statistic="f", treatment=2, control=1)
    named = randomization_test(log, replications=19, treatment=2, control=0)
    reverse = randomization_test(log, replications=19, treatment=0, control=2)
    assert named.statistic == pytest.approx(-reverse.statistic)
    np.testing.assert_allclose(named.draws, -reverse.draws)
    assert named.pvalue == reverse.pvalue
    with pytest.raises(ParameterError, match="omitted if statistic is a function"):
        randomization_test(log, statistic=lambda a, y, x: 0.0, alternative="less")
    two = designs.Uniform().run(TWO, 100, rng=0)
    assert randomization_test(two, replications=19, control=1).statistic == pytest.approx(
        -randomization_test(two, replications=19).statistic
    )


def test_directions() -> None:
    log = designs.Uniform().run(BernoulliArms([0.2, 0.8]), 200, rng=0)
    more, less = (
        randomization_test(log, replications=99, alternative=side).pvalue for side in ("greater", "less")
    )
    assert more == 0.01
    assert less > 0.9


@pytest.mark.parametrize("odd", [math.nan, "x", [1.0, 2.0]])
def test_odd_statistics(odd: Any) -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.raises(ParameterError, match="statistic"):
        randomization_test(log, statistic=lambda a, y, x: odd)
    with pytest.raises(ParameterError, match="must return one number per run"):
        randomization_test(log, statistic=lambda a, y, x: 0.0, vectorised=True)


def test_a_statistic_that_is_constant_is_all_ties() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    test = randomization_test(log, statistic=lambda a, y, x: 1.0, replications=99)
    assert (test.exceedances, test.ties, test.pvalue_conservative) == (0, 99, 1.0)
    found = {
        randomization_test(log, statistic=lambda a, y, x: 1.0, replications=99, rng=s).pvalue
        for s in range(30)
    }
    assert min(found) < 0.3
    assert max(found) > 0.7


def test_a_number_of_re_runs_that_misses_the_level() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.warns(AdaptinfWarning, match=r"rejects with probability only 0.0495; use 199 or 999"):
        randomization_test(log, replications=100)


@pytest.mark.slow
def test_the_same_numbers_for_any_number_of_processes() -> None:
    log = designs.UCB().run(TWO, 60, rng=0)
    one = randomization_test(log, replications=659, rng=4)
    two = randomization_test(log, replications=659, rng=4, n_jobs=2)
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.pvalue == two.pvalue
    shorter = randomization_test(log, replications=99, rng=4)
    np.testing.assert_array_equal(one.draws[:99], shorter.draws)


def test_streams_are_not_those_of_the_log() -> None:
    """Fixed rewards leave the coins as the only draws: with the streams of `run` the log would come again."""
    environment = Tableau(np.random.default_rng(0).random((40, 2)).repeat(1, axis=0))
    log = designs.Uniform().run(environment, 40, rng=0)
    same = randomization_test(
        log, statistic=lambda a, y, x: float((a == log.arrays.action).mean()), replications=99, rng=0
    )
    assert same.draws.max() < 0.9


class TestStoppingEarly:
    @functools.cached_property
    def log(self) -> AdaptiveLog:
        return designs.Uniform().run(TWO, 100, rng=5)

    def test_the_definition(self) -> None:
        whole = randomization_test(self.log, replications=999, rng=1)
        beyond = np.abs(whole.draws) > abs(whole.statistic)
        assert whole.ties == 0
        assert 10 < beyond.sum() < 990
        stop = int(np.flatnonzero(np.cumsum(beyond) == 10)[0]) + 1
        early = randomization_test(self.log, replications=999, rng=1, stop_after=10)
        assert early.stopped_early
        assert (early.replications, early.pvalue, early.exceedances) == (stop, 10 / stop, 10)
        np.testing.assert_array_equal(early.draws, whole.draws[:stop])
        assert early.pvalue_conservative >= early.pvalue
        assert "stopped early" in str(early)

    def test_where_it_never_stops(self) -> None:
        strong = designs.Uniform().run(BernoulliArms([0.1, 0.9]), 100, rng=5)
        late = randomization_test(strong, replications=199, stop_after=10)
        assert (late.stopped_early, late.replications, late.pvalue) == (False, 199, 1 / 200)

    @pytest.mark.parametrize("replications", [19, 199])
    def test_its_p_value_is_valid(self, replications: int) -> None:
        """Ranks of exchangeable numbers, without any design: P(p <= a) <= a on a grid."""
        from adaptinf.audit.randomization.randomization_tests import rank

        class Bare:
            scale = 0.0

            def __init__(self, value: float) -> None:
                self.value = value

            def observed(self) -> float:
                return self.value

            def breaker(self) -> float:
                return 0.5

            def evidence(self, values: np.ndarray) -> np.ndarray:
                return values

        rng = np.random.default_rng(0)
        found = []
        for _ in range(20_000):
            draws = [Draws(rng.random(min(64, replications)), np.zeros(64)[:replications]) for _ in range(3)]
            ranking = rank(Bare(rng.random()), draws, 3 * min(64, replications), 3)  # type: ignore[arg-type]
            found.append(ranking.pvalue)
        for level in (0.02, 0.05, 0.1, 0.25, 0.5, 0.9):
            share = np.mean(np.array(found) <= level + 1e-12)
            assert share < level + 3.8 * math.sqrt(level * (1 - level) / 20_000)


def test_ties_and_rounding() -> None:
    values = np.array([1.0, 1.0 + 1e-12, 1.0 + 1e-6, -math.inf, math.inf])
    greater, equal = compare(values, 1.0)
    assert greater.tolist() == [False, False, True, False, True]
    assert equal.tolist() == [True, True, False, False, False]
    greater, equal = compare(np.array([math.inf, 3.0]), math.inf)
    assert equal.tolist() == [True, False]
    assert not greater.any()
    assert compare(np.array([1e-17]), 0.0, scale=1.0)[1].all()


class TestContexts:
    def test_a_log_from_a_file(self, tmp_path: Any) -> None:
        for design, env in ((designs.Thompson(floor=(0.3, 0.5), draws=5), TWO), (designs.LinUCB(), VECTORS)):
            log = design.run(env, 60, rng=0)
            log.to_parquet(tmp_path / "log.parquet")
            again = read_log(tmp_path / "log.parquet")
            given = design if isinstance(design, designs.Thompson) else None
            first, second = (randomization_test(one, given, replications=19) for one in (log, again))
            np.testing.assert_array_equal(first.draws, second.draws)

    def test_contexts_that_never_arrived_count(self) -> None:
        """DP-ConSE's first window depends on the number of contexts that there could have been."""
        log = designs.DPConSE(epsilon=1.0).run(CONTEXTS, 400, rng=0)
        more = randomization_test(log, replications=19, features=[0, 1, 2])
        assert more.draws.shape == (19,)
        with pytest.raises(ParameterError, match="features must list every context"):
            randomization_test(log, features=[0, 5])

    def test_labels_of_contexts(self) -> None:
        log = designs.ConSE().run(CONTEXTS, 400, rng=0)
        named = np.array(["b", "a"])[log.arrays.context["feature"]]
        frame = pd.DataFrame({"arm": log.arrays.action, "y": log.arrays.reward, "site": named, "age": 1.0})
        own = AdaptiveLog(frame, action="arm", reward="y", context=["site", "age"], reward_range=(0, 1))
        with pytest.raises(ParameterError, match="context must name the only context column"):
            randomization_test(own, designs.ConSE())
        test = randomization_test(own, designs.ConSE(), context="site", features=["b", "a"], replications=19)
        same = randomization_test(log, replications=19)
        np.testing.assert_array_equal(test.draws, same.draws)

    def test_vectors_that_are_not_there(self) -> None:
        log = designs.Uniform().run(TWO, 100, rng=0)
        bare = AdaptiveLog.from_arrays(log.arrays, arms=log.arms)
        with pytest.raises(ParameterError, match="requires context vectors: columns x1"):
            randomization_test(bare, designs.LinUCB())

    def test_named_coordinates(self) -> None:
        shared = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli", shared=True)
        log = designs.LinUCB().run(shared, 80, rng=0)
        frame = pd.DataFrame({"arm": log.arrays.action, "y": log.arrays.reward, **log.arrays.context})
        frame = frame.rename(columns={"x1": "age", "x2": "dose"})
        own = AdaptiveLog(frame, action="arm", reward="y", context=["dose", "age"], reward_range=(0, 1))
        design = designs.LinUCB(noise_scale=0.5)
        test = randomization_test(own, design, context=["age", "dose"], replications=19)
        np.testing.assert_array_equal(test.draws, randomization_test(log, replications=19).draws)
        with pytest.raises(ParameterError, match="there is no column 'height'; the log has 'dose', 'age'"):
            randomization_test(own, design, context=["height"])


def test_rewards_that_the_design_refuses() -> None:
    frame = pd.DataFrame({"arm": [0, 1] * 50, "y": np.linspace(0, 3, 100)})
    log = AdaptiveLog(frame, action="arm", reward="y")
    with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
        randomization_test(log, designs.PrivateUCB(epsilon=1.0))


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_statistic_that_writes_into_its_arrays_changes_nothing(vectorised: bool) -> None:
    log = designs.Thompson(draws=10).run(CONTEXTS, 60, rng=0)
    before = [log.arrays.action.copy(), log.arrays.reward.copy(), log.arrays.context["feature"].copy()]

    def gap(action: Any, reward: Any, context: Any) -> Any:
        return ((action == 1) * reward).mean(axis=-1) - context["feature"].mean(axis=-1)

    def overwriting(action: Any, reward: Any, context: Any) -> Any:
        found = gap(action, reward, context)
        action[...], reward[...], context["feature"][...] = 0, -9.0, 1
        return found

    plain, written = (
        randomization_test(log, statistic=function, replications=19, vectorised=vectorised)
        for function in (gap, overwriting)
    )
    np.testing.assert_array_equal(plain.draws, written.draws)
    assert (plain.statistic, plain.pvalue) == (written.statistic, written.pvalue)
    after = [log.arrays.action, log.arrays.reward, log.arrays.context["feature"]]
    for first, second in zip(before, after, strict=True):
        np.testing.assert_array_equal(first, second)


class TestLoggedPropensities:
    @functools.cached_property
    def log(self) -> AdaptiveLog:
        return designs.EpsilonGreedy(exploration=0.1).run(TWO, 60, rng=2)

    @functools.cached_property
    def unnamed(self) -> AdaptiveLog:
        return AdaptiveLog.from_arrays(self.log.arrays, arms=self.log.arms)

    @pytest.mark.parametrize("test", [randomization_test, randomization_interval])
    def test_those_of_another_design_are_refused(self, test: Any) -> None:
        with pytest.raises(ParameterError) as caught:
            test(self.unnamed, designs.EpsilonGreedy(exploration=0.9), replications=19)
        assert self.log.arrays.propensity is not None
        first = self.log.arrays.propensity[0]
        implied = {0.95: 0.55, 0.05: 0.45}[round(float(first), 9)]
        told = f"{first:.6g} in the log, {implied:.6g} under the design in row 0 (rows are counted from 0)"
        assert caught.value.subject == test.__name__
        assert told in str(caught.value)

    def test_the_first_row_that_differs_is_named(self) -> None:
        own = self.log.arrays
        assert own.propensity is not None
        late = np.where(np.arange(60) < 17, own.propensity, 0.5)
        arrays = dataclasses.replace(own, propensity=late, propensities=None)
        other = AdaptiveLog.from_arrays(arrays, arms=self.log.arms)
        with pytest.raises(ParameterError, match=r"0\.5 in the log, 0\.[0-9]+ under the design in row 17"):
            randomization_test(other, designs.EpsilonGreedy(exploration=0.1), replications=19)

    def test_what_cannot_be_checked_is_let_through(self) -> None:
        assert randomization_test(self.unnamed, designs.EpsilonGreedy(exploration=0.1), replications=19)
        for design in (designs.Thompson(draws=10), designs.Mixture(designs.UCB(), 0.3)):
            assert randomization_test(self.unnamed, design, replications=19).replications == 19
        estimated = AdaptiveLog.from_arrays(
            self.log.arrays, arms=self.log.arms, propensity_status="estimated"
        )
        assert randomization_test(estimated, designs.EpsilonGreedy(exploration=0.9), replications=19)


def test_a_function_that_takes_other_arguments() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.raises(ParameterError, match=r"called with 3 arguments, \(action, reward, context\)"):
        randomization_test(log, statistic=lambda a, y: 0.0)
    assert randomization_test(log, statistic=lambda *parts: 0.0, replications=19).statistic == 0.0


def test_more_exceedances_than_re_runs() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.raises(ParameterError, match=r"stop_after must be at most replications \(19\), got 20"):
        randomization_test(log, replications=19, stop_after=20)


def test_too_few_re_runs_for_an_interval() -> None:
    log = designs.Uniform().run(TWO, 50, rng=0)
    with pytest.raises(ParameterError, match=r"replications must be at least 19 at alpha = 0\.05, got 18"):
        randomization_interval(log, replications=18)
    for alpha in (0.05, 0.01, 0.3, 0.49, 1 / 3, 0.07, 0.001):
        least = fewest_replications(alpha)
        assert 1.0 / (least + 1) <= alpha < 1.0 / least


def test_limits_are_none_where_every_effect_is_rejected() -> None:
    log = designs.Uniform().run(NormalArms([0.0, 0.1]), 50, rng=0)
    found = randomization_interval(log, replications=19)
    assert f"0.95 interval  [{found.low:.6g}, {found.high:.6g}]" in str(found)
    empty = dataclasses.replace(found, low=math.nan, high=math.nan)
    assert "0.95 interval  none\n" in str(empty)
    assert repr(empty) == "<RandomizationInterval: none at alpha = 0.05>"


def test_three_arms_have_one_refusal() -> None:
    log = designs.Uniform().run(BernoulliArms([0.3, 0.5, 0.7]), 60, rng=0)
    with pytest.raises(ParameterError) as caught:
        randomization_interval(log)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith("requires two arms, got 3: ")


def test_what_is_printed() -> None:
    test = randomization_test(designs.Uniform().run(TWO, 100, rng=0), replications=99)
    text = str(test)
    for word in ("Uniform re-run 99 times by assignment", "p-value", "Exact under:", "no carry-over"):
        assert word in text
    assert repr(test).startswith("<RandomizationTest: p = ")


def test_short_trials_are_enumerated_where_paths_have_probabilities() -> None:
    """Hidden posterior draws, mixtures and long trials are re-run."""
    known = (designs.EpsilonGreedy(exploration=0.3), designs.Thompson(prior="normal"), designs.Uniform())
    for design in known:
        log = design.run(TWO, 8, rng=1)
        first, second = (randomization_test(log, rng=rng) for rng in (0, 5))
        assert first.path_probabilities is not None
        assert first.path_probabilities.sum() == pytest.approx(1.0, abs=1e-9)
        assert first.pvalue == second.pvalue
        drawn = randomization_test(log, replications=9_999)
        error = math.sqrt(first.pvalue * (1.0 - first.pvalue) / 9_999)
        assert abs(drawn.pvalue_conservative - first.pvalue) < 4.2 * error + 2e-4
    for design, rounds in (
        (designs.Thompson(draws=100), 8),
        (designs.Mixture(designs.UCB(), 0.3), 8),
        (designs.Uniform(), 17),
    ):
        test = randomization_test(design.run(TWO, rounds, rng=1))
        assert test.path_probabilities is None
        assert test.replications == 999
    assert randomization_test(designs.Uniform().run(TWO, 16, rng=1), stop_after=5).path_probabilities is None
