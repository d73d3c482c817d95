"""Thompson sampling, top-two Thompson sampling and exploration sampling: designs with a posterior."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from adaptinf.designs.arms.beta_kernel import beta_space
from adaptinf.designs.arms.normal_kernel import normal_table
from adaptinf.designs.arms.posterior_kernel import (
    EXPLORATION,
    MATCHING,
    ROWS,
    SCALAR_COLUMNS,
    TOP_TWO,
    PosteriorTables,
    run_drawn,
    run_matching,
    run_modelled,
    run_normal,
    step_drawn,
    step_matching,
    step_modelled,
    step_normal,
)
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import DesignTraits, Floor, Stability
from adaptinf.parameters import FINITE, NON_NEGATIVE, POSITIVE, UNIT, Count, OneOf, Positive, Share, Whole
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays


@dataclass(frozen=True, kw_only=True)
class PosteriorDesign(Design):
    """A design whose propensities are determined by each arm's posterior probability of being the best."""

    pending: ClassVar[str] = "any"
    rule: ClassVar[int] = MATCHING

    prior: Annotated[str, OneOf("beta", "normal")] = "beta"
    prior_parameters: tuple[float, float] | None = None
    noise_scale: Positive | None = 1.0
    floor: float | tuple[float, float] | None = None
    initial_pulls: Annotated[int, Count(0)] = 0
    initial: Annotated[str, OneOf("drawn", "dealt")] = "drawn"
    batch_size: Whole = 1
    draws: Whole | None = None

    @property
    def traits(self) -> DesignTraits:
        """Traits: no contexts, the requested floor, and the initial assignment."""
        scale, decay = self.floor_parts()
        return DesignTraits(
            uses_context="no",
            floor=None if self.floor is None else Floor(scale, decay),
            dealt=int(self.initial_pulls) if self.initial == "dealt" else 0,
        )

    @property
    def growing(self) -> bool:  # type: ignore[override]
        """Whether an arm may join while the design is used; an initial assignment is planned for all arms."""
        return self.initial_pulls == 0

    def floor_parts(self) -> tuple[float, float]:
        """Scale and decay of the floor; the scale is 0 if there is no floor."""
        scale, decay = self.floor if isinstance(self.floor, tuple) else (self.floor or 0.0, 0.0)
        return float(scale), float(decay)

    def prior_parts(self) -> tuple[float, float]:
        """The two parameters of the prior."""
        first, second = self.prior_parameters or ((1.0, 1.0) if self.prior == "beta" else (0.0, 1.0))
        return float(first), float(second)

    def frequency_draws(self) -> int:
        """Number of posterior draws behind the propensities; 0 if they are exact."""
        return int(self.draws or 0)

    def _problems(self) -> list[str]:
        return self._prior_problems() + self._floor_problems()

    def _prior_problems(self) -> list[str]:
        if self.prior_parameters is None:
            return []
        pair: Any = self.prior_parameters
        if not isinstance(pair, tuple) or len(pair) != 2:
            return [f"prior_parameters must be a pair of numbers, got {pair!r}"]
        first, second = pair
        if self.prior == "normal":
            return FINITE("prior mean", first) + POSITIVE("prior variance", second)
        return POSITIVE("prior successes", first) + POSITIVE("prior failures", second)

    def _floor_problems(self) -> list[str]:
        floor: Any = self.floor
        if floor is None:
            return []
        if not isinstance(floor, tuple):
            return UNIT("floor", floor)
        if len(floor) != 2:
            return [f"floor must be a number or a pair (scale, decay), got {floor!r}"]
        return UNIT("floor scale", floor[0]) + NON_NEGATIVE("floor decay", floor[1])

    def _batches(self, horizon: int, n_arms: int) -> Any:
        if self.batch_size == 1:
            return None
        initial = self.initial_pulls * n_arms
        steps = np.arange(horizon)
        later = (steps - initial) // self.batch_size + (1 if initial else 0)
        return np.where(steps < initial, 0, later)

    def _leader_share(self) -> float:
        """Share of the leader if no other arm is best in any draw."""
        return 0.5

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        n_arms = environment.n_arms
        scale, decay = self.floor_parts()
        if scale > 1.0 / n_arms:
            problem = f"floor must be at most 1/K = {1 / n_arms:g} for {n_arms} arms, got {scale:g}"
            raise ParameterError(type(self).__name__, [problem])
        first, second = self.prior_parts()
        draws, single = self.frequency_draws(), not by_rounds and not recording
        exact = not draws and not single
        tables = PosteriorTables(
            n_arms=n_arms,
            rule=self.rule,
            leader_share=float(self._leader_share()),
            beta_prior=self.prior == "beta",
            prior_first=first,
            prior_second=second,
            noise_variance=0.0 if self.noise_scale is None else float(self.noise_scale) ** 2,
            draws=draws,
            single=single,
            initial_pulls=int(self.initial_pulls),
            dealt=self.initial == "dealt",
            floor_scale=scale,
            floor_decay=decay,
            batch_size=int(self.batch_size),
            normal=normal_table()[: None if exact and self.prior == "normal" else 0],
            betas=beta_space(n_arms, small=self.rule != MATCHING) if exact and self.prior == "beta" else None,
            **written_arrays(n_arms if recording else 0),
        )
        entry, step = self._entries(exact)
        return Program(entry, tables, (ROWS, max(n_arms, SCALAR_COLUMNS)), step=step)

    def _entries(self, exact: bool) -> tuple[Any, Any]:
        """Compiled entry points, each compiled on first use with only the code that its propensities need."""
        if not exact:
            return run_drawn, step_drawn
        if self.prior == "normal":
            return run_normal, step_normal
        return (run_matching, step_matching) if self.rule == MATCHING else (run_modelled, step_modelled)


_UNSTABLE = Stability(
    False,
    "arm counts remain random in the limit when arm means are equal",
    "Halder, Pan and Khamaru (2025), 'Stable Thompson sampling: valid inference via variance inflation'",
)


@dataclass(frozen=True, kw_only=True)
class Thompson(PosteriorDesign):
    """Thompson sampling: pull an arm with its posterior probability of being the best.

    Parameters
    ----------
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, and counted as fractional successes), or normal.
    prior_parameters : (float, float)
        Parameters of the prior: (successes, failures) for the Beta, or (mean, variance) for the normal; (1,
        1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None to use the empirical standard deviation of each arm's
        rewards so far (with denominator n), treated as known. While this empirical value is 0, the standard
        deviation of the prior is used instead.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Initial rounds per arm, before the posterior is used; they form a separate batch.
    initial : {"drawn", "dealt"}
        How the initial rounds are assigned: by uniform draws, so that each arm has `initial_pulls` rounds on
        average, or to the arms in turn, so that it has exactly this number. Rounds assigned in turn are not
        random: their propensities are 0 and 1, and inverse weighting cannot use the rounds of one arm for
        another.
    batch_size : int
        Number of rounds between updates of the posterior.
    draws : int, optional
        Number of posterior draws whose frequencies approximate the probabilities of being best. The default
        is none: the probabilities are exact.

    Notes
    -----
    The probability of being best is computed by quadrature, to about 1e-12 for normal posteriors (in closed
    form for two arms) and 1e-11 for Beta posteriors; if `draws` is given, it is replaced by the frequency
    among posterior draws. The arm is drawn with exactly these probabilities, after the floor is applied, so
    the logged propensities are exact, given the past and any frequencies. Probabilities below the floor are
    raised to it, and the excess of the others over the floor is reduced proportionally.

    The simulation of Hadad et al. (2021) assigns the initial pulls in turn and logs them as if drawn. Here a
    round assigned in turn has propensities 0 and 1; inverse-weighted means use it only for its own arm.

    Without a floor and batches, drawing once for each arm and pulling the arm with the highest draw has the
    same distribution. `replicate` uses this method, because it stores no propensities; ``by_rounds=True``
    reproduces the numbers of `run`.

    References
    ----------
    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view of the
    evidence of two samples. Biometrika 25, 285-294.

    Hadad, V., Hirshberg, D. A., Zhan, R., Wager, S. and Athey, S. (2021). Confidence intervals for policy
    evaluation in adaptive experiments. PNAS 118.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.Thompson(floor=(0.5, 0.7), batch_size=10)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=200, rng=0)
    >>> bool(log.arrays.propensities.min() >= 0.5 * 200**-0.7)
    True
    """

    @property
    def traits(self) -> DesignTraits:
        """Traits: counts remain random if arms are equally good."""
        return dataclasses.replace(super().traits, stability=_UNSTABLE)

    def _has_shortcut(self, environment: Environment) -> bool:
        """With neither a floor nor batches, one posterior draw per arm has the same distribution."""
        return self.batch_size == 1 and self.floor_parts()[0] == 0.0


@dataclass(frozen=True, kw_only=True)
class TopTwoThompson(PosteriorDesign):
    """Top-two Thompson sampling, for finding the best arm.

    Parameters
    ----------
    leader_share : float
        Probability of pulling the arm that leads in a posterior draw, in (0, 1] (beta in the paper);
        otherwise draws are repeated until a different arm leads, and that arm is pulled.
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, and counted as fractional successes), or normal.
    prior_parameters : (float, float)
        Parameters of the prior: (successes, failures) for the Beta, or (mean, variance) for the normal; (1,
        1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None to use the empirical standard deviation of each arm's
        rewards so far (with denominator n), treated as known. While this empirical value is 0, the standard
        deviation of the prior is used instead.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Initial rounds per arm, before the posterior is used; they form a separate batch.
    initial : {"drawn", "dealt"}
        How the initial rounds are assigned: by uniform draws, so that each arm has `initial_pulls` rounds on
        average, or to the arms in turn, so that it has exactly this number. Rounds assigned in turn are not
        random: their propensities are 0 and 1, and inverse weighting cannot use the rounds of one arm for
        another.
    batch_size : int
        Number of rounds between updates of the posterior.
    draws : int, optional
        Number of posterior draws whose frequencies approximate the probabilities of being best. The default
        is none: the probabilities are exact.

    Notes
    -----
    Let alpha_d be the posterior probability that arm d is the best; repeating draws until a different arm
    leads gives d the propensity alpha_d (b + (1 - b) sum_{e != d} alpha_e / (1 - alpha_e)), where b is the
    leader's share. The arm is drawn with this probability, without repetitions, and the log stores it. With b
    = 1, this is Thompson sampling; with b = 1/2, two arms get equal shares.

    If one arm leads in all of the `draws`, the shares of the other arms are their frequencies of second place
    among the draws. Without `draws` there is no such limit: very small probabilities keep their ratios.

    The design has no privacy guarantee.

    References
    ----------
    Russo, D. (2020). Simple Bayesian algorithms for best-arm identification. Operations Research 68,
    1625-1647.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.TopTwoThompson(prior="normal")
    >>> log = design.run(ai.environments.NormalArms([0.0, 0.5, 1.0]), horizon=400, rng=0)
    >>> shares = log.arrays.propensities[-1]
    >>> shares.argmax().item(), bool(abs(shares.max() - 0.5) < 0.05)
    (2, True)
    """

    rule: ClassVar[int] = TOP_TWO

    leader_share: Share = 0.5

    def _leader_share(self) -> float:
        return float(self.leader_share)


@dataclass(frozen=True, kw_only=True)
class ExplorationSampling(PosteriorDesign):
    """Exploration sampling, for choosing the best arm after the trial: shares follow alpha (1 - alpha).

    Parameters
    ----------
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, and counted as fractional successes), or normal.
    prior_parameters : (float, float)
        Parameters of the prior: (successes, failures) for the Beta, or (mean, variance) for the normal; (1,
        1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None to use the empirical standard deviation of each arm's
        rewards so far (with denominator n), treated as known. While this empirical value is 0, the standard
        deviation of the prior is used instead.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Initial rounds per arm, before the posterior is used; they form a separate batch.
    initial : {"drawn", "dealt"}
        How the initial rounds are assigned: by uniform draws, so that each arm has `initial_pulls` rounds on
        average, or to the arms in turn, so that it has exactly this number. Rounds assigned in turn are not
        random: their propensities are 0 and 1, and inverse weighting cannot use the rounds of one arm for
        another.
    batch_size : int
        Rounds per wave; the posterior is updated after each wave.
    draws : int, optional
        Number of posterior draws whose frequencies approximate the probabilities of being best. The default
        is none: the probabilities are exact.

    Notes
    -----
    If alpha_d is the posterior probability that arm d is the best, its propensity is alpha_d (1 - alpha_d) /
    sum_e alpha_e (1 - alpha_e). Once one arm leads with certainty, it receives half of the rounds, and the
    others share the rest according to their chances of overtaking it. Regret during the trial is higher than
    under Thompson sampling, but the expected regret of the arm chosen at the end decreases faster.

    The authors' trials assign whole numbers of participants in each wave; here every participant of a wave is
    drawn with these propensities, which the log stores. If one arm leads in all of the `draws`, the shares of
    the other arms are their frequencies of second place among the draws.

    The design has no privacy guarantee.

    References
    ----------
    Kasy, M. and Sautmann, A. (2021). Adaptive treatment assignment in experiments for policy choice.
    Econometrica 89, 113-132.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.ExplorationSampling(batch_size=100)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.5, 0.6]), horizon=500, rng=0)
    >>> shares = log.arrays.propensities[-1]
    >>> bool(shares.max() < 0.51), bool(shares[0] < 0.05)
    (True, True)
    """

    rule: ClassVar[int] = EXPLORATION
