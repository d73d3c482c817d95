"""Stopping rules: how many samples until the mean is known up to a factor, with and without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import truediv
from typing import Any, ClassVar

from adaptinf.designs.stopping.base import Scale, StoppingRule
from adaptinf.designs.stopping.kernel import Rule
from adaptinf.designs.stopping.noise import ReleaseNoise
from adaptinf.designs.stopping.results import StoppingResult
from adaptinf.guarantee import PrivacyGuarantee, sequential
from adaptinf.parameters import COUNT, Calibration, OneOf, OrNone, Positive, check_fields, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.typing import RandomSource

_LEAST_RELEASE_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class NAS(StoppingRule):
    """Nonmonotonic adaptive sampling: sample until the mean is known up to a factor of 1 +- alpha.

    Parameters
    ----------
    alpha : float
        Relative accuracy asked for, in (0, 1).
    beta : float
        Probability, in (0, 1), of an estimate that is not as accurate.
    bound : float
        Samples lie in [-bound, bound].
    steps : {"every", "exponential"}
        Look at every sample, or at 2, 4, 8, ... samples.

    Notes
    -----
    The rule halts at the first look j, at t samples, where abs(mean) >= h_t (1 + 1/alpha), with h_t = bound
    sqrt((2/t) log(4 j^2 / beta)): Hoeffding's inequality at confidence 1 - beta / (2 j^2), so that all
    deviations together have probability at most beta. For independent samples with one mean, the probability
    that the rule stops with an estimate that is off by alpha abs(mean) or more is at most beta, whenever it
    is given up. At a mean of 0 it stops with probability at most beta. Unless the mean is large, exponential
    steps stop sooner: there are fewer looks to guard against.

    References
    ----------
    Domingo, C., Gavalda, R. and Watanabe, O. (2002). Adaptive sampling methods for scaling up knowledge
    discovery algorithms. Data Mining and Knowledge Discovery 6.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> result = ai.designs.NAS(alpha=0.2, beta=0.05).run(rng.uniform(0.0, 1.0, 10_000))
    >>> result.stopping_time
    6364
    >>> round(result.estimate, 2)
    0.5
    """

    def rule(self, bound: float, unit: float, scale: Scale = truediv) -> Rule:
        """Constants of the halting test where the largest sample is `bound` units of size `unit`."""
        return Rule(
            exponential=self.steps == "exponential",
            private=False,
            bound=bound,
            unit=unit,
            factor=1.0 + 1.0 / self.alpha,
            width_log=math.log(4.0) - math.log(self.beta),
            noise_log=0.0,
            allowance=0.0,
            threshold_scale=0.0,
            query_scale=0.0,
            release_scale=0.0,
        )

    def guarantee(self) -> PrivacyGuarantee | None:
        """None: the rule is not private."""
        return None

    def run(
        self, stream: Any, rng: RandomSource | None = None, max_rounds: int | None = None
    ) -> StoppingResult:
        """Sample until the rule halts.

        Parameters
        ----------
        stream : array_like of shape (n,), iterable of float, or Environment
            The samples. An array, list, tuple or series is checked as a whole before anything else; any other
            iterable is read sample by sample, never further than needed; an environment has one arm.
        rng : int, SeedSequence, Generator or None
            Source of an environment's samples.
        max_rounds : int, optional
            Samples after which to give up; needed for an environment.

        Returns
        -------
        StoppingResult
            Estimate and stopping time; NaN, with the reason, where the rule did not halt.

        Raises
        ------
        ParameterError
            Listing all that is found wrong with an array, with positions; at the first sample of an iterable
            that is not a number in [-bound, bound]; for an environment whose rewards leave that interval.
        """
        return self._run(stream, rng, max_rounds)


@dataclass(frozen=True, kw_only=True)
class DPNAS(StoppingRule):
    """Private nonmonotonic adaptive sampling: the mean up to a factor of 1 +- alpha, epsilon-private.

    Parameters
    ----------
    epsilon : float
        Privacy of one sample, for the stopping time and the estimate together.
    alpha : float
        Relative accuracy asked for, in (0, 1).
    beta : float
        Probability, in (0, 1), of an estimate that is not as accurate.
    bound : float
        Samples lie in [-bound, bound].
    steps : {"every", "exponential"}
        Look at every sample (the paper's Algorithm 1), or at 2, 4, 8, ... samples (Algorithm 2).
    calibration : {"corrected", "published"}
        The same: the published noise is right.

    Notes
    -----
    Sparse vector technique: one Laplace variable of scale 12 bound / epsilon on the threshold and one on each
    look. A sample moves an absolute sum by at most 2 bound, so that the stopping time is (epsilon/6 +
    epsilon/3)-private; noise of scale 4 bound / epsilon on the final sum adds epsilon/2.

    Accuracy is that of `NAS`: for independent samples with one mean, the probability that the rule stops with
    an estimate that is off by alpha abs(mean) or more is at most beta. Unless the mean is large, exponential
    steps stop sooner. Privacy holds for any samples.

    What enters a sum is clipped to [-bound, bound]; where clipping changes samples, the mean meant is that of
    the clipped ones.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rule = ai.designs.DPNAS(epsilon=1.0, alpha=0.2, beta=0.05)
    >>> result = rule.run(rng.uniform(0.0, 1.0, 20_000), rng=1)
    >>> result.stopped, result.noise
    (True, 'simulation')
    >>> print(result.guarantee)
    epsilon = 1, pure, per reward, central, standard
    """

    epsilon: Positive
    calibration: Calibration = "corrected"

    shares: ClassVar[tuple[int, int, int]] = (6, 3, 2)
    """What epsilon is divided by for the threshold, for the looks and for the estimate."""

    def __post_init__(self) -> None:
        check_fields(self, first="epsilon")

    def _parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """What the noise on the threshold, on the looks and on the final sum each spend: epsilon, exactly."""
        threshold, looks, release = (Fraction(float(self.epsilon)) / share for share in self.shares)
        return threshold, looks, release

    def _promises(self) -> tuple[PrivacyGuarantee, ...]:
        return tuple(PrivacyGuarantee(float(part)) for part in self._parts())

    def rule(self, bound: float, unit: float, scale: Scale = truediv) -> Rule:
        """Constants of the halting test where the largest sample is `bound` units of size `unit`."""
        sensitivity = 2.0 * bound
        threshold, looks, release = self._parts()
        threshold_scale, release_scale = scale(sensitivity, threshold), scale(sensitivity, release)
        log_tail = math.log(4.0) - math.log(self.beta)
        return Rule(
            exponential=self.steps == "exponential",
            private=True,
            bound=bound,
            unit=unit,
            factor=1.0 + 1.0 / self.alpha,
            width_log=math.log(16.0) - math.log(self.beta),
            noise_log=math.log(8.0) - math.log(self.beta),
            allowance=(threshold_scale + release_scale / self.alpha) * log_tail,
            threshold_scale=threshold_scale,
            query_scale=scale(2.0 * sensitivity, looks),
            release_scale=release_scale,
        )

    def guarantee(self) -> PrivacyGuarantee:
        """Privacy of one sample: sparse vector technique and final release, added up."""
        return sequential(*self._promises())

    def time_guarantee(self) -> PrivacyGuarantee:
        """Privacy of the stopping time alone, without the estimate: half of epsilon, the sparse vector's."""
        return sequential(*self._promises()[:2])

    def run(
        self,
        stream: Any,
        rng: RandomSource | None = None,
        max_rounds: int | None = None,
        backend: str = "simulation",
    ) -> StoppingResult:
        """Sample until the rule halts.

        Parameters
        ----------
        stream : array_like of shape (n,), iterable of float, or Environment
            The samples. An array, list, tuple or series is checked as a whole before anything else; any other
            iterable is read sample by sample, never further than needed; an environment has one arm.
        rng : int, SeedSequence, Generator or None
            Source of simulated noise, and of an environment's samples.
        max_rounds : int, optional
            Samples after which to give up; needed for an environment.
        backend : {"simulation", "release"}
            Simulated noise is seedable and not private. With "release" samples go on a grid of 2^20 steps a
            bound and the noise is integer, from OpenDP; `rng` must be None and the stream be data.

        Returns
        -------
        StoppingResult
            Estimate and stopping time; NaN, with the reason, where the rule did not halt. The guarantee holds
            either way.

        Raises
        ------
        ParameterError
            Listing all that is found wrong with an array, with positions; for an environment whose rewards
            leave [-bound, bound]; for a sample of an iterable that is not a number at all.

        Notes
        -----
        An error is an output. A sample of an iterable that is out of range is therefore clipped, and a
        missing one (None, NaN) counts as 0, silently: raising would reveal it. That samples are numbers at
        all is taken to be public. The check of an array is the curator's, before the mechanism: its message
        names samples and is not covered by the guarantee.
        """
        problems = OneOf("simulation", "release")("backend", backend)
        if not problems and backend == "release":
            if rng is not None:
                problems.append("rng must be None with backend='release': noise that is released has no seed")
            if isinstance(stream, Environment):
                problems.append("backend='release' is for data: an environment is simulated, noise and all")
            if self.epsilon < _LEAST_RELEASE_EPSILON:
                problems.append(
                    f"epsilon must be at least {_LEAST_RELEASE_EPSILON:g} with backend='release', where "
                    f"noise has to be exact in 53 bits, got {self.epsilon!r}"
                )
        refuse(self._name, problems + OrNone(COUNT)("max_rounds", max_rounds))
        return self._run(stream, rng, max_rounds, ReleaseNoise() if backend == "release" else None)
