"""The ways in and out: the command line, files of other formats, and logs that are stored and read again."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from net_book import Book, packed
from net_logs import designs, environments, foreign_logs, frame
from net_runs import log_facts

import adaptinf as ai
from adaptinf.log.validation import nested_options

COLUMNS = ("--action", "arm", "--reward", "y")
EVERY = ("--propensities", "a=pa,b=pb,c=pc")
PAIR = ("--treatment", "c", "--control", "a")
FORMATS = ("text", "markdown", "latex", "html", "csv", "json")


def record_doors(book: Book) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        book.places[str(place)] = "<TEMP>"
        _record_commands(book, place)
        _record_formats(book, place)
        _record_round_trips(book, place)


def command(*arguments: str) -> dict[str, Any]:
    """Exit code, output and errors of ``python -m adaptinf`` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["adaptinf", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("adaptinf", run_name="__main__", alter_sys=False)
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def _record_commands(book: Book, place: Path) -> None:
    plain, broken, own = place / "plain.csv", place / "broken.csv", place / "own.csv"
    frame().to_csv(plain, index=False)
    frame().assign(y="much", p=2.0).to_csv(broken, index=False)
    private = ai.designs.PrivateUCB(epsilon=1.0).run(environments()["two"], 100, rng=1)
    private.to_csv(own)
    private.to_parquet(place / "own.parquet")
    known = (*COLUMNS, *EVERY)
    lines: dict[str, tuple[str, ...]] = {
        "nothing": (),
        "version": ("--version",),
        "unknown command": ("estimate",),
        "validate": ("validate", str(plain), *COLUMNS),
        "validate all": (
            "validate",
            str(plain),
            *known,
            "--batch",
            "batch",
            "--unit",
            "unit",
            "--context",
            "site",
        ),
        "validate own": ("validate", str(own)),
        "validate parquet": ("validate", str(place / "own.parquet")),
        "validate broken": ("validate", str(broken), *COLUMNS, "--propensity", "p"),
        "validate nowhere": ("validate", str(place / "nowhere.csv")),
        "validate no columns": ("validate", str(plain)),
        "analyze broken": ("analyze", str(broken), *COLUMNS),
        "analyze own": ("analyze", str(own)),
        "analyze own latex": ("analyze", str(place / "own.parquet"), "--format", "latex"),
        "analyze epsilon": ("analyze", str(plain), *COLUMNS, "--epsilon", "0.1", "--reward-range", "0", "1"),
        "analyze level": ("analyze", str(plain), *known, "--alpha", "0.2"),
        "analyze wrong level": ("analyze", str(plain), *known, "--alpha", "2"),
        "analyze batched": (
            "analyze",
            str(plain),
            *known,
            *PAIR,
            "--batch",
            "batch",
            "--estimator",
            "batched",
        ),
        "analyze output": ("analyze", str(plain), *known, "--output", str(place / "out.txt")),
        "demo": ("demo", "--rng", "3", "--report", str(place / "late.html")),
        "demo wrong": ("demo", "--rng", "-3"),
    }
    for name in ("", "validate", "analyze", "demo"):
        lines[f"help {name}"] = tuple(part for part in (name, "--help") if part)
    for estimator in ("sample-mean", "ipw", "aipw", "alee", "median"):
        lines[f"analyze {estimator}"] = ("analyze", str(plain), *known, "--estimator", estimator)
        lines[f"analyze unknown {estimator}"] = ("analyze", str(plain), *COLUMNS, "--estimator", estimator)
    for form in FORMATS:
        lines[f"analyze means {form}"] = ("analyze", str(plain), *known, "--format", form)
        lines[f"analyze pair {form}"] = ("analyze", str(plain), *known, *PAIR, "--format", form)
        groups = ("--context", "site", "--by", "site", "--estimator", "aipw")
        lines[f"analyze groups {form}"] = ("analyze", str(plain), *known, *PAIR, *groups, "--format", form)
        lines[f"analyze own {form}"] = ("analyze", str(own), "--format", form)
    for name, arguments in lines.items():
        book.add(f"command | {name}", lambda a=arguments: command(*a))


def _record_formats(book: Book, place: Path) -> None:
    f = ai.formats
    for policy in ("bts", "random"):
        folder = _bandit_folder(place, policy)
        for options in ({}, {"position": 1}, {"affinities": True}, {"position": 9}):
            book.add(
                f"format | bandit {policy} {options}",
                lambda p=folder, o=options: log_facts(f.read_open_bandit(p, **o)),
            )
    book.add("format | bandit nowhere", lambda: f.read_open_bandit(place / "nowhere"))
    (place / "log.dsjson").write_text("\n".join(json.dumps(one) for one in _events()))
    (place / "bad.dsjson").write_text('{"_label_cost": 1}\nno json\n')
    path = place / "log.dsjson"
    readers: dict[str, dict[str, Any]] = {"named": {"action_id": "article.id"}, "places": {"context": "hour"}}
    readers |= {"ranged": {"reward_range": (-1.0, 1.0)}, "no such": {"context": ["height"]}}
    for name, options in readers.items():
        book.add(f"format | dsjson {name}", lambda o=options: log_facts(f.read_dsjson(path, **o)))
    book.add("format | dsjson bad", lambda: f.read_dsjson(place / "bad.dsjson"))
    _record_adam(book)


def _bandit_folder(place: Path, policy: str) -> Path:
    folder = place / policy / "men"
    folder.mkdir(parents=True)
    stamps = ["00:00:20.5", "00:00:17", "00:00:20.5", "00:01:00"]
    data: dict[str, Any] = {
        "timestamp": [f"2019-11-24 {stamp}+00:00" for stamp in stamps],
        "item_id": [2, 0, 1, 2],
        "position": [1, 3, 2, 1],
        "click": [1, 0, 0, 1],
        "propensity_score": [0.25, 0.5, 1e-6, 0.125],
        "user_feature_0": ["x", "y", "x", "x"],
        "user-item_affinity_0": [0.0, 1.5, 0.0, 0.25],
    }
    pd.DataFrame(data).to_csv(folder / "men.csv")
    pd.DataFrame({"item_id": [0, 1, 2, 3]}).to_csv(folder / "item_context.csv")
    return folder


def _events() -> list[dict[str, Any]]:
    """Three decisions between three articles."""
    articles = [{"article": {"id": name}} for name in ("news", "sport", "art")]
    events = []
    for played, cost, chances in (
        (2, -1.0, (0.1, 0.7, 0.2)),
        (1, 0.25, (0.5, 0.25, 0.25)),
        (3, 0.0, (0.2, 0.2, 0.6)),
    ):
        ranking = [played, *(place for place in (1, 2, 3) if place != played)]
        events.append(
            {
                "_label_cost": cost,
                "_label_probability": chances[played - 1],
                "_label_Action": played,
                "_labelIndex": played - 1,
                "Version": "1",
                "a": ranking,
                "p": [chances[place - 1] for place in ranking],
                "c": {"hour": 7, "user": {"age": 30.5, "new": True, "tags": [1, 2]}, "_multi": articles},
            }
        )
    return events


def _record_adam(book: Book) -> None:
    adsl = pd.DataFrame(
        {
            "USUBJID": ["s3", "s1", "s2", "s4", "s5"],
            "ITTFL": ["Y", "Y", "Y", "Y", "N"],
            "TRT01P": ["Drug", "Placebo", "Drug", "Drug", "Drug"],
            "TRT01A": ["Drug", "Placebo", "Drug", "Placebo", "Drug"],
            "RANDNUM": [3, 1, 2, 4, 5],
            "STAGE": [1, 1, 1, 2, 2],
            "AGE": [50.0, 61.0, 47.0, 70.0, 33.0],
            "PROB": [0.5, 0.5, 0.5, 0.75, 0.75],
        }
    )
    rows = [("s1", "RESP", 8, 0.0), ("s2", "RESP", 8, 1.0), ("s3", "RESP", 8, 0.5), ("s4", "RESP", 8, 1.0)]
    analysis = pd.DataFrame(rows, columns=["USUBJID", "PARAMCD", "AVISITN", "AVAL"])
    usual: dict[str, Any] = {"parameter": "RESP", "order": "RANDNUM"}
    table = pd.DataFrame({"STAGE": [2, 1], "Placebo": [0.25, 0.5], "Drug": [0.75, 0.5]})
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "column": {"propensity": "PROB", "covariates": ["AGE"], "batch": "STAGE"},
        "table": {"propensity": table, "batch": "STAGE"},
        "numbers": {"propensity": {"Placebo": 0.25, "Drug": 0.75}, "reward_range": (0.0, 1.0)},
        "actual": {"treatment": "actual"},
        "everybody": {"population": None},
        "wrong": {"treatment": "other", "covariates": ["HEIGHT"], "propensity": {"Placebo": 1.0}},
    }
    for name, options in ways.items():
        given = {**usual, **options}
        book.add(
            f"format | adam {name}", lambda g=given: log_facts(ai.formats.read_adam(adsl, analysis, **g))
        )


def _record_round_trips(book: Book, place: Path) -> None:
    """Logs as parquet and as CSV, read again: equal or not, and what they hold."""
    every, places = designs(), environments()
    makers: dict[str, Callable[[], Any]] = dict(foreign_logs())
    for name in (
        "uniform",
        "private ucb hybrid corrected",
        "linpriv",
        "conse",
        "dpbai",
        "ldp bandit",
        "mixture of ucb",
    ):
        design, env, horizon = every[name]
        makers[f"of {name}"] = lambda d=design, e=env, h=horizon: d.run(places[e], h, rng=1)
    for number, (name, make) in enumerate(makers.items()):
        for ending in ("parquet", "csv"):
            path = place / f"log{number}.{ending}"
            book.add(f"trip | {name} | {ending}", lambda make=make, path=path: _trip(make(), path))
    for title, options in _wrong_frames().items():
        book.add(f"log | {title}", lambda o=options: log_facts(ai.AdaptiveLog(**nested_options(o))))


def _trip(log: Any, path: Path) -> dict[str, Any]:
    getattr(log, f"to_{path.suffix[1:]}")(path)
    again = ai.read_log(path)
    return {"equal": again.equals(log), "facts": log_facts(again), "columns": packed(list(log.frame.columns))}


def _wrong_frames() -> dict[str, dict[str, Any]]:
    usual: dict[str, Any] = {"action": "arm", "reward": "y"}
    data = frame(40)
    return {
        "no such column": {"frame": data, "action": "arm", "reward": "z", "batch": "b"},
        "missing rewards": {"frame": data.assign(y=np.where(data["x"] > 1, np.nan, 1.0)), **usual},
        "text rewards": {"frame": data.assign(y="1"), **usual},
        "propensities beyond one": {"frame": data.assign(p=1.2, pa=0.9), **usual, "propensity": "p"},
        "propensities without sum": {
            "frame": data.assign(pa=0.9), **usual, "propensities": {"a": "pa", "b": "pb", "c": "pc"},
        },
        "rewards out of range": {"frame": data, **usual, "reward_range": (0.2, 0.5)},
        "batches in disorder": {"frame": data.assign(batch=[1, 0] * 20), **usual, "batch": "batch"},
        "wrong options": {"frame": data, **usual, "noise": "some", "arms": ["a"]},
        "no frame": {"frame": [1, 2], **usual},
        "empty": {"frame": data.iloc[:0], **usual},
    }  # fmt: skip
