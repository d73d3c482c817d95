"""Vowpal Wabbit events that are not rankings for a single choice: lists in any order, and slots."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, TypeGuard

from adaptinf.log.validation.frame_columns import MATCH_TOLERANCE
from adaptinf.texts import several

MESSAGES = {
    "zero-based": (
        "a counts the positions in c._multi from 0. If _label_Action, counted from 1, is the action that "
        'was played, pass played="label", which reads a and p in any order. If a begins with the action '
        "that was played, and p has the probabilities in the same order, then a must count from 1: add 1 to "
        "each"
    ),
    "unranked": (
        "a must begin with the action that was played, and p must have the probabilities in the same order, "
        "but here _label_Action is another action. If that action, counted from 1, was played, pass "
        'played="label", which reads a and p in any order'
    ),
    "no-played": 'played="label" requires _label_Action, counted from 1, and _label_probability',
    "other-label": "the probability in p of the action that was played differs from _label_probability",
    "other-index": "_labelIndex, counted from 0, and _label_Action, counted from 1, are different actions",
    "slots": (
        "the event has several slots, each with its own choice and cost, but a log has one choice per "
        "round: pass slot=1 for a log of the first slot, slot=2 for one of the second, and so on"
    ),
    "slates": (
        "slates choose an action for every slot and have one joint cost, so no action has a reward of its "
        "own. Write each combination as one action, with the product of the slots' probabilities"
    ),
    "no-slot": "the event has neither c._slots nor _outcomes: omit slot",
    "bad-slot": (
        "_outcomes must have one entry per slot, with _a, the positions in c._multi that the slot could "
        "take (counted from 0, beginning with the action that was played), _p, their probabilities, and "
        "_label_cost"
    ),
}


@dataclass(frozen=True, slots=True)
class Form:
    """How the choice is recorded: `played` is "first" or "label"; `slot` is counted from 1."""

    played: str = "first"
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """An event as a ranking for a single choice, or the reason for failure; `absent` if it lacks the slot."""

    event: dict[str, Any]
    code: str = ""
    told: str = ""
    absent: bool = False


def form_problems(form: Form) -> list[str]:
    """List problems with the arguments."""
    problems = []
    if form.played not in ("first", "label"):
        problems.append(f'played must be "first" or "label", got {form.played!r:.60}')
    if form.slot is not None and not (type(form.slot) is int and form.slot >= 1):
        problems.append(f"slot must be the position of a slot, counted from 1, got {form.slot!r:.60}")
    if form.slot is not None and form.played == "label":
        problems.append('played="label" applies only to events without slots: omit either played or slot')
    return problems


def rewritten(event: dict[str, Any], form: Form) -> Rewritten:
    """The event as the ranking for a single choice; unchanged if it is one, or if it is checked elsewhere."""
    if not isinstance(event.get("c"), dict):
        return Rewritten(event)
    actions, slots = event["c"].get("_multi"), event["c"].get("_slots")
    if isinstance(actions, list) and any(isinstance(each, dict) and "_slot_id" in each for each in actions):
        return Rewritten(event, "slates", "actions have _slot_id")
    if "_outcomes" in event or slots is not None:
        return _of_slot(event, form.slot)
    if form.slot is not None:
        return Rewritten(event, "no-slot", f"slot is {form.slot}")
    places, chances = event.get("a"), event.get("p")
    if not (_listed(actions) and _listed(places) and _listed(chances)):
        return Rewritten(event)
    if len(chances) != len(places):
        return Rewritten(event, "bad-probabilities", _content(event, "a", "p"))
    return _by_label(event) if form.played == "label" else _explained(event)


def _listed(values: Any) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and bool(values)


def _start(event: dict[str, Any]) -> int | None:
    """Index from which the positions of all actions are counted; None if the list is invalid."""
    places, count = event["a"], len(event["c"]["_multi"])
    if not all(type(place) is int for place in places):
        return None
    return next((start for start in (1, 0) if sorted(places) == list(range(start, start + count))), None)


def _by_label(event: dict[str, Any]) -> Rewritten:
    """The event with the labelled action first, and positions counted from 1."""
    start, index = _start(event), event.get("_labelIndex")
    if start is None:
        return Rewritten(event)
    played, chance = event.get("_label_Action"), event.get("_label_probability")
    if type(played) is not int or not 1 <= played <= len(event["a"]) or not finite(chance):
        return Rewritten(event, "no-played", _content(event, "_label_Action", "_label_probability"))
    if index is not None and index != played - 1:
        return Rewritten(event, "other-index", _content(event, "_labelIndex", "_label_Action"))
    pairs = [(place + 1 - start, share) for place, share in zip(event["a"], event["p"], strict=True)]
    pairs.sort(key=lambda pair: pair[0] != played)
    if not finite(pairs[0][1]) or abs(pairs[0][1] - chance) > MATCH_TOLERANCE * chance:
        return Rewritten(
            event, "other-label", _content(event, "_label_probability", "_label_Action", "a", "p")
        )
    return Rewritten(event | {"a": [place for place, _ in pairs], "p": [share for _, share in pairs]})


def _explained(event: dict[str, Any]) -> Rewritten:
    """Detect events whose form requires another argument."""
    start = _start(event)
    other = start == 1 and event["a"][0] != event.get("_label_Action", event["a"][0])
    if start == 0 or (other and not _by_label(event).code):
        names = ("a", "p", "_label_Action") if "_label_Action" in event else ("a",)
        return Rewritten(event, "unranked" if start else "zero-based", _content(event, *names))
    return Rewritten(event)


def _of_slot(event: dict[str, Any], slot: int | None) -> Rewritten:
    """The choice for one slot; actions that were unavailable have probability 0."""
    actions, outcomes = event["c"].get("_multi"), event.get("_outcomes")
    if not isinstance(outcomes, list) or not all(isinstance(outcome, dict) for outcome in outcomes):
        return Rewritten(event, "bad-slot", _content(event, "_outcomes"))
    if not any("_label_cost" in outcome for outcome in outcomes) and "_label_cost" in event:
        return Rewritten(event, "slates", "_label_cost appears together with _outcomes")
    names = event["c"].get("_slots")
    if slot is None:
        ids = [each.get("_id") for each in names if isinstance(each, dict)] if isinstance(names, list) else []
        known = f": {several([str(each) for each in ids], 5)}" if ids and None not in ids else ""
        return Rewritten(event, "slots", f"the number of slots is {len(outcomes)}{known}")
    if slot > len(outcomes):
        return Rewritten(event, absent=True)
    if not isinstance(names, list) or len(names) != len(outcomes) or not _listed(actions):
        return Rewritten(event, "bad-slot", "c._slots, c._multi and _outcomes do not match")
    chosen = outcomes[slot - 1]
    before = [outcome.get("_a") for outcome in outcomes[: slot - 1]]
    places, chances = chosen.get("_a"), chosen.get("_p")
    sound = _listed(places) and _listed(chances) and len(places) == len(chances)
    if (
        not sound
        or not set(map(repr, places)) <= set(map(repr, range(len(actions))))
        or not all(map(_listed, before))
    ):
        return Rewritten(event, "bad-slot", _content({f"_outcomes[{slot - 1}]": chosen}))
    others = [place for place in range(len(actions)) if place not in places]
    # The choices for earlier slots are not in the log's contexts, but they affected this choice.
    seen = event["c"] | {"_slots": names[slot - 1], "_taken": [places[0] for places in before]}
    own = {name: chosen[name] for name in ("_label_cost",) if name in chosen}
    ranking = {"a": [place + 1 for place in places + others], "p": chances + [0.0] * len(others)}
    return Rewritten(event | own | ranking | {"c": seen})


def offered(event: dict[str, Any]) -> list[int]:
    """Positions in c._multi, counted from 1, that were available to the event."""
    return [place for place, chance in zip(event["a"], event["p"], strict=True) if chance > 0.0]


def finite(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a number that float64 can represent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _content(event: dict[str, Any], *names: str) -> str:
    """Fields and their contents."""
    shown = [f"{name} is {json.dumps(event[name])!s:.80}" for name in names or event if name in event]
    return ", ".join(shown) or f"{names[0]} is missing"
