"""Logs with missing rewards, received arms and late outcomes: what is kept, refused, written and told."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims.logs import readings as claims
from adaptinf.errors import AdaptinfError, InvalidForLog, LogValidationError, ParameterError
from adaptinf.log.storage.stored import LATER_FIELDS
from adaptinf.log.validation import IncompleteArrays, LogArrays, nested_options


def frame_of() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "arm": ["a", "b", "a", "b", "a", "b"],
            "got": ["a", "a", "a", "b", "a", "b"],
            "y": [1.0, None, 0.0, 1.0, None, 0.5],
            "p": [0.5] * 6,
            "seen": [0.5, 0.5, 0.9, 1.0, 0.25, 0.75],
            "when": [1, 2, 3, 5, 8, 13],
            "known": [2, None, 9, 5, None, 20],
            "x": ["u", "v", "u", "v", "u", "v"],
        }
    )


def log_of(frame: pd.DataFrame | None = None, **options: Any) -> ai.AdaptiveLog:
    given = {"action": "arm", "reward": "y", "propensity": "p", "missing": "drop", **options}
    return ai.AdaptiveLog(frame_of() if frame is None else frame, **nested_options(given))


def full_log(**options: Any) -> ai.AdaptiveLog:
    roles = {
        "action": "got",
        "assigned": "arm",
        "observation": "seen",
        "round": "when",
        "outcome_round": "known",
    }
    return log_of(**{**roles, "context": "x", "reward_range": (0, 1), **options})


def codes_of(**options: Any) -> list[str]:
    with pytest.raises(LogValidationError) as caught:
        log_of(**options)
    return [problem.code for problem in caught.value.problems]


def test_columns_by_hand() -> None:
    arrays = full_log().arrays
    assert arrays.action.tolist() == [0, 1, 0, 1, 0, 1]
    assert arrays.received is not None
    assert arrays.received.tolist() == [0, 0, 0, 1, 0, 1]
    assert arrays.observed is not None
    assert arrays.observed.tolist() == [True, False, True, True, False, True]
    assert np.array_equal(arrays.recorded, [1.0, np.nan, 0.0, 1.0, np.nan, 0.5], equal_nan=True)
    assert arrays.observation is not None
    assert arrays.observation.tolist() == [0.5, 0.5, 0.9, 1.0, 0.25, 0.75]
    # rounds 1, 2 had begun at 2; the outcome of round 5 was known before round 8; at 9 only 13 was left
    assert arrays.known is not None
    assert arrays.known.tolist() == [2, 6, 5, 4, 6, 6]


def test_rounds_are_counted_where_they_have_no_column() -> None:
    frame = frame_of().assign(known=[1, 4, 3, 6, 9, 6])
    assert log_of(frame, outcome_round="known").arrays.known.tolist() == [1, 4, 3, 6, 6, 6]


def test_times_of_outcomes() -> None:
    frame = frame_of().assign(
        when=["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-06"],
        known=["2024-01-03", None, "2024-01-03", "2024-02-04", None, "2024-01-06"],
    )
    log = log_of(frame, round="when", outcome_round="known")
    assert log.arrays.known.tolist() == [3, 6, 3, 6, 6, 6]
    assert log.feedback_rounds == 2


def test_a_complete_log_stays_complete() -> None:
    frame = frame_of().assign(y=1.0)
    log = log_of(frame)
    assert type(log.arrays) is LogArrays
    assert log.arrays.observed is None
    assert log.arrays.recorded is log.arrays.reward


# Guards


def test_rewards_of_an_incomplete_log_cannot_be_read() -> None:
    arrays = log_of().arrays
    assert isinstance(arrays, IncompleteArrays)
    with pytest.raises(InvalidForLog, match="2 of 6 rewards are missing"):
        _ = arrays.reward


REFUSING = {
    "CATE": lambda log: ai.CATE(log, by="x", treatment="b", control="a").fit(),
    "CATE.from_formula": lambda log: ai.CATE.from_formula("x", log, treatment="b", control="a").fit(),
    "PolicyValue": lambda log: ai.PolicyValue(log, {"all a": "a"}).fit(),
    "AdaptiveOLS": lambda log: ai.AdaptiveOLS.from_formula("reward ~ x", log).fit(),
    "ConfidenceSequence": lambda log: ai.ConfidenceSequence(log).fit(),
    "randomization_test": lambda log: ai.audit.randomization_test(log, ai.designs.Uniform(), rng=0),
    "randomization_interval": lambda log: ai.audit.randomization_interval(
        log, ai.designs.Uniform(), treatment="b", control="a", rng=0
    ),
    "simulate_bias": lambda log: ai.audit.simulate_bias(log, ai.designs.Uniform(), 8, rng=0),
    "exact_test": lambda log: ai.audit.exact_test(log, ai.designs.Uniform()),
    "sample-mean": lambda log: ai.ArmMeans(log).fit(estimator="sample-mean"),
    "batched": lambda log: ai.Contrast(log, treatment="b", control="a").fit(estimator="batched"),
    "recommend cate": lambda log: ai.recommend(log, target="cate", by="x", treatment="b", control="a"),
}


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_whoever_was_not_taught_refuses(name: str, missing: str) -> None:
    log = log_of(context="x", reward_range=(0, 1), missing=missing, design=ai.designs.Uniform())
    if missing == "worst" and name == "sample-mean":
        assert np.isfinite(REFUSING[name](log).estimate).all()  # bounds hold for every estimator of means
        return
    with pytest.raises(AdaptinfError) as caught:
        REFUSING[name](log)
    assert isinstance(caught.value, InvalidForLog), caught.value


# Files


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_keep_it(tmp_path: Path, ending: str) -> None:
    log = full_log()
    path = tmp_path / f"log.{ending}"
    getattr(log, f"to_{ending}")(path)
    again = ai.read_log(path)
    assert again.equals(log)
    assert (again.missing, again.feedback_rounds) == ("drop", 3)
    assert again.arrays.known.tolist() == log.arrays.known.tolist()
    assert again.arrays.received.tolist() == log.arrays.received.tolist()
    with pytest.raises(InvalidForLog):
        _ = again.arrays.reward


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_keep_times_and_gaps_in_them(tmp_path: Path, ending: str) -> None:
    days = pd.date_range("2024-01-01", periods=6)
    known = pd.Series([*days[1:], days[-1]]).where(frame_of()["y"].notna())
    log = log_of(frame_of().assign(when=days, known=known), round="when", outcome_round="known")
    path = tmp_path / f"log.{ending}"
    getattr(log, f"to_{ending}")(path)
    assert ai.read_log(path).equals(log)


def test_names_of_later_columns_are_free_for_contexts(tmp_path: Path) -> None:
    frame = frame_of().assign(y=1.0).rename(columns={"x": "received", "seen": "observation"})
    log = log_of(frame, missing=None, context=["received", "observation"])
    log.to_parquet(tmp_path / "log.parquet")
    again = ai.read_log(tmp_path / "log.parquet")
    assert again.equals(log)
    assert again.arrays.received is None
    assert again.context == ("received", "observation")


def test_earlier_files_lack_the_later_fields(tmp_path: Path) -> None:
    assert LATER_FIELDS == ("missing", "outcomes", "adaptive", "stopping")
    log = log_of(frame_of().assign(y=1.0), missing=None)
    from adaptinf.log.storage.stored import StoredLog, restored

    stored = log._stored()
    earlier = {name: value for name, value in stored.metadata.items() if name not in LATER_FIELDS}
    found = restored(StoredLog(stored.columns, earlier, stored.releases))
    assert found.checked.metadata.missing is None


def test_pickles_and_copies() -> None:
    log = full_log()
    for other in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log)):
        assert other.equals(log)
        assert repr(other.arrays) == repr(log.arrays)
    assert log.equals(full_log(missing=None))  # probabilities of observation imply "drop"
    assert not log.equals(log_of())


# What is told, and filled


def test_printed() -> None:
    told = repr(full_log())
    assert claims.SHOWN_MISSING(count=2, meaning="drop", known=", observation probabilities known") in told
    assert claims.SHOWN_RECEIVED(count=1) in told
    assert claims.SHOWN_LATE(late=2) in told


def test_filled() -> None:
    log = log_of(reward_range=(0, 1))
    assert log.filled(0.25).arrays.reward.tolist() == [1.0, 0.25, 0.0, 1.0, 0.25, 0.5]
    assert log.filled({"a": 0.0, "b": 1.0}).arrays.reward.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0, 0.5]
    assert log.filled(np.arange(6) / 10).arrays.reward.tolist() == [1.0, 0.1, 0.0, 1.0, 0.4, 0.5]
    assert log.arrays.observed is not None
    for wrong in (2.0, np.nan, "x", {"a": 0.0}, [0.0, 1.0]):
        with pytest.raises(ParameterError):
            log.filled(wrong)


def test_arrays_that_nobody_checked() -> None:
    arrays = LogArrays(action=np.array([0, 1]), reward=np.array([1.0, np.nan]))
    log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), missing="drop")
    with pytest.raises(InvalidForLog, match="1 of 2"):
        _ = log.arrays.reward


# Wrong input


def test_missing_rewards_need_a_meaning() -> None:
    assert codes_of(missing=None) == ["missing-reward"]
    assert codes_of(missing="ignore")[0] == "bad-missing"
    assert codes_of(missing=1)[0] == "bad-missing"
    assert codes_of(missing="worst") == ["bad-missing"]
    assert codes_of(missing="worst", reward_range=(0, 1), observation="seen") == ["bad-missing"]
    assert codes_of(frame=frame_of().assign(y=np.nan)) == ["missing-reward"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"observation": "known"}, "missing-propensity"),
        ({"observation": "when"}, "propensity-out-of-range"),
        ({"outcome_round": "x"}, "bad-outcome-round"),
        ({"outcome_round": "seen"}, "early-outcome-round"),
        (
            {"outcome_round": "known", "frame": frame_of().assign(known=[2, 2, None, 5, 8, 20])},
            "missing-outcome-round",
        ),
        ({"assigned": "arm", "action": "x"}, "unseen-received"),
        ({"outcome_round": "known", "feedback_rounds": 6}, "bad-feedback-rounds"),
        ({"outcome_round": "nowhere"}, "missing-column"),
    ],
)
def test_wrong_columns(options: dict[str, Any], code: str) -> None:
    assert code in codes_of(**options)


def test_rewards_that_could_reach_a_choice_are_counted() -> None:
    log = full_log()
    assert log.feedback_rounds == int(np.count_nonzero(log.arrays.known < 6)) == 3
    assert full_log(feedback_rounds=1).feedback_rounds == 1


# Designs that are run again


def late_log(**options: Any) -> ai.AdaptiveLog:
    design = ai.designs.PlayTheWinner()
    frame = pd.DataFrame(
        {"arm": [0, 1] * 10, "y": [1.0, 0.0] * 10, "known": np.minimum(np.arange(20) + 5, 22)}
    )
    return ai.AdaptiveLog(
        frame,
        action="arm",
        reward="y",
        reward_range=(0, 1),
        **options,
        columns={"outcome_round": "known"},
        about={"design": design},
    )


@pytest.mark.parametrize(
    "run",
    [
        lambda log: ai.audit.randomization_test(log, ai.designs.EpsilonGreedy(), rng=0),
        lambda log: ai.audit.simulate_bias(log, ai.designs.EpsilonGreedy(), replications=8, rng=0),
        lambda log: ai.audit.exact_test(log),
    ],
)
def test_designs_are_not_run_again_on_outcomes_that_were_late(run: Any) -> None:
    with pytest.raises(AdaptinfError, match="became known after the next round had begun"):
        run(late_log())


def test_outcomes_that_are_known_by_the_next_batch_are_not_late() -> None:
    from adaptinf.audit.rerun.logged_rows import late_problems

    frame = pd.DataFrame({"arm": [0, 1] * 10, "y": 1.0, "b": np.repeat([0, 1, 2, 3], 5)})
    frame["known"] = np.repeat([5, 10, 15, 20], 5)
    given = {"action": "arm", "reward": "y", "outcome_round": "known"}
    assert late_problems(ai.AdaptiveLog(frame, batch="b", **nested_options(given))) == []
    assert "16 outcomes" in late_problems(ai.AdaptiveLog(frame, **nested_options(given)))[0]
    frame["known"] = np.repeat([5, 11, 15, 20], 5)
    assert "5 outcomes" in late_problems(ai.AdaptiveLog(frame, batch="b", **nested_options(given)))[0]
