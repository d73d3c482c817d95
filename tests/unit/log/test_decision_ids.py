"""Ids of decisions: copies of rows, joins that multiplied rows, and columns that are no ids."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog

ROWS = pd.DataFrame(
    {
        "key": ["d1", "d2", "d3", "d4"],
        "arm": ["A", "B", "A", "B"],
        "y": [1.0, 0.0, 0.0, 1.0],
        "p": [0.5, 0.5, 0.6, 0.4],
        "ts": [1, 2, 3, 4],
        "spare": [7, 8, 9, 10],
    }
)


def refused(frame: pd.DataFrame, **options: Any) -> list[str]:
    """What is said of a frame that is refused."""
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", propensity="p", id="key", **options)
    return [str(problem) for problem in caught.value.problems]


def test_ids_that_stand_once_are_kept() -> None:
    log = AdaptiveLog(ROWS, action="arm", reward="y", propensity="p", id="key")
    assert log.ids is not None
    assert log.ids.tolist() == ["d1", "d2", "d3", "d4"]


def test_copies_are_refused_whatever_unread_columns_hold() -> None:
    frame = ROWS.iloc[[0, 1, 2, 1, 3]].assign(spare=range(5))
    assert refused(frame) == [
        "id column 'key' contains a decision more than once, and the rows agree in all columns that the log "
        "reads, "
        "such as rows 1 and 3: drop the copies, for example with "
        "pandas.DataFrame.drop_duplicates(subset='key') [row 3]"
    ]


def test_a_join_that_multiplied_rows_is_refused() -> None:
    outcomes = pd.DataFrame(
        {"key": ["d1", "d2", "d2", "d3", "d3", "d4"], "y": [1.0, 0.0, 1.0, 5.0, 6.0, 1.0]}
    )
    frame = ROWS.drop(columns="y").merge(outcomes, on="key")
    assert refused(frame) == [
        "id column 'key' contains a decision more than once, with different outcomes ('y'), such as rows 1 "
        "and 2: a "
        "join with a table of outcomes multiplied rows; sum the outcomes of each decision, or choose one, "
        "before joining the tables [rows 2, 4]"
    ]


def test_a_column_that_names_no_decisions_is_refused_with_what_tells_them_apart() -> None:
    frame = ROWS.assign(key=["u1", "u2", "u1", "u1"])
    assert refused(frame, round="ts") == [
        "id column 'key' contains a decision more than once, but the rows belong to different decisions "
        "(they differ "
        "in 'arm', 'p', 'ts'), such as rows 0 and 2: id= requires a column with a distinct value for every "
        "decision; name the column that identifies participants in unit= [rows 2, 3]"
    ]


def test_each_fault_is_told_with_the_rows_as_the_frame_has_them() -> None:
    frame = pd.concat([ROWS, ROWS.iloc[[0]], ROWS.iloc[[1]].assign(y=1.0)])[::-1]
    told = refused(frame, round="ts", reading={"sort": True})
    assert [problem.partition(", such as ")[2].partition(":")[0] for problem in told] == [
        "rows 1 and 5",
        "rows 0 and 4",
    ]


def test_missing_outcomes_are_equal_and_a_missing_id_is_none() -> None:
    gaps = ROWS.assign(y=[None, 0.0, None, 1.0]).iloc[[0, 1, 2, 3, 2]]
    (problem,) = refused(gaps, missing="drop")
    assert "the rows agree in all columns that the log reads, such as rows 2 and 4" in problem
    assert refused(ROWS.assign(key=["d1", None, "d3", "d4"])) == ["id column 'key' has no value [row 1]"]
    large = ROWS.assign(key=[2.0**53, 2.0**53 + 2, 1.0, 2.0])
    assert refused(large) == [
        "id column 'key' has floats of 2**53 or more, each of which represents several whole numbers: read "
        "it as text [rows 0, 1]"
    ]
