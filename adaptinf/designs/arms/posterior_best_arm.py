"""Draws from a posterior that look for the best arm: top-two Thompson sampling and exploration sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adaptinf.designs.arms.posterior import PosteriorDesign
from adaptinf.designs.arms.posterior_kernel import EXPLORATION, TOP_TWO
from adaptinf.parameters import Share


@dataclass(frozen=True, kw_only=True)
class TopTwoThompson(PosteriorDesign):
    """Top-two Thompson sampling, for finding the best arm.

    Parameters
    ----------
    leader_share : float
        Probability of pulling the arm that leads in a posterior draw, in (0, 1] (beta in the paper); else
        draws are repeated until another arm leads, and this one is pulled.
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, fractional successes), or normal.
    prior_parameters : (float, float)
        (successes, failures) of the Beta, or (mean, variance) of the normal; (1, 1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None for the one that each arm's rewards have so far (with
        their number as the denominator), taken as known. While that is 0 the prior's stands in for it.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Rounds an arm at the start, before the posterior decides; they are a batch of their own.
    initial : {"drawn", "dealt"}
        How these are assigned: each by a uniform draw, so that `initial_pulls` holds on average, or dealt out
        to the arms in turn, so that it holds exactly. Nothing is drawn in dealt rounds: their propensities
        are 0 and 1, and inverse weighting cannot use the rounds of one arm for another.
    batch_size : int
        Rounds after which the posterior is renewed.
    draws : int, optional
        Posterior draws whose frequencies stand for the probabilities of being best. By default 100 of a Beta,
        and none of a normal prior, whose probabilities are exact.

    Notes
    -----
    With alpha_d the posterior probability that arm d is the best, repeating draws until another arm leads
    gives d the propensity alpha_d (b + (1 - b) sum_{e != d} alpha_e / (1 - alpha_e)), b the leader's share.
    The arm is drawn from this number, without repetitions, and the log keeps it. With b = 1 this is
    Thompson sampling; with 1/2 two arms get equal shares.

    Where one arm wins all of the `draws`, the others' shares are those of second places among them. Normal
    posteriors have no such limit: their probabilities are exact down to very small ones.

    No guarantee of privacy.

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
    """Exploration sampling, for choosing the best arm after the trial: shares alpha (1 - alpha).

    Parameters
    ----------
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, fractional successes), or normal.
    prior_parameters : (float, float)
        (successes, failures) of the Beta, or (mean, variance) of the normal; (1, 1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None for the one that each arm's rewards have so far (with
        their number as the denominator), taken as known. While that is 0 the prior's stands in for it.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Rounds an arm at the start, before the posterior decides; they are a batch of their own.
    initial : {"drawn", "dealt"}
        How these are assigned: each by a uniform draw, so that `initial_pulls` holds on average, or dealt out
        to the arms in turn, so that it holds exactly. Nothing is drawn in dealt rounds: their propensities
        are 0 and 1, and inverse weighting cannot use the rounds of one arm for another.
    batch_size : int
        Rounds of a wave: the posterior is renewed after each.
    draws : int, optional
        Posterior draws whose frequencies stand for the probabilities of being best. By default 100 of a Beta,
        and none of a normal prior, whose probabilities are exact.

    Notes
    -----
    With alpha_d the posterior probability that arm d is the best, its propensity is
    alpha_d (1 - alpha_d) / sum_e alpha_e (1 - alpha_e). Once one arm leads for certain it gets half of the
    rounds, and the others share the rest as their chances of overtaking it. Regret during the trial is
    higher than under Thompson sampling; the expected regret of the arm that is chosen at its end falls
    faster.

    The authors' trials deal each wave's shares out as whole numbers; here every participant of a wave is
    drawn with these propensities, which the log keeps. In large waves give more `draws`: they cost little
    there. Where one arm wins all draws, the others' shares are those of second places among the draws.

    No guarantee of privacy.

    References
    ----------
    Kasy, M. and Sautmann, A. (2021). Adaptive treatment assignment in experiments for policy choice.
    Econometrica 89, 113-132.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.ExplorationSampling(batch_size=100, draws=10_000)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.5, 0.6]), horizon=500, rng=0)
    >>> shares = log.arrays.propensities[-1]
    >>> bool(shares.max() < 0.51), bool(shares[0] < 0.05)
    (True, True)
    """

    rule: ClassVar[int] = EXPLORATION
