"""Events of dsjson files in two passes: what holds of all of them, then their columns in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.formats.dsjson import (
    OTHER_ACTIONS,
    UNNAMED_ACTION,
    Faults,
    Judged,
    action_labels,
    changing_rates,
    judge,
    rounded,
    shared_features,
    unknown_names,
)
from adaptinf.formats.streaming.lines import numbered_lines
from adaptinf.formats.streaming.times import Clock

SUBJECT = "convert"
_BATCH = 5_000
_TIME = "timestamp"
_COLUMNS = ("action", "reward", "propensity", _TIME)
_LARGEST = 2**53
_KINDS: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({str}): pa.string(),
}


@dataclass(slots=True)
class Facts:
    """What holds of all events: arms, features with their types, and whether there are times."""

    arms: list[Any] = field(default_factory=list)
    kinds: dict[str, set[type]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    of_actions: dict[str, None] = field(default_factory=dict)
    rates: set[float] = field(default_factory=set)
    events: int = 0
    skipped: int = 0
    timed: bool = False

    def add(self, event: dict[str, Any], labels: list[Any]) -> None:
        """Take in a sound event."""
        if not self.events:
            self.arms, self.timed = labels, "Timestamp" in event
        self.events += 1
        self.rates.add(event.get("pdrop", 0.0))
        for name, value in shared_features(event["c"]):
            self.kinds.setdefault(name, set()).add(type(value))
            self.counts[name] = self.counts.get(name, 0) + 1
            if type(value) is int and abs(value) > _LARGEST:
                self.large.add(name)

    def kept(self, context: Sequence[str] | None) -> list[str]:
        """Features that are columns: those asked for, or those that every event has."""
        everywhere = [name for name, count in self.counts.items() if count == self.events]
        return everywhere if context is None else list(context)


def survey(source: Path, files: Sequence[Path], action_id: str | None) -> Facts:
    """The first pass; one error with everything that is wrong with the lines."""
    facts, row = Facts(), 0
    faults = Faults({"unnamed-action": f"{UNNAMED_ACTION} {action_id!r}", "other-actions": OTHER_ACTIONS})
    for path, number, each in _events(files):
        facts.skipped += each.skipped
        if each.code:
            faults.add(row, each.code, f"{path.name}, {each.told}")
        elif not each.skipped:
            labels = action_labels(each.event["c"]["_multi"], action_id)
            if action_id is not None:
                parts = (part for part in each.event["c"]["_multi"] if isinstance(part, dict))
                facts.of_actions |= dict.fromkeys(name for part in parts for name, _ in shared_features(part))
            place = f"{path.name}, line {number}"
            if None in labels or len(set(labels)) < len(labels):
                faults.add(row, "unnamed-action", place)
            elif facts.events and set(labels) != set(facts.arms):
                faults.add(row, "other-actions", place)
            else:
                facts.add(each.event, labels)
        row += 1
    if action_id is not None and facts.of_actions and action_id not in facts.of_actions:
        raise ParameterError(
            SUBJECT, [f"{source}: {unknown_names('action', [action_id], facts.of_actions)[0]}"]
        )
    problems = [*faults.problems(), *changing_rates(facts.rates)]
    if problems:
        raise LogValidationError(problems, str(source))
    if not facts.events:
        problem = f"{source} has no events but those with _skipLearn" if row else f"{source} has no events"
        raise ParameterError(SUBJECT, [problem])
    return facts


def schema_of(source: Path, facts: Facts, context: Sequence[str] | None) -> pa.Schema:
    """Columns of the table; an error with everything that cannot be one."""
    kept = facts.kept(context)
    arms = [f"propensity_{arm}" for arm in facts.arms]
    problems = unknown_names("event", kept, facts.counts)
    fields = {"action": _kind([type(arm) for arm in facts.arms]), "reward": pa.float64()}
    fields |= {"propensity": pa.float64(), **dict.fromkeys(arms, pa.float64())}
    fields |= {_TIME: pa.timestamp("us")} if facts.timed else {}
    if fields["action"] is None or len(set(arms)) < len(arms):
        problems.append("actions must have names of one type, all numbers or all text")
    for name in kept if not problems else ():
        kind = _kind(facts.kinds[name])
        if name in _COLUMNS or name in arms:
            problems.append(f"shared features may not be called {name}")
        elif kind is None:
            problems.append(
                f"the shared feature {name} has values of several types: leave it out of context="
            )
        elif name in facts.large and float in facts.kinds[name]:
            problems.append(rounded(name))
        fields[name] = kind
    if problems:
        raise ParameterError(SUBJECT, [f"{source}: {problem}" for problem in problems])
    return pa.schema(list(fields.items()))


def _kind(types: Any) -> pa.DataType | None:
    return _KINDS.get(frozenset(types))


def tables(
    files: Sequence[Path], facts: Facts, schema: pa.Schema, action_id: str | None
) -> Iterator[pa.Table]:
    """The second pass."""
    sound = ((path, number, each.event) for path, number, each in _events(files) if not each.skipped)
    clock = Clock()
    while batch := list(islice(sound, _BATCH)):
        yield _table(batch, facts, schema, action_id, clock)


def _events(files: Sequence[Path]) -> Iterator[tuple[Path, int, Judged]]:
    for path in files:
        for number, line in numbered_lines(path, SUBJECT):
            yield path, number, judge(number, line)


def _table(
    batch: list[tuple[Path, int, dict[str, Any]]],
    facts: Facts,
    schema: pa.Schema,
    action_id: str | None,
    clock: Clock,
) -> pa.Table:
    """Columns of some events."""
    events = [event for _, _, event in batch]
    places = {arm: place for place, arm in enumerate(facts.arms)}
    share = np.empty((len(places), len(events)))
    columns: dict[str, Any] = {"action": []}
    for row, event in enumerate(events):
        labels = action_labels(event["c"]["_multi"], action_id)
        columns["action"].append(labels[event["a"][0] - 1])
        for place, chance in zip(event["a"], event["p"], strict=True):
            share[places[labels[place - 1]], row] = chance
    columns["reward"] = [-float(event["_label_cost"]) for event in events]
    columns["propensity"] = [float(event["p"][0]) for event in events]
    columns |= {f"propensity_{arm}": share[place] for arm, place in places.items()}
    if facts.timed:
        columns[_TIME] = _times(batch, clock)
    features = [dict(shared_features(event["c"])) for event in events]
    for name in schema.names:
        if name not in columns:
            values = [found.get(name) for found in features]
            whole = schema.field(name).type == pa.float64()
            columns[name] = [None if value is None else float(value) for value in values] if whole else values
    try:
        return pa.table([pa.array(columns[each.name], each.type) for each in schema], schema=schema)
    except (pa.ArrowException, OverflowError) as error:
        where = f"{batch[0][0]}, lines {batch[0][1]} to {batch[-1][1]}"
        raise ParameterError(SUBJECT, [f"{where}: Parquet cannot hold a value: {error}"]) from error


def _times(batch: list[tuple[Path, int, dict[str, Any]]], clock: Clock) -> Any:
    """Times of the events, in UTC."""
    values, bad = clock.read([event.get("Timestamp") for _, _, event in batch])
    if bad.any():
        path, number, event = batch[int(np.argmax(bad))]
        told = f"{path.name}, line {number}: {event.get('Timestamp')!r:.60}"
        problem = "Timestamp must be a time in ISO 8601 in every event, with a zone in all or in none"
        raise LogValidationError([Problem("bad-time", f"{problem} ({told})")], str(path))
    return values
