"""A user's own design: the law of a compiled one, one clear error for each mistake, usable everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.designs import DesignTraits, EpsilonGreedy, Floor, FunctionDesign, Mixture, PlayTheWinner
from adaptinf.errors import AdaptinfError, InvalidForLog, ParameterError
from adaptinf.typing import FloatArray

ENV = ai.environments.BernoulliArms([0.3, 0.6])


def greedy(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
    """Epsilon-greedy with exploration 0.2, as the compiled design has it."""
    pulls, sums = state
    means = [sums[arm] / pulls[arm] if pulls[arm] else np.inf for arm in range(len(pulls))]
    best = means.index(max(means))
    return [0.2 / len(pulls) + 0.8 * (arm == best) for arm in range(len(pulls))]


def counted(state: Any, context: Any, arm: int, reward: float) -> Any:
    pulls, sums = (list(part) for part in state)
    pulls[arm] += 1
    sums[arm] += reward
    return pulls, sums


def none_yet(n_arms: int) -> Any:
    return [0] * n_arms, [0.0] * n_arms


OWN = FunctionDesign(greedy, counted, none_yet)


def tick(state: Any, context: Any, arm: int, reward: float) -> Any:
    return state + 1


class TestLaw:
    @pytest.mark.slow
    def test_a_copy_of_a_compiled_design_has_its_distribution(self) -> None:
        env = ai.environments.BernoulliArms([0.3, 0.6, 0.5])
        own = OWN.replicate(env, 60, 4_000, rng=1)
        compiled = EpsilonGreedy(exploration=0.2).replicate(env, 60, 4_000, rng=2)
        for part in ("pulls", "sums"):
            mine, theirs = getattr(own, part), getattr(compiled, part)
            gap = mine.mean(axis=0) - theirs.mean(axis=0)
            error = np.sqrt(mine.var(axis=0) / 4_000 + theirs.var(axis=0) / 4_000)
            assert np.all(np.abs(gap) < 4.5 * error)
            spread = np.log(mine.var(axis=0) / theirs.var(axis=0))
            assert np.all(np.abs(spread) < 4.5 * np.sqrt(4 * 2.5 / 4_000))  # kurtosis of counts below 6

    def test_the_logged_path_has_the_compiled_designs_propensities(self) -> None:
        log = OWN.run(ENV, 300, rng=3)
        bare = ai.AdaptiveLog(log.frame[["action", "reward"]], action="action", reward="reward")
        filled = ai.audit.with_propensities(bare, EpsilonGreedy(exploration=0.2))
        np.testing.assert_allclose(filled.arrays.propensities, log.arrays.propensities, atol=1e-12)
        again = ai.audit.with_propensities(bare, OWN)
        np.testing.assert_array_equal(again.arrays.propensities, log.arrays.propensities)
        assert again.propensity_status == "exact"

    def test_replicates_are_the_logs_and_do_not_depend_on_workers(self) -> None:
        one = OWN.replicate(ENV, 40, 200, rng=4)
        two = OWN.replicate(ENV, 40, 200, rng=4, n_jobs=2)
        np.testing.assert_array_equal(one.tallies, two.tallies)
        for run, log in enumerate(OWN.logs(ENV, 40, 70, rng=4)):
            np.testing.assert_array_equal(np.bincount(log.arrays.action, minlength=2), one.pulls[run])

    @pytest.mark.slow
    def test_a_rule_by_counts_has_the_exact_law(self) -> None:
        def rule(n1: Any, s1: Any, n0: Any, s0: Any, t: int) -> Any:
            return np.where((s1 + 1) * (n0 + 2) > (s0 + 1) * (n1 + 2), 0.75, 0.25)

        law = ai.audit.exact(rule, 40)
        runs = FunctionDesign.of_counts(rule).replicate(ENV, 40, 6_000, rng=5)
        expected = [float(value) for value in law.expected_pulls(0.6, 0.3)]
        error = runs.pulls[:, 1].std() / np.sqrt(6_000)
        assert abs(runs.pulls[:, 1].mean() - expected[0]) < 4.5 * error
        table = ai.audit.operating_characteristics(rule, ENV, 40, 256, rng=6).frame
        mean = table[(table["measure"] == "rounds") & (table["arm"] == "1") & (table["statistic"] == "mean")]
        assert abs(float(mean["value"].iloc[0]) - expected[0]) < 4.5 * float(mean["mc_error"].iloc[0])

    @pytest.mark.slow
    def test_the_same_rule_has_the_power_of_the_exact_law(self) -> None:
        def rule(n1: Any, s1: Any, n0: Any, s0: Any, t: int) -> Any:
            return np.full(np.shape(n1), 0.5)

        found = ai.audit.power(
            rule, ENV, lambda log: ai.Contrast(log, treatment=1, control=0).fit("aipw"), 100, 256, rng=0
        )
        assert float(found.frame["rejection"].iloc[0]) == pytest.approx(0.87, abs=0.1)

    def test_a_mixture_takes_it(self) -> None:
        log = Mixture(OWN, exploration=0.5).run(ENV, 200, rng=0)
        assert set(np.unique(log.arrays.propensities.round(12))) == {0.3, 0.7}
        certain = FunctionDesign(lambda state, context, rng: state % 2, tick, 0)
        log = Mixture(certain, exploration=0.5).run(ENV, 200, rng=0)
        np.testing.assert_allclose(log.arrays.propensities[::2], [[0.75, 0.25]] * 100)


class TestContexts:
    def test_labels_of_finite_contexts(self) -> None:
        seen: list[Any] = []

        def choose(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
            seen.append(context)
            return [0.9, 0.1] if context == 1 else [0.1, 0.9]

        env = ai.environments.FiniteContext(probabilities=[0.5, 0.5], means=[[0.2, 0.8], [0.8, 0.2]])
        log = FunctionDesign(choose, traits=DesignTraits(uses_context="groups")).run(env, 100, rng=0)
        assert seen == log.arrays.context["feature"].tolist()
        first = np.where(np.array(seen) == 1, 0.9, 0.1)
        np.testing.assert_array_equal(log.arrays.propensities[:, 0], first)
        assert not log.design.traits.adapts  # no update: rewards cannot move the choice

    @pytest.mark.parametrize("shared", [True, False])
    def test_vectors_are_those_of_the_log_and_cannot_be_written(self, shared: bool) -> None:
        seen: list[FloatArray] = []

        def choose(state: Any, context: FloatArray, rng: np.random.Generator) -> list[float]:
            seen.append(context)
            with pytest.raises(ValueError, match="read-only"):
                context[...] = 0.0
            return [0.2, 0.3, 0.5]

        vectors = np.random.default_rng(0).random((50, 2) if shared else (50, 3, 2))
        env = ai.environments.Tableau(np.zeros((50, 3)), vectors=vectors)
        log = FunctionDesign(choose).run(env, 50, rng=0)
        np.testing.assert_array_equal(np.stack(seen), vectors)
        columns = np.column_stack([log.arrays.context[name] for name in log.context])
        np.testing.assert_array_equal(columns, vectors.reshape(50, -1))

    def test_nothing_is_shown_where_the_traits_say_that_nothing_is_used(self) -> None:
        seen: list[Any] = []

        def choose(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
            seen.append(context)
            return [0.5, 0.5]

        env = ai.environments.FiniteContext(probabilities=[0.5, 0.5], means=[[0.2, 0.8], [0.8, 0.2]])
        log = FunctionDesign(choose, traits=DesignTraits(uses_context="no")).run(env, 20, rng=0)
        assert seen == [None] * 20
        assert set(log.arrays.context["feature"].tolist()) == {0, 1}

    def test_logs_without_contexts_say_that_none_had_a_part(self) -> None:
        assert OWN.run(ENV, 20, rng=0).design.traits.uses_context == "no"
        env = ai.environments.FiniteContext(probabilities=[0.5, 0.5], means=[[0.2, 0.8], [0.8, 0.2]])
        assert OWN.run(env, 20, rng=0).design.traits.uses_context == "unknown"

    def test_regret_with_vectors_is_the_compiled_loops(self) -> None:
        always = FunctionDesign(lambda state, context, rng: [0.0, 1.0, 0.0])
        env = ai.environments.Tableau(
            np.random.default_rng(1).random((30, 3)), vectors=np.random.default_rng(2).random((30, 2))
        )
        rewards = np.random.default_rng(1).random((30, 3))
        regret = always.replicate(env, 30, 2, rng=0).regret
        np.testing.assert_allclose(regret, (rewards.max(axis=1) - rewards[:, 1]).sum())


class TestArmsWithoutPropensities:
    def test_a_log_has_none_and_fills_none(self) -> None:
        design = FunctionDesign(
            lambda state, context, rng: int(rng.integers(2)), traits=DesignTraits(uses_context="no")
        )
        log = design.run(ENV, 100, rng=0)
        assert log.propensity_status == "absent"
        assert log.arrays.propensities is None
        with pytest.raises(InvalidForLog, match="no propensities"):
            ai.audit.with_propensities(log, design)
        assert 0.0 < ai.audit.randomization_test(log, design, replications=99, rng=0).pvalue <= 1.0

    def test_an_urn_has_the_compiled_urns_distribution(self) -> None:
        def draw(state: Any, context: Any, rng: np.random.Generator) -> int:
            return int(rng.random() < state[1] / sum(state))

        def add(state: Any, context: Any, arm: int, reward: float) -> Any:
            ball = arm if reward else 1 - arm
            return (state[0] + (ball == 0), state[1] + (ball == 1))

        own = FunctionDesign(draw, add, (1, 1)).replicate(ENV, 30, 3_000, rng=1).pulls[:, 1]
        compiled = PlayTheWinner(initial=1, added=1).replicate(ENV, 30, 3_000, rng=2).pulls[:, 1]
        error = np.sqrt((own.var() + compiled.var()) / 3_000)
        assert abs(own.mean() - compiled.mean()) < 4.5 * error


def _late(answer: Any) -> Any:
    return lambda state, context, rng: answer if state == 4 else [0.5, 0.5]


def _raises(state: Any, context: Any, rng: np.random.Generator) -> Any:
    raise KeyError("x")


WRONG = {
    "sum": (_late([0.5, 0.6]), tick, 0, "in round 5, .* sum to 1.1"),
    "arm": (lambda state, context, rng: 2, tick, 0, "in round 1, .* arm 2; arms are numbered 0 to 1"),
    "NaN": (_late([np.nan, 0.5]), tick, 0, "in round 5, .* NaN"),
    "negative": (_late([-0.5, 1.5]), tick, 0, "in round 5, .* negative"),
    "shape": (_late([0.2, 0.3, 0.5]), tick, 0, r"in round 5, .* shape \(3,\) for 2 arms"),
    "text": (_late("a"), tick, 0, "in round 5, .* returned 'a'"),
    "one number": (_late(1.0), tick, 0, "in round 5, .* returned 1.0"),
    "exception": (_raises, tick, 0, "in round 1, choose failed: KeyError: 'x'"),
    "update": (
        lambda *_: [0.5, 0.5],
        lambda state, *_: state + 1 if state < 3 else 1 // 0,
        0,
        "in round 4, update failed: ZeroDivisionError",
    ),
    "start": (lambda *_: [0.5, 0.5], tick, _raises, "start"),
    "forgot": (lambda *_: [0.5, 0.5], lambda *_: None, 0, "in round 1, update returned None"),
    "in place": (lambda *_: [0.5, 0.5], lambda s, *_: (s.append(1), s)[1], [], "in round 1, update changed"),
    "inside": (lambda *_: [0.5, 0.5], lambda s, *_: (s[0].append(1), (s[0],))[1], ([],), "update changed"),
    "chosen": (lambda s, *_: (s.append(1), [0.5, 0.5])[1], lambda s, *_: s, [], "in round 1, choose changed"),
    "mixed": (_late(1), tick, 0, "in round 5, choose returned an arm in some rounds"),
    "unpicklable": (lambda *_: [0.5, 0.5], tick, lambda n_arms: (i for i in range(3)), "pickled"),
}


class TestMistakes:
    @pytest.mark.parametrize("name", WRONG)
    def test_one_error_names_the_round(self, name: str) -> None:
        choose, update, start, text = WRONG[name]
        with pytest.raises(ParameterError, match=text) as caught:
            FunctionDesign(choose, update, start).run(ENV, 20, rng=0)
        assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.slow
    def test_the_error_comes_through_from_other_processes(self) -> None:
        with pytest.raises(ParameterError, match=r"in round 5, .* sum to 1\.1"):
            FunctionDesign(_late([0.5, 0.6]), tick, 0).replicate(ENV, 20, 256, rng=0, n_jobs=2)

    def test_what_the_traits_state_is_held_to(self) -> None:
        low = FunctionDesign(lambda *_: [0.05, 0.95], tick, 0, DesignTraits(floor=Floor(0.1)))
        with pytest.raises(ParameterError, match=r"in round 1, .* below the floor"):
            low.run(ENV, 5, rng=0)
        falling = DesignTraits(floor=Floor(0.1, decay=1.0, shared=True))
        with pytest.raises(ParameterError, match=r"in round 1, .* below the floor"):
            FunctionDesign(lambda *_: [0.04, 0.96], tick, 0, falling).run(ENV, 5, rng=0)
        assert FunctionDesign(lambda *_: [0.05, 0.95], tick, 0, falling).run(ENV, 5, rng=0).n_rounds == 5
        with pytest.raises(ParameterError, match="own_coins=False"):
            FunctionDesign(lambda *_: [0.5, 0.5], tick, 0, DesignTraits(own_coins=False)).run(ENV, 5, rng=0)

    def test_everything_wrong_on_construction_is_listed(self) -> None:
        with pytest.raises(ParameterError) as caught:
            FunctionDesign(lambda state: 1, 5, traits=3)  # type: ignore[arg-type]
        text = str(caught.value)
        assert "choose is called with 3 arguments" in text
        assert "update" in text
        assert "traits" in text

    def test_contexts_that_are_missing(self) -> None:
        for uses in ("groups", "vectors"):
            with pytest.raises(ParameterError, match="requires context"):
                FunctionDesign(lambda *_: [0.5, 0.5], traits=DesignTraits(uses_context=uses)).run(ENV, 5)
        with pytest.raises(ParameterError, match="counts of two arms"):
            FunctionDesign.of_counts(lambda n1, s1, n0, s0, t: 0.5).run(
                ai.environments.BernoulliArms([0.1, 0.2, 0.3]), 5
            )


class TestAudits:
    def test_a_study_of_own_parts_goes_on_after_they_were_used(self, tmp_path: Any) -> None:
        design = FunctionDesign.of_counts(lambda n1, s1, n0, s0, t: np.full(np.shape(n1), 0.4))
        world = ai.environments.FunctionEnvironment(
            lambda rng, horizon: rng.standard_normal((horizon, 2)), means=[0.0, 0.0]
        )
        found = [
            ai.audit.study(
                {"own": design, "greedy": OWN},
                {"world": world},
                {"default": lambda log: ai.ArmMeans(log).fit("sample-mean")},
                [30],
                replications,
                rng=0,
                path=tmp_path / "study",
                progress=False,
            ).frame
            for replications in (64, 64)
        ]
        assert found[0].equals(found[1])

    def test_a_stored_log_asks_for_the_design(self, tmp_path: Any) -> None:
        OWN.run(ENV, 60, rng=0).to_parquet(tmp_path / "log.parquet")
        log = ai.read_log(tmp_path / "log.parquet")
        with pytest.raises(AdaptinfError, match="pass the design itself"):
            ai.audit.randomization_test(log)
        assert 0.0 < ai.audit.randomization_test(log, OWN, replications=99, rng=0).pvalue <= 1.0

    def test_randomisation_does_not_depend_on_workers(self) -> None:
        log = OWN.run(ENV, 60, rng=0)
        found = [ai.audit.randomization_test(log, OWN, replications=199, rng=1, n_jobs=n) for n in (1, 2)]
        assert found[0].pvalue == found[1].pvalue

    @pytest.mark.slow
    def test_randomisation_rejects_a_true_null_as_often_as_it_says(self) -> None:
        equal = ai.environments.BernoulliArms([0.5, 0.5])
        logs = OWN.logs(equal, 40, 192, rng=2)
        values = [
            ai.audit.randomization_test(log, OWN, replications=39, rng=i).pvalue for i, log in enumerate(logs)
        ]
        rejected = np.mean(np.array(values) <= 0.1)
        assert abs(rejected - 0.1) < 4.5 * np.sqrt(0.09 / 192)


@pytest.mark.parametrize(("start", "found"), [(100, 101), (300, 305)])
def test_a_late_change_in_place_is_found_in_every_sixteenth_round(start: int, found: int) -> None:
    def update(state: list[int], context: Any, arm: int, reward: float) -> list[int]:
        if state[0] >= start:
            state[0] += 1
            return state
        return [state[0] + 1]

    design = FunctionDesign(lambda *_: [0.5, 0.5], update, [0])
    with pytest.raises(ParameterError, match=f"in round {found}, update changed the state in place"):
        design.run(ENV, 400, rng=0)
