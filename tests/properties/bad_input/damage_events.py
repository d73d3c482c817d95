"""Damage to dsjson: values, keys, nesting and lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Event = dict[str, Any]

RAW = [
    "null", "true", "false", "0", "-1", "2", "0.5", "1e400", "-1e400", "NaN", "Infinity", "-Infinity",
    "1" * 400,
    "1" * 5000, "1e5", "1e-400", "9007199254740993", '"0.5"', '"abc"', '""', "[]", "{}", "[0.5]", "[[1, 2]]",
    "[null]",
    '{"x": 1}', '{"x": {"y": [1]}}', '["a", "p"]', "[1, 1]", "[2, 1]", "[true, false]", "[1.0, 2.0]",
    '["1", "2"]',
    "[0.5, 0.5]", "[1e400]", "[1, 2, 3, 4, 5, 6, 7]", "[NaN, 1]", '"\\u0000"', '"\\ud800"', '"a\\u2028b"',
    "[" * 3000 + "]" * 3000,
    "[" * 200_000 + "]" * 200_000, '{"a":' * 3000 + "1" + "}" * 3000, '[{"article": {"id": "news"}}]',
    '[{}]', "[[], []]",
    '[{"article": {"id": 1}}, {"article": {"id": "1"}}]',
    '[{"article": {"id": true}}, {"article": {"id": 1}}]',
    '[{"article": {"id": [1]}}, {"article": {"id": {}}}]', '[{"article": [1]}, {"article": "x"}]', "00",
    "+1", "1.", ".5",
    "'a'", "undefined", "0x10", "1_0", "--1", "", "{", "[1,]", '{"x": 1,}', '{"x": 1, "x": 2}', "// comment",
    "-0.0",
]  # fmt: skip
KEYS = ["_label_cost", "_label_probability", "_label_Action", "a", "p", "c", "c.hour", "c.user", "c.user.age",
        "c.user.town", "c._multi", "pdrop", "a.0", "p.0", "p.1", "c._multi.0", "c._multi.0.article",
        "c._multi.1.article.id"]  # fmt: skip
_MARK = "\x02mark\x02"


def replaced(event: Event, path: str, raw: str) -> str:
    """The event as a line with raw JSON at a path; a key that is not there is added."""
    copy: Any = json.loads(json.dumps(event))
    target = copy
    *steps, last = path.split(".")
    for step in steps:
        target = target[int(step) if isinstance(target, list) else step]
    target[int(last) if isinstance(target, list) else last] = _MARK
    return json.dumps(copy, ensure_ascii=False).replace(json.dumps(_MARK), raw)


def lines(events: list[Event]) -> list[str]:
    """Events as lines."""
    return [json.dumps(event, ensure_ascii=False) for event in events]


def joined(listed: list[str]) -> bytes:
    return ("\n".join(listed) + "\n").encode("utf-8", "surrogatepass")


def at_path(path: str, raw: str, everywhere: bool = False) -> Callable[[Rng, list[Event]], bytes]:
    """Raw JSON at a path of one event, or of all."""

    def make(rng: Rng, events: list[Event]) -> bytes:
        listed, row = lines(events), int(rng.integers(len(events)))
        for number in range(len(events)) if everywhere else [row]:
            listed[number] = replaced(events[number], path, raw)
        return joined(listed)

    return make


def some_path(raw: str) -> Callable[[Rng, list[Event]], bytes]:
    return lambda rng, events: at_path(KEYS[rng.integers(len(KEYS))], raw, rng.random() < 0.2)(rng, events)


def without(path: str) -> Callable[[Rng, list[Event]], bytes]:
    """A key left out of one event."""

    def make(rng: Rng, events: list[Event]) -> bytes:
        copy = json.loads(json.dumps(events))
        target = copy[rng.integers(len(copy))]
        *steps, last = path.split(".")
        for step in steps:
            target = target[int(step) if isinstance(target, list) else step]
        del target[int(last) if isinstance(target, list) else last]
        return joined(lines(copy))

    return make


def twice(key: str) -> Callable[[Rng, list[Event]], bytes]:
    """A key twice in one event, with another value."""

    def make(rng: Rng, events: list[Event]) -> bytes:
        listed, row = lines(events), int(rng.integers(len(events)))
        other = {"a": events[row]["a"][::-1], "p": events[row]["p"][::-1]}.get(key, 0.125)
        listed[row] = f'{{"{key}": {json.dumps(other)}, {listed[row][1:]}'
        return joined(listed)

    return make


def line_wise(change: Callable[[Rng, list[str]], Any]) -> Callable[[Rng, list[Event]], bytes]:
    """Lines changed in place, or others."""

    def make(rng: Rng, events: list[Event]) -> bytes:
        listed = lines(events)
        changed = change(rng, listed)
        return joined(changed if isinstance(changed, list) else listed)

    return make


def place(rng: Rng, listed: list[str]) -> int:
    return int(rng.integers(len(listed)))


def changed_line(rng: Rng, listed: list[str], change: Callable[[str], str]) -> list[str]:
    at = place(rng, listed)
    return [change(line) if row == at else line for row, line in enumerate(listed)]


def value_wise(
    key: str, change: Callable[[Any], Any], everywhere: bool = False
) -> Callable[[Rng, list[Event]], bytes]:
    """The value of a key changed in one event, or in all."""

    def make(rng: Rng, events: list[Event]) -> bytes:
        copy, row = json.loads(json.dumps(events)), int(rng.integers(len(events)))
        for number, event in enumerate(copy):
            if everywhere or number == row:
                event[key] = change(event[key])
        return joined(lines(copy))

    return make


EVENTS: dict[str, Callable[[Rng, list[Event]], bytes]] = {
    **{f"somewhere {raw:.24}": some_path(raw) for raw in RAW},
    **{
        f"{path} is {raw:.12}": at_path(path, raw)
        for path in KEYS
        for raw in ('"x"', "[[]]", "NaN", "1" * 400)
    },
    **{f"no {path}": without(path) for path in KEYS if path != "pdrop"},
    **{f"{key} twice": twice(key) for key in ("_label_cost", "a", "p", "_label_probability")},
    "p in percent": value_wise("p", lambda p: [100 * value for value in p]),
    "p does not sum to 1": value_wise("p", lambda p: [*p[:-1], p[-1] + 0.01]),
    "p negative": value_wise("p", lambda p: [-p[0], *p[1:-1], p[-1] + 2 * p[0]]),
    "p in another order": value_wise("p", lambda p: p[::-1]),
    "p too short": value_wise("p", lambda p: p[:-1]),
    "a from 0": value_wise("a", lambda a: [place - 1 for place in a]),
    "a repeats": value_wise("a", lambda a: [a[0]] * len(a)),
    "a in another order": value_wise("a", lambda a: a[::-1]),
    "cost as text": value_wise("_label_cost", str),
    "cost as reward": value_wise("_label_cost", lambda cost: -cost),
    "all costs huge": value_wise("_label_cost", lambda cost: 1e308, True),
    "a line twice": line_wise(lambda rng, n: [*n, n[place(rng, n)]]),
    "a line lost": line_wise(lambda rng, n: n.pop(place(rng, n))),
    "a line cut": line_wise(lambda rng, n: changed_line(rng, n, lambda line: line[: len(line) // 2])),
    "two events on one line": line_wise(lambda rng, n: [n[0] + " " + n[1], *n[2:]]),
    "two events on one line, with a comma": line_wise(lambda rng, n: [n[0] + "," + n[1], *n[2:]]),
    "a comma behind": line_wise(lambda rng, n: changed_line(rng, n, lambda line: line + ",")),
    "a comment": line_wise(lambda rng, n: ["# events", *n]),
    "a JSON array": lambda rng, events: json.dumps(events).encode(),
    "a JSON array over lines": lambda rng, events: json.dumps(events, indent=1).encode(),
    "events over lines": lambda rng, events: "\n".join(json.dumps(e, indent=1) for e in events).encode(),
    "a line is a number": line_wise(lambda rng, n: changed_line(rng, n, lambda line: "7")),
    "a line is a list": line_wise(lambda rng, n: changed_line(rng, n, lambda line: f"[{line}]")),
    "a line is text": line_wise(lambda rng, n: changed_line(rng, n, json.dumps)),
    "a late outcome": line_wise(lambda rng, n: [*n, '{"EventId": "e0", "RewardValue": 1.0}']),
    "Python's own text": lambda rng, events: "\n".join(map(repr, events)).encode(),
    "keys without quotes": line_wise(
        lambda rng, n: changed_line(rng, n, lambda line: line.replace('"a"', "a"))
    ),
    "keys in capitals": line_wise(
        lambda rng, n: changed_line(rng, n, lambda line: line.replace('"p"', '"P"'))
    ),
    "newlines of old Macs": lambda rng, events: joined(lines(events)).replace(b"\n", b"\r"),
    "no lines": line_wise(lambda rng, n: n.clear()),
    "blank lines alone": lambda rng, events: b"\n \n\t\n",
    "a line with _skipLearn": line_wise(
        lambda rng, n: changed_line(rng, n, lambda line: line[:-1] + ', "_skipLearn": true}')
    ),
    "a line with an odd _skipLearn": line_wise(
        lambda rng, n: changed_line(rng, n, lambda line: line[:-1] + ', "_skipLearn": 1}')
    ),
    "all lines with _skipLearn": line_wise(
        lambda rng, n: [line[:-1] + ', "_skipLearn": true}' for line in n]
    ),
    "_a for a": line_wise(lambda rng, n: changed_line(rng, n, lambda line: line.replace('"a"', '"_a"'))),
    "one pdrop": value_wise("_label_cost", lambda cost: cost),
}

HARMLESS: dict[str, Callable[[Rng, list[Event]], bytes]] = {
    "as it is": line_wise(lambda rng, n: n),
    "ASCII": lambda rng, events: "\n".join(map(json.dumps, events)).encode(),
    "blank lines between": line_wise(lambda rng, n: [line for one in n for line in (one, "", " ")]),
    "blanks around": line_wise(lambda rng, n: [f"  {line}\t" for line in n]),
    "keys in another order": line_wise(
        lambda rng, n: [json.dumps(dict(reversed(json.loads(line).items()))) for line in n]
    ),
    "a line separator in a value": line_wise(
        lambda rng, n: [line.replace("model", "mo\u2028d\u0085el") for line in n]
    ),
    "one line": line_wise(lambda rng, n: n[:1]),
    "a line more with _skipLearn": line_wise(
        lambda rng, n: [n[0], '{"_skipLearn": true, "c": "left"}', *n[1:]]
    ),
    "_skipLearn is false": line_wise(lambda rng, n: [line[:-1] + ', "_skipLearn": false}' for line in n]),
    "more keys": line_wise(
        lambda rng, n: [line.replace('"VWState"', '"more": [1, {}], "VWState"') for line in n]
    ),
}


class Unclear(Exception):
    """JSON that readers differ about."""


def parse(line: str) -> Any:
    """Strict JSON: no key twice, no NaN; whole numbers of more digits than Python reads are infinite."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise Unclear("a key twice")
        return dict(pairs)

    def refuse(text: str) -> Any:
        raise Unclear(text)

    def whole(digits: str) -> float:
        return int(digits) if len(digits) < 400 else float("inf")

    return json.loads(line, object_pairs_hook=once, parse_constant=refuse, parse_int=whole)
