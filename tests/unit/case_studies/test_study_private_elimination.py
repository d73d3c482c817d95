"""What the study of private elimination computes by itself: beginnings, widths, ratios, slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.simulation.environments import BernoulliArms
from adaptinf.simulation.replicate import iterate_runs, replicate_blocks
from case_studies.private_elimination import regret, run, scaling, stopping

ENV = BernoulliArms(regret.MEANS)


@pytest.mark.parametrize("name", regret.NAMES)
def test_all_designs_have_the_same_guarantee(name: str) -> None:
    for epsilon in regret.EPSILONS:
        promise = regret.design(name, epsilon).guarantee(regret.HORIZON, len(regret.MEANS))
        assert promise.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("name", [regret.ELIMINATION, regret.PUBLISHED, regret.HYBRID])
def test_a_beginning_is_that_of_the_whole_trial(name: str) -> None:
    horizon, rounds = 40_000, 12_000
    root = np.random.SeedSequence(8)
    (whole,) = iterate_runs(regret.design(name, 1.0), ENV, horizon, 0, 1, root)
    block = replicate_blocks(regret.collector(name, 1.0, horizon), ENV, rounds, 1, root)
    expected = np.bincount(whole.record.action[:rounds], minlength=5)
    assert block.tallies.sum(axis=1)[0, 0, :, 0].tolist() == expected.tolist()
    # planned for 12,000 rounds it would be another trial; the hybrid counter does not know the horizon
    (short,) = iterate_runs(regret.design(name, 1.0), ENV, rounds, 0, 1, root)
    if name != regret.HYBRID:
        assert (short.record.action != whole.record.action[:rounds]).any()


@pytest.mark.parametrize(
    ("name", "width"),
    [
        (regret.EXACT_AT_END, math.log(100 / 2)),
        (regret.TAIL_AT_END, math.sqrt(8.0) * math.log(100)),
    ],
)
def test_width_at_the_end_is_that_of_the_last_round(name: str, width: float) -> None:
    # 100 rounds have seven levels; after one reward the noise is one Laplace variable of scale 7 / epsilon
    tables = regret.collector(name, 0.5, 100).program(ENV, 10, recording=False).tables
    assert tables.intercept[:, 1] == pytest.approx(np.full(len(tables.grid) - 1, 14.0 * width), rel=1e-3)
    assert not tables.slope.any()
    running = regret.collector(regret.EXACT, 0.5, 100).program(ENV, 10, recording=False).tables
    assert running.slope[:, 1].min() > 10.0


def test_ratios_and_their_errors() -> None:
    base, other = np.array([1.0, 3.0]), np.array([8.0, 12.0])
    curves = {(name, 1.0): {regret.HORIZON: other} for name in regret.NAMES}
    curves[regret.ELIMINATION, 1.0] = {regret.HORIZON: base}
    table = run.regret_table(curves).set_index("design")
    row = table.loc[regret.EXACT]
    assert (row["mean regret"], row["standard error"], row["runs"]) == (10.0, pytest.approx(2.0), 2)
    assert row["ratio to DP-SE"] == 5.0
    # relative errors .2 and .5
    assert row["its standard error"] == pytest.approx(5.0 * math.sqrt(0.29))
    assert table.loc[regret.ELIMINATION, "its standard error"] == 0.0
    mean, error = run.mean_and_error(np.array([7.0]))
    assert mean == 7.0
    assert math.isnan(error)


def test_slopes_of_exact_laws() -> None:
    values = np.array([2.0, 4.0, 8.0])
    assert scaling.exponent(values, 5.0 * values**1.5) == pytest.approx(1.5)
    assert scaling.straight(values, 3.0 + 2.0 * values) == pytest.approx((2.0, 0.0), abs=1e-12)
    # by hand: the line through (0, 1), (1, 1), (2, 4) is .5 + 1.5 x
    slope, departure = scaling.straight(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0]))
    assert (slope, departure) == pytest.approx((1.5, 1.0))
    assert scaling.means_of(scaling.SPACED, 5) == pytest.approx(list(regret.MEANS))
    assert scaling.means_of(scaling.EQUAL, 3) == pytest.approx([0.65, 0.35, 0.35])


def test_stopping_table_counts_against_the_bounds() -> None:
    for mean in stopping.MEANS:
        assert stopping.two_points(mean).means[0, 0] == pytest.approx(mean)
    table = stopping.table(200)
    assert len(table) == 36
    row = table[(table["mean"] == 0.2) & (table["alpha"] == 0.5) & (table["epsilon"] == 0.1)].iloc[0]
    shift = 1.0 + 0.2 * 0.5 / 1.5 * math.expm1(0.1)
    assert row["needed privately"] == pytest.approx(math.log(20.0) / (2.0 * math.log(shift)))
    assert row["median"] in (32_768, 16_384)
    assert (table["needed privately"] < table["median"]).all()
    assert (table["median"] <= table["sufficient"]).all()
    assert (table["sufficient"] < table["theorem"]).all()
