"""Simulated trials of a plan: error rates, sizes, and estimates after the stop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.engine import AnalysisError
from adaptinf.audit.simulation.simulated_power import PlanTable, named_scenarios
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.parameters import COUNT, JOBS, SEED, OneOf, problems_of, refuse
from adaptinf.plans import several_characteristics as several
from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.plans.planning.exact_rates import constant_rates, with_exact
from adaptinf.plans.simulated_trials import (
    MANY,
    calendar_numbers,
    check_dropping,
    drops,
    ends_of,
    late_environment_problems,
    late_problems,
    mean_of,
    trial_of,
)
from adaptinf.plans.stored_plans import UNITS
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, child, seed_sequence
from adaptinf.typing import FloatArray, RandomSource
from adaptinf.workers import spread

_QUANTILES = (0.1, 0.5, 0.9)
_NUMBERS = (
    "look",
    "rejected",
    "above",
    "futility",
    "untested",
    "size",
    "reward",
    "estimate",
    "tail",
    "naive",
    "held",
    "duration",
    "enrolled",
    "overrun",
)
_DECIDED = {"rejected": "reject", "futility": "futility", "untested": "too few data"}


@dataclass(frozen=True, eq=False)
class PlanCharacteristics(PlanTable):
    """Operating characteristics of a plan.

    Attributes
    ----------
    frame : DataFrame
        One row per environment: `scenario`; `difference`, the true difference; `rejected` with its Monte
        Carlo error `rejected_se`, and `rejected_above`, the rejections in favour of the treatment; `futility`
        and `untested`, probabilities; `size_mean`, `size_sd` and quantiles of the number of rounds;
        `rounds_<arm>`, mean rounds of each arm; `reward_mean` per round; `bias`, `median_bias` (probability
        that the estimate is too large, minus 1/2), `rmse` and `coverage` of the estimate after the stop;
        `naive_bias` and `naive_coverage` of the estimate and interval that ignore the looks; `failed`, the
        number of trials that failed. Intervals have error probability alpha / sides on either side.

        With a delay, accrual or dropout: `duration_mean` and `duration_q90`, days (or rounds) until the look
        at the end; `enrolled_mean`, the participants by then, and `overrun_mean`, those who came after the
        last one used.

        For several treatments, `rejected` refers to any of them; `family_error` to any whose null is true;
        `rejected_best` to the best; and `rejected_all` to all. `coverage` is the joint coverage of all
        simultaneous intervals. Each treatment has its own `difference_<arm>`, `rejected_<arm>`,
        `dropped_<arm>` (it was dropped before the stop), `bias_<arm>` and `rmse_<arm>`.
    looks : DataFrame
        One row per environment and look: `rounds`, `day` or `information`; `stopped`,
        `rejected` and `futility` at this look, and `rejected_so_far`.
    alpha, design, replications, notes
        As in every table of a plan.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> found = plan.operating_characteristics(ai.environments.BernoulliArms([0.3, 0.6]), 128, rng=1)
    >>> found.looks["rounds"].tolist()
    [100, 200]
    """

    looks: pd.DataFrame = None  # type: ignore[assignment]

    def to_frame(self) -> pd.DataFrame:
        """The table with a row per environment.

        Returns
        -------
        DataFrame
        """
        return self.frame

    @property
    def _shown(self) -> pd.DataFrame:
        names = ["scenario", "difference", "rejected", "family_error", "rejected_best", "futility"]
        names += ["size_mean", "bias", "coverage"]
        return self.frame[[name for name in names if name in self.frame]]

    def __str__(self) -> str:
        return self._as_text(self._shown)


def characteristics(
    plan: PlannedTrial,
    environment: Any,
    replications: Any,
    rng: RandomSource | None,
    n_jobs: Any,
    on_error: Any,
) -> PlanCharacteristics:
    """Simulated trials of a plan in each environment."""
    scenarios, problems = scenarios_of(plan, environment, replications, rng, n_jobs)
    problems += OneOf("raise", "count")("on_error", on_error)
    refuse("Plan.operating_characteristics", problems)
    root = seed_sequence(rng)
    check_design(plan, next(iter(scenarios.values())), on_error == "count")
    rows, looks, notes = [], [], []
    for place, (name, one) in enumerate(scenarios.items()):
        seed = child(root, place)
        truth = difference(plan, one)
        numbers, error = simulated(plan, one, truth, replications, seed, n_jobs, on_error == "count")
        failed = replications - len(numbers["size"])
        if failed:
            notes.append(claims.FAILED(failed=failed, trials=replications, scenario=name, error=error))
        row, look_rows = _row(plan, numbers, truth), list(_look_rows(plan, numbers))
        if plan.law == "exact" and (rates := constant_rates(one)) is not None:
            row, look_rows = with_exact(plan, rates, row, look_rows)
            notes.append(claims.BY_EXACT_LAW(scenario=name))
        rows.append({"scenario": name, **row, "failed": failed})
        looks += [{"scenario": name, **each} for each in look_rows]
    return PlanCharacteristics(
        pd.DataFrame(rows), plan.alpha, repr(plan.design), replications, tuple(notes), pd.DataFrame(looks)
    )


def scenarios_of(
    plan: PlannedTrial, environment: Any, replications: Any, rng: Any, n_jobs: Any
) -> tuple[dict[str, Environment], list[str]]:
    """Environments by name, and problems with them and with the options of a simulation."""
    scenarios, problems = named_scenarios(environment)
    problems += problems_of(replications=(replications, COUNT), rng=(rng, SEED))
    problems += JOBS("n_jobs", n_jobs)
    problems += [
        f"environment {name!r} has {one.n_arms} arms, but the plan has {len(plan.arms)}"
        for name, one in scenarios.items()
        if not problems and one.n_arms != len(plan.arms)
    ]
    problems += late_problems(plan)
    if plan.timing.late and not problems:
        problems += [
            problem for one in scenarios.values() for problem in late_environment_problems(one, plan.horizon)
        ]
    return scenarios, problems


def check_design(plan: PlannedTrial, environment: Environment, count: bool = False) -> None:
    """Refuse a design whose scores are constant, or that cannot drop an arm although the plan may drop one.

    A design that fails is not checked if errors are counted.
    """
    if drops(plan):
        check_dropping(plan, environment)
    try:
        log = plan.design.run(environment, horizon=plan.horizon, rng=0)
    except Exception:
        if count:
            return
        raise
    ends = plan.looks if plan.clock == "rounds" else np.array([plan.horizon])
    process = None if log.arrays.propensities is None else plan.process(log, ends)
    if process is None or process.clock[-1] == 0.0:
        reason = claims.WITHOUT_PROPENSITIES(design=type(plan.design).__name__)
        raise InvalidForLog("Plan.operating_characteristics", reason, [])


def difference(plan: PlannedTrial, environment: Environment) -> Any:
    """The true difference of the treatment, or of each of several; NaN if only ranks are compared."""
    found = several.differences(plan, environment)
    if plan.joint:
        return found
    return float(found[0]) if len(found) == 1 else math.nan


def simulated(
    plan: PlannedTrial,
    environment: Environment,
    truth: Any,
    replications: int,
    seed: np.random.SeedSequence,
    n_jobs: int,
    count: bool = False,
    estimates: bool = True,
) -> tuple[dict[str, FloatArray], str]:
    """The numbers that describe each trial, and the first error.

    Arrays by name have shape (r,), and `rounds` of the arms (r, K); `each` contains the numbers of each
    treatment. If errors are counted, trials that fail are omitted. Without estimates, only decisions are
    made.
    """
    starts, told = range(0, replications, BLOCK), (count, estimates, replications >= MANY)
    jobs = (
        (_block, (plan, environment, truth, seed, start // BLOCK, min(BLOCK, replications - start), *told))
        for start in starts
    )
    blocks = spread(jobs, n_jobs if len(starts) > 1 else 1)
    error = next((error for _, error in blocks if error), "")
    trials = [trial for block, _ in blocks for trial in block]
    if not trials:
        raise AnalysisError(claims.ALL_FAILED(error=error))
    found = np.array(trials)
    numbers = {name: found[:, place] for place, name in enumerate(_NUMBERS)}
    rounds, each = np.split(found[:, len(_NUMBERS) :], [len(plan.arms)], axis=1)
    return {**numbers, "rounds": rounds, "each": each}, error


def _block(
    plan: PlannedTrial,
    environment: Environment,
    truth: Any,
    seed: np.random.SeedSequence,
    block: int,
    size: int,
    count: bool,
    estimates: bool,
    fast: bool,
) -> tuple[list[FloatArray], str]:
    """Numbers of trials that share a stream of random numbers, (numbers + K,) each, and the first error."""
    rng = np.random.default_rng(child(seed, block))
    found: list[FloatArray] = []
    first = ""
    for _ in range(size):
        try:
            found.append(_trial(plan, environment, truth, rng, estimates, fast))
        except Exception as error:
            if not count:
                raise
            first = first or f"{type(error).__name__}: {error}"
    return found, first


def _trial(
    plan: PlannedTrial,
    environment: Environment,
    truth: Any,
    rng: np.random.Generator,
    estimates: bool,
    fast: bool,
) -> FloatArray:
    """Numbers of one trial, in the order of `_NUMBERS`, and the rounds of each arm."""
    if plan.joint:
        return several.trial(plan, environment, truth, rng, fast)
    log, calendar = trial_of(plan, environment, rng, fast)
    ends = ends_of(plan, calendar, log)
    process = plan.process(log, ends)
    assert process is not None
    course = plan.follow(process, log, ends)
    size = course.rounds
    reward = mean_of(log.arrays.reward[:size])
    rounds = np.bincount(log.arrays.action[:size], minlength=log.n_arms)
    decided = [float(course.decision == name) for name in _DECIDED.values()]
    told = [float(course.look), decided[0], 0.0, *decided[1:], float(size), reward]
    times = calendar_numbers(plan, calendar, course.look, size)
    if not course.tests or not estimates:
        return np.array([*told, *[math.nan] * 4, *times, *rounds])
    told[2] = float(decided[0] and course.z[-1] > 0.0)
    last = course.tests[-1]
    naive = plan.margin + float(process.score[last] / process.slope[last])
    df = np.array([process.effective[last] - 1.0])
    reach = float(student_quantile(math.log(plan.alpha / plan.sides), df)[0]) * course.std_error
    held = math.nan if math.isnan(truth) else float(abs(naive - truth) <= reach)
    estimate, tail = naive, math.nan
    if plan.law == "z":
        stopped = course.stopped()
        estimate, tail = plan.margin + stopped.estimate, stopped.tail(truth - plan.margin)
    return np.array([*told, estimate, tail, naive, held, *times, *rounds])


def _row(plan: PlannedTrial, numbers: Mapping[str, FloatArray], truth: Any) -> dict[str, Any]:
    """Characteristics in one environment."""
    size, rejected = numbers["size"], float(numbers["rejected"].mean())
    row = {
        **({} if plan.joint else {"difference": truth}),
        "rejected": rejected,
        "rejected_se": math.sqrt(rejected * (1.0 - rejected) / len(size)),
        "rejected_above": float(numbers["above"].mean()),
        "futility": float(numbers["futility"].mean()),
        "untested": float(numbers["untested"].mean()),
        "size_mean": float(size.mean()),
        "size_sd": float(size.std()),
        **{f"size_q{100 * level:g}": float(np.quantile(size, level)) for level in _QUANTILES},
        **{f"rounds_{arm}": float(numbers["rounds"][:, place].mean()) for place, arm in enumerate(plan.arms)},
        "reward_mean": float((numbers["reward"] * size).sum() / max(size.sum(), 1.0)),
    }
    if plan.timing.stated:
        row |= {
            "duration_mean": float(numbers["duration"].mean()),
            "duration_q90": float(np.quantile(numbers["duration"], 0.9)),
            "enrolled_mean": float(numbers["enrolled"].mean()),
            "overrun_mean": float(numbers["overrun"].mean()),
        }
    if plan.joint:
        return {**row, **several.row(plan, numbers["held"], numbers["each"], truth)}
    tested = ~np.isnan(numbers["estimate"])
    error, tail = numbers["estimate"][tested] - truth, numbers["tail"][tested]
    below = np.where(np.isnan(tail), np.nan, tail < 0.5)
    covered = np.where(np.isnan(tail), np.nan, np.minimum(tail, 1.0 - tail) >= plan.alpha / plan.sides)
    if not tested.any():
        names = ("bias", "median_bias", "rmse", "coverage", "naive_bias", "naive_coverage")
        return {**row, **dict.fromkeys(names, math.nan)}
    return {
        **row,
        "bias": float(error.mean()),
        "median_bias": float(below.mean() - 0.5),
        "rmse": float(np.sqrt((error**2).mean())),
        "coverage": float(covered.mean()),
        "naive_bias": float((numbers["naive"][tested] - truth).mean()),
        "naive_coverage": float(numbers["held"][tested].mean()),
    }


def _look_rows(plan: PlannedTrial, numbers: Mapping[str, FloatArray]) -> Iterator[dict[str, Any]]:
    """Results of each look."""
    so_far = 0.0
    unit = UNITS[plan.clock]
    for look, after in enumerate(plan.looks.tolist()):
        here = numbers["look"] == look
        rejected = float((here & (numbers["rejected"] == 1.0)).mean())
        so_far += rejected
        yield {
            "look": look + 1,
            unit: after,
            "stopped": float(here.mean()),
            "rejected": rejected,
            "futility": float((here & (numbers["futility"] == 1.0)).mean()),
            "rejected_so_far": so_far,
        }
