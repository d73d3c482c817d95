"""Slow and literal readings of other people's files: SAS transport, ADaM, Open Bandit and dsjson."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from damage_events import Unclear, parse
from oracle import (
    Content,
    MustRefuse,
    demand,
    is_missing,
    iso_time,
    labels,
    log_content,
    number,
    plain,
    read_csv,
)

Columns = Mapping[str, Sequence[Any]]
_CARD = 80


def read_transport(data: bytes) -> dict[str, list[Any]]:
    """Columns of a SAS transport file of version 5 with one data set; blank text is missing."""
    cards = [data[at : at + _CARD] for at in range(0, len(data), _CARD)]
    heads = ["LIBRARY ", "", "", "MEMBER  ", "DSCRPTR ", "", "", "NAMESTR "]
    demand(len(data) % _CARD == 0 and len(cards) > len(heads) + 1, "no whole cards")
    for card, head in zip(cards, heads, strict=False):
        start = f"HEADER RECORD*******{head}HEADER RECORD!!!!!!!" if head else ""
        demand(card.startswith(start.encode()), f"no {head}header")
    demand(cards[3][74:78] == b"0140" and cards[7][54:58].isdigit(), "odd headers")
    count = int(cards[7][54:58])
    start = 8 * _CARD
    end = start + -(-count * 140 // _CARD) * _CARD
    fields = (
        [struct.unpack(">hhhh8s40s8shhh2s8shhl52s", data[start + 140 * k :][:140]) for k in range(count)]
        if (len(data) >= end + _CARD and count)
        else []
    )
    demand(bool(fields), "no fields")
    demand(data[end:].startswith(b"HEADER RECORD*******OBS     HEADER RECORD!!!!!!!"), "no records")
    length = 0
    for kind, _, size, _, *rest in fields:
        demand(kind in (1, 2) and size > 0 and rest[-2] == length, "an odd field")
        demand(kind == 2 or 2 <= size <= 8, "an odd number")
        length += size
    body = data[end + _CARD :]
    demand(b"HEADER RECORD*******MEMBER " not in body, "two data sets")
    rows = len(body) // length
    while (
        rows
        and not body[(rows - 1) * length : rows * length].strip(b" ")
        and len(body) - (rows - 1) * length < 80
    ):
        rows -= 1
    left = body[rows * length :]
    demand(len(left) < _CARD and not left.strip(b" "), "a record cut")
    names = [field[4].decode("ascii", "replace").strip() for field in fields]
    demand(len(set(names)) == count, "a name twice")
    return {
        name: [entry(body[k * length + field[-2] :][: field[2]], field[0] == 2) for k in range(rows)]
        for name, field in zip(names, fields, strict=True)
    }


def entry(raw: bytes, text: bool) -> Any:
    """A number of IBM's, or text; None where it is missing."""
    if text:
        demand(b"\0" not in raw, "a NUL")
        try:
            return raw.decode("utf-8").rstrip(" ") or None
        except UnicodeDecodeError:
            raise MustRefuse("no UTF-8") from None
    fraction = int.from_bytes(raw[1:].ljust(7, b"\0"), "big")
    if fraction == 0 and raw[0] != 0:
        demand(chr(raw[0]) in "._ABCDEFGHIJKLMNOPQRSTUVWXYZ", "no number")
        return None
    return math.ldexp(fraction, 4 * ((raw[0] & 127) - 64) - 56) * (-1 if raw[0] & 128 else 1)


def adam_content(adsl: Columns, analysis: Columns, options: Mapping[str, Any]) -> Content:
    """The log of a trial, or that it must be refused."""
    keys, records = options["order"], {"PARAMCD": options["parameter"], **options["records"]}
    needed = ["USUBJID", "ITTFL", "TRT01P", "TRT01A", *keys, *options["covariates"], options["propensity"]]
    needed += [options["batch"]] if "batch" in options else []
    demand(all(name in adsl for name in needed), "a column of ADSL")
    demand(
        all(name in analysis for name in ("USUBJID", "AVAL", *records)), "a column of the analysis data set"
    )
    demand(len(adsl["USUBJID"]) > 0, "no subjects")
    everyone = labels(adsl["USUBJID"])
    labels([*everyone, *analysis["USUBJID"]])
    demand(set(analysis["USUBJID"]) <= set(everyone), "a subject that ADSL does not have")
    demand(
        all(
            is_missing(flag) or any(equal(flag, known) for known in ("Y", "N", "")) for flag in adsl["ITTFL"]
        ),
        "a flag",
    )
    chosen = [row for row, flag in enumerate(adsl["ITTFL"]) if equal(flag, "Y")]
    demand(bool(chosen), "nobody")
    outcomes: dict[Any, Any] = {}
    for row, who in enumerate(analysis["USUBJID"]):
        if all(equal(analysis[name][row], wanted) for name, wanted in records.items()):
            demand(who not in outcomes, "two records")
            outcomes[who] = analysis["AVAL"][row]
    places = {}
    for row in chosen:
        demand(everyone[row] in outcomes, "no record")
        demand(everyone.count(everyone[row]) == 1, "a subject twice")
        places[row] = tuple(order_key(adsl[name][row]) for name in keys)
    demand(len(set(places.values())) == len(chosen), "tied")
    try:
        chosen.sort(key=lambda row: places[row])
    except TypeError:
        raise MustRefuse("numbers beside dates") from None
    rounds = {name: [adsl[name][row] for row in chosen] for name in dict.fromkeys(needed)}
    demand(not any(isinstance(arm, str) and not arm.strip() for arm in rounds["TRT01P"]), "no treatment")
    taken = {name: options[name] for name in ("reward_range", "batch") if name in options}
    return log_content(
        {**rounds, "outcome": [outcomes[everyone[row]] for row in chosen]},
        {
            "action": "TRT01P",
            "reward": "outcome",
            "unit": "USUBJID",
            "propensity": options["propensity"],
            "context": options["covariates"],
            **taken,
        },
    )


def equal(value: Any, wanted: Any) -> bool:
    """Whether a scalar is equal to what is wanted; no truth value is a number."""
    value = plain(value)
    return type(value) in (str, int, float) and not is_missing(value) and bool(value == wanted)


def order_key(value: Any) -> Any:
    """A number or a date; other text has no order that is meant."""
    return iso_time(value) if isinstance(value, str) else number(value)


def as_text(columns: dict[str, list[Any]], data: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns of a CSV with identifiers as the text that stands there."""
    return {
        name: data[name] if name in ("USUBJID", "PARAMCD") else values for name, values in columns.items()
    }


def bandit_tables(impressions: bytes, items: bytes) -> list[Columns]:
    """Both files of a campaign; items are text in both where one of them has codes such as 01."""
    hashed = {"user_feature_0": "context"}
    tables = [read_csv(impressions, hashed), read_csv(items)]
    kept = [read_csv(impressions, {"item_id": "label"}), read_csv(items, {"item_id": "label"})]
    if any(table.get("item_id") != other.get("item_id") for table, other in zip(tables, kept, strict=True)):
        return [read_csv(impressions, hashed | {"item_id": "text"}), read_csv(items, {"item_id": "text"})]
    return tables


def bandit_content(impressions: Columns, items: Columns, affinities: bool) -> Content:
    """The log of an Open Bandit campaign."""
    needed = ["timestamp", "item_id", "position", "click", "propensity_score"]
    demand(all(name in impressions for name in needed) and "item_id" in items, "a column")
    times = []
    for value in impressions["timestamp"]:
        demand(isinstance(value, str), "no time")
        times.append(iso_time(value))
    zones = {
        bool(re.search(r"(Z|[+-]\d\d:?\d\d)$", value.strip()[10:])) for value in impressions["timestamp"]
    }
    demand(len(zones) == 1, "times with and without a zone")
    known, shown = labels(items["item_id"]), labels(impressions["item_id"])
    demand(len(set(known)) == len(known), "an item twice")
    demand(all(number(click) in (0.0, 1.0) for click in impressions["click"]), "no click")
    demand(
        {(type(item), item) for item in shown} <= {(type(item), item) for item in known}, "an unknown item"
    )
    order = sorted(range(len(times)), key=lambda row: times[row])
    kinds = ("user_feature_", "user-item_affinity_") if affinities else ("user_feature_",)
    context = ["position", *(name for kind in kinds for name in impressions if name.startswith(kind))]
    return log_content(
        {name: [values[row] for row in order] for name, values in impressions.items()},
        {
            "action": "item_id",
            "reward": "click",
            "propensity": "propensity_score",
            "context": context,
            "reward_range": (0.0, 1.0),
        },
    )


def events_content(data: bytes) -> Content:
    """The log of a dsjson file whose actions are named by article.id."""
    try:
        text = data.decode("utf-8-sig")
        events = [parse(line) for line in re.split("\r\n|\n|\r", text) if line.strip(" \t")]
        json.dumps(events, ensure_ascii=False).encode("utf-8")
    except (ValueError, Unclear, RecursionError) as error:
        raise MustRefuse(str(error)) from None
    for event in events:
        skip = event.get("_skipLearn", False) if isinstance(event, dict) else False
        demand(isinstance(skip, bool), "a skip that is neither true nor false")
    events = [event for event in events if not (isinstance(event, dict) and event.get("_skipLearn"))]
    demand(bool(events), "no events")
    rows = [event_row(event) for event in events]
    first = rows[0]
    for row in rows:
        demand(row["pdrop"] == first["pdrop"], "changing pdrop")
        demand(
            {(type(arm), arm) for arm in row["table"]} == {(type(arm), arm) for arm in first["table"]},
            "other arms",
        )
    kept = [name for name in first["context"] if all(name in row["context"] for row in rows)]
    columns: dict[Any, list[Any]] = {
        name: [row[name] for row in rows] for name in ("action", "reward", "propensity")
    }
    columns |= {("table", arm): [row["table"][arm] for row in rows] for arm in first["table"]}
    columns |= {name: [row["context"][name] for row in rows] for name in kept}
    names = {arm: ("table", arm) for arm in first["table"]}
    options = {"action": "action", "reward": "reward", "propensity": "propensity", "propensities": names}
    return log_content(columns, {**options, "context": kept})


def event_row(event: Any) -> dict[str, Any]:
    """What one event says."""
    demand(isinstance(event, dict) and isinstance(event.get("c"), dict), "no decision")
    actions, ranking, chances = event["c"].get("_multi"), event.get("a"), event.get("p")
    demand(all(isinstance(value, list) and value for value in (actions, ranking, chances)), "no lists")
    demand(all(type(place) is int for place in ranking), "a")
    demand(sorted(ranking) == list(range(1, len(actions) + 1)) and len(chances) == len(ranking), "a and p")
    shares = [number(chance) for chance in chances]
    demand(
        all(0 <= share <= 1 for share in shares) and abs(sum(shares) - 1) <= 1.000001e-6 and shares[0] > 0,
        "p",
    )
    arms = labels([feature(action) for action in actions])
    demand(len(set(arms)) == len(arms), "an action twice")
    played, chance = event.get("_label_Action", ranking[0]), event.get("_label_probability", shares[0])
    demand(type(played) is int and played == ranking[0], "another action")
    demand(abs(number(chance) / shares[0] - 1) <= 1.000001e-6, "another probability")
    drop = event.get("pdrop", 0.0)
    demand(0 <= number(drop) < 1, "pdrop")
    return {
        "action": arms[ranking[0] - 1],
        "reward": -number(event.get("_label_cost")),
        "propensity": shares[0],
        "table": {arms[place - 1]: share for place, share in zip(ranking, shares, strict=True)},
        "context": dict(features(event["c"])),
        "pdrop": drop,
    }


def feature(action: Any) -> Any:
    """The article.id of an action."""
    demand(isinstance(action, dict) and isinstance(action.get("article"), dict), "no article")
    return action["article"].get("id")


def features(shared: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Plain features of a context by their full names."""
    found: list[tuple[str, Any]] = []
    for name, value in shared.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            found += features(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float | str):
            found.append((prefix + name, value))
    return found
