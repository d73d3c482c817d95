"""Simulated participants of a session, who arrive at given times, as do their outcomes.

A session makes the same decisions, and has the same log, as if every participant had been assigned and every
outcome recorded by a separate call. Designs with compiled steps process all participants and outcomes in one
compiled loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import KernelStepper
from adaptinf.simulation.run import CHOOSE, ROUND, SCALARS, UPDATE, WAIT, Record, Step
from adaptinf.typing import BoolArray, FloatArray, IntArray

# A loop that is given the entry point of a design cannot be cached on disk.
_njit: Any = numba.njit
_in_memory = _njit(error_model="numpy", nogil=True, _nrt=False, no_cfunc_wrapper=True)


class Arrivals(NamedTuple):
    """Participants in order of arrival, and their outcomes.

    Shapes: arrival, known (N,), which are times, infinite if an outcome never comes; feature (N,), position
    of each context; reward (N, K), potential rewards; order (n,), the participants with an outcome, by the
    time at which it is known.
    """

    arrival: FloatArray
    known: FloatArray
    feature: IntArray
    reward: FloatArray
    order: IntArray


class _Books(NamedTuple):
    """The arrays of a session that the loop reads and writes.

    Shapes: codes (N, 1) or (1, 1); known, told (N,); removed (K,), 1 for arms that were removed; share (0,)
    or (N,); report (outcomes,); progress (2,), the rounds decided and the outcomes told.
    """

    record: Record
    codes: FloatArray
    known: IntArray
    told: IntArray
    removed: IntArray
    share: FloatArray
    report: FloatArray
    progress: IntArray
    overridden: int
    window: int
    lost: float
    clocked: bool
    own: bool


def enrol(session: Session, arrivals: Arrivals, until: int, time: float = -np.inf, fast: bool = True) -> None:
    """Assign participants up to `until`; outcomes enter before later arrivals, and finally up to `time`.

    An outcome that becomes known at the time of an arrival enters after the arrival.
    """
    stepper = session._stepper
    if fast and type(stepper) is KernelStepper and not session.blind:
        _enrol_compiled(session, stepper, arrivals, until, time)
        return
    features, order = session._participants.features, arrivals.order
    action = session._rounds.record.action
    while session.rounds < until or session._rounds.n_told < len(order):
        step, told = session.rounds, session._rounds.n_told
        one = int(order[told]) if told < len(order) else -1
        if one >= 0 and one < step and arrivals.known[one] < _limit(arrivals, step, until, time):
            session.record(one + 1, float(arrivals.reward[one, action[one]]))
        elif step < until:
            session.assign(context=features[arrivals.feature[step]] if features else None)
        else:
            return


def first_rounds(session: Session, kept: BoolArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Actions (n,), rewards (n,) and propensities (n, K) of the first rounds that are retained."""
    record, count = session._rounds.record, len(kept)
    return record.action[:count][kept], record.reward[:count][kept], record.propensities[:count][kept]


def _limit(arrivals: Arrivals, step: int, until: int, time: float) -> float:
    """Outcomes known before this time enter before the next participant, or at the end."""
    return float(arrivals.arrival[step]) if step < until else float(np.nextafter(time, np.inf))


def _enrol_compiled(
    session: Session, stepper: KernelStepper, arrivals: Arrivals, until: int, time: float
) -> None:
    """Run `enrol` in one compiled loop."""
    rounds, n_arms = session._rounds, len(session.arms)
    before = rounds.decided
    stepper._within(until)
    removed = np.zeros(n_arms, dtype=np.int64)
    removed[[code for code, _ in rounds.removed]] = 1
    progress = np.array([rounds.decided, rounds.n_told], dtype=np.int64)
    if rounds.codes.shape[0] > 1:
        rounds.codes[before:until, 0] = arrivals.feature[before:until]
        rounds.record.feature[before:until] = arrivals.feature[before:until]
    else:
        rounds.record.feature[before:until] = 0
    lost = np.nan if session._lost is None else session._lost
    window = -1 if session._window is None else session._window
    books = _Books(
        rounds.record,
        rounds.codes,
        rounds.known,
        rounds.told,
        removed,
        session._share,
        stepper._report,
        progress,
        session._overridden,
        window,
        float(lost),
        stepper.clocked,
        stepper.program.tables.propensity.shape[0] > 0,
    )
    program = stepper.program
    _drive(program.step, program.tables, books, arrivals, until, float(time), stepper.rng, stepper.state)
    stepper.status = int(program.tables.status[0])
    rounds.decided, rounds.n_told = int(progress[0]), int(progress[1])
    rounds.units += [None] * (rounds.decided - before)


@_in_memory
def _learn(
    step: Any, tables: Any, books: _Books, one: int, now: int, rng: np.random.Generator, state: FloatArray
) -> None:
    """Pass the outcome of a participant to the design."""
    record = books.record
    if books.clocked:
        state[SCALARS, ROUND] = now - 1.0
    tables.status[0] = record.status[one]
    reward = record.reward[one]
    if np.isnan(reward):
        reward = books.lost
    context = books.codes[one if books.codes.shape[0] > 1 else 0]
    step(tables, Step(UPDATE, record.action[one], reward, context, books.report), rng, state)


@_in_memory
def _tell(
    step: Any,
    tables: Any,
    books: _Books,
    arrivals: Arrivals,
    limit: float,
    rng: np.random.Generator,
    state: FloatArray,
) -> None:
    """Record the outcomes that are known before a time, in order."""
    record, now = books.record, books.progress[0]
    while books.progress[1] < arrivals.order.shape[0]:
        one = arrivals.order[books.progress[1]]
        if one >= now or not arrivals.known[one] < limit:
            return
        record.reward[one] = arrivals.reward[one, record.action[one]]
        if books.window < 0:
            _learn(step, tables, books, one, now, rng, state)
        books.known[one] = now
        books.told[books.progress[1]] = one
        books.progress[1] += 1


@_in_memory
def _remove(books: _Books, step: int, rng: np.random.Generator) -> int:
    """Divide the probabilities of removed arms among the others, and draw again."""
    chances = books.record.propensities[step]
    total, left = 0.0, 0
    for arm in range(chances.shape[0]):
        if books.removed[arm]:
            chances[arm] = 0.0
        else:
            total += chances[arm]
            left += 1
    draw, last = rng.random(), 0
    below = 0.0
    found = -1
    for arm in range(chances.shape[0]):
        if not books.removed[arm]:
            chances[arm] = chances[arm] / total if total > 0.0 else 1.0 / left
        if chances[arm] > 0.0:
            last = arm
            below += chances[arm]
            if found < 0 and draw < below:
                found = arm
    return last if found < 0 else found


@_in_memory
def _drive(
    step: Any,
    tables: Any,
    books: _Books,
    arrivals: Arrivals,
    until: int,
    time: float,
    rng: np.random.Generator,
    state: FloatArray,
) -> None:
    """Assign participants and record outcomes, in order of time; state has the design's shape."""
    record = books.record
    n_arms = books.removed.shape[0]
    any_removed = books.removed.sum() > 0
    while books.progress[0] < until:
        now = books.progress[0]
        _tell(step, tables, books, arrivals, arrivals.arrival[now], rng, state)
        context = books.codes[now if books.codes.shape[0] > 1 else 0]
        if now > 0 and books.clocked and state[SCALARS, ROUND] < now:
            tables.status[0] = record.status[now - 1]
            step(tables, Step(WAIT, 0, 0.0, context, books.report), rng, state)
        if books.window >= 0 and now > books.window:
            _learn(step, tables, books, now - 1 - books.window, now, rng, state)
        tables.status[0] = 0
        arm = step(tables, Step(CHOOSE, 0, 0.0, context, books.report), rng, state)
        proposal, status, share = arm, tables.status[0], 0.0
        if books.share.shape[0] > 0:
            share = books.share[now]
            if rng.random() < share:
                arm = min(int(rng.random() * n_arms), n_arms - 1)
                status = books.overridden
        if record.propensities.shape[1] > 0:
            for other in range(n_arms):
                chance = 1.0 if other == proposal else 0.0
                if books.own:
                    chance = tables.propensity[other]
                record.propensities[now, other] = (1.0 - share) * chance + share / n_arms
            if any_removed:
                arm = _remove(books, now, rng)
            record.propensity[now] = record.propensities[now, arm]
        record.action[now], record.status[now], record.reward[now] = arm, status, np.nan
        books.progress[0] = now + 1
    _tell(step, tables, books, arrivals, np.nextafter(time, np.inf), rng, state)
