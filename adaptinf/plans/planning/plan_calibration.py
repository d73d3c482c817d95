"""Calibration of a plan: the factor of standard errors that gives simulated trials a given error rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.audit.simulation.measures import binomial_error
from adaptinf.audit.simulation.simulated_power import PlanTable
from adaptinf.claims.logs import plans as claims
from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.parameters import OPEN_SHARE, Is, check, refuse
from adaptinf.plans.decisions import follow
from adaptinf.plans.plan import Plan
from adaptinf.plans.plan_characteristics import check_design, difference, scenarios_of
from adaptinf.plans.simulated_trials import MANY, ends_of, trial_of
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, child, seed_sequence
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray, RandomSource
from adaptinf.workers import spread

if TYPE_CHECKING:
    from collections.abc import Mapping

# A difference below this is none.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration(PlanTable):
    """A plan whose error rate was adjusted by simulation.

    Attributes
    ----------
    plan : Plan
        The plan with the factor, to be used from now on.
    factor : float
        Factor of all critical values, and of all standard errors: the largest over the environments.
    factor_error : float
        Monte Carlo standard error of the factor.
    target : float
        The required error rate.
    frame : DataFrame
        One row per environment: `scenario`; its own `factor` and Monte Carlo error `factor_se`; `before` and
        `after`, the simulated error rates without the factor and with that of the plan, with their standard
        errors `before_se` and `after_se`.
    alpha, design, replications, notes
        As in every table of a plan.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> found = ai.calibrate(plan, 0.05, ai.environments.NormalArms([0.0, 0.0]), replications=256, rng=0)
    >>> found.plan.inflation == found.factor
    True
    """

    plan: Plan = None  # type: ignore[assignment]
    factor: float = math.nan
    factor_error: float = math.nan
    target: float = 0.05

    @property
    def _head(self) -> str:
        told = f"critical values times {self.factor:.4f}, plus or minus {self.factor_error:.2g}"
        trials = f"{self.replications:,} simulated trials per scenario, error rate {self.target:g}"
        return visible_lines([self.design, f"{told} (one Monte Carlo standard error)", trials])

    def __str__(self) -> str:
        return self._as_text(self._shown)


def calibrate(
    plan: Plan,
    target: float = 0.05,
    environment: Environment | Mapping[str, Environment] | None = None,
    *,
    replications: int = 10_000,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> Calibration:
    """Adjust a plan's critical values until simulated trials without a difference have a given error rate.

    Parameters
    ----------
    plan : Plan
        The plan, with ``law="z"``.
    target : float
        Required probability of rejecting a true null, in (0, 1).
    environment : Environment, or dict of environments by name
        Environments in which the difference equals the plan's margin. With several environments, the error
        rate is at most the target in each of them.
    replications : int
        Number of trials per environment.
    rng : int, SeedSequence, Generator or None
        Source of randomness.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    Calibration
        The factor with its Monte Carlo error, and the plan that uses it.

    Raises
    ------
    ParameterError
        If arguments are invalid, or the null is false in an environment; the message lists every problem. If
        the share of trials that make a test is below `target`, no factor exists.

    Notes
    -----
    All critical values are multiplied by the same factor, which is equivalent to multiplying the standard
    errors, so that p-values and intervals agree with decisions. The error rate is known only in the simulated
    environments: choose environments that span the plausible range. Futility is ignored, so the factor
    remains valid if trials continue.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> found = ai.calibrate(plan, 0.05, ai.environments.NormalArms([0.0, 0.0]), replications=1_000, rng=0)
    >>> bool(0.9 < found.factor < 1.1), bool(found.frame.loc[0, "after"] <= 0.05)
    (True, True)
    """
    check("calibrate", plan=(plan, Is(Plan, "a plan")), target=(target, OPEN_SHARE))
    scenarios, problems = scenarios_of(plan, environment, replications, rng, n_jobs)
    if plan.law != "z":
        problems.append(
            f'plan must have law="z", because the level of the other laws is exact, got {plan.law!r}'
        )
    if len(plan.treatments) > 1:
        problems.append(f"plan must have one treatment, got {len(plan.treatments)}")
    problems += [
        f"environment {name!r} must have a difference equal to the margin, {plan.margin:g}, got {gap:g}"
        for name, one in scenarios.items()
        if not problems and abs((gap := difference(plan, one)) - plan.margin) > _SAME
    ]
    refuse("calibrate", problems)
    plain, root = plan.changed(inflation=1.0), seed_sequence(rng)
    check_design(plain, next(iter(scenarios.values())))
    found = {
        name: _largest(plain, one, replications, root, place, n_jobs)
        for place, (name, one) in enumerate(scenarios.items())
    }
    rows = [{"scenario": name, **_quantile(sizes, target)} for name, sizes in found.items()]
    untested = [
        f"environment {row['scenario']!r}: fewer than {100 * target:g}% of its trials reach a test"
        for row in rows
        if not row["factor"] > 0.0
    ]
    refuse("calibrate", untested)
    worst = max(rows, key=lambda row: row["factor"])
    factor = float(worst["factor"])
    for row, sizes in zip(rows, found.values(), strict=True):
        for name, least in (("before", 1.0), ("after", factor)):
            share = float(np.mean(sizes >= least))
            row |= {name: share, f"{name}_se": binomial_error(share, replications)}
    return Calibration(
        pd.DataFrame(rows),
        plan.alpha,
        repr(plan.design),
        replications,
        (claims.CALIBRATED(),),
        plan.changed(inflation=factor),
        factor,
        float(worst["factor_se"]),
        float(target),
    )


def _largest(
    plan: Plan,
    environment: Environment,
    replications: int,
    root: np.random.SeedSequence,
    place: int,
    n_jobs: int,
) -> FloatArray:
    """Largest factor at which each trial still rejects, of shape (r,); 0 if it makes no test."""
    jobs = [
        (
            _block,
            (
                plan,
                environment,
                root,
                (place, start // BLOCK),
                min(BLOCK, replications - start),
                replications >= MANY,
            ),
        )
        for start in range(0, replications, BLOCK)
    ]
    return np.concatenate(spread(jobs, n_jobs if len(jobs) > 1 else 1))


def _block(
    plan: Plan,
    environment: Environment,
    root: np.random.SeedSequence,
    place: tuple[int, int],
    size: int,
    fast: bool,
) -> FloatArray:
    """Largest factors for trials that share a stream of random numbers, of shape (size,)."""
    rng = np.random.default_rng(child(root, *place))
    found = np.zeros(size)
    for trial in range(size):
        log, calendar = trial_of(plan, environment, rng, fast)
        ends = ends_of(plan, calendar)
        process, rule = plan.process(log, ends), plan.rule_by(ends)
        assert process is not None
        rule = replace(rule, futility=np.full(len(rule.futility), -np.inf))
        # A trial whose score is always 0 goes on to the end, which gives the critical values of all looks.
        course = follow(process._replace(score=np.zeros(len(process.score))), rule)
        if course.tests:
            tests = list(course.tests)
            z = process.z[tests] if plan.sides == 1 else np.abs(process.z[tests])
            needed = _student(course.bound, process.effective[tests] - 1.0)
            found[trial] = max(float((z / needed).max()), 0.0)
    return found


def _student(bound: FloatArray, df: FloatArray) -> FloatArray:
    """Quantiles of Student's t with the tails of normal quantiles, of shape (k,)."""
    tails = special.log_ndtr(-bound)
    return np.concatenate([student_quantile(tail, one) for tail, one in zip(tails, df, strict=True)])


def _quantile(sizes: FloatArray, target: float) -> dict[str, Any]:
    """The factor that a share of the trials reaches, from order statistics, with its standard error."""
    ranked = np.sort(sizes)[::-1]
    runs = len(ranked)
    place = min(math.floor(target * runs), runs - 1)
    spread_of = math.sqrt(target * (1.0 - target) * runs)
    low, high = (min(max(round(place + turn * spread_of), 0), runs - 1) for turn in (1.0, -1.0))
    # Between the last trial that may reject and the first that may not.
    factor = 0.5 * float(ranked[place] + ranked[max(place - 1, 0)]) if ranked[place] > 0.0 else 0.0
    return {"factor": factor, "factor_se": float(0.5 * (ranked[high] - ranked[low]))}
