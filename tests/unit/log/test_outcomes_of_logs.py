"""Further outcomes of a log's rounds: kept, written and read, checked, and no contexts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims.logs.coverage import OUTCOME
from adaptinf.errors import LogValidationError
from adaptinf.log.validation import nested_options


def frame_of() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    arm = np.repeat([["a", "b"]], 30, axis=0).ravel()
    orders = rng.poisson(2.0, size=60) + 1
    reward = orders * rng.gamma(2.0, size=60)
    return pd.DataFrame({"arm": arm, "y": reward, "p": 0.5, "orders": orders, "kept": orders > 2, "x": 0.5})


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {
        "action": "arm",
        "reward": "y",
        "propensity": "p",
        "outcomes": ["orders", "kept"],
    }
    return ai.AdaptiveLog(frame, **nested_options(given | options))


def test_they_are_columns_and_no_contexts() -> None:
    log = log_of(frame_of(), context="x")
    assert (log.context, log.outcomes) == (("x",), ("orders", "kept"))
    assert list(log.frame)[-3:] == ["x", "orders", "kept"]
    assert log.column("kept").dtype == np.float64
    np.testing.assert_array_equal(log.arrays.outcomes["orders"], frame_of()["orders"])
    assert log_of(frame_of(), outcomes="orders").outcomes == ("orders",)
    assert log_of(frame_of(), outcomes=()).outcomes == ()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_written_and_read(tmp_path: Path, suffix: str) -> None:
    log = log_of(frame_of(), context="x")
    path = tmp_path / f"log.{suffix}"
    (log.to_parquet if suffix == "parquet" else log.to_csv)(path)
    again = ai.read_log(path)
    assert again.equals(log)
    assert again.outcomes == ("orders", "kept")
    assert not log.equals(log_of(frame_of().assign(orders=1), context="x"))


def test_a_ratio_by_the_name_of_its_denominator() -> None:
    frame = frame_of()
    log = log_of(frame)
    by_name, by_array = (
        ai.ArmMeans(log, denominator=given, rounds=np.arange(60) < 50).fit()
        for given in ("orders", frame["orders"])
    )
    np.testing.assert_array_equal(by_name.estimate, by_array.estimate)
    np.testing.assert_array_equal(by_name.std_error, by_array.std_error)
    assert by_name.estimands[0].kind == "ratio"


def test_rows_put_in_order_take_them_along() -> None:
    frame = frame_of().assign(day=np.arange(60))
    straight = log_of(frame, round="day")
    turned = log_of(frame[::-1], round="day", sort=True)
    np.testing.assert_array_equal(turned.arrays.outcomes["orders"], straight.arrays.outcomes["orders"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"outcomes": ["order"]}, "there is no column 'order' for outcomes; did you mean 'orders'"),
        ({"outcomes": 3}, "outcomes= must be a list of column names"),
        ({"outcomes": ["y"]}, "column 'y' is used as reward and as outcomes"),
        ({"outcomes": ["x"], "context": ["x"]}, "column 'x' is used as context and as outcomes"),
        ({"outcomes": ["arm2"]}, "outcome column 'arm2' of type .* must be numeric"),
        ({"outcomes": ["gap"]}, r"outcome column 'gap' has no value \(NaN or None\) \[row 3\]"),
        ({"outcomes": ["far"]}, r"outcome column 'far' .*infinite.*\[row 4\]"),
        ({"outcomes": ["batch"]}, "outcome column 'batch' has a name that the log reserves"),
    ],
)
def test_bad_outcomes(options: dict[str, Any], told: str) -> None:
    frame = frame_of().assign(arm2="a", gap=1.0, far=1.0, batch=1.0)
    frame.loc[3, "gap"], frame.loc[4, "far"] = np.nan, np.inf
    with pytest.raises(LogValidationError, match=told):
        log_of(frame, **options)


def test_the_public_part_has_none() -> None:
    """They are measured of participants, as rewards are."""
    arms = ai.environments.BernoulliArms([0.9, 0.5])
    log = ai.designs.PrivateSuccessiveElimination(epsilon=1.0).run(arms, horizon=3_000, rng=0)
    arrays = replace(log.arrays, outcomes={"orders": np.ones(3_000)})
    other = ai.AdaptiveLog.from_arrays(
        arrays,
        arms=log.arms,
        guarantee=log.guarantee,
        reward_guarantee=log.reward_guarantee,
        design=log.design,
        noise="simulation",
        releases=log.releases,
        guarantee_source="design",
    )
    public = other.public()
    assert public.left_out["orders"] == OUTCOME()
    assert public.rounds is not None
    assert "orders" not in public.rounds
