"""Re-runs of a design on logged rows in blocks of 64, and their statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import LoggedRows, design_of, logged_rows, reordered
from adaptinf.audit.rerun.path_propensities import contradiction, fixed_propensities, record_problems
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, SEED, Callee, OneOf, OrNone, refuse
from adaptinf.simulation.replicate import BLOCK, block_stream, child, seed_sequence
from adaptinf.simulation.run import EnvironmentTables, Record, Results, empty_record
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray, RandomSource
from adaptinf.workers import n_workers, spread

STATISTICS = ("studentised", "difference", "largest-studentised", "f", "pulls")
ALTERNATIVES = ("two-sided", "greater", "less")

_ROUNDING = 1e-9


def studentised(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Difference of two means divided by its standard error from the pooled variance of the two arms.

    Shapes: tallies (runs, arms, 3); returns (runs,).
    """
    count, total, square = np.moveaxis(tallies[:, [treatment, control]], -1, 0)
    inside = np.maximum(square - _over(total * total, count), 0.0).sum(axis=1)
    freedom = count.sum(axis=1) - 2.0
    scale = _over(1.0, count).sum(axis=1)
    return _ratio(difference(tallies, treatment, control), inside, freedom, scale, square.sum(axis=1))


def difference(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Difference of two means, shape (runs,); 0 if an arm was not pulled."""
    count, total = tallies[..., 0], tallies[..., 1]
    means = _over(total, count)
    both = (count[:, treatment] > 0.0) & (count[:, control] > 0.0)
    return np.where(both, means[:, treatment] - means[:, control], 0.0)


def largest_studentised(tallies: FloatArray) -> FloatArray:
    """Largest absolute studentised contrast over all pairs of arms, shape (runs,)."""
    n_arms = tallies.shape[1]
    pairs = [
        np.abs(studentised(tallies, first, second)) for first in range(n_arms) for second in range(first)
    ]
    return np.asarray(np.max(pairs, axis=0), dtype=np.float64)


def variance_ratio(tallies: FloatArray) -> FloatArray:
    """F statistic of a one-way analysis of variance over the arms that were pulled, shape (runs,)."""
    count, total, square = np.moveaxis(tallies, -1, 0)
    whole = count.sum(axis=1)
    explained = _over(total * total, count).sum(axis=1) - total.sum(axis=1) ** 2 / whole
    inside = np.maximum(square - _over(total * total, count), 0.0).sum(axis=1)
    groups = (count > 0.0).sum(axis=1)
    explained = np.where(explained > _ROUNDING**1.5 * square.sum(axis=1), explained, 0.0)
    inside = np.where(inside > _ROUNDING**1.5 * square.sum(axis=1), inside, 0.0)
    between = _over(explained, np.maximum(groups - 1.0, 0.0))
    within = _over(inside, np.maximum(whole - groups, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > 0.0, between / within, 0.0)


def pulls(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Pulls of one arm minus pulls of another, shape (runs,)."""
    return np.asarray(tallies[:, treatment, 0] - tallies[:, control, 0], dtype=np.float64)


def shifted(tallies: FloatArray, treatment: int, effect: float) -> FloatArray:
    """Tallies after subtracting `effect` from every reward of an arm."""
    moved = tallies.copy()
    count, total = tallies[:, treatment, 0], tallies[:, treatment, 1]
    moved[:, treatment, 1] = total - effect * count
    moved[:, treatment, 2] += effect * (effect * count - 2.0 * total)
    return moved


def tally_path(action: IntArray, reward: FloatArray, n_arms: int) -> FloatArray:
    """Counts, sums and sums of squares of a path by arm, shape (arms, 3)."""
    parts = [np.bincount(action, weights=w, minlength=n_arms) for w in (None, reward, reward * reward)]
    return np.stack(parts, axis=1).astype(np.float64)


def _over(top: Any, bottom: FloatArray) -> FloatArray:
    return np.asarray(np.where(bottom > 0.0, top / np.where(bottom > 0.0, bottom, 1.0), 0.0))


def _ratio(
    gap: FloatArray, inside: FloatArray, freedom: FloatArray, scale: FloatArray, square: FloatArray
) -> FloatArray:
    """Ratio gap / sqrt(inside / freedom * scale), in which rounding errors in sums are treated as 0."""
    variance = np.where(inside > _ROUNDING**1.5 * square, inside, 0.0) / np.maximum(freedom, 1.0)
    nothing = (variance == 0.0) & (np.abs(gap) <= _ROUNDING * np.sqrt(square))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(nothing, 0.0, gap / np.sqrt(variance * scale))


@dataclass(frozen=True, slots=True)
class TallyStatistic:
    """A statistic of counts, sums and sums of squares; large values are evidence against the null."""

    name: str
    treatment: int
    control: int
    alternative: str

    def signed(self, tallies: FloatArray) -> FloatArray:
        """The statistic in the form in which it is reported, shape (runs,)."""
        if self.name == "studentised":
            return studentised(tallies, self.treatment, self.control)
        if self.name == "difference":
            return difference(tallies, self.treatment, self.control)
        if self.name == "largest-studentised":
            return largest_studentised(tallies)
        if self.name == "f":
            return variance_ratio(tallies)
        return pulls(tallies, self.treatment, self.control)

    def evidence(self, values: FloatArray) -> FloatArray:
        """Reported values transformed so that large values are evidence against the hypothesis."""
        if self.name in ("largest-studentised", "f") or self.alternative == "greater":
            return values
        return np.abs(values) if self.alternative == "two-sided" else -values


@dataclass(frozen=True, slots=True)
class PathStatistic:
    """A user-defined function of whole paths; large values are evidence against the hypothesis."""

    function: Callable[..., Any]
    vectorised: bool

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, action: IntArray, reward: FloatArray, context: dict[str, Any]) -> FloatArray:
        """Values of the runs; arrays have shape (runs, rounds)."""
        # A function that writes into its arrays must change neither the log nor the next run, so it gets
        # copies.
        if self.vectorised:
            own = {name: column.copy() for name, column in context.items()}
            values = self.function(action.copy(), reward.copy(), own)
        else:
            values = [
                self.function(a.copy(), r.copy(), {name: c[run].copy() for name, c in context.items()})
                for run, (a, r) in enumerate(zip(action, reward, strict=True))
            ]
        try:
            found = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("statistic", [f"must return numbers, got {values!r:.60}"]) from None
        if found.shape != (action.shape[0],):
            shape = "one number per run" if self.vectorised else "one number"
            raise ParameterError("statistic", [f"must return {shape}, got an array of shape {found.shape}"])
        if np.isnan(found).any():
            count = int(np.isnan(found).sum())
            raise ParameterError(
                "statistic",
                [
                    f"is NaN in {count} of {found.size} runs: return a number for every path, such as -inf "
                    "where an arm was never pulled"
                ],
            )
        return found


_OWN_STREAMS = 0x52414E44
_RUNS, _TIES = 0, 1
_LARGE_MEAN = 1e5


def plan_root(rng: RandomSource | None) -> np.random.SeedSequence:
    """Seed of the re-runs, which differs from every stream that `Design.run` uses with the same `rng`."""
    return child(seed_sequence(rng), _OWN_STREAMS)


@dataclass(frozen=True, slots=True)
class Draws:
    """Statistics of consecutive re-runs; values and breakers have shape (runs,)."""

    values: FloatArray
    breakers: FloatArray


@dataclass(frozen=True)
class Plan:
    """The design and rows that are re-run, and the statistic computed from them."""

    design: Design
    log: AdaptiveLog
    rows: LoggedRows
    by_order: bool
    statistic: TallyStatistic | PathStatistic
    root: np.random.SeedSequence
    effect: float = 0.0

    def assuming(self, effect: float) -> Plan:
        """The plan under another assumed effect."""
        return dataclasses.replace(self, effect=effect)

    @property
    def name(self) -> str:
        """Name of the design."""
        return type(self.design).__name__

    @property
    def baseline(self) -> FloatArray:
        """Rewards without the assumed effect, shape (rounds,)."""
        arrays = self.log.arrays
        if self.effect == 0.0:
            return arrays.reward
        return np.asarray(arrays.reward - self.effect * (arrays.action == self.treatment), np.float64)

    @property
    def treatment(self) -> int:
        """Position of the treatment arm; -1 if the statistic has none."""
        return self.statistic.treatment if isinstance(self.statistic, TallyStatistic) else -1

    @property
    def control(self) -> int:
        """Position of the control arm; -1 if the statistic has none."""
        return self.statistic.control if isinstance(self.statistic, TallyStatistic) else -1

    def rewards(self) -> FloatArray:
        """Reward of every arm in every round, shape (rounds, arms)."""
        rewards = np.repeat(self.baseline[:, None], self.log.n_arms, axis=1)
        if self.effect != 0.0:
            rewards[:, self.treatment] += self.effect
            rewards[np.arange(self.log.n_rounds), self.log.arrays.action] = self.log.arrays.reward
        return rewards

    def observed(self) -> float:
        """The statistic of the log."""
        arrays = self.log.arrays
        if isinstance(self.statistic, PathStatistic):
            context = {name: column[None] for name, column in arrays.context.items()}
            return float(self.statistic(arrays.action[None], self.baseline[None], context)[0])
        if self.by_rounds:
            tallies = tally_path(arrays.action, self.baseline - self.centre, self.log.n_arms)
            return float(self.statistic.signed(tallies[None])[0])
        tallies = tally_path(arrays.action, arrays.reward, self.log.n_arms)[None]
        return float(self.statistic.signed(self._without_effect(tallies))[0])

    def from_paths(self, action: IntArray, tallies: FloatArray) -> FloatArray:
        """The statistic of paths of shape (runs, rounds) on the rows as logged, given their tallies."""
        arrays = self.log.arrays
        if isinstance(self.statistic, PathStatistic):
            context = {name: np.broadcast_to(column, action.shape) for name, column in arrays.context.items()}
            return self.statistic(action, np.broadcast_to(arrays.reward, action.shape), context)
        if self.by_rounds:
            centred = arrays.reward - self.centre
            tallies = np.stack([tally_path(path, centred, self.log.n_arms) for path in action])
        return self.statistic.signed(tallies)

    def breaker(self) -> float:
        """The log's own random number for breaking ties."""
        return float(np.random.default_rng(child(self.root, 2)).random())

    def evidence(self, values: FloatArray) -> FloatArray:
        """Reported values transformed so that large values are evidence against the hypothesis."""
        if isinstance(self.statistic, PathStatistic):
            return values
        return self.statistic.evidence(values)

    @property
    def scale(self) -> float:
        """Scale of a statistic, relative to which rounding errors are judged."""
        if isinstance(self.statistic, PathStatistic) or self.statistic.name == "pulls":
            return 0.0
        return float(self.baseline.std()) if self.statistic.name == "difference" else 1.0

    @property
    def centre(self) -> float:
        """Constant subtracted from rewards before they are squared, if sums are updated by round."""
        return float(self.log.arrays.reward.mean())

    @property
    def by_rounds(self) -> bool:
        """Whether sums of squared rewards in the run loop would lose the spread of rewards to rounding."""
        reward = self.log.arrays.reward
        return bool(abs(reward.mean()) > _LARGE_MEAN * reward.std() > 0.0)

    def _without_effect(self, tallies: FloatArray) -> FloatArray:
        return tallies if self.effect == 0.0 else shifted(tallies, self.treatment, self.effect)


class Runner:
    """A design's compiled program with the memory that its runs share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        rows, n_rounds = plan.rows, plan.log.n_rounds
        self.program = plan.design.program(rows, n_rounds, recording=False)
        self.world = self.program.world(rows, n_rounds)
        self.state = np.zeros(self.program.state_shape)
        self.empty = empty_record(0, rows.n_arms, with_propensities=False, dimension=rows.dimension)

    def block(self, first: int, size: int, plan: Plan | None = None) -> Draws:
        """Statistics of a block of runs; `plan` may assume an effect other than that of the runner."""
        plan = plan or self.plan
        stream = block_stream(child(plan.root, _RUNS), first)
        breakers = block_stream(child(plan.root, _TIES), first).random(BLOCK)[:size]
        tables = plan.rows.paying(plan.rewards())
        if isinstance(plan.statistic, PathStatistic) or plan.by_rounds:
            values = self._from_paths(plan, tables, stream, size)
        else:
            tallies = self.tallies(plan, tables, stream, size)
            values = plan.statistic.signed(plan._without_effect(tallies))
        return Draws(values, breakers)

    def tallies(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> FloatArray:
        """Counts, sums and sums of squares of runs, shape (runs, arms, 3)."""
        shape = (size, self.program.n_statuses, plan.rows.n_features, plan.rows.n_arms, 3)
        tallies = np.zeros(shape)
        if plan.by_order:
            for run in range(size):
                order = stream.permutation(plan.log.n_rounds)
                self._run(reordered(tables, order), stream, tallies[run : run + 1], self.empty)
        else:
            self._run(tables, stream, tallies, self.empty)
        return np.asarray(tallies.sum(axis=(1, 2)), dtype=np.float64)

    def paths(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> tuple[IntArray, IntArray]:
        """The arm of every round, and the row of the log used in that round, both of shape (runs, rounds)."""
        n_rounds = plan.log.n_rounds
        action = np.empty((size, n_rounds), dtype=np.int64)
        order = np.empty((size, n_rounds), dtype=np.int64)
        shape = (1, self.program.n_statuses, plan.rows.n_features, plan.rows.n_arms, 3)
        record = empty_record(n_rounds, plan.rows.n_arms, False, plan.rows.dimension)
        for run in range(size):
            order[run] = stream.permutation(n_rounds) if plan.by_order else np.arange(n_rounds)
            there = reordered(tables, order[run]) if plan.by_order else tables
            self._run(there, stream, np.zeros(shape), record)
            action[run] = record.action
        return action, order

    def _from_paths(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> FloatArray:
        action, order = self.paths(plan, tables, stream, size)
        reward = plan.baseline[order]
        if isinstance(plan.statistic, PathStatistic):
            context = {name: column[order] for name, column in plan.log.arrays.context.items()}
            return plan.statistic(action, reward, context)
        tallies = [
            tally_path(a, r - plan.centre, plan.log.n_arms) for a, r in zip(action, reward, strict=True)
        ]
        return plan.statistic.signed(np.stack(tallies))

    def _run(
        self, tables: EnvironmentTables, stream: np.random.Generator, tallies: FloatArray, record: Record
    ) -> None:
        runs = tallies.shape[0]
        outcomes = np.zeros((runs, self.program.n_outcomes))
        results = Results(tallies, outcomes, np.zeros(runs), record)
        world = self.world._replace(environment=tables)
        self.program.entry(self.program.tables, world, stream, self.state, results)


def blocks(plan: Plan, replications: int, n_jobs: int = 1) -> Iterator[Draws]:
    """Statistics of runs in blocks, in order; several processes compute a few blocks ahead."""
    starts = list(range(0, replications, BLOCK))
    sizes = [min(BLOCK, replications - first) for first in starts]
    if n_jobs == 1 or len(starts) == 1:
        runner = Runner(plan)
        for first, size in zip(starts, sizes, strict=True):
            yield runner.block(first, size)
        return
    workers = n_workers(n_jobs)
    for begin in range(0, len(starts), 4 * workers):
        part = list(zip(starts[begin : begin + 4 * workers], sizes[begin:], strict=False))
        shares: list[Any] = [part[worker::workers] for worker in range(workers)]
        done = spread([(_share, (plan, share)) for share in shares if share], n_jobs)
        yield from (done[i % workers][i // workers] for i in range(len(part)))


def _share(plan: Plan, share: list[tuple[int, int]]) -> list[Draws]:
    runner = Runner(plan)
    return [runner.block(first, size) for first, size in share]


_LEAVE_OUT = "omit design= to re-run the design that the log names"
_FEW, _TRIAL_STREAM = 8, 3


def make_plan(
    log: Any,
    design: Design | None,
    statistic: str | Callable[..., Any] | None,
    resample: str | None,
    rng: RandomSource | None,
    *,
    treatment: Any = None,
    control: Any = None,
    alternative: str = "two-sided",
    vectorised: bool = False,
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
    subject: str = "randomization_test",
    problems: Sequence[str] = (),
) -> Plan:
    """All inputs to a test, after validation; a single error lists all problems."""
    listed = list(problems) + SEED("rng", rng)
    if not isinstance(log, AdaptiveLog):
        raise ParameterError(subject, [*listed, f"log must be an AdaptiveLog, got {log!r:.60}"])
    if log.n_arms < 2:
        listed.append("the log has only one arm: there is nothing to compare")
    given = design_of(log if design is None else design, listed)
    if given is not None:
        listed += [f"{text}: {_LEAVE_OUT}" for text in record_problems(log, given)]
    listed += OrNone(OneOf("assignment", "order"))("resample", resample)
    chosen = _statistic(log, statistic, treatment, control, alternative, vectorised, listed)
    rows = None if given is None else logged_rows(log, given, context, features, listed)
    if rows is not None and given is not None:
        if log.n_rounds < given.needs.min_horizon:
            listed.append(
                f"{type(given).__name__} requires {given.needs.min_horizon} rounds, got {log.n_rounds}"
            )
        listed += given._environment_problems(rows, log.n_rounds)
    if listed or given is None or chosen is None or rows is None:
        raise ParameterError(subject, listed)
    by_order = (given.traits.replays_by if resample is None else resample) == "order"
    plan = Plan(given, log, rows, by_order, chosen, plan_root(rng))
    listed += _coin_problems(plan)
    if not listed:
        listed += contradiction(log, fixed_propensities(given, log, rows), f"{given!r:.80}")
    refuse(subject, listed)
    return plan


def _statistic(
    log: AdaptiveLog,
    statistic: Any,
    treatment: Any,
    control: Any,
    alternative: Any,
    vectorised: Any,
    problems: list[str],
) -> TallyStatistic | PathStatistic | None:
    known = len(problems)
    problems += OneOf(*ALTERNATIVES)("alternative", alternative) + BOOLEAN("vectorised", vectorised)
    positions = _positions(log, treatment, control, problems)
    if callable(statistic):
        if treatment is not None or control is not None or alternative != "two-sided":
            problems.append(
                "treatment, control and alternative must be omitted if statistic is a function: large "
                "values of it are evidence against the hypothesis"
            )
        problems += Callee("action", "reward", "context")("statistic", statistic)
        return PathStatistic(statistic, vectorised) if len(problems) == known else None
    if statistic is not None:
        problems += OneOf(*STATISTICS)("statistic, if it is not a function,", statistic)
    named = treatment is not None or control is not None
    name = statistic or ("studentised" if log.n_arms == 2 or named else "largest-studentised")
    if name in ("largest-studentised", "f"):
        if alternative != "two-sided":
            problems.append(f"alternative must be two-sided with {name!r}, which has no direction")
        if named:
            problems.append(f"treatment and control must be omitted with {name!r}, which compares all arms")
    elif positions is None and len(problems) == known:
        problems.append(f"with {log.n_arms} arms, specify treatment= and control=: {list(log.arms)!r:.80}")
    if len(problems) > known:
        return None
    first, second = positions or (1, 0)
    return TallyStatistic(name, first, second, alternative)


def _positions(log: AdaptiveLog, treatment: Any, control: Any, problems: list[str]) -> tuple[int, int] | None:
    """Positions of the two arms; with two arms, the second one is the treatment by default."""
    if treatment is None and control is None:
        return (1, 0) if log.n_arms == 2 else None
    found = []
    for name, label in (("treatment", treatment), ("control", control)):
        if label is None and log.n_arms == 2:
            found.append(-1)
        elif label in log.arms:
            found.append(log.arms.index(label))
        else:
            problems.append(unlisted(name, log.arms, label))
            return None
    if -1 in found:
        found[found.index(-1)] = 1 - max(found)
    if found[0] == found[1]:
        problems.append("treatment and control must be two different arms")
        return None
    return found[0], found[1]


def _coin_problems(plan: Plan) -> list[str]:
    """Problems with a design that has only one path on the logged rows, which must be the path of the log."""
    name = type(plan.design).__name__
    trial = Plan(plan.design, plan.log, plan.rows, False, plan.statistic, plan.root)
    runner = Runner(trial)
    stream = block_stream(child(plan.root, _TRIAL_STREAM), 0)
    tables = plan.rows.paying(plan.rewards())
    first, _ = runner.paths(trial, tables, stream, _FEW)
    if (first != first[0]).any():
        return []
    rest, _ = runner.paths(trial, tables, stream, BLOCK - _FEW)
    if (rest != first[0]).any():
        return []
    differs = np.flatnonzero(first[0] != plan.log.arrays.action)
    if differs.size:
        return [
            f"the log was not collected by {plan.design!r:.80}: given the logged rewards, it chooses other "
            f"actions from row {differs[0]} onwards (rows are counted from 0). Re-run the design that "
            "collected the log"
        ]
    if plan.by_order:
        return []
    return [
        f"{name} makes no random draws of its own here: if re-run by assignment, it follows the logged path "
        'every time, and p would be 1. Use resample="order" if the rows are exchangeable, or collect '
        f"data with Mixture({name}(...))"
    ]
