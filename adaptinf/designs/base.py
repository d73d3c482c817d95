"""The base class of designs, which can be run, replicated or used step by step, and state their guarantee."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.run_results import ReleaseName, Replications, Status, check_run, log_of, release_columns
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits
from adaptinf.markup import Recorded
from adaptinf.parameters import COUNT, FLAG, JOBS, SEED, Count, Is, check, check_fields, problems_of, refuse
from adaptinf.sessions import Session, open_session
from adaptinf.sessions.steppers import ExactSums
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.replicate import BLOCK, Program, Run, iterate_runs, replicate_blocks
from adaptinf.typing import FloatArray, RandomSource


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements that a design imposes on its environments.

    Parameters
    ----------
    min_arms, max_arms : int
        Smallest and largest number of arms; None for no limit.
    min_horizon : int
        Fewest rounds.
    vectors : {"ignored", "needed", "refused", "any"}
        Treatment of context vectors; with "any", all contexts are accepted.
    unit_rewards : bool
        Whether rewards must lie in [0, 1].
    takes_delays : bool
        Whether outcomes may arrive late.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.DPConSE.needs.max_arms
    2
    """

    min_arms: int = 1
    max_arms: int | None = None
    min_horizon: int = 1
    vectors: str = "ignored"
    unit_rewards: bool = False
    takes_delays: bool = False


def environment_problems(needs: Needs, env: Environment) -> list[str]:
    """Reasons why a design cannot be run in an environment."""
    problems = []
    if env.n_arms < needs.min_arms or (needs.max_arms is not None and env.n_arms > needs.max_arms):
        span = (
            f"exactly {needs.min_arms}" if needs.min_arms == needs.max_arms else f"at least {needs.min_arms}"
        )
        problems.append(f"the environment must have {span} arms, got {env.n_arms}")
    if needs.vectors == "needed" and not env.dimension:
        problems.append(
            f"requires context vectors, such as those of LinearArms; {type(env).__name__} has none"
        )
    if needs.vectors == "refused" and env.dimension:
        problems.append(f"requires contexts from a finite list; {type(env).__name__} has context vectors")
    low, high = env.reward_range
    if needs.unit_rewards and ((-np.inf < low < 0.0) or (1.0 < high < np.inf)):
        problems.append(
            f"rewards must lie in [0, 1], but those of {type(env).__name__} lie in [{low:g}, {high:g}]: "
            f"rescale "
            "them by constants fixed in advance"
        )
    if env.delayed and not needs.takes_delays:
        problems.append(
            f"outcomes in {type(env).__name__} are delayed, but the design learns from each one "
            "immediately: use a FunctionDesign, which learns from the outcomes known so far"
        )
    return problems


class Stepwise:
    """Designs that can be used step by step.

    Subclasses state which outcomes may be pending when an arm is chosen: none ("last"), any ("any"), or those
    within a public window ("window"); whether an arm may join while the design is used (`growing`); where
    context vectors must lie: "any", the unit "ball" or the unit "cube"; the reward that replaces a missing
    outcome, or None if there is no such rule; and the stream and position that identify a node of exact
    noise, or None, with a reason, if there is no such noise.
    """

    pending: ClassVar[str] = "last"
    growing: ClassVar[bool] = False
    domain: ClassVar[str] = "any"
    lost: ClassVar[float | None] = None
    lost_unsaid: ClassVar[float | None] = None
    """Reward assumed for a missing outcome unless the trial's file specifies one; None if never set."""
    nodes: ClassVar[tuple[str, str] | None] = None
    inexact: ClassVar[str] = "it has no privacy guarantee, or draws its noise only inside its own kernels"

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Largest scale of the exact noise of a node, for rewards of width 1.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        float
            Scale; infinite if there is no exact noise.
        """
        return math.inf

    def exact_sums(self, horizon: int, n_arms: int) -> ExactSums | None:
        """Source of integer-valued noisy sums outside the kernels; None if the kernels compute them.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.
        """
        return None

    def longest_window(self, horizon: int) -> float:
        """The longest possible window for outcomes, in rounds.

        Parameters
        ----------
        horizon : int
            Rounds of the trial.

        Returns
        -------
        float
            Length; infinite if there is no limit.
        """
        return math.inf

    def session(
        self,
        arms: int | Sequence[Any],
        horizon: int,
        *,
        features: int | Sequence[Any] | None = None,
        dimension: int | None = None,
        per_arm: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        window: int | None = None,
        in_time: float | None = None,
        rng: RandomSource | None = None,
        noise: str = "simulation",
    ) -> Session:
        """Use the design step by step, on participants who arrive one at a time.

        Parameters
        ----------
        arms : list of labels, or int
            The labels of the arms; a number K stands for the labels 0 to K - 1.
        horizon : int
            Largest possible number of rounds. Guarantees refer to this number of rounds.
        features : list of labels, or int, optional
            The contexts that can arrive.
        dimension : int, optional
            Length of context vectors, which replace `features`.
        per_arm : bool
            Whether each arm has its own context vector.
        reward_range : (float, float)
            Smallest and largest possible reward, declared in advance.
        window : int, optional
            For private designs with delayed outcomes: the outcome of a round enters after `window` further
            rounds, whenever it arrives, and counts as 0 if it has not arrived by then.
        in_time : float, optional
            With `window`: also release the timely successes and failures of each arm once the last window has
            ended, at this privacy cost in addition to the design's. This release must be requested in
            advance, and contexts must not affect the choice. `ArmMeans.fit("released")` uses these counts.
        rng : int, SeedSequence, Generator or None
            Source of randomness for the coins and for simulated noise.
        noise : {"simulation", "release"}
            Source of the privacy noise. Simulated noise is not private, and the log states this.
            ``"release"`` uses exact noise from OpenDP, which is never seeded, on rewards rounded to a grid of
            2^20 units.

        Returns
        -------
        Session
            A session with the methods `assign`, `record` and `log`. For the same rewards and contexts, the
            session makes the same choices as `run` with the same `rng` in a `Tableau` environment.

        Raises
        ------
        ParameterError
            If arguments are inconsistent (the message lists every problem), or the design has no exact noise
            for ``noise="release"`` (the message states why).
        MissingDependencyError
            If OpenDP is needed but not installed.
        """
        declared = arms, features, dimension, per_arm, reward_range
        return open_session(self, declared, horizon, window, rng, noise=noise, in_time=in_time)


_ENVIRONMENT = Is(Environment, "an environment, such as BernoulliArms([0.3, 0.5])")


@dataclasses.dataclass(frozen=True)
class Design(Recorded, Stepwise, ABC):
    """Base class of all designs: its parameters are frozen, and validated on construction.

    A subclass supplies its compiled program and its traits; a private design also supplies its guarantee. A
    subclass may also define the meaning of its codes (statuses of rounds, names of releases and of values
    reported at the end), its requirements for environments, and whether a round that a `Mixture` overrides is
    ignored.

    Examples
    --------
    >>> import adaptinf as ai
    >>> isinstance(ai.designs.UCB(), ai.designs.Design)
    True
    """

    statuses: ClassVar[tuple[Status, ...]] = ()
    release_names: ClassVar[tuple[ReleaseName, ...]] = ()
    releases_by_arm: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs()
    outcomes: ClassVar[tuple[str, ...]] = ()
    skips_overrides: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self, self._problems)

    def _problems(self) -> list[str]:
        """Problems with the parameters that their annotated constraints do not detect."""
        return []

    @abstractmethod
    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""

    def _has_shortcut(self, environment: Environment) -> bool:
        """Whether there is a faster simulation, with the same distribution, for runs that store no rounds."""
        return False

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The privacy guarantee for actions and releases, composed from the design's mechanisms.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        PrivacyGuarantee or None
            The guarantee, or None if the design has none.

        Raises
        ------
        ParameterError
            If `horizon` or `n_arms` is not a positive whole number.
        """
        self._refuse_sizes(horizon, n_arms)
        return None

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The guarantee for the rewards of one round (with public contexts), which max-information requires.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        PrivacyGuarantee or None
            The guarantee; by default, the one that `guarantee` implies.
        """
        whole = self.guarantee(horizon, n_arms)
        return None if whole is None else whole.reward_level()

    def _refuse_sizes(self, horizon: Any, n_arms: Any) -> None:
        check(f"{type(self).__name__}.guarantee", horizon=(horizon, COUNT), n_arms=(n_arms, COUNT))

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of the values reported at the end of a run: the columns of `Replications.outcomes`."""
        return self.outcomes

    def _recommended(self, run: Run, env: Environment) -> Any:
        """Label of the arm that a best-arm design recommends at the end."""
        names = self.outcome_names(env.n_features)
        if "recommended" not in names or np.isnan(code := run.outcome[names.index("recommended")]):
            return None
        return env.arms[int(code)]

    def _placed(self, env: Environment) -> Design:
        """The design, with the information on the environment that its guarantee and its log require."""
        return self

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        """Reasons why the design cannot be run in the environment, checked before anything is collected."""
        return environment_problems(self.needs, env)

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        """Number of rounds whose reward can affect a later action."""
        return horizon - 1

    def _released_rounds(self, run: Run, horizon: int) -> int | None:
        """Number of rounds whose reward can affect a release or a later action."""
        return horizon

    def _batches(self, horizon: int, n_arms: int) -> Any:
        """Batch number of each round, or None."""
        return None

    def run(self, env: Environment, horizon: int, rng: RandomSource | None = None) -> AdaptiveLog:
        """Run the design once, storing every round.

        Parameters
        ----------
        env : Environment
            Source of contexts and rewards.
        horizon : int
            Number of rounds.
        rng : int, SeedSequence, Generator or None
            Source of randomness. Privacy noise is simulated, so the log is labelled as not private.

        Returns
        -------
        AdaptiveLog
            The log, with propensities if they exist, releases and the guarantee.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem, before anything is drawn.
        LogValidationError
            If the environment's rewards would be invalid in a log: infinite, or at least 2**53.
        """
        return next(self.logs(env, horizon, 1, rng))

    def logs(
        self,
        env: Environment,
        horizon: int,
        replications: int,
        rng: RandomSource | None = None,
        start: int = 0,
    ) -> Iterator[AdaptiveLog]:
        """Logs of runs `start` to `replications`, one after another; run r equals replicate r.

        Parameters
        ----------
        env : Environment
            Source of contexts and rewards.
        horizon, replications : int
            Rounds per run, and the total number of runs, including those before `start`.
        rng : int, SeedSequence, Generator or None
            Source of randomness.
        start : int
            First run, which must be a multiple of 64.

        Yields
        ------
        AdaptiveLog
            A log with its own arrays.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem, before anything is drawn.
        """
        self._check(env, horizon, replications, rng, start)
        placed = self._placed(env)
        promised = placed.guarantee(horizon, env.n_arms), placed.reward_guarantee(horizon, env.n_arms)
        refuse(type(self).__name__, env.range_problems(promised[0]))
        for run in iterate_runs(self, env, horizon, start, replications, rng):
            check_run(run)
            yield placed._log(run, env, horizon, *promised)

    def replicate(
        self,
        env: Environment,
        horizon: int,
        replications: int,
        rng: RandomSource | None = None,
        n_jobs: int = 1,
        start: int = 0,
        by_rounds: bool | None = None,
    ) -> Replications:
        """Run the design many times and store only sums: memory does not grow with the horizon.

        Parameters
        ----------
        env : Environment
            Source of contexts and rewards.
        horizon, replications : int
            Rounds per run, and number of runs.
        rng : int, SeedSequence, Generator or None
            Source of randomness; replicate r depends on (rng, r) alone.
        n_jobs : int
            Workers, -1 for all cores: threads for compiled designs, processes for functions in Python. The
            number of workers does not affect the results.
        start : int
            First run, which must be a multiple of 64: the result contains runs `start` to `replications`.
        by_rounds : bool, optional
            Whether to loop over every round, reproducing the numbers of `run`. By default this is done only
            if the design has no exact shortcut: over a stretch without adaptation, counts and sums of 0/1
            rewards are binomial, so they can be drawn directly; Thompson sampling can be simulated with one
            draw per arm.

        Returns
        -------
        Replications
            Means, pulls, regret and released numbers for every run.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem, before anything is drawn.
        """
        self._check(env, horizon, replications, rng, start, n_jobs, by_rounds)
        looped = not self._has_shortcut(env) if by_rounds is None else by_rounds
        if not looped and not self._has_shortcut(env):
            raise ParameterError(
                type(self).__name__,
                [f"by_rounds=False is not available, because there is no shortcut in {env!r}"],
            )
        block = replicate_blocks(self, env, horizon, replications, rng, n_jobs, start, looped)
        cells = block.tallies.sum(axis=1)
        return Replications(
            tallies=block.tallies,
            outcomes=block.outcomes,
            outcome_names=self.outcome_names(env.n_features),
            statuses=self.statuses,
            regret=block.regret if env.dimension else env.regret(cells[..., 0], cells[..., 1]),
            contextual=bool(env.features),
            truth=env.means,
        )

    def _check(
        self,
        env: Any,
        horizon: int,
        replications: int,
        rng: Any,
        start: int,
        n_jobs: int = 1,
        by_rounds: Any = None,
    ) -> None:
        problems = problems_of(
            horizon=(horizon, Count(self.needs.min_horizon)),
            replications=(replications, COUNT),
            start=(start, Count(0)),
            rng=(rng, SEED),
            by_rounds=(by_rounds, FLAG),
        )
        if not problems and (start % BLOCK or start >= replications):
            problems.append(f"start must be a multiple of {BLOCK} below replications, got {start}")
        problems += problems_of(n_jobs=(n_jobs, JOBS), env=(env, _ENVIRONMENT))
        if isinstance(env, Environment) and not COUNT("horizon", horizon):
            problems += self._environment_problems(env, horizon) + env.horizon_problems(horizon)
        refuse(type(self).__name__, problems)

    @property
    def traits(self) -> DesignTraits:
        """Properties that determine how logs of the design may be analysed; subclasses may override them."""
        return DesignTraits()

    def record(self) -> DesignRecord:
        """Name, parameters and traits, in the form that a log stores."""
        return DesignRecord(
            name=type(self).__name__,
            parameters={field.name: getattr(self, field.name) for field in dataclasses.fields(self)},
            traits=self.traits,
        )

    def _log(
        self, run: Run, env: Environment, horizon: int, *promised: PrivacyGuarantee | None
    ) -> AdaptiveLog:
        """The log of a run that was planned for this many rounds."""
        return log_of(self, run, env, horizon, *promised)

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        """Columns of the releases; the group is an arm or a context, 0 if there are no contexts."""
        names = [entry.name for entry in self.release_names]
        groups = env.arms if self.releases_by_arm else env.features or (0,)
        return release_columns(released, names, groups, [entry.mechanism for entry in self.release_names])
