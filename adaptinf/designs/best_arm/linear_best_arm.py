"""Best-arm identification for arms with linear means: DP-BAI, OD-LinBAI and DP-OD."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adaptinf.designs.base import Needs
from adaptinf.designs.best_arm.arm_collections import feature_rows, max_det_basis, optimal_design
from adaptinf.designs.best_arm.best_arm_kernel import (
    EVERY_ARM,
    G_OPTIMAL,
    GAUSSIAN_NOISE,
    LAPLACE_NOISE,
    MAX_DET,
    NO_NOISE,
    best_arm_program,
    best_arm_tables,
)
from adaptinf.designs.best_arm.fixed_budget import (
    FeatureDesign,
    Schedule,
    max_det_schedule,
    optimal_sizes,
    reserve,
)
from adaptinf.designs.run_results import ReleaseName, release_columns
from adaptinf.guarantee import PrivacyGuarantee, parallel
from adaptinf.parameters import DELTA, POSITIVE, Calibration, Each, Positive
from adaptinf.privacy.real_mechanisms import analytic_scale, gaussian_delta
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program
from adaptinf.typing import FloatArray, IntArray

_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, repr=False)
class _NoisyMeans(FeatureDesign):
    """Phases of noisy means, for a MAX-DET collection or for all remaining arms."""

    max_det: bool = True
    calibration: Calibration = "corrected"

    releases_by_arm: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="refused", unit_rewards=True)
    law: ClassVar[int] = LAPLACE_NOISE
    lost: ClassVar[float | None] = 0.0

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if self.max_det not in (True, False):
            problems.append(f"max_det must be True or False, got {self.max_det!r}")
        return problems

    @abstractmethod
    def _noise(self) -> float:
        """Scale of the noise added to a sum of rewards."""

    def schedule(self) -> Schedule:
        """Numbers of arms in each phase, with lambda, M_1 and M."""
        return max_det_schedule(*self.rows.shape)

    def _least_budget(self, n_arms: int) -> int:
        schedule = self.schedule()
        if self.max_det:
            return reserve(schedule, self.rows.shape[1]) + 1
        return schedule.phases * int(schedule.sizes[0])

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        schedule = self.schedule()
        if not self.max_det:
            tables = best_arm_tables(
                schedule.sizes,
                method=EVERY_ARM,
                law=self.law,
                noise=self._noise(),
                budget=horizon,
                recording=recording,
            )
            return best_arm_program(tables)
        rows = feature_rows(self.features)
        basis, coefficients = max_det_basis(rows, _TOLERANCE)
        tables = best_arm_tables(
            schedule.sizes,
            method=MAX_DET,
            features=rows,
            coefficients=coefficients,
            basis=basis,
            law=self.law,
            noise=self._noise(),
            rounding_up=True,
            budget=horizon - reserve(schedule, rows.shape[1]),
            recording=recording,
        )
        return best_arm_program(tables)


@dataclass(frozen=True, kw_only=True, repr=False)
class DPBAI(_NoisyMeans):
    """Differentially private best-arm identification with a fixed budget, using MAX-DET collections.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards.
    features : array_like of shape (arms, dimension)
        Feature vector of each arm; the mean reward is a linear function of it. The vectors must span the
        whole space, and no two may be equal.
    max_det : bool
        Whether a phase pulls only a MAX-DET collection of the remaining arms if they outnumber the square of
        the dimension of their span. If False, every phase pulls all remaining arms: the paper's baseline,
        which is equally private.
    calibration : {"corrected", "published"}
        The published noise is correct, so both options are the same.

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem): features that are not finite, do not span
        the space, or are equal for two arms; when run, an environment with a different number of arms, with
        contexts or with rewards outside [0, 1], or a horizon that allows less than one pull of an arm in some
        phase.

    Notes
    -----
    The horizon is the budget T. M phases begin with s_1 = K, ..., s_M arms; the last one leaves a single arm,
    which is recommended (`schedule` contains the numbers). If the span of the remaining arms has a dimension
    d_p < sqrt(s_p), a phase expresses them in terms of a collection with coefficients of at most 1 + 1e-6
    (see `max_det`), pulls each of its d_p arms ceil(T' / (M d_p)) times, releases each mean of this phase
    with Laplace noise of scale 1 / (epsilon N), where N is its number of pulls, and estimates the other arms
    by their coefficients. Otherwise the phase pulls all remaining arms, ceil(T' / (M s_p)) times each: with
    the collection, the contribution of the rewards to the variance of an estimate could be d_p^2 / s_p times
    as large. The paper does not specify the use of leftover rounds: here they pull the recommended arm, and
    their rewards are not used.

    T - T' = M_1 d + (M - M_1) ceil(d^2 / 4) or, if this is smaller (as can happen for K up to about d^2), the
    largest number of arms that all phases pull, minus 1, because pulls that are rounded up would otherwise
    exceed the budget.

    Without `max_det`, pulls are floor(T / (M s_p)), because rounding up would exceed the budget as well.

    Each reward enters only one mean, so the actions, the noisy means and the recommended arm are
    epsilon-differentially private. Rewards are clipped to [0, 1] when they enter a sum; the log contains the
    raw rewards. Given the released means, propensities are 0 or 1, so inverse weighting is impossible.

    `log.recommended` and `Replications.recommended` give the arm; `Replications.released` has ``decided_at``,
    the round of the last release.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR.

    Examples
    --------
    >>> import adaptinf as ai
    >>> features = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
    >>> design = ai.designs.DPBAI(epsilon=1.0, features=features)
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.45, 0.2, 0.55, 0.31]), horizon=200, rng=0)
    >>> log.recommended, log.guarantee.epsilon
    (0, 1.0)
    >>> log.releases[["round", "name", "group"]].values.tolist()
    [[198, 'noisy_mean', 0], [198, 'noisy_mean', 2]]
    """

    epsilon: Positive

    release_names: ClassVar[tuple[ReleaseName, ...]] = (ReleaseName("noisy_mean", "laplace"),)
    nodes: ClassVar[tuple[str, str] | None] = ("arm", "phase")

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Scale of the noise added to a sum."""
        return self._noise()

    def _noise(self) -> float:
        return 1.0 / float(self.epsilon)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for actions, noisy means and recommended arm, by parallel composition over fresh means.

        The arms that a phase pulls, and how often, depend only on the remaining arms, that is, on earlier
        releases, so the mean that a reward enters is determined before the reward is read. Later phases start
        afresh.
        """
        self._refuse_sizes(horizon, n_arms)
        # One reward changes a mean of N pulls by 1/N, and the noise has scale 1/(epsilon N).
        mean = PrivacyGuarantee(epsilon=float(self.epsilon))
        phase = parallel(mean, mean, over="arms")
        return parallel(phase, phase, over="epochs")


@dataclass(frozen=True, kw_only=True, repr=False)
class DPBAIGauss(_NoisyMeans):
    """`DPBAI` with normal noise, for a guarantee with positive delta.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters for the rewards; delta lies strictly between 0 and 1.
    features : array_like of shape (arms, dimension)
        Feature vector of each arm, as for `DPBAI`.
    max_det : bool
        As in `DPBAI`.
    calibration : {"corrected", "published"}
        ``"corrected"``: the noise of a mean of N rewards has the smallest standard deviation that is
        (epsilon, delta)-private (Balle and Wang). ``"published"``: the standard deviation is sqrt(2 log(1.25
        / delta)) / (epsilon N), which is proved to suffice for epsilon below 1.

    Notes
    -----
    Everything else is as in `DPBAI`. Whenever the published standard deviation is proved to suffice, it is at
    least the corrected one; for large epsilon it is too small, and `guarantee` then states the delta that
    actually holds.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR.
    Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> features = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
    >>> design = ai.designs.DPBAIGauss(epsilon=1.0, delta=1e-5, features=features)
    >>> design.guarantee(horizon=200, n_arms=5).delta
    1e-05
    """

    epsilon: Positive
    delta: Annotated[float, Each(POSITIVE, DELTA)]

    release_names: ClassVar[tuple[ReleaseName, ...]] = (ReleaseName("noisy_mean", "gaussian"),)
    law: ClassVar[int] = GAUSSIAN_NOISE
    inexact: ClassVar[str] = "its noise is normal, which has no exact integer version: use DPBAI"

    def _noise(self) -> float:
        if self.calibration == "corrected":
            return analytic_scale(float(self.epsilon), float(self.delta))
        return math.sqrt(2.0 * math.log(1.25 / self.delta)) / float(self.epsilon)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for actions, noisy means and recommended arm, by parallel composition over fresh means.

        As in `DPBAI`. The pulls of a phase do not depend on its rewards, so each mean is one release based on
        a fixed sample, and no argument for adaptive streams is needed. The guarantee states the delta that
        actually holds if it exceeds the requested one.
        """
        self._refuse_sizes(horizon, n_arms)
        epsilon, delta = float(self.epsilon), float(self.delta)
        given = gaussian_delta(epsilon, self._noise())
        if self.calibration == "corrected" or given <= delta:
            return PrivacyGuarantee(epsilon=epsilon, delta=delta)
        reason = (
            f"the classical standard deviation is proved only for epsilon below 1: at epsilon = {epsilon:g}, "
            f"it gives delta = {given:.3g} instead of the requested {delta:g}"
        )
        return PrivacyGuarantee(epsilon=epsilon, delta=given, reasons=(reason,))


@dataclass(frozen=True, kw_only=True, repr=False)
class _OptimalRounds(FeatureDesign):
    """Rounds of least squares on G-optimal designs."""

    law: ClassVar[int] = NO_NOISE

    def sizes(self) -> IntArray:
        """Number of arms that enter each round, and the last remaining one."""
        return optimal_sizes(*self.rows.shape)

    def _noise(self) -> float:
        """Scale of the noise added to the moments, relative to the effect of one reward on them."""
        return 0.0

    def _reserve(self) -> int:
        """Rounds reserved because numbers of pulls are rounded up."""
        n, dimension = len(self.features), len(self.features[0])
        return min(n, dimension * (dimension + 1) // 2) + int(self.sizes()[1:-1].sum())

    def _least_budget(self, n_arms: int) -> int:
        return self._reserve() + 1

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        sizes = self.sizes()
        basis, coefficients = max_det_basis(feature_rows(self.features), _TOLERANCE)
        tables = best_arm_tables(
            sizes,
            method=G_OPTIMAL,
            features=self.rows,
            coefficients=coefficients,
            basis=basis,
            weights=optimal_design(self.rows, _TOLERANCE).weights,
            law=self.law,
            noise=self._noise(),
            share=(horizon - self._reserve()) / (sizes.size - 1),
            recording=recording,
        )
        return best_arm_program(tables)


@dataclass(frozen=True, kw_only=True, repr=False)
class ODLinBAI(_OptimalRounds):
    """Linear best-arm identification with a fixed budget using G-optimal designs, without privacy.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        Feature vector of each arm; the mean reward is a linear function of it. The vectors must span the
        whole space, and no two may be equal.

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem): features that are not finite, do not span
        the space, or are equal for two arms; when run, an environment with a different number of arms or with
        contexts, or a horizon that allows less than one pull of an arm in some round.

    Notes
    -----
    Of R = ceil(log2 d) rounds (one if d = 1), the r-th keeps ceil(d / 2^r) arms. In each round, the remaining
    arms are expressed in orthonormal coordinates of their span, if its dimension has decreased. The round
    finds a G-optimal design w (`optimal_design`, gap at most 1e-6); pulls arm i ceil(w_i m) times, where m =
    (T - min(K, d (d + 1) / 2) - sum over r < R of ceil(d / 2^r)) / R; and keeps the arms with the highest
    least-squares predictions from this round's rewards. Ties are broken at random. Leftover rounds pull the
    recommended arm. Given the past, the propensities are 0 or 1.

    References
    ----------
    Yang, J. and Tan, V. Y. F. (2022). Minimax optimal fixed-budget best arm identification in linear bandits.
    NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.ODLinBAI(features=[[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5]])
    >>> design.run(ai.environments.BernoulliArms([0.9, 0.45, 0.2, 0.55]), horizon=200, rng=0).recommended
    0
    """


@dataclass(frozen=True, kw_only=True, repr=False)
class DPOD(_OptimalRounds):
    """`ODLinBAI` with Laplace noise on the least-squares moments: a private comparator.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards.
    features : array_like of shape (arms, dimension)
        Feature vector of each arm, as for `ODLinBAI`.

    Raises
    ------
    ParameterError
        As in `ODLinBAI`, and also if rewards may lie outside [0, 1].

    Notes
    -----
    Each round releases U = sum_s a_s x_s of its own rewards x, with Laplace noise of scale L / epsilon in
    each coordinate, where L is the largest sum of absolute coordinates of a remaining arm, in the coordinates
    of this round: a reward in [0, 1] changes U by at most L in the L1 norm. The Gram matrix is public. Each
    reward enters only one round, so the actions, the noisy moments and the recommended arm are
    epsilon-differentially private. The noise, and hence the success of the design, depends on the coordinates
    of the features.

    The releases are named ``noisy_moment_1`` to ``noisy_moment_d``: in the coordinates of the features until
    the dimension falls, and in orthonormal coordinates of the remaining arms from then on.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR. Appendix E.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.DPOD(epsilon=1.0, features=[[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5]])
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.45, 0.2, 0.55]), horizon=200, rng=0)
    >>> log.releases[["name", "scale"]].values.tolist()
    [['noisy_moment_1', 1.0], ['noisy_moment_2', 1.0]]
    """

    epsilon: Positive

    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="refused", unit_rewards=True)
    law: ClassVar[int] = LAPLACE_NOISE
    lost: ClassVar[float | None] = 0.0
    inexact: ClassVar[str] = (
        "its noise is added to rewards times features, which are not whole numbers: use DPBAI"
    )

    def _noise(self) -> float:
        return 1.0 / float(self.epsilon)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for actions, noisy moments and the recommended arm, by parallel composition over rounds.

        The arms that a round of the algorithm pulls, and how often, depend only on the remaining arms, that
        is, on earlier releases; the moments of each round start afresh. Each reward enters the moments of
        only one round.
        """
        self._refuse_sizes(horizon, n_arms)
        # One reward changes the moments by at most L in L1.
        moments = PrivacyGuarantee(epsilon=float(self.epsilon))
        return parallel(moments, moments, over="epochs")

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        names = [f"noisy_moment_{k + 1}" for k in range(len(self.features[0]))]
        return release_columns(released, names, (0,), ["laplace"])
