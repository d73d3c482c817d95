"""Intervals of the winner: published figures, a literal version in many digits, coverage, bad input."""

from __future__ import annotations

import math
import time

import mpmath
import numpy as np
import pytest
from claims_said import says, wording
from scipy import stats
from scipy.optimize import brentq

import adaptinf as ai
from adaptinf.claims.arms import winners as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.winners.contest import Contest
from adaptinf.inference.winners.winner_law import NEAR, WinnerLaw, log_between, log_tail
from adaptinf.typing import FloatArray

METHODS = ("hybrid", "conditional", "projection")


def literal(x: FloatArray, sigma: FloatArray, alpha: float, method: str) -> tuple[float, float]:
    """Limits from the definition, in 500 digits."""
    won = int(np.argmax(x))
    k, scale = len(x), math.sqrt(sigma[won, won])
    low, high = -math.inf, math.inf
    for other in range(k):
        slope = sigma[other, won] / sigma[won, won]
        rest = x[other] - slope * x[won]
        if other != won and slope < 1.0:
            low = max(low, rest / (1.0 - slope))
        elif other != won and slope > 1.0:
            high = min(high, rest / (1.0 - slope))
    beta = alpha / 10.0 if method == "hybrid" else alpha
    critical = float(stats.norm.isf(0.5 * (1.0 - (1.0 - beta) ** (1.0 / k)))) * scale
    if method == "projection":
        return x[won] - critical, x[won] + critical
    level = (alpha - beta) / (1.0 - beta) if method == "hybrid" else alpha

    def share(mean: float) -> float:
        ends = [low, high]
        if method == "hybrid":
            ends = [max(low, mean - critical), min(high, mean + critical)]
        with mpmath.workdps(500):
            lower, upper, here = (
                mpmath.ncdf((mpmath.mpf(end) - mpmath.mpf(mean)) / mpmath.mpf(scale))
                for end in (*ends, x[won])
            )
            return float((here - lower) / (upper - lower))

    span = 40.0 * scale if method == "conditional" else critical * (1.0 - 1e-12)
    start, stop = x[won] - span, x[won] + span
    shares = (1.0 - 0.5 * level, 0.5 * level)
    ends = [brentq(lambda mean, target=target: share(mean) - target, start, stop) for target in shares]
    return ends[0], ends[1]


class TestFigures:
    @pytest.mark.parametrize(
        ("x", "method", "limits"),
        [
            ((2.0, 1.9), "conditional", (-34.9117, 3.0470)),
            ((2.0, 1.9), "hybrid", (-1.0203, 3.1220)),
            ((2.0, 1.9), "projection", (-0.2365, 4.2365)),
            ((3.0, 1.0), "conditional", (0.6299, 4.9593)),
            ((3.0, 1.0), "hybrid", (0.6529, 4.9808)),
            ((3.0, 1.0), "projection", (0.7635, 5.2365)),
        ],
    )
    def test_two_independent_estimates(
        self, x: tuple[float, float], method: str, limits: tuple[float, float]
    ) -> None:
        found = ai.winner_interval(x, np.eye(2), method=method)
        assert (found.low, found.high) == pytest.approx(limits, abs=1e-4)
        assert found.naive == pytest.approx((x[0] - 1.959964, x[0] + 1.959964), abs=1e-6)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("seed", range(4))
    def test_against_the_definition(self, method: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 7))
        root = rng.standard_normal((size, size + 1))
        sigma = root @ root.T / size * 0.04
        x = 0.3 * rng.standard_normal(size)
        found = ai.winner_interval(x, sigma, 0.1, method)
        assert (found.low, found.high) == pytest.approx(literal(x, sigma, 0.1, method), abs=1e-7)

    def test_a_clear_winner_has_the_usual_interval(self) -> None:
        found = ai.winner_interval([50.0, 0.0, 0.0], np.eye(3), method="conditional")
        assert (found.low, found.high) == pytest.approx(found.naive, abs=1e-9)
        assert found.median_unbiased == pytest.approx(50.0, abs=1e-9)

    def test_one_estimate_has_the_usual_interval(self) -> None:
        found = ai.winner_interval([1.0], [[4.0]], method="conditional")
        assert (found.low, found.high) == pytest.approx((1.0 - 3.919928, 1.0 + 3.919928), abs=1e-6)

    def test_scale_and_origin_move_along(self) -> None:
        x, sigma = np.array([0.31, 0.3, 0.1]), np.diag([0.01, 0.02, 0.01])
        one, other = ai.winner_interval(x, sigma), ai.winner_interval(1e6 + 1e3 * x, 1e6 * sigma)
        assert other.low == pytest.approx(1e6 + 1e3 * one.low, rel=1e-9)
        assert other.median_unbiased == pytest.approx(1e6 + 1e3 * one.median_unbiased, rel=1e-9)


class TestTails:
    @pytest.mark.parametrize("ends", [(-1.0, 2.0), (30.0, 30.001), (-41.0, -40.0), (-50.0, 60.0), (7.9, 8.0)])
    def test_logs_of_probabilities(self, ends: tuple[float, float]) -> None:
        with mpmath.workdps(900):
            exact = float(mpmath.log(mpmath.ncdf(ends[1]) - mpmath.ncdf(ends[0])))
        assert log_between(*ends) == pytest.approx(exact, rel=1e-9, abs=1e-14)

    def test_a_law_far_outside_its_limits_is_at_the_nearer_end(self) -> None:
        assert log_tail(1.5, -1e9, 1.0, 2.0, upper=False) == pytest.approx(0.0, abs=1e-12)
        assert log_tail(1.5, 1e9, 1.0, 2.0, upper=False) < -1e6
        assert log_tail(1.5, 1e9, 1.0, 2.0, upper=True) == pytest.approx(0.0, abs=1e-12)
        assert log_tail(1.5, -1e9, 1.0, 2.0, upper=True) < -1e6

    @pytest.mark.parametrize("size", [2.0, 9.0, 12.0, 20.0])
    def test_pvalues_far_in_either_tail(self, size: float) -> None:
        """Twice the smaller tail of the truncated normal, also where the larger one rounds to 1."""
        x, sigma = np.array([30.0, 25.0, 0.0]), np.eye(3)
        law = WinnerLaw.of(x, sigma, "conditional", Contest.of_mean(x))
        for mean in (30.0 - size, 30.0 + size):
            with mpmath.workdps(300):
                known = mpmath.ncdf(-(25 - mpmath.mpf(mean)))
                above = mpmath.ncdf(-(30 - mpmath.mpf(mean))) / known
                exact = float(mpmath.log(2 * min(above, 1 - above)))
            assert law.log_pvalues(mean)[0] == pytest.approx(exact, rel=1e-9)

    def test_a_noisy_choice_has_both_tails(self) -> None:
        x, sigma = np.array([3.0, 1.0]), np.eye(2)
        law = WinnerLaw.of(x, sigma, "conditional", Contest.of_mean(x), np.full(2, 0.5)).law
        for mean in (-4.0, 1.0, 3.0, 6.0):
            below, above = (law(3.0, mean, -math.inf, math.inf, upper=upper) for upper in (False, True))
            assert math.exp(below) + math.exp(above) == pytest.approx(1.0, rel=1e-12)
        far = law(3.0, -6.0, -math.inf, math.inf, upper=True)
        assert -60.0 < far < math.log(1e-14)


class TestCoverage:
    @pytest.mark.slow
    @pytest.mark.parametrize("gap", [0.0, 1.0])
    @pytest.mark.parametrize("size", [2, 10])
    def test_the_winners_mean_is_covered(self, size: int, gap: float) -> None:
        rng = np.random.default_rng(7)
        theta = np.zeros(size)
        theta[0] = gap
        correlation = 0.3 + 0.7 * np.eye(size)
        draws = rng.multivariate_normal(theta, correlation, 1_500)
        covered = dict.fromkeys(METHODS, 0)
        usual = above = 0
        for x in draws:
            truth = theta[np.argmax(x)]
            for method in METHODS:
                found = ai.winner_interval(x, correlation, method=method)
                covered[method] += found.low <= truth <= found.high
            usual += found.naive[0] <= truth <= found.naive[1]
            above += found.median_unbiased > truth
        error = math.sqrt(0.05 * 0.95 / 1_500)
        assert abs(covered["conditional"] / 1_500 - 0.95) < 4.5 * error
        assert covered["hybrid"] / 1_500 > 0.95 - 4.5 * error
        assert covered["projection"] / 1_500 > 0.95 - 4.5 * error
        assert abs(above / 1_500 - 0.5) < 4.5 * math.sqrt(0.25 / 1_500)
        if size == 10 and gap == 0.0:
            assert usual / 1_500 < 0.9

    @pytest.mark.parametrize(("near", "wider"), [(0.0, 1.252), (NEAR, 1.293)])
    def test_ten_independent_normals_cost_a_quarter_of_the_width(
        self, monkeypatch: pytest.MonkeyPatch, near: float, wider: float
    ) -> None:
        """The hybrid alone, and with the projection for near ties."""
        monkeypatch.setattr("adaptinf.inference.winners.winner_law.NEAR", near)
        rng = np.random.default_rng(3)
        found = [ai.winner_interval(x, np.eye(10)) for x in rng.standard_normal((2_000, 10))]
        ratio = np.array([(one.high - one.low) / (one.naive[1] - one.naive[0]) for one in found])
        assert abs(ratio.mean() - wider) < 4.5 * ratio.std() / math.sqrt(2_000)

    def test_twenty_estimates_take_milliseconds(self) -> None:
        rng = np.random.default_rng(0)
        root = rng.standard_normal((20, 40))
        x, sigma = rng.standard_normal(20), root @ root.T / 40
        ai.winner_interval(x, sigma)
        began = time.process_time()
        for _ in range(20):
            ai.winner_interval(x, sigma)
        assert (time.process_time() - began) / 20 < 0.5  # 50 ms is wanted; a loaded machine may be slower


class TestModel:
    @staticmethod
    def log(seed: int = 0) -> ai.AdaptiveLog:
        arms = ai.environments.BernoulliArms([0.3, 0.34, 0.33])
        return ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=1_500, rng=seed)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_fit_is_the_interval_of_its_means(self, method: str) -> None:
        means = ai.ArmMeans(self.log()).fit("aipw")
        best = ai.Winner(self.log()).fit("aipw", method=method)
        found = ai.winner_interval(means.params, means.covariance, 0.1, method, labels=self.log().arms)
        assert best.winner == found.winner
        assert best.conf_int(0.1).to_numpy()[0] == pytest.approx([found.low, found.high], rel=1e-12)
        assert best.params.iloc[0] == pytest.approx(found.median_unbiased, rel=1e-12)
        assert says(best.notes[0], claims.HIGHEST, arm=found.winner, n=3)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_p_value_is_the_level_at_which_the_interval_ends(self, method: str) -> None:
        best = ai.Winner(self.log()).fit("aipw", method=method, null=0.3)
        level = float(best.pvalues.iloc[0])
        wide, narrow = best.conf_int(level * 0.999), best.conf_int(min(level * 1.001, 0.49))
        assert wide["low"].iloc[0] <= 0.3 <= wide["high"].iloc[0]
        assert not narrow["low"].iloc[0] <= 0.3 <= narrow["high"].iloc[0]

    @pytest.mark.slow
    def test_equal_arms_are_covered_where_the_usual_interval_is_not(self) -> None:
        arms = ai.environments.NormalArms([0.0] * 6)
        found = ai.audit.coverage(
            ai.designs.EpsilonGreedy(exploration=0.5),
            arms,
            lambda log: {"winner": ai.Winner(log).fit("aipw")},
            1_200,
            512,
            rng=3,
            n_jobs=2,
        ).frame
        shares = found["coverage"].to_numpy() @ found["runs"].to_numpy() / found["runs"].sum()
        assert shares > 0.95 - 4.5 * math.sqrt(0.0475 / 512)

    def test_sums_serve_as_well(self) -> None:
        frame = self.log().frame.assign(batch=np.arange(1_500) // 100)
        moving = ai.AdaptiveLog(frame, action="action", reward="reward", batch="batch")
        arms = ai.environments.BernoulliArms([0.3, 0.34, 0.33])
        steady = ai.designs.Thompson(floor=0.1, batch_size=100).run(arms, horizon=1_500, rng=0)
        for batched, weights in ((moving, "uniform"), (steady, "uniform"), (steady, "joint")):
            sums = ai.Sums.of_log(batched)
            best = ai.Winner(sums).fit("aipw", weights)
            rows = ai.Winner(batched).fit("aipw", weights, outcome="batch-mean")
            assert best.conf_int().to_numpy() == pytest.approx(rows.conf_int().to_numpy(), rel=1e-9)

    def test_an_arm_without_an_estimate_is_refused_by_name(self) -> None:
        frame = self.log().frame[["action", "reward"]]
        log = ai.AdaptiveLog(
            frame, action="action", reward="reward", arms=[0, 1, 2, 3], about={"context_free": True}
        )
        with pytest.raises(InvalidForLog, match=wording(claims.NO_ERROR, arms="3") + "; .*arms="):
            ai.Winner(log).fit()
        assert ai.Winner(log, arms=[0, 1, 2]).fit().winner in (1, 2)


class TestInput:
    def test_a_tie_has_the_projection_and_says_so(self) -> None:
        found = ai.winner_interval([1.0, 1.0, 0.0], np.eye(3))
        assert found.method == "projection"
        assert found.low == pytest.approx(1.0 - 2.3877, abs=1e-4)
        assert claims.TIED(near=0.02) in str(found)

    @pytest.mark.parametrize(("lead", "method"), [(0.019, "projection"), (0.021, "hybrid")])
    def test_a_lead_of_next_to_nothing_is_a_tie(self, lead: float, method: str) -> None:
        """Leads in standard errors of the difference, which are .6 here."""
        sigma = np.array([[0.36, 0.18], [0.18, 0.36]])
        found = ai.winner_interval([0.5 + 0.6 * lead, 0.5], sigma)
        assert found.method == method
        if method == "projection":
            assert found.low < found.estimate == found.median_unbiased < found.high
            alone = ai.winner_interval([0.5 + 0.6 * lead, 0.5], sigma, method="conditional")
            assert alone.method == "conditional"

    def test_near_ties_cost_no_coverage(self) -> None:
        """Equal arms: what the projection adds is the near ties whose hybrid interval is a point."""
        rng = np.random.default_rng(20261127)
        missed, short = 0, 0
        for x in rng.normal(size=(1_500, 3)):
            found = ai.winner_interval(x, np.eye(3))
            missed += not found.low <= 0.0 <= found.high
            short += not found.low <= x.max() <= found.high
        assert missed <= 1_500 * 0.05 + 4.0 * math.sqrt(1_500 * 0.05 * 0.95)
        assert short == 0

    def test_labels_name_the_winner(self) -> None:
        found = ai.winner_interval([0.1, 0.4], 0.01 * np.eye(2), labels=["old", "new"])
        assert found.winner == "new"
        assert str(found).startswith("Winner: 'new'\n  estimate            0.4 (standard error 0.1)")

    def test_everything_wrong_is_listed(self) -> None:
        with pytest.raises(ParameterError) as caught:
            ai.winner_interval([1.0, np.nan], [[1.0, 0.0]], alpha=0.7, method="best")
        for name in ("estimates", "covariance", "alpha", "method"):
            assert name in str(caught.value)

    @pytest.mark.parametrize(
        ("covariance", "text"),
        [
            ([[1.0, 0.5], [0.1, 1.0]], "symmetric"),
            ([[1.0, 2.0], [2.0, 1.0]], "negative eigenvalue"),
            ([[0.0, 0.0], [0.0, 1.0]], "positive variances"),
            (np.eye(3), r"shape \(2, 2\)"),
        ],
    )
    def test_what_is_no_covariance(self, covariance: object, text: str) -> None:
        with pytest.raises(ParameterError, match=text):
            ai.winner_interval([1.0, 2.0], covariance)  # type: ignore[arg-type]
