"""Randomisation tests with paths of a fixed reference design, weighted to the design by likelihood ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.audit.randomization.results import WeightedRandomizationTest, assumptions
from adaptinf.audit.randomization.retest import compare, replication_problems
from adaptinf.audit.randomization.runs import Plan, make_plan
from adaptinf.audit.randomization.statistics import PathStatistic
from adaptinf.audit.rerun.fixed_length import rerun_cautions
from adaptinf.audit.rerun.path_propensities import PathFollower
from adaptinf.designs.base_design import Design
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_array
from adaptinf.simulation.replicate import BLOCK, block_stream
from adaptinf.typing import FloatArray, RandomSource

_METHOD = "weighted_randomization_test"
_PATHS, _PILOT = 4, 5
_UNIFORM_SHARE = 0.1
_COLLAPSED = 0.05


def weighted_randomization_test(
    log: AdaptiveLog,
    design: Design | None = None,
    statistic: str | Callable[..., Any] | None = None,
    replications: int = 999,
    rng: RandomSource | None = 0,
    *,
    reference: str | ArrayLike = "uniform",
    treatment: Any = None,
    control: Any = None,
    alternative: str = "two-sided",
    vectorised: bool = False,
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
) -> WeightedRandomizationTest:
    """Randomisation test with paths drawn from a fixed reference design and weighted to the log's design.

    Parameters
    ----------
    log : AdaptiveLog
        What the design gathered, with exact propensities.
    design : Design, optional
        The design; by default the one that the log names. It must have propensities on any given path.
    statistic, treatment, control, alternative, vectorised, context, features
        As in `randomization_test`.
    replications : int
        Paths that are drawn.
    rng : int, SeedSequence, Generator or None
        Source of randomness.
    reference : {"uniform", "pilot"} or array_like of shape (arms,) or (rounds, arms)
        Probabilities with which the arms of a path are drawn, independently from round to round.
        ``"pilot"``: nine tenths the average propensities over 64 re-runs of the design on the logged rows,
        one tenth uniform. An array must have been fixed beforehand.

    Returns
    -------
    WeightedRandomizationTest
        With the p-value, the weights and their effective sample size.

    Raises
    ------
    ParameterError
        Listing everything that does not fit.
    InvalidForLog
        Where log or design have no propensities, or the design is a `Mixture`, whose overrides are coins that
        a given path does not tell.

    Notes
    -----
    A path A* of the reference q has the weight prod_t e_t(A*_t) / q_t(A*_t), e_t the propensities that the
    design has on that path with the logged rewards. The log has the weight of its logged propensities. Given
    the set of paths and log, each is the log with a probability in proportion to its weight; so the share of
    the weight at statistics beyond the log's, plus a uniform part of the share at its own, is uniform under
    the null hypothesis, for any number of paths (Harrison 2012 has the form with ties in full). The same
    holds where propensities depend on draws of the design, such as posterior frequencies or noisy releases,
    given which they were logged: a path then draws these anew.

    Probabilities averaged over the *logged* propensities are no fixed reference: they follow the logged path,
    and the argument fails. Weights collapse as rounds go by and the design moves away from the reference: the
    effective sample size says how far. The p-value stays valid, but it cannot be small unless the log's
    own weight is; re-running the design has no such loss.

    References
    ----------
    Harrison, M. T. (2012). Conservative hypothesis tests and confidence intervals using importance sampling.
    Biometrika 99, 57-69.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.2, 0.8])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.8).run(arms, horizon=40, rng=0)
    >>> test = ai.audit.weighted_randomization_test(log, replications=499)
    >>> bool(0.0 < test.pvalue < 0.05), bool(test.effective_sample_size > 50)
    (True, True)
    """
    plan = make_plan(
        log,
        design,
        statistic,
        "assignment",
        rng,
        treatment=treatment,
        control=control,
        alternative=alternative,
        vectorised=vectorised,
        context=context,
        features=features,
        subject=_METHOD,
        problems=replication_problems(replications, 1),
    )
    walker = _Walker(plan)
    chances, name = _reference(plan, walker, reference)
    own = _logged_weight(plan, chances)
    values, weights = walker.draw(chances, int(replications))
    observed = plan.observed()
    own_evidence = float(plan.evidence(np.array([observed]))[0])
    beyond, tied = compare(plan.evidence(values), own_evidence, plan.scale)
    pvalue, whole = importance_p_value(weights, own, beyond, tied, plan.breaker())
    every = np.append(weights, own)
    shares = np.exp(every - np.max(every))
    shares /= shares.sum()
    size = float(1.0 / (shares**2).sum())
    directed = not isinstance(plan.statistic, PathStatistic)
    return WeightedRandomizationTest(
        pvalue=pvalue,
        pvalue_conservative=whole,
        statistic=observed,
        statistic_name=plan.statistic.name,
        alternative=alternative if directed else "large values",
        draws=values,
        log_weights=weights,
        log_weight=own,
        effective_sample_size=size,
        largest_share=float(shares.max()),
        reference=name,
        design=plan.name,
        assumptions=(*assumptions(plan), "the logged propensities are the design's own"),
        notes=_notes(size, float(shares[-1]), int(replications)),
        cautions=rerun_cautions(log, plan.by_order),
    )


def importance_p_value(
    log_weights: FloatArray, own: float, beyond: Any, tied: Any, breaker: float
) -> tuple[float, float]:
    """P-values of a log among weighted paths; log_weights (paths,), beyond, tied (paths,)."""
    highest = max(own, float(log_weights.max(initial=-math.inf)))
    weights, log_part = np.exp(log_weights - highest), math.exp(own - highest)
    whole = weights.sum() + log_part
    above, equal = weights[beyond].sum(), weights[tied].sum() + log_part
    return float((above + breaker * equal) / whole), float(min(1.0, (above + equal) / whole))


class _Walker(PathFollower):
    """A design led along paths of a reference."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.design, plan.log, plan.rows)
        self.plan = plan
        self._refuse()

    def _refuse(self) -> None:
        name = self.plan.name
        others = ["randomization_test", "randomization_test on a log of Mixture(...)"]
        if self.plan.log.propensity_status != "exact":
            raise InvalidForLog(_METHOD, "the log has no exact propensities to weigh it by", others[:1])
        if self.mixes:
            reason = f"a path does not tell which rounds of the {name} were overridden"
            raise InvalidForLog(_METHOD, reason, others[:1])
        if not self.has_propensities:
            raise InvalidForLog(_METHOD, f"{name} has no propensities on a given path", others)

    def stream(self, number: int, first: int = 0) -> np.random.Generator:
        """One of the streams that belong to the weighted form."""
        root = self.plan.root
        return block_stream(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, number)), first)

    def draw(self, chances: FloatArray, replications: int) -> tuple[FloatArray, FloatArray]:
        """Statistics and log weights of paths of the reference."""
        plan, n_rounds = self.plan, self.plan.log.n_rounds
        steps, costs = np.cumsum(chances, axis=1)[:, :-1], np.log(chances)
        values, weights = [], np.empty(replications)
        for first in range(0, replications, BLOCK):
            stream = self.stream(_PATHS, first)
            size = min(BLOCK, replications - first)
            paths = (stream.random((size, n_rounds))[:, :, None] >= steps).sum(axis=2)
            tallies = np.empty((size, plan.log.n_arms, 3))
            for run, path in enumerate(paths):
                tallies[run] = self.walk(path, stream)
                with np.errstate(divide="ignore"):
                    own = np.log(self.record.propensity).sum()
                weights[first + run] = own - costs[np.arange(n_rounds), path].sum()
            values.append(plan.from_paths(paths, tallies))
        return np.concatenate(values), weights


def _reference(plan: Plan, walker: _Walker, reference: Any) -> tuple[FloatArray, str]:
    """Probabilities of the reference, shape (rounds, arms), and what it is called."""
    shape = (plan.log.n_rounds, plan.log.n_arms)
    even = np.full(shape, 1.0 / shape[1])
    if isinstance(reference, str):
        if reference == "uniform":
            return even, "uniform"
        if reference == "pilot":
            stream, total = walker.stream(_PILOT), np.zeros(shape)
            for _ in range(BLOCK):
                walker.walk(np.zeros(0, dtype=np.int64), stream)
                total += walker.record.propensities
            return (1.0 - _UNIFORM_SHARE) * total / BLOCK + _UNIFORM_SHARE * even, "pilot"
    array = None if isinstance(reference, str) else number_array(reference)
    if array is None or array.shape not in (shape, shape[1:]):
        told = f"{reference!r:.60}" if array is None else f"an array of shape {array.shape}"
        problem = f"must be uniform, pilot, or probabilities of shape {shape[1:]} or {shape}, got {told}"
        raise ParameterError(_METHOD, [f"reference {problem}"])
    if not ((array > 0.0).all() and np.allclose(array.sum(axis=-1), 1.0, rtol=0.0, atol=1e-9)):
        raise ParameterError(_METHOD, ["reference must be positive, and sum to 1 in every round"])
    return np.broadcast_to(array, shape).copy(), "given"


def _logged_weight(plan: Plan, chances: FloatArray) -> float:
    """Log weight of the log, by its own propensities, which `make_plan` has checked."""
    arrays = plan.log.arrays
    logged = np.asarray(arrays.propensity, dtype=np.float64)
    costs = np.log(chances[np.arange(plan.log.n_rounds), arrays.action])
    return float((np.log(logged) - costs).sum())


def _notes(size: float, own_share: float, replications: int) -> tuple[str, ...]:
    if size >= _COLLAPSED * (replications + 1):
        return ()
    return (
        f"the weights have collapsed: {replications:,} paths are worth {size:.1f}. The p-value is valid but "
        f"has little power (the log's own share is {own_share:.1%}): re-run the design by "
        'randomization_test, take more paths, or reference="pilot"',
    )
