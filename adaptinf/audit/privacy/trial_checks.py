"""Further checks for simulated and live audits: decisions are recomputed, and noise is tested."""

from __future__ import annotations

import collections
import dataclasses
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adaptinf.audit.privacy.audited_mechanisms import node_noise
from adaptinf.audit.privacy.designs import AuditTrial, Neighbours, NodeNoise, audit_trials
from adaptinf.audit.privacy.designs.audited_trial import FAIR, NodeUnits, replays
from adaptinf.audit.privacy.designs.stopping_audits import StoppingOutputs, stopping_noise, stopping_outputs
from adaptinf.audit.privacy.live_runs import (
    Shown,
    outcomes,
    restored_runs,
    session_run,
    transcripts,
    trial_runs,
    with_coins,
)
from adaptinf.audit.privacy.lower_bound import Finding
from adaptinf.audit.privacy.release_checks import difference, noise_findings
from adaptinf.designs.base import Design
from adaptinf.designs.contextual.linear_noise import on_grid
from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.errors import JournalError, MissingDependencyError, ParameterError
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.drawn_noise import FALSE_ALARM, Draws, counted
from adaptinf.privacy.noise import generator
from adaptinf.privacy.noise_tests import draw_findings
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.sessions.steppers import exact_problems
from adaptinf.simulation.replicate import child
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

# The noise of a release must be independent of outcomes: it is compared with this many before and after the
# release.
_ABOUT = 8
# The noise must not depend on earlier decisions either: it is compared with the arms and kinds of this many
# rounds up to the release.
_RECENT = 3
_EXACT, _ULPS = 2.0**52, 8.0
# Noise recovered from a mean misses a whole unit by rounding error, which is far smaller than this share of a
# unit.
_OFF = 2.0**-6


def drawn_noise(
    noise: NodeNoise, peak: float, outcomes: FloatArray | None, seen: Transcripts
) -> tuple[Draws, list[str]]:
    """Noise in units, run by run, and problems if these are not whole numbers.

    Shapes: outcomes (runs, rounds), from fair coins, NaN if missing.
    """
    # If the largest sum, `peak`, has more bits than a double, its last places are lost, so units are
    # enlarged.
    assert noise.units is not None
    grid, problems = noise.units.grid, []
    while peak * grid >= _EXACT:
        grid *= 0.5
    run, node, step = _in_order(noise.units)
    exact = noise.units.noise[run, node] * grid
    whole = np.rint(exact)
    off = int((np.abs(exact - whole) > _OFF).sum())
    if off and grid == noise.units.grid:
        problems.append(f"{off:,} of {exact.size:,} noisy numbers are not on the grid of 1/{grid:,.0f}")
    coins = None if outcomes is None else _coins(outcomes, run, step)
    facts, fact_names = _facts(seen, run, step)
    draws = Draws(
        whole.astype(np.int64),
        noise.units.scales[node] * grid,
        np.unique(run, return_inverse=True)[1],
        node,
        noise.names,
        coins=coins,
        before=_ABOUT + 1,
        facts=facts,
        fact_names=fact_names,
        own=None if outcomes is None else 0.5 * np.sign(noise.units.own[run, node]),
    )
    return draws, problems


def other_noise(parts: Sequence[NodeUnits], place: int, drawn: IntArray, peak: float) -> bool:
    """Whether noise in a run's releases is missing from its journal, up to rounding; shape (draws,)."""
    if not drawn.size:
        return any(np.isfinite(part.noise[place]).any() for part in parts)
    known = np.sort(drawn)
    for part in parts:
        found = part.noise[place][np.isfinite(part.noise[place])] * part.grid
        above = np.searchsorted(known, found)
        near = [known[np.clip(above - back, 0, known.size - 1)] for back in (0, 1)]
        rounding = max(0.5, _ULPS * peak * part.grid / _EXACT)
        if (np.minimum(*(np.abs(found - one) for one in near)) > rounding).any():
            return True
    return False


def _in_order(units: NodeUnits) -> tuple[IntArray, IntArray, IntArray]:
    """Runs, nodes and rounds of all available numbers, sorted by run and then by round."""
    run, node = np.nonzero(np.isfinite(units.noise))
    step = units.steps[run, node]
    order = np.lexsort((node, step, run))
    return run[order], node[order], step[order]


def _coins(outcomes: FloatArray, run: IntArray, step: IntArray) -> FloatArray:
    """Outcomes of the rounds around each number, minus 1/2; NaN if there is no outcome."""
    rounds = step[:, None] + np.arange(-_ABOUT, _ABOUT + 1)
    inside = (rounds >= 0) & (rounds < outcomes.shape[1])
    found = outcomes[run[:, None], np.clip(rounds, 0, outcomes.shape[1] - 1)]
    return np.where(inside, found - FAIR, np.nan)


def _facts(seen: Transcripts, run: IntArray, step: IntArray) -> tuple[FloatArray, list[str]]:
    """Arms and kinds of the last rounds before each number was drawn, which were fixed at that time."""
    columns, names = [], []
    for word, table in (("arm", seen.actions), ("kind", seen.statuses)):
        # Indicators of all codes would add up to 1, so the first is left out.
        codes = np.unique(table)[1:].tolist()
        for back in range(_RECENT):
            rounds = step - back
            found = table[run, np.maximum(rounds, 0)]
            when = "their own round" if back == 0 else f"{back} round{'s' * (back > 1)} before"
            for code in codes:
                columns.append(np.where(rounds >= 0, (found == code) - FAIR, np.nan))
                names.append(f"the {word} of {when}, number {code}")
    return np.stack(columns, axis=1) if columns else np.zeros((run.size, 0)), names


def live_stop_findings(rule: DPNAS, pair: Neighbours, runs: int, alarm: float) -> list[str]:
    """Problems with the stopping time and the estimate, at a joint level of `alarm`."""
    outputs = stopping_outputs(rule, pair, live=True)
    seen = outputs.transcripts(0, runs, np.random.default_rng(0))
    words = f"{runs:,} runs with the release backend"
    told = noise_findings([(words, stopping_noise(rule, pair, float(rule.epsilon))(seen))], 0.5 * alarm)
    draws = _estimates(rule, pair, seen)
    return told + (draw_findings([(words, draws)], 0.5 * alarm) if len(draws) else [])


def _estimates(rule: DPNAS, pair: Neighbours, seen: Transcripts) -> Draws:
    """The noise of the released estimates, in whole units."""
    bound, scale = float(rule.bound), 4.0 * GRID_UNITS / float(rule.epsilon)
    samples = pair.first.tables(pair.horizon).tableau[: pair.horizon, 0]
    sums = np.cumsum(to_grid(np.clip(samples, -bound, bound), bound))
    stopped = seen.outcomes[:, kernel.STOPPED] > 0.0
    estimate, read = seen.outcomes[stopped, kernel.ESTIMATE], seen.outcomes[stopped, kernel.READ]
    units = np.rint(estimate * read / bound * GRID_UNITS).astype(np.int64) - sums[read.astype(np.int64) - 1]
    every = np.arange(units.size)
    return Draws(units, np.full(units.size, scale), every, np.zeros_like(every), ["the estimate"])


# Limits for all sessions of an audit: the number of noise draws that suffices for the tests, and the number
# of rounds that keeps them fast.
NODES, LIVE_ROUNDS = 12_288, 48_000
# Trials write to disk and are slow, so an audit runs at most this many files and rounds; the noise sampler of
# trials is tested with this many draws of its own.
TRIALS, TRIAL_ROUNDS, SAMPLED = 48, 24_000, 12_288
FEWEST_LIVE, _LEAST_SAMPLED = 3, 64
_LOST = 0.125
# Keys that separate the random numbers of sessions and trials.
_SESSIONS, _TRIALS = 3, 4
_VALUE = 3


@dataclass(slots=True)
class Looked:
    """Results of live runs: findings, transformed noise, raw noise, and descriptions."""

    findings: list[Finding] = field(default_factory=list)
    noises: list[tuple[str, NodeNoise]] = field(default_factory=list)
    draws: list[tuple[str, Draws]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def live_trial(design: Design) -> AuditTrial | None:
    """The last replayed trial of a design, with coins as outcomes and contexts on the grid."""
    trials = reversed(audit_trials(design))
    trial = next((one for one in trials if one.noise is not None and replays(one, design)), None)
    if trial is None:
        return None
    noise = _with(trial.noise, fair=True)
    if trial.environment.dimension:
        noise = _on_grid(noise, trial.environment.dimension)
    return dataclasses.replace(trial, noise=noise)


def _live_replays(run: Design, trial: AuditTrial) -> list[Any]:
    """The replay of live runs, whose contexts are on the grid."""
    again, dimension = list(replays(trial, run)), trial.environment.dimension
    return [_on_grid(part, dimension) for part in again] if dimension else again


def _on_grid(part: Any, dimension: int) -> Any:
    """A copy of a part in which the vectors, or the contexts of all arms side by side, lie on the grid."""
    known = {name: getattr(part, name) for name in ("vectors", "contexts") if hasattr(part, name)}
    rounded = {
        name: on_grid(values.reshape(-1, dimension)).reshape(values.shape) for name, values in known.items()
    }
    return _with(part, **rounded)


def _with(part: Any, **changed: Any) -> Any:
    """A copy with other field values; a user-defined part may be a function, which does not have fields."""
    known = {name: value for name, value in changed.items() if hasattr(part, name)}
    return dataclasses.replace(part, **known) if known else part


def live_problems(design: Design, trial: AuditTrial | None) -> list[str]:
    """Reasons why the live path of a design cannot be checked, in its `live_trial`."""
    if trial is None:
        return ["the design does not specify how its decisions follow from its releases"]
    run = design if trial.design is None else trial.design
    return exact_problems(run._placed(trial.environment), trial.horizon, trial.environment.n_arms)


def look_live(design: Design, trial: AuditTrial, root: np.random.SeedSequence, share: float) -> Looked:
    """Run a given fraction of an audit's sessions and trials, and collect their results."""
    run: Any = design if trial.design is None else trial.design
    found = Looked()
    look_at_sessions(found, design, trial, root, share=share)
    if run.pending == "window":
        _look_at_trials(found, run, trial, root, share)
        _look_at_sampler(found, share)
    return found


def live_findings(found: Looked, alarm: float) -> list[Finding]:
    """All findings; the noise tests together raise a false alarm with probability at most `alarm`."""
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
    """Run a share of the sessions, in which each outcome is recorded immediately, and return their rounds."""
    run: Any = design if trial.design is None else trial.design
    rng, env, rounds = generator(child(root, _SESSIONS)), trial.environment, _rounds(trial)
    runs: list[Shown] = []
    while not runs or len(runs) < (
        number or _number(share, NODES, len(runs[0].releases), LIVE_ROUNDS, rounds)
    ):
        people = with_coins(env, trial.horizon, rounds, 0.0, rng)
        runs.append(session_run(run, trial.horizon, people, child(root, _SESSIONS, len(runs))))
    words = f"{len(runs):,} sessions of {_words(trial)}"
    _gather(found, words, run, trial, runs)
    return len(runs) * rounds


def _look_at_trials(
    found: Looked, run: Design, trial: AuditTrial, root: np.random.SeedSequence, share: float
) -> None:
    """Run trials in files: one is restored from a backup, and every second one loses some outcomes."""
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
                found.findings.append(Finding("replay", f"a trial cannot be reopened: {error.reason}"))
                break
    if not runs:
        return
    words = f"{len(runs):,} trials of {_words(trial)}, stored in files"
    blind = dataclasses.replace(trial, noise=_with(trial.noise, fair=False))
    _gather(found, words, run, blind, runs)


def _look_at_sampler(found: Looked, share: float) -> None:
    """Test the sampler used by trials, at the scale of most of their noise."""
    from adaptinf.trial.trial_noise import Nodes

    draws = found.draws[-1][1]
    ((scale, _),) = collections.Counter(draws.scales.tolist()).most_common(1)
    nodes, number = Nodes("an audit"), max(_LEAST_SAMPLED, int(share * SAMPLED))
    units = [nodes(f"draw {place + 1}", scale) for place in range(number)]
    zeros = np.zeros(number, dtype=np.int64)
    names = [f"draw {place + 1}" for place in range(number)]
    sampled = Draws(np.array(units, dtype=np.int64), np.full(number, scale), zeros, np.arange(number), names)
    found.draws.append((f"{number:,} draws from the sampler used by trials", sampled))


def _gather(found: Looked, words: str, run: Design, trial: AuditTrial, runs: list[Shown]) -> None:
    """Check decisions against releases, and store the noise of the runs."""
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
        told_of = "the noise in the releases of a trial differs from that in its journal"
        found.findings.append(Finding("noise", f"{told_of} [{words}]"))
    for own in parts:
        draws, problems_of_grid = drawn_noise(own, peak, coins, seen)
        found.findings += [Finding("noise", f"{one} [{words}]") for one in problems_of_grid]
        found.noises.append((words, own))
        found.draws.append((words, draws))
    found.words.append(words)


def _own(noise: NodeNoise, since: IntArray) -> NodeNoise:
    """The noise that a run drew before a given round and does not share with another run."""
    assert noise.units is not None
    others = noise.units.steps < since[:, None]
    units = dataclasses.replace(noise.units, noise=np.where(others, np.nan, noise.units.noise))
    return dataclasses.replace(noise, uniforms=np.where(others, np.nan, noise.uniforms), units=units)


def _words(trial: AuditTrial) -> str:
    return f"{_rounds(trial):,} rounds, {counted(trial.environment.n_arms, 'arm')}, outcomes from fair coins"


def _rounds(trial: AuditTrial) -> int:
    return trial.live_rounds or trial.horizon


def _number(share: float, nodes: int, each: int, rounds: int, long: int) -> int:
    """Number of runs that the given numbers of noise draws and of rounds allow, times the share."""
    # Rounding to a power of two ensures that the number of runs does not depend on the coins of the first
    # run.
    each = 2 ** round(math.log2(max(each, 1)))
    return max(FEWEST_LIVE, int(share * min(nodes / each, rounds / long)))


def _runs(found: Looked) -> int:
    """Number of runs that contain the first draws."""
    return int(found.draws[0][1].runs.max(initial=0)) + 1


# Simulated stopping rules run fast, so they get more runs than trials; live ones are slower than simulated
# ones.
RUNS, STOPPING_RUNS, LIVE_STOPS = 512, 20_000, 4_000
# The first number limits the memory for the runs of a trial; even the longest trial gets the second number of
# runs, or tests could find nothing.
HELD, LEAST_RUNS = 1 << 23, 16
# Counters with many coordinates get fewer items, which limits the amount of numbers.
ROUNDS, FEWEST, NUMBERS = 1_100, 130, 8_800

# The two data sets of an audit use the keys 0 and 1, so checks use the next one.
_KEY = 2


class Checked(NamedTuple):
    """The findings, and a description of the checks."""

    findings: tuple[Finding, ...]
    looked: tuple[str, ...]


def design_checks(
    design: Design, root: np.random.SeedSequence, share: float, simulated: bool = True, needed: bool = False
) -> Checked:
    """Replay a design's simulated trials and a share of its live path, and test their noise."""
    # If the live path is `needed`, a reason for which it cannot be checked is an error. All tests of noise
    # together raise a false alarm with probability at most `FALSE_ALARM`: each kind of run has half of it.
    parts = [_simulated_checks(design, root)] if simulated else []
    if share > 0.0:
        parts.append(_live_checks(design, root, share, needed))
    return Checked(*(sum(part, ()) for part in zip(*parts, strict=True)))


def _live_checks(design: Design, root: np.random.SeedSequence, share: float, needed: bool) -> Checked:
    """Replay sessions and trials in files, and test their raw noise."""
    trial = live_trial(design)
    problems = live_problems(design, trial)
    if trial is None or problems:
        if needed:
            raise ParameterError("epsilon_lower_bound", problems)
        return Checked((), (f"The live path was not checked: {problems[0]}.",))
    try:
        found = look_live(design, trial, root, share)
    except (MissingDependencyError, ParameterError) as error:
        if needed:
            raise
        return Checked((), (f"The live path was not checked: {error}.",))
    return Checked(
        tuple(live_findings(found, 0.5 * FALSE_ALARM)),
        (f"The live path was replayed and its exact noise was tested: {'; '.join(found.words)}.",),
    )


def _simulated_checks(design: Design, root: np.random.SeedSequence) -> Checked:
    """Replay every trial of a design, and test the noise of all trials together."""
    trials = audit_trials(design)
    if not trials:
        why = "the design does not specify how its decisions follow from its releases"
        return Checked((), (f"Neither decisions nor noise were checked: {why}.",))
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
            else "The decisions were not replayed, because the releases do not determine them.",
            f"Noise tested, {RUNS} runs each: {tested}."
            if tested
            else "The noise was not tested, because no trial has any.",
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
    """Test the stopping time and the noise of the estimate, in simulation and with the release backend."""
    outputs = stopping_outputs(rule, pair)
    parts = [_simulated_stops(rule, outputs, root)] if simulated else []
    if share > 0.0:
        parts.append(_live_stops(rule, outputs, share, needed))
    return Checked(*(sum(part, ()) for part in zip(*parts, strict=True)))


def _live_stops(rule: DPNAS, outputs: StoppingOutputs, share: float, needed: bool) -> Checked:
    """Test runs on data, possibly with exact noise, as in `stopping_checks`."""
    runs = max(LEAST_RUNS, int(share * LIVE_STOPS))
    try:
        findings = live_stop_findings(rule, outputs.neighbours, runs, 0.5 * FALSE_ALARM)
    except (MissingDependencyError, ParameterError) as error:
        if needed:
            raise
        return Checked((), (f"The release backend was not checked: {error}.",))
    words = f"The stopping time and the estimate were tested in {runs:,} runs with the release backend."
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
            "The looks were not replayed, because their noise is not released.",
            f"The stopping time and the noise of the estimate were tested in {STOPPING_RUNS:,} runs: "
            f"{words}.",
        ),
    )


def counter_checks(counter: Counter, root: np.random.SeedSequence) -> Checked:
    """Test the noise of every node of a counter."""
    if counter.backend == "release":
        return Checked((), ("The noise of later nodes was not tested, because exact noise is slow to draw.",))
    rounds = min(counter.horizon or ROUNDS, ROUNDS, max(FEWEST, NUMBERS // counter.dimension))
    noise = node_noise(counter, rounds, RUNS, generator(child(root, _KEY)))
    words = f"{rounds:,} items"
    findings = tuple(Finding("noise", told) for told in noise_findings([(words, noise)]))
    return Checked(findings, (f"The noise of all nodes was tested in {RUNS} runs: {words}.",))
