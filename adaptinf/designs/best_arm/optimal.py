"""OD-LinBAI and DP-OD: best-arm identification by G-optimal designs, without and with privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.best_arm.base import FeatureDesign
from adaptinf.designs.best_arm.determinants import feature_rows, max_det_basis
from adaptinf.designs.best_arm.estimates import G_OPTIMAL, LAPLACE_NOISE, NO_NOISE
from adaptinf.designs.best_arm.g_optimal import optimal_design
from adaptinf.designs.best_arm.kernel import best_arm_program, best_arm_tables
from adaptinf.designs.best_arm.schedule import optimal_sizes
from adaptinf.designs.requirements import Needs
from adaptinf.guarantee import PrivacyGuarantee, parallel
from adaptinf.parameters import Positive
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program
from adaptinf.typing import FloatArray, IntArray

_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, repr=False)
class _OptimalRounds(FeatureDesign):
    """Rounds of least squares on G-optimal designs."""

    law: ClassVar[int] = NO_NOISE

    def sizes(self) -> IntArray:
        """Arms that enter each round, and the one that is left."""
        return optimal_sizes(*self.rows.shape)

    def _noise(self) -> float:
        """Scale of the noise of the moments, over how far one reward moves them."""
        return 0.0

    def _reserve(self) -> int:
        """Rounds set aside because pulls are rounded up."""
        n, dimension = len(self.features), len(self.features[0])
        return min(n, dimension * (dimension + 1) // 2) + int(self.sizes()[1:-1].sum())

    def _least_budget(self, n_arms: int) -> int:
        return self._reserve() + 1

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
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
    """Linear best-arm identification with a fixed budget by G-optimal designs, without privacy.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        Feature vector of each arm; the mean reward is a linear function of it. They span all coordinates, and
        no two are the same.

    Raises
    ------
    ParameterError
        Listing all that is found wrong: features that are not finite, span less than their space, or are
        the same for two arms; on running, an environment with another number of arms or with contexts, or a
        horizon that leaves less than one pull of an arm in some round.

    Notes
    -----
    Of R = ceil(log2 d) rounds (one for d = 1) the r-th keeps ceil(d / 2^r) arms. A round writes the arms that
    are left in orthonormal coordinates of their span, where that is smaller than before; finds a G-optimal
    design w (`optimal_design`, gap at most 1e-6); pulls arm i ceil(w_i m) times with
    m = (T - min(K, d (d + 1) / 2) - sum over r < R of ceil(d / 2^r)) / R; and keeps the arms with the highest
    least-squares predictions from this round's rewards. Ties are broken at random. Rounds that are left over
    pull the recommended arm. Given the past the propensities are 0 or 1.

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
    """`ODLinBAI` with Laplace noise on the moments of least squares, a private comparator.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of the rewards.
    features : array_like of shape (arms, dimension)
        Feature vector of each arm, as for `ODLinBAI`.

    Raises
    ------
    ParameterError
        As for `ODLinBAI`, and for rewards outside [0, 1].

    Notes
    -----
    Each round releases U = sum_s a_s x_s of its own rewards x with Laplace noise of scale L / epsilon in each
    coordinate, L being the largest sum of absolute coordinates of an arm that is left, in the coordinates of
    this round: a reward in [0, 1] moves U by at most that in L1. The Gram matrix is public. Rewards enter one
    round only, so the actions, the noisy moments and the recommended arm are epsilon-differentially private.
    The noise depends on the coordinates of the features, and so does the success of the design.

    Its releases are named ``noisy_moment_1`` to ``noisy_moment_d``: in the coordinates of the features until
    the dimension falls, in orthonormal ones of the arms that are left from then on.

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
    inexact: ClassVar[str] = "its noise is on rewards times features, which are no whole numbers: take DPBAI"

    def _noise(self) -> float:
        return 1.0 / float(self.epsilon)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """What the actions, the noisy moments and the recommended arm promise, parallel over rounds.

        Which arms a round of the algorithm pulls, and how often, follows from the arms that are left, that
        is, from earlier releases; its moments start afresh. A reward enters one round's moments.
        """
        self._refuse_sizes(horizon, n_arms)
        moments = PrivacyGuarantee(epsilon=float(self.epsilon))  # move by at most L in L1
        return parallel(moments, moments, over="epochs")

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        return {
            "round": released[:, 0].astype(np.int64),
            "name": np.array([f"noisy_moment_{int(code) + 1}" for code in released[:, 1]], dtype=object),
            "group": released[:, 2].astype(np.int64),
            "value": released[:, 3],
            "mechanism": np.full(released.shape[0], "laplace", dtype=object),
            "scale": released[:, 4],
        }
