"""Bias of sample means and least-squares predictions, by re-running a design with known truth.

References
----------
Nie, Tian, Taylor, Zou (2018), "Why adaptively collected data have negative bias and how to correct for it".
Shin, Ramdas, Rinaldo (2019), "Are sample means in multi-armed bandits positively or negatively biased?".
Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy". Efron, Tibshirani
(1993), "An Introduction to the Bootstrap" (parametric bootstrap estimates of bias).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.rerun.fitted_environment import LAWS, FittedWorld, fitted_world
from adaptinf.audit.rerun.logged_rows import design_of, late_problems, plan_problems
from adaptinf.audit.rerun.path_propensities import contradictions
from adaptinf.designs.base import Design
from adaptinf.designs.contextual.conse import ConSE
from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.arm_bias import bias_bound, trivial_bias_bound
from adaptinf.inference.validity.profile import is_binary
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Count, number_array, refuse
from adaptinf.simulation.environments import LinearArms
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray, RandomSource
from adaptinf.workers import spread

if TYPE_CHECKING:
    from adaptinf.inference.results.summary import ResultSummary


_CHUNK = 4 * BLOCK


@dataclass(frozen=True, slots=True, eq=False)
class LinearWorld:
    """Linear arms on a log's contexts; average and naive have shape (arms, dimension)."""

    env: LinearArms
    law: str
    average: FloatArray
    naive: FloatArray
    source: str
    notes: tuple[str, ...]


def arm_contexts(log: AdaptiveLog) -> tuple[FloatArray, bool]:
    """Context vectors of a log, of shape (T, arms, dimension), and whether all arms share them."""
    names = log.context
    columns = [log.arrays.context[name] for name in names]
    if not names or any(np.asarray(column).dtype.kind not in "biuf" for column in columns):
        problem = "the context vectors must be numeric context columns of the log"
        raise ParameterError("simulate_bias", [f"{problem}, got {', '.join(names) or 'none'}"])
    matrix = np.stack(columns, axis=1).astype(np.float64)
    size, rest = divmod(len(names), log.n_arms)
    wanted = [f"x{k}_{arm}" for arm in log.arms for k in range(1, size + 1)]
    if rest == 0 and set(wanted) == set(names):
        order = [names.index(name) for name in wanted]
        return matrix[:, order].reshape(log.n_rounds, log.n_arms, size), False
    return np.broadcast_to(matrix[:, None], (log.n_rounds, log.n_arms, len(names))), True


def least_squares(contexts: FloatArray, action: IntArray, reward: FloatArray) -> FloatArray:
    """Least-squares coefficients of each arm.

    Shapes: contexts (T, arms, dimension), action (T,), reward (T,); returns (arms, dimension).
    """
    found = np.full(contexts.shape[1:], np.nan)
    for arm in range(contexts.shape[1]):
        here = action == arm
        if np.count_nonzero(here) >= contexts.shape[2]:
            solution, _, rank, _ = np.linalg.lstsq(contexts[here, arm], reward[here], rcond=None)
            if rank == contexts.shape[2]:
                found[arm] = solution
    return found


def linear_world(log: AdaptiveLog, theta: object = None) -> LinearWorld:
    """Linear arms with a log's coefficients, on its contexts; theta has shape (arms, dimension)."""
    contexts, shared = arm_contexts(log)
    arrays = log.arrays
    naive = least_squares(contexts, arrays.action, arrays.reward)
    if theta is None:
        missing = [
            f"the rounds of arm {log.arms[arm]!r} do not determine its {naive.shape[1]} coefficients: pass "
            "means=, the assumed coefficients, of shape (arms, dimension)"
            for arm in np.flatnonzero(np.isnan(naive).any(axis=1))
        ]
        refuse("simulate_bias", missing)
        coefficients, source = naive, "least squares (not valid under adaptivity)"
    else:
        given = number_array(theta)
        if given is None or given.shape != naive.shape or not np.isfinite(given).all():
            problem = f"means must be coefficients: finite numbers of shape {naive.shape}, got {theta!r:.60}"
            raise ParameterError("simulate_bias", [problem])
        coefficients, source = given, "given"
    expected = np.einsum("tad,ad->ta", contexts, coefficients)
    inside = bool((expected >= 0.0).all() and (expected <= 1.0).all())
    notes = []
    law = "bernoulli" if is_binary(arrays.reward) and inside else "normal"
    if is_binary(arrays.reward) and not inside:
        notes.append("Rewards are normal, because some means at the log's contexts lie outside [0, 1].")
    residual = arrays.reward - expected[np.arange(log.n_rounds), arrays.action]
    env = LinearArms(
        coefficients,
        noise=float(residual.std()),
        contexts=contexts[:, 0] if shared else contexts,
        shared=shared,
        rewards=law,
    )
    return LinearWorld(env, law, contexts.mean(axis=0), naive, source, tuple(notes))


def simulated_predictions(
    design: Design, world: LinearWorld, horizon: int, replications: int, rng: RandomSource | None, n_jobs: int
) -> FloatArray:
    """Least-squares predictions of every run at each arm's average context, of shape (replications, arms)."""
    root = seed_sequence(rng)
    spans = [(start, min(start + _CHUNK, replications)) for start in range(0, replications, _CHUNK)]
    jobs = [(_predictions, (design, world, horizon, start, stop, root)) for start, stop in spans]
    return np.concatenate(spread(jobs, n_jobs))


def _predictions(
    design: Design, world: LinearWorld, horizon: int, start: int, stop: int, root: np.random.SeedSequence
) -> FloatArray:
    found = np.empty((stop - start, world.env.n_arms))
    for run, log in enumerate(design.logs(world.env, horizon, stop, root, start)):
        contexts, _ = arm_contexts(log)
        coefficients = least_squares(contexts, log.arrays.action, log.arrays.reward)
        found[run] = np.einsum("ad,ad->a", world.average, coefficients)
    return found


COLUMNS = ("mean", "bias", "bias_se", "bound", "pulled", "naive", "corrected")


@dataclass(frozen=True, eq=False)
class SimulatedBias:
    """Bias of sample means in re-runs of a log's design, and theoretical bounds on it.

    Attributes
    ----------
    frame : DataFrame
        One row per arm and one per difference from the control (by context if the design uses contexts):
        term, kind ("arm-mean" or "contrast"), mean (the true value in the simulation), bias of the sample
        mean, its Monte Carlo standard error bias_se, bound (on the absolute bias, by the theorem; NaN if it
        does not apply), trivial_bound (which no design can exceed), pulled (share of runs with a reward of
        every arm involved: bias is conditional on this), naive (the log's sample mean), estimate (the log's
        fitted mean) and corrected (naive minus bias).
    design, law, source : str
        The design, the distribution of the simulated rewards, and the source of the means.
    guarantee : PrivacyGuarantee or None
        The guarantee on which the bound is based.
    horizon, replications : int
        Rounds per run, and number of runs.
    notes : tuple of str
        Information needed to interpret the numbers.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> ai.audit.simulate_bias(log, replications=64, rng=0).law
    'bernoulli'
    """

    frame: pd.DataFrame
    design: str
    law: str
    source: str
    guarantee: PrivacyGuarantee | None
    horizon: int
    replications: int
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """The table in full precision, a copy of `frame`."""
        return self.frame.copy()

    def summary(self) -> ResultSummary:
        """The table, as text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import format_number, plain_table

        headers = ["", "mean", "bias", "MC error", "bound", "pulled", "naive", "corrected"]
        rows = []
        for record in self.frame.to_dict("records"):
            cells = [
                "" if name == "bound" and np.isnan(record[name]) else format_number(float(record[name]))
                for name in COLUMNS
            ]
            cells[COLUMNS.index("pulled")] = f"{record['pulled']:.1%}"
            rows.append([str(record["term"]), *cells])
        table = plain_table(rows, headers, "l" + "r" * len(COLUMNS))
        head = f"{self.replications:,} runs of {self.horizon:,} rounds of {self.design}."
        world = f"Rewards: {LAWS[self.law]}. Means: {self.source}."
        return ResultSummary("Simulated Bias of Sample Means", [table], [head, world, *self.notes])

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def simulate_bias(
    log: AdaptiveLog,
    design: Design | None = None,
    replications: int = 1000,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
    *,
    control: Any = None,
    means: Any = None,
) -> SimulatedBias:
    """Re-run a log's design at the log's fitted means, and measure the average error of sample means.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    design : Design, optional
        The design that collected the log; by default the one recorded in it. A note in the result says so if
        the log's record or its propensities disagree with this design.
    replications : int
        Number of runs, at least 2.
    rng : int, SeedSequence, Generator or None
        Source of randomness; run r depends only on (rng, r).
    n_jobs : int
        Number of worker processes, -1 for all cores; it does not affect the results.
    control : label, optional
        Arm with which the others are compared; by default the log's first.
    means : array_like of shape (arms,) or (contexts, arms), optional
        Assumed means instead of the fitted ones, in the order of the log's arms and of the sorted contexts;
        for LinUCB and LinPriv the coefficients, of shape (arms, dimension).

    Returns
    -------
    SimulatedBias
        The bias of each arm's sample mean and of each difference, its Monte Carlo error, the theorem's bound,
        the naive and the bias-corrected estimate.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem): for example, if an arm has no
        rewards, or the design cannot be run with this number of arms or rounds, or is neither given nor
        recorded in the log.
    InvalidForLog
        If the design chooses by context vectors without a linear model for the means.

    Notes
    -----
    Rewards that are all 0 or 1 are simulated as Bernoulli variables. If the log states a finite range,
    rewards are drawn from the arm's rewards, exponentially tilted to the fitted mean; otherwise they are
    normal with the arm's standard deviation. ConSE and DPConSE are run with the log's contexts, drawn
    independently with the log's frequencies, and each context has its own means. LinUCB and LinPriv are run
    on the log's context vectors in their order, with the log's least-squares coefficients; an arm's sample
    mean then averages over the contexts at which it was pulled, and the table contains least-squares
    predictions at its average context.

    This is a parametric bootstrap: the bias is exact at the fitted means, up to Monte Carlo error, and an
    estimate of the bias at the true ones. The fitted means come from `default_estimator`, which is valid
    under adaptive assignment if the log permits it, so the bias is not computed from biased means.
    Subtracting the estimated bias removes the bias to first order, but the added variance is not reported:
    use a valid estimator for inference.

    An arm without any reward has no sample mean. The bias is conditional on at least one reward, and the
    share of such runs is reported. The theorem requires an arm that is pulled in every run; otherwise its
    bound is omitted.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.EpsilonGreedy(exploration=0.1).run(ai.environments.BernoulliArms([0.4, 0.6]), 200, 3)
    >>> found = ai.audit.simulate_bias(log, replications=2000, rng=0)
    >>> bool(found.frame["bias"].iloc[0] < -0.01), found.law
    (True, 'bernoulli')
    """
    problems: list[str] = []
    if not isinstance(log, AdaptiveLog):
        raise ParameterError("simulate_bias", [f"log must be an AdaptiveLog, got {type(log).__name__}"])
    given = design_of(log if design is None else design, problems)
    problems += [*late_problems(log), *Count(2)("replications", replications)]
    if control is not None and control not in log.arms:
        problems.append(absent("arm", control, log.arms, "the log has"))
    if problems or given is None:
        raise ParameterError("simulate_bias", problems)
    inner = given.design if isinstance(given, Mixture) else given
    _refuse_vectors(inner)
    base = 0 if control is None else log.arms.index(control)
    if inner.needs.vectors == "needed":
        return _linear_bias(log, given, int(replications), rng, n_jobs, base, means)
    world = fitted_world(log, isinstance(inner, (ConSE, DPConSE)), means)
    refuse("simulate_bias", plan_problems(log, given, world.env))
    sims = given.replicate(world.env, log.n_rounds, replications, rng, n_jobs)
    simulated = sims.means if sims.contextual else sims.means[:, None]
    promised = given._placed(world.env).reward_guarantee(log.n_rounds, log.n_arms)
    rows = [
        row
        for cell in range(world.cells.count)
        for row in _cell_rows(log, world, cell, simulated[:, cell], promised, base)
    ]
    frame = pd.DataFrame(rows)
    applies = promised is not None and bool(np.isfinite(world.env.reward_range).all())
    return SimulatedBias(
        frame=frame,
        design=repr(given),
        law=world.law,
        source=world.source,
        guarantee=promised if applies else None,
        horizon=log.n_rounds,
        replications=int(replications),
        notes=(*_given_notes(log, given), *world.notes, *_notes(frame, promised, applies)),
    )


def conditional_bias(means: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bias of estimates that are undefined in some runs.

    Shapes: means (runs, k), truth (k,); returns bias, std_error, share (k,).
    """
    known = ~np.isnan(means)
    count = known.sum(axis=0)
    errors = np.where(known, means - truth, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = errors.sum(axis=0) / np.where(count > 0, count, np.nan)
        squares = np.where(known, (errors - bias) ** 2, 0.0).sum(axis=0)
        variance = squares / np.where(count > 1, count - 1.0, np.nan)
        return bias, np.sqrt(variance / count), count / means.shape[0]


def _refuse_vectors(design: Design) -> None:
    if design.needs.vectors == "needed" and not isinstance(design, (LinUCB, LinPriv)):
        raise InvalidForLog(
            "simulate_bias",
            f"{type(design).__name__} chooses by context vectors and does not assume linear means: no model "
            "can be fitted to a log's contexts and rewards",
            ["audit.coverage in an assumed environment"],
        )


def _linear_bias(
    log: AdaptiveLog,
    design: Design,
    replications: int,
    rng: RandomSource | None,
    n_jobs: int,
    base: int,
    theta: Any,
) -> SimulatedBias:
    """Bias of least-squares predictions at the average contexts, for linear bandits."""
    world = linear_world(log, theta)
    refuse("simulate_bias", plan_problems(log, design, world.env))
    design._check(world.env, log.n_rounds, replications, rng, 0, n_jobs)
    simulated = simulated_predictions(design, world, log.n_rounds, replications, rng, n_jobs)
    truth = np.einsum("ad,ad->a", world.average, world.env.theta)
    naive = np.einsum("ad,ad->a", world.average, world.naive)
    none = np.full(log.n_arms, np.nan)
    numbers = (simulated, truth, naive, truth, none, np.full(log.n_arms, np.inf))
    rows = _rows([str(arm) for arm in log.arms], "arm-mean", np.eye(log.n_arms), *numbers)
    others = np.array([code for code in range(log.n_arms) if code != base], dtype=np.int64)
    if others.size:
        terms = [f"{log.arms[code]} - {log.arms[base]}" for code in others]
        rows += _rows(terms, "contrast", _differences(others, base, log.n_arms), *numbers)
    notes = [
        "Bias of least-squares predictions at each arm's average context over all rounds, not of sample "
        "means, which average over the contexts at which an arm was pulled. Contexts are the log's, in "
        "their order.",
        "Bound: none; linear_bias_bound bounds predictions at single contexts, given the actions.",
    ]
    if min(row["pulled"] for row in rows) < 1.0:
        notes.append(
            "Bias is conditional on runs that determine the coefficients, whose share is in the "
            "column pulled."
        )
    return SimulatedBias(
        frame=pd.DataFrame(rows),
        design=repr(design),
        law=world.law,
        source=world.source,
        guarantee=None,
        horizon=log.n_rounds,
        replications=replications,
        notes=(*_given_notes(log, design), *world.notes, *notes),
    )


def _cell_rows(
    log: AdaptiveLog,
    world: FittedWorld,
    cell: int,
    simulated: FloatArray,
    promised: PrivacyGuarantee | None,
    base: int,
) -> list[dict[str, Any]]:
    """Rows for one context: the arms, then the differences from the control."""
    truth, naive, estimate = world.env.means[cell], world.naive[cell], world.estimate[cell]
    bound, trivial = _bounds(world, truth, promised, log.n_rounds)
    bound = np.where((~np.isnan(simulated)).all(axis=0), bound, np.nan)
    prefix = f"{world.cells.name}={world.cells.labels[cell]}: " if world.cells.labels else ""
    arms = [f"{prefix}{arm}" for arm in log.arms]
    identity = np.eye(log.n_arms)
    rows = _rows(arms, "arm-mean", identity, simulated, truth, naive, estimate, bound, trivial)
    others = np.array([code for code in range(log.n_arms) if code != base], dtype=np.int64)
    if others.size:
        terms = [f"{prefix}{log.arms[code]} - {log.arms[base]}" for code in others]
        signs = _differences(others, base, log.n_arms)
        rows += _rows(terms, "contrast", signs, simulated, truth, naive, estimate, bound, trivial)
    return rows


def _differences(others: IntArray, base: int, n_arms: int) -> FloatArray:
    signs = np.zeros((others.size, n_arms))
    signs[np.arange(others.size), others] = 1.0
    signs[:, base] = -1.0
    return signs


def _rows(
    terms: list[str],
    kind: str,
    signs: FloatArray,
    simulated: FloatArray,
    truth: FloatArray,
    naive: FloatArray,
    estimate: FloatArray,
    bound: FloatArray,
    trivial: FloatArray,
) -> list[dict[str, Any]]:
    """One row for each combination of arms; its bound is the sum of the bounds of its arms."""
    rows = []
    for term, sign in zip(terms, signs, strict=True):
        used = np.flatnonzero(sign)
        weight = sign[used]
        bias, error, share = conditional_bias(
            simulated[:, used] @ weight[:, None], (truth[used] @ weight)[None]
        )
        plain = float(naive[used] @ weight)
        rows.append(
            {
                "term": term,
                "kind": kind,
                "mean": float(truth[used] @ weight),
                "bias": float(bias[0]),
                "bias_se": float(error[0]),
                "bound": float(bound[used].sum()),
                "trivial_bound": float(trivial[used].sum()),
                "pulled": float(share[0]),
                "naive": plain,
                "estimate": float(estimate[used] @ weight),
                "corrected": plain - float(bias[0]),
            }
        )
    return rows


def _bounds(
    world: FittedWorld, truth: FloatArray, promised: PrivacyGuarantee | None, horizon: int
) -> tuple[FloatArray, FloatArray]:
    """The theorem's bound and the largest possible bias for each arm, in the units of the rewards."""
    low, high = world.env.reward_range
    size = high - low
    if not np.isfinite(size):
        return np.full(truth.size, np.nan), np.full(truth.size, np.inf)
    scaled = np.clip((truth - low) / size, 0.0, 1.0)
    trivial = size * trivial_bias_bound(scaled)
    if promised is None or promised.reward_level() is None:
        return np.full(truth.size, np.nan), trivial
    return size * bias_bound(promised, horizon, scaled), trivial


def _given_notes(log: AdaptiveLog, design: Design) -> list[str]:
    """Evidence that another design collected the log: its record or, failing that, its propensities."""
    problems = contradictions(log, design)
    if not problems:
        return []
    told = "; ".join(problems)
    return [f"{told[0].upper()}{told[1:]}. Simulated under {design!r:.80}, as given."]


def _notes(frame: pd.DataFrame, promised: PrivacyGuarantee | None, applies: bool) -> list[str]:
    notes = [
        "Bias: mean error of the sample means at these means, with its Monte Carlo standard error. "
        "Corrected: naive minus bias, accurate to first order only; use ArmMeans for valid intervals."
    ]
    if promised is None:
        notes.append("Bound: none, because the design has no privacy guarantee for the rewards.")
    elif not applies:
        notes.append("Bound: none, because the theorem requires rewards in a bounded range.")
    else:
        notes.append(f"Bound: on the absolute bias of any design with this guarantee ({promised}).")
        if (frame["bound"] >= frame["trivial_bound"]).any():
            notes.append("A bound at least as large as the largest possible bias is uninformative.")
    never = frame["pulled"] < 1.0
    if never.any():
        text = (
            "Bias is conditional on a reward from every arm involved; the column pulled gives the share "
            "of such runs"
        )
        notes.append(f"{text}; the theorem applies to all runs." if applies else f"{text}.")
    return notes
