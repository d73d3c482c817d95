"""UnitCube: bounds that are fixed before the trial, what lies outside them, and where they come from."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.simulation.environments.cube_contexts import UnitCube

CUBE = UnitCube(low=[18, -1.0], high=[90, 1.0], names=["age", "score"])
FRAME = pd.DataFrame({"score": [0.0, 1.0, -1.0], "age": [90, 54, 18], "city": ["a", "b", "c"]})
SCALED = [[1.0, 0.5], [0.5, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME), FRAME.set_index("city")])
def test_frames_are_read_by_the_names_of_the_columns(frame: Any) -> None:
    assert CUBE.scale(frame).tolist() == SCALED


def test_arrays_and_single_points() -> None:
    points = FRAME[["age", "score"]].to_numpy()
    assert CUBE.scale(points).tolist() == SCALED
    assert CUBE.scale([54, 1.0]).tolist() == [0.5, 1.0]
    np.testing.assert_allclose(CUBE.unscale(SCALED), points, rtol=0, atol=1e-13)
    assert CUBE.unscale([0.5, 1.0]).tolist() == [54.0, 1.0]
    assert CUBE.dimension == 2
    unnamed = UnitCube(low=(18, -1.0), high=(90, 1.0))
    assert unnamed.scale(FRAME[["age", "score"]]).tolist() == SCALED
    truths = UnitCube(low=[0], high=[1], names=["yes"])
    assert truths.scale(pd.DataFrame({"yes": [True, False]})).tolist() == [[1.0], [0.0]]


@given(
    low=st.floats(-1e90, 1e90),
    width=st.floats(1e-6, 1e90),
    share=st.floats(0.0, 1.0),
)
def test_no_value_within_the_bounds_leaves_the_cube(low: float, width: float, share: float) -> None:
    high = low + width
    if high > low:
        value = min(max(low + share * (high - low), low), high)
        cube = UnitCube(low=[low], high=[high])
        scaled = cube.scale([[low], [value], [high]]).ravel()
        assert scaled[0] == 0.0
        assert scaled[2] == 1.0
        assert 0.0 <= scaled[1] <= 1.0
        assert cube.unscale([[0.0], [1.0]]).ravel().tolist() == [low, high]


def test_what_lies_outside_is_refused_with_rows_and_columns() -> None:
    with pytest.raises(ParameterError) as error:
        CUBE.scale([[17, 0.0], [20, 3.0], [91, math.nan], [30, -math.inf]])
    assert error.value.problems[:4] == (
        "column 'score' has 1 missing values, in row 2",
        "column 'score' has 1 infinite values, in row 3",
        "column 'age' must lie in [18, 90], but 2 values do not, in rows 0, 2; the first is 17",
        "column 'score' must lie in [-1, 1], but 1 values do not, in row 1; the first is 3",
    )
    assert "fixed before the trial" in error.value.problems[4]


def test_clipping_is_counted_aloud() -> None:
    cube = UnitCube(low=[0, 0], high=[2, 2], outside="clip")
    with pytest.warns(
        AdaptinfWarning, match="among 3 rows, values were clipped to the bounds: 2 of x1, 1 of x2"
    ):
        scaled = cube.scale([[3, 1], [-1, 1e300], [1, 2]])
    assert scaled.tolist() == [[1.0, 0.5], [0.0, 1.0], [0.5, 1.0]]
    assert cube.scale([[0, 2]]).tolist() == [[0.0, 1.0]]
    with pytest.raises(ParameterError, match="x1 has 1 missing values, in row 0"):
        cube.scale([[math.nan, 1]])


@pytest.mark.parametrize("outside", ["clip", "refuse"])
def test_an_infinity_is_no_measurement(outside: str) -> None:
    cube = UnitCube(low=[0, 0], high=[2, 2], outside=outside)
    with pytest.raises(ParameterError) as error:
        cube.scale([[1, 1], [1, math.inf], [-math.inf, -math.inf]])
    assert error.value.problems == (
        "x1 has 1 infinite values, in row 2",
        "x2 has 2 infinite values, in rows 1, 2",
    )


def test_coordinates_without_names_have_one_name_throughout() -> None:
    cube = UnitCube(low=[0, 0], high=[2, 2])
    assert "x1 in [0, 2], x2 in [0, 2]" in str(cube)
    with pytest.raises(ParameterError, match=r"x2 must lie in \[0, 2\]"):
        cube.scale([1, 3])
    with pytest.raises(ParameterError, match="low must be below high, but coordinate x2 has 5 and 2"):
        UnitCube(low=[0, 5], high=[2, 2])


def test_it_says_that_it_is_fixed_before_the_trial() -> None:
    assert repr(CUBE) == str(CUBE)
    assert str(CUBE) == (
        "UnitCube(age in [18, 90], score in [-1, 1]; fixed before the trial, bounds stated by the user)"
    )
    many = UnitCube(low=[0] * 9, high=[1] * 9, outside="clip")
    assert "x4 in [0, 1], and 5 more, clipping values outside; fixed before the trial" in str(many)


@pytest.mark.parametrize("cube", [CUBE, UnitCube.from_public(FRAME, ["age"], outside="clip")])
def test_a_protocol_can_keep_it(cube: UnitCube) -> None:
    stored = json.loads(json.dumps(cube.to_dict()))
    again = UnitCube.from_dict(stored)
    assert again == cube
    assert hash(again) == hash(cube)
    assert again.source == cube.source
    with pytest.raises(ParameterError, match="requires a mapping with high, low, names, outside, source"):
        UnitCube.from_dict({"low": [0]})


def test_bounds_from_public_data_say_so() -> None:
    cube = UnitCube.from_public(FRAME, ["age", "score"], description="the census of 2011")
    assert (cube.low, cube.high) == ((18.0, -1.0), (90.0, 1.0))
    assert cube.source == "bounds fitted to 3 rows that were declared public: the census of 2011"
    assert "fixed before the trial, bounds fitted to 3 rows that were declared public" in repr(cube)
    assert UnitCube.from_public(pl.from_pandas(FRAME[["age"]])).names == ("age",)
    with pytest.raises(ParameterError) as error:
        UnitCube.from_public(FRAME)
    assert "but these columns are not: 'city'" in str(error.value)
    with pytest.raises(ParameterError, match="low must be below high, but coordinate 'x' has 1 and 1"):
        UnitCube.from_public(pd.DataFrame({"x": [1, 1]}))
    with pytest.raises(ParameterError, match="column 'x' has 1 missing values, in row 1"):
        UnitCube.from_public(pd.DataFrame({"x": [1, None]}))
    with pytest.raises(ParameterError, match="column 'x' has 1 infinite values, in row 1"):
        UnitCube.from_public(pd.DataFrame({"x": [1, math.inf]}))
    with pytest.raises(ParameterError, match="description must be a string, got 3"):
        UnitCube.from_public(FRAME, ["age"], description=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="must be a pandas or polars DataFrame, got ndarray"):
        UnitCube.from_public(np.zeros((2, 2)))


def test_nothing_fits_bounds_on_its_own() -> None:
    """Bounds are required, and the only other way to them says that the data are public."""
    with pytest.raises(TypeError, match=r"low.*high"):
        UnitCube()  # type: ignore[call-arg]
    assert [name for name in dir(UnitCube) if "fit" in name] == []


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            {"low": "a", "high": [math.inf], "outside": "drop", "source": "", "names": "age"},
            [
                "low must be a list",
                "high[0] must be",
                "outside must be one of",
                "source must",
                "names must be",
            ],
        ),
        (
            {"low": [0, 1, 2], "high": [1, 1, 0]},
            ["but coordinate x2 has 1 and 1", ("but coordinate x3 has 2 and 0")],
        ),
        ({"low": [0], "high": [1, 2], "names": ["a"]}, ["got 1 low, 2 high, 1 names"]),
        ({"low": [0, 0], "high": [1, 1], "names": ["a", "a"]}, ["names must be different strings"]),
        ({"low": [], "high": []}, ["low must be a list with one number per coordinate"]),
        ({"low": [math.nan], "high": [1]}, ["low[0] must be finite, got nan"]),
    ],
)
def test_bounds_that_are_refused(arguments: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ParameterError) as error:
        UnitCube(**arguments)
    assert all(part in str(error.value) for part in parts), str(error.value)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ([[1, 2, 3]], "must have 2 coordinates, shape (n, 2) or (2,), got shape (1, 3)"),
        ("abc", "values must be numbers"),
        ([["a", "b"]], "values must be numbers"),
        (FRAME[["age"]], "the frame has no column 'score'"),
        (FRAME.assign(age=["a", "b", "c"]), "but these columns are not: 'age'"),
    ],
)
def test_values_that_are_refused(values: Any, part: str) -> None:
    with pytest.raises(ParameterError) as error:
        CUBE.scale(values)
    assert part in str(error.value)


def test_only_points_of_the_cube_go_back() -> None:
    for values in ([1.01, 0.0], [math.nan, 0.0], [[0.0], [1.0]]):
        with pytest.raises(ParameterError, match=r"UnitCube\.unscale"):
            CUBE.unscale(values)
