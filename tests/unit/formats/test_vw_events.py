"""Events of Vowpal Wabbit that are no ranking of one choice: lists in any order, slots and slates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import convert, read_dsjson


def _listed(played: int, shares: list[float], start: int = 0, **more: Any) -> dict[str, Any]:
    """An event as Vowpal Wabbit's simulator writes it: a and p in the order of the actions."""
    event = {
        "_label_cost": -float(played),
        "_label_probability": shares[played - 1],
        "_label_Action": played,
        "_labelIndex": played - 1,
        "a": [place + start for place in range(len(shares))],
        "p": shares,
        "c": {"_multi": [{"id": name} for name in "wxyz"[: len(shares)]]},
    }
    return event | more


def _outcome(cost: float, places: list[int], shares: list[float]) -> dict[str, Any]:
    return {"_label_cost": cost, "_a": places, "_p": shares}


def _slotted(*outcomes: dict[str, Any], names: tuple[str, ...] = ("top", "side")) -> dict[str, Any]:
    slots = [{"_id": name} for name in names[: len(outcomes)]]
    actions = [{"id": name} for name in "wxyz"]
    return {"c": {"hour": 7, "_multi": actions, "_slots": slots}, "_outcomes": list(outcomes)}


def _write(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.mark.parametrize("start", [0, 1])
def test_lists_in_any_order_are_read_by_the_label(tmp_path: Path, start: int) -> None:
    shuffled = _listed(2, [0.2, 0.5, 0.3], a=[2 + start, start, 1 + start], p=[0.3, 0.2, 0.5])
    path = _write(tmp_path / "log", _listed(3, [0.1, 0.2, 0.7], start), shuffled, _listed(1, [0.6, 0.3, 0.1]))
    log = read_dsjson(path, action_id="id", played="label")
    assert log.arms == ("w", "x", "y")
    assert log.arrays.action.tolist() == [2, 1, 0]
    assert log.arrays.reward.tolist() == [3.0, 2.0, 1.0]
    assert log.arrays.propensity is not None
    assert log.arrays.propensities is not None
    assert log.arrays.propensity.tolist() == [0.7, 0.5, 0.6]
    assert log.arrays.propensities.tolist() == [[0.1, 0.2, 0.7], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]


def test_one_message_explains_a_p_and_the_label(tmp_path: Path) -> None:
    path = _write(tmp_path / "log", _listed(1, [0.25] * 4), _listed(3, [0.25] * 4))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(path)
    assert str(caught.value).splitlines()[1:] == [
        "  - a counts the positions in c._multi from 0. If _label_Action, counted from 1, is the action "
        'that was played, pass played="label", which reads a and p in any order. If a begins with the '
        "action that was played, and p has the probabilities in the same order, then a must count from 1: "
        "add 1 to each (line 1: a is [0, 1, 2, 3], p is [0.25, 0.25, 0.25, 0.25], _label_Action is 1) [rows "
        "0, 1]"
    ]
    path = _write(tmp_path / "log", _listed(1, [0.25] * 4, 1), _listed(3, [0.25] * 4, 1))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(path)
    assert str(caught.value).splitlines()[1:] == [
        "  - a must begin with the action that was played, and p must have the probabilities in the same "
        "order, but here _label_Action is another action. If that action, counted from 1, was played, pass "
        'played="label", which reads a and p in any order (line 2: a is [1, 2, 3, 4], p is [0.25, 0.25, '
        "0.25, 0.25], _label_Action is 3) [row 1]"
    ]
    assert read_dsjson(path, played="label").arrays.action.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"_label_Action": 5}, "no-played"),
        ({"_label_Action": 0}, "no-played"),
        ({"_label_probability": None}, "no-played"),
        ({"_label_probability": 0.3}, "other-label"),
        ({"_labelIndex": 1}, "other-index"),
        ({"a": [0, 1, 3]}, "bad-ranking"),
        ({"p": [0.5, "x", 0.25]}, "bad-probabilities"),
        ({"p": [10**350, 0.25, 0.25]}, "other-label"),
        ({"p": [0.5, 0.5]}, "bad-probabilities"),
    ],
)
def test_a_label_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    good = _listed(1, [0.5, 0.25, 0.25])
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "log", good, good | change), played="label")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [(code, (1,))]


def test_a_slot_is_a_log_of_its_own(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "log",
        _slotted(_outcome(-1.0, [3, 0, 1], [0.5, 0.25, 0.25]), _outcome(0.5, [1, 0], [0.75, 0.25])),
        _slotted(_outcome(0.0, [0, 1, 3], [0.25, 0.25, 0.5])),
        _slotted(_outcome(-2.0, [1, 3, 0], [0.25, 0.5, 0.25]), _outcome(-0.5, [0, 3], [0.5, 0.5])),
    )
    first = read_dsjson(path, action_id="id", slot=1)
    assert first.arms == ("w", "x", "z")
    assert first.arrays.action.tolist() == [2, 0, 1]
    assert first.arrays.reward.tolist() == [1.0, -0.0, 2.0]
    assert first.arrays.propensities is not None
    assert first.arrays.propensities.tolist() == [[0.25, 0.25, 0.5]] * 3
    assert (first.context, first.context_free) == (("hour",), None)
    second = read_dsjson(path, action_id="id", slot=2)
    assert second.arrays.action.tolist() == [1, 0]
    assert second.arrays.reward.tolist() == [-0.5, 0.5]
    assert second.arrays.propensities is not None
    assert second.arrays.propensities.tolist() == [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]
    assert second.context_free is False
    assert f"left out: {claims.WITHOUT_SLOT(absent=1, events=3)}" in str(second.report)
    with pytest.raises(ParameterError, match="and none of the others has slot 3"):
        read_dsjson(path, slot=3)


def test_slots_are_named_where_none_was_asked_for(tmp_path: Path) -> None:
    event = _slotted(_outcome(-1.0, [1, 0], [0.5, 0.5]), _outcome(0.0, [0], [1.0]))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "log", event))
    assert str(caught.value).splitlines()[1:] == [
        "  - the event has several slots, each with its own choice and cost, but a log has one choice per "
        "round: pass slot=1 for a log of the first slot, slot=2 for one of the second, and so on (line 1: "
        "the number of slots is 2: top, side) [row 0]"
    ]
    with pytest.raises(LogValidationError, match=r"has neither c\._slots nor _outcomes: omit slot"):
        read_dsjson(_write(tmp_path / "log", _listed(1, [1.0], 1)), slot=1)


@pytest.mark.parametrize(
    ("places", "shares"), [(1, 0.5), ([4, 0], [0.5, 0.5]), ([0, 1], [1.0]), ([True, 0], [0.5, 0.5]), ([], [])]
)
def test_a_slot_without_its_lists_is_refused(tmp_path: Path, places: Any, shares: Any) -> None:
    good = _slotted(_outcome(-1.0, [1, 0], [0.5, 0.5]))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "log", good, _slotted(_outcome(-1.0, places, shares))), slot=1)
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [("bad-slot", (1,))]


def test_slates_are_refused_with_the_reason(tmp_path: Path) -> None:
    slates = _slotted({"_a": [1], "_p": [0.5]}, {"_a": [0], "_p": [1.0]}) | {"_label_cost": -1.0}
    named = _slotted() | {"c": {"_multi": [{"_slot_id": 0}], "_slots": [{}]}}
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "log", slates, named), slot=1)
    assert str(caught.value).splitlines()[1:] == [
        "  - slates choose an action for every slot and have one joint cost, so no action has a reward of "
        "its own. Write each combination as one action, with the product of the slots' probabilities (line "
        "1: _label_cost appears together with _outcomes) [rows 0, 1]"
    ]


def test_the_arguments_that_say_how_a_choice_is_written(tmp_path: Path) -> None:
    path = _write(tmp_path / "log", _listed(1, [1.0], 1))
    with pytest.raises(ParameterError) as caught:
        read_dsjson(path, played="last", slot=0)
    assert caught.value.problems == (
        'played must be "first" or "label", got \'last\'',
        "slot must be the position of a slot, counted from 1, got 0",
    )
    with pytest.raises(ParameterError, match="applies only to events without slots"):
        read_dsjson(path, played="label", slot=1)


def test_converted_events_are_those_of_the_reader(tmp_path: Path) -> None:
    listed = _write(tmp_path / "a.dsjson", _listed(3, [0.1, 0.2, 0.7]), _listed(1, [0.6, 0.3, 0.1]))
    assert convert(listed, tmp_path / "a.parquet", action_id="id", played="label") == 2
    table = pd.read_parquet(tmp_path / "a.parquet")
    assert table["action"].tolist() == ["y", "w"]
    assert table["propensity"].tolist() == [0.7, 0.6]
    one = _slotted(_outcome(-1.0, [3, 0], [0.5, 0.5]), _outcome(0.5, [0], [1.0]))
    slotted = _write(tmp_path / "b.dsjson", one, _slotted(_outcome(0.0, [0, 3], [0.5, 0.5])))
    assert convert(slotted, tmp_path / "b.parquet", action_id="id", slot=1) == 2
    table = pd.read_parquet(tmp_path / "b.parquet")
    assert list(table.columns) == ["action", "reward", "propensity", "propensity_w", "propensity_z", "hour"]
    assert table["propensity_z"].tolist() == [0.5, 0.5]
    assert convert(slotted, tmp_path / "b.parquet", action_id="id", slot=2) == 1
    with pytest.raises(ParameterError, match="and none of the others has slot 3"):
        convert(slotted, tmp_path / "b.parquet", slot=3)
    folder = tmp_path / "random" / "men"
    folder.mkdir(parents=True)
    (folder / "item_context.csv").write_text("item_id\n0\n")
    (folder / "men.csv").write_text("timestamp,item_id,position,click,propensity_score\n")
    with pytest.raises(
        ParameterError, match="played and slot apply only to dsjson: omit them for an Open Bandit"
    ):
        convert(folder, tmp_path / "c.parquet", played="label")
