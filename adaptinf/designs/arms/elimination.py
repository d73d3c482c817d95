"""Successive elimination: pull the remaining arms in turn, and drop those that are clearly worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from adaptinf.designs.arms.elimination_kernel import elimination_program, shortest_horizon
from adaptinf.designs.base import Design, Needs
from adaptinf.designs.run_results import ReleaseName
from adaptinf.guarantee import PrivacyGuarantee, parallel
from adaptinf.log import DesignTraits, FreshEpochs, Outputs
from adaptinf.parameters import Calibration, OneOf, Positive, Share
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run
from adaptinf.simulation.run import BERNOULLI, NORMAL


def _reward_law(env: Environment, laws: tuple[int, ...]) -> bool:
    """Whether rewards follow one of the given distributions and contexts play no role."""
    return env.n_features == 1 and env.law in laws


def _epoch_problems(env: Environment, horizon: int, beta: float | None, epsilon: float) -> list[str]:
    shortest = shortest_horizon(env.n_arms, beta, epsilon)
    if env.n_arms < 2 or horizon >= shortest:
        return []
    return [
        f"horizon must be at least {shortest:,}, the number of rounds in the first epoch with {env.n_arms} "
        f"arms, got {horizon:,}: no arms would ever be compared"
    ]


@dataclass(frozen=True, kw_only=True)
class SuccessiveElimination(Design):
    """Successive elimination without privacy, for rewards in [0, 1].

    Parameters
    ----------
    beta : float or None
        Bound on the probability that the best arm is ever dropped; by default 1 / horizon.
    check : {"every-round", "epochs"}
        When arms are compared: after every pass through the remaining arms, using all rewards so far; or at
        the end of epochs, each of which uses only its own rewards, as in `PrivateSuccessiveElimination` with
        infinite epsilon.

    Raises
    ------
    ParameterError
        If beta is not in (0, 1] or the comparison rule is unknown; when run, if the horizon is shorter than
        one pass or epoch, or rewards may lie outside [0, 1].

    Notes
    -----
    All remaining arms are pulled in turn, in order. After pass r of ``"every-round"``, an arm is dropped if
    its mean plus h lies below the highest mean minus h, where h = sqrt(log(4 K r^2 / beta) / (2 r)):
    Hoeffding's inequality over K arms and all r, with failure probabilities that sum to .83 beta. Once only
    one arm remains, it is pulled until the end. An arm is not dropped because of a tie. The bound holds for
    rewards in [0, 1]; normal rewards are allowed and never clipped, and the bound holds for them if their
    standard deviation is at most 1/2.

    `Replications.released` has, for each run: ``passes`` (or ``epochs``), the number of comparisons;
    ``decided_at``, the round after which one arm was left; and ``last_arm``, that arm's position. The last
    two are NaN if the horizon is reached first. Given the past, the propensities are 0 or 1, so inverse
    weighting is impossible.

    `replicate` simulates the rounds between two comparisons in one step if rewards are 0/1 or normal and
    there are no contexts; the distribution is the same as if rounds were simulated one by one.

    References
    ----------
    Even-Dar, E., Mannor, S. and Mansour, Y. (2002). PAC bounds for multi-armed bandit and Markov decision
    processes. COLT.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.9, 0.5, 0.2])
    >>> design = ai.designs.SuccessiveElimination(beta=0.05)
    >>> sims = design.replicate(arms, horizon=5_000, replications=100, rng=0)
    >>> bool((sims.released["last_arm"] == 0).all())
    True
    """

    beta: Share | None = None
    check: Annotated[str, OneOf("every-round", "epochs")] = "every-round"

    needs: ClassVar[Needs] = Needs(min_arms=2, unit_rewards=True)

    @property
    def traits(self) -> DesignTraits:
        """No coins."""
        return DesignTraits(uses_context="no", own_coins=False)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if self.check == "epochs":
            return problems + _epoch_problems(env, horizon, self.beta, math.inf)
        if horizon < env.n_arms:
            problems.append(f"horizon must be at least {env.n_arms}, one pull of each arm, got {horizon}")
        return problems

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of the values reported at the end of a run."""
        return ("passes" if self.check == "every-round" else "epochs", "decided_at", "last_arm")

    def _has_shortcut(self, environment: Environment) -> bool:
        return _reward_law(environment, (BERNOULLI, NORMAL))

    def _feedback_rounds(self, run: Run, horizon: int) -> int:
        decided = float(run.outcome[1])
        return horizon - 1 if np.isnan(decided) else min(int(decided), horizon - 1)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        return elimination_program(
            environment.n_arms,
            horizon,
            beta=1.0 / horizon if self.beta is None else float(self.beta),
            by_epochs=self.check == "epochs",
            recording=recording,
            by_rounds=by_rounds,
        )


@dataclass(frozen=True, kw_only=True)
class PrivateSuccessiveElimination(Design):
    """Differentially private successive elimination in separate epochs, for rewards in [0, 1].

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards.
    beta : float or None
        Bound on the probability that the best arm is ever dropped; by default 1 / horizon.
    calibration : {"corrected", "published"}
        The published algorithm is correct, so both options are the same.

    Raises
    ------
    ParameterError
        If a parameter is out of range (the message lists every problem); when run, if the horizon is shorter
        than the first epoch, or rewards may lie outside [0, 1].

    Notes
    -----
    In epoch e = 1, 2, ..., the m remaining arms are pulled in turn, ceil(R) times each, where R = max(32
    log(8 m e^2 / beta) 4^e, 8 log(4 m e^2 / beta) 2^e / epsilon) + 1. The means of the epoch are released
    with Laplace noise of scale 1 / (epsilon ceil(R)), and arms whose mean is below the highest by more than 2
    sqrt(log(8 m e^2 / beta) / (2 R)) + 2 log(4 m e^2 / beta) / (R epsilon) are dropped. Counts and sums are
    then reset. Once only one arm remains, it is pulled until the end. In an epoch that is cut short by the
    horizon, no means are released and no arms are dropped.

    Each reward enters only one mean, so the actions and the noisy means are epsilon-differentially private,
    whatever the number of arms and epochs. Rewards are clipped to [0, 1] when they enter a sum (this may
    affect normal rewards; the bound on dropping the best arm then refers to the clipped rewards); the raw
    reward is logged. Given the released means, the propensities are 0 or 1, so inverse weighting is
    impossible.

    `Replications.released` has, for each run: ``epochs``, the number completed; ``decided_at``, the round
    after which one arm was left; and ``last_arm``, that arm's position. The last two are NaN if the horizon
    is reached first. In a session with a window, the arms continue to take turns until the last outcome of
    the epoch has entered; outcomes of these additional rounds belong to no epoch. An outcome that never
    arrives counts as 0. `replicate` draws an epoch's sum of 0/1 rewards as one binomial number if there are
    no contexts; the distribution is the same as if rounds were simulated one by one.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.PrivateSuccessiveElimination(epsilon=1.0)
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.5, 0.2]), horizon=10_000, rng=0)
    >>> log.releases[["round", "name", "group"]].values.tolist()
    [[4761, 'noisy_mean', 0], [4761, 'noisy_mean', 1], [4761, 'noisy_mean', 2]]
    """

    epsilon: Positive
    beta: Share | None = None
    calibration: Calibration = "corrected"

    release_names: ClassVar[tuple[ReleaseName, ...]] = (ReleaseName("noisy_mean", "laplace"),)
    releases_by_arm: ClassVar[bool] = True
    lost: ClassVar[float | None] = 0.0
    pending: ClassVar[str] = "window"
    nodes: ClassVar[tuple[str, str] | None] = ("arm", "epoch")
    skips_overrides: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(min_arms=2, unit_rewards=True)
    outcomes: ClassVar[tuple[str, ...]] = ("epochs", "decided_at", "last_arm")

    @property
    def traits(self) -> DesignTraits:
        """Traits: no random draws except the privacy noise; a run ends at its horizon."""
        outputs = Outputs(propensities="outputs", epochs=FreshEpochs(float(self.epsilon), self.beta))
        return DesignTraits(uses_context="no", own_coins=False, outputs=outputs)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        return problems + _epoch_problems(env, horizon, self.beta, float(self.epsilon))

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for the actions and the noisy means, by parallel composition over arms and epochs.

        An epoch's length and order of pulls depend on the remaining arms, that is, on earlier releases, so
        they determine which mean a reward will enter before the reward is read. Later epochs do not use the
        reward again.
        """
        self._refuse_sizes(horizon, n_arms)
        # One reward changes a mean of r pulls by 1/r, and the noise has scale 1/(epsilon r).
        mean = PrivacyGuarantee(epsilon=float(self.epsilon))
        epoch = parallel(*[mean] * n_arms, over="arms")
        return parallel(epoch, epoch, over="epochs")

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Scale of the noise of a sum."""
        return 1.0 / self.epsilon

    def _has_shortcut(self, environment: Environment) -> bool:
        return _reward_law(environment, (BERNOULLI,))

    def _feedback_rounds(self, run: Run, horizon: int) -> int:
        """Rounds up to the last release, because later rewards are not compared."""
        return min(self._released_rounds(run, horizon), horizon - 1)

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """Rounds up to the last release; an epoch that is cut short by the horizon has no release."""
        return int(run.released[-1, 0]) if run.released.shape[0] else 0

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        return elimination_program(
            environment.n_arms,
            horizon,
            beta=1.0 / horizon if self.beta is None else float(self.beta),
            epsilon=float(self.epsilon),
            recording=recording,
            by_rounds=by_rounds,
        )
