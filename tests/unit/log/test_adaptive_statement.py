"""What a log states of how assignment took to outcomes: kept, compared, contradicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs.promises import ADAPTIVE
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.inference.inputs.rounds import log_of_rounds
from adaptinf.log import LogArrays
from adaptinf.log.validation import OF_AGGREGATES, nested_options


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"arm": rng.choice(["a", "b"], 60), "y": rng.normal(size=60), "week": np.arange(60) // 20, "x": 1.0}
    )


def log_of(**options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(
        frame(), action="arm", reward="y", batch="week", context="x", **nested_options(options)
    )


def sums_of(**options: Any) -> ai.Sums:
    return ai.aggregate(
        frame(), action="arm", reward="y", batch="week", **nested_options(options, OF_AGGREGATES)
    )


@pytest.mark.parametrize("stated", [True, False, None])
@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_files_keep_it(stated: bool | None, name: str, tmp_path: Path) -> None:
    log = log_of(adaptive=stated)
    path = tmp_path / name
    (log.to_parquet if name.endswith("parquet") else log.to_csv)(path)
    again = ai.read_log(path)
    assert again.adaptive is stated
    assert again.equals(log)
    assert again.equals(log_of(adaptive=False)) is (stated is False)


def test_named_files_take_it(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "ab.csv", index=False)
    log = ai.read_log(tmp_path / "ab.csv", action="arm", reward="y", adaptive=False)
    assert log.adaptive is False


@pytest.mark.parametrize("stated", [True, False, None])
def test_sums_keep_it(stated: bool | None, tmp_path: Path) -> None:
    sums = sums_of(adaptive=stated)
    assert sums.adaptive is stated
    sums.to_parquet(tmp_path / "sums.parquet")
    assert ai.Sums.read_parquet(tmp_path / "sums.parquet").adaptive is stated
    other = frame().assign(week=9)
    more = ai.aggregate(other, action="arm", reward="y", batch="week", adaptive=stated)
    assert (sums + more).adaptive is stated
    against = ai.aggregate(other, action="arm", reward="y", batch="week", adaptive=stated is not True)
    with pytest.raises(ParameterError, match="adaptive differs"):
        sums + against


def test_sums_of_a_log_say_the_same() -> None:
    rows = frame().assign(p_a=0.5, p_b=0.5)
    log = ai.AdaptiveLog(rows, action="arm", reward="y", batch="week", propensities="p_{arm}", adaptive=False)
    assert ai.Sums.of_log(log).adaptive is False
    assert says(repr(ai.Sums.of_log(log)), ADAPTIVE, reacted="did not adapt")


def test_subsets_copies_and_print() -> None:
    log = log_of(adaptive=False)
    assert log_of_rounds(log, np.arange(60) % 2 == 0).adaptive is False
    assert log.filled(0.0).adaptive is False
    assert f"design: unknown; {ADAPTIVE(reacted='did not adapt')}" in repr(log)
    assert says(repr(log_of(adaptive=True)), ADAPTIVE, reacted="adapted")
    assert not says(repr(log_of()), ADAPTIVE)
    part = ai.Contrast(log, treatment="b", control="a", rounds=np.arange(60) < 40)
    assert part.fit().estimator == "sample-mean"
    arrays = LogArrays(action=np.array([0, 1]), reward=np.array([0.0, 1.0]))
    assert ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), adaptive=False).adaptive is False


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"adaptive": False, "design": ai.designs.Thompson()},
            "adaptive=False states that assignment did not adapt to outcomes, but the design Thompson states "
            "that it adapts",
        ),
        (
            {"adaptive": True, "design": ai.designs.Uniform()},
            "adaptive=True states that assignment adapted to outcomes, but the design Uniform states that it "
            "does not adapt",
        ),
        ({"adaptive": False, "feedback_rounds": 3}, "feedback_rounds = 3 states that 3 rewards could change"),
        ({"adaptive": True, "feedback_rounds": 0}, "feedback_rounds = 0 states that 0 rewards could change"),
        ({"adaptive": "no"}, "adaptive must be True, False or None, got 'no'"),
    ],
)
def test_contradictions_name_both(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LogValidationError, match="1 problem") as caught:
        log_of(**options)
    assert told in str(caught.value)
    with pytest.raises(LogValidationError, match="1 problem") as caught:
        sums_of(**options)
    assert told in str(caught.value)


def test_what_agrees_is_taken() -> None:
    assert log_of(adaptive=False, design=ai.designs.Uniform()).adaptive is False
    assert log_of(adaptive=True, design=ai.designs.Thompson()).adaptive is True
    assert log_of(adaptive=False, design="Thompson").adaptive is False  # a name alone decides nothing
    assert log_of(adaptive=False, feedback_rounds=0).adaptive is False


def test_late_outcomes_reach_no_choice_where_none_reacted() -> None:
    rows = frame().assign(known=np.arange(1, 61) + 5)
    given: dict[str, Any] = {"action": "arm", "reward": "y", "outcome_round": "known"}
    assert ai.AdaptiveLog(rows, **nested_options(given)).feedback_rounds == 54
    assert ai.AdaptiveLog(rows, adaptive=False, **nested_options(given)).feedback_rounds is None
