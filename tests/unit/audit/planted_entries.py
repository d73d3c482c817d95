"""Faults in how outcomes enter live sums, when these are released, and what is published beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from planting import Faulty, changed, live, replaced

from adaptinf.designs.arms import elimination_kernel, ucb_kernel
from adaptinf.designs.best_arm import best_arm_kernel as best_arm
from adaptinf.designs.best_arm.best_arm_kernel import ACTIVE, SUM
from adaptinf.designs.contextual import private_conse_kernel as private_kernel
from adaptinf.log import AdaptiveLog
from adaptinf.log.traits import FreshEpochs
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.sessions.outcomes import Telling
from adaptinf.sessions.session import Session
from adaptinf.sessions.session_memory import amend_blank, forget
from adaptinf.simulation.run import RELEASED, SCALARS
from adaptinf.trial.live_trial import Trial

_ENOUGH, _MOST_EPOCHS = 8, 1_024


def entered(value: float, clipped: bool = True) -> float:
    """What a sum has of an outcome; a missing one counts as 0."""
    if math.isnan(value):
        return 0.0
    return float(to_grid(min(max(value, 0.0), 1.0) if clipped else value)) / GRID_UNITS


def in_sum(session: Any, step: int) -> float:
    """What a sum has of a round whose outcome was recorded: 0 where that came late."""
    return entered(float(session._rounds.record.reward[step])) if session._in_time(step) else 0.0


@contextmanager
def late_outcomes_enter() -> Iterator[None]:
    """An outcome that comes after its window, as 0 of which it entered, is added to the arm's sum."""
    enter = Telling._enter

    def entering(self: Any, step: int, value: float | None) -> None:
        late = self._window is not None and not self.undue(step)
        enter(self, step, value)
        if late and value is not None:
            self._stepper.state[ucb_kernel._SUM, int(self._rounds.record.action[step])] += entered(value)

    with changed(Telling, _enter=entering):
        yield


class RoomForMore(Faulty):
    """Has room for a release of each erasure beside the usual ones."""

    def __init__(self, program: Any, *how: Any) -> None:
        rows = np.zeros((2 * len(program.tables.released), 5))
        tables = program.tables._replace(released=rows)
        super().__init__(dataclasses.replace(program, tables=tables), *how)


def _release_again(session: Any, step: int) -> None:
    """Take an outcome out of its arm's sum, and release that at the same count with the same noise."""
    state = session._stepper.state
    arm, amount = int(session._rounds.record.action[step]), in_sum(session, step)
    learnt = int(state[ucb_kernel._COUNT, : session._participants.n_arms].sum())
    if step >= learnt:
        return
    state[ucb_kernel._SUM, arm] -= amount
    state[ucb_kernel._SHOWN, arm] -= amount
    state[ucb_kernel._BASE, arm] -= amount * state[ucb_kernel._INVERSE, arm]
    row, table = int(state[SCALARS, RELEASED]), session._stepper.program.tables.released
    last = table[np.flatnonzero(table[:row, 2] == arm)[-1]]
    table[row] = session.rounds, last[1], arm, state[ucb_kernel._SHOWN, arm], last[4]
    state[SCALARS, RELEASED] = row + 1.0


@contextmanager
def erasures_released() -> Iterator[None]:
    """The outcome of a participant who is erased is taken out of the last release of its arm."""

    def forgetting(session: Any, step: int) -> None:
        forget(session, step)
        _release_again(session, step)

    with replaced(forget, forgetting), live(RoomForMore):
        yield


class Counting(Faulty):
    """Elimination: which outcomes count in the epoch that is running."""

    def counts(self, step: int, status: int) -> bool:
        """Whether the outcome of a round has a place in the epoch that is running now."""
        state, tables = self.state, self.program.tables
        stale = step + 1 <= state[SCALARS, elimination_kernel._FRESH]
        return not (status or stale or state[SCALARS, elimination_kernel._DROPPED] == tables.n_arms - 1.0)

    @property
    def learnt(self) -> int:
        """Outcomes that are in."""
        return int(self.state[SCALARS, elimination_kernel._LEARNT])


def _amend_sum(session: Any, step: int, value: float) -> None:
    """Put a corrected outcome in the place of the one in the sum, if that is still there."""
    stepper, record = session._stepper, session._rounds.record
    amended = stepper.held.setdefault("amended", {})
    before = amended.get(str(step), in_sum(session, step))
    amended[str(step)] = entered(value, clipped=False)
    if step < stepper.learnt and stepper.counts(step, int(record.status[step])):
        stepper.state[elimination_kernel._SUM, int(record.action[step])] += amended[str(step)] - before


@contextmanager
def amendments_not_clipped() -> Iterator[None]:
    """An amended outcome takes the place of the first one in the sum of a running epoch, as it is."""
    amend, learn = Telling.amend, Session._learn

    def amending(self: Any, *told: Any) -> Any:
        done = len(self._rounds.amendments)
        outcome = amend(self, *told)
        for step, value in self._rounds.amendments[done:]:
            _amend_sum(self, step, value)
        return outcome

    def blank(session: Any, step: int, reward: float | None) -> None:
        amend_blank(session, step, reward)
        _amend_sum(session, *session._rounds.amendments[-1])

    def learning(self: Any, step: int, reward: float) -> None:
        stepper, record = self._stepper, self._rounds.record
        amended = stepper.held.get("amended", {}).get(str(step))
        if amended is not None and stepper.counts(step, int(record.status[step])):
            place = elimination_kernel._SUM, int(record.action[step])
            stepper.state[place] += amended - entered(reward)
        learn(self, step, reward)

    told = changed(Telling, amend=amending), changed(Session, _learn=learning)
    with live(Counting), told[0], told[1], replaced(amend_blank, blank):
        yield


def _with_more_epochs(program: Any, arms: int) -> Any:
    """A program of elimination whose tables go on for epochs that are shorter than planned."""
    tables, rows = program.tables, len(program.tables.released)
    epochs = FreshEpochs(tables.epsilon, 4.0 * arms / math.exp(tables.log_start))
    planned = tables.lengths.shape[1]
    number = np.minimum(np.arange(planned + 1.0, _MOST_EPOCHS), 60.0)  # beyond it none ends as planned
    left = np.arange(arms + 1.0)[:, None]
    left[0] = np.nan
    wide, noise = epochs.logarithms(left, number, 1)
    length = epochs.length(left, number, 1)
    further = np.ceil(length), 2.0 * np.sqrt(wide / (2.0 * length)) + 2.0 * noise / length
    longer = [np.hstack(pair) for pair in zip((tables.lengths, tables.thresholds), further, strict=True)]
    released = np.zeros((rows + arms * _MOST_EPOCHS, 5))
    tables = tables._replace(lengths=longer[0], thresholds=longer[1], released=released)
    return dataclasses.replace(program, tables=tables)


class EnoughSuccesses(Counting):
    """An epoch is over, too, after the pass in which an arm has its eighth success."""

    def __init__(self, program: Any, horizon: int, arms: int, *how: Any) -> None:
        super().__init__(_with_more_epochs(program, arms), horizon, arms, *how)

    def _learn(self, step: Any) -> None:
        tables, wins = self.program.tables, self.held.setdefault("wins", {})
        state, own = self.state, elimination_kernel
        left = tables.n_arms - int(state[SCALARS, own._DROPPED])
        place = left, int(state[SCALARS, own._COMPARED])
        planned = float(tables.lengths[place])
        if self.counts(self.learnt, int(tables.status[0])):
            wins[str(step.arm)] = wins.get(str(step.arm), 0) + int(step.reward >= 0.5)
            last = not (state[own._GONE, step.arm + 1 : tables.n_arms] == 0.0).any()
            if last and max(wins.values()) >= _ENOUGH and place[1] < _MOST_EPOCHS - 2:
                tables.lengths[place] = min(planned, state[SCALARS, own._PASSES] + 1.0)
        try:
            super()._learn(step)
        finally:
            tables.lengths[place] = planned
        if self.state[SCALARS, own._COMPARED] > place[1]:
            wins.clear()


class RawRecommendation(Faulty):
    """The arm that is recommended has the highest raw mean of the last phase."""

    def _learn(self, step: Any) -> None:
        tables, phase = self.program.tables, int(self.state[SCALARS, best_arm._PHASE])
        pulled = int(self.state[SCALARS, best_arm._PULLED])
        slots, counts = tables.pulled[:pulled].copy(), tables.counts[:pulled].copy()
        sums, active = self.state[SUM, :pulled].copy(), self.state[ACTIVE].copy()
        place = int(self.state[SCALARS, best_arm._NEXT])
        exploring = tables.status[0] == best_arm._EXPLORING
        super()._learn(step)
        if exploring and self.state[SCALARS, best_arm._PHASE] > phase and phase + 2 == tables.sizes.shape[0]:
            sums[place] += step.reward
            self.held["best"] = float(active[slots[int(np.argmax(sums / counts))]])

    def outcome(self) -> Any:
        told = super().outcome()
        if "best" in self.held:
            told[0] = self.held["best"]
        return told


class RawInclusion(Faulty):
    """Shares of the trial rest on the numbers of participants as they are."""

    def update(self, context: Any, arm: int, reward: float, status: int, now: int) -> None:
        state, own, half = self.state, private_kernel, self.program.tables.horizon // 2
        first = state[SCALARS, own._LEARNT] < half
        if first:
            arrivals = self.held.setdefault("arrivals", [0] * self.program.tables.n_features)
            arrivals[int(context[0])] += 1
        super().update(context, arm, reward, status, now)
        if first and self.state[SCALARS, own._LEARNT] == half:
            exact = np.maximum(1.0, self.held["arrivals"])
            shares = np.minimum(1.0, self.state[SCALARS, own._T_MIN] / exact)
            self.state[own._INCLUSION, : len(exact)] = shares
            self.held["shares"] = shares.tolist()


@contextmanager
def inclusion_of_raw_counts() -> Iterator[None]:
    """A context's share of the trial follows from its exact count, and is public."""
    make, public = Session.log, AdaptiveLog.public

    def log(self: Any, *given: Any, **named: Any) -> Any:
        made: Any = make(self, *given, **named)
        shares = getattr(self._stepper, "held", {}).get("shares")
        made.shares = (
            None
            if shares is None
            else dict(zip(self._participants.features or ("all",), shares, strict=True))
        )
        return made

    def publish(self: Any, *given: Any) -> Any:
        made, shares = public(self, *given), getattr(self, "shares", None)
        if shares is None:
            return made
        return dataclasses.replace(made, facts={**made.facts, "propensities by context": shares})

    with live(RawInclusion), changed(Session, log=log), changed(AdaptiveLog, public=publish):
        yield


@contextmanager
def rows_of_releases() -> Iterator[None]:
    """What is public of a trial has the number of each release's row in the journal."""
    make, public = Trial.log, AdaptiveLog.public

    def log(self: Any, *given: Any, **named: Any) -> Any:
        made: Any = make(self, *given, **named)
        made.journal_rows = [number for number, *_ in self._requests.read(self._noise_rows)]
        return made

    def publish(self: Any, *given: Any) -> Any:
        made, rows = public(self, *given), getattr(self, "journal_rows", None)
        return made if rows is None else dataclasses.replace(made, releases=made.releases.assign(row=rows))

    with changed(Trial, log=log), changed(AdaptiveLog, public=publish):
        yield
