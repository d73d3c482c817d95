"""Audits of locally private designs: a participant's report, its noise, and the server's use of sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import (
    FAIR,
    AuditTrial,
    Neighbours,
    NodeNoise,
    Replayed,
    audit_trials,
    fair_rewards,
    neighbouring_trials,
    outside_rewards,
    record_unit,
)
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.bins_kernel import check_sums
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.designs.local.local_linear_kernel import LDPLinearTables, report_constants
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.parameters import OneOf, check, refuse
from adaptinf.privacy.noise import Fixed
from adaptinf.simulation.environments import LinearArms, Tableau
from adaptinf.simulation.environments.classification import Classification
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_ARMS, _PARTICIPANTS = 2, 64
# With this width, few noisy reports suffice to drop arms and to halve bins, in many runs but not in all.
_NARROW = 0.01
_NAME, _GROUP, _VALUE = 1, 2, 3
# Auxiliary participants have this epsilon, so their noise is smaller than the rounding error of their
# reports.
NEARLY_PUBLIC = 1e18
MOST_ARRIVALS = 100_000
# Steps of this length never leave a ball of this radius, so projection onto the ball does not hide a report.
_REACH, _ROOM = 300.0, 1e6
# Contexts of the two participants have this many coordinates. The signs of their noise are compared at these
# lags.
_COORDINATES, _APART = 8, (1, 2, 3)


def laplace_sum_uniforms(noise: FloatArray, terms: int) -> FloatArray:
    """Distribution function, evaluated at `noise`, of the sum of `terms` Laplace variables of scale 1."""
    # The tail at x > 0 is e^-x times the sum over k < m of x^k / k! times the probability that a negative
    # binomial number of failures before m successes, with success probability 1/2, is below m - k.
    size = np.abs(noise)
    powers = np.arange(terms)
    weights = special.betainc(terms, terms - powers, 0.5)
    log_terms = special.xlogy(powers, size[..., None]) - special.gammaln(powers + 1.0)
    tail = np.exp(special.logsumexp(log_terms, axis=-1, b=weights) - size)
    return np.asarray(np.where(noise < 0.0, tail, 1.0 - tail))


def first_bin_sums(seen: Transcripts) -> FloatArray:
    """Noisy counts and sums of the first bin, shape (runs, arms, 2)."""
    found = np.full((seen.actions.shape[0], _ARMS, 2), np.nan)
    for arm in range(_ARMS):
        for part in range(2):
            code = 2 + 3 * arm + 1 + part
            run, row = np.nonzero((seen.releases[..., _NAME] == code) & (seen.releases[..., _GROUP] == 0))
            found[run, arm, part] = seen.releases[run, row, _VALUE]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ReportNoise:
    """Noise of the noisy counts and sums of a bin on which all participants reported."""

    scale: float
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """A count and a sum per arm."""
        clipped = np.clip(seen.rewards, 0.0, 1.0)
        pulled = np.stack([seen.actions == arm for arm in range(_ARMS)], axis=1)
        true = np.stack([pulled.sum(axis=2), (pulled * clipped[:, None]).sum(axis=2)], axis=2)
        noise = (first_bin_sums(seen) - true).reshape(len(true), -1) / self.scale
        participants = seen.actions.shape[1]
        return (
            NodeNoise(
                laplace_sum_uniforms(noise, participants),
                [
                    f"the {what} of arm {arm}, a sum of {participants} report{'s' * (participants > 1)},"
                    for arm in range(_ARMS)
                    for what in ("noisy count", "noisy sum of rewards")
                ],
                np.zeros(2 * _ARMS, dtype=np.int64),
                ["all noisy counts and sums"],
                **fair_rewards(seen, self.fair),
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BinReplay:
    """Arms that the design's check of its releases drops, and whether this check halves the bin."""

    program: Program

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """The report after the single check, at the end."""
        outcomes = np.zeros(seen.outcomes.shape)
        state = np.zeros(self.program.state_shape)
        check_sums(self.program.tables, first_bin_sums(seen), Fixed(0.0), state, outcomes)
        return (Replayed("what is reported at the end", seen.outcomes, outcomes, "number"),)


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
        """Scores of the runs, an array of shape (runs,)."""
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

    Shapes: first, second (arms, parameters), bases (arms, parameters), slopes (arms,).
    """

    # The releases determine the report: the average of an arm is `bases` minus `slopes` times its own report.

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
        """Scores of the runs, an array of shape (runs,)."""
        reports = self.reports(transcripts)
        total = np.zeros(reports.shape[0])
        for arm in self.reporting:
            distances = [
                np.abs(reports[:, arm] - side[arm]).max(axis=1) for side in (self.first, self.second)
            ]
            total += distances[0] - distances[1]
        return total / self.scale


def one_participant(context: tuple[float, ...], paying: int) -> Classification:
    """A trial with a single participant and two arms, one of which has reward 1."""
    import pandas as pd

    names = _names(len(context))
    frame = pd.DataFrame({**dict(zip(names, ([x] for x in context), strict=True)), "arm": [paying]})
    return Classification(frame, "arm", names, order="given", arms=[0, 1])


def public_log(contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> AuxiliaryLog:
    """Auxiliary participants who bring a design into a known state and add negligible noise."""
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
        arrays, arms=(0, 1), reward_range=(0.0, 1.0), propensity_status="absent", feedback_rounds=0
    )
    return AuxiliaryLog(log, epsilon=NEARLY_PUBLIC)


def _names(dimension: int) -> list[str]:
    return [f"x{k}" for k in range(1, dimension + 1)]


def arrivals_to_drop(width: float, published: bool) -> int:
    """Noiseless arrivals per arm until an arm with reward 0 is dropped in favour of one with reward 1."""
    if not published:
        return math.floor(width) + 2
    arrivals = 1
    while arrivals <= 32.0 * math.log2(2.0 * arrivals):
        arrivals *= 2
    return arrivals


def arrivals_to_halve(width: float, refinement: float, published: bool) -> float:
    """Noiseless arrivals per arm until the unit interval is also halved; inf if this never happens."""
    if published:
        return arrivals_to_drop(width, published)
    if refinement == 0.0:
        return math.inf
    return max(arrivals_to_drop(width, published), math.floor(width / (16.0 * refinement**2)) + 2)


def lessons(intercept: bool) -> tuple[AuxiliaryLog, tuple[float, ...], tuple[float, ...]]:
    """Data from which a linear design predicts 1 for arm 0 at one context and 0 for both arms at another."""
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
    """The ratio for a first participant with one of two records: a context, and the arm with reward 1."""
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


@neighbouring_trials.register
def bin_neighbours(design: LDPBandit, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Neighbouring trials with a single participant, whose report is released directly."""
    # The participant follows public auxiliary data that leave one arm in each of two bins. In one pair the
    # bin differs and the reward is 1; in the other the reward differs. If the parameters prevent bins from
    # being halved within 100,000 participants, there is a single bin, and records differ in the reward only.
    # Parameters with which no arm is dropped within 100,000 participants are refused.
    unit = record_unit(unit)
    problems = OneOf("record", "reward")("unit", unit)
    published = design.calibration == "published"
    fewest = arrivals_to_drop(design.width, published)
    if fewest > MOST_ARRIVALS:
        problems.append("width must be smaller: with this width no arm is dropped in any short trial")
    refuse("neighbouring_trials", problems)
    arrivals = arrivals_to_halve(design.width, design.refinement, published)
    halved = design.max_bins > 1 and arrivals <= MOST_ARRIVALS
    size = int(arrivals) if halved else fewest
    arms = np.arange(2 * size) % 2
    public = public_log(np.full((2 * size, 1), 0.25), arms, (1 - arms).astype(np.float64))
    max_bins = 2 if halved else 1
    run = replace(design, auxiliary=(public,), check_every=2 * size, max_bins=max_bins)
    moved = halved and unit == "record"
    first, second = np.zeros((max_bins, 2)), np.zeros((max_bins, 2))
    first[0] = 1.0
    second[1 if moved else 0] = (1.0, 1.0) if moved else (1.0, 0.0)
    scale = LDPBandit.report_sensitivity / design.epsilon
    score = BinRatio(first, second, (1, 2) if halved else (0,), (3, 4), scale)
    pair = Neighbours(
        one_participant((0.25,), 0),
        one_participant((0.75 if moved else 0.25,), 0 if moved else 1),
        horizon=1,
        unit=unit,
        differs="a participant is in one bin or the other" if moved else "a reward is 1 or 0",
        score=score,
        score_name="the log-likelihood ratio of the participant's report",
        hidden=(0,) if unit == "record" else (),
        design=run,
    )
    return (pair,)


@audit_trials.register
def bin_trials(design: LDPBandit) -> tuple[AuditTrial, ...]:
    """Trials checked once, after 64 participants (with two kinds of rewards), after two, and after one."""
    scale = LDPBandit.report_sensitivity / float(design.epsilon)
    sizes: dict[str, Any] = {} if design.calibration == "published" else {"width": _NARROW}
    trials = []
    for participants, fair in ((_PARTICIPANTS, False), (_PARTICIPANTS, True), (2, False), (1, False)):
        run = replace(design, auxiliary=(), check_every=participants, max_bins=2, **sizes)
        contexts = np.linspace(0.05, 0.95, participants)[:, None]
        env: Any = Tableau(outside_rewards(participants, _ARMS), vectors=contexts)
        if fair:
            middle = np.full((participants, 1), FAIR)
            env = LinearArms([[1.0], [1.0]], contexts=middle, shared=True, rewards="bernoulli")
        program = run.program(env, participants, recording=False)
        paid = "rewards from fair coins" if fair else "rewards in and beyond [0, 1]"
        people = f"{participants} participant{'s' * (participants > 1)}"
        words = f"{people}, with one check of arms and bins, {paid}"
        noise = ReportNoise(scale, fair)
        trials.append(AuditTrial(words, env, participants, BinReplay(program), noise, run))
    return tuple(trials)


@dataclass(frozen=True, slots=True, eq=False)
class GradientNoise:
    """Noise of a participant's report on each arm: a Gamma size times a uniform point on a cube."""

    ratio: GradientRatio
    scale: float

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """The largest coordinate of each arm's independent noise, and the distribution of each coordinate."""
        noise = (self.ratio.reports(seen) - self.ratio.first) / self.scale
        parameters = noise.shape[2]
        arms = list(self.ratio.reporting)
        noise = noise[:, arms]
        largest = special.gammainc(parameters, np.abs(noise).max(axis=2))
        size = np.abs(noise)
        beyond = special.gammaincc(parameters + 1, size) - size / parameters * special.gammaincc(
            parameters, size
        )
        each = np.where(noise < 0.0, 0.5 * beyond, 1.0 - 0.5 * beyond)
        return (
            NodeNoise(
                largest,
                [f"the size of a report on arm {arm}" for arm in arms],
                np.zeros(len(arms), dtype=np.int64),
                ["the sizes of all reports"],
            ),
            NodeNoise(
                each.reshape(len(each), -1),
                [f"coordinate {k + 1} of a report on arm {arm}" for arm in arms for k in range(parameters)],
                np.zeros(len(arms) * parameters, dtype=np.int64),
                ["all coordinates of reports"],
                independent=False,
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TwoReports:
    """Signs of the noise of two participants whose gradients are 0 in every coordinate of their contexts."""

    # The release of a coefficient is a multiple of a weighted sum of both reports. Independent coordinates of
    # noise have signs like fair coins. If the second noise vector is the first with shifted coordinates, the
    # signs of the sum agree too often at that lag.

    dimension: int

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """How often signs one, two and three places apart agree; the distribution is exact."""
        runs = seen.releases.shape[0]
        positive = seen.releases[..., _VALUE].reshape(runs, _ARMS, -1)[..., : self.dimension] > 0.0
        drawn = np.random.default_rng(0).random((runs, len(_APART)))
        uniforms = np.zeros((runs, len(_APART)))
        for place, apart in enumerate(_APART):
            same = positive[..., apart:] == positive[..., :-apart]
            coins, number = _ARMS * same.shape[2], same.sum(axis=(1, 2))
            law = np.append(0.0, special.bdtr(np.arange(coins + 1.0), coins, 0.5))
            uniforms[:, place] = law[number] + drawn[:, place] * (law[number + 1] - law[number])
        names = [f"two reports, by the signs of coordinates {apart} apart," for apart in _APART]
        return (NodeNoise(uniforms, names, np.zeros(len(_APART), dtype=np.int64), [], independent=False),)


def two_report_trial(design: LDPLinear) -> AuditTrial:
    """Two participants whose gradients are 0 in every coefficient, so that only their noise is released."""
    run = replace(design, auxiliary=(), warm_up=0, radius=_ROOM, step=_REACH / _ROOM)
    middle = 0.5 if design.intercept else 0.0
    env = Tableau(outside_rewards(2, _ARMS), vectors=np.full((2, _COORDINATES), middle))
    words = "two participants whose noise alone is released"
    return AuditTrial(words, env, 2, noise=TwoReports(_COORDINATES), design=run)


def report_trial(pair: Neighbours, scale: float) -> AuditTrial:
    """The participant of one of the neighbouring trials, whose report can be inferred from the releases."""
    ratio: Any = pair.score
    stage = "warm-up" if len(ratio.reporting) == 1 else "greedy stage"
    noise = GradientNoise(ratio, scale)
    words = f"one participant of the {stage}"
    return AuditTrial(words, pair.first, pair.horizon, noise=noise, design=pair.design)


@neighbouring_trials.register
def gradient_neighbours(design: LDPLinear, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Neighbouring trials of a single participant, whose report can be inferred from the releases."""
    # One pair is in the greedy stage, the other in the warm-up. The participant follows public auxiliary data
    # that predict a reward of 1 in one context and of 0 in another. The participant either has the opposite
    # reward, or has the first context and a reward of 0 or 1. Steps and radius keep the parameters inside the
    # ball, where they determine the report.
    unit = record_unit(unit)
    check("neighbouring_trials", unit=(unit, OneOf("record", "reward")))
    return _one_report(design, unit, 0), _one_report(design, unit, 1)


def _one_report(design: LDPLinear, unit: str, warm_up: int) -> Neighbours:
    """A trial with one participant in each stage."""
    public, high, low = lessons(design.intercept)
    run = replace(design, auxiliary=(public,), warm_up=warm_up, radius=_ROOM, step=_REACH / _ROOM)
    tables = run.tables(2, len(high), 1)
    pulled_at_low = 1 - warm_up
    first = (high, 1)
    second = (low, pulled_at_low) if unit == "record" else (high, 0)
    told = "another context and another reward" if unit == "record" else "reward 0 or 1"
    return Neighbours(
        one_participant(*first),
        one_participant(*second),
        horizon=1,
        unit=unit,
        differs=f"a participant of the {'warm-up' if warm_up else 'greedy stage'} has {told}",
        score=gradient_ratio(tables, report_constants(tables), (first, second)),
        score_name="the log-likelihood ratio of the participant's report",
        hidden=(0,) if unit == "record" else (),
        design=run,
    )


@audit_trials.register
def gradient_trials(design: LDPLinear) -> tuple[AuditTrial, ...]:
    """Trials in which the noise of a report is tested."""
    # The server's parameters after each report are not released, so nothing can be recomputed from them; a
    # participant's arm is private.
    scale = LDPLinear.report_sensitivity / float(design.epsilon)
    one = tuple(report_trial(pair, scale) for pair in neighbouring_trials(design))
    return (*one, two_report_trial(design))
