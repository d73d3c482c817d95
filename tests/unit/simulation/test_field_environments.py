"""Environments of the field: levels, tails and units as they were asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.units import ERRORS
from adaptinf.errors import ParameterError

DriftingArms = ai.environments.DriftingArms
HeavyTailedArms = ai.environments.HeavyTailedArms
RepeatedUnits = ai.environments.RepeatedUnits
FunctionEnvironment = ai.environments.FunctionEnvironment


class TestDrift:
    def test_levels_by_hand(self) -> None:
        linear = DriftingArms([0.0, 1.0], "linear", 0.4).levels(5)
        np.testing.assert_allclose(linear, [-0.2, -0.1, 0.0, 0.1, 0.2])
        weekend = DriftingArms([0.0, 1.0], "weekend", 0.7, day=2).levels(14)
        np.testing.assert_allclose(weekend, [-0.2] * 10 + [0.5] * 4)
        change = DriftingArms([0.0, 1.0], "change", 1.0, at=0.25).levels(8)
        np.testing.assert_allclose(change, [-0.75] * 2 + [0.25] * 6)

    @pytest.mark.parametrize("rewards", ["normal", "bernoulli"])
    @pytest.mark.parametrize("drift", ["linear", "weekend", "change"])
    def test_means_are_averages_over_any_number_of_rounds(self, drift: str, rewards: str) -> None:
        env = DriftingArms([0.4, 0.5], drift, 0.3, rewards=rewards, day=20)
        runs = ai.designs.Uniform().replicate(env, 190, 1_280, rng=1)
        means = runs.sums.sum(axis=0) / runs.pulls.sum(axis=0)
        error = np.sqrt(1.05 if rewards == "normal" else 0.25) / np.sqrt(runs.pulls.sum(axis=0).min())
        assert np.all(np.abs(means - [0.4, 0.5]) < 4.5 * error)

    def test_the_level_is_in_the_rewards(self) -> None:
        env = DriftingArms([0.0, 0.0], "change", 2.0, at=0.5)
        log = ai.designs.Uniform().run(env, 2_000, rng=0)
        early, late = log.arrays.reward[:1_000], log.arrays.reward[1_000:]
        assert abs(late.mean() - early.mean() - 2.0) < 4.5 * np.sqrt(2.0 / 1_000)

    def test_what_is_out_of_range(self) -> None:
        with pytest.raises(ParameterError, match="probabilities range from"):
            DriftingArms([0.1, 0.5], "linear", 0.5, rewards="bernoulli")
        with pytest.raises(ParameterError) as caught:
            DriftingArms([np.nan], "up", np.inf, rewards="beta", day=0, at=1.0)
        for name in ("means", "drift", "size", "rewards", "day", "at"):
            assert name in str(caught.value)

    def test_combined_weights_cover_the_difference_and_own_weights_do_not(self) -> None:
        env = DriftingArms([0.0, 0.0], "linear", 3.0)
        fits = {
            "combined": lambda log: ai.Contrast(log, treatment=1, control=0).fit("aipw", weights="combined"),
            "own": lambda log: ai.Contrast(log, treatment=1, control=0).fit("aipw", weights="sqrt"),
        }
        design = ai.designs.EpsilonGreedy(exploration=0.2)
        found = ai.audit.coverage(
            design, env, lambda log: {name: fit(log) for name, fit in fits.items()}, 400, 640, rng=0, n_jobs=2
        ).frame.set_index("analysis")["coverage"]
        assert abs(found["combined"] - 0.95) < 4.5 * np.sqrt(0.0475 / 640)
        assert found["own"] < 0.85


class TestTails:
    def test_moments_of_t(self) -> None:
        env = HeavyTailedArms([0.0, 1.0], degrees=6.0, scale=2.0)
        log = ai.designs.Uniform().run(env, 40_000, rng=0)
        own = log.arrays.reward[log.arrays.action == 1]
        variance = 4.0 * 6.0 / 4.0
        assert abs(own.mean() - 1.0) < 4.5 * np.sqrt(variance / own.size)
        assert abs(own.var() / variance - 1.0) < 4.5 * np.sqrt(5.0 / own.size)  # kurtosis 6

    def test_a_reward_is_its_mean_and_a_draw_of_scale_1_and_3_degrees(self) -> None:
        drawn = HeavyTailedArms([0.5, 1.5])._drawn(np.random.default_rng(1), 4)
        expected = np.random.default_rng(1).standard_t(3.0, (4, 2)) + np.array([0.5, 1.5])
        np.testing.assert_allclose(drawn, expected, rtol=1e-15)

    def test_spending_has_its_mean_and_its_share_of_buyers(self) -> None:
        env = HeavyTailedArms([1.0, 2.0], law="spending", buyers=0.1, spread=0.5)
        log = ai.designs.Uniform().run(env, 40_000, rng=0)
        own = log.arrays.reward[log.arrays.action == 1]
        assert abs((own > 0).mean() - 0.1) < 4.5 * np.sqrt(0.09 / own.size)
        second = 4.0 / 0.1 * np.exp(0.25)
        assert abs(own.mean() - 2.0) < 4.5 * np.sqrt(second / own.size)
        assert abs(np.log(own[own > 0]).std() - 0.5) < 4.5 * 0.5 / np.sqrt(2 * (own > 0).sum())

    def test_what_is_out_of_range(self) -> None:
        with pytest.raises(ParameterError, match="greater than 1 for the mean to exist"):
            HeavyTailedArms([0.0], degrees=1.0)
        with pytest.raises(ParameterError, match="above 0"):
            HeavyTailedArms([0.0, 1.0], law="spending")


class TestUnits:
    def test_logs_have_units_and_errors_by_them(self) -> None:
        env = RepeatedUnits([0.0, 0.3], units=40, unit_scale=2.0, scale=0.5)
        log = ai.designs.Uniform().run(env, 4_000, rng=0)
        assert log.units is not None
        assert sorted(set(log.units.tolist())) == list(range(40))
        within = [log.arrays.reward[log.units == unit].std() for unit in range(40)]
        assert np.mean(within) < 0.6
        notes = ai.ArmMeans(log).fit("aipw", weights="uniform").explain().texts
        assert says(notes, ERRORS, units=40)

    def test_replicates_and_logs_agree(self) -> None:
        env = RepeatedUnits([0.0, 0.3], units=10)
        design = ai.designs.EpsilonGreedy(exploration=0.2)
        runs = design.replicate(env, 60, 70, rng=2)
        for run, log in enumerate(design.logs(env, 60, 70, rng=2)):
            np.testing.assert_array_equal(np.bincount(log.arrays.action, minlength=2), runs.pulls[run])

    def test_units_that_are_no_labels(self) -> None:
        with pytest.raises(ParameterError, match="labels of units"):
            ai.environments.FunctionEnvironment(
                lambda rng, n: {"rewards": np.zeros((n, 2)), "units": np.zeros(n)}
            )
        with pytest.raises(ParameterError, match="units must be"):
            RepeatedUnits([0.0, 0.3], units=1)


class TestDelays:
    @staticmethod
    def env(delays: object) -> ai.environments.FunctionEnvironment:
        """Rewards that are the number of their round."""

        def draw(rng: np.random.Generator, n: int) -> dict[str, object]:
            rewards = np.repeat(np.arange(1.0, n + 1.0)[:, None], 2, axis=1)
            return {"rewards": rewards, "delays": np.resize(np.asarray(delays), n)}

        return FunctionEnvironment(draw)

    def test_update_has_an_outcome_before_the_round_that_it_may_move(self) -> None:
        seen: list[tuple[float, ...]] = []

        def choose(state: tuple[float, ...], context: object, rng: np.random.Generator) -> list[float]:
            seen.append(state)
            return [0.5, 0.5]

        design = ai.designs.FunctionDesign(choose, lambda state, context, arm, reward: (*state, reward), ())
        log = design.run(self.env([0, 2, 0, 1, 9]), 5, rng=0)
        # round 1 is known before round 2, round 2 before round 5, round 3 before round 4
        assert seen == [(), (1.0,), (1.0,), (1.0, 3.0), (1.0, 3.0, 2.0)]
        assert log.arrays.known is not None
        assert log.arrays.known.tolist() == [1, 4, 3, 5, 5]

    def test_without_delays_nothing_changes(self) -> None:
        own = ai.designs.FunctionDesign(
            lambda state, context, rng: [0.2, 0.8] if state > 20 else [0.5, 0.5],
            lambda state, context, arm, reward: state + arm,
            0,
        )
        plain = FunctionEnvironment(lambda rng, n: np.repeat(np.arange(1.0, n + 1.0)[:, None], 2, axis=1))
        logs = [own.run(env, 60, rng=1) for env in (self.env([0]), plain)]
        np.testing.assert_array_equal(logs[0].arrays.action, logs[1].arrays.action)
        assert logs[1].arrays.known is None

    def test_a_log_keeps_when_outcomes_were_known(self, tmp_path: Path) -> None:
        design = ai.designs.FunctionDesign(lambda *_: [0.5, 0.5], lambda state, *_: state + 1, 0)
        log = design.run(self.env([3]), 40, rng=0)
        assert log.feedback_rounds == 36  # round 36 is known before round 40
        log.to_parquet(tmp_path / "late.parquet")
        again = ai.read_log(tmp_path / "late.parquet")
        np.testing.assert_array_equal(again.arrays.known, log.arrays.known)
        assert ai.ArmMeans(again).fit("aipw").params.notna().all()

    def test_designs_that_learn_at_once_refuse(self) -> None:
        with pytest.raises(ParameterError, match="are delayed"):
            ai.designs.Thompson().run(self.env([3]), 10, rng=0)
        with pytest.raises(ParameterError, match="are delayed"):
            ai.designs.Mixture(ai.designs.UCB()).run(self.env([3]), 10, rng=0)

    @pytest.mark.parametrize("wrong", [[-1], [0.5]])
    def test_delays_that_are_none(self, wrong: list[float]) -> None:
        with pytest.raises(ParameterError, match="whole numbers of rounds, 0 or more"):
            self.env(wrong)
