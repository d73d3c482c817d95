"""Expected lengths of `recommend`: near those of the fits, and blind to which arm had which reward."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims.recommendations import LENGTHS
from adaptinf.inference.arms.choice import METHODS
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.recommend.table import Recommendation
from adaptinf.inference.scores.inverse import combined_weights
from adaptinf.inference.validity.lengths import (
    binomial_length,
    combined_error,
    student_length,
    weighted_errors,
)
from adaptinf.inference.validity.methods import unknown_length
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms

EQUAL = BernoulliArms([0.5, 0.5, 0.5])


def shown(table: Recommendation) -> dict[str, float]:
    return {one.verdict.name: one.verdict.length for one in table.methods if one.verdict.valid}


def fitted(table: Recommendation) -> dict[str, float]:
    found = {}
    for one in table.methods:
        if one.verdict.valid:
            result = one.run()
            limits = result.conf_int_corrected() if one.verdict.corrected else result.conf_int()
            found[one.verdict.name] = float((limits["high"] - limits["low"]).mean())
    return found


@pytest.fixture(scope="module")
def thompson() -> AdaptiveLog:
    return designs.Thompson(floor=(1 / 3, 0.7), batch_size=20).run(EQUAL, 2000, rng=2)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["arm-means", "contrast"])
def test_lengths_are_near_those_of_the_fits(thompson: AdaptiveLog, target: str) -> None:
    pair = {"treatment": thompson.arms[1], "control": thompson.arms[0]} if target == "contrast" else {}
    table = recommend(thompson, target, **pair)
    expected, own = shown(table), fitted(table)
    assert len(expected) > 15
    for name, length in expected.items():
        reach = 1.13 if "sequence" not in name else 2.0
        assert 1.0 / reach < length / own[name] < reach, name


@pytest.mark.slow
def test_lengths_of_effects_and_batches_are_near_those_of_the_fits() -> None:
    groups = FiniteContext([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    log = designs.EpsilonGreedy(exploration=0.3, batch_size=50).run(groups, 3000, rng=2)
    plain = designs.Uniform().run(groups, 3000, rng=2)
    normal = designs.EpsilonGreedy(exploration=0.4, batch_size=100).run(NormalArms([0.0, 0.0]), 2000, rng=3)
    two = {"treatment": 1, "control": 0}
    tables = [
        recommend(log, "cate", by="feature"),
        recommend(plain, "cate", by="feature"),
        recommend(plain, "cate", formula="~ feature"),
        recommend(log, "policy-value", policy="uniform"),
        recommend(normal, "contrast", **{key: normal.arms[code] for key, code in two.items()}),
    ]
    for table in tables:
        expected, own = shown(table), fitted(table)
        assert expected
        for name, length in expected.items():
            if "sequence" not in name and "projection" not in name:
                assert 0.8 < length / own[name] < 1.25, (table.target, name)


def test_lengths_do_not_see_which_arm_had_which_reward(thompson: AdaptiveLog) -> None:
    rng = np.random.default_rng(0)
    arrays = replace(thompson.arrays, reward=rng.permutation(thompson.arrays.reward))
    moved = AdaptiveLog.from_arrays(
        arrays, arms=thompson.arms, reward_range=thompson.reward_range, design=thompson.design
    )
    first, second = recommend(thompson).frame, recommend(moved).frame
    assert list(first["method"]) == list(second["method"])
    np.testing.assert_allclose(first["length"], second["length"], rtol=1e-12)
    assert not np.array_equal(thompson.arrays.reward, arrays.reward)


def test_the_first_row_has_length_one_and_refused_rows_none(thompson: AdaptiveLog) -> None:
    table = recommend(thompson)
    frame = table.frame
    assert frame["length"].iloc[0] == 1.0
    assert frame.loc[frame["label"] == "not valid", "length"].isna().all()
    assert frame.loc[frame["label"] != "not valid", "length"].notna().all()
    assert says(table.explain().notes, LENGTHS)


def test_sequences_stand_by_expected_width(thompson: AdaptiveLog) -> None:
    frame = recommend(thompson, stopping="data-chosen").frame
    anytime = frame[frame["label"] == "anytime"]
    assert anytime["length"].is_monotonic_increasing
    assert len(anytime) == 13
    assert frame["label"].iloc[0] == "anytime"


def test_widths_order_sequences_as_they_come_out() -> None:
    log = designs.UCB().run(BernoulliArms([0.02, 0.02]), 3000, rng=1)
    table = recommend(log, stopping="data-chosen")
    own = [
        one.run().conf_int().pipe(lambda limits: (limits["high"] - limits["low"]).mean())
        for one in table.methods
        if one.verdict.label == "anytime"
    ]
    assert own == sorted(own)
    assert len(own) == 5


def starved(rate: float, decay: float, rounds: int = 2000) -> AdaptiveLog:
    """Two arms, of which the first has a propensity of t^-decay / 3, with rewards 0 and 1."""
    rng = np.random.default_rng(4)
    low = np.arange(1.0, rounds + 1.0) ** -decay / 3.0
    both = np.column_stack([low, 1.0 - low])
    action = (rng.random(rounds) > low).astype(np.int64)
    reward = (rng.random(rounds) < rate).astype(float)
    own = both[np.arange(rounds), action]
    arrays = LogArrays(action, reward, propensity=own, propensities=both)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0))


@pytest.mark.parametrize(
    ("rate", "decay", "known"), [(0.5, 0.2, True), (0.5, 0.9, False), (0.02, 0.2, False)]
)
@pytest.mark.parametrize("target", ["arm-means", "contrast"])
def test_lengths_of_starved_arms_are_not_foretold(
    rate: float, decay: float, known: bool, target: str
) -> None:
    """With 10 effective rewards or fewer, or 10 effective events, intervals are not those of Student's t."""
    pair = {"treatment": "b", "control": "a"} if target == "contrast" else {}
    lengths = shown(recommend(starved(rate, decay), target, **pair))
    kinds = ("joint", "uniform") if target == "arm-means" else ("combined", "uniform")
    for kind in kinds:
        assert math.isfinite(lengths[f"aipw with {kind} weights"]) == known


def test_lengths_are_relative_to_the_first_that_is_known() -> None:
    frame = recommend(starved(0.5, 0.9), "arm-means").frame
    known = frame["length"].dropna()
    assert np.isnan(frame["length"].iloc[0])
    assert known.iloc[0] == 1.0
    assert len(known) > 1


def test_widths_of_sequences_stay_within_the_range() -> None:
    lengths = shown(recommend(starved(0.5, 0.9), "arm-means"))
    named = {name: length for name, length in lengths.items() if "sequence" in name}
    assert max(named.values()) < 1.0  # the mean of 1, the range, for one arm, and less for the other
    assert named["asymptotic sequence on sample means"] > 0.5  # one arm has fewer than 100 rewards
    pairs = shown(recommend(starved(0.5, 0.9), "contrast", treatment="b", control="a"))
    assert max(length for name, length in pairs.items() if "sequence" in name) == 2.0
    assert pairs["asymptotic sequence on aipw scores"] == 2.0


def test_sqrt_and_uniform_errors_are_the_sums_over_all_rounds() -> None:
    rng = np.random.default_rng(5)
    e = rng.uniform(0.1, 0.9, 400_000)
    rows = np.flatnonzero(rng.random(e.size) < e)
    zero = np.zeros(rows.size, dtype=np.int64)
    for weight, h in ((np.ones(rows.size), np.ones(e.size)), (np.sqrt(e[rows]), np.sqrt(e))):
        for mean in (0.0, 0.7):
            error, freedom = weighted_errors(zero, e[rows], weight, 1, mean, 0.4)
            variance = h**2 @ ((0.4**2 + mean**2) / e - mean**2)
            assert error[0] == pytest.approx(math.sqrt(variance) / h.sum(), rel=0.01)
            w = (weight / e[rows]) ** 2
            assert freedom[0] + 1.0 == pytest.approx(w.sum() ** 2 / (w @ w), rel=1e-12)


def test_combined_weights_keep_the_variance_even() -> None:
    e = np.array([[0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
    weight = combined_weights(e)
    np.testing.assert_allclose(weight, [0.5, math.sqrt(0.16), 0.0])
    variance = 0.25 * 4.0 + 0.16 * (5.0 + 1.25)
    assert combined_error(weight, 3.0) == pytest.approx(3.0 * math.sqrt(variance) / 0.9)


def test_binomial_and_student_lengths_are_those_of_scipy() -> None:
    found = stats.binomtest(6, 20).proportion_ci(method="exact")
    assert binomial_length(np.array([20.0]), 0.3)[0] == pytest.approx(found.high - found.low, rel=1e-10)
    low, high = stats.t.interval(0.95, 9, scale=0.3)
    assert student_length(np.array([0.3]), 9.0)[0] == pytest.approx(high - low, rel=1e-12)
    assert student_length(np.array([0.3]), 0.0)[0] == math.inf


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_of_arms_but_released_means_has_a_length(method: ArmMethod) -> None:
    assert (method.length is unknown_length) == (method.name == "released")


def many_arms(rounds: int, arms: int) -> AdaptiveLog:
    rng = np.random.default_rng(0)
    share = rng.random((rounds, arms)) + 0.2
    share /= share.sum(axis=1, keepdims=True)
    action = rng.integers(0, arms, rounds)
    arrays = LogArrays(
        action=action,
        reward=rng.random(rounds),
        propensity=share[np.arange(rounds), action],
        propensities=share,
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple(range(arms)), reward_range=(0.0, 1.0))


def test_many_arms_take_no_longer_than_the_log_is_large() -> None:
    recommend(many_arms(50, 2))
    taken = []
    for arms in (40, 320):
        log = many_arms(5000, arms)
        start = time.process_time()
        recommend(log)
        taken.append(time.process_time() - start)
    assert taken[1] < 8.0 * taken[0] + 0.5
