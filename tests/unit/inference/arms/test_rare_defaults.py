"""Defaults answer wherever any method does: arms whose outcomes are too rare for usual intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms.winners import TOO_RARE
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log.validation import nested_options


def random_policy(seed: int = 0, rounds: int = 10_000, arms: int = 34, rate: float = 0.005) -> pd.DataFrame:
    """The shape of the Open Bandit Dataset's random policy: about 1.5 clicks an arm."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.integers(0, arms, rounds), "y": rng.binomial(1, rate, rounds), "p": 1 / arms}
    )
    return frame.assign(position=rng.integers(1, 4, rounds))


def moving(
    seed: int = 3, rounds: int = 4_000, rates: tuple[float, ...] = (0.02, 0.02, 0.0005)
) -> pd.DataFrame:
    """Three arms whose shares moved once, the last of which has hardly any event."""
    rng = np.random.default_rng(seed)
    share = np.repeat([[0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], rounds // 2, axis=0)
    arm = (rng.random(rounds)[:, None] > share.cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame(
        {"a": arm, "y": rng.binomial(1, np.array(rates)[arm]), "week": np.arange(rounds) // 500}
    )
    return frame.assign(**{f"p_{k}": share[:, k] for k in range(3)})


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, action="a", reward="y", reward_range=(0, 1), **nested_options(options))


def missing(result: ai.Results) -> int:
    return int(result.conf_int().isna().any(axis=1).sum())


class TestArmMeans:
    def test_all_34_arms_have_an_interval(self) -> None:
        frame = random_policy()
        for options in ({"design": ai.designs.Uniform()}, {}):
            log = log_of(frame, propensity="p", context="position", **options)
            result = ai.ArmMeans(log).fit()
            assert (result.estimator, missing(result)) == ("sample-mean", 0)
            assert missing(ai.ArmMeans(log).fit("aipw", test="t")) > 25
            assert missing(ai.ArmMeans(log).fit("aipw")) == 0
            own = frame["y"][frame["a"] == 7]
            wanted = stats.binomtest(int(own.sum()), len(own)).proportion_ci(method="exact")
            assert result.conf_int().to_numpy()[7] == pytest.approx([wanted.low, wanted.high], rel=1e-9)
            assert ai.recommend(log).best.verdict.unanswered == 0

    def test_it_is_told_by_counts_alone(self) -> None:
        """The order moves where an arm falls below five events, whatever the estimates."""
        for rate, estimator in ((0.0005, "sample-mean"), (0.05, "aipw")):
            log = log_of(moving(rates=(0.02, 0.02, rate)), propensities="p_{arm}", adaptive=False)
            found = ai.ArmMeans(log).fit()
            assert (found.estimator, missing(found)) == (estimator, 0)
            best = ai.recommend(log).best.verdict
            assert best.arguments["estimator"] == estimator

    def test_where_only_scores_answer_the_order_stays(self) -> None:
        log = log_of(moving(), propensities="p_{arm}")
        result = ai.ArmMeans(log).fit()
        assert (result.estimator, missing(result)) == ("aipw", 0)
        assert ai.recommend(log).best.verdict.unanswered == 0
        names = [method.verdict.name for method in ai.recommend(log).methods]
        assert names[0].startswith("aipw with")

    def test_sums(self) -> None:
        sums = ai.aggregate(
            moving(), action="a", reward="y", batch="week", propensities="p_{arm}", adaptive=False
        )
        for result in (ai.ArmMeans(sums).fit(), ai.Contrast(sums, treatment=2, control=0).fit()):
            assert (result.estimator, missing(result)) == ("sample-mean", 0)

    def test_units_with_several_rounds_have_no_other_method(self) -> None:
        frame = moving().assign(unit=np.arange(4_000) // 4)
        log = log_of(frame, propensities="p_{arm}", unit="unit", adaptive=False)
        assert ai.ArmMeans(log).fit().estimator == "aipw"


class TestContrasts:
    @pytest.mark.parametrize("treatments", [[1, 2], [2, 1]])
    def test_one_rare_arm_decides_for_all_pairs(self, treatments: list[int]) -> None:
        log = log_of(moving(), propensities="p_{arm}", adaptive=False)
        result = ai.Contrasts(log, control=0, treatments=treatments).fit()
        assert (result.estimator, missing(result)) == ("sample-mean", 0)
        assert list(result.terms) == [f"{arm} - 0" for arm in treatments]
        for arm, pair in zip(treatments, result.pairs, strict=True):
            single = ai.Contrast(log, treatment=arm, control=0).fit("sample-mean")
            assert pair.conf_int().to_numpy() == pytest.approx(single.conf_int().to_numpy(), rel=1e-12)
        best = ai.recommend(log, "contrasts", control=0).best.verdict
        assert best.arguments["estimator"] == "sample-mean"

    def test_pairs_without_it_keep_theirs(self) -> None:
        log = log_of(moving(), propensities="p_{arm}", adaptive=False)
        assert ai.Contrast(log, treatment=1, control=0).fit().estimator == "aipw"
        assert ai.Contrasts(log, control=0, treatments=[1]).fit().estimator == "aipw"


class TestWinner:
    def test_its_interval_is_exact_at_a_shared_level(self) -> None:
        frame = random_policy()
        log = log_of(frame, propensity="p", context="position", design=ai.designs.Uniform())
        result = ai.Winner(log).fit()
        own = frame["y"][frame["a"] == result.winner]
        test = stats.binomtest(int(own.sum()), len(own), 0.003, alternative="greater")
        wanted = stats.binomtest(int(own.sum()), len(own)).proportion_ci(1.0 - 0.05 / 34, method="exact")
        assert result.conf_int().to_numpy()[0] == pytest.approx([wanted.low, wanted.high], rel=1e-9)
        assert result.validity == "exact"
        assert result.estimate[0] == pytest.approx(own.mean(), rel=1e-12)
        tested = ai.Winner(log).fit(null=0.003)
        assert tested.pvalues.iloc[0] == pytest.approx(min(1.0, 34 * 2 * test.pvalue), rel=1e-9)
        with pytest.raises(InvalidForLog, match=TOO_RARE()):
            result.best_arms()
        assert (
            ai.recommend(log, "winner").best.verdict.name
            == "projection of count-based intervals, sample-mean"
        )
        valid = [one for one in ai.recommend(log, "winner").methods if one.verdict.valid]
        assert all(np.isfinite(one.run().conf_int().to_numpy()).all() for one in valid)

    @pytest.mark.slow
    def test_it_covers_the_winner(self) -> None:
        """100 logs of six arms at half a percent: whoever wins, its rate is covered."""
        covered = 0
        for seed in range(100):
            result = ai.Winner(log_of(random_policy(seed, 1_800, 6), adaptive=False)).fit()
            low, high = result.conf_int().to_numpy()[0]
            covered += low <= 0.005 <= high
        assert covered >= 87  # P(fewer) at .95 is 8e-5

    @pytest.mark.parametrize("asked", [{"control": 0}, {"runner_up": True}])
    def test_comparisons_share_the_level_of_their_family(self, asked: dict[str, Any]) -> None:
        log = log_of(random_policy(1, 3_000, 5), adaptive=False)
        result = ai.Winner(log, **asked).fit()
        pair = ai.Contrast(log, treatment=result.winner, control=result.against).fit("sample-mean")
        family = 4 if "control" in asked else 10
        wanted = pair.conf_int(0.05 / family).to_numpy()[0]
        assert result.conf_int().to_numpy()[0] == pytest.approx(wanted, rel=1e-9)
        assert result.validity == "asymptotic"

    def test_its_picture_is_refused_with_the_reason(self) -> None:
        result = ai.Winner(log_of(random_policy(1, 3_000, 5), adaptive=False)).fit()
        with pytest.raises(ParameterError, match="too rare or too skewed for normal approximations, so only"):
            ai.plots.winner(result)
