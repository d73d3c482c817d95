"""Simulated trials of a plan with several treatments: family-wise error, power, sizes, intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.plans.several_results import RepeatedReference
from adaptinf.plans.simulated_trials import calendar_numbers, mean_of, run
from adaptinf.simulation.environments import Environment
from adaptinf.typing import FloatArray


def differences(plan: PlannedTrial, environment: Environment) -> FloatArray:
    """The true differences of the treatments from the control, (J,)."""
    means = environment.arm_means()[list(plan.positions)]
    return np.asarray(means[:-1] - means[-1])


def trial(
    plan: PlannedTrial, environment: Environment, truth: FloatArray, rng: np.random.Generator, fast: bool
) -> FloatArray:
    """Numbers of one trial: those of any plan, the rounds of each arm, and three numbers for each treatment.

    The last three are whether the treatment is rejected, whether it was dropped, and the error of its
    estimate.
    """
    followed = run(plan, environment, rng, fast)
    course = followed.course
    reference = RepeatedReference(followed.processes, course, plan.spent_by(course.ends), plan.margin)
    error, tested, held = np.full(len(truth), math.nan), course.at >= 0, math.nan
    if tested.any():
        error = reference.estimate - truth
        two_sided = course.closed if plan.sides == 2 else reference.tests(2.0 * plan.alpha)
        held = float(reference.contains(truth, two_sided).all())
    size = course.rounds
    rounds = np.bincount(followed.action[:size], minlength=len(plan.arms))
    times = calendar_numbers(plan, followed.calendar, course.look, size)
    rejects, futile, untested = (
        float(course.decision == name) for name in ("reject", "futility", "too few data")
    )
    above = float(bool(np.any(course.rejected & (error + truth > plan.margin))))
    told = [course.look, rejects, above, futile, untested, size, mean_of(followed.reward[:size])]
    numbers = [*told, math.nan, math.nan, math.nan, held, *times, *rounds]
    left = course.gone <= course.look
    return np.array([*numbers, *course.rejected, *left, *error], dtype=np.float64)


def row(plan: PlannedTrial, held: FloatArray, each: FloatArray, truth: FloatArray) -> dict[str, Any]:
    """Characteristics of the treatments; held (r,), each (r, 3 J), truth (J,)."""
    rejected, left, errors = np.split(each, 3, axis=1)
    null = np.isclose(truth, plan.margin) | ((plan.sides == 1) & (truth < plan.margin))
    tested = held[~np.isnan(held)]
    found: dict[str, Any] = {
        "family_error": float(rejected[:, null].any(axis=1).mean()),
        "rejected_best": float(rejected[:, truth.argmax()].mean()),
        "rejected_all": float(rejected.all(axis=1).mean()),
        "coverage": float(tested.mean()) if len(tested) else math.nan,
    }
    for j, name in enumerate(plan.treatments):
        error = errors[~np.isnan(errors[:, j]), j]
        found[f"difference_{name}"] = float(truth[j])
        found[f"rejected_{name}"] = float(rejected[:, j].mean())
        found[f"dropped_{name}"] = float(left[:, j].mean())
        found[f"bias_{name}"] = float(error.mean()) if len(error) else math.nan
        found[f"rmse_{name}"] = float(np.sqrt((error**2).mean())) if len(error) else math.nan
    return found
