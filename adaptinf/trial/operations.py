"""What an operator does to a trial beside its requests; each act is a row of the journal."""

from __future__ import annotations

from adaptinf.sessions import Outcome
from adaptinf.trial.history import Act, act_of
from adaptinf.trial.requests import Requests


class Operations:
    """A trial as its operator has it."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def amend(
        self, decision_id: int, reward: float | None, *, key: str | int, reason: str, by: str
    ) -> Outcome:
        """Correct an outcome that was recorded wrongly; the first one stays in the journal.

        The log has the new value. The design keeps what it learnt: decisions that were made stand, and those
        to come are made as if nothing had been corrected.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            The right outcome, as for `record`; None says that there is none.
        key : str or int
            Names the request, as for `assign`.
        reason, by : str
            Why, and who does it; the journal keeps both.

        Returns
        -------
        Outcome
            What the log has now. It is on the disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such decision, it has no outcome yet or this one
            already, the reward is out of range, or the key stands for another request. Nothing has changed.
        FileError
            As for `assign`.
        """
        return self._requests.change(lambda replay: replay.amend(decision_id, reward, key, reason, by))

    def pause(self, reason: str, by: str | None = None) -> None:
        """Assign nobody until `resume`; outcomes are still taken.

        Parameters
        ----------
        reason : str
            Why; the journal keeps it.
        by : str, optional
            Who does it; the journal keeps that too.
        """
        self._requests.change(lambda replay: (None, replay.turn("pause", reason, by)))

    def resume(self, reason: str, by: str | None = None) -> None:
        """Assign again.

        Parameters
        ----------
        reason, by
            As for `pause`.
        """
        self._requests.change(lambda replay: (None, replay.turn("resume", reason, by)))

    def finish(self, reason: str, by: str | None = None) -> None:
        """End the trial for good: nobody is assigned, no outcome recorded or amended any more.

        Parameters
        ----------
        reason, by
            As for `pause`.
        """
        self._requests.change(lambda replay: (None, replay.turn("finish", reason, by)))

    def history(self) -> tuple[Act, ...]:
        """What was done to the trial beside its requests, in order: by whom, when and why."""
        return self._requests.read(lambda replay: tuple(map(act_of, replay.acts)))
