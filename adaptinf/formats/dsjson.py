"""Contextual bandit logs of Vowpal Wabbit and of services built on it: one JSON object a line (dsjson)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.arguments import names_problems
from adaptinf.formats.events import Events, read_events, shared_features
from adaptinf.formats.tables import log_of
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.log.validation.findings import Findings
from adaptinf.parameters import refuse
from adaptinf.texts import did_you_mean, several

UNNAMED_ACTION = "each action needs a name or number of its own in the feature"
OTHER_ACTIONS = "the event offers other actions than the first one; estimates need one set of arms throughout"
_SHOWN = 20


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
        If the file cannot be read as UTF-8 text or a feature is unknown.
    LogValidationError
        With all that is found wrong with the lines (row 0 is the first line with text in it): no JSON
        object (a key that is there twice, NaN, which JSON does not have, and nesting beyond 100 levels
        included), no label, lists of actions and probabilities that do not match, a logged action that is
        not the first of the list or whose probability differs, other actions than in the first event, or
        events that a throttle left out at changing rates.

    Notes
    -----
    An event lists its actions in the order in which the policy ranked them (``a``, places in ``_multi``
    counted from 1), their probabilities in the same order (``p``), and the one that was played first. A line
    that holds a late outcome without a decision is refused: join outcomes to their decisions beforehand.
    Events with ``"_skipLearn": true`` are dropped, as Vowpal Wabbit drops them, and counted in
    ``log.report``.

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
    refuse("read_dsjson", [] if context is None else names_problems("context", context))
    place = as_path("read_dsjson", "path", path)
    with log_of(str(place)):
        events = read_events(place)
    with log_of(str(place), events.rows):
        log = _log(place, events.listed, action_id, context, reward_range)
    return log.read_from(f"dsjson file {place.name}", _readings(events, log))


def _readings(events: Events, log: AdaptiveLog) -> list[Reading]:
    """What was dropped, and which features are no contexts of the log."""
    readings = []
    if events.skipped:
        skipped = claims.SKIPPED(skipped=events.skipped, events=events.skipped + log.n_rounds)
        readings.append(Reading("dropped", skipped))
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
) -> AdaptiveLog:
    features = [dict(shared_features(event["c"])) for event in events]
    problems = _feature_problems(events, features, action_id, context)
    refuse("read_dsjson", [f"{path}: {problem}" for problem in problems])
    kept = _kept(features, context)
    shared = pd.DataFrame({name: [found.get(name) for found in features] for name in kept})
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
    clash = [name for name in kept if name in frame]
    if clash:
        raise ParameterError("read_dsjson", [f"{path}: shared features may not be called {', '.join(clash)}"])
    return AdaptiveLog(
        pd.concat([frame, shared], axis=1),
        action="action",
        reward="reward",
        propensity="propensity",
        propensities=columns,
        context=kept,
        arms=names,
        reward_range=reward_range,
        context_free=False if _hides_features(events, set(kept)) else None,
    )


def _arms(events: list[dict[str, Any]], action_id: str | None) -> tuple[list[Any], list[list[Any]]]:
    """Labels of the arms, in the order of the first event, and of every event's actions."""
    places = [action_labels(event["c"]["_multi"], action_id) for event in events]
    findings = Findings()
    unnamed = np.array([None in labels or len(set(labels)) < len(labels) for labels in places])
    findings.add_rows("unnamed-action", f"{UNNAMED_ACTION} {action_id!r}", unnamed)
    other = np.array([set(labels) != set(places[0]) for labels in places]) & ~unnamed
    findings.add_rows("other-actions", OTHER_ACTIONS, other)
    findings.raise_if_any()
    return places[0], places


def _feature_problems(
    events: list[dict[str, Any]],
    features: list[dict[str, Any]],
    action_id: str | None,
    context: Iterable[str] | None,
) -> list[str]:
    """Features that were asked for and that no event has."""
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
    """Say which names no action, or no event, has."""
    unknown = [name for name in names if name not in known]
    what = "feature" if holder == "action" else "shared feature"
    if not unknown:
        return []
    near = did_you_mean(unknown[0], known)
    return [f"no {holder} has the {what} {', '.join(unknown)}; there are: {_listed(known)}{near}"]


def _is_rounded(features: list[dict[str, Any]], name: str) -> bool:
    """Whether a feature has whole numbers that float64 would round, beside fractions."""
    values = [found[name] for found in features if name in found]
    large = any(type(value) is int and abs(value) > 2**53 for value in values)
    return large and any(type(value) is float for value in values)


def rounded(name: str) -> str:
    """Say that float64 would round a feature."""
    return (
        f"the shared feature {name} has fractions and whole numbers beyond 2**53, which float64 would round: "
        "correct them, or leave the feature out of context="
    )


def _listed(names: Iterable[str]) -> str:
    return several(list(names), _SHOWN) or "none"


def action_labels(actions: list[Any], action_id: str | None) -> list[Any]:
    """Labels of an event's actions, None where one has no name."""
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
            table[rows[labels[place - 1]], column] = chance
    return table


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


def _kept(features: list[dict[str, Any]], context: Iterable[str] | None) -> list[str]:
    """Names of the context columns: those asked for, or those that every event has."""
    if context is None:
        return [name for name in features[0] if all(name in found for found in features)]
    return [context] if isinstance(context, str) else list(context)
