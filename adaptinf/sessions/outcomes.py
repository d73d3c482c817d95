"""Outcomes in a session: recorded when they arrive, lost, or corrected."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, refuse
from adaptinf.sessions.participants import Participants, plain
from adaptinf.sessions.session_rounds import Outcome, Rounds, identity, reward_problems, same_reward


class Telling:
    """The part of a session that records outcomes."""

    _name: str
    _participants: Participants
    _rounds: Rounds
    _pending: str
    _window: int | None
    _lost: float | None
    _closed: int
    """Number of outcomes that have entered since the horizon was reached."""

    def _learn(self, step: int, reward: float) -> None:
        """Pass the outcome of a round to the design, or the value that replaces a missing one (NaN)."""
        raise NotImplementedError

    def record(self, decision_id: int, reward: float | None, key: Any = None) -> Outcome:
        """Record the outcome of a decision.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            A number in the reward range of the session; None if the outcome will never arrive.
        key : str or int, optional
            Identifies the request, as for `assign`.

        Returns
        -------
        Outcome
            The recorded outcome, also if the same outcome is recorded twice.

        Raises
        ------
        ParameterError
            If there is no such decision, it already has a different outcome, the reward is outside the range,
            the key belongs to another request, or the outcome will never arrive although the design needs it.
            Nothing has changed in this case.
        """
        step, value, key = self._told("record", decision_id, reward, key)
        answers, answered = self._rounds.answers, self._rounds.answers.known("record", key)
        if answered is not None:
            if answered != step or not self._has(step, value):
                answers.refuse("record", key, "record")
        else:
            if self._rounds.known[step]:
                self._refuse_other_reward(step, value)
            else:
                refuse("record", ["the session is finished"] if self._closed else [])
                self._enter(step, value)
            answers.keep("record", key, step)
        return Outcome(step + 1, value, self._in_time(step))

    def _told(self, subject: str, decision_id: Any, reward: Any, key: Any) -> tuple[int, float | None, Any]:
        """Step, reward and key in a request to record an outcome."""
        key = plain(key)
        problems = Count()("decision_id", decision_id) or self._unknown(decision_id)
        problems += reward_problems(reward, self._participants.reward_range) + identity("key", key)
        refuse(subject, problems)
        return int(decision_id) - 1, None if reward is None else float(reward), key

    def _has(self, step: int, value: float | None) -> bool:
        """Whether the recorded outcome of a round equals the given one."""
        return same_reward(float(self._rounds.record.reward[step]), value)

    def amend(self, decision_id: int, reward: float | None, key: Any = None) -> Outcome:
        """Correct an outcome that was recorded incorrectly.

        The log contains the new value. The design keeps what it has learned: past choices are unchanged, and
        future choices are made as if nothing had been corrected.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            The correct outcome, as in `record`; None if it will never arrive.
        key : str or int, optional
            Identifies the request, as for `assign`.

        Returns
        -------
        Outcome
            The outcome now in the log; `in_time` is false, because the design does not learn from it.

        Raises
        ------
        ParameterError
            If there is no such decision, it has no outcome yet or already has this one, the reward is outside
            the range, or the key belongs to another request. Nothing has changed in this case.
        """
        step, value, key = self._told("amend", decision_id, reward, key)
        rounds = self._rounds
        known = rounds.answers.known("amend", key)
        if known is not None:
            before, told = rounds.amendments[known]
            if before != step or not same_reward(told, value):
                rounds.answers.refuse("amend", key, "amend")
        else:
            self._refuse_amendment(step, value)
            rounds.answers.keep("amend", key, len(rounds.amendments))
            rounds.amendments.append((step, np.nan if value is None else value))
        return Outcome(step + 1, value, False)

    def _refuse_amendment(self, step: int, value: float | None) -> None:
        """Explain why there is no outcome to correct."""
        rounds = self._rounds
        if not rounds.known[step]:
            raise ParameterError("amend", [f"decision {step + 1} has no outcome yet: record it"])
        if same_reward(rounds.amended().get(step, float(rounds.record.reward[step])), value):
            raise ParameterError("amend", [f"decision {step + 1} already has this outcome"])

    def _unknown(self, decision_id: int) -> list[str]:
        decided = self._rounds.decided
        if decision_id <= decided:
            return []
        made = f"decisions 1 to {decided} have been made" if decided else "no decision has been made yet"
        return [f"there is no decision {decision_id}: {made}"]

    def _refuse_other_reward(self, step: int, value: float | None) -> None:
        if self._has(step, value):
            return
        problem = f"decision {step + 1} already has another outcome: amend it if that is a correction"
        raise ParameterError("record", [problem])

    def _enter(self, step: int, value: float | None) -> None:
        """Store a new outcome; the design receives it immediately, or when its window ends."""
        if value is None and self._pending == "last" and self._lost is None:
            problem = (
                f"decision {step + 1} requires an outcome: {self._name} has no rule for an outcome that "
                "never arrives"
            )
            raise ParameterError("record", [problem])
        number = np.nan if value is None else value
        if self._window is None and (value is not None or self._pending != "any"):
            self._learn(step, number)
        self._rounds.tell(step, number)

    def _in_time(self, step: int) -> bool:
        """Whether the outcome of a round was available when the design needed it."""
        rounds = self._rounds
        punctual = self._window is None or bool(rounds.known[step] <= step + 1 + self._window)
        return punctual and not np.isnan(rounds.record.reward[step])
