"""A user's own environment: fresh rewards in every run, the same for any workers, mistakes named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.simulation.environments import FunctionEnvironment, Tableau
from adaptinf.typing import FloatArray

COINS = ai.environments.BernoulliArms([0.3, 0.6])


def coins(rng: np.random.Generator, horizon: int) -> FloatArray:
    return (rng.random((horizon, 2)) < [0.3, 0.6]).astype(np.float64)


def groups(rng: np.random.Generator, horizon: int) -> Any:
    code = rng.integers(0, 2, horizon)
    means = np.array([[0.2, 0.8], [0.9, 0.4]])[code]
    return (rng.random((horizon, 2)) < means).astype(np.float64), np.array(["old", "young"])[code]


def shared_vectors(rng: np.random.Generator, horizon: int) -> Any:
    x = rng.standard_normal((horizon, 2))
    return x @ np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.4]]) + rng.standard_normal((horizon, 3)), x


OWN = FunctionEnvironment(coins, [0.3, 0.6], reward_range=(0, 1))
GROUPS = FunctionEnvironment(groups, [[0.2, 0.8], [0.9, 0.4]], features=["old", "young"], reward_range=(0, 1))


class TestLaw:
    @pytest.mark.parametrize(
        "design",
        [
            ai.designs.Thompson(),
            ai.designs.PrivateUCB(epsilon=1.0),
            ai.designs.Mixture(ai.designs.UCB(), exploration=0.2),
        ],
    )
    def test_designs_run_as_in_the_compiled_environment(self, design: Any) -> None:
        own = design.replicate(OWN, 60, 3_000, rng=1)
        compiled = design.replicate(COINS, 60, 3_000, rng=2)
        for part in ("pulls", "sums"):
            mine, theirs = getattr(own, part), getattr(compiled, part)
            error = np.sqrt((mine.var(axis=0) + theirs.var(axis=0)) / 3_000)
            assert np.all(np.abs(mine.mean(axis=0) - theirs.mean(axis=0)) < 4.5 * error)
        np.testing.assert_allclose(own.regret, 0.3 * own.pulls[:, 0])

    def test_replicates_are_the_logs_and_do_not_depend_on_workers(self) -> None:
        design = ai.designs.EpsilonGreedy(exploration=0.2)
        one = design.replicate(OWN, 40, 200, rng=4)
        two = design.replicate(OWN, 40, 200, rng=4, n_jobs=2)
        np.testing.assert_array_equal(one.tallies, two.tallies)
        for run, log in enumerate(design.logs(OWN, 40, 70, rng=4)):
            np.testing.assert_array_equal(np.bincount(log.arrays.action, minlength=2), one.pulls[run])

    def test_every_run_has_rewards_of_its_own(self) -> None:
        drawn: list[FloatArray] = []

        def kept(rng: np.random.Generator, horizon: int) -> FloatArray:
            drawn.append(rng.standard_normal((horizon, 2)))
            return drawn[-1]

        logs = list(ai.designs.Uniform().logs(FunctionEnvironment(kept), 30, 3, rng=0))
        for log, rewards in zip(logs, drawn[1:], strict=True):  # the first was a trial on construction
            np.testing.assert_array_equal(log.arrays.reward, rewards[np.arange(30), log.arrays.action])

    def test_labels_of_contexts_are_logged_and_decide(self) -> None:
        log = ai.designs.DPConSE(epsilon=1.0).run(GROUPS, 4_000, rng=0)
        seen = log.arrays.context["feature"]
        assert set(seen.tolist()) == {"old", "young"}
        late = log.arrays.phase == log.arrays.phase.max()
        best = log.arrays.reward[late & (seen == "young")].mean()
        assert best > 0.4
        effect = ai.CATE(log, by="feature", treatment=1, control=0).fit()
        assert abs(effect.params.iloc[0] - 0.6) < 0.2

    def test_vectors_reach_linear_designs_and_the_log(self) -> None:
        env = FunctionEnvironment(shared_vectors)
        log = ai.designs.LinUCB().run(env, 200, rng=0)
        assert log.context == ("x1", "x2")
        by_arm = FunctionEnvironment(
            lambda rng, n: (np.zeros((n, 2)), rng.random((n, 2, 3))), arms=["a", "b"]
        )
        assert by_arm.vector_names == ("x1_a", "x2_a", "x3_a", "x1_b", "x2_b", "x3_b")
        assert ai.designs.LinUCB().run(by_arm, 50, rng=0).arrays.action.max() == 1

    def test_regret_with_vectors_is_that_of_a_tableau(self) -> None:
        rewards, x = shared_vectors(np.random.default_rng(3), 100)
        env = FunctionEnvironment(lambda rng, n: (rewards[:n], x[:n]), horizon=100)
        design = ai.designs.LinUCB()
        own = design.replicate(env, 100, 3, rng=0).regret
        np.testing.assert_allclose(own, design.replicate(Tableau(rewards, vectors=x), 100, 3, rng=0).regret)

    @pytest.mark.slow
    def test_own_design_in_own_environment_covers_its_means(self) -> None:
        def drifting(rng: np.random.Generator, horizon: int) -> FloatArray:
            level = np.linspace(-0.5, 0.5, horizon)[:, None]
            return level + np.array([0.0, 0.3]) + rng.standard_normal((horizon, 2))

        env = FunctionEnvironment(drifting, [0.0, 0.3])
        design = ai.designs.FunctionDesign(
            lambda state, context, rng: [0.5, 0.5] if state[0] < 20 else [0.2, 0.8],
            lambda state, context, arm, reward: (state[0] + 1,),
            (0,),
        )
        audited = [
            ai.audit.coverage(
                design,
                env,
                lambda log: ai.Contrast(log, treatment=1, control=0).fit("aipw", weights="uniform"),
                100,
                640,
                rng=0,
                n_jobs=n_jobs,
            )
            for n_jobs in (1, 2)
        ]
        assert audited[0].frame.equals(audited[1].frame)
        assert abs(float(audited[0].frame["coverage"].iloc[0]) - 0.95) < 4.5 * np.sqrt(0.0475 / 640)


class TestMeans:
    def test_without_means_truth_and_regret_are_unknown(self) -> None:
        env = FunctionEnvironment(coins)
        runs = ai.designs.Uniform().replicate(env, 20, 64, rng=0)
        assert np.isnan(runs.regret).all()
        with pytest.raises(AdaptinfError, match="has no true means"):
            ai.audit.coverage(ai.designs.Uniform(), env, lambda log: ai.ArmMeans(log).fit(), 40, 64, rng=0)
        with pytest.raises(ParameterError, match="has no true means"):
            ai.audit.operating_characteristics(ai.designs.Uniform(), env, 40, 64, rng=0)

    def test_probabilities_weigh_contexts(self) -> None:
        env = FunctionEnvironment(
            groups, [[0.2, 0.8], [0.9, 0.4]], features=["old", "young"], probabilities=[0.25, 0.75]
        )
        np.testing.assert_allclose(env.arm_means(), [0.725, 0.5])


class TestMistakes:
    @pytest.mark.parametrize(
        ("draw", "options", "text"),
        [
            (lambda rng, n: [1, 2], {}, r"shape \(8, arms\), got shape \(2,\)"),
            (lambda rng, n: np.full((n, 2), np.nan), {}, "got nan for arm 0 in round 1"),
            (lambda rng, n: np.full((n, 2), 2.0), {"reward_range": (0, 1)}, "from 0 to 1, got 2"),
            (lambda rng: 1, {}, "called with 2 arguments"),
            (lambda rng, n: 1 / 0, {}, "failed: ZeroDivisionError"),
            (lambda rng, n: "x", {}, "rewards as numbers"),
            (groups, {}, "set features="),
            (groups, {"features": ["old"]}, "'young', which is not in features"),
            (coins, {"features": ["old"]}, "8 contexts from features, got none"),
            (coins, {"arms": ["a"]}, r"shape \(8, 1\)"),
            (coins, {"arms": ["a", "a"]}, "distinct labels"),
            (coins, {"means": [1.0]}, r"means must be finite numbers of shape \(2,\)"),
            (coins, {"reward_range": (1, 0)}, "the smaller first"),
            (lambda rng, n: (np.zeros((n, 2)), np.zeros((n, 3, 2))), {}, r"\(horizon, arms, dimension\)"),
            (lambda rng, n: (np.zeros((n, 2)), np.full((n, 3), np.inf)), {}, "finite context vectors"),
        ],
    )
    def test_one_error_says_what_is_wrong(self, draw: Any, options: Any, text: str) -> None:
        with pytest.raises(ParameterError, match=text):
            FunctionEnvironment(draw, **options)

    def test_a_run_that_goes_wrong_names_its_round(self) -> None:
        def later(rng: np.random.Generator, horizon: int) -> FloatArray:
            rewards = rng.random((horizon, 2))
            rewards[10:] = np.inf
            return rewards

        env = FunctionEnvironment(later)
        with pytest.raises(ParameterError, match=r"draw\(rng, 30\) .* got inf for arm 0 in round 11"):
            ai.designs.Uniform().run(env, 30, rng=0)

    def test_horizons_beyond_the_longest(self) -> None:
        env = FunctionEnvironment(coins, horizon=50)
        with pytest.raises(ParameterError, match="at most 50"):
            ai.designs.Uniform().run(env, 51, rng=0)

    def test_what_needs_fixed_rewards_refuses(self) -> None:
        vectors = FunctionEnvironment(lambda rng, n: (rng.random((n, 2)), rng.random((n, 2))))
        with pytest.raises(ParameterError, match="drawn afresh in every run"):
            ai.designs.LDPBandit(epsilon=1.0).run(vectors, 100, rng=0)


class TestOutcomes:
    """Further outcomes: those of the arms that were chosen, kept by logs and unseen by designs."""

    @staticmethod
    def draw(rng: np.random.Generator, horizon: int) -> dict[str, Any]:
        step = np.arange(horizon, dtype=np.float64)[:, None]
        return {"rewards": coins(rng, horizon), "outcomes": {"orders": step + np.array([0.0, 0.25])}}

    def test_a_log_has_those_of_the_chosen_arms(self) -> None:
        env = FunctionEnvironment(self.draw, [0.3, 0.6], outcome_means={"orders": [1.0, 2.0]})
        log = ai.designs.Thompson().run(env, 50, rng=0)
        expected = np.arange(50) + 0.25 * log.arrays.action
        assert log.outcomes == ("orders",)
        np.testing.assert_array_equal(log.column("orders"), expected)
        np.testing.assert_allclose(env.ratios("orders"), [0.3, 0.3])
        plain = ai.designs.Thompson().run(OWN, 50, rng=0)
        np.testing.assert_array_equal(log.arrays.action, plain.arrays.action)

    @pytest.mark.parametrize(
        ("outcomes", "told"),
        [
            ({"z": np.ones(8)}, r"finite numbers of shape \(8, 2\) for the outcome 'z'"),
            ({"z": np.full((8, 2), np.nan)}, "finite numbers of shape"),
            ([np.ones((8, 2))], "must return outcomes as a dict"),
        ],
    )
    def test_bad_outcomes(self, outcomes: Any, told: str) -> None:
        with pytest.raises(ParameterError, match=told):
            FunctionEnvironment(lambda rng, horizon: {"rewards": coins(rng, horizon), "outcomes": outcomes})

    def test_bad_means_and_outcomes_that_come_and_go(self) -> None:
        with pytest.raises(ParameterError, match=r"no outcome 'order'(.|\n)*finite numbers of shape \(2,\)"):
            FunctionEnvironment(self.draw, outcome_means={"order": [1.0, 2.0], "orders": [1.0]})
        later = FunctionEnvironment(
            lambda rng, horizon: coins(rng, horizon) if horizon > 8 else self.draw(rng, horizon)
        )
        with pytest.raises(ParameterError, match="the same outcomes in every run"):
            ai.designs.Uniform().run(later, 20, rng=0)
