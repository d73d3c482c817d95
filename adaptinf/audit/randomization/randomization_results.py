"""The result of a randomisation test, and its assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptinf.claims.tables import CAUTION
from adaptinf.log.report import FIXED
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.audit.randomization.rerun_plan import Plan


def assumptions(plan: Plan) -> tuple[str, ...]:
    """The conditions under which the p-value is exact."""
    status = "" if plan.log.stopping in (None, FIXED) else " (contradicted, see the caution)"
    shared = (
        "null hypothesis: no round's reward depends on the arm, so all arms are equal",
        "no carry-over: a reward does not depend on the arms of other rounds",
        "contexts are exogenous: they do not depend on earlier arms or rewards",
        f"fixed horizon: the number of rounds was not chosen by looking at the data{status}",
        f"{plan.name}, with these parameters, collected the log",
    )
    if plan.by_order:
        return (*shared, "rows are exchangeable: contexts and rewards do not drift and have no order in time")
    return shared


def _rests_on(
    result: RandomizationTest | RandomizationInterval | WeightedRandomizationTest, notes: tuple[str, ...] = ()
) -> list[str]:
    """The last lines of every printed result: notes, cautions, and conditions for exactness."""
    return [
        *(f"  note: {line}" for line in notes),
        *(CAUTION(caution=one) for one in result.cautions),
        "Exact under:",
        *(f"  - {line}" for line in result.assumptions),
    ]


@dataclass(frozen=True, eq=False, repr=False)
class RandomizationTest:
    """Result of a randomisation test.

    Attributes
    ----------
    pvalue : float
        P-value based on re-runs, with ties broken by independent coins: if the null hypothesis and the
        assumptions hold and nothing was stopped early, it is at most alpha with probability exactly
        floor(alpha (B + 1)) / (B + 1). If paths are enumerated, it is the total probability of the paths at
        least as extreme as the log's, and involves no randomness.
    pvalue_conservative : float
        P-value with every tie counted in full, which is never smaller.
    statistic : float
        Observed value of the statistic.
    statistic_name, alternative : str
        The statistic, and the direction of the alternative.
    draws : ndarray of shape (replications,)
        Value of the statistic in every re-run, or on every path.
    exceedances, ties : int
        Numbers of re-runs, or of paths, with a statistic more extreme than the observed one, and with one
        equal to it.
    replications, requested : int
        Number of re-runs that were made, and number requested.
    resample : str
        ``"assignment"`` or ``"order"``.
    stopped_early : bool
        Whether the sequential rule of Besag and Clifford stopped the test.
    design : str
        The design that was re-run.
    assumptions : tuple of str
        Assumptions of the p-value.
    path_probabilities : ndarray of shape (replications,), optional
        Probability of every path, if all were enumerated.
    cautions : tuple of str
        Evidence in the log against an assumption.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> round(ai.audit.randomization_test(log, replications=199, rng=0).pvalue, 3)
    0.015
    """

    pvalue: float
    pvalue_conservative: float
    statistic: float
    statistic_name: str
    alternative: str
    draws: FloatArray
    exceedances: int
    ties: int
    replications: int
    requested: int
    resample: str
    stopped_early: bool
    design: str
    assumptions: tuple[str, ...]
    path_probabilities: FloatArray | None = None
    cautions: tuple[str, ...] = ()

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the p-value due to the number of re-runs; 0 if every path was enumerated."""
        if self.path_probabilities is not None:
            return 0.0
        return math.sqrt(self.pvalue * (1.0 - self.pvalue) / self.replications)

    def __repr__(self) -> str:
        if self.path_probabilities is not None:
            return f"<RandomizationTest: p = {self.pvalue:.4g}, all {self.replications:,} paths>"
        return f"<RandomizationTest: p = {self.pvalue:.4g}, {self.replications:,} re-runs by {self.resample}>"

    def __str__(self) -> str:
        if self.path_probabilities is not None:
            return visible_lines(
                [
                    f"Randomisation test: all {self.replications:,} paths of {self.design}",
                    f"  statistic    {self.statistic_name}, {self.alternative}: {self.statistic:.6g}",
                    f"  paths        {self.exceedances:,} more extreme, {self.ties:,} equal",
                    f"  p-value      {self.pvalue:.6g} (enumerated, with ties counted in full: no Monte "
                    "Carlo error)",
                    *_rests_on(self),
                ]
            )
        stopped = f" (stopped early; {self.requested:,} were requested)" if self.stopped_early else ""
        return visible_lines(
            [
                f"Randomisation test: {self.design} re-run {self.replications:,} times by {self.resample}"
                + stopped,
                f"  statistic    {self.statistic_name}, {self.alternative}: {self.statistic:.6g}",
                f"  runs         {self.exceedances:,} more extreme, {self.ties:,} equal",
                f"  p-value      {self.pvalue:.4g} (Monte Carlo error {self.monte_carlo_error:.2g}; "
                f"with ties counted in full: {self.pvalue_conservative:.4g})",
                *_rests_on(self),
            ]
        )


@dataclass(frozen=True, eq=False, repr=False)
class RandomizationInterval:
    """Confidence interval for a constant additive effect, by inversion of randomisation tests.

    Attributes
    ----------
    low, high : float
        Confidence limits; infinite if no effect on that side was rejected.
    estimate : float
        Difference in means, not corrected for adaptive collection.
    alpha : float
        One minus the confidence level.
    treatment, control : label
        The arms: the effect is treatment minus control.
    effects, p_values : ndarray
        All effects that were tested, in increasing order, and their p-values.
    possible : (float, float)
        Effects that leave every imputed reward within the range of rewards.
    precision : float
        Largest distance of the limits from the last effect that was not rejected.
    replications : int
        Number of re-runs for every p-value.
    resample, design, statistic_name : str
        As in `RandomizationTest`.
    assumptions, notes : tuple of str
        Assumptions of the interval, and remarks on its computation.
    cautions : tuple of str
        Evidence in the log against an assumption.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.NormalArms([0.0, 1.0]), horizon=100, rng=0)
    >>> found = ai.audit.randomization_interval(log, treatment=1, control=0, replications=199, rng=0)
    >>> found.low < 1.0 < found.high
    True
    """

    low: float
    high: float
    estimate: float
    alpha: float
    treatment: object
    control: object
    effects: FloatArray
    p_values: FloatArray
    possible: tuple[float, float]
    precision: float
    replications: int
    resample: str
    design: str
    statistic_name: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<RandomizationInterval: {self._limits} at alpha = {self.alpha:g}>"

    @property
    def _limits(self) -> str:
        """Both limits, unless every effect was rejected."""
        return "none" if math.isnan(self.low + self.high) else f"[{self.low:.6g}, {self.high:.6g}]"

    def __str__(self) -> str:
        return visible_lines(
            [
                f"Constant effect of {self.treatment} minus {self.control}: {self.design} re-run "
                f"{self.replications:,} times by {self.resample}",
                f"  difference in means  {self.estimate:.6g}",
                f"  {1.0 - self.alpha:.6g} interval  {self._limits}",
                f"  effects tested       {self.effects.size}",
                *_rests_on(self, self.notes),
            ]
        )


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRandomizationTest:
    """Result of a randomisation test with paths drawn from a reference design.

    Attributes
    ----------
    pvalue : float
        P-value drawn between the share of the weights beyond the log's statistic and the share at or beyond
        it: exactly uniform under the null hypothesis.
    pvalue_conservative : float
        P-value with every tie, and the log itself, counted in full.
    statistic : float
        Observed value of the statistic.
    statistic_name, alternative : str
        The statistic, and the direction of the alternative.
    draws, log_weights : ndarray of shape (replications,)
        Statistics of the paths, and the natural logarithms of their likelihood ratios.
    log_weight : float
        Log weight of the log itself.
    effective_sample_size : float
        Effective sample size: (sum of weights)^2 / sum of squared weights over the paths and the log.
    largest_share : float
        Largest weight divided by the sum of all weights.
    reference, design : str
        The reference from which paths are drawn, and the design whose propensities weight them.
    assumptions, notes : tuple of str
        Assumptions of the p-value, and whether the weights have degenerated.
    cautions : tuple of str
        Evidence in the log against an assumption.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> found = ai.audit.weighted_randomization_test(log, replications=199, rng=0)
    >>> 0.0 < found.pvalue <= 1.0
    True
    """

    pvalue: float
    pvalue_conservative: float
    statistic: float
    statistic_name: str
    alternative: str
    draws: FloatArray
    log_weights: FloatArray
    log_weight: float
    effective_sample_size: float
    largest_share: float
    reference: str
    design: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()

    @property
    def replications(self) -> int:
        """Number of paths drawn."""
        return int(self.draws.size)

    def __repr__(self) -> str:
        return (
            f"<WeightedRandomizationTest: p = {self.pvalue:.4g}, {self.replications:,} paths, effective "
            f"{self.effective_sample_size:.1f}>"
        )

    def __str__(self) -> str:
        return visible_lines(
            [
                f"Weighted randomisation test: {self.replications:,} paths of the {self.reference} "
                f"reference, reweighted to {self.design}",
                f"  statistic    {self.statistic_name}, {self.alternative}: {self.statistic:.6g}",
                f"  p-value      {self.pvalue:.4g} ({self.pvalue_conservative:.4g} if ties and the observed "
                f"log count in full)",
                f"  weights      effective sample size {self.effective_sample_size:.1f}; largest share "
                f"{self.largest_share:.1%}",
                *_rests_on(self, self.notes),
            ]
        )
