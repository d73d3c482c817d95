"""Propensities in other shapes than a column for each arm, and arms in columns of 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import CheckedLog, Metadata, check_frame
from adaptinf.log.validation.arm_columns import propensities_as_far_as_known

ROWS = pd.DataFrame(
    {
        "arm": ["A", "B", "A", "B"],
        "y": [1.0, 0.0, 1.0, 0.0],
        "lists": [[0.6, 0.4], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]],
        "text": ["[0.6, 0.4]", "[0.7,0.3]", " [0.6, 0.4]", "[0.5, 0.5]"],
        "objects": [
            '{"A": 0.6, "B": 0.4}',
            '{"B": 0.3, "A": 0.7}',
            "{'A': 0.6, 'B': 0.4}",
            '{"A":.5e0,"B":5e-1}',
        ],
        "p_A": [0.6, 0.7, 0.6, 0.5],
        "p_B": [0.4, 0.3, 0.4, 0.5],
        "A": [1, 0, 1, 0],
        "B": [False, True, False, True],
    }
).replace('{"A":.5e0,"B":5e-1}', '{"A":5e-1,"B":0.5}')
READING = ("round_propensities", "every", "timezone", "sort")
EVERY = [[0.6, 0.4], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]]


def check(frame: Any = ROWS, **options: Any) -> CheckedLog:
    """The frame as a log reads it."""
    single = {"action": options.pop("action", "arm"), "reward": "y"}
    single |= {role: options.pop(role) for role in ("propensity", "unit") if role in options}
    reading = {name: options.pop(name) for name in READING if name in options}
    given = {
        "context": (),
        "propensities": None,
        "arms": None,
        "reward_range": None,
        "reading": reading,
        **options,
    }
    return check_frame(frame, single=single, metadata=Metadata(), **given)


def refused(frame: Any = ROWS, **options: Any) -> str:
    """What is said of a frame that is refused, a problem a line, without the first line."""
    with pytest.raises(LogValidationError) as caught:
        check(frame, **options)
    return str(caught.value).partition("\n")[2].replace("  - ", "")


@pytest.mark.parametrize(
    "options",
    [
        {"propensities": "lists", "arms": ["A", "B"]},
        {"propensities": "text", "arms": ["A", "B"]},
        {"propensities": "objects"},
        {"propensities": "p_{arm}"},
        {"propensities": "p_"},
        {"propensities": {"A": "p_A", "B": "p_B"}},
        {"propensities": "p_", "action": ["A", "B"]},
    ],
)
def test_one_table_of_propensities_from_every_shape(options: dict[str, Any]) -> None:
    read = check(**options)
    assert read.arms == ("A", "B")
    assert read.arrays.action.tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(read.arrays.propensities, EVERY)
    np.testing.assert_array_equal(read.arrays.propensity, [0.6, 0.3, 0.6, 0.5])


def test_lists_are_in_the_order_of_the_arms_that_are_given() -> None:
    read = check(ROWS.assign(lists=[[b, a] for a, b in EVERY]), propensities="lists", arms=["B", "A"])
    assert read.arms == ("B", "A")
    np.testing.assert_array_equal(read.arrays.propensity, [0.6, 0.3, 0.6, 0.5])


@pytest.mark.parametrize("kind", ["polars", "arrow", "array", "struct", "map"])
def test_lists_and_objects_of_other_frames(kind: str) -> None:
    frame = ROWS.drop(columns="objects")
    objects = [dict(zip("AB", row, strict=True)) for row in EVERY]
    options: dict[str, Any] = {"propensities": "lists", "arms": ["A", "B"]}
    if kind == "polars":
        read = check(pl.from_pandas(frame), **options)
    elif kind == "arrow":
        lists = pd.Series(EVERY, dtype=pd.ArrowDtype(pa.list_(pa.float64())))
        read = check(frame.assign(lists=lists), **options)
    elif kind == "array":
        read = check(frame.assign(lists=[np.array(row) for row in EVERY]), **options)
    elif kind == "struct":
        read = check(pl.from_pandas(frame).with_columns(objects=pl.Series(objects)), propensities="objects")
    else:
        maps = pa.array([list(row.items()) for row in objects], pa.map_(pa.string(), pa.float64()))
        read = check(
            frame.assign(objects=pd.Series(maps, dtype=pd.ArrowDtype(maps.type))), propensities="objects"
        )
    np.testing.assert_array_equal(read.arrays.propensities, EVERY)


def test_an_arm_that_an_object_lacks_has_none_and_one_that_nobody_chose_is_an_arm() -> None:
    objects = [{"A": 1.0}, {"A": 0.5, "B": 0.25, "C": 0.25}, {"A": 1.0}, {"B": 1.0}]
    read = check(ROWS.assign(objects=objects), propensities="objects")
    assert read.arms == ("A", "B", "C")
    assert read.arrays.propensities is not None
    assert read.arrays.propensities.tolist() == [[1, 0, 0], [0.5, 0.25, 0.25], [1, 0, 0], [0, 1, 0]]
    assert [(reading.kind, reading.text) for reading in read.readings] == [
        (
            "propensities",
            "propensity column 'objects' has no entry for arms 'A' (1 row), 'B' (2 rows), 'C' (3 rows); in "
            "these rows, their propensities are assumed to be 0",
        )
    ]


def test_a_constant_for_whichever_arm_and_constants_by_arm() -> None:
    read = check(propensity=0.5)
    np.testing.assert_array_equal(read.arrays.propensity, [0.5] * 4)
    np.testing.assert_array_equal(read.arrays.propensities, [[0.5, 0.5]] * 4)
    third = check(propensity=1 / 3)
    np.testing.assert_array_equal(third.arrays.propensity, [1 / 3] * 4)
    assert third.arrays.propensities is None
    three = check(propensities={"A": 0.5, "B": 0.3, "C": np.float32(0.2)})
    assert three.arms == ("A", "B", "C")
    np.testing.assert_allclose(three.arrays.propensities, [[0.5, 0.3, 0.2]] * 4, rtol=1e-7)
    mixed = check(propensities={"A": "p_A", "B": 0.4}, round_propensities=False, frame=ROWS.assign(p_A=0.6))
    np.testing.assert_array_equal(mixed.arrays.propensity, [0.6, 0.4, 0.6, 0.4])
    assert dict(mixed.names) == {"arm": "action", "y": "reward", "p_A": "propensity_A"}


def test_a_number_that_is_a_columns_name_is_the_column() -> None:
    frame = ROWS.rename(columns={"p_A": 0.5})
    assert check(frame.assign(y=1.0), propensity=0.5).arrays.propensity.tolist() == [
        0.6,
        0.7,
        0.6,
        0.5,
    ]


def test_arms_of_columns_of_0_and_1_are_all_columns_in_the_order_of_the_list() -> None:
    read = check(ROWS.assign(C=0), action=["C", "B", "A"])
    assert read.arms == ("C", "B", "A")
    assert read.arrays.action.tolist() == [2, 1, 2, 1]
    assert read.also_read == ("C", "B", "A")
    assert check(ROWS.assign(C=0), action=["C", "B", "A"], arms=["A", "B", "C"]).arms == ("A", "B", "C")
    by_number = check(ROWS.rename(columns={"A": 7, "B": 3}), action=[7, 3])
    assert by_number.arms == (7, 3)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"propensities": "lists"},
            "propensity column 'lists' contains lists, whose entries have no names: give the arms in the "
            "order of the lists, arms=[arm 1, arm 2]",
        ),
        (
            {"propensities": "lists", "arms": ["A", "B", "C"]},
            "propensity column 'lists' must contain lists of 3 entries, as arms= does, not of 2 [rows 0, 1, "
            "2, 3]",
        ),
        (
            {"propensities": "y"},
            "propensities='y' is a column that contains neither lists nor JSON objects (name the chosen "
            "arm's column in propensity=), and no other column name begins with it; the frame has 'arm', "
            "'y', "
            "'lists', 'text', 'objects', 'p_A', 'p_B', 'A', 'B'",
        ),
        (
            {"propensities": "q_"},
            "propensities='q_' is not a column, and no column name begins with it; the frame has 'arm', "
            "'y', 'lists', 'text', 'objects', 'p_A', 'p_B', 'A', 'B'",
        ),
        ({"propensity": 1.5}, "propensity= must be a number in (0, 1] or name a column, got 1.5"),
        ({"propensity": 0}, "propensity= must be a number in (0, 1] or name a column, got 0"),
        (
            {"propensities": {"A": -0.5, "B": 1.5}},
            "propensities= of arm 'A' must be a number in [0, 1] or name a column, got -0.5\n"
            "propensities= of arm 'B' must be a number in [0, 1] or name a column, got 1.5",
        ),
        (
            {"action": ["A"]},
            (
                "action= must name one column, or list at least two columns of 0 and 1, one for each arm, "
                "got ['A']"
            ),
        ),
        (
            {"action": ["A", "Bb"]},
            "there is no column 'Bb' for action; did you mean 'B'?",
        ),
        (
            {"action": ["A", "y"]},
            "column 'y' is used as reward and as action; use a separate copy of it for each role",
        ),
        ({"action": ["A", "text"]}, "action column 'text' must contain 0 and 1, or True and False, not str"),
    ],
)
def test_other_shapes_are_refused_with_what_to_do(options: dict[str, Any], told: str) -> None:
    assert refused(**options).splitlines() == told.splitlines()


def test_cells_of_lists_that_cannot_be_read_are_named() -> None:
    def of(*cells: Any) -> str:
        return refused(
            ROWS.assign(lists=pd.Series([*cells], dtype=object)), propensities="lists", arms=["A", "B"]
        )

    fine = [0.5, 0.5]
    must = (
        "propensity column 'lists' must contain a list of numbers, or an object with a number for each "
        "arm, in every row, not"
    )
    assert of(fine, "0.5;0.5", fine, "x") == f"{must} '0.5;0.5' [rows 1, 3]"
    assert of(fine, [0.5, "0.5"], fine, fine) == f"{must} [0.5, '0.5'] [row 1]"
    assert of(fine, [0.5, True], fine, fine) == f"{must} [0.5, True] [row 1]"
    assert of(fine, "[NaN, 1]", fine, fine) == f"{must} '[NaN, 1]' [row 1]"
    assert of(fine, '{"A": 1, "A": 0}', fine, fine) == f"""{must} '{{"A": 1, "A": 0}}' [row 1]"""
    assert of(fine, None, fine, fine) == "propensity column 'lists' has no value [row 1]"
    assert (
        of(fine, {"A": 1.0}, fine, fine)
        == "propensity column 'lists' contains objects in some rows and lists in others [row 1]"
    )
    assert of(fine, [0.5, 0.6], fine, fine) == (
        "rows of 'lists' (entry of arm 'A'), 'lists' (entry of arm 'B') do not sum to 1 (tolerance 1e-06) "
        "but to 1.1; if they were rounded to 1 decimal, set 'round_propensities' to True "
        "(--round-propensities on the command line) to renormalise the rows; otherwise every arm must have "
        "its own column; specify the columns in propensities= or the arms in arms= [row 1]"
    )
    assert of(fine, [1.5, -0.5], fine, fine).splitlines() == [
        "propensity column 'lists' (entry of arm 'A') has values outside [0, 1] [row 1]",
        "propensity column 'lists' (entry of arm 'B') has values outside [0, 1] [row 1]",
    ]
    strange = refused(
        ROWS.assign(objects=[{"A": 0.5, "B": 0.25, "Z": 0.25}] * 4), propensities="objects", arms=["A", "B"]
    )
    assert strange.splitlines()[0] == (
        "propensity column 'objects' has entries for 'Z', which are not arms ('A', 'B')"
    )


def test_rows_of_columns_of_0_and_1_have_exactly_one() -> None:
    assert refused(ROWS.assign(A=[1, 1, 0, 0]), action=["A", "B"]).splitlines() == [
        "action columns 'A', 'B' have no 1 [row 2]",
        "action columns 'A', 'B' contain more than one 1 [row 1]",
    ]
    assert refused(ROWS.assign(A=[1, 2, np.nan, 0]), action=["A", "B"]).splitlines() == [
        "action column 'A' has no value [row 2]",
        "action column 'A' must contain 0 and 1 [row 1]",
    ]


def thirds(share: float, **more: Any) -> pd.DataFrame:
    """Six rounds of three arms with a third each, as far as it was written."""
    shares = {f"propensity_{arm}": share for arm in "ABC"}
    return pd.DataFrame({"arm": list("ABCABC"), "y": 1.0, **shares, **more})


@pytest.mark.parametrize(
    ("share", "decimals"), [(0.33, 2), (0.3333, 4), (0.333333, 6), (np.float32(0.3333), 4)]
)
def test_rounded_propensities_are_refused_with_their_sums_or_renormalised(share: Any, decimals: int) -> None:
    told = refused(thirds(share))
    assert (
        f"do not sum to 1 (tolerance 1e-06) but to {3 * float(share):.7g}; if they were rounded to "
        f"{decimals} " in told
    )
    assert "set 'round_propensities' to True (--round-propensities on the command line)" in told
    read = check(thirds(share), round_propensities=True)
    np.testing.assert_allclose(read.arrays.propensities, 1 / 3, rtol=1e-15)
    np.testing.assert_array_equal(read.arrays.propensity, read.arrays.propensities[:, 0])
    (reading,) = read.readings
    assert reading.kind == "propensities"
    assert reading.text.startswith(
        f"propensities are rounded to {decimals} decimals: 6 of 6 rows were renormalised to sum to 1; the "
        f"smallest "
        "propensity of a chosen arm, 0.333, is known to within "
    )


def test_what_rounding_does_not_explain_is_refused() -> None:
    short = thirds(0.33).assign(propensity_A=[0.33, 0.33, 0.3, 0.33, 0.33, 0.34])
    assert refused(short, round_propensities=True).splitlines() == [
        "rows of 'propensity_A', 'propensity_B', 'propensity_C' do not sum to 1 (tolerance 1e-06) but to "
        "0.96; the rounding of 2 decimals explains at most 0.015; every arm must have its own column; "
        "specify the columns in propensities= or the arms in arms= [row 2]"
    ]
    digits = thirds(0.31).assign(propensity_A=0.312345678)
    assert refused(digits, round_propensities=True).splitlines() == [
        "rows of 'propensity_A', 'propensity_B', 'propensity_C' do not sum to 1 (tolerance 1e-06) but to "
        "0.9323457; every arm must have its own column; specify the columns in propensities= or the arms in "
        "arms= "
        "[rows 0, 1, 2, 3, 4, 5]"
    ]
    assert refused(round_propensities="yes") == "'round_propensities' must be True or False, got 'yes'"


def test_rows_that_sum_to_1_stay_as_they_are() -> None:
    shares = {"propensity_A": [0.3333, 0.3], "propensity_B": [0.3333, 0.1], "propensity_C": [0.3333, 0.6]}
    frame = pd.DataFrame({"arm": ["A", "B"], "y": 1.0, **shares})
    read = check(frame, round_propensities=True)
    assert read.arrays.propensities is not None
    assert read.arrays.propensities[1].tolist() == [0.3, 0.1, 0.6]
    assert read.readings[0].text == (
        "propensities are rounded to 4 decimals: 1 of 2 rows was renormalised to sum to 1; the smallest "
        "propensity of a chosen arm, 0.1, is known to within 0.05%"
    ).replace("rows was", "rows were")


def test_the_chosen_arms_propensity_keeps_its_digits_beside_rounded_columns() -> None:
    frame = thirds(0.33, p=[0.3312345] * 6)
    told = refused(frame, propensity="p")
    assert (
        "differs from the arm's own column (relative tolerance 1e-06); if it was rounded to 2 decimals, set"
        in told
    )
    read = check(frame, propensity="p", round_propensities=True)
    np.testing.assert_array_equal(read.arrays.propensity, 0.3312345)
    assert read.arrays.propensities is not None
    np.testing.assert_allclose(read.arrays.propensities[0], [0.3312345, 0.33438275, 0.33438275], rtol=1e-15)
    np.testing.assert_allclose(read.arrays.propensities.sum(axis=1), 1.0, rtol=1e-15)
    far = thirds(0.33, p=[0.34] * 6)
    assert "differs from the arm's own column (relative tolerance 1e-06) [rows" in refused(
        far, propensity="p", round_propensities=True
    )


def test_columns_of_other_roles_are_none_of_a_pattern() -> None:
    frame = ROWS.assign(p_site=[1.0, 2.0, 3.0, 4.0])
    for pattern in ("p_{arm}", "p_"):
        log = AdaptiveLog(frame, action="arm", reward="y", propensities=pattern, context="p_site")
        assert log.arrays.propensities is not None
        assert log.arrays.propensities.tolist() == EVERY
        assert "finds no arm for 'p_site'" in refused(frame, propensities=pattern)


BATCHES = pd.DataFrame(
    {"arm": list("ABAABC"), "y": 1.0, "day": [0, 0, 0, 1, 1, 1], "p": [0.75, 0.25, 0.75, 0.5, 0.25, 0.25]}
)


def test_what_the_chosen_arms_leave_is_that_of_the_only_other() -> None:
    named = {"action": "arm", "reward": "y", "batch": "day", "propensity": "p"}
    log = AdaptiveLog(BATCHES, **named, propensities="from batches")
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.tolist() == [[0.75, 0.25, 0.0]] * 3 + [[0.5, 0.25, 0.25]] * 3
    less = BATCHES.assign(p=[0.5, 0.25, 0.5, 0.5, 0.25, 0.25])
    log = AdaptiveLog(less, **named, propensities="from batches")
    assert log.arrays.propensities is not None
    assert log.arrays.propensities[0].tolist() == [0.5, 0.25, 0.25]
    alone = BATCHES.assign(arm=list("AAAABC"), p=[0.5, 0.5, 0.5, 0.5, 0.25, 0.25])
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(alone, **named, propensities="from batches")
    assert [problem.message for problem in caught.value.problems] == [
        "propensities='from batches': in 1 batches (0, counted from 0) several arms were not chosen, and "
        "their propensities cannot be determined"
    ]


def test_of_what_is_known_a_sure_choice_leaves_the_others_nothing() -> None:
    table = propensities_as_far_as_known(
        np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 2]), np.array([0.75, 0.25, 0.5, 0.25, 1.0]), 3
    )
    assert table is not None
    assert table.tolist() == [[0.75, 1, 0], [1, 0.25, 0], [0.5, 1, 1], [1, 0.25, 1], [0, 0, 1]]
    table = propensities_as_far_as_known(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.75, 0.25, 1.0, 0.5]), 3
    )
    assert table is not None
    assert table.tolist() == [[0.75, 1, 0], [1, 0.25, 0], [1, 0, 0], [1, 0.5, 1]]
