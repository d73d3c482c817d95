"""Worst-case neighbours of locally private designs: one participant's report, which their server releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments.auxiliary import AuxiliaryLog
from adaptinf.simulation.environments.classification import Classification
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.designs.local.linear_kernel import LDPLinearTables

NEARLY_PUBLIC = 1e18
"""Epsilon of auxiliary participants whose noise is below the rounding of their reports."""

MOST_ARRIVALS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class BinRatio:
    """Log-likelihood ratio of one participant's report to the locally private bandit.

    Shapes: first, second (bins, 2).
    """

    first: FloatArray
    second: FloatArray
    groups: tuple[int, ...]
    codes: tuple[int, int]
    scale: float

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        columns = transcripts.releases
        total = np.zeros(columns.shape[0])
        for place, group in enumerate(self.groups):
            for part, code in enumerate(self.codes):
                values = columns[..., 3][(columns[..., 1] == code) & (columns[..., 2] == group)]
                total += np.abs(values - self.first[place, part]) - np.abs(values - self.second[place, part])
        return total / self.scale


@dataclass(frozen=True, slots=True, eq=False)
class GradientRatio:
    """Log-likelihood ratio of one participant's report to the locally private linear bandit.

    The released averages are one-to-one in the report: an arm's are `bases` - `slopes` times its own.

    Shapes: first, second (arms, parameters), bases (arms, parameters), slopes (arms,).
    """

    first: FloatArray
    second: FloatArray
    bases: FloatArray
    slopes: FloatArray
    reporting: tuple[int, ...]
    intercept: bool
    scale: float

    def reports(self, transcripts: Transcripts) -> FloatArray:
        """The participant's report on every arm, shape (runs, arms, parameters)."""
        n_arms, parameters = self.bases.shape
        averages = transcripts.releases[..., 3].reshape(-1, n_arms, parameters).copy()
        if self.intercept:
            averages[..., :-1] *= 0.5
            averages[..., -1] += averages[..., :-1].sum(axis=-1)
        return np.asarray((self.bases - averages) / self.slopes[:, None])

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        reports = self.reports(transcripts)
        total = np.zeros(reports.shape[0])
        for arm in self.reporting:
            distances = [
                np.abs(reports[:, arm] - side[arm]).max(axis=1) for side in (self.first, self.second)
            ]
            total += distances[0] - distances[1]
        return total / self.scale


def one_participant(context: tuple[float, ...], paying: int) -> Classification:
    """A trial with a single participant, of two arms of which one pays 1."""
    import pandas as pd

    names = _names(len(context))
    frame = pd.DataFrame({**dict(zip(names, ([x] for x in context), strict=True)), "arm": [paying]})
    return Classification(frame, "arm", names, order="given", arms=[0, 1])


def public_log(contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> AuxiliaryLog:
    """Auxiliary participants who bring a design into a known state: they add no noise to speak of."""
    columns = dict(zip(_names(contexts.shape[1]), contexts.T, strict=True))
    arrays = LogArrays(
        action=arms,
        reward=rewards,
        propensity=None,
        propensities=None,
        batch=None,
        phase=None,
        randomised=None,
        context=columns,
    )
    log = AdaptiveLog.from_arrays(
        arrays, arms=(0, 1), reward_range=(0.0, 1.0), propensity_status="absent", adaptive_rounds=0
    )
    return AuxiliaryLog(log, epsilon=NEARLY_PUBLIC)


def _names(dimension: int) -> list[str]:
    return [f"x{k}" for k in range(1, dimension + 1)]


def arrivals_to_drop(width: float, published: bool) -> int:
    """Noiseless arrivals an arm after which an arm that never pays is dropped for one that always does."""
    if not published:
        return math.floor(width) + 2
    arrivals = 1
    while arrivals <= 32.0 * math.log2(2.0 * arrivals):
        arrivals *= 2
    return arrivals


def arrivals_to_halve(width: float, refinement: float, published: bool) -> float:
    """Noiseless arrivals an arm after which the unit interval is halved, too; inf where it never is."""
    if published:
        return arrivals_to_drop(width, published)
    if refinement == 0.0:
        return math.inf
    return max(arrivals_to_drop(width, published), math.floor(width / (16.0 * refinement**2)) + 2)


def lessons(intercept: bool) -> tuple[AuxiliaryLog, tuple[float, ...], tuple[float, ...]]:
    """What teaches a linear design to predict 1 for arm 0 at one context and 0 for both arms at another."""
    if intercept:
        contexts, arms, rewards = [[1.0], [0.25], [0.0]], [0, 0, 1], [1.0, 0.0, 0.0]
        high: tuple[float, ...] = (1.0,)
        low: tuple[float, ...] = (0.0,)
    else:
        contexts = [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
        arms, rewards = [0, 0, 0, 1], [1.0, 0.0, 0.0, 0.0]
        high, low = (1.0, 1.0), (0.0, 1.0)
    return public_log(np.array(contexts), np.array(arms), np.array(rewards)), high, low


def gradient_ratio(
    tables: LDPLinearTables,
    constants: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    records: tuple[tuple[tuple[float, ...], int], tuple[tuple[float, ...], int]],
) -> GradientRatio:
    """The ratio for a first participant with one of two records: a context, and which arm would pay."""
    iterates, averages, rates, shares = constants
    warm = tables.warm_up > 0
    gradients = []
    for context, paying in records:
        regressors = np.array([*(2.0 * x - 1.0 for x in context), 1.0] if tables.intercept else context)
        arm = 0 if warm else int(np.argmax(averages @ regressors))
        predictor = float(iterates[arm] @ regressors)
        mean = 1.0 / (1.0 + math.exp(-predictor)) if tables.logistic else min(max(predictor, 0.0), 1.0)
        gradient = np.zeros_like(iterates)
        gradient[arm] = (mean - float(paying == arm)) * regressors
        gradients.append(gradient)
    return GradientRatio(
        first=gradients[0],
        second=gradients[1],
        bases=averages + shares[:, None] * (iterates - averages),
        slopes=shares * rates,
        reporting=(0,) if warm else tuple(range(tables.n_arms)),
        intercept=tables.intercept,
        scale=float(tables.scales[-1]),
    )
