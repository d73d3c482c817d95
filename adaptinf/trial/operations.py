"""What an operator does to a trial beside its requests; each act is a row of the journal."""

from __future__ import annotations

from adaptinf.sessions import Decision, Outcome
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

    def unblind(self, unit: str | int, *, reason: str, by: str) -> Decision:
        """Tell the arm of one participant in an emergency; the journal keeps that it was told.

        Parameters
        ----------
        unit : str or int
            Who it is.
        reason, by : str
            Why, and who asks; the journal keeps both.

        Returns
        -------
        Decision
            As it was made. That it was told is on the disk, also where the trial is paused or finished; each
            call is a row of its own, in `history`.

        Raises
        ------
        ParameterError
            If nobody of that name was assigned, or reason or by is missing. Nothing has changed.
        FileError
            If the file cannot be written: the arm is not told then.
        """
        return self._requests.change(lambda replay: replay.unblind(unit, reason, by))

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
