"""Trials of locally private designs: the law of the reports' noise, and what a server makes of its sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from adaptinf.designs.audit_trials import FAIR, AuditTrial, NodeNoise, Replayed, outside_rewards
from adaptinf.designs.local.neighbours import GradientRatio
from adaptinf.designs.neighbours import Neighbours
from adaptinf.simulation.environments import LinearArms, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_ARMS, _PARTICIPANTS = 2, 64
_NARROW = 0.01
"""A width with which so few noisy reports drop arms and halve bins, in many runs and not in all."""
_NAME, _GROUP, _VALUE = 1, 2, 3


def laplace_sum_uniforms(noise: FloatArray, terms: int) -> FloatArray:
    """Distribution function of the sum of so many Laplace variables of scale 1, at its own value.

    The tail at x > 0 is e^-x times sum over k below m of x^k / k! times the chance that a negative binomial
    number of failures before m successes, at one half, is below m - k.
    """
    size = np.abs(noise)
    powers = np.arange(terms)
    weights = special.betainc(terms, terms - powers, 0.5)
    log_terms = special.xlogy(powers, size[..., None]) - special.gammaln(powers + 1.0)
    tail = np.exp(special.logsumexp(log_terms, axis=-1, b=weights) - size)
    return np.asarray(np.where(noise < 0.0, tail, 1.0 - tail))


def _sums(seen: Transcripts) -> FloatArray:
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
    """Noise of the noisy counts and sums of a bin that all participants reported on."""

    scale: float
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """A count and a sum an arm."""
        clipped = np.clip(seen.rewards, 0.0, 1.0)
        pulled = np.stack([seen.actions == arm for arm in range(_ARMS)], axis=1)
        true = np.stack([pulled.sum(axis=2), (pulled * clipped[:, None]).sum(axis=2)], axis=2)
        noise = (_sums(seen) - true).reshape(len(true), -1) / self.scale
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
                seen.rewards - FAIR if self.fair else np.zeros((0, 0)),
                [f"the reward of round {step + 1}" for step in range(participants)],
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BinReplay:
    """Which arms are dropped, and whether the bin is halved, from the noisy counts and sums alone."""

    tables: Any

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Active bins and dropped arms after the one check, at the end."""
        tables, participants = self.tables, float(seen.actions.shape[1])
        state = np.empty((seen.actions.shape[0], 2))
        for run, sums in enumerate(_sums(seen).tolist()):
            state[run] = self._checked(sums, participants)
        threshold = tables.refinement
        return (
            Replayed("the number of bins", seen.outcomes[:, :1], 1.0 + (state[:, 1:] < threshold), "check"),
            Replayed("the number of arms dropped", seen.outcomes[:, 2:3], state[:, :1], "check"),
        )

    def _checked(self, sums: list[list[float]], seen: float) -> tuple[float, float]:
        """Arms dropped, and the smallest radius of those that are left."""
        tables = self.tables
        spread = seen / (tables.epsilons[-1] * tables.epsilons[-1])
        shortfall = math.sqrt(32.0 * tables.width * spread)
        means, radii = [], []
        for count, total in sums:
            radius = math.inf
            if tables.published:
                if count != 0.0:
                    radius = math.sqrt(tables.width * max(spread, count)) / abs(count)
            elif count > shortfall:
                variance = tables.width * (64.0 * spread + 0.25 * max(count, 0.0))
                radius = math.sqrt(variance) / (count - shortfall)
            means.append(total / count if count != 0.0 else 0.0)
            radii.append(radius)
        highest = max(mean - tables.reach * radius for mean, radius in zip(means, radii, strict=True))
        late = seen >= tables.warm_up
        left = [
            radius
            for mean, radius in zip(means, radii, strict=True)
            if not (late and highest > mean + tables.reach * radius)
        ]
        return float(len(sums) - len(left)), min(left, default=math.inf)


def bin_trials(design: Any, scale: float) -> tuple[AuditTrial, ...]:
    """One check after 64 participants, rewards beyond [0, 1] or 0/1; after two; and after a single one."""
    sizes = {} if design.calibration == "published" else {"width": _NARROW}
    trials = []
    for participants, fair in ((_PARTICIPANTS, False), (_PARTICIPANTS, True), (2, False), (1, False)):
        run = replace(design, auxiliary=(), check_every=participants, max_bins=2, **sizes)
        contexts = np.linspace(0.05, 0.95, participants)[:, None]
        env: Any = Tableau(outside_rewards(participants, _ARMS), vectors=contexts)
        if fair:
            middle = np.full((participants, 1), FAIR)
            env = LinearArms([[1.0], [1.0]], contexts=middle, shared=True, rewards="bernoulli")
        tables = run.program(env, participants, recording=True).tables
        paid = "rewards by fair coins" if fair else "rewards in and beyond [0, 1]"
        people = f"{participants} participant{'s' * (participants > 1)}"
        words = f"{people}, one check of arms and bins, {paid}"
        noise = ReportNoise(scale, fair)
        trials.append(AuditTrial(words, env, participants, BinReplay(tables), noise, run))
    return tuple(trials)


@dataclass(frozen=True, slots=True, eq=False)
class GradientNoise:
    """Noise of a participant's report on each arm: a Gamma size times a uniform point of a cube."""

    ratio: GradientRatio
    scale: float

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """The largest coordinate of each arm's noise, which is independent; and each coordinate's law."""
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


def report_trial(pair: Neighbours, scale: float) -> AuditTrial:
    """The participant of one of the neighbouring trials, whose report can be read off what is released."""
    ratio: Any = pair.score
    stage = "warm-up" if len(ratio.reporting) == 1 else "greedy stage"
    noise = GradientNoise(ratio, scale)
    words = f"one participant of the {stage}"
    return AuditTrial(words, pair.first, pair.horizon, noise=noise, design=pair.design)
