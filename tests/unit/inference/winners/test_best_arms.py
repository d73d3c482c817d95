"""The set of arms that may be the best: Hsu's critical values by integration, coverage, tables, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import brentq

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.winners.winner_results import (
    compared_with_best,
    critical_lead,
    difference_errors,
    lead_tails,
)


def hsu(size: int, df: float, alpha: float) -> float:
    """One-sided Dunnett's critical value of equal variances, by integration."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    def below(limit: float) -> float:
        return float(weights @ stats.norm.cdf(math.sqrt(2.0) * limit + nodes) ** (size - 1)) / math.sqrt(
            2 * math.pi
        )

    def inside(limit: float) -> float:
        if math.isinf(df):
            return below(limit)
        law = stats.chi(df, scale=1.0 / math.sqrt(df))
        return float(
            integrate.quad(lambda s: law.pdf(s) * below(limit * s), *law.ppf([1e-12, 1.0 - 1e-12]))[0]
        )

    return float(brentq(lambda limit: inside(limit) - (1.0 - alpha), 0.1, 12.0))


class TestNumbers:
    @pytest.mark.parametrize(
        ("size", "df"), [(2, 8.0), (3, math.inf), (4, 10.0), (6, math.inf), (6, 20.0), (12, 60.0)]
    )
    def test_critical_values_of_equal_variances_are_hsus(self, size: int, df: float) -> None:
        sigma = 0.3 * np.eye(size)
        tails = lead_tails(sigma, difference_errors(sigma), df)
        limits = [critical_lead(tail, 0.05, size, df) for tail in tails]
        assert limits == pytest.approx([hsu(size, df, 0.05)] * size, abs=3e-3)

    def test_a_published_critical_value(self) -> None:
        # Dunnett's table, one-sided: 4 treatments and a control, 20 degrees of freedom
        assert hsu(5, 20.0, 0.05) == pytest.approx(2.30, abs=0.006)

    def test_the_table_by_hsus_formulas(self) -> None:
        x, sigma, d = np.array([5.0, 4.0, 1.0, 3.9]), 0.25 * np.eye(4), hsu(4, math.inf, 0.05)
        limits, p, kept = compared_with_best(x, sigma, 0.05)
        half = d * math.sqrt(0.5)
        rest = [max(np.delete(x, arm)) for arm in range(4)]
        high = [max(0.0, own - best + half) for own, best in zip(x, rest, strict=True)]
        assert limits[:, 1] == pytest.approx(high, abs=3e-3)
        assert kept.tolist() == [True, True, False, True]
        low = [min(0.0, own - max(x[[j for j in (0, 1, 3) if j != arm]]) - half) for arm, own in enumerate(x)]
        assert limits[:, 0] == pytest.approx(low, abs=3e-3)
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        tail = 1.0 - weights @ stats.norm.cdf(1.0 / 0.5 + nodes) ** 3 / math.sqrt(2 * math.pi)
        assert p == pytest.approx([1.0, tail, p[2], p[3]], abs=3e-4)
        assert p[2] < 1e-6

    def test_a_clear_winner_is_alone_and_its_lead_has_no_lower_end_below_nought(self) -> None:
        limits, _, kept = compared_with_best(np.array([0.0, 9.0, 1.0]), np.eye(3), 0.05)
        assert kept.tolist() == [False, True, False]
        assert limits[1, 0] == 0.0
        assert limits[[0, 2], 1].tolist() == [0.0, 0.0]

    def test_two_arms_have_the_one_sided_test(self) -> None:
        _, p, _ = compared_with_best(np.array([0.0, 1.0]), np.array([[1.0, 0.3], [0.3, 2.0]]), 0.05, 9.0)
        assert p == pytest.approx([stats.t.sf(1.0 / math.sqrt(2.4), 9.0), 1.0], rel=1e-9)


class TestCoverage:
    def test_the_best_arm_is_left_out_as_often_as_stated(self) -> None:
        rng = np.random.default_rng(2)
        root = rng.standard_normal((5, 7))
        sigma = root @ root.T
        errors = difference_errors(sigma)
        draws = rng.multivariate_normal(np.zeros(5), sigma, 200_000)
        for arm, tail in enumerate(lead_tails(sigma, errors, math.inf)):
            limit = critical_lead(tail, 0.05, 5, math.inf)
            beyond = ((draws - draws[:, [arm]]) / errors[arm]).max(axis=1) > limit
            assert abs(beyond.mean() - 0.05) < 4.5 * math.sqrt(0.05 * 0.95 / 200_000) + 2e-4

    @pytest.mark.slow
    def test_logs_of_a_design_that_adapts(self) -> None:
        env = ai.environments.NormalArms([0.2, 0.2, 0.0])
        held = 0
        for log in ai.designs.EpsilonGreedy(exploration=0.4).logs(env, 400, 100, 5):
            held += bool(ai.Winner(log).fit("aipw").best_arms()["in_set"].loc[0])
        assert held / 100 > 0.95 - 4.5 * math.sqrt(0.05 * 0.95 / 100)


class TestModel:
    def test_rows_are_arms_and_the_winner_is_among_them(self) -> None:
        env = ai.environments.BernoulliArms([0.2, 0.5, 0.5])
        log = ai.designs.Thompson(floor=0.1).run(env, horizon=1_000, rng=4)
        best = ai.Winner(log).fit()
        table = best.best_arms(0.1)
        assert table.index.tolist() == [0, 1, 2]
        assert table["in_set"].tolist() == [False, True, True]
        assert table["p_value"].loc[best.winner] == 1.0
        assert ((table["p_value"] > 0.1) == table["in_set"]).all()
        with pytest.raises(ParameterError, match="alpha"):
            best.best_arms(0.7)

    def test_estimates_that_are_not_valid_are_refused(self) -> None:
        env = ai.environments.NormalArms([0.0, 0.2])
        log = ai.designs.Thompson(floor=0.1).run(env, horizon=300, rng=4)
        naive = ai.Winner(log).fit("sample-mean", test="normal")
        with pytest.raises(InvalidForLog, match="not valid for the log"):
            naive.best_arms()
