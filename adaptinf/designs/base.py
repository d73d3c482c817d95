"""What every design can do: be run, replicated, used step by step, and state its guarantee."""

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
    """Requirements of a design for its environments.

    Parameters
    ----------
    min_arms, max_arms : int
        Fewest and most arms; None for any number.
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
    """Why a design cannot be run in an environment."""
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
            f"rewards must lie in [0, 1], those of {type(env).__name__} lie in [{low:g}, {high:g}]: rescale "
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

    Subclasses say which outcomes may be pending when an arm is chosen: none ("last"), any ("any"), or those
    of a public window ("window"); where context vectors must lie: "any", the unit "ball", the unit "cube"; as
    which reward an outcome counts that never comes, None if there is no rule for that; and what the stream
    and the place are that name a node of exact noise, None if there is none, for a reason.
    """

    pending: ClassVar[str] = "last"
    domain: ClassVar[str] = "any"
    lost: ClassVar[float | None] = None
    lost_unsaid: ClassVar[float | None] = None
    """Reward as which a missing one counts in trials whose file does not say; None if never changed."""
    nodes: ClassVar[tuple[str, str] | None] = None
    inexact: ClassVar[str] = "it has no privacy guarantee, or draws its noise only inside its own kernels"

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Largest scale of a node of exact noise, for rewards of width 1.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        float
            Infinite if there is no exact noise.
        """
        return math.inf

    def exact_sums(self, horizon: int, n_arms: int) -> ExactSums | None:
        """Source of noisy sums in whole numbers outside the kernels; None if the kernels compute them.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.
        """
        return None

    def longest_window(self, horizon: int) -> float:
        """The longest window that outcomes can have, in rounds.

        Parameters
        ----------
        horizon : int
            Rounds of the trial.

        Returns
        -------
        float
            Infinite where any will do.
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
            The arms; a number stands for 0, 1, ...
        horizon : int
            The most rounds there can be. Guarantees hold for this many.
        features : list of labels, or int, optional
            Contexts that can arrive.
        dimension : int, optional
            Length of context vectors, in their place.
        per_arm : bool
            Whether each arm has a context vector of its own.
        reward_range : (float, float)
            Smallest and largest possible reward, declared in advance.
        window : int, optional
            For private designs whose outcomes come late: the outcome of a round enters after `window` further
            rounds, whenever it comes, and counts as 0 if it is not there then.
        in_time : float, optional
            With `window`: release each arm's successes and failures that were in time as well, when the last
            window has ended, at so much privacy beside the design's. It must be asked for in advance, and
            contexts must have no part in the choice. `ArmMeans.fit("released")` reads them.
        rng : int, SeedSequence, Generator or None
            Source of the coins, and of simulated noise.
        noise : {"simulation", "release"}
            Where privacy noise comes from. Simulated noise is not private, and the log says so. ``"release"``
            is exact noise of OpenDP, which is never seeded, on rewards rounded to a grid of 2^20 units.

        Returns
        -------
        Session
            With `assign`, `record` and `log`. On the same rewards and contexts it makes the choices of `run`
            with the same `rng`, where `run` takes these from a `Tableau`.

        Raises
        ------
        ParameterError
            Listing everything that is inconsistent, and for ``noise="release"`` why a design has no exact
            noise.
        MissingDependencyError
            If OpenDP is needed and not installed.
        """
        declared = arms, features, dimension, per_arm, reward_range
        return open_session(self, declared, horizon, window, rng, noise=noise, in_time=in_time)


_ENVIRONMENT = Is(Environment, "an environment, such as BernoulliArms([0.3, 0.5])")


@dataclasses.dataclass(frozen=True)
class Design(Recorded, Stepwise, ABC):
    """Base of all designs: frozen parameters, checked when they are given.

    A subclass gives its compiled program and its traits; a private one its guarantee as well. It may say what
    its codes mean (statuses of rounds, names of releases and of what is reported at the end), what it needs
    of an environment, and whether a round that a `Mixture` overrides enters nothing.

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
        """Problems with the parameters beyond the constraints that annotate them."""
        return []

    @abstractmethod
    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""

    def _has_shortcut(self, environment: Environment) -> bool:
        """Whether a run that stores no rounds can be drawn in a faster way, exact in distribution."""
        return False

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The privacy of the actions and releases, composed from the design's mechanisms.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        PrivacyGuarantee or None
            None for a design that promises none.

        Raises
        ------
        ParameterError
            If `horizon` or `n_arms` is not a whole number of at least 1.
        """
        self._refuse_sizes(horizon, n_arms)
        return None

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The guarantee for one round's rewards (contexts public), which max-information needs.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        PrivacyGuarantee or None
            By default what `guarantee` implies.
        """
        whole = self.guarantee(horizon, n_arms)
        return None if whole is None else whole.reward_level()

    def _refuse_sizes(self, horizon: Any, n_arms: Any) -> None:
        check(f"{type(self).__name__}.guarantee", horizon=(horizon, COUNT), n_arms=(n_arms, COUNT))

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of what a run reports at its end, one for each column of `Replications.outcomes`."""
        return self.outcomes

    def _recommended(self, run: Run, env: Environment) -> Any:
        """Label of the arm that a best-arm design names at the end."""
        names = self.outcome_names(env.n_features)
        if "recommended" not in names or np.isnan(code := run.outcome[names.index("recommended")]):
            return None
        return env.arms[int(code)]

    def _placed(self, env: Environment) -> Design:
        """The design, with the information about the environment that its guarantee and its log require."""
        return self

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        """Why the design cannot be run there, checked before anything is collected."""
        return environment_problems(self.needs, env)

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        """Rounds whose reward can change a later action."""
        return horizon - 1

    def _released_rounds(self, run: Run, horizon: int) -> int | None:
        """Rounds whose reward can change a release or a later action."""
        return horizon

    def _batches(self, horizon: int, n_arms: int) -> Any:
        """Batch number of each round, or None."""
        return None

    def run(self, env: Environment, horizon: int, rng: RandomSource | None = None) -> AdaptiveLog:
        """Run the design once and store every round.

        Parameters
        ----------
        env : Environment
            Where contexts and rewards come from.
        horizon : int
            Number of rounds.
        rng : int, SeedSequence, Generator or None
            Source of randomness. Privacy noise is simulated: the log is labelled as not private.

        Returns
        -------
        AdaptiveLog
            With propensities where they exist, releases and guarantee.

        Raises
        ------
        ParameterError
            Listing everything that is inconsistent, before anything is drawn.
        LogValidationError
            If the environment's rewards are such as a frame is refused for: infinite, or of 2**53 and more.
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
        """Logs of runs `start` to `replications`, one after another; run r is the same as replicate r.

        Parameters
        ----------
        env : Environment
            Where contexts and rewards come from.
        horizon, replications : int
            Rounds of a run, and where to stop.
        rng : int, SeedSequence, Generator or None
            Source of randomness.
        start : int
            First run, a multiple of 64.

        Yields
        ------
        AdaptiveLog
            A log with arrays of its own.

        Raises
        ------
        ParameterError
            Listing everything that is inconsistent, before anything is drawn.
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
            Where contexts and rewards come from.
        horizon, replications : int
            Rounds of a run, and number of runs.
        rng : int, SeedSequence, Generator or None
            Source of randomness; replicate r depends on (rng, r) alone.
        n_jobs : int
            Worker processes, -1 for all cores; the results do not depend on it.
        start : int
            First run, a multiple of 64: the result holds runs `start` to `replications`.
        by_rounds : bool, optional
            Loop over every round, with the numbers of `run`. By default only where the design has no exact
            shortcut: over a stretch in which nothing adapts, counts and sums of 0/1 rewards are binomial, so
            drawing these has the same distribution; so has Thompson sampling from one draw per arm.

        Returns
        -------
        Replications
            Means, pulls, regret and released numbers of every run.

        Raises
        ------
        ParameterError
            Listing everything that is inconsistent, before anything is drawn.
        """
        self._check(env, horizon, replications, rng, start, n_jobs, by_rounds)
        looped = not self._has_shortcut(env) if by_rounds is None else by_rounds
        if not looped and not self._has_shortcut(env):
            raise ParameterError(type(self).__name__, [f"by_rounds=False: there is no shortcut in {env!r}"])
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
        """What determines how the design's logs may be analysed; a subclass inherits or states it."""
        return DesignTraits()

    def record(self) -> DesignRecord:
        """Name, parameters and traits, as a log stores them."""
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
