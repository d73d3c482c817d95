"""Exact errors and Table 1's regions of the study of best-arm identification, against literal versions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.designs.best_arm.arm_collections import max_det
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.privacy.real_mechanisms import gaussian_delta
from adaptinf.simulation.environments import BernoulliArms, UniformArms
from case_studies.best_arm import exact, regions, setting


@pytest.mark.parametrize("law", ["laplace", "normal"])
@pytest.mark.parametrize("x", [-3.0, 0.0, 0.4, 7.0])
def test_tails_of_differences_against_quadrature(law: str, x: float) -> None:
    one = stats.laplace(scale=1.5) if law == "laplace" else stats.norm(scale=1.5)
    literal = integrate.quad(lambda z: one.pdf(z) * one.sf(x + z), -60, 60, points=[0.0, -x], limit=400)[0]
    assert math.exp(exact.log_tail(np.array([x]), law, 1.5)[0]) == pytest.approx(literal, rel=1e-7)


def test_error_of_two_arms_by_all_pairs_of_sums() -> None:
    pulls, gap, scale = 7, 0.3, 2.0
    first, second = stats.binom(pulls, 0.65), stats.binom(pulls, 0.35)
    literal = sum(
        first.pmf(i) * second.pmf(j) * stats.norm.sf(i - j, scale=math.sqrt(2.0) * scale)
        for i in range(pulls + 1)
        for j in range(pulls + 1)
    )
    assert math.exp(exact.log_error(pulls, gap, "normal", scale)) == pytest.approx(literal, rel=1e-10)


def test_error_of_two_arms_is_that_of_the_designs() -> None:
    env, runs = BernoulliArms([0.55, 0.45]), 40_000
    found = regions.two_arms(251, 0.3, 0.01)
    designs = {
        "DP-BAI": DPBAI(epsilon=0.3, features=np.eye(2)),
        "DP-BAI-Gauss": DPBAIGauss(epsilon=0.3, delta=0.01, features=np.eye(2), calibration="published"),
        "analytic": DPBAIGauss(epsilon=0.3, delta=0.01, features=np.eye(2)),
    }
    for name, design in designs.items():
        error, known = (
            (design.replicate(env, 251, runs, rng=5).recommended != 0).mean(),
            math.exp(found[name]),
        )
        assert abs(error - known) < 4.5 * math.sqrt(known * (1.0 - known) / runs), name


def test_ratio_of_errors_tends_to_its_limit() -> None:
    scale = regions.classical_scale(1.0, 1e-5)
    limit = exact.limit(0.1, scale, 1.0)
    logs = [
        exact.log_error(n, 0.1, "normal", scale) - exact.log_error(n, 0.1, "laplace", 1.0)
        for n in (5_000, 50_000, 500_000)
    ]
    away = np.abs(np.exp(logs) - limit)
    assert limit == pytest.approx(2.370, abs=5e-4)
    assert away[0] > 5.0 * away[1] > 25.0 * away[2]
    # moment generating functions at log(p / q), but for the steps of the sums
    s = math.log(0.55 / 0.45)
    assert limit == pytest.approx(math.exp((s * scale) ** 2) * (1.0 - s**2) ** 2, rel=0.01)


def test_laplace_noise_that_uses_delta_gives_it() -> None:
    epsilon, delta = 0.2, 0.1
    scale = exact.laplace_scale(epsilon, delta)

    def excess(x: float) -> float:
        return float(stats.laplace.pdf(x, 0, scale) - math.exp(epsilon) * stats.laplace.pdf(x, 1, scale))

    given = integrate.quad(lambda x: max(excess(x), 0.0), -80, 80, points=[0.0, 0.5, 1.0], limit=500)[0]
    assert given == pytest.approx(delta, rel=1e-5)
    assert 1.0 / exact.laplace_scale(epsilon, 1e-12) == pytest.approx(epsilon)


def test_noise_of_the_maps_is_private() -> None:
    for delta in (1e-10, 1e-5, 0.5):
        assert gaussian_delta(regions.EPSILON, regions.classical_scale(regions.EPSILON, delta)) <= delta
    assert gaussian_delta(2.0, regions.classical_scale(2.0, 1e-5)) <= 1e-5


def test_sums_of_uniforms_by_the_normal_limit_and_by_symmetry() -> None:
    assert exact.ahead(30, (1.0, 1.0), (3.0, 3.0)) == pytest.approx(0.5, abs=1e-9)
    known = stats.norm.cdf(400 * 0.05 / math.sqrt(400 * (1.0 + 0.81) / 12.0))
    assert exact.ahead(400, (1.0, 0.9), (0.0, 0.0)) == pytest.approx(known, abs=1e-4)
    # two rewards: the difference of triangular variables, by simulation
    draws = np.random.default_rng(1).uniform(size=(400_000, 4)) * [1.0, 1.0, 0.9, 0.9]
    noise = np.random.default_rng(2).laplace(size=(400_000, 2)) * [0.5, 2.0]
    one, two = draws[:, :2].sum(axis=1) + noise[:, 0], draws[:, 2:].sum(axis=1) + noise[:, 1]
    found = exact.ahead(2, (1.0, 0.9), (0.5, 2.0), positive=True)
    assert found == pytest.approx(np.mean((one > two) & (one > 0.0)), abs=4e-3)


def test_section_5_pulls_two_arms_and_dp_od_is_dp_bai_in_other_coordinates() -> None:
    rows = setting.features()
    assert max_det(rows).tolist() == [0, 2]
    scaled = setting.rescaled(rows)
    assert np.abs(scaled).sum(axis=1).max() == pytest.approx(1.0)
    np.testing.assert_allclose(scaled[3:, 1], 0.1)
    env = UniformArms(np.zeros(30), 2.0 * rows @ setting.THETA)
    for design in (DPBAI(epsilon=0.1, features=rows), DPOD(epsilon=0.1, features=scaled)):
        pulled = design.replicate(env, 402, 50, rng=0).pulls
        assert (pulled[:, [0, 2]] >= 200).all()
    assert setting.exact_share("DP-OD, rescaled", 500, 0.1) == setting.exact_share("DP-BAI", 500, 0.1)
    assert setting.exact_share("DP-OD", 500, 0.1) < setting.exact_share("DP-BAI", 500, 0.1)


def test_rows_of_table_1_by_hand() -> None:
    # d = e would make log d = 1; with d = 2 and delta = 1.25 / e the logarithm of 1.25 / delta is 1
    log_d, delta = math.log(2), 1.25 / math.e
    over_all, over_bai = regions.statistic(100.0, 300.0, 2, 1_000.0, delta)
    square = (1_000.0 / (300.0 * log_d)) ** 2
    assert over_all == pytest.approx(square / (1_000.0 / (400.0 * log_d)))
    assert over_bai == pytest.approx(square / (1_000.0 / (100.0 * log_d)))
    borders = (300.0**2 * log_d / 400.0, 300.0**2 * log_d / 100.0)
    found = [regions.table_row(100.0, 300.0, 2, T, delta) for T in (0.99 * borders[0], 1.01 * borders[0])]
    found += [regions.table_row(100.0, 300.0, 2, T, delta) for T in (0.99 * borders[1], 1.01 * borders[1])]
    assert found == [3, 2, 2, 1]


def test_winner_needs_three_standard_errors() -> None:
    assert regions.compared(0.10, 0.20, 1_000, 1)["verdict"] == "the other one"
    assert regions.compared(0.10, 0.20, 1_000, 3)["verdict"] == "as ticked"
    assert regions.compared(0.20, 0.10, 1_000, 2)["verdict"] == "as ticked"
    assert regions.compared(0.10, 0.12, 1_000, 3)["verdict"] == "undecided"
    assert regions.compared(0.0, 0.0, 1_000, 1)["verdict"] == "undecided"
