"""Contextual bandit logs of Vowpal Wabbit and of services built on it: one JSON object a line (dsjson)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.arguments import names_problems
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.findings import Findings
from adaptinf.parameters import refuse

_PROBABILITY_ERROR = 1e-6


def read_dsjson(
    path: str | PathLike[str],
    *,
    action_id: str | None = None,
    context: Iterable[str] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read a dsjson file of decisions with their costs.

    Parameters
    ----------
    path : path
        One event a line.
    action_id : str, optional
        Feature that names an action, such as ``"id"`` or ``"article.id"`` for one in a namespace. By default
        an action's label is its place in the event's list, counted from 1, which is right only where every
        event lists the same actions in the same order.
    context : iterable of str, optional
        Shared features to keep, such as ``"hour"`` or ``"user.age"``; by default all numbers, booleans and
        strings that every event has.
    reward_range : (float, float), optional
        Smallest and largest possible reward, minus the cost.

    Returns
    -------
    AdaptiveLog
        One round an event, in the order of the file. The reward is minus ``_label_cost``; the propensities
        are ``p``, of all actions, put in one order of arms.

    Raises
    ------
    ParameterError
        If the file cannot be read or a feature is unknown.
    LogValidationError
        With all that is found wrong with the lines (row 0 is the first line with text in it): no JSON
        object, no label, lists of actions and probabilities that do not match, a logged action that is not
        the first of the list or whose probability differs, other actions than in the first event, or
        events that a throttle left out at changing rates.

    Notes
    -----
    An event lists its actions in the order in which the policy ranked them (``a``, places in ``_multi``
    counted from 1), their probabilities in the same order (``p``), and the one that was played first. A line
    that holds a late outcome without a decision is refused: join outcomes to their decisions beforehand.

    A policy may have looked at features that are no contexts of the log: lists, those that some events lack
    or that `context` leaves out, and those of actions. Where such features change from event to event the
    log has ``context_free=False``, so that no estimator takes the arms' rounds to be comparable mixes.

    ``pdrop``, the probability with which a client left out events, must be the same throughout: thinning that
    is unrelated to the outcome and constant leaves every estimate valid, other thinning does not.

    References
    ----------
    Vowpal Wabbit wiki, "DSJSON".

    Examples
    --------
    >>> import tempfile
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
    >>> log = read_dsjson(path, action_id="id")
    >>> log.frame[["action", "reward", "propensity", "propensity_news", "user.age"]]
      action  reward  propensity  propensity_news  user.age
    0  sport     1.0         0.8              0.2        30
    """
    context = list(context) if isinstance(context, Iterator) else context
    refuse("read_dsjson", [] if context is None else names_problems("context", context))
    events = _events(as_path("read_dsjson", "path", path))
    shared = pd.DataFrame([dict(_shared(event["c"])) for event in events])
    refuse("read_dsjson", _feature_problems(events, shared, action_id, context))
    names, places = _arms(events, action_id)
    columns = {name: f"propensity of {name}" for name in names}
    frame = pd.DataFrame(
        {
            "action": [labels[event["a"][0] - 1] for event, labels in zip(events, places, strict=True)],
            "reward": [-float(event["_label_cost"]) for event in events],
            **dict(zip(columns.values(), _table(events, names, places), strict=True)),
        }
    )
    frame["propensity"] = [float(event["p"][0]) for event in events]
    kept = _kept(shared, context)
    clash = [name for name in kept if name in frame]
    if clash:
        raise ParameterError("read_dsjson", [f"shared features may not be called {', '.join(clash)}"])
    return AdaptiveLog(
        pd.concat([frame, shared[kept]], axis=1),
        action="action",
        reward="reward",
        propensity="propensity",
        propensities=columns,
        context=kept,
        arms=names,
        reward_range=reward_range,
        context_free=False if _hides_features(events, set(kept)) else None,
    )


def _events(path: Path) -> list[dict[str, Any]]:
    """The file's events, each a decision with its cost; one error with all that is found wrong."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError("read_dsjson", [f"{path} cannot be read as UTF-8 text: {error}"]) from error
    if not lines:
        raise ParameterError("read_dsjson", [f"{path} has no events"])
    events = [_parsed(line) for line in lines]
    kinds = [_trouble(event) for event in events]
    findings = Findings()
    for code in dict.fromkeys(kind for kind in kinds if kind):
        findings.add_rows(code, _MESSAGES[code], np.array([kind == code for kind in kinds]))
    dropped = {event.get("pdrop", 0.0) for event in events if isinstance(event, dict)}
    if len(dropped) > 1:
        rates = ", ".join(map(str, sorted(dropped, key=str)))
        findings.add("changing-pdrop", f"events were left out at different rates (pdrop is {rates})")
    findings.raise_if_any()
    return events


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


_MESSAGES = {
    "no-object": "a line is no JSON object",
    "late-outcome": "a line is an outcome without a decision: join outcomes to their decisions first",
    "no-label": "an event lacks a finite _label_cost",
    "no-actions": "an event lacks c._multi, the list of its actions",
    "bad-ranking": "a must list every place in c._multi once, counted from 1",
    "bad-probabilities": "p must have one probability an action, in [0, 1], summing to 1",
    "impossible": "the action that was played has probability 0",
    "other-action": "_label_Action is not the first of a, or _label_probability is not the first of p",
}


def _trouble(event: Any) -> str | None:
    """Code of what is wrong with an event; None for a sound one."""
    if not isinstance(event, dict):
        return "no-object"
    if not isinstance(event.get("c"), dict):
        return "late-outcome"
    if not _finite(event.get("_label_cost")):
        return "no-label"
    actions = event["c"].get("_multi")
    if not isinstance(actions, list) or not actions:
        return "no-actions"
    ranking, chances = event.get("a"), event.get("p")
    if not isinstance(ranking, list) or not all(type(place) is int for place in ranking):
        return "bad-ranking"
    if sorted(ranking) != list(range(1, len(actions) + 1)):
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


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _arms(events: list[dict[str, Any]], action_id: str | None) -> tuple[list[Any], list[list[Any]]]:
    """Labels of the arms, in the order of the first event, and of every event's actions."""
    places = [_labels(event["c"]["_multi"], action_id) for event in events]
    findings = Findings()
    unnamed = np.array([None in labels or len(set(labels)) < len(labels) for labels in places])
    findings.add_rows("unnamed-action", f"each action needs its own {action_id!r}, name or number", unnamed)
    other = np.array([set(labels) != set(places[0]) for labels in places]) & ~unnamed
    findings.add_rows(
        "other-actions",
        "the event offers other actions than the first one; estimates need one set of arms throughout",
        other,
    )
    findings.raise_if_any()
    return places[0], places


def _feature_problems(
    events: list[dict[str, Any]], shared: pd.DataFrame, action_id: str | None, context: Iterable[str] | None
) -> list[str]:
    """Features that were asked for and that no event has."""
    problems = []
    if action_id is not None:
        actions = [action for event in events for action in event["c"]["_multi"] if isinstance(action, dict)]
        known = dict.fromkeys(name for action in actions for name, _ in _shared(action))
        if action_id not in known:
            problems.append(f"no action has the feature {action_id}; there are: {', '.join(known) or 'none'}")
    unknown = [name for name in ([] if context is None else _kept(shared, context)) if name not in shared]
    if unknown:
        found = ", ".join(map(str, shared)) or "none"
        problems.append(f"no event has the shared feature {', '.join(unknown)}; there are: {found}")
    return problems


def _labels(actions: list[Any], action_id: str | None) -> list[Any]:
    if action_id is None:
        return list(range(1, len(actions) + 1))
    features = [dict(_shared(action)) if isinstance(action, dict) else {} for action in actions]
    return [feature.get(action_id) for feature in features]


def _table(events: list[dict[str, Any]], names: list[Any], places: list[list[Any]]) -> np.ndarray[Any, Any]:
    """Propensity of every arm in every round, shape (arms, rounds)."""
    table = np.empty((len(names), len(events)))
    rows = {name: row for row, name in enumerate(names)}
    for column, (event, labels) in enumerate(zip(events, places, strict=True)):
        for place, chance in zip(event["a"], event["p"], strict=True):
            table[rows[labels[place - 1]], column] = chance
    return table


def _shared(features: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Plain features, those of a namespace as ``namespace.feature``; lists and underscored names left out."""
    for name, value in features.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from _shared(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{prefix}{name}", value


def _hides_features(events: list[dict[str, Any]], kept: set[str]) -> bool:
    """Whether anything that the policy may have seen, and the log does not have, changes between events."""
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


def _kept(shared: pd.DataFrame, context: Iterable[str] | None) -> list[str]:
    """Names of the context columns: those asked for, or those that every event has."""
    if context is None:
        return [str(name) for name in shared if bool(shared[name].notna().all())]
    return [context] if isinstance(context, str) else list(context)
