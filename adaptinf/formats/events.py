"""Events of a dsjson file: strict JSON, one object a line, each a decision with its cost."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adaptinf.errors import ParameterError, Problem
from adaptinf.formats.streaming.lines import numbered_lines
from adaptinf.log.validation.findings import Findings
from adaptinf.typing import IntArray

_PROBABILITY_ERROR = 1e-6
_DEEPEST = 100
_LONGEST_NUMBER = 400
_ROWS_KEPT = 100
_ABSENT = object()
_MESSAGES = {
    "no-object": "a line is no JSON object",
    "late-outcome": "a line is an outcome without a decision: join outcomes to their decisions first",
    "ambiguous-feature": "an event has two features of the same full name, such as a.b and b in a",
    "no-label": "an event lacks a finite _label_cost",
    "no-actions": "an event lacks c._multi, the list of its actions",
    "bad-ranking": "a must list every place in c._multi once, counted from 1",
    "zero-based": "a counts the places in c._multi from 0, and must count from 1: add 1 to each",
    "bad-skip": "_skipLearn must be true or false",
    "bad-probabilities": "p must have one probability an action, in [0, 1], summing to 1",
    "impossible": "the action that was played has probability 0",
    "other-action": "_label_Action is not the first of a, or _label_probability is not the first of p",
    "bad-pdrop": "pdrop must be a probability below 1",
}


@dataclass(frozen=True, slots=True)
class Events:
    """Decisions of a file; rows (n,) are their places among lines with text, skipped counts those dropped."""

    listed: list[dict[str, Any]]
    rows: IntArray
    skipped: int


def read_events(path: Path) -> Events:
    """The file's events; one error with everything that is wrong."""
    lines = list(numbered_lines(path, "read_dsjson"))
    if not lines:
        raise ParameterError("read_dsjson", [f"{path} has no events"])
    judged = [judge(number, line) for number, line in lines]
    faults = Faults()
    for row, each in enumerate(judged):
        faults.add(row, each.code, each.told)
    findings = Findings()
    findings.problems += faults.problems()
    learnt = [not each.skipped for each in judged]
    sound = [each.event for each in judged if not (each.skipped or each.code)]
    findings.problems += changing_rates({event.get("pdrop", 0.0) for event in sound})
    findings.raise_if_any()
    if not sound:
        raise ParameterError("read_dsjson", [f"{path} has no events but those with _skipLearn"])
    return Events(sound, np.flatnonzero(learnt), len(judged) - len(sound))


@dataclass(frozen=True, slots=True)
class Judged:
    """What a line holds: an event, and the code of what is wrong with it, with the place."""

    event: Any
    code: str = ""
    told: str = ""
    skipped: bool = False


def judge(number: int, line: str) -> Judged:
    """An event of a line with text in it, and what is wrong with it."""
    try:
        event = _parsed(line)
    except (ValueError, RecursionError) as error:
        return Judged(None, "no-object", f"line {number}: {error!s:.120}")
    if isinstance(event, dict) and event.get("_skipLearn") is True:
        return Judged(event, skipped=True)
    trouble = _trouble(event)
    return Judged(event) if trouble is None else Judged(event, trouble.code, _where(number, event, trouble))


class Faults:
    """Rows by what is wrong with them: how many, the first of them, and where the first is."""

    def __init__(self, messages: Mapping[str, str] | None = None) -> None:
        self._messages = {**_MESSAGES, **(messages or {})}
        self._told: dict[str, str] = {}
        self._rows: dict[str, list[int]] = {}
        self._totals: Counter[str] = Counter()

    def add(self, row: int, code: str, told: str) -> None:
        """Count a row with a fault; none where the code is empty."""
        if not code:
            return
        self._told.setdefault(code, told)
        self._totals[code] += 1
        if self._totals[code] <= _ROWS_KEPT:
            self._rows.setdefault(code, []).append(row)

    def problems(self) -> list[Problem]:
        """One a fault, in the order of their first rows."""
        return [
            Problem(code, f"{self._messages[code]} ({told})", tuple(self._rows[code]), self._totals[code])
            for code, told in self._told.items()
        ]


def changing_rates(dropped: set[float]) -> list[Problem]:
    """Say that events were left out at changing rates."""
    if len(dropped) < 2:
        return []
    rates = ", ".join(map(str, sorted(dropped)))
    return [Problem("changing-pdrop", f"events were left out at different rates (pdrop is {rates})")]


def _where(number: int, event: Any, trouble: _Trouble) -> str:
    """The line, the field and its content."""
    field = trouble.field
    if not field:
        return f"line {number}"
    value = event
    for step in field.split("."):
        value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    content = "is not there" if value is _ABSENT else f"is {json.dumps(value)!s:.80}"
    other = f"_{field}"
    if value is _ABSENT and field in ("a", "p") and other in event:
        content += f", but {other} is, with {json.dumps(event[other])!s:.80}"
    if value is _ABSENT and "_outcomes" in event:
        content += ", but _outcomes are: slots of a conditional bandit are not read"
    return f"line {number}: {field} {content}"


def shared_features(features: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Plain features, those of a namespace as ``namespace.feature``; lists and underscored names left out."""
    for name, value in features.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from shared_features(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{prefix}{name}", value


def _parsed(line: str) -> Any:
    """Value of a line of strict JSON."""
    if line.count("[") + line.count("{") > _DEEPEST and _depth(line) > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    value = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole)
    if "\\u" in line:
        json.dumps(value, ensure_ascii=False).encode()  # halves of characters are no text
    return value


def _depth(line: str) -> int:
    """How deep brackets are nested, those in text left out."""
    marks = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
    steps = [1 if mark in "[{" else -1 for mark in re.findall(r"[\[\]{}]", marks)]
    return int(np.cumsum(steps).max(initial=0))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} is there twice")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONGEST_NUMBER else math.inf


class _Trouble(NamedTuple):
    """What is wrong with an event, and the field that shows it."""

    code: str
    field: str = ""


def _trouble(event: Any) -> _Trouble | None:
    """What is wrong with an event; None for a sound one."""
    if not isinstance(event, dict):
        return _Trouble("no-object")
    if event.get("_skipLearn", False) is not False:
        return _Trouble("bad-skip", "_skipLearn")
    if not isinstance(event.get("c"), dict):
        return _Trouble("late-outcome", "c")
    if not _finite(event.get("_label_cost")):
        return _Trouble("no-label", "_label_cost")
    if not _finite(drop := event.get("pdrop", 0.0)) or not 0.0 <= drop < 1.0:
        return _Trouble("bad-pdrop", "pdrop")
    actions = event["c"].get("_multi")
    if not isinstance(actions, list) or not actions:
        return _Trouble("no-actions", "c._multi")
    if any(_ambiguous(part) for part in (event["c"], *actions) if isinstance(part, dict)):
        return _Trouble("ambiguous-feature")
    return _choice_trouble(event, len(actions))


def _choice_trouble(event: dict[str, Any], count: int) -> _Trouble | None:
    """What is wrong with the ranking of so many actions and its probabilities."""
    ranking, chances = event.get("a"), event.get("p")
    if not isinstance(ranking, list) or not all(type(place) is int for place in ranking):
        return _Trouble("bad-ranking", "a")
    if sorted(ranking) != list(range(1, count + 1)):
        return _Trouble("zero-based" if sorted(ranking) == list(range(count)) else "bad-ranking", "a")
    if not isinstance(chances, list) or len(chances) != len(ranking) or not all(map(_finite, chances)):
        return _Trouble("bad-probabilities", "p")
    if min(chances) < 0.0 or abs(sum(chances) - 1.0) > _PROBABILITY_ERROR:
        return _Trouble("bad-probabilities", "p")
    if chances[0] == 0.0:
        return _Trouble("impossible", "p")
    played, chance = event.get("_label_Action", ranking[0]), event.get("_label_probability", chances[0])
    if played != ranking[0]:
        return _Trouble("other-action", "_label_Action")
    if not _finite(chance) or abs(chance / chances[0] - 1.0) > _PROBABILITY_ERROR:
        return _Trouble("other-action", "_label_probability")
    return None


def _ambiguous(features: dict[str, Any]) -> bool:
    names = [name for name, _ in shared_features(features)]
    return len(set(names)) < len(names)


def _finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
