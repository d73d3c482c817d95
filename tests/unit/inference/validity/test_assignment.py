"""Contexts that visibly decide arms, and propensities that arms were not chosen by."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from claims_said import says, wording
from scipy import stats

from adaptinf import designs
from adaptinf.claims import contexts, propensities, stationarity
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.validity.assignment import association_pvalue, context_levels, strata
from adaptinf.inference.validity.calibration import ALARM, excess_pvalue, miscalibration
from adaptinf.inference.validity.passes.choices import counts_by
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext


def assigned(
    seed: int, rounds: int, decides: bool, levels: int, arms: int = 2, **more: object
) -> AdaptiveLog:
    """A greedy choice with a tenth of coins, or one that follows the first context; rewards follow it too."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, rounds) if levels else rng.normal(size=rounds)
    other = rng.integers(0, 3, rounds)
    count, total = np.zeros(arms), np.zeros(arms)
    action, reward = np.zeros(rounds, dtype=np.int64), np.zeros(rounds)
    for t in range(rounds):
        best = (
            int(x[t] > (levels / 2 if levels else 0))
            if decides
            else int(np.argmax(total / np.maximum(count, 1)))
        )
        action[t] = rng.integers(arms) if rng.random() < 0.3 else best
        reward[t] = rng.normal() + (x[t] / levels if levels else x[t])
        count[action[t]] += 1
        total[action[t]] += reward[t]
    arrays = LogArrays(action=action, reward=reward, context={"site": x, "other": other})
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcd"[:arms]), **more)


@pytest.mark.parametrize("levels", [4, 0, 300])
def test_a_context_that_decides_is_named(levels: int) -> None:
    log = assigned(1, 400, True, levels)
    assert profile_of(log).deciding_context == "site"
    table = {one.verdict.name: one.verdict for one in recommend(log).methods}
    for name in ("alee", "sample-mean", "alee with self-normalised errors"):
        assert table[name].label == "not valid"
        assert says(table[name].reason, contexts.VISIBLY, context="site")
    with pytest.raises(InvalidForLog, match=wording(contexts.VISIBLY, context="site")) as caught:
        ArmMeans(log).fit("alee")
    assert "context_free" not in str(caught.value)
    with pytest.raises(InvalidForLog, match=wording(contexts.VISIBLY, context="site")):
        Contrast(log, treatment="b", control="a").fit()


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "arms"), [(4, 2), (0, 2), (300, 2), (4, 4)])
def test_contexts_without_a_part_raise_no_alarm(levels: int, arms: int) -> None:
    """30 logs each; an alarm has a probability of one in a million, twice that for two columns."""
    for seed in range(30):
        assert profile_of(assigned(seed, 400, False, levels, arms)).deciding_context == "", seed


def test_a_column_that_counts_rounds_raises_no_alarm() -> None:
    """Shares of arms and the column both move with time."""
    rng = np.random.default_rng(2)
    action = (rng.random(4000) < np.linspace(0.1, 0.9, 4000)).astype(np.int64)
    arrays = LogArrays(action=action, reward=rng.random(4000), context={"day": np.arange(4000) // 10})
    assert profile_of(AdaptiveLog.from_arrays(arrays, arms=("a", "b"))).deciding_context == ""


def test_it_is_not_asked_where_it_is_said() -> None:
    said = assigned(1, 400, True, 4, context_free=True)
    assert profile_of(said).deciding_context == ""
    assert ArmMeans(said).fit().estimator == "alee"


def test_association_is_the_chi_squared_test_of_one_stratum() -> None:
    rng = np.random.default_rng(3)
    level, arm = rng.integers(0, 3, 500), rng.integers(0, 2, 500)
    arm = np.where((level == 2) & (rng.random(500) < 0.3), 1, arm)
    table = np.zeros((3, 2))
    np.add.at(table, (level, arm), 1.0)
    pearson = stats.chi2_contingency(table, correction=False).statistic
    expected = stats.chi2.sf(pearson * 499 / 500, 2)
    zero = np.zeros(500, dtype=np.int64)
    assert association_pvalue(zero, level, 3, arm, 2) == pytest.approx(expected, rel=1e-9)


def test_association_of_two_strata_is_that_of_mantel_and_haenszel() -> None:
    rng = np.random.default_rng(4)
    stratum, level, arm = rng.integers(0, 2, 300), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    gap, spread = 0.0, 0.0
    for s in range(2):
        here = stratum == s
        n, a, c = here.sum(), (here & (level == 1)).sum(), (here & (arm == 1)).sum()
        gap += (here & (level == 1) & (arm == 1)).sum() - a * c / n
        spread += a * (n - a) * c * (n - c) / (n**2 * (n - 1.0))
    found = association_pvalue(stratum, level, 2, arm, 2)
    assert found == pytest.approx(stats.chi2.sf(gap**2 / spread, 1), rel=1e-9)


def test_levels_and_strata() -> None:
    codes, levels = context_levels(np.array(["a"] * 30 + ["b"] * 25 + [str(i) for i in range(40)]))
    assert levels == 3
    assert np.bincount(codes).tolist() == [30, 25, 40]
    assert context_levels(np.arange(800.0))[1] == 8
    assert strata(200, None).max() == 3
    batch = np.repeat([0, 1, 2, 3], [30, 30, 200, 10])
    assert [np.unique(strata(270, batch)[batch == b]).size for b in range(4)] == [1, 1, 1, 1]


# --- propensities ---------------------------------------------------------------------------------------


def relogged(log: AdaptiveLog, every: np.ndarray, **more: object) -> AdaptiveLog:
    own = every[np.arange(log.n_rounds), log.arrays.action]
    arrays = LogArrays(
        action=log.arrays.action,
        reward=log.arrays.reward,
        propensity=own,
        propensities=every,
        context=log.arrays.context,
    )
    return AdaptiveLog.from_arrays(arrays, arms=log.arms, **more)


@pytest.fixture(scope="module")
def greedy() -> AdaptiveLog:
    return designs.EpsilonGreedy(exploration=0.2, batch_size=50).run(BernoulliArms([0.5, 0.55]), 4000, rng=0)


def test_right_propensities_raise_no_caution(greedy: AdaptiveLog) -> None:
    assert miscalibration(greedy) == ""
    assert ArmMeans(greedy).fit().cautions == ()


def test_averages_in_the_place_of_propensities(greedy: AdaptiveLog) -> None:
    share = np.bincount(greedy.arrays.action) / greedy.n_rounds
    log = relogged(greedy, np.tile(share, (greedy.n_rounds, 1)))
    assert miscalibration(log) == "over time"
    for result in (ArmMeans(log).fit("aipw"), Contrast(log, treatment=1, control=0).fit("ipw")):
        assert says(result.cautions, propensities.NOT_FOLLOWED, where="over time", alarm=ALARM)
    text = " ".join(str(ArmMeans(log).fit("aipw")).split())
    told = wording(propensities.NOT_FOLLOWED, where="over time", alarm=ALARM)
    assert re.search(f"Caution {told[0].upper()}{told[1:]}", text)
    assert ArmMeans(log).fit("alee", stationary=True).cautions == ()
    assert says(ArmMeans(log).fit("alee").notes, stationarity.NO_TREND)
    estimated = relogged(greedy, np.tile(share, (greedy.n_rounds, 1)), propensity_status="estimated")
    assert profile_of(estimated).propensities_found is None


def test_propensities_of_a_batch_later(greedy: AdaptiveLog) -> None:
    every = greedy.arrays.propensities
    late = np.vstack([every[50:], np.tile(every[-1:], (50, 1))])
    assert miscalibration(relogged(greedy, late)) in ("by their size", "over time")


def test_propensities_averaged_over_contexts() -> None:
    env = FiniteContext([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]])
    log = designs.EpsilonGreedy(exploration=0.4).run(env, 2000, rng=3)
    assert miscalibration(log) == ""
    share = np.bincount(log.arrays.action) / 2000
    even = relogged(log, np.tile(share, (2000, 1)))
    assert miscalibration(even) != ""
    assert len(CATE(even, by="feature").fit("aipw").cautions) >= 1


def test_pvalues_are_chi_squared(greedy: AdaptiveLog) -> None:
    action, every = greedy.arrays.action, greedy.arrays.propensities
    group = np.arange(4000) // 1000
    found = []
    for arm in range(2):
        squares = 0.0
        for g in range(4):
            e = every[group == g, arm]
            squares += ((action[group == g] == arm).sum() - e.sum()) ** 2 / (e * (1.0 - e)).sum()
        found.append(stats.chi2.sf(squares, 4))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert excess_pvalue(*counts_by(action, every, group, 4)) == pytest.approx(found[0], rel=1e-9)
    assert math.isclose(excess_pvalue(*counts_by(action[:5], every[:5], group[:5], 1)), 1.0)


def test_the_check_is_done_once_a_log(greedy: AdaptiveLog, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        "adaptinf.inference.validity.calibration.miscalibration", lambda log, draws: calls.append(log) or ""
    )
    log = relogged(greedy, greedy.arrays.propensities)
    ArmMeans(log).fit("aipw")
    Contrast(log, treatment=1, control=0).fit("aipw")
    assert len(calls) == 1
