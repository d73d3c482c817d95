"""A session: participants are assigned one at a time, and outcomes are recorded as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, Count, OneOf, OrNone, check, refuse
from adaptinf.sessions.outcomes import Telling
from adaptinf.sessions.participants import Participants, plain
from adaptinf.sessions.session_rounds import Decision, Rounds, identity
from adaptinf.sessions.steppers import Stepper, certain, in_time_units
from adaptinf.simulation.replicate import Program, Run
from adaptinf.typing import FloatArray, IntArray

_NAMES = ("action", "status", "feature", "reward", "propensity", "propensities", "vectors")


def run_of(
    rounds: Rounds,
    stepper: Stepper,
    window: int | None,
    lost: float | None,
    missing: str | None,
    amended: bool,
) -> Run:
    """A copy of the rounds so far, with outcomes as amended or as used by the design."""
    done = rounds.decided
    arrays = {name: getattr(rounds.record, name)[:done].copy() for name in _NAMES}
    corrected = rounds.amended() if amended else {}
    arrays["reward"][list(corrected)] = list(corrected.values())
    return Run(
        rounds.record._replace(**arrays),
        stepper.released(),
        stepper.outcome(),
        _units(rounds),
        _known_rounds(rounds, window),
        missing if np.isnan(arrays["reward"]).any() else None,
        len(corrected),
        tuple(rounds.removed),
        tuple(rounds.added),
        switched=tuple(rounds.switched),
        noise=stepper.noise,
        window=window,
        late=None if window is None else lost,
    )


def _units(rounds: Rounds) -> NDArray[Any] | None:
    """Unit of each round, with an unused name for erased units; None if there are no units."""
    if not rounds.by_unit and not rounds.erased:
        return None
    known = rounds.by_unit
    named = [unit for unit in known if not isinstance(unit, int)]
    least = min(0, *known) if known and not named else 0
    units = list(rounds.units)
    for step in rounds.erased:
        units[step] = least - step - 1 if known and not named else f"erased {step + 1}"
        while units[step] in known:
            units[step] += "*"
    return np.array(units)


def _known_rounds(rounds: Rounds, window: int | None) -> IntArray | None:
    """Number of rounds begun when the design could first use each outcome; None if always immediately."""
    done = rounds.decided
    steps, known = np.arange(done), rounds.known[:done]
    first, absent = known, np.isnan(rounds.record.reward[:done])
    if window is not None:
        due = steps + 1 + window
        first = np.where(known <= due, np.minimum(due, done), done)
    first = np.where(absent, done, first)
    return None if np.array_equal(first, steps + 1) else first


_INSTEAD = "pause or finish, and begin again without the arm"


def without(probabilities: FloatArray, removed: Sequence[int]) -> FloatArray:
    """Probabilities of the arms, given that no removed arm is drawn; both shapes (arms,)."""
    # A remaining arm gets p_a / (1 - p_removed). If all of these are 0, the remaining arms share equally: a
    # participant is waiting, and the design has no preference among these arms.
    left = probabilities.copy()
    left[list(removed)] = 0.0
    total = float(left.sum())
    if total > 0.0:
        return np.asarray(left / total, dtype=np.float64)
    left[:] = 1.0 / (len(left) - len(set(removed)))
    left[list(removed)] = 0.0
    return left


def drawn(probabilities: FloatArray, draw: float) -> int:
    """The arm selected by a number in [0, 1); an arm with probability 0 is never selected."""
    possible = np.flatnonzero(probabilities > 0.0)
    place = int(np.searchsorted(np.cumsum(probabilities[possible]), draw, side="right"))
    # Rounding error may let the cumulative sums end below 1.
    return int(possible[min(place, len(possible) - 1)])


def unfit(name: str, pending: str, own_coins: bool, known: bool) -> list[str]:
    """Reasons why a design cannot continue without an arm; `known`: whether its probabilities are known."""
    if pending != "any":
        reason = "waits for outcomes before it chooses, and its plan requires all of its arms"
    elif not own_coins:
        reason = (
            "makes no random draws, so there are no probabilities to divide among the other arms (a "
            "Mixture has some)"
        )
    elif not known:
        reason = "returns arms without probabilities that could be divided among the other arms"
    else:
        return []
    return [f"{name} {reason}: {_INSTEAD}"]


_MISSING = OrNone(OneOf("drop", "bounds", "worst", "best"))


class Session(Telling):
    """A design in use for participants who arrive one at a time, created by `Design.session`.

    A session is kept in memory, so it is lost on a restart. Only one thread at a time may use a session.

    Examples
    --------
    >>> import adaptinf as ai
    >>> session = ai.designs.EpsilonGreedy(exploration=0.2).session(["old", "new"], horizon=3, rng=1)
    >>> for answer in (1.0, 0.0, 1.0):
    ...     outcome = session.record(session.assign().id, answer)
    >>> session.log().frame[["action", "reward", "propensity"]]
      action  reward  propensity
    0    new     1.0         0.1
    1    old     0.0         0.9
    2    new     1.0         0.9
    """

    in_time: FloatArray | None
    """Released timely successes and failures, shape (arms, 2), once the last window has ended."""

    def __init__(
        self,
        name: str,
        participants: Participants,
        horizon: int,
        program: Program,
        stepper: Stepper,
        coins: np.random.Generator,
        log: Callable[[Run], AdaptiveLog],
        pending: str,
        window: int | None,
        lost: float | None,
        own_coins: bool,
        by_context: bool,
        in_time: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        self._name, self._participants, self._horizon, self._make_log = name, participants, horizon, log
        self._stepper, self._coins, self._share = stepper, coins, program.share
        self._overridden = program.n_statuses - 1
        self._pending, self._window, self._lost, self._own_coins = pending, window, lost, own_coins
        self.by_context, self.blind, self._closed = by_context, False, 0
        self._release_in_time, self.in_time = in_time, None
        with_propensities = program.tables.propensity.shape[0] > 0 or program.share.shape[0] > 0
        self._rounds = Rounds(participants, horizon, with_propensities)

    @property
    def arms(self) -> tuple[Any, ...]:
        """Labels of the arms."""
        return self._participants.arms

    @property
    def rounds(self) -> int:
        """Number of rounds that have been assigned."""
        return self._rounds.decided

    @property
    def pending(self) -> tuple[int, ...]:
        """Ids of the decisions whose outcome has not been recorded."""
        return tuple((np.flatnonzero(self._rounds.known[: self.rounds] == 0) + 1).tolist())

    def assign(self, unit: Any = None, context: Any = None, key: Any = None) -> Decision:
        """Assign an arm to the participant who has arrived.

        Parameters
        ----------
        unit : str or int, optional
            Identifier of the participant. A unit is assigned only once: a repeated request returns its first
            decision. Either all participants have an identifier or none.
        context : optional
            Context known before the choice: a label from `features`, or an array of shape (dimension,), or
            (arms, dimension) if each arm has its own.
        key : str or int, optional
            Identifies the request: the same request with the same key receives the same response, so it can
            be repeated if a response was lost.

        Returns
        -------
        Decision
            The arm, and the id that `record` requires.

        Raises
        ------
        ParameterError
            If the horizon is exhausted, an outcome is needed first, the context does not match the
            declaration, or the key or the unit belongs to another request. Nothing has changed in this case.
        """
        found, unit, key = self._participants.read(context), plain(unit), plain(key)
        refuse("assign", [*identity("unit", unit), *identity("key", key)])
        rounds = self._rounds
        if (step := rounds.answers.known("assign", key)) is not None:
            if rounds.units[step] != unit or not np.array_equal(found, rounds.context(step)):
                rounds.answers.refuse("assign", key, "assign")
            return self._decision(step)
        step = None if unit is None else rounds.by_unit.get(unit)
        if step is not None:
            self._refuse_other_context(unit, step, found)
        else:
            self._refuse_assignment(unit)
            step = self._choose(found)
            rounds.belongs(step, unit)
        rounds.answers.keep("assign", key, step)
        return self._decision(step)

    def _decision(self, step: int) -> Decision:
        return Decision(step + 1, self._participants.arms[self._rounds.record.action[step]], step + 1)

    def arm_of(self, decision_id: int) -> Any:
        """The arm of a decision.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.

        Returns
        -------
        label
            The arm that was assigned.

        Raises
        ------
        ParameterError
            If there is no such decision.
        """
        refuse("arm_of", Count()("decision_id", decision_id) or self._unknown(decision_id))
        return self._decision(int(decision_id) - 1).arm

    def propensities(self, decision_id: int) -> tuple[float, ...] | None:
        """The probability of each arm when a decision was made.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.

        Returns
        -------
        tuple of float, or None
            The probabilities, or None if the design chooses arms without probabilities.

        Raises
        ------
        ParameterError
            If there is no such decision.
        """
        refuse("propensities", Count()("decision_id", decision_id) or self._unknown(decision_id))
        row = self._rounds.record.propensities[int(decision_id) - 1]
        return None if not row.size or np.isnan(row).any() else tuple(row.tolist())

    def _refuse_other_context(self, unit: Any, step: int, found: FloatArray) -> None:
        if not np.array_equal(found, self._rounds.context(step)):
            problem = f"unit {unit!r:.60} was assigned in round {step + 1} with another context"
            raise ParameterError("assign", [problem])

    def _refuse_assignment(self, unit: Any) -> None:
        """Explain why no participant can be assigned now."""
        problems, rounds, last = [], self._rounds, self.rounds
        known = next(iter(rounds.by_unit), None)
        named = known is not None or bool(rounds.erased)
        if last and (unit is not None) != named:
            had = "had one" if named else "had none"
            problems.append(f"give a unit for all participants or for none: earlier participants {had}")
        elif known is not None and type(unit) is not type(known):
            problems.append(f"units must be all text or all whole numbers, got {unit!r:.60}")
        if last == self._horizon:
            problems.append(f"the horizon of {last:,} rounds has been reached")
        elif last and self._waits and self._rounds.known[last - 1] == 0:
            hint = ", or open the session with window=" if self._pending == "window" else ""
            problems.append(
                f"the outcome of decision {last} must be recorded first, because {self._name} uses it to "
                f"choose{hint}"
            )
        refuse("assign", problems)

    @property
    def _waits(self) -> bool:
        """Whether a choice needs the outcome of the previous round."""
        return self._pending == "last" or (self._pending == "window" and self._window is None)

    def _choose(self, context: FloatArray) -> int:
        """Make the next decision and store its round."""
        step, record, n_arms = self.rounds, self._rounds.record, self._participants.n_arms
        if step:
            self._stepper.begun(int(record.status[step - 1]), step)
        if self._window is not None and step > self._window:
            due = step - 1 - self._window
            self._learn(due, float(record.reward[due]))
        arm, own = self._stepper.choose(context, step)
        proposal, status, share = arm, self._stepper.status, 0.0
        if self._share.shape[0]:
            share = float(self._share[step])
            if self._coins.random() < share:
                arm = min(int(self._coins.random() * n_arms), n_arms - 1)
                status = self._overridden
        if record.propensities.shape[1]:
            if own is None:
                own = certain(proposal, n_arms) if self._share.shape[0] else np.full(n_arms, np.nan)
            row = (1.0 - share) * own + share / n_arms
            if removed := [code for code, _ in self._rounds.removed]:
                row = without(row, removed)
                arm = drawn(row, self._coins.random())
            record.propensities[step], record.propensity[step] = row, row[arm]
        return self._rounds.begin(context, arm, status)

    def remove_arm(self, arm: Any, key: Any = None) -> tuple[Any, ...]:
        """Never assign an arm again; the others receive its probability in proportion to their own.

        The design continues unchanged. The design's probability for each remaining arm is divided by the sum
        over the remaining arms, and the arm is drawn again with these probabilities, which are the
        propensities. If the design gives probability 0 to all remaining arms, they share equally; a single
        remaining arm is assigned with certainty.

        Parameters
        ----------
        arm : label
            One of the arms.
        key : str or int, optional
            Identifies the request, as for `assign`.

        Returns
        -------
        tuple of labels
            The remaining arms.

        Raises
        ------
        ParameterError
            If there is no such arm, it was already removed or is the last one, no one has been assigned yet,
            the key belongs to another request, or the design cannot continue without an arm because it has no
            coins of its own or waits for outcomes. Nothing has changed in this case.

        Notes
        -----
        The person who removes an arm may have seen outcomes. The log therefore states which arms were removed
        and when, and that choices may have followed rewards, and it guarantees neither a floor nor privacy.
        """
        key, rounds, arms = plain(key), self._rounds, self._participants.arms
        check("remove_arm", key=(key, identity))
        code = self._participants.arm_code("remove_arm", arm)
        place = rounds.answers.known("remove_arm", key)
        if place is None:
            refuse("remove_arm", self._irremovable(code))
            place = len(rounds.removed)
            rounds.removed.append((code, rounds.decided))
            rounds.answers.keep("remove_arm", key, place)
        elif rounds.removed[place][0] != code:
            rounds.answers.refuse("remove_arm", key, "remove_arm")
        gone = {code for code, _ in rounds.removed[: place + 1]}
        return tuple(label for code, label in enumerate(arms) if code not in gone)

    def _irremovable(self, code: int) -> list[str]:
        """Explain why an arm cannot be removed."""
        rounds, arms = self._rounds, self._participants.arms
        if not self.rounds:
            return ["no one has been assigned yet: open a session without the arm"]
        before = dict(rounds.removed)
        if code in before:
            return [f"arm {arms[code]!r} was already removed after round {before[code]}"]
        if len(before) + 1 == len(arms):
            return [f"arm {arms[code]!r} is the only one left: pause or finish instead"]
        known = self.propensities(self.rounds) is not None
        return unfit(self._name, self._pending, self._own_coins, known)

    def finish(self) -> None:
        """Once the horizon is exhausted, let the outcomes enter whose windows no further participant can end.

        For sessions created with `window`. These outcomes enter in the order of decisions; an outcome that
        has not arrived is missing. No outcome can be recorded afterwards. The guarantee covers these
        releases, provided that the time was not chosen on the basis of values: call this method on a fixed
        date, or when all outcomes have arrived.

        Raises
        ------
        ParameterError
            If there is no window, or participants can still arrive.
        """
        problems = []
        if self._window is None:
            problems.append("the session has no window: each outcome was used when it was recorded")
        elif self.rounds < self._horizon:
            problems.append(
                f"{self._horizon - self.rounds:,} more participants can still enrol, so windows can still end"
            )
        refuse("finish", problems)
        self.end_windows()

    def end_windows(self) -> None:
        """Implement `finish`; nothing happens without a window, or if participants can still arrive."""
        if self._window is None or self.rounds < self._horizon:
            return
        self._stepper.begun(int(self._rounds.record.status[self.rounds - 1]), self.rounds)
        first = max(self.rounds - 1 - self._window, 0)
        while first + self._closed < self.rounds:
            due = first + self._closed
            self._learn(due, float(self._rounds.record.reward[due]))
            self._closed += 1
        if self._release_in_time is not None and self.in_time is None:
            record, punctual = self._rounds.record, np.array(list(map(self._in_time, range(self.rounds))))
            arms, rewards = record.action[: self.rounds], record.reward[: self.rounds]
            self.in_time = self._release_in_time(
                in_time_units(arms, rewards, punctual, self._participants.n_arms)
            )

    def undue(self, step: int) -> bool:
        """Whether the outcome of a round has not yet entered, because its window has not ended."""
        return self._window is not None and step >= self.rounds - 1 - self._window and not self._closed

    def _learn(self, step: int, reward: float) -> None:
        """Pass the outcome of a round to the design, or the value that replaces a missing one (NaN)."""
        arm, status = int(self._rounds.record.action[step]), int(self._rounds.record.status[step])
        self.blind |= self.by_context and step in self._rounds.erased
        if self.blind:
            return
        if np.isnan(reward):
            assert self._lost is not None
            reward = self._lost
        self._stepper.update(self._rounds.context(step), arm, reward, status, self.rounds)

    def log(self, missing: str | None = None, *, amended: bool = True) -> AdaptiveLog:
        """The log of the rounds so far, as from `Design.run`.

        Parameters
        ----------
        missing : {"drop", "bounds", "worst", "best"}, optional
            How to treat outcomes that have not arrived, as for `AdaptiveLog`: required if there are such
            outcomes.
        amended : bool
            Whether amended outcomes have their new values, or the values that the design used.

        Returns
        -------
        AdaptiveLog
            The log, with propensities, releases and guarantee; rewards that are pending or lost are missing.
            The session is not affected, and continues.

        Raises
        ------
        ParameterError
            If no one has been assigned yet, or outcomes are missing and `missing` is not given, or is
            ``"bounds"``, ``"worst"`` or ``"best"`` without a finite reward range.
        """
        check("log", missing=(missing, _MISSING), amended=(amended, BOOLEAN))
        if not self.rounds:
            raise ParameterError("log", ["no one has been assigned yet"])
        run = run_of(self._rounds, self._stepper, self._window, self._lost, missing, amended)
        run = replace(run, in_time=self.in_time)
        absent = int(np.count_nonzero(np.isnan(run.record.reward)))
        if absent and missing is None:
            few = "1 outcome is missing" if absent == 1 else f"{absent:,} outcomes are missing"
            problem = f'{few}: set missing="drop" or "bounds" to define what that means'
            raise ParameterError("log", [problem])
        if absent and missing != "drop" and not np.isfinite(self._participants.reward_range).all():
            problem = f"missing={missing!r} requires a session that was opened with a finite reward_range"
            raise ParameterError("log", [problem])
        return self._make_log(run)

    def __repr__(self) -> str:
        waiting = len(self.pending)
        return f"Session({self._name}: {self.rounds:,} of {self._horizon:,} rounds, {waiting:,} pending)"
