"""`aggregate` of rows whose propensities or arms have no column of their own, in every kind of engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError

N = 300
ACTION = np.random.default_rng(0).integers(0, 3, N)
THIRD = 1 / 3
ROWS = pd.DataFrame(
    {
        "day": np.repeat([1, 2], N // 2),
        "arm": np.array(list("ABC"))[ACTION],
        "y": np.random.default_rng(1).random(N),
        "lists": [[THIRD] * 3] * N,
        "objects": ['{"A": 0.3333, "B": 0.3333, "C": 0.3333}'] * N,
        "p_A": 0.3333,
        "p_B": 0.3333,
        "p_C": 0.3333,
        "own": 0.3333,
        "A": (ACTION == 0).astype(int),
        "B": ACTION == 1,
        "C": (ACTION == 2).astype(float),
    }
)
ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
    "arrow": pa.Table.from_pandas,
}
ROUND = {"reading": {"round_propensities": True}}


def aggregate(engine: str, frame: pd.DataFrame = ROWS, **options: Any) -> ai.Sums:
    """The sums of rows in an engine."""
    found: ai.Sums = ai.aggregate(
        ENGINES[engine](frame), **{"action": "arm", "reward": "y", "batch": "day", **options}
    )
    return found


def refused(engine: str, frame: pd.DataFrame = ROWS, **options: Any) -> list[str]:
    """What is said of rows that are refused."""
    with pytest.raises(LogValidationError) as caught:
        aggregate(engine, frame, **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options",
    [
        {"propensities": dict.fromkeys("ABC", THIRD)},
        {"propensities": "p_", **ROUND},
        {"propensities": "p_{arm}", "propensity": "own", **ROUND},
        {"propensities": {"A": "p_A", "B": THIRD, "C": np.float64(THIRD)}, **ROUND},
        {"action": ["A", "B", "C"], "propensities": dict.fromkeys("ABC", THIRD)},
        {"propensities": "lists", "arms": ["A", "B", "C"]},
        {"propensities": "objects", **ROUND},
    ],
)
def test_the_same_sums_whatever_shape_propensities_and_arms_have(
    engine: str, options: dict[str, Any]
) -> None:
    mixed = isinstance(options.get("propensities"), dict) and "p_A" in options["propensities"].values()
    frame = ROWS.assign(p_A=THIRD) if mixed else ROWS
    if options.get("propensities") in ("lists", "objects") and engine not in ("pandas", "polars"):
        (problem,) = refused(engine, frame, **options)
        assert problem.startswith(f"propensity column {options['propensities']!r} is of type ")
        assert problem.endswith(
            ", but lists and objects can be read only from pandas and Polars frames: make a column of "
            "each arm's entries in the engine, and name them in propensities="
        )
        return
    found = aggregate(engine, frame, **options)
    assert found.arms == ("A", "B", "C")
    assert found.cells.knows_every
    np.testing.assert_allclose(found.cells.smallest, THIRD, rtol=1e-12)
    counts = np.bincount(ACTION + 3 * (ROWS["day"].to_numpy() - 1), minlength=6).reshape(2, 3)
    np.testing.assert_array_equal(found.cells.pulls, counts)
    np.testing.assert_allclose(found.cells.moments[1, 0], 3 * counts, rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_propensity_for_whichever_arm(engine: str) -> None:
    found = aggregate(engine, propensity=THIRD)
    assert not found.cells.knows_every
    np.testing.assert_allclose(found.cells.moments[1, 0], 3 * found.cells.pulls, rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_wrong_is_told_with_the_way_out(engine: str) -> None:
    (problem,) = refused(engine, propensities="p_")
    assert problem.startswith(
        "rows of 'p_A', 'p_B', 'p_C' do not sum to 1 (tolerance 1e-06) but to 0.9999; if they were rounded "
        "to 4 "
        "decimals, set 'round_propensities' to True (--round-propensities on the command line) to "
        "renormalise the "
        "rows; in 300 rows, such as in batch "
    )
    far = ROWS.assign(p_A=np.where(ROWS["own"].index == 7, 0.3, 0.3333))
    (problem,) = refused(engine, far, propensities="p_", **ROUND)
    assert "do not sum to 1 (tolerance 1e-06) but to 0.9666 in 1 row" in problem
    twice = ROWS.assign(A=1)
    count = int((ACTION > 0).sum())
    assert refused(engine, twice, action=["A", "B", "C"]) == [
        "action columns 'A', 'B', 'C' must contain a single 1 and otherwise 0 in every row, but they do not "
        "in "
        f"{count} rows"
    ]
    assert refused(engine, action=["A", "day"])[0].startswith(
        "action columns 'A', 'day' must contain a single 1"
    )
    assert refused(engine, action=["A", "arm"])[0].startswith(
        "action column 'arm' must contain 0 and 1, or True"
    )
    assert refused(engine, action=["A", "Z"])[0].startswith("there is no column 'Z' for action")
    assert refused(engine, propensity=1.5) == [
        "propensity= must be a number in (0, 1] or name a column, got 1.5"
    ]
    assert refused(engine, propensities={"A": -1, "B": "p_B", "C": "p_C"}) == [
        "propensities= of arm 'A' must be a number in [0, 1] or name a column, got -1"
    ]
    assert refused(engine, propensities="p_", reading={"round_propensities": "yes"}) == [
        "'round_propensities' must be True or False, got 'yes'"
    ]


def test_arms_of_columns_are_all_in_the_order_of_the_list() -> None:
    found = aggregate(
        "duckdb",
        ROWS.assign(Z=0),
        action=["C", "B", "A", "Z"],
        propensities=dict(zip("CBAZ", [0.3, 0.3, 0.3, 0.1], strict=True)),
    )
    assert found.arms == ("C", "B", "A", "Z")
    assert found.cells.pulls.sum(axis=0).tolist() == [*np.bincount(ACTION)[::-1], 0]
