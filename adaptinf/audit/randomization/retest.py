"""Randomisation tests: what the statistic would have been, had the very design been run again.

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

from adaptinf.audit.randomization.results import RandomizationTest, assumptions
from adaptinf.audit.randomization.runs import Draws, Plan, blocks, make_plan
from adaptinf.audit.randomization.statistics import PathStatistic
from adaptinf.audit.rerun.fixed_length import rerun_cautions
from adaptinf.audit.rerun.path_propensities import PathFollower, fixed_propensities
from adaptinf.designs.base_design import Design
from adaptinf.errors import AdaptinfWarning
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, JOBS
from adaptinf.typing import BoolArray, FloatArray, RandomSource

MOST_PATHS = 2**16
"""More paths than this are drawn and not enumerated: walking them takes about 1.4 s."""
_WHOLE = 1e-9


def every_path(plan: Plan) -> tuple[FloatArray, FloatArray] | None:
    """Statistic and probability of every path on the logged rows, both of shape (paths,).

    None where rows are permuted, where there are too many paths, or where the probability of a path is not
    a function of it alone (hidden posterior draws, overriding coins, private noise).
    """
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
    """Where a log stands among re-runs; draws (replications,)."""

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
        What the design gathered.
    design : Design, optional
        The design with its parameters; by default the one that the log names.
    statistic : str or callable, optional
        ``"studentised"``: difference of two means over its pooled standard error, the default with two
        arms or where arms are named. ``"largest-studentised"``: the largest absolute one over all pairs, the
        default with more arms. ``"f"``: one-way analysis of variance. ``"difference"``: of two means.
        ``"pulls"``: pulls of the treated arm minus pulls of the other. Or a function ``statistic(action,
        reward, context)`` of arrays of shape (rounds,), codes into ``log.arms`` the first, and a dict of
        context columns, which returns a number whose large values speak against the hypothesis. The arrays
        are copies.
    resample : {"assignment", "order"}, optional
        ``"assignment"``: rows stay where they are, and the design draws its coins and its noise afresh.
        ``"order"``: rows of contexts and rewards are permuted first. By default ``"order"`` for designs
        without coins of their own or with none but privacy noise (UCB, LinUCB, successive elimination,
        their private forms, and the best-arm designs), else ``"assignment"``.
    replications : int, optional
        Re-runs, B. B + 1 should be a multiple of 20, so that the test can be of level .05 exactly. Left out,
        every path is enumerated where there are at most 65,536 and the design's probability of each is known:
        the p-value then needs no `rng`, and counts ties in full. Else 999.
    rng : int, SeedSequence, Generator or None
        Source of randomness; its streams differ from those of `Design.run` with the same `rng`.
    treatment, control : label, optional
        The arms of a contrast; with two arms the second minus the first by default.
    alternative : {"two-sided", "greater", "less"}
        Direction of a contrast; two-sided takes its absolute value.
    stop_after : int, optional
        Besag and Clifford's rule: stop as soon as this many re-runs lie beyond the log; the p-value is then
        their number over the number of re-runs made. At most `replications`.
    vectorised : bool
        Whether a function of your own takes arrays of shape (runs, rounds) and returns one number per run.
    context : str or sequence of str, optional
        Context column that the design sees (ConSE, DPConSE), or the coordinates of its vector; by default
        the log's only column, or x1, x2, ... and x1_<arm>, ...
    features : sequence, optional
        All contexts that could have arrived, in the design's order; by default 0 to the largest number, or
        the sorted labels of the log.
    n_jobs : int
        Worker processes, -1 for all cores; the numbers are the same for any.

    Returns
    -------
    RandomizationTest
        With the p-value, the statistics of all re-runs and the assumptions.

    Raises
    ------
    ParameterError
        Listing everything that does not fit: a log that another design gathered, by its record, its actions
        or its propensities; a design without coins that is to be re-run by assignment, where p would be 1; a
        statistic that is NaN.

    Warns
    -----
    AdaptinfWarning
        If B + 1 is not a multiple of 20: the test is then of a level below .05.

    Notes
    -----
    With every path enumerated, p is the probability of the paths at least as extreme as the log's, ties in
    full, and P(p <= alpha) <= alpha. Designs whose propensities hang on hidden draws (Thompson with Beta
    posteriors, private designs) and mixtures are re-run.

    Under the sharp null hypothesis the rewards would have been the same under any assignment, so log and
    re-runs are exchangeable given the rows, private noise and all; p = (1 + number of re-runs at least as
    extreme) / (B + 1), ties broken by coins, is uniform on 1/(B + 1), ..., 1. Statistics that differ by less
    than 1e-9 of their size count as tied. ``"order"`` needs rows that are exchangeable besides.

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
            f"replications + 1 = {replications + 1} is not a multiple of 20: at alpha = .05 the test rejects "
            f"with probability {level:.4f} only; take 199 or 999",
            AdaptinfWarning,
            stacklevel=2,
        )
    ranking = rank(plan, blocks(plan, replications, n_jobs), replications, stop_after)
    return RandomizationTest(
        pvalue=ranking.pvalue,
        pvalue_conservative=ranking.conservative,
        statistic=plan.observed(),
        statistic_name=plan.statistic.name,
        alternative="large values" if isinstance(plan.statistic, PathStatistic) else alternative,
        draws=ranking.draws,
        exceedances=ranking.exceedances,
        ties=ranking.ties,
        replications=ranking.replications,
        requested=int(replications),
        resample="order" if plan.by_order else "assignment",
        stopped_early=ranking.replications < replications,
        design=plan.name,
        assumptions=assumptions(plan),
        cautions=rerun_cautions(plan.log, plan.by_order),
    )


def _enumerated(plan: Plan, alternative: str, values: FloatArray, chances: FloatArray) -> RandomizationTest:
    """The test by all paths; values, chances (paths,)."""
    observed = plan.observed()
    evidence = float(plan.evidence(np.array([observed]))[0])
    beyond, tied = compare(plan.evidence(values), evidence, plan.scale)
    pvalue = min(1.0, float(chances[beyond | tied].sum() / chances.sum()))
    return RandomizationTest(
        pvalue=pvalue,
        pvalue_conservative=pvalue,
        statistic=observed,
        statistic_name=plan.statistic.name,
        alternative="large values" if isinstance(plan.statistic, PathStatistic) else alternative,
        draws=values,
        exceedances=int(beyond.sum()),
        ties=int(tied.sum()),
        replications=values.size,
        requested=values.size,
        resample="assignment",
        stopped_early=False,
        design=plan.name,
        assumptions=assumptions(plan),
        path_probabilities=chances,
        cautions=rerun_cautions(plan.log, plan.by_order),
    )


def replication_problems(replications: Any, n_jobs: Any) -> list[str]:
    """What is wrong with the number of re-runs and of processes."""
    return COUNT("replications", replications) + JOBS("n_jobs", n_jobs)


def rank(plan: Plan, drawn: Iterable[Draws], replications: int, stop_after: int | None = None) -> Ranking:
    """Rank the log among re-runs, and stop after `stop_after` of them lie beyond it."""
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
    pvalue = count / used if stopped else (1 + count) / (used + 1)
    conservative = max(pvalue, (1 + exceedances + ties) / (used + 1))
    return Ranking(pvalue, conservative, exceedances, ties, used, every[:used])


def compare(values: FloatArray, observed: float, scale: float = 0.0) -> tuple[BoolArray, BoolArray]:
    """Which values lie beyond the observed one, and which equal it but for rounding on this scale."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(values - observed)
    size = max(abs(observed), scale) if math.isfinite(observed) else 0.0
    equal = (values == observed) | (gap <= _TIE * size)
    return (values > observed) & ~equal, equal


def _count_problems(replications: Any, n_jobs: Any, stop_after: Any) -> list[str]:
    """What is wrong with how many replications are asked for."""
    replications = _REPLICATIONS if replications is None else replications
    problems = replication_problems(replications, n_jobs)
    if stop_after is None:
        return problems
    wrong = COUNT("stop_after", stop_after)
    if not wrong and not problems and stop_after > replications:
        wrong = [f"stop_after must be at most replications ({replications:,}), got {stop_after:,}"]
    return problems + wrong
