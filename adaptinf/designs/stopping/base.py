"""What every stopping rule can do: be run on data or in an environment, and be replicated."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import truediv
from typing import Annotated, Any, TypeAlias

import numpy as np

from adaptinf.designs.stopping import kernel
from adaptinf.designs.stopping.noise import Noise, SimulatedNoise
from adaptinf.designs.stopping.results import StoppingReplications, StoppingResult
from adaptinf.designs.stopping.streams import open_stream
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord
from adaptinf.markup import Recorded
from adaptinf.parameters import (
    COUNT,
    FLAG,
    JOBS,
    SEED,
    SHARE,
    Is,
    OneOf,
    OrNone,
    Positive,
    check,
    check_fields,
    problems_of,
    refuse,
)
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, block_stream, seed_sequence
from adaptinf.simulation.run import BERNOULLI, POOL
from adaptinf.typing import FloatArray, RandomSource
from adaptinf.workers import n_workers, spread

Scale: TypeAlias = Callable[[float, Fraction], float]
"""From a sensitivity and an epsilon to the scale of Laplace noise."""

_OPEN_SHARE = Is(lambda share: not SHARE("", share) and share < 1.0, "a number strictly between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class StoppingRule(Recorded, ABC):
    """Base of the stopping rules: `NAS` and `DPNAS`."""

    alpha: Annotated[float, _OPEN_SHARE]
    beta: Annotated[float, _OPEN_SHARE]
    bound: Positive = 1.0
    steps: Annotated[str, OneOf("every", "exponential")] = "every"

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def rule(self, bound: float, unit: float, scale: Scale = truediv) -> kernel.Rule:
        """Constants of the halting test.

        Parameters
        ----------
        bound : float
            Largest absolute value of a sample, in units.
        unit : float
            What one unit is worth.
        scale : callable
            Scale of the noise that makes a statistic of some sensitivity epsilon-private.

        Returns
        -------
        Rule
            For the kernel.
        """

    @abstractmethod
    def guarantee(self) -> PrivacyGuarantee | None:
        """The privacy of the stopping time and the estimate; None where there is no noise."""

    def record(self) -> DesignRecord:
        """Name and parameters."""
        parameters = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return DesignRecord(name=type(self).__name__, parameters=parameters)

    def replicate(
        self,
        env: Environment,
        replications: int,
        rng: RandomSource | None = None,
        max_rounds: int | None = None,
        n_jobs: int = 1,
        by_rounds: bool | None = None,
    ) -> StoppingReplications:
        """Run the rule many times on one law.

        Parameters
        ----------
        env : Environment
            One arm, no contexts: its rewards are the samples.
        replications : int
            Number of runs.
        rng : int, SeedSequence, Generator or None
            Source of randomness; replicate r depends on (rng, r) alone. Noise is simulated.
        max_rounds : int
            Samples after which a run is given up. It must be said: at a mean of 0 a run goes on for ever.
        n_jobs : int
            Worker processes, -1 for all cores; the numbers are the same for any.
        by_rounds : bool, optional
            Draw every sample, with the numbers of `run`. By default only where there is no exact shortcut:
            with exponential steps and a law of two values, sums between looks are binomial.

        Returns
        -------
        StoppingReplications
            Estimates and stopping times.

        Raises
        ------
        ParameterError
            Listing everything that does not fit, before anything is drawn.
        """
        problems = problems_of(
            replications=(replications, COUNT),
            n_jobs=(n_jobs, JOBS),
            rng=(rng, SEED),
            by_rounds=(by_rounds, FLAG),
        )
        refuse(self._name, problems + self._environment_problems(env, max_rounds))
        values = _two_values(env) if self.steps == "exponential" else None
        looped = values is None if by_rounds is None else by_rounds
        if not looped and values is None:
            refuse(self._name, [f"by_rounds=False: there is no shortcut for steps={self.steps!r} in {env!r}"])
        law = env if looped or values is None else values
        outcomes = self._outcomes(law, replications, seed_sequence(rng), int(max_rounds or 0), n_jobs)
        stopped = outcomes[:, kernel.STOPPED] > 0.0
        samples = outcomes[:, kernel.READ].astype(np.int64)
        return StoppingReplications(
            estimate=outcomes[:, kernel.ESTIMATE].copy(),
            stopping_time=np.where(stopped, samples, np.nan),
            stopped=stopped,
            samples=samples,
            alpha=float(self.alpha),
            beta=float(self.beta),
        )

    def _outcomes(
        self,
        law: Environment | tuple[float, float, float],
        replications: int,
        root: np.random.SeedSequence,
        rounds: int,
        n_jobs: int,
    ) -> FloatArray:
        """What each run reports, shape (replications, OUTCOMES); a law of two values goes look by look."""
        last = self._last_look(rounds)
        starts = np.arange(0, replications, BLOCK)
        workers = 1 if n_jobs == 1 else min(len(starts), 4 * n_workers(n_jobs))
        rule = self.rule(float(self.bound), 1.0)
        jobs = [
            (_run_blocks, (rule, law, last, replications, root, share.tolist()))
            for share in np.array_split(starts, workers)
        ]
        return np.concatenate(spread(jobs, 1 if workers == 1 else n_jobs))

    def _on_sums(self, sums: FloatArray, runs: int, rng: np.random.Generator) -> FloatArray:
        """What runs on one fixed stream report, shape (runs, OUTCOMES); sums at its looks (looks,)."""
        outcomes = np.zeros((runs, kernel.OUTCOMES))
        kernel.run_on_sums(self.rule(float(self.bound), 1.0), sums, rng, np.zeros(kernel.STATE), outcomes)
        return outcomes

    def _last_look(self, rounds: int) -> int:
        """Samples at the last look within so many rounds, 0 where there is none."""
        if self.steps == "every":
            return rounds
        return 1 << (rounds.bit_length() - 1) if rounds > 1 else 0

    def _environment_problems(self, env: Any, max_rounds: Any) -> list[str]:
        """What keeps the rule from being run there."""
        if not isinstance(env, Environment):
            return [f"env must be an environment of one arm, got {env!r:.60}"]
        if max_rounds is None:
            problems = ["max_rounds is needed: with a mean of 0 the rule goes on for ever"]
        else:
            problems = COUNT("max_rounds", max_rounds)
        if env.n_arms != 1 or env.features or env.dimension:
            problems.append(f"the environment must have one arm and no contexts, got {env!r}")
        low, high = env.reward_range
        if (-math.inf < low < -self.bound) or (self.bound < high < math.inf):
            problems.append(
                f"samples must lie in [{-self.bound:g}, {self.bound:g}], those of {type(env).__name__} lie "
                f"in [{low:g}, {high:g}]: give a larger bound"
            )
        elif self.guarantee() is None and not (math.isfinite(low) and math.isfinite(high)):
            problems.append(
                f"samples must be bounded, those of {type(env).__name__} are not: only a private rule clips"
            )
        return problems

    def _run(
        self, stream: Any, rng: RandomSource | None, max_rounds: int | None, noise: Noise | None = None
    ) -> StoppingResult:
        """One run, on data or in an environment."""
        if isinstance(stream, Environment):
            check(self._name, rng=(rng, SEED), also=self._environment_problems(stream, max_rounds))
            outcome = self._outcomes(stream, 1, seed_sequence(rng), int(max_rounds or 0), 1)[0]
            return self._result(outcome, "simulation", max_rounds)
        check(self._name, rng=(rng, SEED), max_rounds=(max_rounds, OrNone(COUNT)))
        bound = float(self.bound)
        samples = open_stream(stream, bound, self.guarantee() is not None, type(self).__name__)
        source = noise or SimulatedNoise(block_stream(seed_sequence(rng), 0))
        unit = source.unit(bound)
        rule = self.rule(bound / unit, unit, source.scale)
        state = np.zeros(kernel.STATE)
        kernel.begin_run(rule, state, source.threshold(rule.threshold_scale))
        last = math.inf if max_rounds is None else self._last_look(int(max_rounds))
        halted, more = False, True
        while more and not halted and state[kernel.NEXT_LOOK] <= last:
            read = state[kernel.SAMPLES]
            every = self.steps == "every"
            count = int(min(samples.ahead, last - read) if every else state[kernel.NEXT_LOOK] - read)
            values = source.to_units(samples.take(count), bound)
            more = values.size == count
            looked = source.looks(rule.query_scale, values.size if every else 1)
            halted = kernel.read_values(rule, state, values, looked)
        outcome = np.array([math.nan, float(halted), state[kernel.SAMPLES]])
        if halted:
            outcome[kernel.ESTIMATE] = kernel.finish_run(rule, state, source.release(rule.release_scale))
        return self._result(outcome, source.name, None if not more else max_rounds)

    def _result(self, outcome: FloatArray, noise: str, max_rounds: int | None) -> StoppingResult:
        """What a run reports; without `max_rounds` a run that did not stop has come to the stream's end."""
        stopped, samples = bool(outcome[kernel.STOPPED]), int(outcome[kernel.READ])
        guarantee, reason = self.guarantee(), None
        if not stopped:
            end = "the stream ended" if max_rounds is None else f"max_rounds={max_rounds} was reached"
            reason = (
                f"{end} before the rule halted ({samples} samples read); means close to 0 need many samples, "
                "and a mean of 0 has no relative accuracy"
            )
        return StoppingResult(
            estimate=float(outcome[kernel.ESTIMATE]),
            stopping_time=samples if stopped else math.nan,
            stopped=stopped,
            samples=samples,
            reason=reason,
            alpha=float(self.alpha),
            beta=float(self.beta),
            guarantee=guarantee,
            noise=None if guarantee is None else noise,
            design=self.record(),
        )

    @property
    def _name(self) -> str:
        return type(self).__name__


def _two_values(env: Environment) -> tuple[float, float, float] | None:
    """The two values of a law and the probability of the higher one; None where there are more."""
    tables = env.tables(1)
    if tables.kind == BERNOULLI:
        return 0.0, 1.0, float(tables.location[0, 0])
    if tables.kind != POOL:
        return None
    values, counts = np.unique(tables.pool, return_counts=True)
    if values.size > 2:
        return None
    return float(values[0]), float(values[-1]), float(counts[-1] / counts.sum())


def _run_blocks(
    rule: kernel.Rule,
    law: Environment | tuple[float, float, float],
    last: int,
    replications: int,
    root: np.random.SeedSequence,
    starts: list[int],
) -> FloatArray:
    """Outcomes of the blocks that start at these runs."""
    state = np.zeros(kernel.STATE)
    sizes = [min(BLOCK, replications - start) for start in starts]
    outcomes = np.zeros((sum(sizes), kernel.OUTCOMES))
    done = 0
    for start, size in zip(starts, sizes, strict=True):
        part, stream = outcomes[done : done + size], block_stream(root, start)
        if isinstance(law, Environment):
            kernel.run_by_rounds(rule, law.tables(max(last, 1)), last, stream, state, part)
        else:
            kernel.run_by_looks(rule, *law, last, stream, state, part)
        done += size
    return outcomes
