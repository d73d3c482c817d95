"""Thompson sampling with propensities that are exact by construction."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from adaptinf.designs.arms.posterior import PosteriorDesign
from adaptinf.log import DesignTraits, Stability
from adaptinf.simulation.environments import Environment

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
    Of normal posteriors the probability of being best is computed, by quadrature to about 1e-12 (two arms in
    closed form); of Beta posteriors, or where `draws` are asked for, the frequency among posterior draws
    stands for it. The arm is drawn from these very numbers, after the floor, so the logged propensities are
    exact, given the past and the frequencies. Probabilities below the floor are raised to it and the excess
    of the others over it shrinks in proportion.

    The simulation of Hadad et al. (2021) deals the initial pulls out in turn and logs them as if drawn. Here
    a dealt round has the propensities 0 and 1; means by inverse weighting leave it to its arm.

    Without a floor and without batches, to draw once for each arm and pull the highest has the same law.
    `replicate` does so, as it keeps no propensities; ``by_rounds=True`` gives the numbers of `run`.

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
        """Counts stay random where arms are equally good."""
        return dataclasses.replace(super().traits, stability=_UNSTABLE)

    def _has_shortcut(self, environment: Environment) -> bool:
        """One posterior draw an arm gives the law of a choice that neither a floor nor a batch alters."""
        return self.batch_size == 1 and self.floor_parts()[0] == 0.0
