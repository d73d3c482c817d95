"""Contextual bandit logs of Vowpal Wabbit and related services: one JSON object per line (dsjson)."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError, Problem
from adaptinf.files import as_path
from adaptinf.formats.transport import log_of, names_problems, numbered_lines
from adaptinf.formats.vw_events import MESSAGES, Form, finite, form_problems, offered, rewritten
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.log.validation.frame_columns import Findings
from adaptinf.parameters import refuse
from adaptinf.texts import did_you_mean, several
from adaptinf.typing import IntArray

_PROBABILITY_ERROR = 1e-6
_DEEPEST = 100
_LONGEST_NUMBER = 400
_ROWS_KEPT = 100
_ABSENT = object()
_MESSAGES = {
    "no-object": "a line is not a JSON object",
    "late-outcome": "a line is an outcome without a decision: join outcomes to their decisions first",
    "ambiguous-feature": "an event has two features with the same full name, such as a.b and b in a",
    "no-label": "an event lacks a finite _label_cost",
    "no-actions": "an event lacks c._multi, the list of its actions",
    "bad-ranking": "a must list every position in c._multi exactly once, counted from 1",
    "bad-skip": "_skipLearn must be true or false",
    "bad-probabilities": "p must have one probability per action, in [0, 1], summing to 1",
    "impossible": "the action that was played has probability 0",
    "other-action": "_label_Action is not the first entry of a, or _label_probability is not the first "
    "entry of p",
    "bad-pdrop": "pdrop must be a probability below 1",
    **MESSAGES,
}


@dataclass(frozen=True, slots=True)
class Events:
    """Decisions in a file; rows (n,) are their positions among non-blank lines.

    `skipped` is the number of dropped events, and `absent` that of events without the slot.
    """

    listed: list[dict[str, Any]]
    rows: IntArray
    skipped: int
    absent: int = 0


def read_events(path: Path, form: Form) -> Events:
    """Read the events of a file; a single error lists all problems."""
    lines = list(numbered_lines(path, "read_dsjson"))
    if not lines:
        raise ParameterError("read_dsjson", [f"{path} contains no events"])
    judged = [judge(number, line, form) for number, line in lines]
    faults = Faults()
    for row, each in enumerate(judged):
        faults.add(row, each.code, each.told)
    findings = Findings()
    findings.problems += faults.problems()
    learnt = [not each.skipped for each in judged]
    sound = [each.event for each in judged if not (each.skipped or each.code)]
    findings.problems += changing_rates({event.get("pdrop", 0.0) for event in sound})
    findings.raise_if_any()
    absent = sum(each.absent for each in judged)
    if not sound:
        raise ParameterError("read_dsjson", [f"{path} {nothing_left(form, absent)}"])
    return Events(sound, np.flatnonzero(learnt), len(judged) - len(sound) - absent, absent)


def nothing_left(form: Form, absent: int) -> str:
    """Report that a file contains no readable event."""
    with_slot = f", and none of the others has slot {form.slot}" if absent else ""
    return f"contains only events with _skipLearn{with_slot}"


@dataclass(frozen=True, slots=True)
class Judged:
    """Contents of a line: an event, or the code of a problem and its location."""

    event: Any
    code: str = ""
    told: str = ""
    skipped: bool = False
    absent: bool = False


def judge(number: int, line: str, form: Form) -> Judged:
    """The event on a non-blank line, and problems with it."""
    try:
        event = _parsed(line)
    except (ValueError, RecursionError) as error:
        return Judged(None, "no-object", f"line {number}: {error!s:.120}")
    if isinstance(event, dict) and event.get("_skipLearn") is True:
        return Judged(event, skipped=True)
    if isinstance(event, dict):
        written = rewritten(event, form)
        if written.code:
            return Judged(None, written.code, f"line {number}: {written.told}")
        if written.absent:
            return Judged(event, skipped=True, absent=True)
        event = written.event
    trouble = _trouble(event)
    return Judged(event) if trouble is None else Judged(event, trouble.code, _where(number, event, trouble))


class Faults:
    """Rows grouped by problem: their number, the first of them, and its location."""

    def __init__(self, messages: Mapping[str, str] | None = None) -> None:
        self._messages = {**_MESSAGES, **(messages or {})}
        self._told: dict[str, str] = {}
        self._rows: dict[str, list[int]] = {}
        self._totals: Counter[str] = Counter()

    def add(self, row: int, code: str, told: str) -> None:
        """Count a row with a fault; an empty code means no fault."""
        if not code:
            return
        self._told.setdefault(code, told)
        self._totals[code] += 1
        if self._totals[code] <= _ROWS_KEPT:
            self._rows.setdefault(code, []).append(row)

    def problems(self) -> list[Problem]:
        """One problem per fault, in the order of their first rows."""
        return [
            Problem(code, f"{self._messages[code]} ({told})", tuple(self._rows[code]), self._totals[code])
            for code, told in self._told.items()
        ]


def changing_rates(dropped: set[float]) -> list[Problem]:
    """Report that events were omitted at changing rates."""
    if len(dropped) < 2:
        return []
    rates = ", ".join(map(str, sorted(dropped)))
    return [Problem("changing-pdrop", f"events were dropped at different rates (pdrop is {rates})")]


def _where(number: int, event: Any, trouble: _Trouble) -> str:
    """The line, the field and its contents."""
    field = trouble.field
    if not field:
        return f"line {number}"
    value = event
    for step in field.split("."):
        value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    content = "is missing" if value is _ABSENT else f"is {json.dumps(value)!s:.80}"
    other = f"_{field}"
    if value is _ABSENT and field in ("a", "p") and other in event:
        content += f", but {other} is present, with the value {json.dumps(event[other])!s:.80}"
    return f"line {number}: {field} {content}"


def shared_features(features: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Plain features (``namespace.feature`` if in a namespace), without lists and names with underscores."""
    for name, value in features.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from shared_features(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{prefix}{name}", value


def _parsed(line: str) -> Any:
    """Value on a line of strict JSON."""
    if line.count("[") + line.count("{") > _DEEPEST and _depth(line) > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    value = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole)
    if "\\u" in line:
        # JSON can contain single surrogates, which are not valid text.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _depth(line: str) -> int:
    """Nesting depth of brackets, ignoring those in text."""
    marks = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
    steps = [1 if mark in "[{" else -1 for mark in re.findall(r"[\[\]{}]", marks)]
    return int(np.cumsum(steps).max(initial=0))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} occurs twice")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONGEST_NUMBER else math.inf


class _Trouble(NamedTuple):
    """A problem with an event, and the field that shows it."""

    code: str
    field: str = ""


def _trouble(event: Any) -> _Trouble | None:
    """The problem with an event; None if it is valid."""
    if not isinstance(event, dict):
        return _Trouble("no-object")
    if event.get("_skipLearn", False) is not False:
        return _Trouble("bad-skip", "_skipLearn")
    if not isinstance(event.get("c"), dict):
        return _Trouble("late-outcome", "c")
    if not finite(event.get("_label_cost")):
        return _Trouble("no-label", "_label_cost")
    if not finite(drop := event.get("pdrop", 0.0)) or not 0.0 <= drop < 1.0:
        return _Trouble("bad-pdrop", "pdrop")
    actions = event["c"].get("_multi")
    if not isinstance(actions, list) or not actions:
        return _Trouble("no-actions", "c._multi")
    if any(_ambiguous(part) for part in (event["c"], *actions) if isinstance(part, dict)):
        return _Trouble("ambiguous-feature")
    return _choice_trouble(event, len(actions))


def _choice_trouble(event: dict[str, Any], count: int) -> _Trouble | None:
    """Problems with a ranking of this many actions and with its probabilities."""
    ranking, chances = event.get("a"), event.get("p")
    if not isinstance(ranking, list) or not all(type(place) is int for place in ranking):
        return _Trouble("bad-ranking", "a")
    if sorted(ranking) != list(range(1, count + 1)):
        return _Trouble("bad-ranking", "a")
    if not isinstance(chances, list) or len(chances) != len(ranking) or not all(map(finite, chances)):
        return _Trouble("bad-probabilities", "p")
    if min(chances) < 0.0 or abs(sum(chances) - 1.0) > _PROBABILITY_ERROR:
        return _Trouble("bad-probabilities", "p")
    if chances[0] == 0.0:
        return _Trouble("impossible", "p")
    played, chance = event.get("_label_Action", ranking[0]), event.get("_label_probability", chances[0])
    if played != ranking[0]:
        return _Trouble("other-action", "_label_Action")
    if not finite(chance) or abs(chance / chances[0] - 1.0) > _PROBABILITY_ERROR:
        return _Trouble("other-action", "_label_probability")
    return None


def _ambiguous(features: dict[str, Any]) -> bool:
    names = [name for name, _ in shared_features(features)]
    return len(set(names)) < len(names)


UNNAMED_ACTION = "each action must have its own name or number in the feature"
OTHER_ACTIONS = (
    "the event does not offer the same actions as the first event; estimates require the same set of arms "
    "in every round"
)
_SHOWN = 20


def read_dsjson(
    path: str | PathLike[str],
    *,
    action_id: str | None = None,
    context: Iterable[str] | None = None,
    reward_range: tuple[float, float] | None = None,
    played: str = "first",
    slot: int | None = None,
) -> AdaptiveLog:
    r"""Read decisions and their costs from a dsjson file.

    Parameters
    ----------
    path : path
        File with one event per line.
    action_id : str, optional
        Feature that names an action, such as ``"id"``, or ``"article.id"`` for a feature in a namespace. By
        default, the label of an action is its position in the event's list, counted from 1, which is correct
        only if every event lists the same actions in the same order.
    context : iterable of str, optional
        Shared features to keep, such as ``"hour"`` or ``"user.age"``; by default all numbers, booleans and
        strings that every event has.
    reward_range : (float, float), optional
        Smallest and largest possible reward, that is, minus the cost.
    played : {"first", "label"}
        The action that was played: the first one in ``a``; or that of ``_label_Action``, counted from 1, in
        which case ``a`` and ``p`` may list the actions in any order, with ``a`` counted from 0 or 1.
    slot : int, optional
        Slot of a conditional bandit (``c._slots`` and ``_outcomes``), counted from 1: the log contains its
        choices only.

    Returns
    -------
    AdaptiveLog
        A log with one round per event, in the order of the file. The reward is minus ``_label_cost``; the
        propensities are the probabilities ``p`` of all actions, arranged in a fixed order of arms.

    Raises
    ------
    ParameterError
        If the file cannot be read as UTF-8 text, or a feature is unknown.
    LogValidationError
        If lines are invalid (the message lists every problem; row 0 is the first non-blank line): not a JSON
        object (including duplicate keys, NaN, which JSON does not allow, and nesting deeper than 100 levels),
        no label, lists of actions and probabilities that do not match, a logged action that is not the first
        in the list or whose probability differs, actions other than those of the first event, or events
        omitted by a throttle at changing rates.

    Notes
    -----
    An event lists its actions in the policy's ranking order (``a``, positions in ``_multi`` counted from 1)
    and their probabilities in the same order (``p``); the first action is the one that was played. A line
    with a late outcome but no decision is refused: join outcomes to their decisions first. Files in which
    ``a`` is not a ranking, such as those of Vowpal Wabbit's own simulator, are refused unless
    ``played="label"`` specifies how to read them; ``_label_probability`` must then equal that action's entry
    of ``p``.

    Slots form separate logs rather than rows of one log: the slots of an event are filled before any of their
    outcomes is known, each without the actions taken by earlier slots, so two rows of the same event would
    not be two rounds. Actions that a slot could not take in an event have propensity 0 there; actions that it
    could never take are not arms. For a later slot, the log has ``'context_free': False`` if earlier choices
    varied. Slates, which have one cost for the choices of all slots together, are refused.

    Events with ``"_skipLearn": true`` are dropped, as in Vowpal Wabbit, and counted in ``log.report``.

    A policy may have used features that are not contexts of the log: lists, features that some events lack or
    that `context` omits, and features of actions. If such features vary between events, the log has
    ``'context_free': False``, so no estimator assumes that the arms' rounds have comparable contexts.

    ``pdrop``, the probability with which a client dropped events, must be constant: constant thinning that is
    unrelated to the outcome leaves every estimate valid, whereas other thinning does not.

    References
    ----------
    Vowpal Wabbit wiki, "DSJSON".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> event = {
    ...     "_label_cost": -1.0,
    ...     "_label_probability": 0.8,
    ...     "_label_Action": 2,
    ...     "a": [2, 1],
    ...     "p": [0.8, 0.2],
    ...     "c": {"user": {"age": 30}, "_multi": [{"id": "news"}, {"id": "sport"}]},
    ... }
    >>> path = Path(tempfile.mkdtemp()) / "log.dsjson"
    >>> _ = path.write_text(json.dumps(event) + "\n")
    >>> log = ai.formats.read_dsjson(path, action_id="id")
    >>> log.frame[["action", "reward", "propensity", "propensity_news", "user.age"]]
      action  reward  propensity  propensity_news  user.age
    0  sport     1.0         0.8              0.2        30
    """
    context = list(context) if isinstance(context, Iterator) else context
    form = Form(played, slot)
    refuse(
        "read_dsjson", ([] if context is None else names_problems("context", context)) + form_problems(form)
    )
    place = as_path("read_dsjson", "path", path)
    with log_of(str(place)):
        events = read_events(place, form)
    with log_of(str(place), events.rows):
        log = _log(place, events.listed, action_id, context, reward_range, slot)
    return log.read_from(f"dsjson file {place.name}", _readings(events, log))


def _readings(events: Events, log: AdaptiveLog) -> list[Reading]:
    """Notes on dropped events, and on features that are not contexts of the log."""
    readings = []
    if events.skipped:
        skipped = claims.SKIPPED(skipped=events.skipped, events=events.skipped + log.n_rounds)
        readings.append(Reading("dropped", skipped))
    if events.absent:
        absent = claims.WITHOUT_SLOT(absent=events.absent, events=events.absent + log.n_rounds)
        readings.append(Reading("left out", absent))
    if rate := events.listed[0].get("pdrop", 0.0):
        readings.append(Reading("caution", claims.THROTTLED(rate=rate)))
    found = dict.fromkeys(name for event in events.listed for name, _ in shared_features(event["c"]))
    left = [name for name in found if name not in log.context]
    if left:
        readings.append(Reading("left out", claims.NO_CONTEXTS(names=_listed(left))))
    return readings


def _log(
    path: Path,
    events: list[dict[str, Any]],
    action_id: str | None,
    context: Iterable[str] | None,
    reward_range: tuple[float, float] | None,
    slot: int | None,
) -> AdaptiveLog:
    features = [dict(shared_features(event["c"])) for event in events]
    problems = _feature_problems(events, features, action_id, context)
    refuse("read_dsjson", [f"{path}: {problem}" for problem in problems])
    kept = _kept(features, context)
    shared = pd.DataFrame({name: [found.get(name) for found in features] for name in kept})
    names, places = _arms(events, action_id, slot)
    columns = {name: f"propensity of {name}" for name in names}
    frame = pd.DataFrame(
        {
            "action": [labels[event["a"][0] - 1] for event, labels in zip(events, places, strict=True)],
            "reward": [-float(event["_label_cost"]) for event in events],
            **dict(zip(columns.values(), _table(events, names, places), strict=True)),
        }
    )
    frame["propensity"] = [float(event["p"][0]) for event in events]
    clash = [name for name in kept if name in frame]
    if clash:
        raise ParameterError(
            "read_dsjson", [f"{path}: shared features must not be called {', '.join(clash)}"]
        )
    return AdaptiveLog(
        pd.concat([frame, shared], axis=1),
        action="action",
        reward="reward",
        propensity="propensity",
        propensities=columns,
        context=kept,
        arms=names,
        reward_range=reward_range,
        about={"context_free": False if _hides_features(events, set(kept)) else None},
    )


def _arms(
    events: list[dict[str, Any]], action_id: str | None, slot: int | None
) -> tuple[list[Any], list[list[Any]]]:
    """Labels of the arms, in the order of the first event, and the labels of every event's actions."""
    places = [action_labels(event["c"]["_multi"], action_id) for event in events]
    findings = Findings()
    unnamed = np.array([None in labels or len(set(labels)) < len(labels) for labels in places])
    findings.add_rows("unnamed-action", f"{UNNAMED_ACTION} {action_id!r}", unnamed)
    other = np.array([set(labels) != set(places[0]) for labels in places]) & ~unnamed
    findings.add_rows("other-actions", OTHER_ACTIONS, other)
    findings.raise_if_any()
    if slot is None:
        return places[0], places
    able = {labels[at - 1] for event, labels in zip(events, places, strict=True) for at in offered(event)}
    return [label for label in places[0] if label in able], places


def _feature_problems(
    events: list[dict[str, Any]],
    features: list[dict[str, Any]],
    action_id: str | None,
    context: Iterable[str] | None,
) -> list[str]:
    """Requested features that no event contains."""
    problems = []
    if action_id is not None:
        actions = [action for event in events for action in event["c"]["_multi"] if isinstance(action, dict)]
        known = dict.fromkeys(name for action in actions for name, _ in shared_features(action))
        problems += unknown_names("action", [action_id], known)
    if context is not None:
        found = dict.fromkeys(name for event in features for name in event)
        problems += unknown_names("event", _kept(features, context), found)
    return problems + [rounded(name) for name in _kept(features, context) if _is_rounded(features, name)]


def unknown_names(holder: str, names: Iterable[str], known: Collection[str]) -> list[str]:
    """List names that do not occur in any action or event."""
    unknown = [name for name in names if name not in known]
    what = "feature" if holder == "action" else "shared feature"
    if not unknown:
        return []
    near = did_you_mean(unknown[0], known)
    return [f"no {holder} has the {what} {', '.join(unknown)}; available: {_listed(known)}{near}"]


def _is_rounded(features: list[dict[str, Any]], name: str) -> bool:
    """Whether a feature contains both fractions and integers that float64 would round."""
    values = [found[name] for found in features if name in found]
    large = any(type(value) is int and abs(value) > 2**53 for value in values)
    return large and any(type(value) is float for value in values)


def rounded(name: str) -> str:
    """Report that float64 would round a feature."""
    return (
        f"the shared feature {name} has fractions and whole numbers beyond 2**53, which float64 would "
        "round: correct them, or omit the feature from context="
    )


def _listed(names: Iterable[str]) -> str:
    return several(list(names), _SHOWN) or "none"


def action_labels(actions: list[Any], action_id: str | None) -> list[Any]:
    """Labels of an event's actions; None if one is unnamed."""
    if action_id is None:
        return list(range(1, len(actions) + 1))
    features = [dict(shared_features(action)) if isinstance(action, dict) else {} for action in actions]
    return [feature.get(action_id) for feature in features]


def _table(events: list[dict[str, Any]], names: list[Any], places: list[list[Any]]) -> np.ndarray[Any, Any]:
    """Propensity of every arm in every round, shape (arms, rounds)."""
    table = np.empty((len(names), len(events)))
    rows = {name: row for row, name in enumerate(names)}
    for column, (event, labels) in enumerate(zip(events, places, strict=True)):
        for place, chance in zip(event["a"], event["p"], strict=True):
            if labels[place - 1] in rows:
                table[rows[labels[place - 1]], column] = chance
    return table


def _hides_features(events: list[dict[str, Any]], kept: set[str]) -> bool:
    """Whether events differ in features that the policy may have used but that the log lacks."""
    first = json.dumps(_hidden(events[0]["c"], kept), sort_keys=True)
    return any(json.dumps(_hidden(event["c"], kept), sort_keys=True) != first for event in events)


def _hidden(features: Mapping[str, Any], kept: set[str], prefix: str = "") -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, value in features.items():
        if name == "_multi":
            left[name] = sorted(json.dumps(action, sort_keys=True) for action in value)
        elif isinstance(value, dict):
            left[name] = _hidden(value, kept, f"{prefix}{name}.")
        elif f"{prefix}{name}" not in kept:
            left[name] = value
    return left


def _kept(features: list[dict[str, Any]], context: Iterable[str] | None) -> list[str]:
    """Names of the context columns: those requested, or those that every event contains."""
    if context is None:
        return [name for name in features[0] if all(name in found for found in features)]
    return [context] if isinstance(context, str) else list(context)
