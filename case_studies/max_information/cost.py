"""What max-information corrected tests cost and where they pay, by design, epsilon and horizon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from adaptinf.designs import DPBAI, UCB, Mixture, PrivateUCB
from adaptinf.designs.base_design import Design
from adaptinf.inference.arms.alee import alee_offset, alee_weights
from adaptinf.inference.corrections.arm_bias import bias_bound
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.distributions.references import BinomialReference, StudentReference
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.simulation.environments import BernoulliArms, NormalArms

ALPHA = 0.05
NULL, BETTER = 0.5, 0.7
SCALE = 0.25
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
HORIZONS = (100, 400, 1_000)
BINARY, NORMAL = "0/1", "normal"
DESIGNS: dict[str, Callable[[float], Design]] = {
    "private UCB": lambda epsilon: PrivateUCB(epsilon=epsilon),
    "DP-BAI": lambda epsilon: DPBAI(epsilon=epsilon, features=np.eye(2)),
    "mixture of private UCB": lambda epsilon: Mixture(design=PrivateUCB(epsilon=epsilon), exploration=0.2),
}


def environment(rewards: str, means: list[float]) -> Any:
    return BernoulliArms(means) if rewards == BINARY else NormalArms(means, scale=SCALE)


def least_pulled(tallies: np.ndarray) -> np.ndarray:
    """Arm that was pulled least in each run."""
    return np.asarray(tallies.sum(axis=(1, 2))[:, :, 0].argmin(axis=1))


def log_pvalues(tallies: np.ndarray, rewards: str, arm: np.ndarray) -> np.ndarray:
    """Logs of the p-values of one arm's mean against the null, one per run; 0 without a test."""
    count, total, squares = tallies.sum(axis=(1, 2))[np.arange(len(arm)), arm].T
    if rewards == BINARY:
        found = BinomialReference(total, count).log_pvalues(NULL)
    else:
        some = np.maximum(count, 1.0)
        mean = total / some
        spread = np.maximum(squares - total * mean, 0.0) / np.maximum(count - 1.0, 1.0)
        error = np.where(count > 1.0, np.sqrt(spread / some), np.nan)
        found = StudentReference(mean, error, count - 1.0).log_pvalues(NULL)
    return np.nan_to_num(found, nan=0.0)


def lengths(counts: np.ndarray, horizon: int, level: float) -> float:
    """Mean length of corrected intervals over that of ALEE, from counts of the first arm."""
    offset, some = alee_offset(horizon), counts[counts > 0]
    totals = np.concatenate([[0.0], np.cumsum(alee_weights(int(some.max()), offset))])
    usual = float(normal_quantile(math.log(ALPHA / 2.0)))
    wide = float(normal_quantile(level - math.log(2.0)))
    return float(np.mean(wide / np.sqrt(some)) / np.mean(usual / totals[some.astype(int)]))


def one_row(name: str, rewards: str, epsilon: float, horizon: int, runs: int, seed: int) -> dict[str, Any]:
    """A design at one epsilon and horizon: level, sizes, powers, length, regret, bounds and the choice."""
    design = DESIGNS[name](epsilon)
    null, better = environment(rewards, [NULL, NULL]), environment(rewards, [BETTER, NULL])
    log = design.run(null, horizon, rng=seed)
    correction = correction_for(log)
    assert isinstance(correction, Correction)
    level, usual = correction.level(math.log(ALPHA)), math.log(ALPHA)
    under = design.replicate(null, horizon, runs, rng=seed)
    over = design.replicate(better, horizon, runs, rng=seed + 1)
    p_null = log_pvalues(under.tallies, rewards, least_pulled(under.tallies))
    p_better = log_pvalues(over.tallies, rewards, np.zeros(runs, dtype=np.int64))
    pulls = under.tallies.sum(axis=(1, 2))[:, 0, 0]
    return {
        "design": name,
        "rewards": rewards,
        "epsilon": epsilon,
        "T": horizon,
        "epsilon sqrt T": epsilon * math.sqrt(horizon),
        "log10 of the level": level / math.log(10.0),
        "size, naive": float(np.mean(p_null <= usual)),
        "size, corrected": float(np.mean(p_null <= level)),
        "power, naive": float(np.mean(p_better <= usual)),
        "power, corrected": float(np.mean(p_better <= level)),
        "length over ALEE's": lengths(pulls, horizon, level),
        "mean regret": float(over.regret.mean()),
        "bias bound": float(bias_bound(correction.guarantee, horizon, [NULL])[0]),
        "first choice": recommend(log).best.verdict.name,
    }


def table(runs: int, seed: int, n_jobs: int) -> pd.DataFrame:
    """All rows."""
    cells = [
        (name, rewards, epsilon, horizon)
        for name in DESIGNS
        for rewards in (BINARY, NORMAL)
        for horizon in HORIZONS
        for epsilon in EPSILONS
    ]
    return pd.DataFrame(Parallel(n_jobs)(delayed(one_row)(*cell, runs, seed) for cell in cells))


def regret_without_privacy(runs: int, seed: int) -> dict[int, float]:
    """Mean regret of UCB under the alternative, 0/1 rewards, by horizon."""
    env = environment(BINARY, [BETTER, NULL])
    return {
        horizon: float(UCB().replicate(env, horizon, runs, rng=seed).regret.mean()) for horizon in HORIZONS
    }
