"""Results of a stopping rule: one run, or many runs as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord
from adaptinf.parameters import FINITE, check
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class StoppingResult:
    """Result of a single run of a stopping rule.

    Attributes
    ----------
    estimate : float
        Estimate of the mean; NaN if the rule did not stop.
    stopping_time : int or float
        Number of samples at which the rule stopped; NaN if it did not.
    stopped : bool
        Whether it stopped.
    samples : int
        Number of samples that were read.
    reason : str or None
        The reason why there is no estimate; None if there is one.
    alpha, beta : float
        An estimate with an error of alpha abs(mean) or more occurs with probability at most beta.
    guarantee : PrivacyGuarantee or None
        Privacy guarantee for the stopping time and the estimate, including their absence; None if no
        noise is added.
    noise : {"simulation", "release"} or None
        The source of the noise.
    design : DesignRecord
        Name and parameters of the rule.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> stream = iter(np.random.default_rng(0).random(100_000))
    >>> found = ai.designs.NAS(alpha=0.2, beta=0.1).run(stream)
    >>> found.stopped, round(found.estimate, 1)
    (True, 0.5)
    """

    estimate: float
    stopping_time: float
    stopped: bool
    samples: int
    reason: str | None
    alpha: float
    beta: float
    guarantee: PrivacyGuarantee | None
    noise: str | None
    design: DesignRecord

    @property
    def interval(self) -> tuple[float, float]:
        """Means compatible with a relative error below alpha; they miss with probability at most beta."""
        ends = self.estimate / (1.0 + self.alpha), self.estimate / (1.0 - self.alpha)
        return (ends[0], ends[1]) if self.estimate > 0.0 else (ends[1], ends[0])

    def to_frame(self) -> pd.DataFrame:
        """One row: estimate, conf_low, conf_high, stopping_time, stopped, samples, alpha, beta, epsilon."""
        import pandas as pd

        low, high = self.interval
        row = {
            "estimate": self.estimate,
            "conf_low": low,
            "conf_high": high,
            "stopping_time": float(self.stopping_time),
            "stopped": self.stopped,
            "samples": self.samples,
            "alpha": self.alpha,
            "beta": self.beta,
            "epsilon": math.nan if self.guarantee is None else self.guarantee.epsilon,
            "noise": self.noise,
            "reason": self.reason,
        }
        return pd.DataFrame([row])

    def summary(self) -> str:
        """Description of the run, one fact per line."""
        lines = [("rule", _described(self.design))]
        if self.stopped:
            low, high = self.interval
            lines += [
                ("estimate", f"{self.estimate:.6g}"),
                ("mean between", f"{low:.6g} and {high:.6g}"),
                ("stopped", f"after {self.samples:,} samples"),
            ]
        else:
            lines += [("estimate", "none"), ("reason", str(self.reason))]
        promise = f"error of at least {self.alpha:.6g} |mean| with probability at most {self.beta:.6g}"
        lines.append(("accuracy", promise))
        if self.guarantee is not None:
            lines.append(("privacy", str(self.guarantee)))
            lines.append(("noise", _NOISES[str(self.noise)]))
        return visible_lines(f"{name:<14}{text}" for name, text in lines)

    def __str__(self) -> str:
        return self.summary()


_NOISES = {
    "simulation": "simulated: must not be published as private",
    "release": "integers from a cryptographic source",
}


def _described(design: DesignRecord) -> str:
    parameters = ", ".join(f"{name}={value!r}" for name, value in design.parameters.items())
    return f"{design.name}({parameters})"


@dataclass(frozen=True, slots=True, repr=False)
class StoppingReplications:
    """Many runs of a stopping rule on one distribution.

    Attributes
    ----------
    estimate : ndarray of shape (replications,)
        Estimates; NaN if a run did not stop.
    stopping_time : ndarray of shape (replications,)
        Number of samples at which a run stopped; NaN if it did not.
    stopped : ndarray of bool, shape (replications,)
        Whether it stopped.
    samples : ndarray of int, shape (replications,)
        Number of samples that were read.
    alpha, beta : float
        The required accuracy.

    Examples
    --------
    >>> import adaptinf as ai
    >>> rule = ai.designs.NAS(alpha=0.2, beta=0.1)
    >>> runs = rule.replicate(ai.environments.BernoulliArms([0.5]), replications=64, rng=0, max_rounds=10_000)
    >>> runs
    <StoppingReplications: 64 runs, 64 stopped, after 6,084.19 samples on average>
    """

    estimate: FloatArray
    stopping_time: FloatArray
    stopped: NDArray[np.bool_]
    samples: IntArray
    alpha: float
    beta: float

    def __repr__(self) -> str:
        stopped = int(self.stopped.sum())
        after = (
            f", after {self.stopping_time[self.stopped].mean():,.6g} samples on average" if stopped else ""
        )
        return f"<StoppingReplications: {self.stopped.size:,} runs, {stopped:,} stopped{after}>"

    def wrong(self, mean: float) -> NDArray[np.bool_]:
        """Runs with an error of at least alpha abs(mean); runs that did not stop have no estimate.

        Parameters
        ----------
        mean : float
            True mean of the samples, in the form in which they enter the sum. If the mean is 0, every run
            that stops is wrong.

        Returns
        -------
        ndarray of bool, shape (replications,)
            The expected share of such runs is at most beta.

        Raises
        ------
        ParameterError
            If the mean is not finite.
        """
        check("wrong", mean=(mean, FINITE))
        off = np.abs(np.where(self.stopped, self.estimate, mean) - mean)
        return np.asarray(self.stopped & (off >= self.alpha * abs(mean)))
