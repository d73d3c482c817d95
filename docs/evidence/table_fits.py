"""Default fits of every model on logs of many kinds, rows and sums, private and live; names are long."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import adaptinf as ai
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.results import Results

NAMES = ("checkout, one page 2", "checkout, two pages_", "the control of old..", "a fourth & last page")


def frame(n_arms: int, rounds: int, *, binary: bool, seed: int) -> pd.DataFrame:
    """Shares that move by batch, plain NumPy; columns version, click, batch, segment, age, visitor, p_*."""
    rng = np.random.default_rng(seed)
    share, rows = np.full(n_arms, 1.0 / n_arms), []
    for batch in range(10):
        size = rounds // 10
        arm = rng.choice(n_arms, size, p=share)
        level = 0.2 + 0.1 * arm
        reward = rng.binomial(1, level).astype(float) if binary else rng.normal(level, 1.0)
        rows.append(pd.DataFrame({"version": [NAMES[k] for k in arm], "click": reward, "batch": batch}))
        rows[-1][[f"p_{name}" for name in NAMES[:n_arms]]] = share
        tilt = np.exp(0.3 * rng.normal(size=n_arms))
        share = 0.1 + (1.0 - 0.1 * n_arms) * tilt / tilt.sum()
    found = pd.concat(rows, ignore_index=True)
    found["segment"] = rng.choice(["new", "returning"], len(found))
    found["age"] = rng.normal(40.0, 10.0, len(found)).round(1)
    found["visitor"] = rng.integers(0, len(found) // 2, len(found))
    return found


def read(data: pd.DataFrame, *, known: bool = True, **options: Any) -> ai.AdaptiveLog:
    arms = [name for name in NAMES if (data["version"] == name).any()]
    given = {"propensities": {name: f"p_{name}" for name in arms}} if known else {}
    return ai.AdaptiveLog(data, action="version", reward="click", **given, **options)


@cache
def log(name: str) -> Any:
    two, four = frame(2, 1000, binary=True, seed=1), frame(4, 1200, binary=False, seed=2)
    if name == "two arms":
        return read(two, batch="batch", context=["segment"], stopping="fixed")
    if name == "four arms":
        return read(four, batch="batch", context=["age"])
    if name == "nothing known":
        return read(two, known=False)
    if name == "plain test":
        return read(two, known=False, adaptive=False)
    if name == "units":
        return read(two, unit="visitor")
    if name == "missing":
        return read(two.assign(click=two["click"].mask(two.index % 7 == 0)), missing="drop")
    if name == "peeked":
        return read(two, stopping="data-chosen")
    if name == "few":
        return read(two.iloc[:40])
    if name == "sums":
        return ai.aggregate(
            four, action="version", reward="click", batch="batch", propensities={n: f"p_{n}" for n in NAMES}
        )
    if name == "sums of groups":
        return ai.aggregate(
            two,
            action="version",
            reward="click",
            batch="batch",
            propensities={n: f"p_{n}" for n in NAMES[:2]},
            by="segment",
        )
    arms = ai.environments.BernoulliArms([0.3, 0.5])
    if name == "private":
        return ai.designs.PrivateUCB(epsilon=1.0).run(arms, horizon=2_000, rng=0)
    if name == "live":
        session = ai.designs.PrivateUCB(epsilon=5.0).session(2, 300, noise="release")
        rng = np.random.default_rng(0)
        for _ in range(300):
            decision = session.assign()
            session.record(decision.id, float(rng.random() < (0.3, 0.5)[decision.arm]))
        return session.log()
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.3, 0.5], [0.4, 0.4]])
    return ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=20_000, rng=5)


def pair(log: Any) -> dict[str, Any]:
    return {"treatment": log.arms[1], "control": log.arms[0]}


MODELS: dict[str, Callable[[Any], Any]] = {
    "means": lambda log: ai.ArmMeans(log).fit(),
    "naive means": lambda log: ai.ArmMeans(log).fit("sample-mean"),
    "contrast": lambda log: ai.Contrast(log, **pair(log)).fit(),
    "naive contrast": lambda log: ai.Contrast(log, **pair(log)).fit("sample-mean"),
    "contrasts": lambda log: ai.Contrasts(log, control=log.arms[0]).fit(),
    "winner": lambda log: ai.Winner(log).fit(),
    "lead": lambda log: ai.Winner(log, control=log.arms[0]).fit(),
    "sequence": lambda log: ai.ConfidenceSequence(log).fit(),
    "regression": lambda log: ai.AdaptiveOLS(log).fit(),
    "policy": lambda log: ai.PolicyValue(log, {"first": log.arms[0], "last": log.arms[-1]}).fit(),
    "policies": lambda log: ai.PolicyContrast(log, log.arms[-1], baseline=log.arms[0]).fit(),
    "by segment": lambda log: ai.CATE(log, by="segment", **pair(log)).fit(),
    "by feature": lambda log: ai.CATE(log, by="feature", **pair(log)).fit(),
    "released": lambda log: ai.CATE(log, by="feature", **pair(log)).fit("released"),
}
LOGS = (
    *("two arms", "four arms", "nothing known", "plain test", "units", "missing", "peeked", "few", "sums"),
    *("sums of groups", "private", "live", "conse"),
)


@cache
def fits() -> dict[str, Results]:
    """Every fit that the logs allow."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        for name in LOGS:
            for model, fit in MODELS.items():
                with contextlib.suppress(InvalidForLog, ParameterError):
                    found[f"{name}, {model}"] = fit(log(name))
    return found


WARNED = ("Caution", "Missing")
"""Labels of lines that are printed whole."""


def below(text: str) -> dict[str, list[str]]:
    """Lines under a table, by label."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in text[text.rindex("=" * 70) :].splitlines()[1:]:
        label = line[:10].strip() or label
        found.setdefault(label, []).append(line[10:])
    return found
