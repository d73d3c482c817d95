"""Arms that come and go, and rounds that the user names: what means and contrasts use, and what is said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.claims.arms.arm_fits import NEVER_CHOSEN
from adaptinf.claims.data import availability
from adaptinf.claims.logs.rows import MARKED
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.choice import default_estimator
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 240
ARMS = ("a", "b", "c")


def shares(seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet([4.0, 4.0, 4.0], size=ROUNDS) * 0.85 + 0.05


def log_of(p: np.ndarray, *, chosen: bool = False, **metadata: Any) -> AdaptiveLog:
    rng = np.random.default_rng(4)
    p = p / p.sum(axis=1, keepdims=True)
    action = np.array([rng.choice(3, p=row) for row in p])
    arrays = LogArrays(
        action=action,
        reward=rng.normal(action + 10.0, 1.0),
        propensity=p[np.arange(ROUNDS), action],
        propensities=None if chosen else p,
    )
    return AdaptiveLog.from_arrays(arrays, arms=ARMS, **metadata)


def late(first: int = 100) -> np.ndarray:
    p = shares()
    p[:first, 2] = 0.0
    return p


def literal(log: AdaptiveLog, arm: int, rounds: list[int]) -> tuple[float, list[float]]:
    """Uniform weights over some rounds, and what each contributes to the error."""
    sums, counts, every, scores = [0.0] * 3, [0] * 3, 0.0, []
    for t in range(log.n_rounds):
        k, y = int(log.arrays.action[t]), float(log.arrays.reward[t])
        m = sums[arm] / counts[arm] if counts[arm] else every / max(t, 1)
        scores.append(m + (y - m) / float(log.arrays.propensity[t]) if k == arm else m)
        sums[k], counts[k], every = sums[k] + y, counts[k] + 1, every + y
    mean = math.fsum(scores[t] for t in rounds) / len(rounds)
    return mean, [(scores[t] - mean) / len(rounds) if t in set(rounds) else 0.0 for t in range(log.n_rounds)]


@pytest.mark.parametrize("chosen", [False, True])
def test_a_late_arm_has_its_own_rounds(chosen: bool) -> None:
    log = log_of(late(), chosen=chosen)
    result = ArmMeans(log).fit("aipw", "uniform")
    for arm in range(3):
        used = [t for t in range(1, ROUNDS) if chosen or arm < 2 or t >= 100]  # one propensity shows no gap
        mean, parts = literal(log, arm, used)
        assert result.estimate[arm] == pytest.approx(mean, rel=1e-12)
        assert result.std_error[arm] == pytest.approx(math.sqrt(math.fsum(x * x for x in parts)), rel=1e-9)
    if not chosen:
        assert says(result.notes, availability.LEFT_OUT, rounds=240, left="100 for c", arm="an arm")
        assert len(result.cautions) == 1
        assert says(result.cautions[0], availability.DIFFERENT_ROUNDS)
        assert ArmMeans(log).fit("aipw", "uniform", stationary=True).cautions == ()


def test_one_late_arm_leaves_the_default_of_all_arms() -> None:
    log = log_of(late())
    result = ArmMeans(log).fit()
    assert (result.estimator, result.weights) == ("aipw", "joint")
    result = ArmMeans(log).fit(stationary=True)
    alone = ArmMeans(log, ["a"]).fit(stationary=True)
    assert (result.weights, alone.weights) == ("sqrt", "sqrt")
    assert result.estimate[0] == pytest.approx(alone.estimate[0], rel=1e-13)
    assert not says(alone.notes, availability.LEFT_OUT)
    assert recommend(log).best.verdict.name == "aipw with joint weights"
    assert recommend(log, "contrast", treatment="c", control="a").best.verdict.name == (
        "aipw with combined weights"
    )
    known = result.min_propensity
    assert known == pytest.approx(
        min(log.arrays.propensities[1:, :2].min(), log.arrays.propensities[100:].min())
    )


def test_a_contrast_uses_the_rounds_of_both() -> None:
    p = late()
    p[150:170, 0] = 0.0
    log = log_of(p)
    used = [t for t in range(1, ROUNDS) if t >= 100 and not 150 <= t < 170]
    (first, d_first), (second, d_second) = literal(log, 2, used), literal(log, 0, used)
    result = Contrast(log, treatment="c", control="a").fit("aipw", "uniform")
    assert result.estimate[0] == pytest.approx(first - second, rel=1e-9)
    spread = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(d_first, d_second, strict=True)))
    assert result.std_error[0] == pytest.approx(spread, rel=1e-9)
    assert says(result.notes, availability.LEFT_OUT, rounds=240, left="120", arm="c or a")
    assert says(result.cautions, availability.GONE, arms="c and a")
    fixed = log_of(p, feedback_rounds=0)
    unmoved = Contrast(fixed, treatment="c", control="a").fit("aipw")
    assert not says(unmoved.cautions, availability.GONE)


def test_arms_that_never_met() -> None:
    p = shares()
    p[:120, 2] = 0.0
    p[120:, 0] = 0.0
    log = log_of(p)
    with pytest.raises(InvalidForLog) as caught:
        Contrast(log, treatment="c", control="a").fit("aipw")
    assert says(caught.value.reason, availability.NEVER_TOGETHER, arms="the two arms", arm="c", n=120)
    assert np.isfinite(ArmMeans(log).fit("aipw").std_error).all()
    assert Contrast(log, treatment="c", control="b").fit().estimator == "aipw"


def test_an_arm_that_never_came() -> None:
    p = shares()
    p[:, 2] = 0.0
    log = log_of(p)
    result = ArmMeans(log).fit()
    assert result.estimator == "aipw"
    assert np.isnan(result.estimate).tolist() == [False, False, True]
    assert says(result.notes, NEVER_CHOSEN, arm="c")
    with pytest.raises(InvalidForLog) as caught:
        ArmMeans(log, ["c"]).fit("aipw")
    assert says(caught.value.reason, availability.NEVER_TOGETHER, arms="the requested arms", n=240)


def test_nothing_drawn_at_random_leaves_nothing_to_weight() -> None:
    log = log_of(np.eye(3)[np.random.default_rng(1).integers(0, 3, ROUNDS)])
    with pytest.raises(InvalidForLog) as caught:
        ArmMeans(log).fit("aipw")
    assert says(caught.value.reason, availability.NEVER_DRAWN, arm="a")
    assert default_estimator(log).estimator == "alee"


def test_a_design_that_takes_arms_away_by_rewards_is_refused() -> None:
    log = log_of(late(), design=designs.Thompson().record())
    with pytest.raises(InvalidForLog) as caught:
        ArmMeans(log).fit("aipw")
    assert says(caught.value.reason, availability.TAKEN_AWAY, design="Thompson")


class TestMarked:
    """`rounds=`: the fit of a log that has no others."""

    keep = np.arange(ROUNDS) % 3 != 1

    def base(self) -> pd.DataFrame:
        log = log_of(shares())
        frame = pd.DataFrame({"arm": np.array(ARMS)[log.arrays.action], "y": log.arrays.reward})
        for code, arm in enumerate(ARMS):
            frame[f"propensity_{arm}"] = log.arrays.propensities[:, code]
        return frame.assign(week=np.arange(ROUNDS) // 40, who=np.arange(ROUNDS), early=self.keep)

    def logs(self) -> tuple[AdaptiveLog, AdaptiveLog]:
        names = {"action": "arm", "reward": "y", "batch": "week", "unit": "who", "context": "early"}
        every = AdaptiveLog(self.base(), **names, about={"context_free": True})
        return every, AdaptiveLog(self.base()[self.keep], **names, about={"context_free": True})

    @pytest.mark.parametrize("estimator", [None, "sample-mean", "alee", "aipw", "ipw"])
    def test_means(self, estimator: str | None) -> None:
        every, part = self.logs()
        expected = ArmMeans(part).fit(estimator)
        for rounds in (self.keep, "early", pd.Series(self.keep), self.keep.astype(int)):
            found = ArmMeans(every, rounds=rounds).fit(estimator)
            np.testing.assert_array_equal(found.estimate, expected.estimate)
            np.testing.assert_array_equal(found.std_error, expected.std_error)
            assert found.notes[-1] == MARKED(kept=160, rounds=240)
            assert found.facts.n_rounds == 160
        assert every.n_rounds == ROUNDS
        assert len(every.units) == ROUNDS

    @pytest.mark.parametrize("estimator", [None, "sample-mean"])
    def test_contrasts(self, estimator: str | None) -> None:
        every, part = self.logs()
        expected = Contrast(part, treatment="b", control="a").fit(estimator)
        found = Contrast(every, treatment="b", control="a", rounds=self.keep).fit(estimator)
        np.testing.assert_array_equal(found.estimate, expected.estimate)
        np.testing.assert_array_equal(found.std_error, expected.std_error)
        weeks = np.isin(np.arange(ROUNDS) // 40, [1, 4])
        used = Contrast(every, treatment="b", control="a", rounds=weeks)
        assert set(used.log.arrays.batch.tolist()) == {0, 1}
        assert len(used.log.units) == weeks.sum()

    def test_wrong_marks(self) -> None:
        every, _ = self.logs()
        for rounds, problem in (
            (np.zeros(ROUNDS, dtype=bool), "rounds selects no round"),
            (self.keep[:10], r"shape \(240,\)"),
            ("nope", "there is no column 'nope'"),
        ):
            with pytest.raises(ParameterError, match=problem):
                ArmMeans(every, rounds=rounds)
            with pytest.raises(ParameterError, match=problem):
                Contrast(every, treatment="a", control="b", rounds=rounds)

    def test_releases_are_of_all_rounds(self) -> None:
        from adaptinf.simulation.environments import BernoulliArms

        design = designs.PrivateSuccessiveElimination(epsilon=1.0, beta=0.5)
        log = design.run(BernoulliArms([0.4, 0.6]), 1_000, rng=1)
        assert Contrast(log, treatment=1, control=0).fit("released").private
        with pytest.raises(InvalidForLog, match="released"):
            Contrast(log, treatment=1, control=0, rounds=np.arange(1_000) < 900).fit("released")
