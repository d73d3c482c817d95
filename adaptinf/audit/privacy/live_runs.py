"""Runs of a design as users perform them: sessions and trials with exact noise, and their outputs."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import FAIR
from adaptinf.designs.base import Design
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.sessions import Session
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.trial import Trial
    from adaptinf.trial.journal_rows import Entry
    from adaptinf.trial.replay import Replay


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Potential outcomes, and contexts if there are any.

    Shapes: rewards (rounds, arms), NaN if an outcome never comes; features (rounds,), codes below
    `n_features`; vectors (rounds, arms, dimension).
    """

    rewards: FloatArray
    features: IntArray | None = None
    n_features: int = 1
    vectors: FloatArray | None = None

    @property
    def rounds(self) -> int:
        """How many there are."""
        return len(self.rewards)

    def declared(self) -> dict[str, Any]:
        """Information given to a session or trial in advance."""
        told: dict[str, Any] = {"arms": self.rewards.shape[1]}
        if self.vectors is not None:
            told |= {"dimension": self.vectors.shape[2], "per_arm": True}
        elif self.features is not None:
            told["features"] = self.n_features
        return told

    def context(self, step: int) -> Any:
        """The context of one participant."""
        if self.vectors is not None:
            return self.vectors[step]
        return None if self.features is None else int(self.features[step])


def people_of(env: Tableau, horizon: int) -> People:
    """Participants from an environment with given potential outcomes."""
    return People(env.tables(horizon).tableau[:horizon], *_contexts(env, horizon))


def with_coins(env: Environment, horizon: int, rounds: int, lost: float, rng: np.random.Generator) -> People:
    """The first rounds of an environment, with outcomes from fair coins; some outcomes never arrive."""
    rewards = np.asarray(rng.random((rounds, env.n_arms)) < FAIR, dtype=np.float64)
    rewards[rng.random(rounds) < lost] = np.nan
    features, n_features, vectors = _contexts(env, horizon)
    return People(
        rewards,
        None if features is None else features[:rounds],
        n_features,
        None if vectors is None else vectors[:rounds],
    )


def _contexts(env: Environment, horizon: int) -> tuple[IntArray | None, int, FloatArray | None]:
    """Codes of contexts and their number, or a vector for every arm."""
    tables = env.tables(horizon)
    if env.dimension:
        given = tables.vectors[:horizon].reshape(horizon, -1, env.dimension)
        return None, 1, np.broadcast_to(given, (horizon, env.n_arms, env.dimension))
    if not env.features:
        return None, 1, None
    return np.asarray(tables.tableau_features[:horizon], dtype=np.int64), env.n_features, None


_END, _VALUE = 0, 3
_AT_ONCE = 64
_BY = "adaptinf"


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The outputs of one run, and problems with the way in which they were produced.

    Shapes: actions, statuses, rewards (rounds,), NaN for an outcome that never came; outcome (outcomes,);
    releases (releases, 5), drawn (nodes,).
    """

    # Releases are those of the public part of the run's log, if it has one. `room` is the largest possible
    # number of releases, and `lost` the value that replaces an outcome that never came. Rounds before `since`
    # belong to another run. `drawn` is the noise in a trial's journal.

    actions: IntArray
    statuses: IntArray
    rewards: FloatArray
    outcome: FloatArray
    releases: FloatArray
    room: int
    lost: float | None
    problems: tuple[str, ...] = ()
    since: int = 0
    drawn: IntArray | None = None


def session_run(design: Design, horizon: int, people: People, coins: np.random.SeedSequence) -> Shown:
    """Outputs of a session in which each outcome is recorded immediately."""
    session = design.session(horizon=horizon, rng=coins, noise="release", **people.declared())
    for step in range(people.rounds):
        decision = session.assign(context=people.context(step))
        session.record(decision.id, float(people.rewards[step, decision.arm]))
    return shown(session, session.log())


def session_transcripts(
    design: Design, env: Environment, horizon: int, seeds: Sequence[np.random.SeedSequence]
) -> Iterator[Transcripts]:
    """Outputs of sessions for given outcomes, in groups with separate seeds for their coins."""
    if not isinstance(env, Tableau):
        raise ParameterError("epsilon_lower_bound", ["neighbours must be Tableau if backend is release"])
    people = people_of(env, horizon)
    for start in range(0, len(seeds), _AT_ONCE):
        some = seeds[start : start + _AT_ONCE]
        yield transcripts([session_run(design, horizon, people, seed) for seed in some])


def shown(session: Session, log: AdaptiveLog | None, since: int = 0) -> Shown:
    """Outputs of a session: releases as in the public part of its log, if one is given."""
    record, stepper, done = session._rounds.record, session._stepper, session.rounds
    released, problems = stepper.released().copy(), []
    if log is not None and log.guarantee is not None:
        public = log.public().releases
        told = np.column_stack([public["round"], public["value"]]).astype(np.float64)
        places = [_END, _VALUE]
        if len(told) != len(released):
            problems = [f"the public part of a log has {len(told)} releases, but {len(released)} were made"]
        elif not np.array_equal(told, released[:, places]):
            problems = ["the releases in the public part of a log differ from those that were made"]
            released[:, places] = told
    return Shown(
        record.action[:done].copy(),
        record.status[:done].copy(),
        record.reward[:done].copy(),
        stepper.outcome().copy(),
        released,
        max(len(released), len(session._stepper.program.tables.released)),  # type: ignore[attr-defined]
        session._lost,
        tuple(problems),
        since,
    )


def trial_runs(design: Design, horizon: int, people: People, folder: Path) -> Iterator[Shown]:
    """A trial in a file that is reopened halfway and at its end, and finished at the full horizon."""
    with _created(design, horizon, people, folder / "trial.db") as trial:
        _fill(trial, people, 0, people.rounds // 2)
    with _opened(design, folder / "trial.db") as trial:
        _fill(trial, people, people.rounds // 2, people.rounds)
        before = _finished(trial, horizon, people)
    with _opened(design, folder / "trial.db") as trial:
        after = _seen(trial)
    same = np.array_equal(before.releases, after.releases)
    told = () if same else ("the releases of a trial changed when it was reopened",)
    yield dataclasses.replace(after, problems=(*after.problems, *told))


def restored_runs(design: Design, horizon: int, people: People, folder: Path) -> Iterator[Shown]:
    """A trial that continues after a backup, and the copy that replaces it."""
    half = people.rounds // 2
    with _created(design, horizon, people, folder / "trial.db") as trial:
        _fill(trial, people, 0, half)
        trial.backup(folder / "copy.db")
        _fill(trial, people, half, people.rounds)
        yield _finished(trial, horizon, people)
    with _opened(design, folder / "copy.db") as copy:
        copy.restore(reason="an audit of the design", by=_BY, runs=1)
        _fill(copy, people, half, people.rounds)
        yield _finished(copy, horizon, people, since=half - 1)


def _created(design: Design, horizon: int, people: People, path: Path) -> Trial:
    from adaptinf.trial import Trial

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        return Trial.create(path, design, horizon=horizon, outcome_window=0, **people.declared())


def _opened(design: Design, path: Path) -> Trial:
    from adaptinf.trial import Trial

    return Trial.open(path, design)


def _fill(trial: Trial, people: People, start: int, stop: int) -> None:
    """Assign and record alternately, with a single write to disk."""

    def acts(replay: Replay) -> Iterator[tuple[Any, Entry | None]]:
        for step in range(start, stop):
            decision, entry = replay.assign(f"unit {step}", people.context(step), f"assign {step}")
            yield decision, entry
            reward = float(people.rewards[step, decision.arm])
            yield replay.record(decision.id, None if np.isnan(reward) else reward, f"record {step}")

    trial._requests.change_all(acts)


def _finished(trial: Trial, horizon: int, people: People, since: int = 0) -> Shown:
    if people.rounds == horizon:
        trial.finish("everybody came", _BY)
    return _seen(trial, since)


def _seen(trial: Trial, since: int = 0) -> Shown:
    log = trial.log(missing="drop")
    drawn = np.array(
        [entry["units"] for _, entry, _ in trial._requests.read(trial._noise_rows)], dtype=np.int64
    )
    return dataclasses.replace(
        trial._requests.read(lambda replay: shown(replay.session, log, since)), drawn=drawn
    )


def transcripts(runs: list[Shown]) -> Transcripts:
    """Outputs of runs, with the values used for outcomes that never arrived."""
    releases = np.full((len(runs), max(run.room for run in runs), 5), np.nan)
    for place, run in enumerate(runs):
        releases[place, : len(run.releases)] = run.releases
    rewards, lost = outcomes(runs), runs[0].lost
    return Transcripts(
        np.array([run.actions for run in runs]),
        releases,
        np.array([run.outcome for run in runs]),
        np.array([run.statuses for run in runs]),
        rewards if lost is None else np.where(np.isnan(rewards), lost, rewards),
    )


def outcomes(runs: list[Shown]) -> FloatArray:
    """Outcomes as they were recorded, NaN if they never arrived, shape (runs, rounds)."""
    return np.array([run.rewards for run in runs])
