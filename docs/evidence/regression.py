"""Type I errors and power of regression tests under adaptive designs: makes docs/evidence/regression.md.

Pieces of 1,024 runs are kept in a folder, so a run that was stopped goes on. Everything is computed from the
arrays of the logs by the functions that `AdaptiveOLS` calls. With several threads BLAS spends most of its
time waiting, as the matrices are small: set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from adaptinf.audit.rerun.simulated_counts import decorrelation_ridge
from adaptinf.designs import UCB, LinPriv, LinUCB, PrivateUCB, Thompson, Uniform
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.distributions.student_sums import MeanStudent
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.regression.anytime import anytime_coefficients
from adaptinf.inference.regression.batched_regression import (
    batched_coefficients,
    drifting_wald,
)
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.ellipsoid import EllipsoidReference, confidence_ellipsoid
from adaptinf.inference.regression.least_squares import batch_regressions, least_squares
from adaptinf.inference.regression.weighted.own_weights import stabilising_weights, weighted_least_squares
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, Environment, LinearArms, NormalArms

SEED, ALPHA, EPSILON, PIECE = 2026, 0.05, 0.1, 1_024
LOG_ALPHA = math.log(ALPHA)
FULL, QUICK = 20_480, 256
NULL, EFFECT = "no effect", "effect"
HALF = np.array([0.5, 0.5])
CLAIMS = {
    "naive t": "not valid",
    "naive t, fixed design": "exact",
    "W-decorrelated": "asymptotic",
    "W-decorrelated, simulated ridge": "asymptotic",
    "batched": "exact",
    "batched, normal law": "asymptotic",
    "batched, may drift": "exact",
    "weighted": "asymptotic",
    "ellipsoid": "anytime",
    "anytime t": "anytime",
    "max-information": "exact",
}
"""What each test promises of its size; exact ones for normal noise."""
PAGE = """\
# Regression tests under adaptive designs

Command: `OPENBLAS_NUM_THREADS=1 python docs/evidence/regression.py{flags}`. Seed: {seed}. Date: {today}.
{runs:,} runs a cell; processor time {minutes:.0f} minutes.

Type I error: the rate at which the true value of a coefficient is rejected at .05. Power: the rate at which 0
is rejected if there is an effect. Length: the length of the interval without an effect, averaged over the
runs with an interval. The test concerns the difference between two arms in a regression on arm indicators or,
under LinUCB and LinPriv, the second coefficient in a regression of arm 0's rewards on its own context
vectors. A run that a method refuses, or whose columns are linearly dependent, is counted as not rejecting;
the share of such runs is shown next to the size (in the worse environment).

`p` is the one-sided binomial p-value for a size above .05, in the worse of the two environments. Tests that
guarantee .05 and have p < 1e-4 are marked.

{table}

## Settings

{settings}

Normal rewards have standard deviation 1 unless stated otherwise, Bernoulli rewards are assumed to be
1/2-sub-Gaussian. The simulated ridge penalty is the 5% quantile of the smallest eigenvalue over 500
experiments with the effect, divided by log T; if that is 0, there is no such row. The batched tests refuse a
run in which a batch lacks an arm; a refusal never rejects, so their size stays at most .05. Ellipsoid and
anytime t are valid at all rounds simultaneously, and are conservative at the last one; max-information
corrects the t-test at the design's epsilon = {epsilon}. {verdict}

The normal distribution of the batched statistic is an approximation for large batches; `AdaptiveOLS` uses the
distribution of the mean of Student's t by default. Weighted least squares is normal if propensities converge
or are bounded away from 0. Under Thompson sampling, propensities fall to .004, so the intervals are too
short, and so are those from inverse weighting. `AdaptiveOLS(...).fit()` uses weights by default only if no
propensity is below .05, and if weights are requested, a note mentions smaller propensities. Methods that are
valid for every design have longer intervals: W-decorrelation has little power under Thompson sampling, and
the ellipsoid has even less.
"""


@dataclass(frozen=True)
class Cell:
    """A design over a horizon, in an environment without and in one with an effect.

    Attributes
    ----------
    design : Design
        What gathers the data.
    horizon : int
        Rounds.
    environments : dict of str to Environment
        By `NULL` and `EFFECT`.
    truth : dict of str to float
        True value of the tested combination.
    noise_scale, bound : float
        For the ellipsoid.
    note : str
        What the page says of it.
    linear : bool
        Whether arm 0's rewards are regressed on its context vectors.
    """

    design: Design
    horizon: int
    environments: dict[str, Environment]
    truth: dict[str, float]
    noise_scale: float
    bound: float
    note: str
    linear: bool = False

    @property
    def row(self) -> np.ndarray:
        """The tested combination."""
        return np.array([[0.0, 1.0]]) if self.linear else np.array([[-1.0, 1.0]])

    def data(self, log: AdaptiveLog) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Matrix, rewards and rounds of the regression."""
        arrays = log.arrays
        if not self.linear:
            return np.eye(2)[arrays.action], arrays.reward, np.arange(len(arrays.reward))
        own = np.flatnonzero(arrays.action == 0)
        x = np.column_stack([arrays.context["x1_0"][own], arrays.context["x2_0"][own]])
        return x, arrays.reward[own], own


def arms(kind: Callable[[list[float]], Environment], low: float, effect: float) -> dict[str, Environment]:
    return {NULL: kind([low, low]), EFFECT: kind([low, low + effect])}


def linear(rewards: str, noise: float) -> dict[str, Environment]:
    """Two arms whose contexts alone distinguish them: coefficient 2 of arm 0 is 0, or .3."""
    return {
        name: LinearArms([[0.6, value], [0.3, 0.3]], noise, contexts="orthant", rewards=rewards)
        for name, value in ((NULL, 0.0), (EFFECT, 0.3))
    }


def cells() -> dict[str, Cell]:
    """The grid; nothing in it was changed after figures were seen."""
    normal, binary = arms(NormalArms, 0.0, 0.3), arms(BernoulliArms, 0.5, 0.1)
    half, tenth, third = {NULL: 0.0, EFFECT: 0.3}, {NULL: 0.0, EFFECT: 0.1}, {NULL: 0.0, EFFECT: 0.3}
    thompson = {"prior": "normal", "noise_scale": 1.0}
    bound = math.sqrt(2.0)
    return {
        "Uniform": Cell(Uniform(), 1_000, normal, half, 1.0, 2.0, "T = 1,000, normal rewards"),
        "batched Thompson": Cell(
            Thompson(**thompson, floor=0.1, batch_size=25),
            625,
            normal,
            half,
            1.0,
            2.0,
            "25 batches of 25, propensities in [.1, .9], normal rewards",
        ),
        "batched Thompson, floor .25": Cell(
            Thompson(**thompson, floor=0.25, batch_size=25),
            625,
            normal,
            half,
            1.0,
            2.0,
            "the same with propensities in [.25, .75]",
        ),
        "Thompson": Cell(
            Thompson(**thompson, floor=(0.5, 0.7), initial_pulls=5),
            1_000,
            normal,
            half,
            1.0,
            2.0,
            "T = 1,000, propensity floor .5 t^-.7, five uniform pulls per arm, normal rewards",
        ),
        "UCB": Cell(UCB(), 1_000, binary, tenth, 0.5, bound, "T = 1,000, Bernoulli rewards"),
        "PrivateUCB": Cell(
            PrivateUCB(epsilon=EPSILON), 1_000, binary, tenth, 0.5, bound, "T = 1,000, Bernoulli rewards"
        ),
        "LinUCB": Cell(
            LinUCB(),
            1_000,
            linear("normal", 0.5),
            third,
            0.5,
            1.0,
            "T = 1,000, normal rewards of sd 1/2",
            True,
        ),
        "LinPriv": Cell(
            LinPriv(epsilon=EPSILON),
            1_000,
            linear("bernoulli", 0.5),
            third,
            0.5,
            1.0,
            "T = 1,000, Bernoulli rewards",
            True,
        ),
    }


@dataclass(frozen=True)
class Outcome:
    """What a test says of a run: whether it rejects a value, and the length of its interval."""

    rejects: Callable[[float], bool]
    length: float


def by_interval(low: float, high: float) -> Outcome | None:
    """A test that rejects what its interval excludes; None if there is no interval."""
    if math.isnan(low + high) and not math.isinf(high):
        return None
    return Outcome(lambda value: not low <= value <= high, high - low)


def by_reference(reference: Reference, log_alpha: float = LOG_ALPHA) -> Outcome | None:
    low, high = reference.interval(log_alpha)[0]
    return by_interval(float(low), float(high))


def normal(estimate: np.ndarray, covariance: np.ndarray, row: np.ndarray) -> Outcome | None:
    errors = np.sqrt(np.diag(row @ covariance @ row.T))
    return by_reference(NormalReference(row @ estimate, errors))


def by_student(estimate: np.ndarray, covariance: np.ndarray, row: np.ndarray, df: float) -> Outcome | None:
    errors = np.sqrt(np.diag(row @ covariance @ row.T))
    return by_reference(StudentReference(row @ estimate, errors, np.array([df])))


@functools.cache
def batched_quantile(df: tuple[float, ...], law: str) -> float:
    """Two-sided quantile of the mean of the batches' statistics, the same in all runs."""
    if law == "normal":
        return normal_quantile(LOG_ALPHA - math.log(2.0))
    return MeanStudent(np.array(df)).quantile(0.5 * ALPHA)


def batched_outcomes(
    log: AdaptiveLog, x: np.ndarray, y: np.ndarray, row: np.ndarray
) -> Iterator[tuple[str, Outcome | None]]:
    assert log.arrays.batch is not None
    batches = batch_regressions(log.arrays.batch, x, y)
    if not batches.usable.all():
        yield from ((name, None) for name in ("batched", "batched, normal law", "batched, may drift"))
        return
    (estimate,), (error,), _ = batched_coefficients(batches, row)
    for name, law in (("batched", "t"), ("batched, normal law", "normal")):
        half = batched_quantile(tuple(batches.df.tolist()), law) * error
        yield name, by_interval(estimate - half, estimate + half)

    def rejects(value: float) -> bool:
        return drifting_wald(batches, row, np.array([value]))[2] <= LOG_ALPHA

    yield "batched, may drift", Outcome(rejects, math.nan)


def outcomes(
    cell: Cell, log: AdaptiveLog, ridge: float | None, level: float | None
) -> Iterator[tuple[str, Outcome | None]]:
    """Every test that the design supports; None if it refuses the run."""
    x, y = cell.data(log)[:2]
    row, fixed = cell.row, isinstance(cell.design, Uniform)
    singular = len(y) <= 2 or np.linalg.svd(x.T @ x, compute_uv=False)[-1] < 1e-9
    if singular:
        return
    fit = least_squares(x, y, ("0", "1"))
    inverse = fit.root @ fit.root.T
    errors = np.sqrt(np.diag(row @ inverse @ row.T) * fit.rss / fit.df_resid)
    student = StudentReference(row @ fit.coefficient, errors, np.array([float(fit.df_resid)]))
    yield "naive t, fixed design" if fixed else "naive t", by_reference(student)
    if level is not None:
        yield "max-information", by_reference(student, level)
    found = decorrelated(x, y)
    yield "W-decorrelated", normal(found.estimate, found.covariance, row)
    if ridge is not None:
        found = decorrelated(x, y, ridge)
        yield "W-decorrelated, simulated ridge", normal(found.estimate, found.covariance, row)
    ellipsoid = confidence_ellipsoid(x, y, cell.noise_scale, cell.bound)
    yield "ellipsoid", by_reference(EllipsoidReference(ellipsoid, row))
    if fixed:
        law = (fit.coefficient, inverse, fit.rss, fit.df_resid)
        yield "anytime t", by_reference(anytime_coefficients(*law, row))
    if isinstance(cell.design, (Thompson, Uniform)):
        weight = stabilising_weights(log.arrays.action, log.arrays.propensity, HALF)
        weighted = weighted_least_squares(x, y, weight, small_samples=True)
        df = float(len(y) - x.shape[1])
        yield "weighted", by_student(weighted.estimate, weighted.covariance, row, df)
    if log.arrays.batch is not None:
        yield from batched_outcomes(log, x, y, row)


def piece(name: str, where: str, start: int, stop: int, ridge: float | None) -> dict[str, list[float]]:
    """By test: runs with a result, rejections of the truth and of 0, and the sum of interval lengths."""
    cell = cells()[name]
    env = cell.environments[where]
    sums: dict[str, list[float]] = {}
    began, level, runs = time.process_time(), None, 0
    for log in cell.design.logs(env, cell.horizon, stop, SEED, start=start):
        if runs == 0 and isinstance(cell.design, (PrivateUCB, LinPriv)):
            correction = correction_for(log)
            assert correction is not None
            level = float(correction.level(LOG_ALPHA))
        runs += 1
        for test, outcome in outcomes(cell, log, ridge, level):
            row = sums.setdefault(test, [0.0] * 4)
            if outcome is not None:
                row[0] += 1.0
                row[1] += outcome.rejects(cell.truth[where])
                row[2] += outcome.rejects(0.0)
                row[3] += outcome.length
    return {**sums, "(runs)": [float(runs), time.process_time() - began]}


def kept(
    folder: Path, runs: int, name: str, where: str, start: int, ridge: float | None
) -> dict[str, list[float]]:
    """A piece, from the folder if it is there."""
    plain = f"{name}-{where}-{start}-{min(start + PIECE, runs)}".replace(" ", "_").replace(",", "")
    path = folder / f"{plain}.json"
    if not path.exists():
        found = piece(name, where, start, min(start + PIECE, runs), ridge)
        path.with_suffix(".part").write_text(json.dumps(found))
        path.with_suffix(".part").rename(path)
    return dict(json.loads(path.read_text()))


def simulated_ridge(name: str) -> float | None:
    """The ridge by simulation, for the environment with the effect; None if it would be 0."""
    cell = cells()[name]

    def matrix(log: AdaptiveLog) -> np.ndarray:
        """Rounds of the other arm count as zeros."""
        own, _, rounds = cell.data(log)
        x = np.zeros((cell.horizon, 2))
        x[rounds] = own
        return x

    try:
        found = decorrelation_ridge(
            cell.design, cell.environments[EFFECT], cell.horizon, 500, matrix=matrix, rng=SEED + 1
        )
    except ParameterError:
        return None
    return found.ridge


def collect(
    runs: int, folder: Path, names: list[str], n_jobs: int
) -> tuple[dict[tuple[str, str], dict[str, np.ndarray]], float]:
    """Sums by cell and environment, and processor time in minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    found, seconds = {}, 0.0
    for name in names:
        ridge = simulated_ridge(name)
        for where in (NULL, EFFECT):
            starts = range(0, runs, PIECE)
            pieces = Parallel(n_jobs)(
                delayed(kept)(folder, runs, name, where, start, ridge) for start in starts
            )
            total: dict[str, np.ndarray] = {}
            for one in pieces:
                for test, row in one.items():
                    total[test] = total.get(test, np.zeros(len(row))) + np.array(row)
            spent = total.pop("(runs)")
            seconds += float(spent[1])
            total["(runs)"] = spent
            found[name, where] = total
            print(f"{name}, {where}: {spent[1]:.0f} s, {1e3 * spent[1] / spent[0]:.2f} ms a run", flush=True)
    return found, seconds / 60.0


def rows(found: dict[tuple[str, str], dict[str, np.ndarray]], names: list[str]) -> Iterator[dict[str, str]]:
    """One row per design and test."""
    for name in names:
        null, effect = found[name, NULL], found[name, EFFECT]
        runs = null["(runs)"][0]
        for test, claim in CLAIMS.items():
            if test not in null:
                continue
            errors = (int(null[test][1]), int(effect[test][1]))
            worst = float(stats.binom.sf(max(errors) - 1, int(runs), ALPHA))
            mark = " (!)" if claim != "not valid" and worst < 1e-4 else ""
            answered = (null[test][0], effect[test][0])
            length = null[test][3] / max(answered[0], 1.0)
            yield {
                "design": name,
                "test": test,
                "claim": claim,
                "type I, no effect": f"{errors[0] / runs:.4f}",
                "type I, effect": f"{errors[1] / runs:.4f}",
                "p": f"{worst:.1g}{mark}",
                "power": f"{effect[test][2] / runs:.3f}",
                "refused": f"{1.0 - min(answered) / runs:.1%}",
                "length": "" if math.isnan(length) else f"{length:.3f}",
            }


def table(lines: list[dict[str, str]]) -> str:
    head = list(lines[0])
    text = [" | ".join(head), " | ".join(["---"] * len(head))]
    text += [" | ".join(line.values()) for line in lines]
    return "\n".join(f"| {line} |" for line in text)


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--cells", nargs="*", help="only these designs; one in quick runs")
    parser.add_argument("--folder", type=Path, help="for parts, build/regression by default")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    names = options.cells or list(cells())[: 1 if options.quick else None]
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        found, minutes = collect(runs, folder, names, options.jobs)
    lines = list(rows(found, names))
    marked = [f"{line['test']} under {line['design']}" for line in lines if "(!)" in line["p"]]
    verdict = (
        "\nThe following are marked: " + "; ".join(marked) + "."
        if marked
        else "\nNo test that promises .05 exceeds it at 1e-4."
    )
    text = PAGE.format(
        flags=" --quick" * options.quick,
        seed=SEED,
        today=evidence.stamp(),
        runs=runs,
        minutes=minutes,
        table=table(lines),
        settings="\n".join(f"- {name}: {cells()[name].note}." for name in names),
        epsilon=EPSILON,
        verdict=verdict,
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, "Uniform | naive t, fixed design", "type I, effect", (QUICK, FULL))


if __name__ == "__main__":
    main()
