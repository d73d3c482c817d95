"""Effect of one sample on a private stopping rule: two streams, the exact score, and many runs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from adaptinf.audit.privacy.designs.audited_trial import (
    Neighbours,
    NodeNoise,
    laplace_uniforms,
    neighbouring_trials,
    refuse_unit,
)
from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_rules import DPNAS, StoppingRule
from adaptinf.errors import ParameterError
from adaptinf.parameters import OneOf, refuse
from adaptinf.privacy.sparse_vector import SparseVector
from adaptinf.simulation.environments import Environment, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_HUMP = 5
# At the looks that reveal most, the sum is this many scales of the noise beyond the threshold, so runs stop
# there with a moderate probability.
_ABOVE = 0.5
_MOST_SAMPLES = {"every": 1 << 16, "exponential": 1 << 22}


def look_times(steps: str, samples: int) -> FloatArray:
    """Number of samples at each look, up to a given number of samples."""
    if steps == "every":
        return np.arange(1.0, samples + 1.0)
    return np.asarray(2.0 ** np.arange(1, samples.bit_length()), dtype=np.float64)


def sums_at_looks(design: StoppingRule, env: Environment, samples: int) -> FloatArray:
    """Sums of a fixed stream's clipped samples at each look."""
    bound = float(design.bound)
    totals = np.cumsum(np.clip(env.tables(samples).tableau[:samples, 0], -bound, bound))
    return np.asarray(totals[look_times(design.steps, samples).astype(np.int64) - 1])


@dataclass(frozen=True, eq=False)
class StoppingScore:
    """Exact log-likelihood ratio of a stopping time and its estimate on two fixed streams.

    Shapes: times (looks,), ratios (looks + 1,), sums (2, looks).
    """

    times: FloatArray
    ratios: FloatArray
    sums: FloatArray
    scale: float

    def __call__(self, seen: Transcripts) -> FloatArray:
        """One number per run; large if the second stream is more likely."""
        outcomes = seen.outcomes
        stopped = outcomes[:, kernel.STOPPED] > 0.0
        look = np.searchsorted(self.times, outcomes[:, kernel.READ])
        place = np.where(stopped, look, self.times.size)
        released = outcomes[:, kernel.ESTIMATE] * outcomes[:, kernel.READ]
        at = self.sums[:, np.minimum(look, self.times.size - 1)]
        moved = np.abs(released - at[0]) - np.abs(released - at[1])
        return np.asarray(self.ratios[place] + np.where(stopped, moved / self.scale, 0.0))


@dataclass(frozen=True, eq=False)
class StoppingNoise:
    """Stopping time and noise of the estimate on one stream, under the required distributions.

    Shapes: times (looks,), law (looks + 1,), sums (looks,).
    """

    # The stopping time is discrete. Adding a uniform draw within its probability makes the transformed time
    # uniform, so one test serves all.

    times: FloatArray
    law: FloatArray
    sums: FloatArray
    scale: float

    def __call__(self, seen: Transcripts) -> NodeNoise:
        """Two numbers per run; the second only if the rule stopped."""
        outcomes = seen.outcomes
        stopped = outcomes[:, kernel.STOPPED] > 0.0
        look = np.minimum(np.searchsorted(self.times, outcomes[:, kernel.READ]), self.times.size - 1)
        place = np.where(stopped, look, self.times.size)
        drawn = np.random.default_rng(0).random(place.size)
        time = np.r_[0.0, np.cumsum(self.law)][place] + drawn * self.law[place]
        noise = outcomes[:, kernel.ESTIMATE] * outcomes[:, kernel.READ] - self.sums[look]
        estimate = np.where(stopped, laplace_uniforms(noise, self.scale), np.nan)
        return NodeNoise(
            np.stack([time, estimate], axis=1),
            ["the looks, by the stopping time,", "the estimate"],
            np.zeros(2, dtype=np.int64),
            [],
        )


def stopping_noise(design: StoppingRule, pair: Neighbours, epsilon: float) -> StoppingNoise:
    """Distributions on the first stream: a sixth of epsilon for the threshold, a third for the looks."""
    # The other half is for the estimate. The shares are derived here and not taken from the design, because
    # the audit must not rely on what it tests.
    sensitivity, samples = 2.0 * float(design.bound), pair.horizon
    times = look_times(design.steps, samples)
    sums = sums_at_looks(design, pair.first, samples)
    mechanism = SparseVector(epsilon=0.5 * epsilon, sensitivity=sensitivity, threshold_share=1.0 / 3.0)
    law = mechanism.stopping_law(np.abs(sums), _needed(design, times))
    return StoppingNoise(times, law, sums, sensitivity / (0.5 * epsilon))


def _needed(design: StoppingRule, times: FloatArray) -> FloatArray:
    """Threshold for the absolute sum at each look."""
    rule = design.rule(float(design.bound), 1.0)
    return np.array([kernel.halting_sum(rule, time, look) for look, time in enumerate(times.tolist(), 1)])


def stopping_score(design: StoppingRule, first: Environment, second: Environment, samples: int) -> Any:
    """The exact score of a private rule for two streams."""
    rule = design.rule(float(design.bound), 1.0)
    times = look_times(design.steps, samples)
    sums = np.array([sums_at_looks(design, env, samples) for env in (first, second)])
    sensitivity = 2.0 * float(design.bound)
    threshold, query = sensitivity / rule.threshold_scale, 2.0 * sensitivity / rule.query_scale
    mechanism = SparseVector(
        epsilon=threshold + query,
        sensitivity=sensitivity,
        threshold_share=threshold / (threshold + query),
    )
    laws = [mechanism.stopping_law(np.abs(totals), _needed(design, times)) for totals in sums]
    with np.errstate(divide="ignore"):
        logs = np.log(laws)
    # Looks that no run reaches have probability 0 on both streams.
    ratios = np.where(np.isfinite(logs).all(axis=0), logs[1] - logs[0], 0.0)
    return StoppingScore(times, ratios, sums, rule.release_scale)


@neighbouring_trials.register
def stopping_neighbours(design: DPNAS, unit: str | None = None) -> tuple[Neighbours, ...]:
    """The two streams on which outputs differ most: their first samples are bound and -bound."""
    # The sum climbs to about the threshold, so the rule nearly stops, and then falls to about minus the
    # threshold, where the stream ends. On the second stream every sum is lower by twice the bound, which
    # makes it likelier to continue at first and likelier to stop at the end. There is one pair, of tables
    # with one arm, and its score is the exact log-likelihood ratio of stopping time and estimate. Rules that
    # need too long a stream are refused.
    refuse_unit(unit)
    rule = design.rule(float(design.bound), 1.0)
    samples = _climb_and_cross(rule) if design.steps == "every" else _doubling(rule)
    if samples is None:
        raise ParameterError(
            "neighbouring_trials",
            [
                f"streams of {_MOST_SAMPLES[design.steps]:,} samples are too short for the rule to stop: "
                "audit a rule with larger alpha or beta, which do not affect its privacy"
            ],
        )
    second = samples.copy()
    second[0] = -samples[0]
    pair = Tableau(samples[:, None]), Tableau(second[:, None])
    return (
        Neighbours(
            *pair,
            samples.size,
            "reward",
            f"sample 1 is {samples[0]:g} and {second[0]:g}",
            stopping_score(design, *pair, samples.size),
            "the log-likelihood ratio of stopping time and estimate",
        ),
    )


def _doubling(rule: kernel.Rule) -> FloatArray | None:
    """A stream above the threshold at five consecutive looks, and below minus the threshold at the next."""
    noise = _ABOVE * max(rule.threshold_scale, rule.query_scale)
    most = _MOST_SAMPLES["exponential"].bit_length() - 1
    for first in range(1, most - _HUMP + 1):
        looks = range(first, first + _HUMP + 1)
        targets = [kernel.halting_sum(rule, 2.0**look, float(look)) + noise for look in looks]
        targets[-1] *= -1.0
        stops = [1, *(2**look for look in looks)]
        sums = [rule.bound, *targets]
        steps = [
            (after - before) / (end - begin)
            for (before, after), (begin, end) in zip(
                itertools.pairwise(sums), itertools.pairwise(stops), strict=True
            )
        ]
        if max(map(abs, steps)) <= rule.bound:
            lengths = np.diff(stops).tolist()
            parts = [
                _resting(step, length, rule.bound) if number % 2 == 0 else np.full(length, step)
                for number, (step, length) in enumerate(zip(steps, lengths, strict=True))
            ]
            return np.concatenate([[rule.bound], *parts])
    return None


def _resting(step: float, length: int, bound: float) -> FloatArray:
    """Samples with the given mean; the last one, at the look, is 0 if the others can compensate."""
    if length == 1 or abs(more := step * length / (length - 1)) > bound:
        return np.full(length, step)
    return np.append(np.full(length - 1, more), 0.0)


def _climb_and_cross(rule: kernel.Rule) -> FloatArray | None:
    """A stream whose sum rises by the bound per sample to about the threshold, then falls to its negative."""
    noise = max(rule.threshold_scale, rule.query_scale)
    # All looks within one scale of the noise have a similar chance of stopping, so their chances add up; the
    # peak is lowered accordingly.
    crowd = noise / rule.bound
    peak = noise * (_ABOVE - max(0.0, math.log(0.5 * crowd)))
    end = noise * (_ABOVE - max(0.0, math.log(crowd)))
    time, total, top = 0, 0.0, 0
    while time < _MOST_SAMPLES["every"]:
        time += 1
        total += -rule.bound if top else rule.bound
        reached = abs(total) - kernel.halting_sum(rule, float(time), float(time))
        if not top and reached >= peak:
            top = time
        elif top and total < 0.0 and reached >= end:
            return np.concatenate([np.full(top, rule.bound), np.full(time - top, -rule.bound)])
    return None


@dataclass(frozen=True, eq=False)
class StoppingOutputs:
    """Many runs of a private stopping rule on two fixed streams, to be sampled by `epsilon_lower_bound`."""

    rule: StoppingRule
    neighbours: Neighbours
    view: str = "releases"
    live: bool = False

    def __post_init__(self) -> None:
        problems = OneOf("releases", "actions")("view", self.view)
        given: Any = self.neighbours
        if not isinstance(given, Neighbours):
            problems.append(f"neighbours must be Neighbours, got {given!r:.60}")
        elif self.neighbours.first.n_arms != 1 or not self._fixed():
            problems.append("neighbours must be tables of one arm: Tableau(samples[:, None])")
        elif self.neighbours.score is None and self.view == "releases":
            problems.append("neighbours must have a score if view is 'releases'")
        refuse("StoppingOutputs", problems)

    def _fixed(self) -> bool:
        return all(isinstance(env, Tableau) for env in (self.neighbours.first, self.neighbours.second))

    @property
    def __name__(self) -> str:
        """Description of the target."""
        seen = "stopping time and estimate" if self.view == "releases" else "stopping time"
        return f"{seen} of {self.rule!r}, {self.neighbours.horizon} samples: {self.neighbours.differs}"

    def transcripts(self, side: int, runs: int, rng: Generator) -> Transcripts:
        """Outcomes of runs on one of the streams."""
        env, horizon = (self.neighbours.first, self.neighbours.second)[side], self.neighbours.horizon
        if self.live:
            outcomes = self._on_data(env.tables(horizon).tableau[:horizon, 0], runs)
        else:
            outcomes = self.rule._on_sums(sums_at_looks(self.rule, env, horizon), runs, rng)
        return Transcripts(np.zeros((runs, 0), dtype=np.int64), np.zeros((runs, 0, 5)), outcomes)

    def _on_data(self, samples: FloatArray, runs: int) -> FloatArray:
        """Outcomes of runs on data as users perform them, possibly with exact noise."""
        outcomes, rule = np.zeros((runs, kernel.OUTCOMES)), self.rule
        assert isinstance(rule, DPNAS)
        for run in range(runs):
            result = rule.run(samples, backend="release")
            outcomes[run] = result.estimate, result.stopped, result.samples
        return outcomes

    def __call__(self, side: int, runs: int, rng: Generator) -> FloatArray:
        """Scores of shape (runs,), or stopping times of shape (runs, 1): 0 for a run that did not stop."""
        seen = self.transcripts(side, runs, rng)
        if self.view == "actions":
            times = seen.outcomes[:, kernel.READ] * seen.outcomes[:, kernel.STOPPED]
            return np.asarray(times[:, None])
        assert self.neighbours.score is not None
        return self.neighbours.score(seen)


def stopping_outputs(
    rule: StoppingRule, pair: Neighbours | None = None, view: str = "releases", live: bool = False
) -> StoppingOutputs:
    """Outputs on two streams, by default those of `neighbouring_trials`, from simulation or from data."""
    return StoppingOutputs(rule, neighbouring_trials(rule)[0] if pair is None else pair, view, live)
