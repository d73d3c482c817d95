"""Every kind of damage to a frame, alone and together."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog, DesignRecord
from adaptinf.log.validation import nested_options
from adaptinf.log.validation.frame_columns import Findings, plain_label

Expected = list[tuple[str, tuple[int, ...]]]


def good_frame() -> pd.DataFrame:
    """Eight rounds with every kind of column."""
    return pd.DataFrame(
        {
            "arm": list("abcabcab"),
            "y": [0.0, 1.0, 0.5, 0.25, 0.75, 0.0, 1.0, 0.5],
            "p": [0.5, 0.3, 0.2, 0.5, 0.3, 0.2, 0.5, 0.3],
            "pa": 0.5,
            "pb": 0.3,
            "pc": 0.2,
            "week": [0, 0, 0, 1, 1, 2, 2, 2],
            "who": list("stuvwxyz"),
            "when": np.arange(10, 18),
            "stage": ["learn"] * 4 + ["estimate"] * 4,
            "coin": [True, False] * 4,
            "age": [30.0, 41.5, 29.0, 55.0, 38.0, 47.0, 33.0, 60.0],
            "town": list("mnmnmnmn"),
            "spare": 1.0,
        }
    )


GOOD: dict[str, Any] = {
    "action": "arm",
    "reward": "y",
    "propensity": "p",
    "propensities": {"a": "pa", "b": "pb", "c": "pc"},
    "context": ["age", "town"],
    "batch": "week",
    "unit": "who",
    "round": "when",
    "columns": {"phase": "stage", "randomised": "coin"},
    "arms": ["a", "b", "c"],
    "reward_range": (0, 1),
    "guarantee": {"epsilon": 0.5, "unit": "reward"},
}


def problems(frame: Any, **options: Any) -> Expected:
    """Codes and rows of everything that is wrong with a frame."""
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, **nested_options({**GOOD, **options}))
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
        assert problem.total == len(problem.rows)
    return [(problem.code, problem.rows) for problem in caught.value.problems]


def put(
    column: str, values: dict[int, object], dtype: object = None
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Damage that puts values into a column, of another type where one is named."""

    def damage(frame: pd.DataFrame) -> pd.DataFrame:
        listed = frame[column].tolist()
        for row, value in values.items():
            listed[row] = value
        return frame.assign(**{column: pd.Series(listed, dtype=dtype)})

    return damage


def whole(column: str, values: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Damage that replaces a column."""
    return lambda frame: frame.assign(**{column: values})


ALL = tuple(range(8))
ROW_DAMAGE: list[tuple[Callable[[pd.DataFrame], pd.DataFrame], Expected]] = [
    (put("y", {2: np.nan}), [("missing-reward", (2,))]),
    (put("y", {2: np.inf, 5: -np.inf}), [("infinite-reward", (2, 5))]),
    (put("y", {1: 1.5, 3: -0.01}), [("reward-out-of-range", (1, 3))]),
    (put("y", {0: "0.0", 4: "x"}, object), [("non-numeric-reward", (0, 4))]),
    (put("y", {0: None, 4: "x"}, object), [("missing-reward", (0,)), ("non-numeric-reward", (4,))]),
    (put("y", {3: [0.5]}, object), [("non-numeric-reward", (3,))]),
    (whole("y", list("01010101")), [("non-numeric-reward", ALL)]),
    (whole("y", np.full(8, 0.5 + 0j)), [("non-numeric-reward", ())]),
    (whole("y", pd.date_range("2024-01-01", periods=8)), [("non-numeric-reward", ())]),
    (whole("y", pd.array([1, None, 0, 1, 0, 1, None, 0], dtype="Int64")), [("missing-reward", (1, 6))]),
    (whole("y", pd.array([0.5] * 7 + [None], dtype="double[pyarrow]")), [("missing-reward", (7,))]),
    (put("p", {4: np.nan}), [("missing-propensity", (4,))]),
    (
        whole("p", pd.array([1, None] * 4, dtype="Int64")),
        [("missing-propensity", (1, 3, 5, 7)), ("propensity-mismatch", (0, 2, 4, 6))],
    ),
    (whole("p", list("01010101")), [("non-numeric-propensity", ALL)]),
    (whole("p", [True, False] * 4), [("non-numeric-propensity", ())]),
    (put("p", {1: 0.3003}), [("propensity-mismatch", (1,))]),
    (
        put("p", {0: 0.0, 1: -0.3, 6: 1.5, 7: np.inf}),
        [("propensity-out-of-range", (0, 1, 6, 7)), ("propensity-mismatch", (0, 1, 6, 7))],
    ),
    (put("pc", {3: np.nan}), [("missing-propensity", (3,))]),
    (put("pc", {3: 0.2001, 4: 0.1999}), [("propensities-sum", (3, 4))]),
    (put("pa", {1: -0.5}), [("propensity-out-of-range", (1,)), ("propensities-sum", (1,))]),
    (put("pb", {3: "0.3"}, object), [("non-numeric-propensity", (3,))]),
    (put("arm", {1: None, 2: np.nan}, object), [("missing-action", (1, 2))]),
    (put("arm", {1: "d", 6: "D"}), [("unseen-arm", (1, 6))]),
    (put("arm", {1: " "}), [("blank-action", (1,)), ("unseen-arm", (1,))]),
    (put("arm", {3: ["a"], 4: ("a",), 5: {}}, object), [("bad-action", (3, 4, 5))]),
    (put("arm", {0: b"a", 7: datetime.date(2024, 1, 1)}, object), [("bad-action", (0, 7))]),
    (put("arm", {0: 1, 7: 2.5}, object), [("unseen-arm", (0, 7))]),
    (put("when", {2: 30}), [("unordered-round", (3,))]),
    (put("when", {5: 10}), [("unordered-round", (5,))]),
    (put("when", {5: None}, "Int64"), [("missing-round", (5,))]),
    (put("when", {5: np.nan, 7: np.inf}, float), [("missing-round", (5,)), ("bad-round", (7,))]),
    (whole("when", list("stuvwxyz")), [("bad-round", ())]),
    (
        whole("when", pd.to_datetime(["2024-01-01"] * 2 + ["2023-01-01"] + [None] * 5)),
        [("missing-round", (3, 4, 5, 6, 7)), ("unordered-round", (2,))],
    ),
    (put("week", {4: 0, 7: 1}), [("batch-not-contiguous", (4, 7))]),
    (whole("week", [3, 3, 2, 2, 1, 1, 4, 4]), [("unordered-batch", (2, 4))]),
    (whole("week", [3, 3, 2, 2, 3, 3, 4, 4]), [("batch-not-contiguous", (4,)), ("unordered-batch", (2,))]),
    (whole("week", list("bbaaccbb")), [("batch-not-contiguous", (6,))]),
    (put("week", {1: None}, object), [("missing-batch", (1,))]),
    (put("week", {1: [0]}, object), [("bad-batch", (1,))]),
    (put("week", {4: True}, object), [("ambiguous-batch", (3, 4))]),
    (put("week", {4: "1.0"}, object), [("ambiguous-batch", (0, 1, 2, 3, 4, 5, 6, 7))]),
    (whole("week", pd.Series([3, 3, 2.5, 2.5, 4, 4, 4, 4], dtype=object)), [("unordered-batch", (2,))]),
    (put("week", {7: True}, object), [("ambiguous-batch", (3, 4, 7))]),
    (put("stage", {2: None}), [("missing-phase", (2,))]),
    (put("stage", {2: 5}, object), [("bad-phase", (2,))]),
    (whole("stage", 1), [("bad-phase", ALL)]),
    (whole("coin", [0, 1] * 4), [("non-boolean-randomised", ())]),
    (put("coin", {1: "False", 2: 1}, object), [("non-boolean-randomised", (1, 2))]),
    (put("coin", {1: None}, object), [("missing-randomised", (1,))]),
    (put("coin", {1: pd.NA}, "boolean"), [("missing-randomised", (1,))]),
    (put("who", {6: None}), [("missing-unit", (6,))]),
    (put("who", {6: "\t"}), [("missing-unit", (6,))]),
    (put("who", {6: "s "}), [("ambiguous-unit", (0, 6))]),
    (put("who", {6: {}}, object), [("bad-unit", (6,))]),
    (put("who", {6: 1, 1: 1.0, 2: "1"}, object), [("ambiguous-unit", (1, 2, 6))]),
    (put("age", {0: np.nan, 1: np.inf}), [("missing-context", (0,)), ("infinite-context", (1,))]),
    (put("age", {2: "41"}, object), [("bad-context", (0, 1, 3, 4, 5, 6, 7))]),
    (whole("age", pd.date_range("2024-01-01", periods=8)), [("bad-context", ())]),
    (whole("age", np.array([2**64 - 1] + [0] * 7, dtype=np.uint64)), [("inexact-context", (0,))]),
    (put("town", {4: None, 5: np.nan}, object), [("missing-context", (4, 5))]),
    (put("town", {4: None}, "category"), [("missing-context", (4,))]),
    (put("town", {4: True}, object), [("bad-context", (4,))]),
]


@pytest.mark.parametrize(("damage", "expected"), ROW_DAMAGE)
def test_each_damage_of_rows_is_reported_alone_with_its_rows(
    damage: Callable[[pd.DataFrame], pd.DataFrame], expected: Expected
) -> None:
    assert problems(damage(good_frame())) == expected


OPTION_DAMAGE: list[tuple[dict[str, Any], Expected]] = [
    ({"action": "armm"}, [("missing-column", ())]),
    ({"action": None, "propensities": None, "propensity": None}, [("bad-column-name", ())]),
    ({"reward": ["y"]}, [("bad-column-name", ())]),
    ({"reward": "Y"}, [("missing-column", ())]),
    ({"propensity": "pp"}, [("missing-column", ())]),
    ({"propensities": {"a": "pa", "b": "pb", "c": "pp"}}, [("missing-column", ())]),
    ({"propensities": {"a": "pa", "b": "pb"}}, [("arm-without-propensity", ())]),
    ({"propensities": {"a": "pa", "b": "pb", "c": "pc", "d": "spare"}}, [("unknown-propensity-arm", ())]),
    (
        {"propensities": {"a": "pa", "b": "pb", "c": ["pc"]}},
        [("bad-propensities", ()), ("arm-without-propensity", ())],
    ),
    ({"propensities": ["pa", "pb", "pc"]}, [("bad-propensities", ())]),
    (
        {"propensities": {"a": "pa", "b": "pb", "c": "pb"}},
        [("column-used-twice", ()), ("propensities-sum", ALL), ("propensity-mismatch", (2, 5))],
    ),
    ({"context": ["age", "city"]}, [("missing-column", ())]),
    ({"context": [3]}, [("bad-column-name", ())]),
    ({"context": {"age": 1}}, [("bad-column-name", ())]),
    ({"context": 3}, [("bad-column-name", ())]),
    ({"context": ["age", "age"]}, [("column-used-twice", ())]),
    ({"context": ["age", "y"]}, [("column-used-twice", ())]),
    ({"context": ["age", "pa"]}, [("column-used-twice", ())]),
    ({"batch": "b"}, [("missing-column", ())]),
    ({"unit": "u", "round": "r", "phase": "f", "randomised": "c"}, [("missing-column", ())] * 4),
    ({"batch": "when"}, [("column-used-twice", ())]),
    ({"arms": "abc"}, [("bad-arms", ())]),
    ({"arms": []}, [("bad-arms", ())]),
    ({"arms": ["a", "b", "c", None]}, [("bad-arms", ())]),
    ({"arms": ["a", "b", "c", "a"]}, [("bad-arms", ())]),
    ({"arms": ["a", "b", "c", "d"]}, [("arm-without-propensity", ())]),
    (
        {"arms": ["a", "b"]},
        [("unknown-propensity-arm", ()), ("unseen-arm", (2, 5)), ("propensities-sum", ALL)],
    ),
    ({"reward_range": (1, 0)}, [("inverted-reward-range", ())]),
    ({"reward_range": (1, 1)}, [("inverted-reward-range", ())]),
    ({"reward_range": (0, np.inf)}, [("bad-reward-range", ())]),
    ({"reward_range": (np.nan, 1)}, [("bad-reward-range", ())]),
    ({"reward_range": (0, 1, 2)}, [("bad-reward-range", ())]),
    ({"reward_range": "01"}, [("bad-reward-range", ())]),
    ({"reward_range": (0, 0.5)}, [("reward-out-of-range", (1, 4, 6))]),
    ({"guarantee": {"epsilon": 1, "unit": "user"}}, [("unknown-guarantee-unit", ())]),
    ({"guarantee": {"epsilon": 1, "unit": ["reward"]}}, [("unknown-guarantee-unit", ())]),
    (
        {"guarantee": {"epsilon": -1, "unit": "user", "delta": 2}},
        [("unknown-guarantee-unit", ()), ("bad-guarantee", ()), ("bad-guarantee", ())],
    ),
    ({"guarantee": {"delta": 0}}, [("bad-guarantee", ())]),
    ({"guarantee": {"epsilon": 1, 2: 3}}, [("bad-guarantee", ())]),
    ({"guarantee": 0.5}, [("bad-guarantee", ())]),
    ({"reward_guarantee": {"epsilon": 1, "unit": "record"}}, [("bad-guarantee", ())]),
    ({"noise": "gaussian"}, [("bad-noise", ())]),
    ({"design": 3}, [("bad-design", ())]),
    ({"releases": [1]}, [("bad-releases", ())]),
    ({"releases": pd.DataFrame({"round": [1]})}, [("bad-releases", ())]),
    (
        {
            "releases": {
                "round": [1],
                "name": ["x", "y"],
                "group": [0],
                "value": [0],
                "mechanism": ["m"],
                "scale": [1],
            }
        },
        [("bad-releases", ())],
    ),
    ({"feedback_rounds": 9}, [("bad-feedback-rounds", ())]),
    ({"feedback_rounds": True}, [("bad-feedback-rounds", ())]),
    ({"feedback_rounds": 2.0}, [("bad-feedback-rounds", ())]),
    ({"recommended": "d"}, [("bad-recommended", ())]),
    ({"recommended": ["a"]}, [("bad-recommended", ())]),
    ({"propensity_status": "known"}, [("bad-propensity-status", ())]),
    ({"propensity_status": "absent"}, [("bad-propensity-status", ())]),
    (
        {"propensity_status": "exact", "propensity": None, "propensities": None},
        [("bad-propensity-status", ())],
    ),
]


@pytest.mark.parametrize(("options", "expected"), OPTION_DAMAGE)
def test_each_wrong_option_is_reported_alone(options: dict[str, Any], expected: Expected) -> None:
    assert problems(good_frame(), **options) == expected


def test_the_undamaged_frame_is_a_log() -> None:
    log = AdaptiveLog(good_frame(), **GOOD)
    assert log.n_rounds == 8
    assert log.arms == ("a", "b", "c")


def test_all_damage_that_can_coexist_is_in_one_error() -> None:
    frame = good_frame().astype({"y": float, "coin": object})
    frame["y"] = [np.nan, np.inf, 7.0, 0.0, 1.0, 0.0, 1.0, 0.5]
    frame["p"] = [0.5, np.nan, 0.0, 0.4, 0.3, 0.2, 0.5, 0.3]
    frame["pb"] = [0.3, 0.3, 0.3, 0.3, 1.3, 0.3, 0.3, 0.3]
    frame["arm"] = pd.Series(["a", "b", "c", "a", "b", None, [1], "zzz"], dtype=object)
    frame["when"] = [np.nan, 11, 11, 14, 13, np.inf, 17, 18]
    frame["week"] = pd.Series([1, 1, 0, 0, 1, None, [2], 2], dtype=object)
    frame["stage"] = pd.Series([None, 3, *["x"] * 6], dtype=object)
    frame["coin"] = pd.Series([None, 1, *[True] * 6], dtype=object)
    frame["who"] = pd.Series([None, {}, *"uvwxyz"], dtype=object)
    frame["age"] = [np.nan, np.inf, 1, 2, 3, 4, 5, 6]
    frame["town"] = pd.Series([None, True, *"mnmnmn"], dtype=object)
    frame = frame.rename(columns={"spare": "batch"})
    frame = pd.concat([frame, frame[["batch"]].rename(columns={"batch": "extra"})] * 2, axis=1)
    frame = frame.loc[:, ~frame.columns.duplicated() | (frame.columns == "extra")]
    found = problems(
        frame,
        context=["age", "town", "batch", "age", "city"],
        reward_range=(0, 1),
        arms=["a", "b", "c"],
        guarantee={"epsilon": -1, "unit": "user"},
        noise="loud",
        design=1,
        releases=1,
        feedback_rounds=-1,
        recommended="q",
        propensity_status="sure",
    )
    assert sorted(found) == sorted(
        [
            ("duplicate-columns", ()),
            ("missing-column", ()),
            ("column-used-twice", ()),
            ("name-collision", ()),
            ("missing-reward", (0,)),
            ("infinite-reward", (1,)),
            ("reward-out-of-range", (2,)),
            ("missing-propensity", (1,)),
            ("propensity-out-of-range", (2,)),
            ("propensity-out-of-range", (4,)),
            ("propensities-sum", (4,)),
            ("propensity-mismatch", (2, 3, 4)),
            ("missing-action", (5,)),
            ("bad-action", (6,)),
            ("unseen-arm", (7,)),
            ("missing-round", (0,)),
            ("bad-round", (5,)),
            ("unordered-round", (4,)),
            ("missing-batch", (5,)),
            ("bad-batch", (6,)),
            ("batch-not-contiguous", (4,)),
            ("unordered-batch", (2,)),
            ("missing-phase", (0,)),
            ("bad-phase", (1,)),
            ("missing-randomised", (0,)),
            ("non-boolean-randomised", (1,)),
            ("missing-unit", (0,)),
            ("bad-unit", (1,)),
            ("missing-context", (0,)),
            ("infinite-context", (1,)),
            ("missing-context", (0,)),
            ("bad-context", (1,)),
            ("unknown-guarantee-unit", ()),
            ("bad-guarantee", ()),
            ("bad-noise", ()),
            ("bad-design", ()),
            ("bad-releases", ()),
            ("bad-feedback-rounds", ()),
            ("bad-recommended", ()),
            ("bad-propensity-status", ()),
        ]
    )


@pytest.mark.parametrize(
    ("column", "options", "codes"),
    [
        ("reward", {"action": "reward"}, ["name-collision"]),
        ("batch", {"context": ["batch", "age"]}, ["name-collision"]),
        ("t", {"context": ["t"]}, ["name-collision"]),
        ("propensity_b", {"context": ["propensity_b"]}, ["name-collision"]),
        ("propensity_b", {"unit": "propensity_b"}, ["name-collision"]),
    ],
)
def test_names_that_the_log_keeps_for_something_else(
    column: str, options: dict[str, Any], codes: list[str]
) -> None:
    frame = good_frame()
    frame[column] = frame[{"action": "arm", "unit": "who"}.get(next(iter(options)), "spare")]
    assert [code for code, _ in problems(frame, **options)] == codes


def test_swapped_propensity_columns_are_refused() -> None:
    frame = good_frame().rename(columns={"pa": "propensity_a", "pb": "propensity_b", "pc": "propensity_c"})
    swapped = {"a": "propensity_b", "b": "propensity_a", "c": "propensity_c"}
    codes = [code for code, _ in problems(frame, propensities=swapped)]
    assert codes == ["name-collision", "name-collision", "propensity-mismatch"]
    assert not [
        name for name in AdaptiveLog(frame, **{**GOOD, "propensities": None}).columns if "spare" in name
    ]


@pytest.mark.parametrize(
    "frame", [None, {"arm": ["a"], "y": [1]}, [1], np.ones((2, 2)), pd.Series([1]), "log.csv"]
)
def test_something_that_is_no_frame(frame: Any) -> None:
    assert problems(frame) == [("not-a-frame", ())]


def test_numbers_may_be_objects() -> None:
    plain = AdaptiveLog(good_frame(), **GOOD)
    for values in ({}, {3: Decimal("0.5")}, {3: np.float32(0.5), 4: True}):
        log = AdaptiveLog(put("y", values, object)(good_frame()), **GOOD)
        expected = plain.arrays.reward.copy()
        expected[list(values)] = list(map(float, values.values()))
        np.testing.assert_array_equal(log.arrays.reward, expected)


@pytest.mark.parametrize(
    "frame",
    [
        good_frame().iloc[:0],
        pl.from_pandas(good_frame()).head(0),
        pd.DataFrame(columns=list(good_frame())),
    ],
)
def test_an_empty_frame(frame: Any) -> None:
    assert problems(frame) == [("empty-frame", ())]


def test_an_empty_frame_still_has_its_columns_checked() -> None:
    found = problems(pd.DataFrame(), propensities=None, context=[], recommended="a")
    assert found[0] == ("empty-frame", ())
    assert [code for code, _ in found[1:]] == ["missing-column"] * 8


def test_duplicate_columns_are_listed_once_and_not_read() -> None:
    frame = good_frame()
    frame["y"] = "text"
    doubled = pd.concat([frame, frame[["y", "spare"]]], axis=1)
    assert problems(doubled) == [("duplicate-columns", ())]


@pytest.mark.parametrize(
    ("labels", "code", "rows"),
    [
        ([1, "1", 2, 1], "ambiguous-arm", (0, 1, 3)),
        ([1, True, 0, 1], "ambiguous-arm", (0, 1, 3)),
        ([0, 1.0, 1, 0], "ambiguous-arm", (1, 2)),
        ([1.0, "1.0", 2.0, 1.0], "ambiguous-arm", (0, 1, 3)),
    ],
)
def test_labels_that_cannot_be_told_apart(labels: list[Any], code: str, rows: tuple[int, ...]) -> None:
    frame = pd.DataFrame({"arm": pd.Series(labels, dtype=object), "y": 1.0})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [(code, rows)]


def test_declared_labels_that_nobody_chose_and_that_cannot_be_told_apart() -> None:
    frame = pd.DataFrame({"arm": [0, 0], "y": 1.0})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", arms=[0, 1, "1"])
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [("ambiguous-arm", ())]


def test_a_number_is_not_the_string_that_shows_it() -> None:
    frame = pd.DataFrame({"arm": [0, 1], "y": 1.0, "p0": 0.5, "p1": 0.5})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", arms=["0", "1"])
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [
        ("ambiguous-arm", (0,)),
        ("ambiguous-arm", (1,)),
        ("unseen-arm", (0, 1)),
    ]


@pytest.mark.parametrize(
    ("labels", "rows", "shown"),
    [
        ([0, "1", True, 0], (0, 1, 2, 3), "0, '1', True"),
        ([2, True, False, 2], (0, 1, 2, 3), "2, True, False"),
        (["a", False, "a", "b"], (0, 1, 2, 3), "'a', False, 'b'"),
        ([0, "1", "x", 0], (0, 1, 3), "0, '1' cannot"),
        ([0.5, " -2e3 ", "x", 0.5], (0, 1, 3), "0.5, ' -2e3 ' cannot"),
    ],
)
def test_labels_of_types_that_are_easily_mixed_up(
    labels: list[Any], rows: tuple[int, ...], shown: str
) -> None:
    frame = pd.DataFrame({"arm": pd.Series(labels, dtype=object), "y": 1.0})
    with pytest.raises(LogValidationError, match="use arm labels of one type") as caught:
        AdaptiveLog(frame, action="arm", reward="y")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [("ambiguous-arm", rows)]
    assert shown in str(caught.value)
    distinct = list(dict.fromkeys(labels))
    with pytest.raises(LogValidationError, match="use arm labels of one type"):
        AdaptiveLog(frame[:1], action="arm", reward="y", arms=distinct)


def test_names_beside_numbers_are_labels() -> None:
    frame = pd.DataFrame({"arm": pd.Series([3, "x", 0.5, "3a"], dtype=object), "y": 1.0})
    assert AdaptiveLog(frame, action="arm", reward="y").arms == (3, "x", 0.5, "3a")


def test_propensity_columns_of_which_none_is_an_arms() -> None:
    frame = pd.DataFrame({"arm": ["a", "b"], "y": 1.0, "propensity_A": 0.5, "propensity_B": 0.5, "p": 0.5})
    for options in ({}, {"propensity": "p"}, {"arms": ["a", "b", "c"]}):
        with pytest.raises(LogValidationError) as caught:
            AdaptiveLog(frame, action="arm", reward="y", **options)
        (problem,) = caught.value.problems
        assert problem.code == "unmatched-propensity-columns"
        assert "'propensity_A', 'propensity_B'" in problem.message
        assert "('a', 'b'" in problem.message
    named = {"a": "propensity_A", "b": "propensity_B"}
    assert AdaptiveLog(frame, action="arm", reward="y", propensities=named).arrays.propensities is not None
    one = frame.drop(columns="propensity_B")
    with pytest.raises(LogValidationError, match="but do not match the arms"):
        AdaptiveLog(one, action="arm", reward="y")
    assert AdaptiveLog(one, action="arm", reward="y", propensity="p").arrays.propensities is None


DAYS = ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]
DATES = [datetime.date.fromisoformat(day) for day in DAYS]
HOURS = [f"{day}T09:30:00+02:00" for day in DAYS]


@pytest.mark.parametrize(
    ("when", "first"),
    [
        (DAYS, "2024-02-28"),
        (DATES, "2024-02-28"),
        ([f"{day} 07:15" for day in DAYS], "2024-02-28T07:15"),
        (HOURS, "2024-02-28T07:30"),
        ([datetime.datetime.fromisoformat(hour) for hour in HOURS], "2024-02-28T07:30"),
    ],
)
@pytest.mark.parametrize("polars", [False, True])
def test_dates_as_rounds_and_batches(when: list[Any], first: str, polars: bool) -> None:
    frame = (pl.DataFrame if polars else pd.DataFrame)({"arm": list("abab"), "y": [1.0] * 4, "when": when})
    log = AdaptiveLog(frame, action="arm", reward="y", round="when")
    assert log.column("t").dtype.kind == "M"
    assert log.column("t")[0] == np.datetime64(first)
    assert (np.diff(log.column("t")) == np.timedelta64(1, "D")).all()
    batches = AdaptiveLog(frame, action="arm", reward="y", batch="when")
    assert batches.arrays.batch.tolist() == [0, 1, 2, 3]
    turned = frame[::-1]
    for role, code in (("round", "unordered-round"), ("batch", "unordered-batch")):
        with pytest.raises(LogValidationError) as caught:
            AdaptiveLog(turned, action="arm", reward="y", **{role: "when"})
        assert [problem.code for problem in caught.value.problems] == [code]


def test_text_that_is_no_date() -> None:
    frame = pd.DataFrame({"arm": list("abab"), "y": 1.0, "when": [DAYS[0], "01/03/2024", "2024-13-02", None]})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", round="when")
    assert [(p.code, p.rows) for p in caught.value.problems] == [
        ("missing-round", (3,)),
        ("bad-round", (1, 2)),
    ]
    assert "such as '01/03/2024', '2024-13-02' [rows 1, 2]" in str(caught.value)
    zones = frame.assign(when=[*HOURS[:3], DAYS[3]])
    with pytest.raises(LogValidationError, match=r"all with a time zone, or none.*\[row 3\]"):
        AdaptiveLog(zones, action="arm", reward="y", round="when")
    both = AdaptiveLog(frame.assign(when=[*DATES[:2], *DAYS[2:]]), action="arm", reward="y", round="when")
    assert both.column("t").astype("M8[D]").astype(str).tolist() == DAYS
    labels = frame.assign(when=["wave 2", "wave 1", "wave 1", "2024-03-01"])
    assert AdaptiveLog(labels, action="arm", reward="y", batch="when").arrays.batch.tolist() == [0, 1, 1, 2]


def test_several_rows_of_a_day() -> None:
    frame = pd.DataFrame({"arm": list("abab"), "y": 1.0, "when": [DAYS[0], DAYS[0], DAYS[1], DAYS[1]]})
    (reading,) = AdaptiveLog(frame, action="arm", reward="y", round="when").report.readings
    assert reading.kind == "caution"
    assert reading.text.endswith("set batch= to this column")
    assert AdaptiveLog(frame, action="arm", reward="y", batch="when").arrays.batch.tolist() == [0, 0, 1, 1]


def test_derived_propensity_of_the_chosen_arm_must_be_positive() -> None:
    frame = pd.DataFrame(
        {"arm": [0, 1, 0], "y": 1.0, "propensity_0": [1, 1, 0.5], "propensity_1": [0, 0, 0.5]}
    )
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [
        ("chosen-propensity-zero", (1,))
    ]


def test_a_column_that_may_belong_to_an_arm_of_unknown_type() -> None:
    frame = pd.DataFrame({"arm": pd.Series([0, "a"], dtype=object), "y": 1.0, "propensity_b": 0.2})
    frame = frame.assign(propensity_0=0.5, propensity_a=0.3)
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y")
    assert [p.code for p in caught.value.problems] == ["ambiguous-propensity-column", "propensities-sum"]


@pytest.mark.parametrize(("slip", "fails"), [(0.9e-6, False), (1.1e-6, True)])
def test_tolerance_of_the_sum_is_one_in_a_million(slip: float, fails: bool) -> None:
    frame = good_frame()
    frame.loc[3, "pc"] += slip
    if fails:
        assert problems(frame) == [("propensities-sum", (3,))]
    else:
        assert AdaptiveLog(frame, **GOOD).arrays.propensities[3, 2] == 0.2 + slip


@pytest.mark.parametrize(("slip", "fails"), [(0.9e-6, False), (1.1e-6, True)])
def test_tolerance_of_the_chosen_propensity_is_relative(slip: float, fails: bool) -> None:
    table = {"pa": 1 - 3e-5, "pb": 1e-5, "pc": 2e-5}
    frame = good_frame().assign(**table)
    frame["p"] = [table[f"p{arm}"] for arm in frame["arm"]]
    frame.loc[1, "p"] *= 1 + slip
    if fails:
        assert problems(frame) == [("propensity-mismatch", (1,))]
    else:
        assert AdaptiveLog(frame, **GOOD).arrays.propensity[1] == 1e-5 * (1 + slip)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.array([2**53, 2**53 + 1, -(2**53) - 2, 0, 1, 2, 3, 2**63 - 1]), (1, 2, 7)),
        (np.array([2**53, 2**64 - 1, 0, 1, 2, 3, 4, 5], dtype=np.uint64), (1,)),
    ],
)
def test_numbers_that_float64_cannot_hold_are_no_rewards(values: np.ndarray, rows: tuple[int, ...]) -> None:
    assert problems(good_frame().assign(y=values), reward_range=None) == [("inexact-reward", rows)]


def test_long_doubles_that_float64_cannot_hold_are_no_rewards() -> None:
    values = np.array([0, 1, 2, 3, 1, 0, 3, 3], dtype=np.longdouble) / 3
    rows = tuple(np.flatnonzero(values.astype(float) != values).tolist())
    if rows:
        assert problems(good_frame().assign(y=values)) == [("inexact-reward", rows)]
    else:  # where a long double is a double
        assert AdaptiveLog(good_frame().assign(y=values), **GOOD).arrays.reward[1] == 1 / 3


def test_only_the_first_hundred_rows_are_kept_but_all_are_counted() -> None:
    found = Findings()
    found.add_rows("code", "message", np.arange(1000) % 2 == 1)
    with pytest.raises(LogValidationError, match=r"rows 1, 3, 5, .*\(500 rows in total\)") as caught:
        found.raise_if_any()
    assert caught.value.problems[0].rows == tuple(range(1, 200, 2))
    assert caught.value.problems[0].total == 500


def test_missing_values_of_polars_are_null_or_nan() -> None:
    frame = pl.from_pandas(good_frame()).with_columns(y=pl.Series([None, np.nan, *[0.5] * 6], strict=False))
    assert problems(frame) == [("missing-reward", (0, 1))]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.str_("a"), "a"),
        (2**80, 2**80),
        (np.timedelta64(1, "s"), None),
        (float("inf"), None),
        (np.float64("nan"), None),
        (1j, None),
        (None, None),
        (b"a", None),
    ],
)
def test_plain_labels(value: object, label: object) -> None:
    found = plain_label(value)
    assert (type(found), found) == (type(label), label)


def test_a_long_double_is_a_label_only_where_float64_holds_it() -> None:
    third = np.longdouble(1) / 3
    assert plain_label(third) == (float(third) if float(third) == third else None)
    assert plain_label(np.longdouble(0.5)) == 0.5


def test_messages_say_what_to_do() -> None:
    frame = good_frame()
    frame.loc[[2, 5], "y"] = np.nan
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(
            frame, **{**GOOD, "propensity": "q", "unit": "wh", "guarantee": {"epsilon": 1, "unit": "user"}}
        )
    assert str(caught.value) == (
        "the log has 4 problems (rows are counted from 0):\n"
        "  - there is no column 'q' for propensity; the frame has 'arm', 'y', 'p', 'pa', 'pb', 'pc', "
        "'week', 'who', 'when', 'stage', 'coin', 'age', 'town', 'spare'\n"
        "  - there is no column 'wh' for unit; did you mean 'who'?\n"
        "  - reward column 'y' has no value (NaN or None) [rows 2, 5]\n"
        "  - guarantee has the unit 'user'; it must be 'reward' or 'record'"
    )


def test_metadata_that_is_right_is_kept() -> None:
    record = DesignRecord("Mine", {"epsilon": 1.0})
    log = AdaptiveLog(
        good_frame(),
        **{**GOOD, "guarantee": {"epsilon": "inf", "unit": "record"}},
        about={
            "design": record,
            "noise": "release",
            "feedback_rounds": np.int64(4),
            "recommended": np.str_("b"),
            "propensity_status": "estimated",
        },
    )
    assert (log.design, log.noise, log.feedback_rounds, log.recommended) == (record, "release", 4, "b")
    assert log.propensity_status == "estimated"
    assert log.guarantee.epsilon == np.inf
    assert log.reward_guarantee.unit == "reward"
