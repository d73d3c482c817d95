"""Sample sizes: closed form of a z-test, the exact law, the search, trials that go on, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from adaptinf.audit.binary.exact_law import exact
from adaptinf.audit.binary.log_tests import exact_test
from adaptinf.audit.simulation.engine import AnalysisError
from adaptinf.audit.simulation.sample_sizes import _OwnStreams, sample_size, settled, smallest
from adaptinf.designs import Thompson, Uniform
from adaptinf.errors import ParameterError
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, NormalArms


@dataclass
class Answer:
    pvalue: float


def z_test(log: AdaptiveLog) -> Answer:
    """Of two arms with standard deviation 1."""
    one, reward = log.arrays.action == 1, log.arrays.reward
    pulls, others = one.sum(), (~one).sum()
    gap = (reward[one].mean() - reward[~one].mean()) * np.sqrt(pulls * others / one.size)
    return Answer(float(2.0 * special.ndtr(-abs(gap))))


def z_power(horizon: int, effect: float) -> float:
    """Of the two-sided 5% test where coins deal the arms."""
    pulls = np.arange(1, horizon)
    far, edge = effect * np.sqrt(pulls * (horizon - pulls) / horizon), stats.norm.isf(0.025)
    power = stats.norm.sf(edge - far) + stats.norm.cdf(-edge - far)
    return float(power @ stats.binom.pmf(pulls, horizon, 0.5))


@pytest.mark.slow
def test_a_z_test_has_the_size_of_its_closed_form() -> None:
    effect = 0.8
    expected = next(size for size in range(20, 200) if z_power(size, effect) >= 0.8)
    assert abs(expected - 4.0 * (stats.norm.isf(0.025) + stats.norm.isf(0.2)) ** 2 / effect**2) < 2.0
    found = sample_size(
        Uniform(),
        NormalArms([0.0, effect]),
        z_test,
        null_env=NormalArms([0.0, 0.0]),
        shortest=32,
        replications=512,
        rng=4,
    )
    assert found.horizon is not None
    assert abs(found.horizon - expected) < 4.2 * found.horizon_error
    slope = z_power(expected + 1, effect) - z_power(expected - 1, effect)
    row = found.frame.set_index("horizon").loc[found.horizon]
    assert found.horizon_error == pytest.approx(row["power_se"] / (0.5 * slope), rel=0.1)
    assert row["power_low"] < 0.8 <= row["power"] < row["power_high"]
    assert np.all(found.frame["horizon"].diff().dropna() > 0)
    errors = np.sqrt(0.05 * 0.95 / 512)
    assert np.all(np.abs(found.frame["type_i"] - 0.05) < 4.5 * errors)
    assert "plus or minus" in str(found)
    assert "type_i" in found.to_markdown()


def test_an_exact_test_has_the_size_of_the_law() -> None:
    """At it and the next four horizons the power is there, one step before it is not."""
    design, means = Thompson(floor=0.2), [0.1, 0.8]
    found = sample_size(design, BernoulliArms(means), "conditional", 0.7, shortest=12)
    powers = {size: float(exact(design, size).power("conditional", 0.8, 0.1)) for size in range(12, 45)}
    runs = [size for size in range(12, 40) if all(powers[size + i] >= 0.7 for i in range(5))]
    assert found.horizon in runs
    assert found.horizon - 1 not in runs
    for _, row in found.frame.iterrows():
        assert row["power"] == pytest.approx(powers[int(row["horizon"])], rel=1e-12)
        assert row["type_i"] <= 0.05
    assert (found.replications, found.horizon_error) == (0, 0.0)
    assert "by the exact law" in str(found)
    assert "power_se" not in str(found)


@pytest.mark.slow
def test_simulated_powers_of_an_exact_test_are_those_of_the_law() -> None:
    design, arms = Uniform(), BernoulliArms([0.1, 0.9])
    found = sample_size(
        design, arms, exact_test, 0.9, shortest=12, longest=48, step=4, replications=128, rng=3
    )
    for _, row in found.frame.iterrows():
        expected = float(exact(design, int(row["horizon"])).power("conditional", 0.9, 0.1))
        assert abs(row["power"] - expected) < 4.5 * np.sqrt(expected * (1.0 - expected) / 128) + 1e-9
        assert row["horizon"] % 4 == 0


def test_a_type_i_error_that_is_too_large_asks_for_more_rounds() -> None:
    """A test that rejects whatever it sees in short trials."""

    def eager(log: AdaptiveLog) -> Answer:
        return Answer(0.0) if log.n_rounds < 60 else z_test(log)

    env, equal = NormalArms([0.0, 2.0]), NormalArms([0.0, 0.0])
    options: dict[str, Any] = {"replications": 128, "rng": 1}
    assert sample_size(Uniform(), env, eager, **options).horizon == 20
    assert sample_size(Uniform(), env, eager, null_env=equal, **options).horizon == 60


def test_longer_trials_begin_with_shorter_ones() -> None:
    root = np.random.SeedSequence(8)
    cells = [
        _OwnStreams(("", ""), Thompson(), BernoulliArms([0.4, 0.6]), size, {"": z_test}, 0.05, root)
        for size in (20, 35)
    ]
    pairs = list(zip(*(cell.logs(0, 70) for cell in cells), strict=True))
    for short, long in pairs:
        np.testing.assert_array_equal(short.arrays.action, long.arrays.action[:20])
        np.testing.assert_array_equal(short.arrays.reward, long.arrays.reward[:20])
    assert len({tuple(short.arrays.action) for short, _ in pairs}) > 60
    again = next(cells[0].logs(66, 67))
    np.testing.assert_array_equal(again.arrays.action, pairs[66][0].arrays.action)
    assert "design.run(env, 20, np.random.SeedSequence(8, spawn_key=" in cells[0].again(66)


@pytest.mark.parametrize("first", [20, 21, 23, 39, 57, 100, 101])
@pytest.mark.parametrize("step", [1, 4])
def test_the_search_finds_the_first_horizon(first: int, step: int) -> None:
    expected = step * -(-first // step)
    found = smallest(lambda place: place >= first, 20, 100, step)
    assert found == (expected if expected <= 100 else None)


def test_powers_that_go_up_and_down_have_to_stay() -> None:
    above = {22, 24, 25, *range(27, 90)}
    assert settled(above.__contains__, 22, 20, 80, 1) == 27
    assert settled(above.__contains__, 60, 20, 80, 1) == 27
    assert settled(above.__contains__, 22, 20, 30, 1) is None
    assert settled(above.__contains__, None, 20, 30, 1) is None


def test_what_is_not_reached_is_said() -> None:
    arms = NormalArms([0.0, 0.1])
    found = sample_size(Uniform(), arms, z_test, longest=50, replications=64, rng=0)
    assert found.horizon is None
    assert "power 0.8 is not reached" in str(found)
    assert "The power is not reached with up to 50 rounds" in str(found)
    assert found.frame["horizon"].tolist() == [20, 40, 50]
    easy = sample_size(Uniform(), NormalArms([0.0, 9.0]), z_test, replications=64, rng=0)
    assert easy.horizon == 20
    assert "fewer may suffice" in str(easy)


def test_bad_arguments_are_told_together() -> None:
    with pytest.raises(ParameterError) as caught:
        sample_size(Uniform(), "arms", 3, 1.5, step=0, null_env=2)  # type: ignore[arg-type]
    for part in (
        "5 problems",
        "env must be",
        "fit must be",
        "power must be",
        "step must be",
        "null_env must be",
    ):
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match=r"(?s)BernoulliArms with two arms.*omit null"):
        sample_size(Uniform(), NormalArms([0, 1]), "conditional", null=0.1)
    with pytest.raises(ParameterError, match="one of 'conditional', 'unconditional', got 'wald'"):
        sample_size(Uniform(), BernoulliArms([0.1, 0.9]), "wald")
    with pytest.raises(ParameterError, match="there must be a multiple of step"):
        sample_size(Uniform(), BernoulliArms([0.1, 0.9]), "conditional", shortest=400)
    arms = NormalArms([0.3, 1.0])
    with pytest.raises(ParameterError, match=r"2 tests match.*term '0'.*term '1'.*analysis= and term="):
        sample_size(Uniform(), arms, lambda log: ArmMeans(log).fit(), replications=64, rng=0)
    one = sample_size(
        Uniform(), arms, lambda log: ArmMeans(log).fit(), term="1", replications=64, rng=0, longest=40
    )
    assert "1." in str(one)

    def fails(log: AdaptiveLog) -> Answer:
        raise ValueError("no estimate")

    with pytest.raises(AnalysisError, match=r"its log is design.run\(env, 20, np.random.SeedSequence\(0"):
        sample_size(Uniform(), arms, fails, replications=64, rng=0)
