"""Stopping rules, with and without privacy: sample until the mean is known up to a factor."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import truediv
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_kernel import Rule
from adaptinf.designs.stopping.stopping_results import StoppingReplications, StoppingResult
from adaptinf.designs.stopping.stopping_samples import Noise, ReleaseNoise, SimulatedNoise, open_stream
from adaptinf.guarantee import PrivacyGuarantee, sequential
from adaptinf.log import DesignRecord
from adaptinf.markup import Recorded
from adaptinf.parameters import (
    COUNT,
    FLAG,
    JOBS,
    SEED,
    SHARE,
    Calibration,
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
"""Function that gives the scale of Laplace noise from sensitivity and epsilon."""

_OPEN_SHARE = Is(lambda share: not SHARE("", share) and share < 1.0, "a number strictly between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class StoppingRule(Recorded, ABC):
    """Base class of the stopping rules `NAS` and `DPNAS`."""

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
            The size of one unit.
        scale : callable
            Scale of the noise that makes a statistic with a given sensitivity epsilon-private.

        Returns
        -------
        Rule
            The constants, for the kernel.
        """

    @abstractmethod
    def guarantee(self) -> PrivacyGuarantee | None:
        """Privacy guarantee for the stopping time and the estimate; None without noise."""

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
        """Run the rule many times on one distribution.

        Parameters
        ----------
        env : Environment
            An environment with one arm and no contexts, whose rewards are the samples.
        replications : int
            Number of runs.
        rng : int, SeedSequence, Generator or None
            Source of randomness; replicate r depends on (rng, r) alone. The noise is simulated.
        max_rounds : int
            Number of samples after which a run is abandoned. The limit is required because a run never ends
            if the mean is 0.
        n_jobs : int
            Number of worker processes, -1 for all cores; it does not affect the results.
        by_rounds : bool, optional
            Whether to draw every sample, reproducing the numbers of `run`. By default this is done only if
            there is no exact shortcut: with exponential steps and a two-valued distribution, sums between
            looks are binomial.

        Returns
        -------
        StoppingReplications
            Estimates and stopping times.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem, before anything is drawn.
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
            refuse(
                self._name,
                [
                    f"by_rounds=False is not available, because there is no shortcut for "
                    f"steps={self.steps!r} in {env!r}"
                ],
            )
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
        """Results of the runs, shape (replications, OUTCOMES); two-valued laws are simulated look by look."""
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
        """Results of runs on one fixed stream, (runs, OUTCOMES), given its sums at the looks, (looks,)."""
        outcomes = np.zeros((runs, kernel.OUTCOMES))
        kernel.run_on_sums(self.rule(float(self.bound), 1.0), sums, rng, np.zeros(kernel.STATE), outcomes)
        return outcomes

    def _last_look(self, rounds: int) -> int:
        """Number of samples at the last look within this many rounds; 0 if there is none."""
        if self.steps == "every":
            return rounds
        return 1 << (rounds.bit_length() - 1) if rounds > 1 else 0

    def _environment_problems(self, env: Any, max_rounds: Any) -> list[str]:
        """Reasons why the rule cannot be run in the environment."""
        if not isinstance(env, Environment):
            return [f"env must be an environment of one arm, got {env!r:.60}"]
        if max_rounds is None:
            problems = ["max_rounds is required: with a mean of 0 the rule never stops"]
        else:
            problems = COUNT("max_rounds", max_rounds)
        if env.n_arms != 1 or env.features or env.dimension:
            problems.append(f"the environment must have one arm and no contexts, got {env!r}")
        low, high = env.reward_range
        if (-math.inf < low < -self.bound) or (self.bound < high < math.inf):
            problems.append(
                f"samples must lie in [{-self.bound:g}, {self.bound:g}], but those of {type(env).__name__} "
                f"lie in [{low:g}, {high:g}]: use a larger bound"
            )
        elif self.guarantee() is None and not (math.isfinite(low) and math.isfinite(high)):
            problems.append(
                f"samples must be bounded, but those of {type(env).__name__} are not: only private rules "
                f"clip samples"
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
        """Result of a run; without `max_rounds`, a run that did not stop reached the end of the stream."""
        stopped, samples = bool(outcome[kernel.STOPPED]), int(outcome[kernel.READ])
        guarantee, reason = self.guarantee(), None
        if not stopped:
            end = "the stream ended" if max_rounds is None else f"max_rounds={max_rounds} was reached"
            reason = (
                f"{end} before the rule stopped ({samples} samples read); means close to 0 require many "
                f"samples, and relative accuracy is undefined for a mean of 0"
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
    """The two values of a distribution and the probability of the higher one; None if there are more."""
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
    """Outcomes of the blocks that start with the given runs."""
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


_LEAST_RELEASE_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class NAS(StoppingRule):
    """Nonmonotonic adaptive sampling: sample until the mean is known up to a factor of 1 +- alpha.

    Parameters
    ----------
    alpha : float
        Required relative accuracy, in (0, 1).
    beta : float
        Probability, in (0, 1), that the estimate is less accurate.
    bound : float
        Samples lie in [-bound, bound].
    steps : {"every", "exponential"}
        Look after every sample, or after 2, 4, 8, ... samples.

    Notes
    -----
    The rule halts at the first look j, after t samples, at which abs(mean) >= h_t (1 + 1/alpha), where h_t =
    bound sqrt((2/t) log(4 j^2 / beta)): Hoeffding's inequality at confidence 1 - beta / (2 j^2), so all
    deviations together have probability at most beta. For independent samples with a common mean, the
    probability that the rule stops with an error of at least alpha abs(mean) is at most beta, no matter when
    it is abandoned. If the mean is 0, the rule stops with probability at most beta. Unless the mean is large,
    exponential steps stop earlier, because there are fewer looks to allow for.

    References
    ----------
    Domingo, C., Gavalda, R. and Watanabe, O. (2002). Adaptive sampling methods for scaling up knowledge
    discovery algorithms. Data Mining and Knowledge Discovery 6.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> result = ai.designs.NAS(alpha=0.2, beta=0.05).run(rng.uniform(0.0, 1.0, 10_000))
    >>> result.stopping_time
    6364
    >>> round(result.estimate, 2)
    0.5
    """

    def rule(self, bound: float, unit: float, scale: Scale = truediv) -> Rule:
        """Constants of the halting test; the largest sample is `bound` units of size `unit`."""
        return Rule(
            exponential=self.steps == "exponential",
            private=False,
            bound=bound,
            unit=unit,
            factor=1.0 + 1.0 / self.alpha,
            width_log=math.log(4.0) - math.log(self.beta),
            noise_log=0.0,
            allowance=0.0,
            threshold_scale=0.0,
            query_scale=0.0,
            release_scale=0.0,
        )

    def guarantee(self) -> PrivacyGuarantee | None:
        """None: the rule is not private."""
        return None

    def run(
        self, stream: Any, rng: RandomSource | None = None, max_rounds: int | None = None
    ) -> StoppingResult:
        """Sample until the rule halts.

        Parameters
        ----------
        stream : array_like of shape (n,), iterable of float, or Environment
            The samples. An array, list, tuple or series is validated as a whole first; any other iterable is
            read sample by sample, no further than needed; an environment must have one arm.
        rng : int, SeedSequence, Generator or None
            Source of randomness for the samples of an environment.
        max_rounds : int, optional
            Number of samples after which to give up; required for an environment.

        Returns
        -------
        StoppingResult
            Estimate and stopping time; NaN, with the reason, if the rule did not halt.

        Raises
        ------
        ParameterError
            If an array is invalid (the message lists all problems with their positions), at the first sample
            of an iterable that is not a number in [-bound, bound], or if the rewards of an environment may
            lie outside that interval.
        """
        return self._run(stream, rng, max_rounds)


@dataclass(frozen=True, kw_only=True)
class DPNAS(StoppingRule):
    """Private nonmonotonic adaptive sampling: the mean up to a factor of 1 +- alpha, epsilon-private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for one sample, covering the stopping time and the estimate together.
    alpha : float
        Required relative accuracy, in (0, 1).
    beta : float
        Probability, in (0, 1), that the estimate is less accurate.
    bound : float
        Samples lie in [-bound, bound].
    steps : {"every", "exponential"}
        Look after every sample (the paper's Algorithm 1), or after 2, 4, 8, ... samples (Algorithm 2).
    calibration : {"corrected", "published"}
        The published noise is correct, so both options are the same.

    Notes
    -----
    Sparse vector technique: one Laplace variable of scale 12 bound / epsilon is added to the threshold and
    one to each look. A sample changes an absolute sum by at most 2 bound, so the stopping time is (epsilon/6
    + epsilon/3)-private; noise of scale 4 bound / epsilon on the final sum adds epsilon/2.

    Accuracy is that of `NAS`: for independent samples with a common mean, the probability that the rule stops
    with an error of alpha abs(mean) or more is at most beta. Unless the mean is large, exponential steps stop
    earlier. Privacy holds for any samples.

    Samples are clipped to [-bound, bound] before they enter a sum; if this changes them, the mean is that of
    the clipped samples.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rule = ai.designs.DPNAS(epsilon=1.0, alpha=0.2, beta=0.05)
    >>> result = rule.run(rng.uniform(0.0, 1.0, 20_000), rng=1)
    >>> result.stopped, result.noise
    (True, 'simulation')
    >>> print(result.guarantee)
    epsilon = 1, pure, per reward, central, standard
    """

    epsilon: Positive
    calibration: Calibration = "corrected"

    shares: ClassVar[tuple[int, int, int]] = (6, 3, 2)
    """Divisors of epsilon for the threshold, the looks and the estimate."""

    def __post_init__(self) -> None:
        check_fields(self, first="epsilon")

    def _parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Epsilon spent by the noise on the threshold, the looks and the final sum, exactly."""
        threshold, looks, release = (Fraction(float(self.epsilon)) / share for share in self.shares)
        return threshold, looks, release

    def _promises(self) -> tuple[PrivacyGuarantee, ...]:
        return tuple(PrivacyGuarantee(float(part)) for part in self._parts())

    def rule(self, bound: float, unit: float, scale: Scale = truediv) -> Rule:
        """Constants of the halting test; the largest sample is `bound` units of size `unit`."""
        sensitivity = 2.0 * bound
        threshold, looks, release = self._parts()
        threshold_scale, release_scale = scale(sensitivity, threshold), scale(sensitivity, release)
        log_tail = math.log(4.0) - math.log(self.beta)
        return Rule(
            exponential=self.steps == "exponential",
            private=True,
            bound=bound,
            unit=unit,
            factor=1.0 + 1.0 / self.alpha,
            width_log=math.log(16.0) - math.log(self.beta),
            noise_log=math.log(8.0) - math.log(self.beta),
            allowance=(threshold_scale + release_scale / self.alpha) * log_tail,
            threshold_scale=threshold_scale,
            query_scale=scale(2.0 * sensitivity, looks),
            release_scale=release_scale,
        )

    def guarantee(self) -> PrivacyGuarantee:
        """Privacy guarantee for one sample: sparse vector technique plus final release."""
        return sequential(*self._promises())

    def time_guarantee(self) -> PrivacyGuarantee:
        """Guarantee for the stopping time alone, without the estimate: half of epsilon."""
        return sequential(*self._promises()[:2])

    def run(
        self,
        stream: Any,
        rng: RandomSource | None = None,
        max_rounds: int | None = None,
        backend: str = "simulation",
    ) -> StoppingResult:
        """Sample until the rule halts.

        Parameters
        ----------
        stream : array_like of shape (n,), iterable of float, or Environment
            The samples. An array, list, tuple or series is validated as a whole first; any other iterable is
            read sample by sample, no further than needed; an environment must have one arm.
        rng : int, SeedSequence, Generator or None
            Source of randomness for simulated noise and for the samples of an environment.
        max_rounds : int, optional
            Number of samples after which to give up; required for an environment.
        backend : {"simulation", "release"}
            Simulated noise can be seeded and is not private. With "release", samples are rounded to a grid of
            2^20 steps per bound and the noise is integer-valued, from OpenDP; `rng` must be None and the
            stream must be data.

        Returns
        -------
        StoppingResult
            Estimate and stopping time; NaN, with the reason, if the rule did not halt. The guarantee holds in
            either case.

        Raises
        ------
        ParameterError
            If an array is invalid (the message lists all problems with their positions), if the rewards of an
            environment may lie outside [-bound, bound], or if a sample of an iterable is not a number.

        Notes
        -----
        An error is itself an output. A sample of an iterable that is out of range is therefore clipped, and a
        missing one (None, NaN) counts as 0, silently, because raising an error would reveal it. Whether
        samples are numbers is assumed to be public. An array is validated by the curator, before the
        mechanism: the message names samples and is not covered by the guarantee.
        """
        problems = OneOf("simulation", "release")("backend", backend)
        if not problems and backend == "release":
            if rng is not None:
                problems.append("rng must be None with backend='release': released noise has no seed")
            if isinstance(stream, Environment):
                problems.append(
                    "backend='release' is for real data: an environment is simulated, including its noise"
                )
            if self.epsilon < _LEAST_RELEASE_EPSILON:
                problems.append(
                    f"epsilon must be at least {_LEAST_RELEASE_EPSILON:g} with backend='release', whose "
                    f"noise must be exact in 53 bits, got {self.epsilon!r}"
                )
        refuse(self._name, problems + OrNone(COUNT)("max_rounds", max_rounds))
        return self._run(stream, rng, max_rounds, ReleaseNoise() if backend == "release" else None)
