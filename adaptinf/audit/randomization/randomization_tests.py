"""Randomisation tests: the distribution of a statistic over re-runs of the same design.

References
----------
Simon, R. and Simon, N. (2011), "Using randomization tests to preserve type I error with response adaptive and
covariate adaptive randomization".
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.audit.randomization.randomization_results import (
    RandomizationTest,
    WeightedRandomizationTest,
    assumptions,
)
from adaptinf.audit.randomization.rerun_plan import Draws, PathStatistic, Plan, blocks, make_plan
from adaptinf.audit.rerun.logged_rows import rerun_cautions
from adaptinf.audit.rerun.path_propensities import PathFollower, fixed_propensities
from adaptinf.designs.base import Design
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, JOBS, number_array
from adaptinf.simulation.replicate import BLOCK, block_stream, child
from adaptinf.typing import BoolArray, FloatArray, RandomSource

# Up to this number, paths are enumerated, which takes about 1.4 s; beyond it they are sampled.
MOST_PATHS = 2**16
_WHOLE = 1e-9


def every_path(plan: Plan) -> tuple[FloatArray, FloatArray] | None:
    """Statistic and probability of every path on the logged rows, both of shape (paths,)."""
    # Enumeration is impossible if rows are permuted, if there are too many paths, or if the probability of a
    # path depends on more than the path (hidden posterior draws, overriding coins, private noise).
    n_arms, n_rounds = plan.log.n_arms, plan.log.n_rounds
    if plan.by_order or n_rounds * np.log(n_arms) > np.log(MOST_PATHS) + _WHOLE:
        return None
    if fixed_propensities(plan.design, plan.log, plan.rows) is None:
        return None
    follower = PathFollower(plan.design, plan.log, plan.rows)
    stream = np.random.default_rng(0)
    paths = np.array(list(itertools.product(range(n_arms), repeat=n_rounds)), dtype=np.int64)
    chances, tallies = np.empty(len(paths)), np.empty((len(paths), n_arms, 3))
    for i, path in enumerate(paths):
        tallies[i] = follower.walk(path, stream)
        chances[i] = follower.record.propensity.prod()
    if not abs(chances.sum() - 1.0) <= _WHOLE:
        return None
    possible = chances > 0.0
    return plan.from_paths(paths[possible], tallies[possible]), chances[possible]


_TIE = 1e-9
_REPLICATIONS = 999


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rank of a log among its re-runs; draws have shape (replications,)."""

    pvalue: float
    conservative: float
    exceedances: int
    ties: int
    replications: int
    draws: FloatArray


def randomization_test(
    log: AdaptiveLog,
    design: Design | None = None,
    statistic: str | Callable[..., Any] | None = None,
    resample: str | None = None,
    replications: int | None = None,
    rng: RandomSource | None = 0,
    *,
    treatment: Any = None,
    control: Any = None,
    alternative: str = "two-sided",
    stop_after: int | None = None,
    vectorised: bool = False,
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
    n_jobs: int = 1,
) -> RandomizationTest:
    """Test whether rewards depend on the arm at all, by re-running the design on the logged rows.

    Parameters
    ----------
    log : AdaptiveLog
        The log of the trial.
    design : Design, optional
        The design with its parameters; by default the one named in the log.
    statistic : str or callable, optional
        ``"studentised"``: difference of two means divided by its pooled standard error, the default with two
        arms or if arms are named. ``"largest-studentised"``: the largest absolute studentised difference over
        all pairs, the default with more arms. ``"f"``: one-way analysis of variance. ``"difference"``:
        difference of two means. ``"pulls"``: pulls of the treatment arm minus pulls of the control arm.
        Alternatively, a function ``statistic(action, reward, context)`` of arrays of shape (rounds,), the
        first containing codes into ``log.arms``, and a dict of context columns; it returns a number whose
        large values are evidence against the hypothesis. The arrays are copies.
    resample : {"assignment", "order"}, optional
        ``"assignment"``: rows keep their order, and the design draws new coins and new noise. ``"order"``:
        rows of contexts and rewards are permuted first. By default ``"order"`` for designs without random
        draws or with privacy noise only (UCB, LinUCB, successive elimination, their private forms, and the
        best-arm designs), otherwise ``"assignment"``.
    replications : int, optional
        Re-runs, B. B + 1 should be a multiple of 20, so the test can have level exactly .05. If omitted,
        every path is enumerated, provided that there are at most 65,536 and the design's probability of each
        is known: the p-value then needs no `rng`, and counts ties in full. Otherwise 999.
    rng : int, SeedSequence, Generator or None
        Source of randomness; its streams differ from those of `Design.run` with the same `rng`.
    treatment, control : label, optional
        The arms of a contrast; with two arms, by default the second minus the first.
    alternative : {"two-sided", "greater", "less"}
        Direction of a contrast; the two-sided test uses its absolute value.
    stop_after : int, optional
        Besag and Clifford's rule: stop as soon as this many re-runs are more extreme than the log; the
        p-value is then their number divided by the number of re-runs made. At most `replications`.
    vectorised : bool
        Whether a user-defined function accepts arrays of shape (runs, rounds) and returns one number per run.
    context : str or sequence of str, optional
        Context column that the design uses (ConSE, DPConSE), or the coordinates of its vector; by default the
        log's only column, or x1, x2, ... and x1_<arm>, ...
    features : sequence, optional
        All possible contexts, in the design's order; by default 0 to the largest number, or the sorted labels
        of the log.
    n_jobs : int
        Number of worker processes, -1 for all cores; it does not affect the results.

    Returns
    -------
    RandomizationTest
        The p-value, the statistics of all re-runs and the assumptions.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem): a log that another design collected,
        as its record, its actions or its propensities show; a design without coins that is to be re-run by
        assignment, for which p would be 1; or a statistic that is NaN.

    Warns
    -----
    AdaptinfWarning
        If B + 1 is not a multiple of 20, so that the level of the test is below .05.

    Notes
    -----
    If every path is enumerated, p is the probability of the paths at least as extreme as the log's, counting
    ties in full, and P(p <= alpha) <= alpha. Designs whose propensities depend on hidden draws (Thompson
    sampling with `draws`, private designs) and mixtures are re-run.

    Under the sharp null hypothesis, the rewards would have been the same under any assignment, so the log and
    the re-runs are exchangeable given the rows, including private noise; p = (1 + number of re-runs at least
    as extreme) / (B + 1), with ties broken by coins, is uniform on 1/(B + 1), ..., 1. Statistics that differ
    by less than 1e-9 of their size count as tied. ``"order"`` also requires rows that are exchangeable.

    References
    ----------
    Besag, J. and Clifford, P. (1991). Sequential Monte Carlo p-values. Biometrika 78, 301-304.

    Simon, R. and Simon, N. (2011). Using randomization tests to preserve type I error with response adaptive
    and covariate adaptive randomization. Statistics and Probability Letters 81, 767-772.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.3, 0.7])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.5).run(arms, horizon=200, rng=0)
    >>> test = ai.audit.randomization_test(log, replications=199)
    >>> bool(test.pvalue <= 0.05), test.resample
    (True, 'assignment')
    """
    plan = make_plan(
        log,
        design,
        statistic,
        resample,
        rng,
        treatment=treatment,
        control=control,
        alternative=alternative,
        vectorised=vectorised,
        context=context,
        features=features,
        problems=_count_problems(replications, n_jobs, stop_after),
    )
    if replications is None and stop_after is None and (listed := every_path(plan)) is not None:
        return _enumerated(plan, alternative, *listed)
    replications = replications or _REPLICATIONS
    if (replications + 1) % 20:
        level = (replications + 1) // 20 / (replications + 1)
        warnings.warn(
            f"replications + 1 = {replications + 1} is not a multiple of 20: at alpha = .05 the test "
            f"rejects with probability only {level:.4f}; use 199 or 999",
            AdaptinfWarning,
            stacklevel=2,
        )
    ranking = rank(plan, blocks(plan, replications, n_jobs), replications, stop_after)
    return RandomizationTest(
        pvalue=ranking.pvalue,
        pvalue_conservative=ranking.conservative,
        **_common(plan, alternative),
        draws=ranking.draws,
        exceedances=ranking.exceedances,
        ties=ranking.ties,
        replications=ranking.replications,
        requested=int(replications),
        resample="order" if plan.by_order else "assignment",
        stopped_early=ranking.replications < replications,
    )


def _enumerated(plan: Plan, alternative: str, values: FloatArray, chances: FloatArray) -> RandomizationTest:
    """The test based on all paths; `values` and `chances` have shape (paths,)."""
    observed = plan.observed()
    evidence = float(plan.evidence(np.array([observed]))[0])
    beyond, tied = compare(plan.evidence(values), evidence, plan.scale)
    pvalue = min(1.0, float(chances[beyond | tied].sum() / chances.sum()))
    return RandomizationTest(
        pvalue=pvalue,
        pvalue_conservative=pvalue,
        **_common(plan, alternative),
        draws=values,
        exceedances=int(beyond.sum()),
        ties=int(tied.sum()),
        replications=values.size,
        requested=values.size,
        resample="assignment",
        stopped_early=False,
        path_probabilities=chances,
    )


def _common(plan: Plan, alternative: str) -> dict[str, Any]:
    """Facts about the plan that every test states: the statistic, the design, and the assumptions."""
    return {
        "statistic": plan.observed(),
        "statistic_name": plan.statistic.name,
        # Only the function itself determines which values of a user's statistic are extreme, so no
        # alternative applies.
        "alternative": "large values" if isinstance(plan.statistic, PathStatistic) else alternative,
        "design": plan.name,
        "assumptions": assumptions(plan),
        "cautions": rerun_cautions(plan.log, plan.by_order),
    }


def replication_problems(replications: Any, n_jobs: Any) -> list[str]:
    """Problems with the number of re-runs or of processes."""
    return COUNT("replications", replications) + JOBS("n_jobs", n_jobs)


def rank(plan: Plan, drawn: Iterable[Draws], replications: int, stop_after: int | None = None) -> Ranking:
    """Rank the log among re-runs, and stop once `stop_after` of them are more extreme."""
    observed = float(plan.evidence(np.array([plan.observed()]))[0])
    own = plan.breaker()
    values: list[FloatArray] = []
    beyond: list[BoolArray] = []
    above: list[BoolArray] = []
    tied: list[BoolArray] = []
    reached = 0
    for part in drawn:
        greater, equal = compare(plan.evidence(part.values), observed, plan.scale)
        values.append(part.values)
        above.append(greater)
        tied.append(equal)
        beyond.append(greater | (equal & (part.breakers > own)))
        reached += int(beyond[-1].sum())
        if stop_after is not None and reached >= stop_after:
            break
    every, counts = np.concatenate(values), np.cumsum(np.concatenate(beyond))
    used = every.size
    if stop_after is not None and reached >= stop_after:
        used = int(np.searchsorted(counts, stop_after)) + 1
    exceedances = int(np.concatenate(above)[:used].sum())
    ties = int(np.concatenate(tied)[:used].sum())
    count = int(counts[used - 1])
    stopped = used < replications or count == stop_after
    # Besag and Clifford (1991): if sampling stops at the h-th exceedance, p is h over the number of re-runs,
    # and the log itself does not count.
    pvalue = count / used if stopped else (1 + count) / (used + 1)
    conservative = max(pvalue, (1 + exceedances + ties) / (used + 1))
    return Ranking(pvalue, conservative, exceedances, ties, used, every[:used])


def compare(values: FloatArray, observed: float, scale: float = 0.0) -> tuple[BoolArray, BoolArray]:
    """Which values exceed the observed one, and which equal it up to rounding at the given scale."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(values - observed)
    size = max(abs(observed), scale) if math.isfinite(observed) else 0.0
    equal = (values == observed) | (gap <= _TIE * size)
    return (values > observed) & ~equal, equal


def _count_problems(replications: Any, n_jobs: Any, stop_after: Any) -> list[str]:
    """Problems with the requested number of replications."""
    replications = _REPLICATIONS if replications is None else replications
    problems = replication_problems(replications, n_jobs)
    if stop_after is None:
        return problems
    wrong = COUNT("stop_after", stop_after)
    if not wrong and not problems and stop_after > replications:
        wrong = [f"stop_after must be at most replications ({replications:,}), got {stop_after:,}"]
    return problems + wrong


_METHOD = "weighted_randomization_test"
_PATHS, _PILOT = 4, 5
_UNIFORM_SHARE = 0.1
_COLLAPSED = 0.05
_OWN = "the logged propensities are the design's own"


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
    """Randomisation test with paths drawn from a fixed reference design and weighted by likelihood ratios.

    Parameters
    ----------
    log : AdaptiveLog
        The log of the trial, with exact propensities.
    design : Design, optional
        The design; by default the one named in the log. The design's propensities must be computable along
        any given path.
    statistic, treatment, control, alternative, vectorised, context, features
        As in `randomization_test`.
    replications : int
        Number of paths drawn.
    rng : int, SeedSequence, Generator or None
        Source of randomness.
    reference : {"uniform", "pilot"} or array_like of shape (arms,) or (rounds, arms)
        Probabilities with which the arms of a path are drawn, independently across rounds. ``"pilot"``: nine
        tenths of the average propensities over 64 re-runs of the design on the logged rows, plus one tenth of
        the uniform distribution. An array must be fixed in advance.

    Returns
    -------
    WeightedRandomizationTest
        The p-value, the weights and their effective sample size.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If the log or the design has no propensities, or the design is a `Mixture`, whose coins cannot be
        recovered from a given path.

    Notes
    -----
    A path A* drawn from the reference q has the weight prod_t e_t(A*_t) / q_t(A*_t), where e_t are the
    design's propensities on that path with the logged rewards. The log is weighted by its logged
    propensities. Given the set of paths and log, each is the log with probability proportional to its weight;
    so the share of the weight at statistics beyond the log's, plus a uniform fraction of the share at its
    own, is uniform under the null hypothesis, for any number of paths (Harrison 2012 gives the version that
    counts ties in full). The same is true if propensities depend on draws of the design, such as posterior
    frequencies or noisy releases, and were logged given these draws: the draws are repeated for each path.

    Probabilities averaged over the *logged* propensities are not a fixed reference: they depend on the logged
    path, so the argument fails. Weights degenerate as the number of rounds grows and the design moves away
    from the reference: the effective sample size measures this. The p-value remains valid, but it cannot be
    small unless the log's own weight is small; re-running the design avoids this loss.

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
    return WeightedRandomizationTest(
        pvalue=pvalue,
        pvalue_conservative=whole,
        **_common(plan, alternative) | {"assumptions": (*assumptions(plan), _OWN)},
        draws=values,
        log_weights=weights,
        log_weight=own,
        effective_sample_size=size,
        largest_share=float(shares.max()),
        reference=name,
        notes=_notes(size, float(shares[-1]), int(replications)),
    )


def importance_p_value(
    log_weights: FloatArray, own: float, beyond: Any, tied: Any, breaker: float
) -> tuple[float, float]:
    """P-values of a log among weighted paths; `log_weights`, `beyond` and `tied` have shape (paths,)."""
    highest = max(own, float(log_weights.max(initial=-math.inf)))
    weights, log_part = np.exp(log_weights - highest), math.exp(own - highest)
    whole = weights.sum() + log_part
    above, equal = weights[beyond].sum(), weights[tied].sum() + log_part
    return float((above + breaker * equal) / whole), float(min(1.0, (above + equal) / whole))


class _Walker(PathFollower):
    """A design that is run along paths drawn from a reference."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.design, plan.log, plan.rows)
        self.plan = plan
        self._refuse()

    def _refuse(self) -> None:
        name = self.plan.name
        others = ["randomization_test", "randomization_test on a log of Mixture(...)"]
        if self.plan.log.propensity_status != "exact":
            raise InvalidForLog(_METHOD, "the log has no exact propensities for the weights", others[:1])
        if self.mixes:
            reason = f"a path does not show which rounds of the {name} were overridden"
            raise InvalidForLog(_METHOD, reason, others[:1])
        if not self.has_propensities:
            raise InvalidForLog(_METHOD, f"{name} has no propensities along a given path", others)

    def stream(self, number: int, first: int = 0) -> np.random.Generator:
        """A random stream of the weighted test."""
        return block_stream(child(self.plan.root, number), first)

    def draw(self, chances: FloatArray, replications: int) -> tuple[FloatArray, FloatArray]:
        """Statistics and log weights of paths drawn from the reference."""
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
    """Probabilities of the reference, shape (rounds, arms), and its name."""
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
    """Log weight of the log from its own propensities, which `make_plan` has checked."""
    arrays = plan.log.arrays
    logged = np.asarray(arrays.propensity, dtype=np.float64)
    costs = np.log(chances[np.arange(plan.log.n_rounds), arrays.action])
    return float((np.log(logged) - costs).sum())


def _notes(size: float, own_share: float, replications: int) -> tuple[str, ...]:
    if size >= _COLLAPSED * (replications + 1):
        return ()
    return (
        f"the weights have degenerated: {replications:,} paths have an effective sample size of {size:.1f}. "
        f"The p-value is valid, but power is low (the log's own share is {own_share:.1%}): re-run the "
        'design with randomization_test, use more paths, or set reference="pilot"',
    )
