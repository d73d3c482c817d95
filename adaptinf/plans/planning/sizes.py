"""Sample size and power of a plan: from the law of its looks if nothing adapts, otherwise by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.audit.simulation.measures import binomial_error, binomial_limits
from adaptinf.audit.simulation.sample_sizes import SampleSize, horizon_error
from adaptinf.audit.simulation.simulated_power import PlanTable
from adaptinf.claims.logs import plans as claims
from adaptinf.inference.group_sequential.boundaries import Boundary
from adaptinf.parameters import COUNT, OPEN_SHARE, Is, problems_of, refuse
from adaptinf.plans.plan_characteristics import check_design, difference, scenarios_of, simulated
from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import child, seed_sequence
from adaptinf.simulation.run import BERNOULLI, NORMAL, UNIFORM
from adaptinf.typing import FloatArray, RandomSource

# Rounds of the short run that shows whether propensities are constant.
_TRIED = 64
# Most horizons examined in a search by simulation.
_MOST = 8


@dataclass(frozen=True, eq=False)
class PowerCurve(PlanTable):
    """Power of a plan by the true difference.

    Attributes
    ----------
    frame : DataFrame
        One row per environment, by difference: `scenario`, `difference`; `power` with its Monte Carlo error
        `power_se` and exact 95% limits `power_low` and `power_high`; `size_mean`, the mean number of rounds;
        `law`, the power under the normal law of the looks if nothing adapts, otherwise NaN.
    alpha, design, replications, notes
        As in every table of a plan.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> curve = plan.power_curve(ai.environments.BernoulliArms([0.3, 0.6]), 64, rng=1)
    >>> curve.frame["scenario"].tolist()
    ['BernoulliArms']
    """

    def __str__(self) -> str:
        return self._as_text(self._shown)

    @property
    def _shown(self) -> pd.DataFrame:
        return self.frame.dropna(axis="columns", how="all")


def power_curve(
    plan: PlannedTrial, environments: Any, replications: Any, rng: RandomSource | None, n_jobs: Any
) -> PowerCurve:
    """Simulated power in each environment."""
    scenarios, problems = scenarios_of(plan, environments, replications, rng, n_jobs)
    refuse("Plan.power_curve", problems)
    check_design(plan, next(iter(scenarios.values())))
    root, rows = seed_sequence(rng), []
    for place, (name, one) in enumerate(scenarios.items()):
        seed = child(root, place)
        found = _power(plan, one, replications, seed, n_jobs)
        law = fixed_law(plan, one)
        rows.append(
            {
                "scenario": name,
                "difference": best_difference(plan, one),
                **found,
                "law": math.nan if law is None else law.power(plan.horizon),
            }
        )
    frame = pd.DataFrame(rows).sort_values("difference", ignore_index=True, kind="stable")
    return PowerCurve(frame, plan.alpha, repr(plan.design), replications)


def best_difference(plan: PlannedTrial, environment: Environment) -> float:
    """The true difference of the treatment, or the largest of several."""
    means = environment.arm_means()[list(plan.positions)]
    return float(means[:-1].max() - means[-1])


def _power(
    plan: PlannedTrial, environment: Environment, replications: int, seed: np.random.SeedSequence, n_jobs: int
) -> dict[str, float]:
    """Power with its errors, and mean size."""
    truth = difference(plan, environment)
    numbers, _ = simulated(plan, environment, truth, replications, seed, n_jobs, estimates=False)
    rejected = int(numbers["rejected"].sum())
    share = rejected / replications
    low, high = binomial_limits(rejected, replications)
    error = binomial_error(share, replications)
    size = float(numbers["size"].mean())
    return {"power": share, "power_se": error, "power_low": low, "power_high": high, "size_mean": size}


@dataclass(frozen=True)
class FixedLaw:
    """The joint normal distribution of the scores at the looks of a trial in which nothing adapts.

    `unit` is the squared mean of the score of one round over its variance.
    """

    boundary: Boundary
    unit: float
    sign: float

    def power(self, horizon: float) -> float:
        """Probability of rejection."""
        return self.boundary.rejection(self.sign * math.sqrt(horizon * self.unit))

    def horizon(self, power: float) -> float:
        """Rounds at which the null is rejected with a given probability, not rounded."""
        return self.boundary.drift_of_power(power) ** 2 / self.unit

    def size(self, horizon: float) -> float:
        """Mean number of rounds."""
        drift = self.sign * math.sqrt(horizon * self.unit)
        return horizon * self.boundary.expected_information(drift)


def fixed_law(plan: PlannedTrial, environment: Environment) -> FixedLaw | None:
    """The law of the looks of a plan; None if something adapts or the moments of rewards are not constant."""
    shares, variance = _constant_shares(plan, environment), _variances(environment)
    inner = plan.sides == 2 and bool(np.isfinite(plan.rule.futility).any())
    if (
        plan.law != "z"
        or plan.joint
        or plan.strata
        or plan.clock != "rounds"
        or shares is None
        or variance is None
        or inner
    ):
        return None
    places = list(plan.positions)
    gap = best_difference(plan, environment) - plan.margin
    unit = gap * gap / float((variance[places] / shares[places]).sum()) / plan.inflation**2
    upper = plan.bounds["bound"].to_numpy()
    lower = -upper if plan.sides == 2 else plan.rule.futility
    boundary = Boundary(plan.looks / plan.horizon, lower, upper, plan.sides)
    return FixedLaw(boundary, unit, math.copysign(1.0, gap))


def _constant_shares(plan: PlannedTrial, environment: Environment) -> FloatArray | None:
    """Probabilities of the arms, (K,); None if they change or are unknown."""
    if plan.design.traits.adapts is not False or environment.renewed:
        return None
    log = plan.design.run(environment, horizon=min(_TRIED, plan.horizon), rng=0)
    found = log.arrays.propensities
    if found is None or not np.all(found == found[0]) or not np.all(found[0] > 0.0):
        return None
    return np.asarray(found[0], dtype=np.float64)


def _variances(environment: Environment) -> FloatArray | None:
    """Variance of each arm's rewards, (K,); None if it is not constant or not known."""
    tables = environment.layout(1)
    if environment.dimension or environment.probabilities.shape[0] > 1:
        return None
    if environment.law == BERNOULLI:
        within = environment.means * (1.0 - environment.means)
    elif environment.law in (NORMAL, UNIFORM):
        within = tables.scale**2 / (1.0 if environment.law == NORMAL else 12.0)
    else:
        return None
    weight = environment.probabilities[0]
    between = weight @ (environment.means - environment.arm_means()) ** 2
    return np.asarray(weight @ within + between, dtype=np.float64)


def sample_size(
    plan: PlannedTrial,
    environment: Any,
    power: Any,
    longest: Any,
    replications: Any,
    rng: RandomSource | None,
    n_jobs: Any,
) -> SampleSize:
    """The horizon of a plan with a given power."""
    scenarios, problems = scenarios_of(plan, environment, replications, rng, n_jobs)
    problems += problems_of(power=(power, OPEN_SHARE), longest=(longest, COUNT))
    if len(scenarios) > 1:
        problems.append("environment must be a single environment; power_curve takes several")
    if plan.clock != "rounds":
        problems.append('sample_size finds a number of rounds: plan must have clock="rounds"')
    if not problems:
        problems = _reachable(plan, next(iter(scenarios.values())))
    refuse("Plan.sample_size", problems)
    one = next(iter(scenarios.values()))
    check_design(plan, one)
    law = fixed_law(plan, one)
    if law is not None:
        return _by_law(plan, law, float(power), int(longest))
    search = _Search(plan, one, int(replications), seed_sequence(rng), n_jobs)
    return search.result(float(power), int(longest))


def required_information(plan: PlannedTrial, difference: Any, power: Any) -> float:
    """Information of the last look at which a plan has a given power, by the normal law of its looks."""
    problems = problems_of(power=(power, OPEN_SHARE))
    told = f"a number other than the margin {plan.margin:g}"
    apart = Is(lambda one: isinstance(one, (int, float)) and math.isfinite(one) and one != plan.margin, told)
    problems += apart("difference", difference)
    if plan.law != "z" or plan.joint:
        problems.append('required_information is for plans with one treatment and law="z"')
    refuse("Plan.required_information", problems)
    upper = plan.bounds["bound"].to_numpy()
    lower = -upper if plan.sides == 2 else plan.rule.futility
    boundary = Boundary(plan.looks / plan.looks[-1], lower, upper, plan.sides)
    drift = boundary.drift_of_power(float(power)) * plan.inflation
    return float((drift / (difference - plan.margin)) ** 2)


def _reachable(plan: PlannedTrial, environment: Environment) -> list[str]:
    """The reason, if no horizon gives a power above the level."""
    means = environment.arm_means()[list(plan.positions)]
    gaps = means[:-1] - means[-1] - plan.margin
    gap = float(gaps.max())
    if gap > 0.0 or (plan.sides == 2 and bool(np.any(gaps != 0.0))):
        return []
    side = "above" if plan.sides == 1 else "other than"
    return [
        f"the environment must have a difference {side} the margin {plan.margin:g}, "
        f"which the plan is to detect, got {gap + plan.margin:g}"
    ]


def at_horizon(plan: PlannedTrial, horizon: int) -> PlannedTrial:
    """The plan with another horizon, and looks at the same fractions of it."""
    looks = np.maximum(np.rint(plan.looks * (horizon / plan.horizon)).astype(int), 1)
    looks[-1] = horizon
    return plan.changed(horizon=horizon, looks=np.unique(looks).tolist())


def _by_law(plan: PlannedTrial, law: FixedLaw, power: float, longest: int) -> SampleSize:
    horizon = math.ceil(law.horizon(power) - 1e-9)
    notes = [claims.SIZE_BY_LAW()]
    found: int | None = max(horizon, len(plan.looks))
    if horizon > longest:
        notes.append(claims.SIZE_NOT_REACHED(longest=longest))
        horizon, found = longest, None
    row = {"horizon": horizon, "power": law.power(horizon), "size_mean": law.size(horizon)}
    told = repr(plan.design)
    return SampleSize(
        pd.DataFrame([row]), plan.alpha, told, 0, tuple(notes), found, power, 0.0, claims.NORMAL_LAW()
    )


class _Search:
    """Horizons examined by simulation."""

    def __init__(
        self,
        plan: PlannedTrial,
        environment: Environment,
        replications: int,
        root: np.random.SeedSequence,
        n_jobs: int,
    ) -> None:
        self.plan, self.environment, self.replications = plan, environment, replications
        self.root, self.n_jobs = root, n_jobs
        self.known: dict[int, dict[str, float]] = {}

    def at(self, horizon: int) -> dict[str, float]:
        """Power at a horizon."""
        if horizon not in self.known:
            plan = at_horizon(self.plan, horizon)
            found = _power(plan, self.environment, self.replications, self.root, self.n_jobs)
            self.known[horizon] = {"horizon": horizon, **found}
        return self.known[horizon]

    def result(self, target: float, longest: int) -> SampleSize:
        """The next horizon, from a power curve that is normal in the square root of the horizon."""
        least = max(len(self.plan.looks), 2)
        horizon = min(max(self.plan.horizon, least), longest)
        for _ in range(_MOST):
            row = self.at(horizon)
            wanted = min(max(math.ceil(self._next(horizon, target)), least), longest)
            if abs(row["power"] - target) <= 0.5 * row["power_se"] or wanted in self.known:
                break
            horizon = wanted
        nearest = min(self.known.values(), key=lambda row: abs(row["power"] - target))
        last = self.known.get(longest)
        if last is not None and last["power"] + 2.0 * last["power_se"] < target:
            nearest = last
        return self._told(target, longest, int(nearest["horizon"]))

    def _place(self, row: dict[str, float]) -> tuple[float, float]:
        """Square root of the horizon, and the normal quantile of its power."""
        share = min(max(row["power"], 0.5 / self.replications), 1.0 - 0.5 / self.replications)
        return math.sqrt(row["horizon"]), float(special.ndtri(share))

    def _next(self, horizon: int, target: float) -> float:
        """The horizon that a straight line suggests, through points around the target, or from the level."""
        aim = float(special.ndtri(target))
        below = [self._place(row) for row in self.known.values() if row["power"] < target]
        above = [self._place(row) for row in self.known.values() if row["power"] >= target]
        if below and above:
            (x, y), (right, top) = max(below), min(above)
            return float((x + (aim - y) / (top - y) * (right - x)) ** 2)
        root, height = self._place(self.known[horizon])
        level = -float(special.ndtri(self.plan.alpha / self.plan.sides))
        ratio = (level + aim) / max(level + height, 0.25 * level)
        return float((root * min(max(ratio, 0.7), 1.4)) ** 2)

    def _told(self, target: float, longest: int, horizon: int) -> SampleSize:
        row, alpha = self.at(horizon), self.plan.alpha
        notes = [claims.SIZE_BY_SIMULATION()]
        found: int | None = horizon
        if horizon == longest and row["power"] + 2.0 * row["power_se"] < target:
            found = None
            notes.append(claims.SIZE_NOT_REACHED(longest=longest))
        error = horizon_error(row, alpha, self.replications, self.plan.sides)
        frame = pd.DataFrame([self.known[size] for size in sorted(self.known)])
        told = repr(self.plan.design)
        return SampleSize(frame, alpha, told, self.replications, tuple(notes), found, target, error)
