"""Upper confidence bounds, without and with differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from adaptinf.designs.arms.ucb_kernel import UCBTables, ucb_program
from adaptinf.designs.base import Design, Needs
from adaptinf.designs.run_results import ReleaseName
from adaptinf.guarantee import PrivacyGuarantee, parallel
from adaptinf.log import DesignTraits, Outputs, Stability
from adaptinf.parameters import BOOLEAN, Calibration, OneOf, Positive, Share
from adaptinf.privacy.counter_noise import counter_quantiles, counter_tail_bounds
from adaptinf.privacy.tree_sums import COUNTERS, counter_scales, counter_slots
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays

_STABLE_WIDTH = 2.0
_STABLE = Stability(
    True,
    "an exploration bonus of order sqrt(log T / pulls)",
    "Khamaru and Zhang (2024), 'Inference with the upper confidence bound algorithm'; Han, Khamaru and Zhang "
    "(2024), 'UCB algorithms for multi-armed bandits: precise regret and adaptive inference'",
)


@dataclass(frozen=True, kw_only=True)
class UCB(Design):
    """UCB1: pull the arm with the highest value of its sample mean plus sqrt(width log(t) / pulls).

    Parameters
    ----------
    width : float
        Constant in the confidence width; 2 is that of UCB1 for rewards in [0, 1].

    Notes
    -----
    Each arm is first pulled once, in order, and ties are broken in favour of the first arm. Propensities are
    0 or 1, so inverse weighting is impossible.

    References
    ----------
    Auer, P., Cesa-Bianchi, N. and Fischer, P. (2002). Finite-time analysis of the multiarmed bandit problem.
    Machine Learning 47, 235-256.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.9, 0.5]), horizon=200, rng=0)
    >>> int((log.arrays.action == 0).sum()) > 100
    True
    """

    width: Positive = 2.0

    pending: ClassVar[str] = "any"
    growing: ClassVar[bool] = True

    @property
    def traits(self) -> DesignTraits:
        """Traits: no random draws; counts are stable unless the width is below that of UCB1."""
        settles = _STABLE if self.width >= _STABLE_WIDTH else None
        return DesignTraits(uses_context="no", own_coins=False, stability=settles)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        n_arms = environment.n_arms
        tables = UCBTables(
            n_arms=n_arms,
            width=float(self.width),
            log_offset=0.0,
            relaxation=0.0,
            private=False,
            hybrid=False,
            slots=1,
            trunk=0.0,
            node=0.0,
            grid=np.array([1.0, np.inf]),
            intercept=np.zeros((1, 1)),
            slope=np.zeros((1, 1)),
            **written_arrays(n_arms if recording else 0),
        )
        return ucb_program(tables)


@dataclass(frozen=True, kw_only=True)
class PrivateUCB(Design):
    """UCB based on differentially private running sums, with one counter per arm.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards.
    calibration : {"corrected", "published"}
        ``"corrected"`` spends epsilon on each arm's counter and widens the index by the 1 - 1/t quantile of
        the counter's own noise. ``"published"`` spends epsilon / K and adds the paper's relaxation gamma.
    counter : {"hybrid", "binary"}
        The method of continual summation; the binary counter is less noisy but needs the horizon.
    width : float
        Constant in the confidence width (corrected).
    noise_width : {"quantile", "tail-bound"}
        Allowance for the noise in the corrected index: its exact 1 - 1/t quantile, or the Chan-Shi-Song bound
        that fails with probability 1/t, as used in proofs, which is 1.3 to 3.4 times as wide for t from 100
        to 10^6.
    delta : float or None
        Failure probability in the published index; by default 1 / horizon, because the paper gives no value.
    relaxation : bool
        Whether the published index includes gamma.

    Notes
    -----
    The choice uses only counts and the noisy sums exactly as released, so anyone who has the actions and the
    releases can recompute every action.

    Rewards are clipped to [0, 1] before they enter a counter; the raw reward is logged. An environment with
    bounded rewards that may lie outside [0, 1] is refused. A reward enters the counter of only one arm, so
    the actions and the noisy sums are epsilon-differentially private: epsilon is not multiplied by K. Given
    the past, the propensities depend on the counters' noise and are intractable, so the log contains none.

    Published index: mean + noise/N + sqrt(2 log(t/delta)/N) + gamma/N, where gamma = K log(T)^2 log(K T
    log(T) / delta) / epsilon. Corrected index: mean + noise/N + sqrt(width log(t)/N) + q/N. The quantile q is
    interpolated in log t between four points per octave: the error is 0.4% at t = 3 and at most 0.1% from t =
    4 onwards.

    With ``noise_width="tail-bound"``, q = sqrt(8 log t) max(s, b sqrt(log t)), where s^2 is the sum of the
    squared scales of the Laplace variables in the noise and b the largest scale; the bound is one-sided and
    interpolated in the same way.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM Transactions
    on Information and System Security 14.

    Mishra, N. and Thakurta, A. (2015). (Nearly) optimal differentially private stochastic multi-arm
    bandits. UAI.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.PrivateUCB(epsilon=1.0)
    >>> design.guarantee(horizon=500, n_arms=3).epsilon
    1.0
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.5, 0.2]), horizon=500, rng=0)
    >>> len(log.releases)
    500
    """

    epsilon: Positive
    calibration: Calibration = "corrected"
    counter: Annotated[str, OneOf(*COUNTERS)] = "hybrid"
    width: Positive = 2.0
    noise_width: Annotated[str, OneOf("quantile", "tail-bound")] = "quantile"
    delta: Share | None = None
    relaxation: Annotated[bool, BOOLEAN] = True

    pending: ClassVar[str] = "window"
    lost: ClassVar[float | None] = 0.0
    nodes: ClassVar[tuple[str, str] | None] = ("arm", "count")
    release_names: ClassVar[tuple[ReleaseName, ...]] = (ReleaseName("noisy_sum", "counter"),)
    releases_by_arm: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(unit_rewards=True)

    @property
    def traits(self) -> DesignTraits:
        """Traits: no random draws except the privacy noise."""
        outputs = Outputs(propensities="outputs")
        return DesignTraits(uses_context="no", own_coins=False, outputs=outputs)

    def _problems(self) -> list[str]:
        problems = []
        if self.calibration == "published" and self.noise_width != "quantile":
            problems.append("noise_width must be omitted: it applies only to the corrected index")
        if self.calibration == "corrected" and self.delta is not None:
            problems.append("delta must be omitted: it applies only to the published index")
        return problems

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for the actions and the noisy sums, by parallel composition over the arms' counters.

        A counter advances with the pulls of its arm, and arms are chosen only from counts and noisy sums, so
        the actions determine which counter a reward enters.
        """
        self._refuse_sizes(horizon, n_arms)
        share = 1 if self.calibration == "corrected" else n_arms
        counter = PrivacyGuarantee(epsilon=float(self.epsilon) / share)
        whole = parallel(*[counter] * n_arms, over="arms")
        if self.calibration == "corrected":
            return whole
        reason = (
            f"the paper splits epsilon = {self.epsilon:g} over {n_arms} counters, but each reward "
            "enters only one counter, so the actions are private at epsilon / K"
        )
        return replace(whole, reasons=(reason,))

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Largest noise scale of a node of a counter."""
        trunk, node = counter_scales(self.counter, self.guarantee(horizon, n_arms).epsilon, horizon)
        return max(trunk, node * counter_slots(horizon) if self.counter == "hybrid" else node)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        n_arms = environment.n_arms
        budget = self.guarantee(horizon, n_arms).epsilon
        trunk, node = counter_scales(self.counter, budget, horizon)
        table = counter_quantiles if self.noise_width == "quantile" else counter_tail_bounds
        grid, quantiles = table(self.counter, horizon)
        quantiles = quantiles / budget
        log_offset = relaxation = 0.0
        if self.calibration == "published":
            log_delta = -math.log(horizon) if self.delta is None else math.log(self.delta)
            log_offset = -log_delta
            quantiles = np.zeros_like(quantiles)
            if self.relaxation:
                relaxation = _published_relaxation(self.epsilon, n_arms, horizon, log_delta)
        slope = np.diff(quantiles, axis=0) / np.diff(np.log(grid))[:, None]
        slots = counter_slots(horizon)
        tables = UCBTables(
            n_arms=n_arms,
            width=2.0 if self.calibration == "published" else float(self.width),
            log_offset=log_offset,
            relaxation=relaxation,
            private=True,
            hybrid=self.counter == "hybrid",
            slots=slots,
            trunk=trunk,
            node=node,
            grid=grid,
            intercept=np.ascontiguousarray(quantiles[:-1] - slope * np.log(grid[:-1])[:, None]),
            slope=np.ascontiguousarray(slope),
            **written_arrays(0, horizon if recording else 0),
        )
        return ucb_program(tables)


def _published_relaxation(epsilon: float, n_arms: int, horizon: int, log_delta: float) -> float:
    """The paper's gamma: K log(T)^2 log(K T log(T) / delta) / epsilon, or 0 for a horizon of 1."""
    log_horizon = math.log(horizon)
    if log_horizon == 0.0:
        return 0.0
    return n_arms * log_horizon**2 * (math.log(n_arms * horizon * log_horizon) - log_delta) / epsilon
