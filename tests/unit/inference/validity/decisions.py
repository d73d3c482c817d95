"""Prints what is decided for many logs and methods, as JSON; with ``scrambled``, under other sentences.

Scrambled: every string of five words or more in `adaptinf.claims` and `adaptinf.inference`, the texts of
refusals, notes, reasons and cautions, is replaced by letters as its module is loaded.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import random
import string
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

PACKAGES = ("adaptinf.claims", "adaptinf.inference")
WORDS = 5
count = 0


class Scramble(ast.NodeTransformer):
    """Other words in the place of sentences; names of methods, by which their place is asked, stay."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return node if getattr(node.func, "id", "") == "Order" else self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        node.value = self.visit(node.value)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        global count
        if isinstance(node.value, str) and len(node.value.split()) >= WORDS:
            count += 1
            letters = random.Random(count).choices(string.ascii_lowercase, k=12)
            return ast.copy_location(ast.Constant("zqx " + "".join(letters)), node)
        return node


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with its sentences scrambled."""

    def get_code(self, fullname: str) -> types.CodeType:
        tree = Scramble().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Takes over the modules of these packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PACKAGES):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(fullname, spec.loader.path)
        return spec


if "scrambled" in sys.argv[1:]:
    sys.meta_path.insert(0, Finder())

import numpy as np  # noqa: E402

import adaptinf as ai  # noqa: E402
from adaptinf.errors import InvalidForLog, ParameterError  # noqa: E402
from adaptinf.log import LogArrays  # noqa: E402

ROUNDS = 240
found: dict[str, Any] = {}
words: list[str] = []


def logs() -> dict[str, ai.AdaptiveLog]:
    """Logs of designs and of other origin, small enough that nothing is compiled for their analysis."""
    rng = np.random.default_rng(5)
    action = rng.integers(0, 2, ROUNDS)
    site, age = rng.integers(0, 2, ROUNDS), rng.normal(size=ROUNDS)
    reward = rng.binomial(1, np.where(action == 1, 0.6, 0.4)).astype(float)
    share = np.where(site == 1, 0.7, 0.4)
    chosen = np.where(action == 1, share, 1.0 - share)
    every = np.column_stack([1.0 - share, share])
    half = np.full((ROUNDS, 2), 0.5)
    contexts = {"site": site, "age": age}
    batch = np.arange(ROUNDS) // 40
    guarantee = ai.PrivacyGuarantee(0.02, unit="reward")

    def made(arrays: LogArrays, **metadata: Any) -> ai.AdaptiveLog:
        return ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0), **metadata)

    bare = LogArrays(action, reward, batch=batch)
    moved = LogArrays(action, reward, chosen, every, batch=batch, context=contexts)
    coin = LogArrays(action, reward, half[:, 0], half, batch=batch, context=contexts)
    thompson, ucb, ols = ai.designs.Thompson(floor=(0.3, 0.5)), ai.designs.UCB(), ai.designs.LinUCB()
    return {
        "bare": made(bare),
        "private": made(bare, guarantee=guarantee),
        "ucb": made(bare, design=ucb.record()),
        "thompson": made(LogArrays(action, reward, chosen, every), design=thompson.record()),
        "chosen": made(LogArrays(action, reward, chosen)),
        "moved": made(moved),
        "estimated": made(moved, propensity_status="estimated"),
        "said": made(moved, context_free=True),
        "coin": made(coin),
        "uniform": made(coin, design=ai.designs.Uniform().record()),
        "linear": made(LogArrays(action, reward, context=contexts), design=ols.record()),
        "units": ai.AdaptiveLog(
            made(moved).frame.assign(unit=np.arange(ROUNDS) // 4),
            action="action",
            reward="reward",
            propensity="propensity",
            context=["site", "age"],
            unit="unit",
        ),
    }


def shown(result: Any) -> dict[str, Any]:
    """A result's decisions and numbers."""
    low_high = np.asarray(result.conf_int(0.05), dtype=float)
    return {
        "decision": result.validity,
        "estimator": result.estimator,
        "weights": result.weights,
        "corrected": result.correction is not None,
        "low_high": np.round(low_high, 10).tolist(),
        "private": result.private,
    }


def decide(key: str, call: Callable[[], Any], show: Callable[[Any], Any] = shown) -> Any:
    """Note what a call decides; its texts go into the words."""
    try:
        value = call()
    except (InvalidForLog, ParameterError) as error:
        words.append(str(error))
        offered = len(getattr(error, "alternatives", ()))
        found[key] = {"decision": type(error).__name__, "offered": offered}
        return None
    words.extend(getattr(value, "notes", ()))
    found[key] = show(value)
    return value


def rows(table: Any) -> dict[str, Any]:
    """Labels, calls and order of a table of methods."""
    return {"decision": "table", "rows": [[one.verdict.label, one.call] for one in table.methods]}


def decide_all(name: str, log: ai.AdaptiveLog) -> None:
    """Every model and method on one log."""
    contrast = {"treatment": "b", "control": "a"}
    fits = {}
    for estimator in (None, "sample-mean", "ipw", "aipw", "alee"):
        for weights in (None, "sqrt", "two-point") if estimator == "aipw" else (None,):
            key = f"{name} {estimator} {weights}"
            fits[key] = decide(f"means {key}", lambda e=estimator, w=weights: ai.ArmMeans(log).fit(e, w))
    for estimator in (None, "batched", "sample-mean"):
        decide(f"contrast {name} {estimator}", lambda e=estimator: ai.Contrast(log, **contrast).fit(e))
    for adjustment in (
        None,
        "none",
        "max-information",
        "w-decorrelation",
        "batched",
        "weighted",
        "ellipsoid",
    ):
        decide(
            f"ols {name} {adjustment}",
            lambda a=adjustment: ai.AdaptiveOLS(log).fit(*([] if a is None else [a])),
        )
    for estimator in (None, "difference-in-means", "aipw"):
        decide(f"cate {name} {estimator}", lambda e=estimator: ai.CATE(log, by="site", **contrast).fit(e))
    decide(f"policy {name}", lambda: ai.PolicyValue(log, {"a": 0.5, "b": 0.5}).fit())
    for method in ("betting", "asymptotic"):
        decide(
            f"sequence {name} {method}",
            lambda m=method: ai.ConfidenceSequence(log, target="arm-means").fit(method=m),
            lambda result: {"decision": result.validity},
        )
    for target in ("arm-means", "contrast"):
        decide(f"recommend {name} {target}", lambda t=target: ai.recommend(log, t), rows)
    decide(f"recommend {name} stopped", lambda: ai.recommend(log, stopping="data-chosen"), rows)
    known = {key: value for key, value in fits.items() if value is not None}
    if known:
        table = ai.compare(known).to_frame()
        found[f"compare {name}"] = {"decision": "table", "labels": table["label"].tolist()}
    for key, value in known.items():
        decide(
            f"joint {key}",
            lambda v=value: v.conf_int_simultaneous(),
            lambda limits: {"decision": "limits", "shape": list(np.shape(limits))},
        )


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, log in logs().items():
            decide_all(name, log)
    found["sentences"], found["words"] = count, " ".join(words)
    print(json.dumps(found))  # noqa: T201
