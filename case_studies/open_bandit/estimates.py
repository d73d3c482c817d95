"""Uniform choice's value and items' click rates from a Thompson log, beside the uniform log."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from adaptinf import AdaptiveLog, ArmMeans, ConfidenceSequence, PolicyValue
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from case_studies.open_bandit.facts import ALPHA, DRAWS, weights

__all__ = ["Logs", "item_rows", "pooled_row", "refusals", "self_normalised", "stress_rows", "value_rows"]

TOP = 5
POOLED = 10


class Logs(NamedTuple):
    """The two logs of a campaign."""

    thompson: AdaptiveLog
    uniform: AdaptiveLog


def noticed(fit: Callable[[], Any]) -> tuple[Any, int]:
    """A fit, and how many warnings of ours it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit()
    return result, sum(issubclass(warning.category, AdaptinfWarning) for warning in caught)


def estimates(log: AdaptiveLog) -> dict[str, tuple[float, float, int]]:
    """Value of uniform choice by several estimators: estimate, standard error, warnings."""
    found = {}
    for label, options in {
        "IPW": {"estimator": "ipw"},
        "AIPW": {"estimator": "aipw"},
        "AIPW, ridge on contexts": {"estimator": "aipw", "outcome": "running-ridge"},
    }.items():
        result, warned = noticed(lambda options=options: PolicyValue(log, "uniform").fit(**options))
        found[label] = (float(result.params.iloc[0]), float(result.bse.iloc[0]), warned)
    return found


def self_normalised(reward: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean with its delta-method standard error: a comparator that the library does not offer."""
    mean = np.sum(weight * reward) / weight.sum()
    return float(mean), float(np.sqrt(np.sum((weight * (reward - mean)) ** 2)) / weight.sum())


def value_rows(name: str, logs: Logs) -> pd.DataFrame:
    """Estimates of uniform choice's value from the Thompson log, and what the uniform log says."""
    truth = logs.uniform.arrays.reward
    rate, error = truth.mean(), truth.std() / math.sqrt(truth.size)
    low, high = clopper_pearson(int(truth.sum()), truth.size)
    rows = [("uniform log (truth)", rate, error, low, high, 0)]
    reward = logs.thompson.arrays.reward
    own_low, own_high = clopper_pearson(int(reward.sum()), reward.size)
    rows.append(
        ("click rate as it came", reward.mean(), reward.std() / math.sqrt(reward.size), own_low, own_high, 0)
    )
    quantile = -special.ndtri(ALPHA / 2.0)
    weighted = (*self_normalised(reward, weights(logs.thompson)), 0)
    for label, (value, spread, warned) in {
        **estimates(logs.thompson),
        "self-normalised IPW": weighted,
    }.items():
        rows.append((label, value, spread, value - quantile * spread, value + quantile * spread, warned))
    columns = ["estimator", "estimate", "std_error", "conf_low", "conf_high", "warnings"]
    frame = pd.DataFrame(rows, columns=columns)
    frame.insert(0, "campaign", name)
    frame["z against truth"] = (frame["estimate"] - rate) / np.hypot(frame["std_error"], error)
    frame.loc[0, "z against truth"] = math.nan
    frame["std_error at the uniform rate"] = math.nan
    frame.loc[frame["estimator"] == "IPW", "std_error at the uniform rate"] = expected_error(
        weights(logs.thompson), rate
    )
    return frame


def expected_error(weight: np.ndarray, rate: float) -> float:
    """Standard error that IPW would have if every round were clicked with the same probability."""
    return float(np.sqrt(rate * (1.0 - rate) * np.sum(weight**2)) / weight.size)


def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """Exact binomial interval."""
    found = stats.binomtest(successes, trials).proportion_ci(1.0 - ALPHA, method="exact")
    return float(found.low), float(found.high)


def most_shown(log: AdaptiveLog, count: int) -> np.ndarray:
    """Codes of the arms with most rounds: chosen by the policy's trust, never by this log's clicks."""
    shown = np.bincount(log.arrays.action, minlength=log.n_arms)
    return np.argsort(-shown, kind="stable")[:count]


def item_rows(name: str, logs: Logs) -> pd.DataFrame:
    """Click rates of the most shown items."""
    log = logs.thompson
    codes = most_shown(log, TOP)
    arms = [log.arms[code] for code in codes]
    weighted, _ = noticed(lambda: ArmMeans(log, arms).fit(estimator="aipw", weights="uniform"))
    linear, _ = noticed(lambda: ArmMeans(log, arms).fit(estimator="alee"))
    betting, _ = noticed(lambda: ConfidenceSequence(log, arms=arms).fit("betting", estimator="sample-mean"))
    rows = []
    for place, (code, arm) in enumerate(zip(codes, arms, strict=True)):
        mine = log.arrays.action == code
        theirs = logs.uniform.arrays.action == logs.uniform.arms.index(arm)
        clicks, shown = int(logs.uniform.arrays.reward[theirs].sum()), int(theirs.sum())
        low, high = clopper_pearson(clicks, shown)
        rows.append(
            {
                "campaign": name,
                "item": arm,
                "shown": int(mine.sum()),
                "clicks": int(log.arrays.reward[mine].sum()),
                "sample mean": log.arrays.reward[mine].mean(),
                **bounds("AIPW", weighted, place),
                **bounds("ALEE", linear, place),
                **bounds("betting", betting, place),
                "uniform shown": shown,
                "uniform clicks": clicks,
                "uniform": clicks / shown,
                "uniform low": low,
                "uniform high": high,
            }
        )
    return pd.DataFrame(rows)


def bounds(label: str, result: Any, place: int) -> dict[str, float]:
    """Estimate and interval of one term."""
    low, high = result.conf_int(ALPHA).iloc[place]
    return {label: result.params.iloc[place], f"{label} low": low, f"{label} high": high}


def pooled_row(name: str, logs: Logs) -> dict[str, Any]:
    """Mean click rate of the ten most shown items together: the policy that shows one of them at random."""
    log = logs.thompson
    codes = most_shown(log, POOLED)
    chances = np.zeros(log.n_arms)
    chances[codes] = 1.0 / POOLED
    result, warned = noticed(lambda: PolicyValue(log, chances).fit(estimator="aipw"))
    action, reward = logs.uniform.arrays.action, logs.uniform.arrays.reward
    names = [logs.uniform.arms.index(log.arms[code]) for code in codes]
    shown = np.array([np.sum(action == code) for code in names])
    rate = np.array([reward[action == code].mean() for code in names])
    error = math.sqrt(np.sum(rate * (1.0 - rate) / shown)) / POOLED
    low, high = result.conf_int(ALPHA).iloc[0]
    value, spread = float(result.params.iloc[0]), float(result.bse.iloc[0])
    return {
        "campaign": name,
        "share of the Thompson log": float(np.isin(log.arrays.action, codes).mean()),
        "AIPW": value,
        "AIPW low": low,
        "AIPW high": high,
        "effective sample size": float(result.ess.iloc[0]),
        "warnings": warned,
        "uniform": rate.mean(),
        "uniform std_error": error,
        "z": (value - rate.mean()) / math.hypot(spread, error),
    }


def stress_rows(log: AdaptiveLog) -> pd.DataFrame:
    """The women's log as published, and with another probability or reward in its one extreme round."""
    worst = int(np.argmin(log.arrays.propensity))
    variants = {
        "as published: 1 in 1,000,000": (log.arrays.propensity[worst], 0.0),
        "1 in 200,000, one simulated choice": (1.0 / DRAWS, 0.0),
        "3 in 200,000, what 0 choices bound": (3.0 / DRAWS, 0.0),
        "as published, had it been clicked": (log.arrays.propensity[worst], 1.0),
    }
    rows = []
    for label, (chance, click) in variants.items():
        changed = altered(log, worst, chance, click)
        weight, reward = weights(changed), changed.arrays.reward
        row: dict[str, Any] = {"the round": label}
        for kind, (value, error, warned) in estimates(changed).items():
            if kind in ("IPW", "AIPW"):
                row |= {kind: value, f"{kind} std_error": error, f"{kind} warnings": warned}
        row["self-normalised IPW"] = self_normalised(reward, weight)[0]
        row["effective sample size"] = weight.sum() ** 2 / np.sum(weight**2)
        rows.append(row)
    return pd.DataFrame(rows)


def altered(log: AdaptiveLog, row: int, propensity: float, reward: float) -> AdaptiveLog:
    """The same log with another propensity and reward in one round."""
    arrays = log.arrays
    chances, rewards = arrays.propensity.copy(), arrays.reward.copy()
    chances[row], rewards[row] = propensity, reward
    return AdaptiveLog.from_arrays(
        replace(arrays, propensity=chances, reward=rewards),
        arms=log.arms,
        reward_range=log.reward_range,
        propensity_status=log.propensity_status,
        design=log.design,
    )


def refusals(log: AdaptiveLog) -> pd.DataFrame:
    """What was asked for and is not valid for this log, and why."""
    asked: dict[str, Callable[[], Any]] = {
        "stable-variance weights": lambda: PolicyValue(log, "uniform").fit(weights="stable-variance"),
        "CADR": lambda: PolicyValue(log, "uniform").fit(estimator="cadr"),
        "two-point weights": lambda: ArmMeans(log).fit(estimator="aipw", weights="two-point"),
        "sequence on IPW scores": lambda: ConfidenceSequence(log, "policy-value", policy="uniform").fit(),
    }
    rows = []
    for label, fit in asked.items():
        try:
            fit()
            reason = "not refused"
        except InvalidForLog as error:
            reason = str(error).split("; possible here")[0]
        rows.append({"asked": label, "answer": reason})
    return pd.DataFrame(rows)
