"""Exact operating characteristics of a plan that looks by the distribution of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.run import BERNOULLI
from adaptinf.typing import FloatArray


def constant_rates(environment: Environment) -> FloatArray | None:
    """Success rates of the arms, (K,); None if they are not constant."""
    if environment.law != BERNOULLI or environment.renewed or environment.n_features > 1:
        return None
    return environment.arm_means()


def with_exact(
    plan: PlannedTrial, rates: FloatArray, row: dict[str, Any], looks: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row, and the rows of its looks, with exact numbers where these are known."""
    theta0, theta1 = rates.tolist()
    found = plan.count_looks.rates(plan.count_bounds, theta1, theta0)
    rejected, size = float(found["reject"].sum()), float(found["reached"] @ plan.looks)
    treatment, control = rates[list(plan.positions)]
    gap, pulls = float(treatment - control), float(found["pulls"].sum())
    bias = float(found["gap"].sum()) - gap
    spread = float(found["reached"] @ (plan.looks - size) ** 2)
    upto = np.cumsum(found["reached"])
    exact = {
        "rejected": rejected,
        "rejected_se": 0.0,
        "rejected_above": float(found["above"].sum()),
        "futility": float(found["futility"].sum()),
        "size_mean": size,
        "size_sd": max(spread, 0.0) ** 0.5,
        f"rounds_{plan.arms[1]}": pulls,
        f"rounds_{plan.arms[0]}": size - pulls,
        "reward_mean": float(found["reward"].sum()) / size,
        "bias": bias,
        "naive_bias": bias,
        "rmse": max(float(found["square"].sum()) - 2.0 * gap * (bias + gap) + gap * gap, 0.0) ** 0.5,
    }
    for name in row:
        if name.startswith("size_q"):
            place = int(np.searchsorted(upto, float(name.removeprefix("size_q")) / 100.0 - 1e-12))
            exact[name] = float(plan.looks[min(place, len(plan.looks) - 1)])
    stops = {"stopped": found["reached"], "rejected": found["reject"], "futility": found["futility"]}
    stops["rejected_so_far"] = np.cumsum(found["reject"])
    told = [
        {**each, **{name: float(values[place]) for name, values in stops.items()}}
        for place, each in enumerate(looks)
    ]
    return {**row, **exact}, told
