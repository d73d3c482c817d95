"""Section 5 and Appendix E of Chen et al. (2024): arms, rewards and designs."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pandas as pd

from adaptinf.designs.base_design import Design
from adaptinf.designs.best_arm.arm_collections import max_det
from adaptinf.designs.best_arm.fixed_budget import SequentialHalving
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss, ODLinBAI
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Environment, UniformArms
from adaptinf.typing import FloatArray
from case_studies.best_arm import exact

SEED = 2024
THETA = np.array([0.045, 0.5])
DELTA = 1e-5
BUDGETS = tuple(range(50, 501, 50))
EPSILONS = tuple(tenth / 10.0 for tenth in range(1, 20, 2))
PRIVATE = ("DP-BAI", "DP-OD", "DP-OD, rescaled", "DP-BAI-Gauss", "baseline")
RATIOS = (1, 4, 7, 10, 13, 16, 19, 22, 25, 28)
PAIRS = ((250, 0.2), (250, 0.4), (500, 0.2), (500, 0.4))


def seed_of(name: str) -> np.random.SeedSequence:
    """A seed of each cell's own, from its name."""
    return np.random.SeedSequence([SEED, zlib.crc32(name.encode())])


def features() -> FloatArray:
    """The thirty arms of Section 5; the last 27 are drawn once."""
    shares = np.random.default_rng(seed_of("features")).uniform(0.0, 0.8, 27)
    return np.vstack([[[0.0, 1.0], [0.0, 0.9], [10.0, 0.0]], np.column_stack([np.ones(27), shares])])


def environment() -> UniformArms:
    """Rewards that are uniform on [0, 2 mu_i]."""
    return UniformArms(np.zeros(30), 2.0 * features() @ THETA)


def rescaled(rows: FloatArray) -> FloatArray:
    """The same arms in coordinates of their MAX-DET collection: none is above 1 in size."""
    return np.asarray(np.linalg.solve(rows[max_det(rows)].T, rows.T).T, dtype=np.float64)


def designs(epsilon: float) -> dict[str, Design]:
    """The paper's four curves, and three more."""
    rows = features()
    return {
        "DP-BAI": DPBAI(epsilon=epsilon, features=rows),
        "DP-OD": DPOD(epsilon=epsilon, features=rows),
        "DP-OD, rescaled": DPOD(epsilon=epsilon, features=rescaled(rows)),
        "DP-BAI-Gauss": DPBAIGauss(epsilon=epsilon, delta=DELTA, features=rows),
        "baseline": DPBAI(epsilon=epsilon, features=rows, max_det=False),
        "OD-LinBAI": ODLinBAI(features=rows),
        "sequential halving": SequentialHalving(),
    }


def share(name: str, design: Design, env: Environment, horizon: int, runs: int) -> float:
    """Share of runs that name the first arm, NaN where the budget is too small."""
    try:
        found = design.replicate(env, horizon, runs, rng=seed_of(name)).recommended
    except ParameterError:
        return math.nan
    return float((found == 0).mean())


def exact_share(name: str, horizon: int, epsilon: float) -> float:
    """Probability of success in Section 5, where it is known: NaN for the baseline and sequential halving.

    All other designs pull arms 1 and 3 as often as each other, once and for all, and name arm 1 if its
    estimate is above 0 and above that of arm 3.
    """
    if name in ("baseline", "sequential halving"):
        return math.nan
    pulls = exact.half(horizon - (2 if name.startswith("DP-BAI") else 3))
    # noise of the sum of rewards of arms 1 and 3
    scales = {
        "DP-BAI": (1.0 / epsilon, 1.0 / epsilon),
        "DP-OD": (10.0 / epsilon, 1.0 / epsilon),
        "DP-OD, rescaled": (1.0 / epsilon, 1.0 / epsilon),
        "OD-LinBAI": (0.0, 0.0),
    }
    law = "laplace"
    if name == "DP-BAI-Gauss":
        scale = DPBAIGauss(epsilon=epsilon, delta=DELTA, features=features())._noise()
        scales[name], law = (scale, scale), "normal"
    return exact.ahead(pulls, (1.0, 0.9), scales[name], law=law, positive=True)


def section_5(runs: int) -> pd.DataFrame:
    """Success by budget at epsilon = .1, and by epsilon at T = 200."""
    env, rows = environment(), []
    cells = [("T", horizon, 0.1) for horizon in BUDGETS] + [("epsilon", 200, epsilon) for epsilon in EPSILONS]
    for panel, horizon, epsilon in cells:
        for name, design in designs(epsilon).items():
            label = f"{name}, T = {horizon}" if panel == "T" else f"{name}, epsilon = {epsilon:g}"
            found = share(label, design, env, horizon, runs)
            rows.append(
                {
                    "against": panel,
                    "T": horizon,
                    "epsilon": epsilon,
                    "design": name,
                    "success": found,
                    "standard error": math.sqrt(found * (1.0 - found) / runs),
                    "exact": exact_share(name, horizon, epsilon),
                    "runs": runs,
                }
            )
    return pd.DataFrame(rows)


def appendix_e(runs: int) -> pd.DataFrame:
    """Two arms, success by the ratio of their norms.

    Rewards as printed reach 1.1. They are divided by 1.1, with the nominal epsilon ("unit rewards"); or noise
    is what the text asks for ("as printed"), which is that of 1.1 epsilon in unit rewards.
    """
    env, rows = UniformArms([0.0, 0.0], [1.0, 1.0 / 1.1]), []
    for horizon, epsilon in PAIRS:
        for ratio in RATIOS:
            arms = [[1.0, 0.0], [0.0, float(ratio)]]
            for kind, factor in ((DPBAI, 1.0), (DPOD, 1.0), (DPBAI, 1.1), (DPOD, 1.1)):
                spent = factor * epsilon
                label = f"{horizon}, {epsilon}, {ratio}, {factor}, {kind.__name__}"
                found = share(label, kind(epsilon=spent, features=arms), env, horizon, runs)
                larger = ratio if kind is DPOD else 1
                scales = (larger / spent, 1.0 / spent)
                rows.append(
                    {
                        "T": horizon,
                        "epsilon": epsilon,
                        "y": ratio,
                        "design": "DP-BAI" if kind is DPBAI else "DP-OD",
                        "noise": "unit rewards" if factor == 1.0 else "as printed",
                        "success": found,
                        "standard error": math.sqrt(found * (1.0 - found) / runs),
                        "exact": exact.ahead(exact.half(horizon - 2), (1.0, 1.0 / 1.1), scales),
                        "runs": runs,
                    }
                )
    return pd.DataFrame(rows)
