"""The winner against a control and against the second: reductions, rejection sampling, coverage, drift."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording

import adaptinf as ai
from adaptinf.claims.arms import winners as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.typing import FloatArray

METHODS = ("hybrid", "conditional", "projection")


def estimates(seed: int, size: int) -> tuple[FloatArray, FloatArray]:
    """Some estimates and a covariance that is not diagonal."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size + 2))
    sigma = root @ root.T / size
    return rng.multivariate_normal(np.zeros(size), sigma), sigma


class TestNumbers:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("seed", range(4))
    def test_against_a_control_is_the_winner_of_the_differences(self, method: str, seed: int) -> None:
        x, sigma = estimates(seed, 4)
        change = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, -1.0, 0.0, 1.0]])
        one = ai.winner_interval(x, sigma, 0.1, method, labels=list("abcd"), control="b")
        other = ai.winner_interval(change @ x, change @ sigma @ change.T, 0.1, method, labels=list("acd"))
        assert (one.winner, one.against) == (other.winner, "b")
        assert [one.low, one.high, *one.naive] == pytest.approx(
            [other.low, other.high, *other.naive], rel=1e-8
        )
        assert one.median_unbiased == pytest.approx(other.median_unbiased, rel=1e-8)

    @pytest.mark.parametrize("question", ["mean", "control", "runner-up"])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_law_at_the_limits_by_rejection_sampling(self, question: str, seed: int) -> None:
        x, sigma = estimates(seed + 10, 4)
        asked = {"mean": {}, "control": {"control": 3}, "runner-up": {"runner_up": True}}[question]
        found = ai.winner_interval(x, sigma, 0.2, "conditional", **asked)  # type: ignore[arg-type]
        won, direction = found.winner, np.zeros(4)
        direction[won] = 1.0
        if found.against is not None:
            direction[found.against] = -1.0
        slope = sigma @ direction / (direction @ sigma @ direction)
        rest, scale = x - slope * (direction @ x), math.sqrt(direction @ sigma @ direction)
        rng, checked = np.random.default_rng(seed), 0
        outside = np.zeros((4, 1))
        outside[3 if question == "control" else won] = math.inf if question == "control" else 0.0
        for mean, share in ((found.low, 0.9), (found.median_unbiased, 0.5), (found.high, 0.1)):
            draws = mean + scale * rng.standard_normal(400_000)
            order = np.argsort(outside - rest[:, None] - slope[:, None] * draws, axis=0)
            same = order[0] == won
            if question == "runner-up":
                same &= order[1] == found.against
            if same.sum() < 400:  # so far out that hardly a draw is kept
                continue
            below = np.mean(draws[same] <= direction @ x)
            assert abs(below - share) < 4.5 * math.sqrt(share * (1.0 - share) / same.sum())
            checked += 1
        assert checked >= 1

    def test_of_two_arms_no_choice_is_made_against_a_control(self) -> None:
        found = ai.winner_interval([0.4, 0.9], [[0.01, 0.002], [0.002, 0.02]], control=0)
        assert (found.low, found.high) == pytest.approx(found.naive, rel=1e-9)
        assert found.median_unbiased == pytest.approx(0.5, rel=1e-9)

    def test_a_far_third_arm_leaves_the_lead_of_two(self) -> None:
        three = ai.winner_interval([1.0, 0.2, -90.0], np.eye(3), method="conditional", runner_up=True)
        two = ai.winner_interval([1.0, 0.2], np.eye(2), method="conditional", runner_up=True)
        assert (three.low, three.high) == pytest.approx((two.low, two.high), abs=1e-9)
        projection = ai.winner_interval([1.0, 0.2], np.eye(2), method="projection", runner_up=True)
        assert (projection.low, projection.high) == pytest.approx(projection.naive, rel=1e-9)


class TestCoverage:
    @pytest.mark.slow
    @pytest.mark.parametrize("asked", [{"control": 0}, {"runner_up": True}], ids=["control", "runner-up"])
    @pytest.mark.parametrize("gap", [0.0, 1.0])
    def test_the_difference_is_covered(self, asked: dict[str, object], gap: float) -> None:
        rng = np.random.default_rng(11)
        theta = np.array([0.0, gap, 0.0, 0.0, 0.0])
        sigma = np.diag([1.0, 1.0, 2.0, 0.5, 1.0]) + 0.2
        runs, covered = 1_200, dict.fromkeys(METHODS, 0)
        above = usual = 0
        for x in rng.multivariate_normal(theta, sigma, runs):
            for method in METHODS:
                found = ai.winner_interval(x, sigma, method=method, **asked)  # type: ignore[arg-type]
                truth = theta[found.winner] - theta[found.against]
                covered[method] += found.low <= truth <= found.high
            found = ai.winner_interval(x, sigma, method="conditional", **asked)  # type: ignore[arg-type]
            above += found.median_unbiased > truth
            usual += found.naive[0] <= truth <= found.naive[1]
        error = 4.5 * math.sqrt(0.05 * 0.95 / runs)
        assert abs(covered["conditional"] / runs - 0.95) < error
        assert covered["hybrid"] / runs > 0.95 - error
        assert covered["projection"] / runs > 0.95 - error
        assert abs(above / runs - 0.5) < 4.5 * math.sqrt(0.25 / runs)
        if gap == 0.0 and "control" in asked:
            assert usual / runs < 0.935


class TestModel:
    @staticmethod
    def log(seed: int = 0) -> ai.AdaptiveLog:
        arms = ai.environments.BernoulliArms([0.3, 0.34, 0.33])
        return ai.designs.Thompson(floor=0.1, batch_size=50).run(arms, horizon=1_500, rng=seed)

    def test_a_fit_is_the_interval_of_its_means(self) -> None:
        log = self.log()
        means = ai.ArmMeans(log).fit("aipw")
        fit = ai.Winner(log, control=0).fit("aipw")
        found = ai.winner_interval(means.params, means.covariance, labels=log.arms, control=0)  # type: ignore[arg-type]
        assert fit.conf_int().to_numpy()[0] == pytest.approx([found.low, found.high], rel=1e-12)
        assert (fit.winner, fit.against, fit.terms) == (found.winner, 0, (f"{found.winner} (winner) - 0",))
        assert (fit.estimands[0].treatment, fit.estimands[0].control) == (found.winner, 0)
        second = ai.Winner(log, runner_up=True).fit(stationary=True)
        own = ai.ArmMeans(log).fit(stationary=True)
        assert second.weights == own.weights != "uniform"
        assert {second.winner, second.against} == set(own.params.nlargest(2).index.astype(int))
        assert says(
            second.notes[0],
            claims.HIGHEST,
            n=len(own.params),
            beside=claims.BESIDE_SECOND(second=second.against),
        )

    def test_sums_serve_as_well(self) -> None:
        log = self.log()
        rows = ai.Winner(log, control=1).fit("aipw", outcome="batch-mean")
        sums = ai.Winner(ai.Sums.of_log(log), control=1).fit("aipw")
        assert sums.conf_int().to_numpy() == pytest.approx(rows.conf_int().to_numpy(), rel=1e-9)

    @pytest.mark.slow
    def test_a_drift_that_the_arms_share_does_no_harm(self) -> None:
        covered, runs = 0, 150
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            early = np.arange(800) < 400
            share = np.where(early[:, None], [0.4, 0.3, 0.3], [0.1, 0.8, 0.1])
            arm = (rng.random(800)[:, None] > share.cumsum(axis=1)).sum(axis=1)
            frame = pd.DataFrame({"arm": arm, "y": rng.standard_normal(800) + 2.0 * early})
            frame[["p_0", "p_1", "p_2"]] = share
            log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}")
            low, high = ai.Winner(log, control=0).fit("aipw").conf_int().iloc[0]
            covered += low <= 0.0 <= high
        assert covered / runs > 0.95 - 4.5 * math.sqrt(0.05 * 0.95 / runs)


class TestInput:
    def test_everything_wrong_is_listed(self) -> None:
        with pytest.raises(ParameterError) as caught:
            ai.winner_interval([1.0, 2.0], np.eye(2), control="b", runner_up=True)
        assert "control must be one of 0, 1, got 'b'" in str(caught.value)
        assert "different comparisons: use one at a time" in str(caught.value)
        with pytest.raises(ParameterError, match="runner_up must be True or False"):
            ai.winner_interval([1.0, 2.0], np.eye(2), runner_up=1)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="two estimates"):
            ai.winner_interval([1.0], [[1.0]], runner_up=True)

    def test_a_difference_without_variance(self) -> None:
        with pytest.raises(ParameterError, match="zero variance"):
            ai.winner_interval([1.0, 2.0], np.ones((2, 2)), control=0)

    def test_a_tie_for_the_second_place_has_the_projection(self) -> None:
        found = ai.winner_interval([2.0, 1.0, 1.0], np.eye(3), runner_up=True)
        assert found.method == "projection"
        assert says(found.note, claims.TIED)

    def test_a_model_refuses_as_the_function_does(self) -> None:
        log = TestModel.log()
        with pytest.raises(ParameterError, match="control must be one of 0, 1, 2"):
            ai.Winner(log, control="A")
        lacking = ai.AdaptiveLog(
            log.frame[["action", "reward"]],
            action="action",
            reward="reward",
            arms=[0, 1, 2, 3],
            about={"context_free": True},
        )
        with pytest.raises(InvalidForLog, match=wording(claims.NO_ERROR, arms="3")):
            ai.Winner(lacking, control=0).fit()
