"""Arms that come late, in logs of the chosen arm's propensity alone: ruled out, filled in, or cautioned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms.weighted_arms import CHOSEN_ALONE_IN_BATCHES
from adaptinf.claims.data.availability import LEFT_OUT
from adaptinf.claims.propensities import CHOSEN_NOT_FOLLOWED, NOT_FOLLOWED
from adaptinf.errors import LogValidationError
from adaptinf.inference.diagnostics.choice_checks import inverse_sums
from adaptinf.inference.validity.calibration import frequency_statistics
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.validation import nested_options
from adaptinf.log.validation.arm_columns import propensities_as_far_as_known
from adaptinf.typing import FloatArray, IntArray

RATES = np.array([0.04, 0.04, 0.06])


def not_followed(cautions: Iterable[str]) -> bool:
    """Whether arms are said to be chosen with other probabilities than those of the log."""
    told = list(cautions)
    return any(says(told, claim) for claim in (NOT_FOLLOWED, CHOSEN_NOT_FOLLOWED))


def cautions_of(log: ai.AdaptiveLog) -> Iterable[str]:
    """What its propensities are found to be."""
    found = profile_of(log).propensities_found
    assert found is not None
    return found.cautions


def late(seed: int = 0, rounds: int = 60_000) -> tuple[pd.DataFrame, FloatArray]:
    """A and B at even odds, D with a share of .6 from day 4 of 14 on; the file has what was served."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 14, rounds))
    share = np.where(day >= 4, 0.6, 0.0)
    every = np.column_stack([(1.0 - share) / 2.0, (1.0 - share) / 2.0, share])
    arm = (rng.random(rounds)[:, None] > every.cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame({"arm": np.array(list("ABD"))[arm], "y": rng.binomial(1, RATES[arm]), "day": day})
    return frame.assign(p=every[np.arange(rounds), arm]), every


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(
        frame, action="arm", reward="y", propensity="p", reward_range=(0, 1), **nested_options(options)
    )


def full_of(frame: pd.DataFrame, every: FloatArray, **options: Any) -> ai.AdaptiveLog:
    wide = frame.assign(**{f"p_{arm}": every[:, place] for place, arm in enumerate("ABD")})
    return log_of(wide, propensities="p_{arm}", **options)


COLUMNS: dict[str, Any] = {"action": "arm", "reward": "y", "propensity": "p", "batch": "day"}


def answers(log: ai.AdaptiveLog | ai.Sums) -> tuple[ai.Results, ai.Results]:
    return ai.ArmMeans(log).fit(), ai.Contrast(log, treatment="D", control="A").fit()


def frequencies(action: IntArray, own: FloatArray, possible: IntArray) -> FloatArray:
    sums = [np.bincount(action, own**-power, len(possible)) for power in (0.0, 1.0, 2.0)]
    least = np.array([own[action == code].min(initial=1.0) for code in range(len(possible))])
    return frequency_statistics(*sums, possible, least)


def same(one: ai.Results, other: ai.Results) -> None:
    np.testing.assert_allclose(one.conf_int().to_numpy(), other.conf_int().to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(one.estimate, other.estimate, rtol=1e-12)


class TestRuledOut:
    def test_the_right_values(self) -> None:
        log = log_of(late()[0], batch="day")
        means = ai.ArmMeans(log).fit()
        low, high = means.conf_int().loc["D"]
        assert low < 0.06 < high
        assert abs(means.params["D"] - 0.06) < 2.0 * means.bse["D"]
        contrast = ai.Contrast(log, treatment="D", control="A").fit()
        assert abs(contrast.estimate[0] - 0.02) < 2.0 * contrast.std_error[0]
        winner = ai.Winner(log).fit()
        assert winner.winner == "D"
        assert winner.conf_int().iloc[0]["low"] < 0.06 < winner.conf_int().iloc[0]["high"]
        for result, left in ((means, "17055 for D"), (contrast, "17055"), (winner, "17055 for D")):
            assert not not_followed(result.cautions)
            assert says(result.notes, LEFT_OUT, rounds=60000, left=left)
        assert not any(check.term == "D" for check in ai.diagnose(log).concerns)

    @pytest.mark.parametrize("rounds", [3_000, 60_000], ids=["NumPy", "compiled"])
    @pytest.mark.parametrize("estimator", ["ipw", "aipw"])
    def test_the_numbers_are_those_of_every_propensity(self, rounds: int, estimator: str) -> None:
        frame, every = late(1, rounds)
        log, full = log_of(frame, batch="day"), full_of(frame, every, batch="day")
        call = {"estimator": estimator, "weights": "uniform"}
        same(ai.ArmMeans(log).fit(**call), ai.ArmMeans(full).fit(**call))
        for treatment, control in (("D", "A"), ("B", "A")):
            pair = {"treatment": treatment, "control": control}
            same(ai.Contrast(log, **pair).fit(**call), ai.Contrast(full, **pair).fit(**call))
        kept = ai.ArmMeans(log).fit(**call, keep_scores=True).scores
        assert kept is not None
        np.testing.assert_array_equal(kept["weights"][1:, 2], (every[1:, 2] > 0.0).astype(float))

    def test_late_outcomes_and_units_too(self) -> None:
        frame, every = late(2, 2_800)
        known = frame.assign(known=np.arange(1, 2_801) + 9, unit=np.arange(2_800) // 2)
        call = {"estimator": "aipw", "weights": "uniform"}
        for options in ({"outcome_round": "known"}, {"unit": "unit"}):
            log = log_of(known, batch="day", **options)
            same(
                ai.ArmMeans(log).fit(**call),
                ai.ArmMeans(full_of(known, every, batch="day", **options)).fit(**call),
            )

    def test_where_room_is_left_nothing_is_ruled_out(self) -> None:
        batch, action = np.array([0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 1, 0, 2])
        own = np.array([0.5, 0.5, 0.4, 0.6, 0.5, 0.3, 0.4])
        table = propensities_as_far_as_known(batch, action, own, 3)
        assert table is not None
        assert table.tolist() == [
            [0.5, 1.0, 0.0],
            [1.0, 0.5, 0.0],
            *[[0.4, 1.0, 1.0], [1.0, 0.6, 1.0], [1.0, 0.5, 1.0]],  # not one propensity each
            *[[0.3, 1.0, 1.0], [1.0, 1.0, 0.4]],  # .3 is left
        ]
        assert propensities_as_far_as_known(batch[2:] - 1, action[2:], own[2:], 3) is None


class TestFromBatches:
    def test_every_propensity_is_filled(self) -> None:
        frame, every = late(3, 3_000)
        log = log_of(frame, propensities="from batches", batch="day")
        np.testing.assert_array_equal(log.arrays.propensities, every)
        assert log.propensity_status == "exact"
        full = full_of(frame, every, batch="day")
        same(ai.ArmMeans(log).fit(), ai.ArmMeans(full).fit())
        result = ai.Contrast(log, treatment="D", control="A").fit()
        same(result, ai.Contrast(full, treatment="D", control="A").fit())
        assert result.weights == "combined"
        assert ai.Winner(log).fit().conf_int().equals(ai.Winner(full).fit().conf_int())

    def test_one_arm_without_rounds_has_what_is_left(self, tmp_path: Any) -> None:
        rows = {
            "arm": list("ABABAD"),
            "p": [0.5, 0.5, 0.3, 0.3, 0.6, 0.4],
            "day": [0, 0, 1, 1, 2, 2],
            "y": 0.0,
        }
        log = log_of(pd.DataFrame(rows), propensities="from batches", batch="day")
        assert log.arrays.propensities is not None
        wanted = [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.6, 0.0, 0.4]]
        np.testing.assert_allclose(log.arrays.propensities[::2], wanted, atol=1e-15)
        log.to_parquet(tmp_path / "log.parquet")
        assert ai.read_log(tmp_path / "log.parquet").equals(log)

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            (
                {"p": [0.5, 0.5, 0.3, 0.4, 0.5, 0.5]},
                r"in 1 batches \(1, counted from 0\) a chosen arm's propensity",
            ),
            (
                {"p": [0.5, 0.5, 0.5, 0.5, 0.3, 0.3]},
                r"in 1 batches \(1, counted from 0\) several arms were not",
            ),
            ({"p": [0.9, 0.5, 1.0, 1.0, 0.5, 0.5]}, r"in 1 batches \(0, counted from 0\) .* more than 1"),
            ({"day": 0, "p": [0.3, 0.3, 0.3, 0.3, 0.3, 0.3]}, "every arm was chosen"),
            ({"day": None}, "requires batch= and propensity="),
        ],
    )
    def test_what_cannot_be_filled_is_refused_by_batch(self, changed: dict[str, Any], told: str) -> None:
        rows = {"arm": list("ABAABD"), "p": [0.5] * 6, "day": [0, 0, 1, 1, 2, 2], "y": 0.0}
        options = {} if changed.get("day", 0) is None else {"batch": "day"}
        with pytest.raises(LogValidationError, match=told):
            log_of(pd.DataFrame({**rows, **changed}), propensities="from batches", **options)


class TestSums:
    """An engine's sums rule out, say and caution what rows do."""

    def test_the_right_values(self) -> None:
        frame, _ = late()
        sums = ai.aggregate(frame, **COLUMNS, reward_range=(0, 1))
        log = log_of(frame, batch="day")
        for one, other in zip(answers(sums), answers(log), strict=True):
            assert one.cautions == other.cautions
            np.testing.assert_allclose(one.bse, other.bse, rtol=5e-3)  # means of earlier batches, not rounds
            np.testing.assert_allclose(one.estimate, other.estimate, atol=0.1 * float(one.bse.min()))
            assert says(one.notes, CHOSEN_ALONE_IN_BATCHES)
        assert abs(answers(sums)[0].params["D"] - 0.06) < 2.0 * answers(sums)[0].bse["D"]

    def test_where_shares_move_within_batches_it_says_which_arm(self) -> None:
        rng = np.random.default_rng(8)
        share = np.repeat(rng.dirichlet([5.0, 5.0, 5.0], 80) * 0.85 + 0.05, 125, axis=0)
        share[:5000, 2] = 0.0
        share /= share.sum(axis=1, keepdims=True)
        arm = (rng.random(10_000)[:, None] > share.cumsum(axis=1)).sum(axis=1)
        frame = pd.DataFrame({"arm": np.array(list("ABD"))[arm], "y": rng.binomial(1, 0.06, 10_000)})
        frame["p"], frame["day"] = share[np.arange(10_000), arm], np.arange(10_000) // 500
        sums = ai.aggregate(frame, **COLUMNS)
        for one in answers(sums):
            (told,) = [told for told in one.cautions if says(told, CHOSEN_NOT_FOLLOWED)]
            assert told.values["arms"].startswith("D (z = -")
        rows, summed = (
            [told for told in answers(data)[0].cautions if says(told, CHOSEN_NOT_FOLLOWED)]
            for data in (log_of(frame, batch="day"), sums)
        )
        assert summed == rows

    def test_an_arm_that_was_sure(self) -> None:
        frame, _ = late()
        frame.loc[frame["day"] < 2, ["arm", "p"]] = ["A", 1.0]
        sums, log = ai.aggregate(frame, **COLUMNS, reward_range=(0, 1)), log_of(frame, batch="day")
        alone = (frame["day"] < 2).sum()
        assert f"{alone} for B" in " ".join(ai.ArmMeans(sums).fit().explain().texts)
        np.testing.assert_allclose(ai.ArmMeans(sums).fit().bse, ai.ArmMeans(log).fit().bse, rtol=5e-3)
        frame.loc[frame.index[5], "arm"] = "B"
        with pytest.raises(LogValidationError, match="some propensities are 1"):
            ai.aggregate(frame, **COLUMNS)


class TestCaution:
    def test_without_batches_it_says_which_arm(self) -> None:
        log = log_of(late()[0])
        for result in (
            ai.ArmMeans(log).fit("aipw"),
            ai.Contrast(log, treatment="D", control="A").fit("aipw"),
        ):
            (told,) = [one for one in result.cautions if says(one, CHOSEN_NOT_FOLLOWED)]
            assert told.values["arms"] == "D (z = -85.2)"
        assert says(ai.Winner(log).fit("aipw").cautions, CHOSEN_NOT_FOLLOWED)

    def test_the_statistic_literally(self) -> None:
        rng = np.random.default_rng(4)
        share = rng.dirichlet([4.0, 3.0, 2.0], 300)
        action = (rng.random(300)[:, None] > share.cumsum(axis=1)).sum(axis=1)
        own, possible = share[np.arange(300), action], np.array([300, 290, 280])
        found = frequencies(action, own, possible)
        for code in range(3):
            mine = own[action == code]
            total = sum(1.0 / p for p in mine) - possible[code]
            variance = sum((1.0 - p) / p**2 for p in mine)
            if total < 0.0:
                variance = max(variance * possible[code] / sum(1.0 / p for p in mine), -total / min(mine))
            assert found[code] == pytest.approx(total / np.sqrt(variance), rel=1e-12)
        assert np.isnan(frequencies(action[:30], own[:30], np.full(4, 30))).sum() >= 2
        gram = inverse_sums(action, own, 3)
        again = inverse_sums(action, own, 3, np.ones((300, 3), dtype=bool))
        np.testing.assert_allclose(again[0], gram[0], rtol=1e-9)
        np.testing.assert_allclose(again[1], gram[1], rtol=1e-9)

    @pytest.mark.slow
    def test_false_alarms_are_rare(self) -> None:
        """Thompson sampling of four arms with a floor, and rare arms: at .001 a log, of 600 hardly any."""
        alarms = 0
        arms = ai.environments.BernoulliArms([0.3, 0.35, 0.4, 0.3])
        for seed in range(300):
            whole = ai.designs.Thompson(floor=0.05, batch_size=20).run(arms, horizon=600, rng=seed)
            frame = pd.DataFrame(
                {"arm": whole.arrays.action, "y": whole.arrays.reward, "p": whole.arrays.propensity}
            )
            alarms += not_followed(cautions_of(log_of(frame)))
            rng, share = np.random.default_rng(seed), np.array([0.05, 0.15, 0.3, 0.5])
            arm = rng.choice(4, 500, p=share)
            rare = pd.DataFrame({"arm": arm, "y": 0.0, "p": share[arm]})
            alarms += not_followed(cautions_of(log_of(rare)))
        assert alarms <= 6  # P(more than 6) at .001 is 3e-6
