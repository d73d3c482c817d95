"""Vowpal Wabbit's text: labels, actions and features land where they belong, and what is none is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import read_vw

LISTED = """shared |User city=Rome age:30
|Article id=news
0:-1:0.25 |Article id=sport

shared |User city=Oslo
0:0.5:0.5 |Article id=news
|Article id=sport
"""
SLOTS = """ccb shared |User new
ccb action |A w
ccb action |A x
ccb slot 1:-1:0.75 |Slot top
ccb slot 0:0.5:1.0 |Slot side

ccb shared |User new
ccb action |A w
ccb action |A x
ccb slot 0:-2:0.25,1:0.75 0,1 |Slot top
ccb slot 1:0:1.0 |Slot side
"""


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_line_is_an_action_with_its_cost_and_probability(tmp_path: Path) -> None:
    text = "1:-1:0.8 |User:2 age:30 new |Time night\n3:0.5:0.1 tag|User:2 age:41 old |Time night night\n"
    path = _write(tmp_path / "log.vw", text)
    log = read_vw(path, arms=[1, 2, 3], reward_range=(-1, 1))
    assert (log.arms, log.context, log.context_free) == ((1, 2, 3), ("User.age", "Time.night"), False)
    assert log.arrays.action.tolist() == [0, 2]
    assert log.arrays.reward.tolist() == [1.0, -0.5]
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.8, 0.1]
    assert log.column("User.age").tolist() == [60.0, 82.0]
    assert log.column("Time.night").tolist() == [1.0, 2.0]
    assert log.report.source == "Vowpal Wabbit file log.vw"
    asked = read_vw(path, context=["User.new", "User.old", "User.age", "Time.night"])
    assert asked.column("User.new").tolist() == [2.0, 0.0]
    assert asked.context_free is None


def test_examples_over_several_lines(tmp_path: Path) -> None:
    log = read_vw(_write(tmp_path / "log.vw", LISTED))
    assert (log.arms, log.context, log.context_free) == ((1, 2), ("User.city",), False)
    assert log.arrays.action.tolist() == [1, 0]
    assert log.arrays.reward.tolist() == [1.0, -0.5]
    assert log.column("User.city").tolist() == ["Rome", "Oslo"]
    named = read_vw(tmp_path / "log.vw", action_id="Article", context=["User.city", "User.age"])
    assert named.arms == ("id=news", "id=sport")
    assert named.column("User.age").tolist() == [30.0, 0.0]
    assert named.context_free is None


def test_a_slot_of_text_is_a_log_of_its_own(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.vw", SLOTS)
    top, side = (read_vw(path, slot=slot, action_id="A") for slot in (1, 2))
    assert top.arms == side.arms == ("w", "x")
    assert top.arrays.action.tolist() == [1, 0]
    assert top.arrays.reward.tolist() == [1.0, 2.0]
    assert top.arrays.propensity is not None
    assert top.arrays.propensity.tolist() == [0.75, 0.25]
    assert top.context_free is None
    assert side.arrays.action.tolist() == [0, 1]
    assert side.context_free is False
    with pytest.raises(LogValidationError, match="pass slot=1 for a log of the first slot") as caught:
        read_vw(path)
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [("slots", (0, 1))]


@pytest.mark.parametrize(
    ("text", "code", "row"),
    [
        ("1:0:0.5 | a\n2 1:0:0.5 | a\n", "cb-eval", 1),
        ("1:0:0.5 | a\n1:0:0.5 2:1 | a\n", "several-labels", 1),
        ("1:0:0.5 | a\n1:0 | a\n", "bad-label", 1),
        ("1:0:0.5 | a\n1:nan:0.5 | a\n", "bad-label", 1),
        ("1:0:0.5 | a\n1:0:0 | a\n", "bad-label", 1),
        ("1:0:0.5 | a\n1:0:0.5 a\n", "no-bar", 1),
        ("1:0:0.5 | a\n| b\n\n| a\n| b\n", "no-label", 1),
        ("1:0:0.5 | a\n| b\n\n0:0:1 | a\n", "other-actions", 1),
        ("0:0:0.5 | a\n0:1:0.5 | b\n| c\n", "several-labels", 0),
        ("slates shared 0.8 | a\nslates action 0 | b\nslates slot 0:1 | c\n", "slates", 0),
        ("ca 12.5:0.1:0.002 | a\n", "continuous", 0),
        ("ccb shared | a\nccb action | b\nccb slot | c\n", "no-label", 0),
        ("ccb shared | a\nccb action | b\nccb slot 1:0:1 | c\n", "bad-label", 0),
        ("ccb shared | a\nccb action | b\n", "no-slot", 0),
    ],
)
def test_what_is_no_choice_of_one_action_is_named(tmp_path: Path, text: str, code: str, row: int) -> None:
    path = _write(tmp_path / "log.vw", text)
    with pytest.raises(LogValidationError) as caught:
        read_vw(path, slot=1 if text.startswith("ccb") else None)
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [(code, (row,))]


def test_the_line_of_an_example_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogValidationError) as caught:
        read_vw(_write(tmp_path / "log.vw", LISTED), action_id="Missing")
    assert str(caught.value).splitlines()[1:] == [
        "  - each action must have its own name or number in the namespace (line 2: |Article id=news) [rows "
        "0, 1]"
    ]
    path = _write(tmp_path / "log.vw", "slates shared 0.8 | a\nslates action 0 | b\n")
    with pytest.raises(
        LogValidationError, match=("slates choose an action for every slot and have one joint cost,")
    ):
        read_vw(path)


def test_a_text_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="contains no examples"):
        read_vw(_write(tmp_path / "log.vw", "\n \n"))
    path = _write(tmp_path / "log.vw", LISTED)
    with pytest.raises(
        ParameterError, match=r"no event has the shared feature User\.size; available: User\.city"
    ):
        read_vw(path, context="User.size")
    with pytest.raises(ParameterError, match="2 problems"):
        read_vw(path, context=[3], slot=0)  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="features must not be called reward"):
        read_vw(_write(path, "1:0:0.5 | reward:1\n"))
