"""The eight reports that the evidence on reports looks at, made with fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import adaptinf as ai

LONG = (
    "Checkout page with one column, large pictures, free returns and a short form, sent at noon",
    "Checkout page with two columns, small pictures, free returns and a long form, sent at eight",
    "Checkout page with one column, no pictures, paid returns and a short form, sent in the night",
    "Checkout page as it has always been, with two columns, a long form and a banner, for control",
)

Example = tuple[Any, dict[str, Any]]
"""What a report is of, and its other arguments."""


def ab_test() -> Example:
    """Two arms with propensities of one half."""
    rng = np.random.default_rng(11)
    arm = rng.choice(["A", "B"], 6_000)
    bought = (rng.random(6_000) < np.where(arm == "B", 0.135, 0.115)).astype(float)
    frame = pd.DataFrame({"page": arm, "bought": bought, "p": 0.5})
    log = ai.AdaptiveLog(frame, action="page", reward="bought", propensity="p", adaptive=False)
    return ai.Contrast(log, treatment="B", control="A").fit(), {"log": log, "title": "Checkout test, week 47"}


def thompson() -> Example:
    """Four arms, with intervals that hold at once."""
    arms = ai.environments.BernoulliArms([0.10, 0.11, 0.13, 0.16])
    log = ai.designs.Thompson(floor=0.1).run(arms, horizon=8_000, rng=2)
    return ai.ArmMeans(log).fit(), {"log": log, "adjust": "max-t", "title": "Four landing pages"}


def sixty_arms() -> Example:
    """Sixty arms against the first."""
    means = np.random.default_rng(5).normal(0.30, 0.05, 60)
    arms = ai.environments.BernoulliArms(np.clip(means, 0.1, 0.6).tolist())
    log = ai.designs.EpsilonGreedy(exploration=0.6).run(arms, horizon=30_000, rng=3)
    return ai.Contrasts(log, control=0).fit(), {"log": log, "title": "Sixty headlines"}


def long_names() -> Example:
    """Arms whose names have about ninety characters."""
    rng = np.random.default_rng(7)
    arm = rng.integers(0, 4, 4_000)
    bought = (rng.random(4_000) < np.array([0.12, 0.14, 0.11, 0.10])[arm]).astype(float)
    frame = pd.DataFrame({"arm": np.array(LONG)[arm], "y": bought, "p": 0.25})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", adaptive=False)
    result = ai.Contrasts(log, control=LONG[-1]).fit()
    return result, {"log": log, "title": "Four checkout pages, by their full names"}


def private_trial() -> Example:
    """A private trial with releases, and its raw numbers in the frame."""
    groups = ai.environments.BernoulliArms([0.30, 0.42])
    log = ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=8_000, rng=4)
    result = ai.Contrast(log, treatment=1, control=0).fit()
    return result, {"log": log, "title": "A letter or a call"}


def sums() -> Example:
    """Sums by batch, without rows."""
    arms = ai.environments.BernoulliArms([0.10, 0.12, 0.15])
    rows = ai.designs.Thompson(floor=0.1, batch_size=500).run(arms, horizon=10_000, rng=6)
    total = ai.Sums.of_log(rows)
    return ai.Contrasts(total, control=0).fit(), {"log": total, "title": "Three pages, by day"}


def covariates() -> Example:
    """A difference by assigned arm, adjusted for a covariate."""
    rng = np.random.default_rng(1)
    x, assigned = rng.normal(size=800), rng.choice(["control", "letter"], 800)
    received = np.where(rng.random(800) < 0.05, "control", assigned)
    chance = 1 / (1 + np.exp(-(-0.5 + 0.6 * (received == "letter") + 0.8 * x)))
    answered = (rng.random(800) < chance).astype(float)
    columns = {"assigned": assigned, "arm": received, "y": answered, "age": x, "pc": 0.5, "pl": 0.5}
    log = ai.AdaptiveLog(
        pd.DataFrame(columns),
        action="arm",
        assigned="assigned",
        reward="y",
        propensities={"control": "pc", "letter": "pl"},
        context="age",
        reward_range=(0, 1),
        about={"context_free": True},
    )
    result = ai.Contrast(log, treatment="letter", control="control").fit("aipw", covariate="age")
    return result, {"log": log, "title": "A letter to 800 households", "checklist": "consort"}


def cautioned() -> Example:
    """Propensities that the choices contradict, few outcomes, and a trial that somebody ended."""
    rng = np.random.default_rng(9)
    arm = rng.choice(["call", "letter"], 600, p=[0.3, 0.7])
    answered = (rng.random(600) < np.where(arm == "letter", 0.02, 0.05)).astype(float)
    frame = pd.DataFrame({"arm": arm, "y": answered, "p": 0.5})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", stopping="data-chosen")
    result = ai.Contrast(log, treatment="letter", control="call").fit("aipw")
    return result, {"log": log, "title": "A letter or a call, ended early"}


EXAMPLES: dict[str, Callable[[], Example]] = {
    "A/B test": ab_test,
    "Thompson, max-t": thompson,
    "60 arms": sixty_arms,
    "90-character names": long_names,
    "private trial": private_trial,
    "sums": sums,
    "covariates": covariates,
    "cautions": cautioned,
}


def written(folder: Path) -> dict[str, tuple[Any, dict[str, Any], Path]]:
    """Write each report in full and on one page; what it is of, its arguments, and the file in full."""
    found = {}
    for place, (name, make) in enumerate(EXAMPLES.items(), start=1):
        result, arguments = make()
        path = folder / f"report{place}.html"
        ai.report(result, path, **arguments)
        short = {name: value for name, value in arguments.items() if name != "checklist"}
        ai.report(result, folder / f"brief{place}.html", brief=True, **short)
        found[name] = (result, arguments, path)
    return found
