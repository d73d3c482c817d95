"""What an audit looks at of the live path: decisions, public parts, and noise as it was drawn."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs import AuditTrial, NodeNoise, audit_trials
from adaptinf.audit.privacy.designs.audited_trial import replays
from adaptinf.audit.privacy.live.drawn import drawn_noise, other_noise
from adaptinf.audit.privacy.live.runs import (
    Shown,
    outcomes,
    restored_runs,
    session_run,
    transcripts,
    trial_runs,
    with_coins,
)
from adaptinf.audit.privacy.nodes import noise_findings
from adaptinf.audit.privacy.replays import difference
from adaptinf.audit.privacy.results import Finding
from adaptinf.audit.privacy.sources import child
from adaptinf.designs.base_design import Design
from adaptinf.designs.contextual.linear_noise import on_grid
from adaptinf.errors import JournalError
from adaptinf.privacy.drawn_noise import Draws, counted
from adaptinf.privacy.noise import generator
from adaptinf.privacy.noise_tests import draw_findings
from adaptinf.sessions.steppers import exact_problems
from adaptinf.typing import IntArray

NODES, ROUNDS = 12_288, 48_000
"""Of all sessions of an audit: numbers of noise, and no more rounds than these."""
TRIALS, TRIAL_ROUNDS, SAMPLED = 48, 24_000, 12_288
"""Files of an audit and their rounds, and draws of the sampler that trials draw from."""
FEWEST, _LEAST_SAMPLED = 3, 64
_LOST = 0.125
_SESSIONS, _TRIALS = 3, 4
"""Of the randomness."""
_VALUE = 3


@dataclass(slots=True)
class Looked:
    """What live runs gave: findings, noise by its promised law, noise as it was drawn, and words."""

    findings: list[Finding] = field(default_factory=list)
    noises: list[tuple[str, NodeNoise]] = field(default_factory=list)
    draws: list[tuple[str, Draws]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def live_trial(design: Design) -> AuditTrial | None:
    """The last trial of a design whose decisions are recomputed; outcomes are coins, contexts on the grid."""
    trials = reversed(audit_trials(design))
    trial = next((one for one in trials if one.noise is not None and replays(one, design)), None)
    if trial is None:
        return None
    noise = _with(trial.noise, fair=True)
    if trial.environment.dimension:
        noise = _on_grid(noise, trial.environment.dimension)
    return dataclasses.replace(trial, noise=noise)


def _live_replays(run: Design, trial: AuditTrial) -> list[Any]:
    """What recomputes the decisions of live runs, which see contexts on the grid."""
    again, dimension = list(replays(trial, run)), trial.environment.dimension
    return [_on_grid(part, dimension) for part in again] if dimension else again


def _on_grid(part: Any, dimension: int) -> Any:
    """A part whose vectors, or contexts of all arms side by side, are on the grid."""
    known = {name: getattr(part, name) for name in ("vectors", "contexts") if hasattr(part, name)}
    rounded = {
        name: on_grid(values.reshape(-1, dimension)).reshape(values.shape) for name, values in known.items()
    }
    return _with(part, **rounded)


def _with(part: Any, **changed: Any) -> Any:
    """A part with other values of its fields; one of one's own may be a function, which has none."""
    known = {name: value for name, value in changed.items() if hasattr(part, name)}
    return dataclasses.replace(part, **known) if known else part


def live_problems(design: Design, trial: AuditTrial | None) -> list[str]:
    """Why the live path of a design cannot be looked at, in its `live_trial`."""
    if trial is None:
        return ["the design does not say how its decisions follow from its releases"]
    run = design if trial.design is None else trial.design
    return exact_problems(run._placed(trial.environment), trial.horizon, trial.environment.n_arms)


def look_live(design: Design, trial: AuditTrial, root: np.random.SeedSequence, share: float) -> Looked:
    """Run sessions and trials of a design, a share of what a whole audit runs, and gather what they give."""
    run: Any = design if trial.design is None else trial.design
    found = Looked()
    look_at_sessions(found, design, trial, root, share=share)
    if run.pending == "window":
        _look_at_trials(found, run, trial, root, share)
        _look_at_sampler(found, share)
    return found


def live_findings(found: Looked, alarm: float) -> list[Finding]:
    """All findings; the tests of noise together raise a false alarm with probability `alarm` at most."""
    told = noise_findings(found.noises, 0.5 * alarm) + draw_findings(found.draws, 0.5 * alarm)
    return [*found.findings, *(Finding("noise", one) for one in told)]


def look_at_sessions(
    found: Looked,
    design: Design,
    trial: AuditTrial,
    root: np.random.SeedSequence,
    number: int | None = None,
    share: float = 1.0,
) -> int:
    """So many sessions in which each outcome is told at once, or a share of a whole audit's; their rounds."""
    run: Any = design if trial.design is None else trial.design
    rng, env, rounds = generator(child(root, _SESSIONS)), trial.environment, _rounds(trial)
    runs: list[Shown] = []
    while not runs or len(runs) < (number or _number(share, NODES, len(runs[0].releases), ROUNDS, rounds)):
        people = with_coins(env, trial.horizon, rounds, 0.0, rng)
        runs.append(session_run(run, trial.horizon, people, child(root, _SESSIONS, len(runs))))
    words = f"{len(runs):,} sessions of {_words(trial)}"
    _gather(found, words, run, trial, runs)
    return len(runs) * rounds


def _look_at_trials(
    found: Looked, run: Design, trial: AuditTrial, root: np.random.SeedSequence, share: float
) -> None:
    """Trials in files: one is restored from a backup, and in every other one some outcomes never come."""
    rng, env, rounds = generator(child(root, _TRIALS)), trial.environment, _rounds(trial)
    runs: list[Shown] = []
    number = min(TRIALS, _number(share, NODES, len(found.draws[0][1]) // _runs(found), TRIAL_ROUNDS, rounds))
    for place in range(number - 1):
        lost = _LOST * (place % 2)
        people = with_coins(env, trial.horizon, rounds, lost, rng)
        made = restored_runs if place == 0 else trial_runs
        with tempfile.TemporaryDirectory(prefix="adaptinf-audit-") as folder:
            try:
                runs.extend(made(run, trial.horizon, people, Path(folder)))
            except JournalError as error:
                found.findings.append(Finding("replay", f"a trial cannot be opened again: {error.reason}"))
                break
    if not runs:
        return
    words = f"{len(runs):,} trials in files of {_words(trial)}"
    blind = dataclasses.replace(trial, noise=_with(trial.noise, fair=False))
    _gather(found, words, run, blind, runs)


def _look_at_sampler(found: Looked, share: float) -> None:
    """The sampler that trials draw from, at the scale that most noise of their own has."""
    from adaptinf.trial.trial_noise import Nodes

    draws = found.draws[-1][1]
    ((scale, _),) = Counter(draws.scales.tolist()).most_common(1)
    nodes, number = Nodes("an audit"), max(_LEAST_SAMPLED, int(share * SAMPLED))
    units = [nodes(f"draw {place + 1}", scale) for place in range(number)]
    zeros = np.zeros(number, dtype=np.int64)
    names = [f"draw {place + 1}" for place in range(number)]
    sampled = Draws(np.array(units, dtype=np.int64), np.full(number, scale), zeros, np.arange(number), names)
    found.draws.append((f"{number:,} draws of the sampler of trials", sampled))


def _gather(found: Looked, words: str, run: Design, trial: AuditTrial, runs: list[Shown]) -> None:
    """Hold decisions against releases, and keep the noise of the runs."""
    seen, coins = transcripts(runs), outcomes(runs)
    assert trial.noise is not None
    told = [difference(part) for one in _live_replays(run, trial) for part in one(seen)]
    found.findings += [Finding("replay", f"{one} [{words}]") for one in told if one]
    problems = dict.fromkeys(problem for one in runs for problem in one.problems)
    found.findings += [Finding("public", f"{one} [{words}]") for one in problems]
    peak = float(np.nanmax(np.abs(seen.releases[..., _VALUE]), initial=0.0))
    since = np.array([one.since for one in runs])
    parts = [_own(noise, since) for noise in trial.noise(seen)]
    units = [own.units for own in parts if own.units is not None]
    if any(
        one.drawn is not None and other_noise(units, place, one.drawn, peak) for place, one in enumerate(runs)
    ):
        told_of = "the releases of a trial have other noise in them than its journal"
        found.findings.append(Finding("noise", f"{told_of} [{words}]"))
    for own in parts:
        draws, problems_of_grid = drawn_noise(own, peak, coins, seen)
        found.findings += [Finding("noise", f"{one} [{words}]") for one in problems_of_grid]
        found.noises.append((words, own))
        found.draws.append((words, draws))
    found.words.append(words)


def _own(noise: NodeNoise, since: IntArray) -> NodeNoise:
    """The noise without that of another run, from before a round."""
    assert noise.units is not None
    others = noise.units.steps < since[:, None]
    units = dataclasses.replace(noise.units, noise=np.where(others, np.nan, noise.units.noise))
    return dataclasses.replace(noise, uniforms=np.where(others, np.nan, noise.uniforms), units=units)


def _words(trial: AuditTrial) -> str:
    return f"{_rounds(trial):,} rounds, {counted(trial.environment.n_arms, 'arm')}, outcomes by fair coins"


def _rounds(trial: AuditTrial) -> int:
    return trial.live_rounds or trial.horizon


def _number(share: float, nodes: int, each: int, rounds: int, long: int) -> int:
    """Runs that give so many numbers of noise, or take so many rounds: a share of the fewer."""
    each = 2 ** round(math.log2(max(each, 1)))  # roughly, so that no coin decides how many runs there are
    return max(FEWEST, int(share * min(nodes / each, rounds / long)))


def _runs(found: Looked) -> int:
    """Runs of the first draws."""
    return int(found.draws[0][1].runs.max(initial=0)) + 1
