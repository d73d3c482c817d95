"""Formulas that would take all time or memory, or another column than the one that is named."""

from __future__ import annotations

import string

import numpy as np
import pandas as pd
import pytest

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.formulas import CovariateModel, model_on, name_in_formula, read_formula

LETTERS = "+".join(string.ascii_lowercase)


def made(text: str, **columns: object) -> CovariateModel:
    """Model of a formula on columns; x counts from 0 to 5, g holds labels."""
    data = pd.DataFrame({"x": np.arange(6.0), "g": list("abcabc"), **columns})
    return model_on("formula", read_formula("formula", text), data)


@pytest.mark.parametrize(
    "text",
    [
        f"({LETTERS})**10",
        f"(({LETTERS})**2)**3",
        "(a+b)**(1000000000)",
        "a**99999999999",
        LETTERS.replace("+", "*"),
        ":".join(["(a+b+c+d)"] * 9),
    ],
)
def test_products_are_counted_before_they_are_made(text: str) -> None:
    with pytest.raises(ParameterError, match="more than 50,000 terms"):
        read_formula("formula", f"~ {text}")


@pytest.mark.slow
def test_ordinary_products_and_long_sums_are_made() -> None:
    assert made("~ (x + g)**(11)").matrix.shape == (6, 6)
    assert made("~ " + "+".join(["x"] * 2000)).names == ("Intercept", "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bs(x, degree=1000000)", "degree must be at most 20, got 1e[+]06"),
        ("bs(x, 5, None, 1000000)", "degree must be at most 20"),
        ("poly(x, 10**9)", "degree must be at most 20"),
        ("cr(x, df=1000000)", "df must be at most 1,000"),
        ("hashed(g, levels=10**12)", "levels must be at most 5,000"),
        (f"C(g, levels={list(range(6000))})", "levels must be at most 5,000, got 6000"),
    ],
)
def test_transforms_take_no_huge_sizes(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        made(f"~ {text}")


def test_interactions_of_many_labels_are_refused() -> None:
    labels = [f"label {i}" for i in range(80)]
    data = pd.DataFrame({"a": labels, "b": labels})
    with pytest.raises(ParameterError, match="a:b has about 6,400 columns"):
        model_on("formula", read_formula("formula", "~ a:b"), data)
    assert model_on("formula", read_formula("formula", "~ a"), data).matrix.shape == (80, 80)


@pytest.mark.parametrize(("text", "name"), [("`1`", "1"), ("x + `1`", "1"), ("2:x + `2`", "2")])
def test_a_column_is_no_number_of_the_formula(text: str, name: str) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' is both a column and a number: rename the column"):
        made(f"~ {text}", **{name: np.ones(6) * 7})


def test_a_column_called_one_is_read_where_no_intercept_is() -> None:
    np.testing.assert_array_equal(made("~ 0 + `1`", **{"1": np.arange(6) * 7}).matrix[:, 0], np.arange(6) * 7)


def test_letters_that_python_spells_otherwise() -> None:
    wide = "\uff58"  # a full-width x, which Python reads as x
    with pytest.raises(ParameterError, match="letters that Python normalises"):
        made(f"~ I({wide}**2)", **{wide: np.ones(6)})
    assert name_in_formula(wide) == f"`{wide}`"
    np.testing.assert_array_equal(
        made(f"~ I(`{wide}`*3)", **{wide: np.arange(6) + 1}).matrix[:, 1], 3 * np.arange(1, 7)
    )


def test_a_column_without_a_name() -> None:
    for text in ("``", "I(``)"):
        with pytest.raises(ParameterError, match="`` names no column"):
            made(f"~ {text}", **{"": np.ones(6)})
    assert name_in_formula("") == "Q('')"
    np.testing.assert_array_equal(made("~ Q('')", **{"": np.arange(6) * 2}).matrix[:, 1], np.arange(6) * 2)


@pytest.mark.parametrize(
    ("text", "new", "said"),
    [
        ("~ g", {"g": [1, 2]}, "'g' must contain labels, as in the log, not int64"),
        ("~ x", {"x": [1j]}, "'x' must contain real numbers, as in the log, not complex128"),
        ("~ x", {"x": ["1"]}, "'x' must contain real numbers, as in the log"),
    ],
)
def test_predictions_take_the_kinds_of_the_log(text: str, new: dict[str, list[object]], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        made(text).rows("predict", new)


def test_predictions_take_categories() -> None:
    rows = made("~ g").rows("predict", {"g": pd.Categorical(["c"], categories=["c", "a"])})
    np.testing.assert_array_equal(rows, [[1, 0, 1]])
