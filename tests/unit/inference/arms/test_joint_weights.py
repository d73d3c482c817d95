"""Arms of one table share their weights: levels by contrasts of pairs, from rows and from sums."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy.special import ndtr

import adaptinf as ai
from adaptinf.claims import stationarity
from adaptinf.claims.arms import weighted_arms
from adaptinf.claims.data import availability
from adaptinf.inference.scores import joint_levels
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.log.validation import nested_options
from adaptinf.typing import FloatArray, IntArray

LETTERS = "ABCDEFGH"


def batches(seed: int = 0, arms: int = 4, size: int = 60, late: int = 0, count: int = 20) -> pd.DataFrame:
    """Batches with shares of their own, a level that rises, and a last arm that may join late."""
    rng, parts = np.random.default_rng(seed), []
    for day in range(count):
        share = rng.dirichlet(np.full(arms, 3.0))
        if day < late:
            share[-1] = 0.0
            share /= share.sum()
        arm = rng.choice(arms, size, p=share)
        frame = pd.DataFrame({"arm": [LETTERS[a] for a in arm], "day": day})
        frame["y"] = rng.normal(size=size) + 0.2 * arm + day / count
        frame["orders"], frame["x"] = rng.poisson(3, size) + 1.0, rng.normal(size=size)
        for place, chance in enumerate(share):
            frame[f"p_{LETTERS[place]}"] = chance
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def log_of(frame: pd.DataFrame, **given: Any) -> ai.AdaptiveLog:
    options = {"batch": "day", "outcomes": ["orders"], "context_free": True} | given
    return ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}", **nested_options(options))


def literal_levels(scores: FloatArray, share: FloatArray, possible: Any) -> FloatArray:
    """Levels by loops over rounds and pairs, and least squares; all (T, k)."""
    size = scores.shape[1]
    rows, right = [], []
    for i, j in combinations(range(size), 2):
        h = [
            (1.0 / share[t, i] + 1.0 / share[t, j]) ** -0.5 if possible[t, i] and possible[t, j] else 0.0
            for t in range(len(scores))
        ]
        total = math.fsum(h)
        if total > 0.0:
            line = np.zeros(size)
            line[i], line[j] = total, -total
            rows.append(line)
            right.append(math.fsum(w * (scores[t, i] - scores[t, j]) for t, w in enumerate(h)))
    relative = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    cost = [math.fsum(1.0 / share[t, k] for t in np.flatnonzero(possible[:, k])) for k in range(size)]
    found = []
    for t in range(len(scores)):
        here = [k for k in range(size) if possible[t, k]]
        whole = math.fsum(1.0 / cost[k] for k in here)
        if here:
            found.append(math.fsum((scores[t, k] - relative[k]) / cost[k] / whole for k in here))
    return relative + math.fsum(found) / len(found)


def arrays(frame: pd.DataFrame, arms: int = 4) -> tuple[IntArray, FloatArray, FloatArray]:
    action = frame["arm"].map(LETTERS.index).to_numpy()
    return action, frame["y"].to_numpy(), frame[[f"p_{LETTERS[k]}" for k in range(arms)]].to_numpy()


@pytest.mark.parametrize("late", [0, 7])
def test_levels_and_their_coefficients_are_the_literal_ones(late: int) -> None:
    frame = batches(late=late, size=12)
    action, reward, share = arrays(frame)
    own = share[np.arange(len(action)), action]
    scored = arm_scores(action, reward, own, share, np.arange(4))
    possible = share > 0.0
    possible[0] = False  # nothing is known before the first round
    result = ai.ArmMeans(log_of(frame)).fit("aipw", "joint", test="t", keep_scores=True)
    levels = literal_levels(scored.scores, share, possible) + scored.origin
    np.testing.assert_allclose(result.estimate, levels, rtol=1e-12)
    # Levels are linear in scores: what they give to a reward is their response to the score of it alone.
    given = np.zeros((len(action), 4))
    for t in np.flatnonzero(possible[np.arange(len(action)), action]):
        alone = np.zeros((len(action), 4))
        alone[t, action[t]] = 1.0 / own[t]
        given[t] = literal_levels(alone, share, possible)
    freedom = (given**2).sum(axis=0) ** 2 / (given**4).sum(axis=0) - 1.0
    np.testing.assert_allclose(result.reference.df, freedom, rtol=1e-9)
    mine = np.abs(given) * (action[:, None] == np.arange(4))
    np.testing.assert_allclose(result.ess, mine.sum(axis=0) ** 2 / (mine**2).sum(axis=0), rtol=1e-9)
    assert result.scores is not None
    rows = result.scores["influence"]
    np.testing.assert_allclose(result.cov_params(), rows.T @ rows, rtol=1e-9)
    np.testing.assert_allclose(rows.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_pieces_and_compiled_sums_are_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(batches(late=5))
    whole = ai.ArmMeans(log).fit("aipw", "joint")
    monkeypatch.setattr(joint_levels, "_CELLS", 6 * size)
    pieces = ai.ArmMeans(log).fit("aipw", "joint")
    monkeypatch.setattr(joint_levels, "_SMALL", 0)
    fast = ai.ArmMeans(log).fit("aipw", "joint")
    for other in (pieces, fast):
        np.testing.assert_allclose(other.estimate, whole.estimate, rtol=1e-12)
        np.testing.assert_allclose(other.cov_params(), whole.cov_params(), rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(other.conf_int(), whole.conf_int(), rtol=1e-10)


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("estimator", ["aipw", "ipw"])
@pytest.mark.parametrize("test", ["t", "hall"])
def test_sums_serve_as_well(late: int, estimator: str, test: str) -> None:
    frame = batches(1, late=late)
    log = log_of(frame)
    sums = ai.aggregate(
        frame, action="arm", reward="y", batch="day", propensities="p_{arm}", denominator=["orders"]
    )
    model = {"outcome": "batch-mean"} if estimator == "aipw" else {}
    for denominator in (None, "orders"):
        rows = ai.ArmMeans(log, denominator=denominator).fit(estimator, "joint", test=test, **model)
        found = ai.ArmMeans(sums, denominator=denominator).fit(estimator, "joint", test=test)
        np.testing.assert_allclose(found.estimate, rows.estimate, rtol=1e-12)
        np.testing.assert_allclose(found.cov_params(), rows.cov_params(), rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(found.conf_int(), rows.conf_int(), rtol=1e-9)
        np.testing.assert_allclose(found.ess, rows.ess, rtol=1e-10)


@pytest.mark.parametrize("source", ["rows", "sums"])
def test_differences_of_arms_are_those_of_contrast(source: str) -> None:
    log = log_of(batches(2, late=6).assign(y=lambda frame: (frame["y"] > 1.2).astype(float)))
    data = log if source == "rows" else ai.Sums.of_log(log)
    table = ai.ArmMeans(data).fit()
    assert table.weights == "joint"
    for treatment, control in (("B", "A"), ("D", "A"), ("C", "D")):
        pair = ai.Contrast(data, treatment=treatment, control=control).fit()
        test = table.t_test([f"{treatment} - {control} = 0", f"2 * {treatment} - 2 * {control} = 0.1"])
        np.testing.assert_allclose(test.effect, pair.estimate * [1, 2], rtol=1e-12)
        np.testing.assert_allclose(test.std_error, pair.std_error * [1, 2], rtol=1e-12)
        np.testing.assert_allclose(test.pvalue[0], pair.pvalues.iloc[0], rtol=1e-12)
        np.testing.assert_allclose(test.conf_int()[0], pair.conf_int().to_numpy()[0], rtol=1e-12)
        np.testing.assert_allclose(test.conf_int()[1], 2.0 * pair.conf_int().to_numpy()[0], rtol=1e-12)
    both = table.t_test(["B - A = 0", "A = 0.5"])
    np.testing.assert_allclose(both.conf_int()[1], table.conf_int().to_numpy()[0], rtol=1e-12)
    own = ai.ArmMeans(data).fit(stationary=True)
    assert own.contrast_of is None


def test_two_arms_are_apart_by_their_contrast() -> None:
    log = log_of(batches(3, arms=2))
    table = ai.ArmMeans(log).fit("aipw", "joint")
    pair = ai.Contrast(log, treatment="B", control="A").fit("aipw", "combined")
    assert table.estimate[1] - table.estimate[0] == pytest.approx(pair.estimate[0], rel=1e-11)
    spread = table.cov_params().to_numpy()
    assert spread[0, 0] + spread[1, 1] - 2 * spread[0, 1] == pytest.approx(pair.std_error[0] ** 2, rel=1e-9)


def test_a_drift_makes_no_winner() -> None:
    """A is better by .02 each day; the season and the share of B both rise."""
    rng, parts = np.random.default_rng(1), []
    for day in range(20):
        chance, mean = 0.1 + 0.8 * day / 19, 0.2 + 0.5 * day / 19
        arm = np.where(rng.random(2_000) < chance, "B", "A")
        y = rng.binomial(1, np.where(arm == "A", mean + 0.02, mean)).astype(float)
        parts.append(pd.DataFrame({"day": day, "arm": arm, "y": y, "p_A": 1 - chance, "p_B": chance}))
    frame = pd.concat(parts, ignore_index=True)
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}", batch="day")
    for data in (log, ai.Sums.of_log(log)):
        best = ai.Winner(data).fit()
        assert best.winner == "A"
        assert best.best_arms(0.05)["in_set"].to_dict() == {"A": True, "B": False}
        low, high = best.conf_int().to_numpy()[0]
        assert low < 0.47 < high  # the mean of A over the period
        assert ai.Winner(data).fit(stationary=True).winner == "B"
        assert ai.Winner(data, control="B").fit().conf_int().to_numpy()[0][0] > 0.0


def drifting(rng: np.random.Generator, runs: int, rounds: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Thompson sampling of two equal arms, floor .05, whose level rises by 1; shapes (runs, rounds)."""
    count, total = np.ones((runs, 2)), np.zeros((runs, 2))
    action, reward, share = np.empty((runs, rounds), int), np.empty((runs, rounds)), np.empty((runs, rounds))
    for t in range(rounds):
        gap = (total[:, 1] / count[:, 1] - total[:, 0] / count[:, 0]) / np.sqrt((1.0 / count).sum(axis=1))
        share[:, t] = 0.05 + 0.9 * ndtr(gap)
        action[:, t] = rng.random(runs) < share[:, t]
        reward[:, t] = t / rounds + rng.normal(size=runs)
        count[np.arange(runs), action[:, t]] += 1.0
        total[np.arange(runs), action[:, t]] += reward[:, t]
    return action, reward, share


@pytest.mark.slow
def test_equal_arms_that_drift_alike_are_not_told_apart() -> None:
    """Nominal .95; weights of each arm's own cover .69, and reject equality in a third of the logs."""
    runs, rounds, truth = 200, 1_000, 0.4995
    action, reward, share = drifting(np.random.default_rng(8), runs, rounds)
    covered, rejected, won, kept = 0, 0, 0, 0
    for run in range(runs):
        frame = pd.DataFrame({"arm": action[run], "y": reward[run], "p0": 1 - share[run], "p1": share[run]})
        log = ai.AdaptiveLog(
            frame, action="arm", reward="y", propensities="p{arm}", about={"context_free": True}
        )
        best = ai.Winner(log).fit()
        low, high = best.means.conf_int().to_numpy().T
        covered += int(((low <= truth) & (truth <= high)).sum())
        rejected += bool(best.means.t_test("`1` - `0` = 0").pvalue[0] < 0.05)
        won += bool(best.conf_int()["low"].iloc[0] <= truth <= best.conf_int()["high"].iloc[0])
        kept += bool(best.best_arms(0.05)["in_set"].iloc[0])
    # 4 binomial errors below .93, or above .07: false alarms are below 1e-4
    assert covered / (2 * runs) > 0.93 - 4 * math.sqrt(0.07 * 0.93 / runs)
    assert won / runs > 0.93 - 4 * math.sqrt(0.07 * 0.93 / runs)
    assert rejected / runs < 0.07 + 4 * math.sqrt(0.07 * 0.93 / runs)
    assert kept / runs > 0.93 - 4 * math.sqrt(0.07 * 0.93 / runs)


def test_a_late_arm_is_compared_in_common_rounds() -> None:
    """The level falls by 2 on the eighth day, when D joins, which is better than A by .6."""
    frame = batches(5, late=8, size=300)
    frame["y"] -= 2.0 * (frame["day"] >= 8)
    log = log_of(frame)
    table = ai.ArmMeans(log).fit()
    assert table.weights == "joint"
    gap = table.estimate[3] - table.estimate[0]
    assert gap == pytest.approx(0.6, abs=4 * 0.06)
    assert table.estimate[0] == pytest.approx(np.mean([d / 20 - 2.0 * (d >= 8) for d in range(20)]), abs=0.2)
    low, high = ai.Winner(log, control="A").fit().conf_int().to_numpy()[0]
    assert low < 0.6 < high
    uniform = ai.ArmMeans(log).fit("aipw", "uniform")
    assert says(uniform.cautions, availability.DIFFERENT_ROUNDS)
    assert uniform.estimate[3] - uniform.estimate[0] < 0.2  # each over its own rounds
    assert not says(table.cautions, availability.DIFFERENT_ROUNDS)


def test_arms_without_common_rounds_are_levels_of_their_own() -> None:
    rng = np.random.default_rng(4)
    first = rng.random(600) < 0.5
    arm = np.where(np.arange(600) < 300, np.where(first, "A", "B"), np.where(first, "C", "D"))
    frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=600) + 3.0 * (np.arange(600) >= 300)})
    early = np.arange(600) < 300
    for name in "ABCD":
        frame[f"p_{name}"] = 0.5 * (early == (name in "AB"))
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}")
    joint_fit = ai.ArmMeans(log).fit("aipw", "joint")
    for pair in (["A", "B"], ["C", "D"]):
        alone = ai.ArmMeans(log, pair).fit("aipw", "joint")
        np.testing.assert_allclose(joint_fit.params[pair], alone.params, rtol=1e-12)


def test_an_arm_that_nobody_chose_has_no_part_in_the_others() -> None:
    frame = batches(6, arms=3)
    frame["arm"] = frame["arm"].replace("C", "B")
    frame["p_B"], frame["p_C"] = frame["p_B"] + frame["p_C"] - 1e-3, 1e-3
    log = log_of(frame, arms=["A", "B", "C"])
    table = ai.ArmMeans(log).fit("aipw", "joint")
    others = ai.ArmMeans(log, ["A", "B"]).fit("aipw", "joint")
    assert math.isnan(table.estimate[2])
    np.testing.assert_allclose(table.params[["A", "B"]], others.params, rtol=1e-12)


def turning(rounds: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arm, effect = rng.integers(0, 2, rounds), np.where(np.arange(rounds) < rounds / 2, 0.3, -0.3)
    frame = pd.DataFrame({"arm": [LETTERS[a] for a in arm], "y": effect * arm + rng.normal(size=rounds)})
    return frame.assign(p_A=0.5, p_B=0.5, day=np.arange(rounds) // 100, orders=1.0)


def test_an_effect_that_turns_is_seen() -> None:
    log = log_of(turning(4_000, 1))
    for data in (log, ai.Sums.of_log(log)):
        table = ai.ArmMeans(data).fit("aipw", "joint")
        assert table.weights == "uniform"
        assert says(table.cautions, weighted_arms.ARMS_MOVE)
        pair = ai.Contrast(data, treatment="B", control="A").fit("aipw", "combined")
        assert says(pair.cautions, weighted_arms.DIFFERENCE_MOVES)


@pytest.mark.slow
def test_steady_effects_are_seldom_seen_to_move() -> None:
    seen = 0
    for seed in range(200):
        frame = turning(300, seed)
        frame["y"] = np.random.default_rng([seed, 1]).normal(size=300) + np.arange(300) / 100
        seen += ai.ArmMeans(log_of(frame)).fit("aipw", "joint").weights == "uniform"
    assert seen <= 3  # of 200 at .0005: more have a chance below 1e-5


def test_own_weights_carry_their_caution() -> None:
    log = log_of(batches(7))
    own = ai.ArmMeans(log).fit("aipw", "sqrt")
    assert says(own.cautions, stationarity.ARM_DRIFTS, arm="A")
    assert says(own.cautions, weighted_arms.OWN_WEIGHTS, weights="sqrt")
    few = log_of(batches(7).iloc[:40])  # too few to see a drift
    assert says(ai.ArmMeans(few).fit("aipw", "sqrt").cautions, weighted_arms.OWN_WEIGHTS, weights="sqrt")
    assert not says(ai.ArmMeans(few).fit("aipw", "sqrt", stationary=True).cautions, weighted_arms.OWN_WEIGHTS)
    assert not says(ai.ArmMeans(log).fit(stationary=True).cautions, weighted_arms.OWN_WEIGHTS)


def test_lengths_to_expect_are_near_those_of_the_fit() -> None:
    frame = batches(8, size=300).assign(y=lambda one: np.random.default_rng(3).normal(size=len(one)))
    log = log_of(frame)
    for data in (log, ai.Sums.of_log(log)):
        table = ai.recommend(data).frame.set_index("method")["length"]
        for kind in ("joint", "uniform", "sqrt"):
            fit = ai.ArmMeans(data).fit("aipw", kind, test="t", stationary=True).conf_int()
            ratio = float((fit["high"] - fit["low"]).mean())
            expected = table[f"aipw with {kind} weights"] / table["aipw with joint weights"]
            whole = ai.ArmMeans(data).fit("aipw", "joint", test="t").conf_int()
            assert ratio / float((whole["high"] - whole["low"]).mean()) == pytest.approx(expected, rel=0.05)


def test_differences_of_plain_means_are_those_of_contrast_too() -> None:
    rng = np.random.default_rng(9)
    arm = rng.integers(0, 2, 300)
    frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=300) * (1 + 2 * arm)})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", adaptive=False)
    test = ai.ArmMeans(log).fit().t_test("`1` - `0` = 0")
    pair = ai.Contrast(log, treatment=1, control=0).fit()
    np.testing.assert_allclose(test.conf_int(), pair.conf_int().to_numpy(), rtol=1e-12)
