"""The locally private generalised linear bandit: noisy stochastic gradients, one parameter vector per arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from adaptinf.designs.local.cube_designs import LocallyPrivate
from adaptinf.designs.local.local_linear_kernel import LDPLinearTables, ldp_linear_program
from adaptinf.designs.run_results import Status, release_columns
from adaptinf.log import DesignTraits, Outputs
from adaptinf.parameters import BOOLEAN, Count, Number, OneOf, OrNone, Positive
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.typing import FloatArray

_RADII = {"logistic": 4.0, "identity": 1.0}
_LARGEST_RADIUS, _LONGEST_STEP = 1e6, 1e3
_SENSITIVITY = 2.0
_NOT_COVERED = "everything but the participant's own arm: it is the best one for their context"


@dataclass(frozen=True, kw_only=True)
class LDPLinear(LocallyPrivate):
    """Locally private generalised linear bandit for contexts in the unit cube and rewards in [0, 1].

    Parameters
    ----------
    epsilon : float
        Privacy parameter for a participant's record, that is, context and reward.
    link : {"logistic", "identity"}
        Expected reward of an arm as a function of its linear predictor u: 1 / (1 + exp(-u)), or u restricted
        to [0, 1].
    intercept : bool
        Whether the predictor of an arm has an intercept.
    step : float
        Multiplier of the step size given below, at most 1,000.
    warm_up : int, optional
        Number of rounds of the warm-up stage, 0 for none. By default K ceil(sqrt(n) (1 + s)) for n rounds and
        K arms, but at most n, where s is the standard deviation of the noise on each number of a report.
    radius : float, optional
        Bound on the norm of an arm's parameters, at most 1e6; by default 4 (logistic) or 1 (identity), which
        excludes no linear function from the cube to [0, 1].
    auxiliary : tuple of AuxiliaryLog
        Logs whose participants report before the trial begins, one log after another, each with its own
        epsilon.

    Raises
    ------
    ParameterError
        If a parameter is out of range (the message lists every problem); when run, if contexts differ between
        arms or may lie outside [0, 1]^d, or rewards may lie outside [0, 1].

    Notes
    -----
    After Han et al. (2021): stochastic gradients under local privacy, one parameter vector per arm, a warm-up
    stage and a greedy stage. The steps, radius, noise and lengths are those given below, which do not depend
    on constants of the problem; no regret bound is claimed.

    *Model.* The predictor of arm k is u = theta_k'z, where z = (2 x - 1, 1), or z = x without an intercept:
    there are p parameters, and no regressor exceeds 1 in absolute value. With regressors in [-1, 1], the
    gradient with respect to the intercept is nearly orthogonal to the others, at the same sensitivity.

    *Warm-up.* Arms are pulled in turn. The round number determines the arm, so a participant reports on this
    arm alone.

    *Greedy.* The arm with the largest predictor, based on the averaged parameters, is pulled. The participant
    reports on *every* arm: the gradient (mean - reward) z for the pulled arm, zero for the others, each with
    added noise, so the report does not reveal which arm was pulled. The parameters of arms that are not
    pulled are changed only by noise.

    *Noise.* The noise of an arm has density proportional to exp(-epsilon max_j abs(v_j) / 2) in R^p: it is a
    Gamma variable of shape p + 1 and scale 2 / epsilon times a uniform point of [-1, 1]^p. Its variance is
    s^2 = 4 (p + 1) (p + 2) / (3 epsilon^2) per number, for any K. Laplace noise would have variance 8 p^2 /
    epsilon^2; the random directions of Duchi et al. (2018), which Han et al. use, have smaller variance if
    epsilon is small and p is large, but their reports have a length of about p sqrt(pi K / 2) however large
    epsilon is.

    *Steps.* A report on an arm has a mean squared length of at most rho^2 = p (1 + s^2). Let I be the sum of
    1 / rho^2 over an arm's reports; theta moves by step * radius / (rho^2 sqrt(I)) times the report, and is
    projected onto the ball: after t reports, the factor is step * radius / (rho sqrt(t)). Averages over
    iterates have weights proportional to I / rho^2, that is, to t. Reports of auxiliary participants enter in
    the same way with their own rho.

    Replacing a participant's record changes the gradients by at most 2, where the largest change of a
    coordinate is summed over the arms, so the report is epsilon-private. Changing only the reward moves one
    gradient by at most 1: the guarantee for rewards is epsilon / 2, which max-information uses. Auxiliary
    participants always report on every arm; they have the epsilon of their own log, and the guarantee covers
    the trial's participants. A participant's arm is not among the outputs: in the greedy stage, it depends on
    the context.

    The releases of a log are the final parameters: for each arm (the group), the coefficient of every
    coordinate of the context, and ``intercept``; `scale` is that of the noise in each participant's report.
    `Replications.released` has ``warm_up`` (its number of rounds) and ``projected`` (how often an arm's
    parameters were projected onto the ball).

    References
    ----------
    Han, Y., Liang, Z., Wang, Y. and Zhang, J. (2021). Generalized linear bandits with local differential
    privacy. Advances in Neural Information Processing Systems 34.

    Hardt, M. and Talwar, K. (2010). On the geometry of differential privacy. STOC.

    Duchi, J., Jordan, M. and Wainwright, M. (2018). Minimax optimal procedures for locally private
    estimation. Journal of the American Statistical Association 113.

    Shamir, O. and Zhang, T. (2013). Stochastic gradient descent for non-smooth optimization. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.LDPLinear(epsilon=8.0)
    >>> log = design.run(ai.environments.SmoothArms(n_arms=3, dimension=2), horizon=2_000, rng=0)
    >>> print(log.guarantee)
    epsilon = 8, pure, per record, local, anticipating
    >>> print(log.reward_guarantee)
    epsilon = 4, pure, per reward, local, standard
    >>> sorted(set(log.releases["name"]))
    ['coefficient_x1', 'coefficient_x2', 'intercept']
    """

    epsilon: Positive
    link: Annotated[str, OneOf(*_RADII)] = "logistic"
    intercept: Annotated[bool, BOOLEAN] = True
    step: Annotated[float, Number(0.0, _LONGEST_STEP, open_low=True)] = 1.0
    warm_up: int | None = None
    radius: Annotated[float, Number(0.0, _LARGEST_RADIUS, open_low=True)] | None = None
    auxiliary: tuple[AuxiliaryLog, ...] = ()

    statuses: ClassVar[tuple[Status, ...]] = (Status("warm-up", False), Status("greedy", False))
    report_sensitivity: ClassVar[float] = _SENSITIVITY
    not_covered: ClassVar[str] = _NOT_COVERED
    outcomes: ClassVar[tuple[str, ...]] = ("warm_up", "projected")

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on the context."""
        epsilons = tuple(float(part.epsilon) for part in self.auxiliary)
        outputs = Outputs(propensities="by-context", phase="calendar")
        return DesignTraits(uses_context="yes", arm_means="by-context", auxiliary=epsilons, outputs=outputs)

    def _problems(self) -> list[str]:
        return super()._problems() + OrNone(Count(0))("warm_up, if given,", self.warm_up)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        return ldp_linear_program(
            self.tables(environment.n_arms, environment.dimension, horizon, recording=recording)
        )

    def tables(
        self, n_arms: int, dimension: int, horizon: int, *, recording: bool = False
    ) -> LDPLinearTables:
        """Inputs to the kernels: scales, steps, and space for recorded values."""
        parameters = dimension + int(self.intercept)
        logs = [part.log.arrays for part in self.auxiliary]
        epsilons = np.array([*(part.epsilon for part in self.auxiliary), self.epsilon], dtype=np.float64)
        scales = _SENSITIVITY / epsilons
        variances = scales * scales * (parameters + 1) * (parameters + 2) / 3.0
        radius = _RADII[self.link] if self.radius is None else float(self.radius)
        turns = math.sqrt(horizon) * (1.0 + math.sqrt(variances[-1]))
        default = n_arms * math.ceil(min(turns, horizon))
        return LDPLinearTables(
            n_arms=n_arms,
            dimension=dimension,
            n_parameters=parameters,
            horizon=horizon,
            logistic=self.link == "logistic",
            intercept=bool(self.intercept),
            warm_up=min(horizon, default if self.warm_up is None else int(self.warm_up)),
            radius=radius,
            reach=float(self.step) * radius,
            scales=scales,
            squares=parameters * (1.0 + variances),
            starts=np.cumsum([0, *(part.reward.size for part in logs)]),
            contexts=np.concatenate([np.zeros((0, dimension)), *(part.contexts for part in self.auxiliary)]),
            arms=np.concatenate([np.zeros(0, np.int64), *(part.action for part in logs)]),
            rewards=np.concatenate([np.zeros(0), *(part.reward for part in logs)]),
            **written_arrays(n_arms if recording else 0, n_arms * parameters if recording else 0),
        )

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        names = [f"coefficient_{name}" for name in env.vector_names[: env.dimension]] + ["intercept"]
        return release_columns(released, names, env.arms, ["noisy gradients"])
