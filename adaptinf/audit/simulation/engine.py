"""A common engine for all simulated audits: trials run in blocks, and their sums are merged in order."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.audit.simulation.measures import FAILED, INVALID, MISSING, BlockSums, Gap, Key, add_runs
from adaptinf.designs.base import Design
from adaptinf.errors import AdaptinfError, AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.validity.rare import FEWEST, without_interval
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, child
from adaptinf.texts import absent, listed, literal
from adaptinf.typing import FloatArray
from adaptinf.workers import n_workers, unordered

# A test has a p-value and no terms; this name takes the place of one.
TEST = "test"
_STREAM = 0x46495453
_LONGEST = 100


@runtime_checkable
class Test(Protocol):
    """Anything with a p-value: a test from this library, from SciPy, or user-defined."""

    @property
    def pvalue(self) -> float:
        """P-value; small if the data are evidence against the hypothesis."""


Answer: TypeAlias = "Results | Test"
Fit: TypeAlias = "Callable[..., Answer | Mapping[str, Answer]]"


def is_test(answer: Any) -> bool:
    """Whether an analysis returned a test, that is, an object with a number named `pvalue`."""
    return not isinstance(answer, Results) and isinstance(getattr(answer, "pvalue", None), Real)


def takes_rng(fit: Any) -> bool:
    """Whether an analysis has an unbound parameter `rng`."""
    if isinstance(fit, functools.partial) and "rng" in fit.keywords:
        return False
    try:
        return "rng" in inspect.signature(fit).parameters
    except (TypeError, ValueError):
        return False


def seed_of_trial(root: np.random.SeedSequence, run: int) -> np.random.SeedSequence:
    """Random stream for the analyses of a trial, separate from those of the trial itself."""
    return child(root, _STREAM, run)


def analysed(fit: Any, log: AdaptiveLog, seed: np.random.SeedSequence) -> Any:
    """The result of an analysis for a log; an analysis with a parameter `rng` receives the trial's seed."""
    return fit(log, rng=seed) if takes_rng(fit) else fit(log)


def short(error: BaseException) -> str:
    """An error message on one line."""
    text = literal(str(error))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def why_missing(estimand: Estimand, estimate: float, std_error: float, log: AdaptiveLog) -> str:
    """The reason why a term has no interval in a trial."""
    arms = [arm for arm in (estimand.arm, estimand.treatment, estimand.control) if arm in log.arms]
    codes = [log.arms.index(arm) for arm in arms]
    rounds = log._rounds_by_arm()[codes]
    for arm in (arm for arm, chosen in zip(arms, rounds, strict=True) if chosen == 0):
        return f"arm {arm} was never chosen"
    if not math.isfinite(estimate):
        return "no estimate"
    uncommon = uncommon_outcomes(log.arrays.action, log.arrays.reward, log.n_arms)[codes]
    if without_interval(uncommon).any():
        return f"fewer than {FEWEST} outcomes of an arm differ from its most common one"
    return "the standard error is 0" if std_error == 0.0 else "an estimate without an interval"


_RATIOS = {"ratio": "arm-mean", "ratio-contrast": "contrast", "ratio-lift": "lift"}
_KINDS = ("arm-mean", "contrast", "lift", "cate", "bin-mean", *_RATIOS)


def largest_difference(env: Environment) -> float | None:
    """Largest difference between the mean rewards of two arms in a context; None if it is not known."""
    if env.dimension:
        return None
    largest = float((env.means.max(axis=1) - env.means.min(axis=1)).max())
    return largest if np.isfinite(largest) else None


def true_value(estimand: Estimand, env: Environment) -> float:
    """The value of an estimand in an environment.

    Parameters
    ----------
    estimand : Estimand
        The mean of an arm, the contrast or lift of two arms, any of these for a ratio metric, the effect
        within a group, or the mean of an arm over a bin.
    env : Environment
        An environment with known truth.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If the environment has no such arm or group, cannot give averages over bins or the true mean of a
        denominator, or the estimand is of another kind.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.BernoulliArms([0.25, 0.75])
    >>> log = ai.designs.Uniform().run(env, horizon=100, rng=0)
    >>> result = ai.Contrast(log, treatment=1, control=0).fit()
    >>> ai.audit.true_value(result.estimands[0], env)
    0.5
    """
    if estimand.kind not in _KINDS:
        problem = (
            f"the true value of a {estimand.kind!r} does not follow from an environment: pass it as truth="
        )
        raise ParameterError("true_value", [problem])
    kind = _RATIOS.get(estimand.kind, estimand.kind)
    of_arm = kind in ("arm-mean", "bin-mean")
    labels = [estimand.arm] if of_arm else [estimand.treatment, estimand.control]
    unknown = [
        absent("arm", label, env.arms, "the environment has") for label in labels if label not in env.arms
    ]
    if estimand.kind == "cate" and estimand.group not in env.features:
        unknown.append(f"the environment has no context {estimand.group!r}")
    averages = getattr(env, "averages", None) if getattr(env, "rows", None) is None else None
    if estimand.kind == "bin-mean" and averages is None:
        unknown.append("the environment has no averages over bins: use SmoothArms with uniform contexts")
    if estimand.kind in _RATIOS and estimand.denominator not in env.outcome_means:
        known = listed(env.outcome_means)
        unknown.append(
            f"the environment has no true mean of the denominator, {estimand.denominator}, but only of "
            f"{known}: pass the means of outcomes by name to FunctionEnvironment as outcome_means=, or pass "
            f"truth="
        )
    if np.isnan(env.means).any():
        unknown.append(f"{type(env).__name__} has no true means: pass means= to it, or truth=")
    refuse("true_value", unknown)
    codes = [env.arms.index(label) for label in labels]
    if estimand.kind == "cate":
        return float(env.effects(codes[0], codes[1])[env.features.index(estimand.group)])
    if averages is not None and estimand.kind == "bin-mean":
        edges = np.array(estimand.group, dtype=np.float64)
        return float(averages(edges[None, :, 0], edges[None, :, 1])[0, codes[0]])
    every = env.arm_means() if estimand.kind == kind else env.ratios(str(estimand.denominator))
    means = every[codes]
    if kind == "lift":
        return float(means[0] / means[1] - 1.0) if means[1] != 0.0 else float("nan")
    return float(means[0] if kind == "arm-mean" else means[0] - means[1])


Truth: TypeAlias = "Callable[[Environment, Any], ArrayLike]"

DESIGN_TIME = "(design)"
_ESTIMATE, _SE, _LOW, _HIGH, _PVALUE = range(5)
_CHUNK = 16 * BLOCK
# With several pieces for each worker, no worker waits long for another at the end.
_TASKS = 4


class AnalysisError(AdaptinfError, RuntimeError):
    """An analysis, or a design, failed in a simulated trial; the message states which.

    Parameters
    ----------
    message : str
        The cell, the replicate, the exception, and how to reproduce the trial.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> def no_estimate(log):
    ...     raise ValueError("no estimate")
    >>> try:
    ...     found = ai.audit.coverage(ai.designs.Uniform(), arms, no_estimate, 50, 64, rng=0)
    ... except ai.audit.AnalysisError as error:
    ...     print("no estimate" in str(error))
    True
    """


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Values from single runs of one analysis; runs have shape (runs,), and values (runs, terms, 5)."""

    keys: tuple[Key, ...]
    runs: np.ndarray[Any, np.dtype[np.int64]]
    values: FloatArray


@dataclass(slots=True)
class Chunk:
    """Consecutive blocks of runs of a cell."""

    start: int
    stop: int
    blocks: list[BlockSums] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)


class Simulated(Protocol):
    """A cell of a grid: any object whose runs can be computed in blocks."""

    def chunk(self, start: int, stop: int, keep: bool) -> Chunk:
        """Runs `start` (a multiple of 64) to `stop`; the numbers do not depend on earlier runs."""


def spans(replications: int, size: int) -> Iterator[tuple[int, int]]:
    """First and last run of each chunk of `size` runs."""
    for start in range(0, replications, size):
        yield start, min(start + size, replications)


def each(
    cells: Sequence[Simulated],
    tasks: Sequence[tuple[int, int, int]],
    handle: Callable[[int, Chunk], Any],
    *,
    keep: bool = False,
    n_jobs: int = 1,
) -> Iterator[tuple[int, int, Any]]:
    """Compute chunks and yield each as soon as it is complete, in any order."""
    jobs = ((_compute, (cells[task[0]], task, keep, handle)) for task in tasks)
    yield from unordered(jobs, n_jobs if len(tasks) > 1 else 1)


def gathered(cells: Sequence[Simulated], replications: int, n_jobs: int = 1) -> list[list[Chunk]]:
    """All runs of several cells."""
    size = _CHUNK
    if n_jobs != 1:
        shares = _TASKS * n_workers(n_jobs)
        size = min(_CHUNK, BLOCK * math.ceil(len(cells) * replications / (shares * BLOCK)))
    tasks = [(index, *span) for index in range(len(cells)) for span in spans(replications, size)]
    found = {(index, start): chunk for index, start, chunk in each(cells, tasks, whole, n_jobs=n_jobs)}
    chunks: list[list[Chunk]] = [[] for _ in cells]
    for index, start, _ in tasks:
        chunks[index].append(found[index, start])
    return chunks


def total_sums(chunks: Sequence[Chunk]) -> BlockSums:
    """The sums over all blocks, in order: the same for any number of workers."""
    total = BlockSums()
    for chunk in chunks:
        for block in chunk.blocks:
            total.merge(block)
    return total


def total_seconds(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Processor seconds by analysis, over all parts."""
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def whole(index: int, chunk: Chunk) -> Chunk:
    """Return a chunk unchanged."""
    return chunk


def _compute(
    cell: Simulated, task: tuple[int, int, int], keep: bool, handle: Callable[[int, Chunk], Any]
) -> tuple[int, int, Any]:
    index, start, stop = task
    return index, start, handle(index, cell.chunk(start, stop, keep))


@dataclass(frozen=True, eq=False)
class LogCell:
    """Analyses of the same simulated logs: a design in an environment over a horizon."""

    names: tuple[str, str]
    design: Design
    env: Environment
    horizon: int
    analyses: Mapping[str, Fit]
    alpha: float
    root: np.random.SeedSequence
    truth: Mapping[str, Truth] = field(default_factory=dict)
    null: float | Mapping[str, float] | None = None
    on_error: str = "raise"
    regret: bool = False

    def chunk(self, start: int, stop: int, keep: bool) -> Chunk:
        """Runs `start` (a multiple of 64) to `stop`."""
        chunk = Chunk(start, stop, seconds=dict.fromkeys((DESIGN_TIME, *self.analyses), 0.0))
        logs, terms = self.logs(start, stop), _Terms(self)
        with warnings.catch_warnings():
            # The simulation measures the behaviour that an analysis warns about, so its warnings would only
            # repeat the results.
            warnings.simplefilter("ignore", AdaptinfWarning)
            for first in range(start, stop, BLOCK):
                block = _Block(terms, keep)
                for run in range(first, min(first + BLOCK, stop)):
                    self._run(run, logs, block, chunk.seconds)
                chunk.blocks.append(block.sums())
                if keep:
                    chunk.kept.extend(block.kept())
        if self.regret:
            sims = self.design.replicate(self.env, self.horizon, stop, self.root, start=start, by_rounds=True)
            for place, sums in enumerate(chunk.blocks):
                sums.add_regret(sims.regret[place * BLOCK : (place + 1) * BLOCK])
        return chunk

    def logs(self, start: int, stop: int) -> Iterator[AdaptiveLog]:
        """Logs of the runs."""
        return self.design.logs(self.env, self.horizon, stop, self.root, start=start)

    def again(self, run: int) -> str:
        """How to reproduce the log of a run."""
        source = f"{run + 1}, {written(self.root)}, start={run - run % BLOCK}"
        return f"the last log of design.logs(env, {self.horizon}, {source})"

    def _run(self, run: int, logs: Iterator[AdaptiveLog], block: _Block, seconds: dict[str, float]) -> None:
        began = time.process_time()
        try:
            log = next(logs)
        except Exception as error:
            raise self._failed("the design", run, error) from error
        seconds[DESIGN_TIME] += (now := time.process_time()) - began
        seed = seed_of_trial(self.root, run)
        for name, fit in self.analyses.items():
            began, fitted = now, None
            try:
                fitted = analysed(fit, log, seed)
                for label, answer in self._named(name, fitted):
                    block.add(run, name, label, answer, log)
            except Exception as error:
                if name and isinstance(error, InvalidForLog):
                    block.refuse(Gap(INVALID, name), error.reason)
                elif name and self.on_error == "count" and fitted is None:
                    block.refuse(Gap(FAILED, name), short(error))
                else:
                    what = f"analysis {name!r}" if name else "the analysis"
                    raise self._failed(what, run, error, takes_rng(fit)) from error
            seconds[name] += (now := time.process_time()) - began

    def _named(self, name: str, fitted: Any) -> Iterator[tuple[str, Answer]]:
        if isinstance(fitted, Mapping):
            for label, result in fitted.items():
                yield (f"{name}: {label}" if name else str(label)), result
        elif isinstance(fitted, Results):
            yield name or fitted.estimator, fitted
        elif is_test(fitted):
            yield name or type(fitted).__name__, fitted
        else:
            problem = (
                f"it must return a result of fit(), a test (an object with a numeric `pvalue`), or a dict of "
                f"results and tests, got {fitted!r:.60}"
            )
            raise ParameterError(name or "fit", [problem])

    def _failed(self, what: str, run: int, error: Exception, drew: bool = False) -> Exception:
        design, env = self.names
        own = f"; its rng was {written(seed_of_trial(self.root, run))}" if drew else ""
        return AnalysisError(
            f"{what} failed in replicate {run} of design {design!r} in environment {env!r} over "
            f"{self.horizon:,} rounds: {type(error).__name__}: {error}\n"
            f"its log is {self.again(run)}{own}"
        )


def written(seed: np.random.SeedSequence) -> str:
    """A seed sequence as code."""
    key = f", spawn_key={tuple(seed.spawn_key)}" if seed.spawn_key else ""
    return f"np.random.SeedSequence({seed.entropy}{key})"


class _Terms:
    """Keys that identify the terms of results, computed once for all runs with the same terms."""

    def __init__(self, cell: LogCell) -> None:
        self.cell = cell
        self.log_alpha = math.log(cell.alpha)
        self._known: dict[str, list[tuple[Results, tuple[Key, ...]]]] = {}
        self._tests: dict[str, Key] = {}

    def of_test(self, analysis: str, label: str, test: Answer) -> Key:
        """Key for the row of a test: the null is no difference between arms unless `truth` says otherwise."""
        if label not in self._tests:
            env, truth = self.cell.env, largest_difference(self.cell.env)
            if analysis in self.cell.truth:
                truth = float(np.asarray(self.cell.truth[analysis](env, test), dtype=np.float64).item())
            null = self.cell.null
            value = null.get(TEST) if isinstance(null, Mapping) else null or 0.0
            self._tests[label] = Key(label, TEST, truth, value)
        return self._tests[label]

    def of(self, analysis: str, label: str, result: Results) -> tuple[Key, ...]:
        known = self._known.setdefault(label, [])
        for other, keys in known:
            if (other.terms, other.null, other.estimands) == (result.terms, result.null, result.estimands):
                return keys
        keys = self._keys(analysis, label, result)
        known.append((result, keys))
        return keys

    def _keys(self, analysis: str, label: str, result: Results) -> tuple[Key, ...]:
        env = self.cell.env
        if analysis in self.cell.truth:
            values = np.atleast_1d(np.asarray(self.cell.truth[analysis](env, result), dtype=np.float64))
        else:
            values = np.array([true_value(estimand, env) for estimand in result.estimands])
        problems = []
        if values.shape != (len(result.terms),) or not np.isfinite(values).all():
            problems.append(f"its truth must be {len(result.terms)} finite numbers, got {values.tolist()}")
        if len(set(result.terms)) < len(result.terms):
            problems.append(f"its terms must have distinct names, got {', '.join(result.terms)}")
        refuse(label, problems)
        return tuple(
            Key(label, term, value, self._null(term, result))
            for term, value in zip(result.terms, values.tolist(), strict=True)
        )

    def _null(self, term: str, result: Results) -> float | None:
        given = self.cell.null
        if isinstance(given, Mapping):
            return float(given[term]) if term in given else None
        return float(result.null if given is None else given)


def _limits(result: Results, log_alpha: float) -> FloatArray:
    """Intervals, of shape (k, 2); (inf, -inf) if a test rejects every value, which counts as a miss."""
    limits = result.reference.interval(log_alpha)
    none = np.isfinite(result.estimate) & np.isnan(limits).all(axis=1)
    if none.any():
        none &= ~np.isnan(result.reference.log_pvalues(float(result.null)))
        limits = np.where(none[:, None], (np.inf, -np.inf), limits)
    return limits


class _Block:
    """The values from the runs of one block."""

    def __init__(self, terms: _Terms, keep: bool) -> None:
        self._terms = terms
        self._keep = keep
        self._rows: dict[tuple[Key, ...], tuple[list[int], FloatArray]] = {}
        self._tests: set[tuple[Key, ...]] = set()
        self._gaps = BlockSums()

    def add(self, run: int, analysis: str, label: str, result: Answer, log: AdaptiveLog) -> None:
        if not isinstance(result, Results):
            self._add_test(run, self._terms.of_test(analysis, label, result), float(result.pvalue))
            return
        keys = self._terms.of(analysis, label, result)
        self._put(run, keys, result, self._terms.log_alpha, log)
        if result.correction is not None:
            corrected = tuple(key._replace(analysis=f"{label}, corrected") for key in keys)
            self._put(run, corrected, result, result.correction.level(self._terms.log_alpha), log)

    def _add_test(self, run: int, key: Key, pvalue: float) -> None:
        if not (0.0 <= pvalue <= 1.0 or math.isnan(pvalue)):
            raise ParameterError(key.analysis, [f"a p-value must be within [0, 1], got {pvalue}"])
        if math.isnan(pvalue):
            self.refuse(Gap(MISSING, key.analysis, key.term), "the p-value is not a number")
        self._tests.add((key,))
        self._row(run, (key,))[:, _PVALUE] = pvalue

    def _put(
        self, run: int, keys: tuple[Key, ...], result: Results, log_alpha: float, log: AdaptiveLog
    ) -> None:
        row = self._row(run, keys)
        row[:, _ESTIMATE] = result.estimate
        row[:, _SE] = result.std_error
        row[:, _LOW : _HIGH + 1] = _limits(result, log_alpha)
        known = np.isfinite(row[:, _ESTIMATE]) & ~np.isnan(row[:, _LOW : _HIGH + 1]).any(axis=1)
        for place in np.flatnonzero(~known):
            reason = why_missing(result.estimands[place], row[place, _ESTIMATE], row[place, _SE], log)
            self.refuse(Gap(MISSING, keys[place].analysis, keys[place].term), reason)
        if self._keep:
            corrected = log_alpha != self._terms.log_alpha
            row[:, _PVALUE] = np.exp(result.log_pvalues_corrected if corrected else result.log_pvalues)

    def _row(self, run: int, keys: tuple[Key, ...]) -> FloatArray:
        """The part of the arrays in which the values of a run are stored, of shape (terms, 5)."""
        if keys not in self._rows:
            self._rows[keys] = [], np.full((BLOCK, len(keys), 5), np.nan)
        runs, values = self._rows[keys]
        if runs and runs[-1] == run:
            raise ParameterError(keys[0].analysis, ["two results of one log have the same name and terms"])
        runs.append(run)
        return np.asarray(values[len(runs) - 1])

    def refuse(self, gap: Gap, reason: str) -> None:
        self._gaps.add_gap(gap, reason)

    def sums(self) -> BlockSums:
        sums = BlockSums(gaps=self._gaps.gaps)
        for keys, (runs, values) in self._rows.items():
            if keys in self._tests:
                sums.add_tests(keys[0], values[: len(runs), 0, _PVALUE], self._terms.cell.alpha)
                continue
            estimate, std_error, low, high = (values[: len(runs), :, part] for part in range(4))
            add_runs(sums, keys, estimate, low, high, std_error)
        return sums

    def kept(self) -> Iterator[Kept]:
        for keys, (runs, values) in self._rows.items():
            yield Kept(keys, np.array(runs, dtype=np.int64), values[: len(runs)])


def horizon_problems(horizons: Any) -> Iterator[str]:
    """List problems with the horizons of a grid."""
    if isinstance(horizons, (str, bytes)) or not isinstance(horizons, Sequence) or not horizons:
        yield f"horizons must be a list of whole numbers, got {horizons!r:.60}"
        return
    wrong = [problem for value in horizons for problem in COUNT("horizons", value)]
    yield from wrong
    if not wrong and len(set(horizons)) < len(horizons):
        yield f"horizons must differ, got {list(horizons)}"


def cell_problems(given: Mapping[str, Any]) -> Iterator[str]:
    """List designs that cannot be run in certain environments, with reasons."""
    grid = itertools.product(given["designs"].items(), given["environments"].items(), given["horizons"])
    for (name, design), (place, env), horizon in grid:
        try:
            design._check(env, horizon, given["replications"], None, 0)
        except ParameterError as error:
            for problem in error.problems:
                yield f"design {name!r} in environment {place!r} over {horizon} rounds: {problem}"
