"""Lines of Vowpal Wabbit's text as choices: labels, actions and features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from adaptinf.formats.dsjson import OTHER_ACTIONS, UNNAMED_ACTION, Faults
from adaptinf.formats.vw_events import MESSAGES
from adaptinf.log.validation.frame_columns import Findings

_MESSAGES = {
    "no-label": "an example has no label of the form action:cost:probability: drop examples without an "
    "outcome",
    "several-labels": (
        "an example has labels of several actions, but a log has one action per round: keep the label of "
        "the action that was played, with its probability"
    ),
    "bad-label": "a label must be action:cost:probability, with a finite cost and a probability in (0, 1]",
    "cb-eval": "an action to evaluate (--cb_eval) precedes the label: remove it",
    "no-bar": "a line has no |, which must precede the features",
    "slots": MESSAGES["slots"].replace("event", "example"),
    "slates": MESSAGES["slates"],
    "no-slot": "the example has no such slot",
    "continuous": "actions of --cats are continuous, but estimates require a finite set of arms",
    "unnamed-action": UNNAMED_ACTION.replace("feature", "namespace"),
    "other-actions": OTHER_ACTIONS.replace("event", "example"),
}


@dataclass(slots=True)
class Example:
    """One choice: features by full name, labels of the actions, and the content of the label."""

    line: int
    features: dict[str, Any] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    labels: list[tuple[Any, list[str]]] = field(default_factory=list)
    slots: list[list[str]] = field(default_factory=list)
    played: Any = None
    cost: float = math.nan
    chance: float = math.nan


def examples_of(lines: list[tuple[int, str]], action_id: str | None, slot: int | None) -> list[Example]:
    """Choices on numbered lines; a single error lists all problems."""
    wide = not _one_line_each(lines)
    faults, examples, broken, last = Faults(_MESSAGES), list[Example](), set[int](), -1
    for number, line in lines:
        if not wide or number != last + 1:
            examples.append(Example(number))
        row, code, last = len(examples) - 1, _take(examples[-1], line, action_id, wide), number
        if code and row not in broken:
            faults.add(row, code, f"line {number}: {line.strip():.80}")
            broken.add(row)
    for row, example in enumerate(examples):
        code = "" if row in broken else _settle(example, slot)
        if not code and set(example.actions) != set(examples[0].actions):
            code = "other-actions"
        faults.add(row, code, f"the example that begins in line {example.line}")
    findings = Findings()
    findings.problems += faults.problems()
    findings.raise_if_any()
    return examples


def _one_line_each(lines: list[tuple[int, str]]) -> bool:
    """Whether every line is an example: each has a label, and no keyword of multi-line examples."""
    heads = [line.split("|", 1)[0].split() for _, line in lines]
    return (
        all(head and (":" in head[0] or head[0].isdigit() or head[0] == "ca") for head in heads)
        and len({number - place for place, (number, _) in enumerate(lines)}) == 1
    )


def _take(example: Example, line: str, action_id: str | None, wide: bool) -> str:
    """Add the content of a line to its example; return the code of a problem, if any."""
    head, bar, body = line.partition("|")
    if not bar:
        return "no-bar"
    words = head.split()
    if words and not head[-1].isspace() and words[-1] not in ("shared", "slot", "action"):
        words.pop()  # Text that touches the bar is a tag, not a keyword.
    kind = words[0] if words and words[0] in ("ccb", "slates", "ca") else ""
    if kind in ("slates", "ca"):
        return "slates" if kind == "slates" else "continuous"
    role = words[1] if kind == "ccb" and len(words) > 1 else "shared" if words[:1] == ["shared"] else "action"
    labels = words[2:] if kind == "ccb" else [] if role == "shared" else words
    if role == "slot":
        example.slots.append([*labels[:1], *_features("|" + body)])
        return ""
    if role == "shared" or not wide:
        example.features |= _features("|" + body)
    else:
        example.hidden += [f"{name}:{value}" for name, value in _features("|" + body).items()]
        example.actions.append(_name(body, action_id, len(example.actions) + 1))
        if (
            example.actions[-1] is None
            or example.actions.index(example.actions[-1]) < len(example.actions) - 1
        ):
            return "unnamed-action"
    if len(labels) > 1:
        return "several-labels" if ":" in labels[0] else "cb-eval"
    if labels:
        example.labels.append((example.actions[-1] if wide else None, labels[0].split(":")))
    return ""


def _settle(example: Example, slot: int | None) -> str:
    """Fill in the action that was played; return the code of any problem with the labels."""
    if example.slots and slot is None:
        return "slots"
    if slot is not None and len(example.slots) < slot:
        return "no-slot"
    if slot is not None:
        told, *features = example.slots[slot - 1] or [""]
        example.hidden += [
            *features,
            *(other[0].split(":")[0] for other in example.slots[: slot - 1] if other),
        ]
        parts = told.split(",")[0].split(":")
        at = int(parts[0]) if parts[0].isdigit() else len(example.actions)
        if ":" not in told or at >= len(example.actions):
            return "no-label" if ":" not in told else "bad-label"
        example.labels = [(example.actions[at], parts)]
    if len(example.labels) != 1:
        return "several-labels" if example.labels else "no-label"
    ((example.played, parts),) = example.labels
    try:
        number, example.cost, example.chance = int(parts[0]), float(parts[1]), float(parts[2])
    except (ValueError, IndexError):
        return "bad-label"
    example.played = number if example.played is None else example.played
    return "" if math.isfinite(example.cost) and 0.0 < example.chance <= 1.0 else "bad-label"


def _name(body: str, action_id: str | None, place: int) -> Any:
    """An action's label: its position, or the text in a namespace."""
    if action_id is None:
        return place
    parts = [part.split(maxsplit=1) for part in body.split("|") if part and not part[0].isspace()]
    return next((" ".join(part[1].split()) for part in parts if part[0] == action_id and len(part) > 1), None)


def _features(body: str) -> dict[str, Any]:
    """Values by namespace.feature, 1 if none is given; those of a repeated feature are summed."""
    found: dict[str, Any] = {}
    for name, value in _pairs(body):
        found[name] = found[name] + value if isinstance(found.get(name), float) else value
    return found


def _pairs(body: str) -> Iterator[tuple[str, Any]]:
    for part in body.split("|")[1:]:
        words = part.split()
        space = "" if not words or part[0].isspace() else words.pop(0)
        space, _, weight = space.partition(":")
        for word in words:
            name, _, text = word.partition(":")
            try:
                value: Any = float(text or 1.0) * float(weight or 1.0)
            except ValueError:
                value = text
            yield (f"{space}.{name}" if space else name), value
