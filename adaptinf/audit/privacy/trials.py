"""What an audit does beside bounding epsilon: it recomputes decisions from releases, and tests the noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adaptinf.audit.privacy.counters import node_noise
from adaptinf.audit.privacy.designs import (
    Neighbours,
    NodeNoise,
    Replayed,
    audit_trials,
)
from adaptinf.audit.privacy.designs.public_replay import replays
from adaptinf.audit.privacy.designs.stopping_audits import stopping_noise, stopping_outputs
from adaptinf.audit.privacy.nodes import noise_findings
from adaptinf.audit.privacy.results import Finding
from adaptinf.audit.privacy.sources import child
from adaptinf.designs.base import Design
from adaptinf.designs.stopping.rules import DPNAS
from adaptinf.privacy.counters.counter import Counter
from adaptinf.privacy.noise import generator

RUNS, STOPPING_RUNS = 512, 20_000
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


def design_checks(design: Design, root: np.random.SeedSequence) -> Checked:
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
            told = [_difference(part) for one in again for part in one(seen)]
            findings += [Finding("replay", f"{one} [{words}]") for one in told if one]
        if trial.noise is not None:
            noises += [(words, noise) for noise in trial.noise(seen)]
    findings += [Finding("noise", told) for told in noise_findings(noises)]
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


def stopping_checks(rule: DPNAS, pair: Neighbours | None, root: np.random.SeedSequence) -> Checked:
    """Test the stopping time and the noise of the estimate."""
    outputs = stopping_outputs(rule, pair)
    seen = outputs.transcripts(0, STOPPING_RUNS, generator(child(root, _KEY)))
    words = f"{outputs.neighbours.horizon:,} samples, the first data set"
    findings = noise_findings([(words, stopping_noise(rule, outputs.neighbours, float(rule.epsilon))(seen))])
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


def _difference(part: Replayed) -> str:
    """Where runs are not as their releases say, in words; empty where all of them are."""
    seen, recomputed = (np.asarray(side, dtype=np.float64) for side in (part.seen, part.recomputed))
    apart = (seen != recomputed) & ~(np.isnan(seen) & np.isnan(recomputed))
    if not apart.any():
        return ""
    place = int(np.flatnonzero(apart.any(axis=0))[0])
    run = int(np.flatnonzero(apart[:, place])[0])
    number = int(apart.any(axis=1).sum())
    is_, should_be = _shown(seen[run, place]), _shown(recomputed[run, place])
    return (
        f"{part.what} is not what releases and earlier actions give, in {number} of {len(apart)} runs: in "
        f"{part.place} {place + 1} of run {run + 1} it is {is_}, not {should_be}: a decision read something "
        "that was not released"
    )


def _shown(value: Any) -> str:
    return "none" if np.isnan(value) else f"{value:.17g}"
