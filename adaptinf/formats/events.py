"""Events of a dsjson file: strict JSON, one object a line, each a decision with its cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log.storage.files import check_regular
from adaptinf.log.validation.findings import Findings

_PROBABILITY_ERROR = 1e-6
_DEEPEST = 100
_LONGEST_NUMBER = 400
_MESSAGES = {
    "no-object": "a line is no JSON object",
    "late-outcome": "a line is an outcome without a decision: join outcomes to their decisions first",
    "ambiguous-feature": "an event has two features of the same full name, such as a.b and b in a",
    "no-label": "an event lacks a finite _label_cost",
    "no-actions": "an event lacks c._multi, the list of its actions",
    "bad-ranking": "a must list every place in c._multi once, counted from 1",
    "bad-probabilities": "p must have one probability an action, in [0, 1], summing to 1",
    "impossible": "the action that was played has probability 0",
    "other-action": "_label_Action is not the first of a, or _label_probability is not the first of p",
    "bad-pdrop": "pdrop must be a probability below 1",
}


def read_events(path: Path) -> list[dict[str, Any]]:
    """The file's events; one error with everything that is wrong."""
    lines = _lines(path)
    if not lines:
        raise ParameterError("read_dsjson", [f"{path} has no events"])
    findings = Findings()
    events: list[Any] = []
    said: list[str] = []
    for number, line in lines:
        try:
            events.append(_parsed(line))
        except (ValueError, RecursionError) as error:
            events.append(None)
            said.append(f"line {number}: {error!s:.120}")
    kinds = [_trouble(event) for event in events]
    for code in dict.fromkeys(kind for kind in kinds if kind):
        first = f" ({said[0]})" if code == "no-object" and said else ""
        findings.add_rows(code, _MESSAGES[code] + first, np.array([kind == code for kind in kinds]))
    sound = [event for event, kind in zip(events, kinds, strict=True) if kind is None]
    dropped = {event.get("pdrop", 0.0) for event in sound}
    if len(dropped) > 1:
        rates = ", ".join(map(str, sorted(dropped)))
        findings.add("changing-pdrop", f"events were left out at different rates (pdrop is {rates})")
    findings.raise_if_any()
    return events


def shared_features(features: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Plain features, those of a namespace as ``namespace.feature``; lists and underscored names left out."""
    for name, value in features.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from shared_features(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{prefix}{name}", value


def _lines(path: Path) -> list[tuple[int, str]]:
    """Lines with text in them, and their numbers; only newlines end a line, as JSON text may hold others."""
    check_regular(path, "read_dsjson")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"{path} cannot be read as UTF-8 text: line {line}, {error.reason}"
        raise ParameterError("read_dsjson", [problem]) from error
    listed = enumerate(re.split("\r\n|\n|\r", text), 1)
    return [(number, line) for number, line in listed if line and not line.isspace()]


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


def _trouble(event: Any) -> str | None:
    """Code of what is wrong with an event; None for a sound one."""
    if not isinstance(event, dict):
        return "no-object"
    if not isinstance(event.get("c"), dict):
        return "late-outcome"
    if not _finite(event.get("_label_cost")):
        return "no-label"
    if not _finite(drop := event.get("pdrop", 0.0)) or not 0.0 <= drop < 1.0:
        return "bad-pdrop"
    actions = event["c"].get("_multi")
    if not isinstance(actions, list) or not actions:
        return "no-actions"
    if any(_ambiguous(part) for part in (event["c"], *actions) if isinstance(part, dict)):
        return "ambiguous-feature"
    return _choice_trouble(event, len(actions))


def _choice_trouble(event: dict[str, Any], count: int) -> str | None:
    """Code of what is wrong with the ranking of so many actions and its probabilities."""
    ranking, chances = event.get("a"), event.get("p")
    if not isinstance(ranking, list) or not all(type(place) is int for place in ranking):
        return "bad-ranking"
    if sorted(ranking) != list(range(1, count + 1)):
        return "bad-ranking"
    if not isinstance(chances, list) or len(chances) != len(ranking) or not all(map(_finite, chances)):
        return "bad-probabilities"
    if min(chances) < 0.0 or abs(sum(chances) - 1.0) > _PROBABILITY_ERROR:
        return "bad-probabilities"
    if chances[0] == 0.0:
        return "impossible"
    played, chance = event.get("_label_Action", ranking[0]), event.get("_label_probability", chances[0])
    if played != ranking[0] or not _finite(chance) or abs(chance / chances[0] - 1.0) > _PROBABILITY_ERROR:
        return "other-action"
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
