"""What an audit does beside bounding epsilon: it recomputes decisions from releases, and tests the noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adaptinf.audit.privacy.counters import node_noise
from adaptinf.audit.privacy.designs import (
    Neighbours,
    NodeNoise,
    audit_trials,
)
from adaptinf.audit.privacy.designs.audited_trial import replays
from adaptinf.audit.privacy.designs.stopping_audits import StoppingOutputs, stopping_noise, stopping_outputs
from adaptinf.audit.privacy.live.checks import live_findings, live_problems, live_trial, look_live
from adaptinf.audit.privacy.live.stops import live_stop_findings
from adaptinf.audit.privacy.nodes import noise_findings
from adaptinf.audit.privacy.replays import difference
from adaptinf.audit.privacy.results import Finding
from adaptinf.audit.privacy.sources import child
from adaptinf.designs.base_design import Design
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.errors import MissingDependencyError, ParameterError
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.drawn_noise import FALSE_ALARM
from adaptinf.privacy.noise import generator

RUNS, STOPPING_RUNS, LIVE_STOPS = 512, 20_000, 4_000
"""Runs of each trial."""
HELD, LEAST_RUNS = 1 << 23, 16
"""Rounds of all runs of a trial that are held at once, and the runs that even the longest has."""
ROUNDS, FEWEST, NUMBERS = 1_100, 130, 8_800
"""Most items of a counter, and how many are left where it has many coordinates: so many numbers in all."""

_KEY = 2
"""Of the randomness: the two data sets have 0 and 1."""


class Checked(NamedTuple):
    """What was found, and what was looked at, in words."""

    findings: tuple[Finding, ...]
    looked: tuple[str, ...]


def design_checks(
    design: Design, root: np.random.SeedSequence, share: float, simulated: bool = True, needed: bool = False
) -> Checked:
    """Replay trials of a design and test their noise: of simulated ones, and of a share of the live path.

    Where the live path is `needed`, what keeps it from being looked at is an error. All tests of noise
    together raise a false alarm with probability `FALSE_ALARM` at most: each kind of run has half of it.
    """
    parts = [_simulated_checks(design, root)] if simulated else []
    if share > 0.0:
        parts.append(_live_checks(design, root, share, needed))
    return Checked(*(sum(part, ()) for part in zip(*parts, strict=True)))


def _live_checks(design: Design, root: np.random.SeedSequence, share: float, needed: bool) -> Checked:
    """Replay sessions and trials in files, and test their noise as it was drawn."""
    trial = live_trial(design)
    problems = live_problems(design, trial)
    if trial is None or problems:
        if needed:
            raise ParameterError("epsilon_lower_bound", problems)
        return Checked((), (f"The live path not looked at: {problems[0]}.",))
    try:
        found = look_live(design, trial, root, share)
    except (MissingDependencyError, ParameterError) as error:
        if needed:
            raise
        return Checked((), (f"The live path not looked at: {error}.",))
    return Checked(
        tuple(live_findings(found, 0.5 * FALSE_ALARM)),
        (f"The live path, replayed and its exact noise tested: {'; '.join(found.words)}.",),
    )


def _simulated_checks(design: Design, root: np.random.SeedSequence) -> Checked:
    """Replay every trial of a design, and test the noise of all."""
    trials = audit_trials(design)
    if not trials:
        why = "the design does not say how its decisions follow from its releases"
        return Checked((), (f"Not replayed, noise not tested: {why}.",))
    findings: list[Finding] = []
    noises: list[tuple[str, NodeNoise]] = []
    replayed: list[str] = []
    for number, trial in enumerate(trials):
        runs = min(RUNS, max(LEAST_RUNS, HELD // trial.horizon))
        words = trial.words if runs == RUNS else f"{trial.words}, {runs} runs"
        seen = trial.sample(design, runs, child(root, _KEY, number))
        if again := replays(trial, design):
            replayed.append(words)
            told = [difference(part) for one in again for part in one(seen)]
            findings += [Finding("replay", f"{one} [{words}]") for one in told if one]
        if trial.noise is not None:
            noises += [(words, noise) for noise in trial.noise(seen)]
    findings += [Finding("noise", told) for told in noise_findings(noises, 0.5 * FALSE_ALARM)]
    tested = "; ".join(dict.fromkeys(words for words, _ in noises))
    return Checked(
        tuple(findings),
        (
            f"Replayed, {RUNS} runs each: {'; '.join(replayed)}."
            if replayed
            else "Not replayed: the releases do not settle the decisions.",
            f"Noise tested, {RUNS} runs each: {tested}." if tested else "Noise not tested: no trial has any.",
        ),
    )


def stopping_checks(
    rule: DPNAS,
    pair: Neighbours | None,
    root: np.random.SeedSequence,
    share: float,
    simulated: bool = True,
    needed: bool = False,
) -> Checked:
    """Test the stopping time and the noise of the estimate, simulated and by the release backend."""
    outputs = stopping_outputs(rule, pair)
    parts = [_simulated_stops(rule, outputs, root)] if simulated else []
    if share > 0.0:
        parts.append(_live_stops(rule, outputs, share, needed))
    return Checked(*(sum(part, ()) for part in zip(*parts, strict=True)))


def _live_stops(rule: DPNAS, outputs: StoppingOutputs, share: float, needed: bool) -> Checked:
    """The same of runs on data, whose noise may be released."""
    runs = max(LEAST_RUNS, int(share * LIVE_STOPS))
    try:
        findings = live_stop_findings(rule, outputs.neighbours, runs, 0.5 * FALSE_ALARM)
    except (MissingDependencyError, ParameterError) as error:
        if needed:
            raise
        return Checked((), (f"The release backend not looked at: {error}.",))
    words = f"Stopping time and estimate by the release backend tested, {runs:,} runs."
    return Checked(tuple(Finding("noise", told) for told in findings), (words,))


def _simulated_stops(rule: DPNAS, outputs: StoppingOutputs, root: np.random.SeedSequence) -> Checked:
    """Test simulated runs."""
    seen = outputs.transcripts(0, STOPPING_RUNS, generator(child(root, _KEY)))
    words = f"{outputs.neighbours.horizon:,} samples, the first data set"
    noise = stopping_noise(rule, outputs.neighbours, float(rule.epsilon))(seen)
    findings = noise_findings([(words, noise)], 0.5 * FALSE_ALARM)
    return Checked(
        tuple(Finding("noise", told) for told in findings),
        (
            "Not replayed: the noise of the looks is not released.",
            f"Stopping time and noise of the estimate tested, {STOPPING_RUNS:,} runs: {words}.",
        ),
    )


def counter_checks(counter: Counter, root: np.random.SeedSequence) -> Checked:
    """Test the noise of every node of a counter."""
    if counter.backend == "release":
        return Checked((), ("Noise of later nodes not tested: exact noise is slow to draw.",))
    rounds = min(counter.horizon or ROUNDS, ROUNDS, max(FEWEST, NUMBERS // counter.dimension))
    noise = node_noise(counter, rounds, RUNS, generator(child(root, _KEY)))
    words = f"{rounds:,} items"
    findings = tuple(Finding("noise", told) for told in noise_findings([(words, noise)]))
    return Checked(findings, (f"Noise of all nodes tested, {RUNS} runs: {words}.",))
