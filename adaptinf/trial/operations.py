"""Operator actions on a trial, other than requests; each is a row of the journal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.parameters import check, refuse
from adaptinf.sessions import Decision, Outcome
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import Act, act_of
from adaptinf.trial.planned_looks import LookOperations
from adaptinf.trial.replay import Replay
from adaptinf.trial.trial_noise import NodeRows, NoiseAudit, audited

if TYPE_CHECKING:
    from adaptinf.trial.requests import Requests

_Answer = TypeVar("_Answer")


def _trials(name: str, value: Any) -> list[str]:
    """Problems with the other trials."""
    if isinstance(value, Sequence) and all(isinstance(one, Operations) for one in value):
        return []
    return [f"{name} must be a list of open trials, got {value!r:.60}"]


def _assigned(replay: Replay, unit: Any, context: Any, site: Any, key: Any) -> tuple[Decision, Entry | None]:
    return replay.assign_new(unit, context, key, site)


class Operations(LookOperations):
    """A trial as seen by its operator."""

    _requests: Requests

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def assign_many(
        self,
        units: Sequence[str | int],
        contexts: Sequence[Any] | None = None,
        *,
        keys: Sequence[str | int],
        sites: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Assign arms to several participants, in order, with a single write to disk.

        Parameters
        ----------
        units : sequence
            Identifiers of the participants.
        contexts : sequence, optional
            The context of each participant, as for `assign`.
        keys : sequence
            A key for each request, as for `assign`.
        sites : sequence of str, optional
            The site of each participant, as for `assign`.

        Returns
        -------
        list of Decision
            The decisions that `assign` would make one after the other. All are on disk.

        Raises
        ------
        ParameterError
            If requests are refused; the message lists all refused requests with the reasons. Nothing has
            changed in this case.
        FileError
            As in `assign`: either none or all of the requests were stored. Repeat the requests with their
            keys.
        """
        nothing = [None] * len(units)
        columns = {"units": units, "contexts": nothing if contexts is None else contexts}
        columns |= {"sites": nothing if sites is None else sites, "keys": keys}
        return self._all("assign_many", columns, _assigned)

    def record_many(
        self, decision_ids: Sequence[int], rewards: Sequence[float | None], *, keys: Sequence[str | int]
    ) -> list[Outcome]:
        """Record several outcomes, in order, with a single write to disk.

        Parameters
        ----------
        decision_ids : sequence of int
            The `id` of each decision.
        rewards : sequence of float or None
            Their outcomes, as for `record`.
        keys : sequence
            A key for each request, as for `record`.

        Returns
        -------
        list of Outcome
            The outcomes that `record` would store one after the other. All are on disk.

        Raises
        ------
        ParameterError
            If requests are refused; the message lists all refused requests with the reasons. Nothing has
            changed in this case.
        FileError
            As in `assign_many`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> trial = ai.Trial.create(path, ai.designs.Thompson(), arms=["letter", "call"], horizon=500)
        >>> made = trial.assign_many(["Ann", "Bob", "Cy"], keys=["a1", "a2", "a3"])
        >>> told = trial.record_many([one.id for one in made], [1.0, 0.0, 1.0], keys=["r1", "r2", "r3"])
        >>> trial.status().pending
        0
        >>> trial.close()
        """
        columns = {"decision_ids": decision_ids, "rewards": rewards, "keys": keys}
        return self._all("record_many", columns, Replay.record)

    def _all(
        self,
        subject: str,
        columns: dict[str, Sequence[Any]],
        act: Callable[..., tuple[_Answer, Entry | None]],
    ) -> list[_Answer]:
        """The answers to requests of one kind, whose arguments are in columns: either all or none."""
        lengths = {name: len(column) for name, column in columns.items()}
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        refuse(subject, [f"all must have the same length: {told}"] if len(set(lengths.values())) > 1 else [])
        requests = list(zip(*columns.values(), strict=True))

        def acts(replay: Replay) -> Iterator[tuple[_Answer, Entry | None]]:
            problems = []
            for number, request in enumerate(requests):
                try:
                    yield act(replay, *request)
                except ParameterError as error:
                    problems += [
                        f"request {number} (key {request[-1]!r:.60}): {each}" for each in error.problems
                    ]
            refuse(subject, problems)

        return self._requests.change_all(acts)

    def amend(
        self, decision_id: int, reward: float | None, *, key: str | int, reason: str, by: str
    ) -> Outcome:
        """Correct an outcome that was recorded incorrectly; the original value stays in the journal.

        The log contains the new value. The design keeps what it has learned: past decisions are unchanged,
        and future ones are made as if nothing had been corrected.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            The correct outcome, as in `record`; None if it will never arrive.
        key : str or int
            Identifies the request, as for `assign`.
        reason, by : str
            The reason and the person responsible; the journal stores both.

        Returns
        -------
        Outcome
            The outcome now in the log. It is on disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such decision, it has no outcome yet or already
            has this one, the reward is out of range, or the key belongs to another request. Nothing has
            changed in this case.
        FileError
            As in `assign`.
        """
        return self._requests.change(lambda replay: replay.amend(decision_id, reward, key, reason, by))

    def unblind(self, unit: str | int, *, reason: str, by: str) -> Decision:
        """Reveal the arm of one participant in an emergency; the journal records this.

        Parameters
        ----------
        unit : str or int
            Identifier of the participant.
        reason, by : str
            The reason and the person who asks; the journal stores both.

        Returns
        -------
        Decision
            The original decision. Each call is recorded on disk as a separate row in `history`, even if the
            trial is paused or finished.

        Raises
        ------
        ParameterError
            If no participant with this name was assigned, or `reason` or `by` is missing. Nothing has changed
            in this case.
        FileError
            If the file cannot be written, in which case the arm is not revealed.
        """
        return self._requests.change(lambda replay: replay.unblind(unit, reason, by))

    def pause(self, reason: str, by: str | None = None) -> None:
        """Assign no participants until `resume`; outcomes are still accepted.

        Parameters
        ----------
        reason : str
            The reason; the journal stores it.
        by : str, optional
            The person responsible, which the journal also stores.
        """
        self._requests.change(lambda replay: (None, replay.turn("pause", reason, by)))

    def resume(self, reason: str, by: str | None = None) -> None:
        """Assign again.

        Parameters
        ----------
        reason, by
            As in `pause`.
        """
        self._requests.change(lambda replay: (None, replay.turn("resume", reason, by)))

    def finish(self, reason: str | None = None, by: str | None = None) -> None:
        """End the trial permanently: no assignments, and no outcomes recorded or amended.

        Parameters
        ----------
        reason, by
            As in `pause`. The reason may be omitted if the trial's plan has ended it: the journal then states
            the look. If the plan has not ended the trial and the horizon has not been reached, the log stores
            the reason, and has ``stopping="data-chosen"``: the person who ended the trial may have seen
            outcomes.
        """
        self._requests.change(lambda replay: (None, replay.turn("finish", reason, by)), purge=True)

    def restore(self, *, reason: str, by: str, head: str | None = None, runs: int | None = None) -> None:
        """Let a copy replace its trial, whose file has been lost.

        Until then, a copy, made by `backup` or in any other way, can be read and its participants erased, but
        it accepts no other request: the trial may have continued since the copy was made. The copy does not
        contain answers given after it was made, and participants who return are assigned again, with coins
        that the lost file did not have. A private design draws noise again for nodes for which the lost file
        had already drawn it, so the guarantee depends on the number of runs, which cannot be determined from
        a copy.

        Parameters
        ----------
        reason, by : str
            The reason and the person responsible; the journal stores both.
        head : str, optional
            The `head` of the last status of the lost file, after which it gave no further answer. If this
            head is equal to the head of the copy, nothing was lost, and the guarantee of logs is unchanged.
        runs : int, optional
            Number of lost files that continued from this copy: the trial's own, and each earlier one that was
            restored from the same copy and continued. For each of them, the guarantee of logs includes
            epsilon once more, as stated by the operator. If neither `head` nor `runs` is given, logs have no
            guarantee, and this cannot be changed later.

        Raises
        ------
        ParameterError
            If the file is not a copy, its trial is finished, the head is not that of the copy's last row, or
            `reason` or `by` is missing. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with ai.Trial.create(f"{folder}/trial.db", ai.designs.Thompson(), 2, horizon=100) as trial:
        ...     decision = trial.assign("participant 1", key="request 1")
        ...     trial.backup(f"{folder}/copy.db")
        >>> with ai.Trial.open(f"{folder}/copy.db") as copy:
        ...     copy.restore(reason="the disk broke", by="Dr. Ames", runs=1)
        ...     copy.assign("participant 2", key="request 2").id
        2
        """
        behind = self._requests.journal.behind
        self._requests.change(lambda replay: (None, replay.restore(reason, by, head, runs, behind)))

    def moved(self, *, reason: str, by: str) -> None:
        """Declare that the trial's file was moved to another disk or machine, and no copy continues.

        The journal identifies the file: a file renamed on the same disk remains the same, and any other file
        with the same rows opens as a copy. A copy made by `backup` must be restored instead.

        Parameters
        ----------
        reason, by : str
            The reason and the person responsible; the journal stores both. Logs state that the guarantee
            depends on this declaration.

        Raises
        ------
        ParameterError
            If the file is where its journal says, it was made by `backup`, or `reason` or `by` is missing.
            Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import shutil, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with ai.Trial.create(f"{folder}/trial.db", ai.designs.Thompson(), 2, horizon=100) as trial:
        ...     decision = trial.assign("participant 1", key="request 1")
        >>> place = shutil.copy(f"{folder}/trial.db", f"{folder}/new.db")
        >>> with ai.Trial.open(place) as trial:
        ...     trial.moved(reason="a new server", by="Dr. Ames")
        ...     trial.assign("participant 2", key="request 2").id
        2
        """
        self._requests.change(lambda replay: (None, replay.moved(reason, by)))

    def remove_arm(self, arm: Any, *, key: str | int, reason: str, by: str) -> tuple[Any, ...]:
        """Never assign an arm again; the others receive its probability in proportion to their own.

        Arms can be removed if the design has its own coins and accepts outcomes in any order. The person who
        removes an arm may have seen outcomes, so logs state which arm was removed and when, and guarantee
        neither a floor nor privacy.

        Parameters
        ----------
        arm : label
            One of the arms.
        key : str or int
            Identifies the request, as for `assign`.
        reason, by : str
            The reason and the person responsible; the journal stores both.

        Returns
        -------
        tuple of labels
            The remaining arms. The removal is on disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such arm, it was already removed or is the last
            one, no one has been assigned yet, the design cannot continue without an arm, or the key belongs
            to another request. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b", "c"], horizon=100) as trial:
        ...     decision = trial.assign("participant 1", key="visit 1")
        ...     trial.remove_arm("b", key="safety 1", reason="two seizures", by="the safety board")
        ('a', 'c')
        """
        return self._requests.change(lambda replay: replay.remove_arm(arm, key, reason, by))

    def add_arm(self, arm: Any, *, key: str | int, reason: str, by: str) -> tuple[Any, ...]:
        """Add an arm, which can be assigned from now on; until now, its probability was 0.

        The design continues as if it had had the arm from the beginning and had never assigned it. Arms can
        be added to `Uniform`, `EpsilonGreedy`, `Thompson`, `TopTwoThompson` and `ExplorationSampling` without
        `initial_pulls`, and to a `Mixture` of `UCB` or `KLUCB`. The person who adds an arm may have seen
        outcomes, so logs state which arm joined and when, and guarantee neither a floor nor privacy. In a
        blinded trial, each site needs kits of the arm before its next participant.

        Parameters
        ----------
        arm : label
            A new label.
        key : str or int
            Identifies the request, as for `assign`.
        reason, by : str
            The reason and the person responsible; the journal stores both.

        Returns
        -------
        tuple of labels
            All arms. The addition is on disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, has a plan, or there is such an arm, no one has been assigned
            yet, the design cannot continue with a further arm, or the key belongs to another request. Nothing
            has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Uniform(), arms=["a", "b"], horizon=100) as trial:
        ...     decision = trial.assign("participant 1", key="visit 1")
        ...     arms = trial.add_arm("c", key="protocol 2", reason="amendment 2", by="the sponsor")
        ...     decision = trial.assign("participant 2", key="visit 2")
        ...     trial.log("drop").frame["propensity_c"].round(2).tolist()
        [0.0, 0.33]
        """
        return self._requests.change(lambda replay: replay.add_arm(arm, key, reason, by))

    def erase(self, unit: str | int, *, key: str | int, reason: str, by: str) -> int:
        """Make a participant's data in the file unreadable: name, context, keys and reasons.

        The arm, the propensities and the outcome remain, as do the times of the rows. An outcome that has not
        arrived counts as lost. Earlier backups still contain all of these data.

        Parameters
        ----------
        unit : str or int
            Identifier of the participant.
        key : str or int
            Identifies the request, as for `assign`. The key remains readable, as do the reason and the person
            responsible: do not include names of participants in them.
        reason, by : str
            The reason and the person responsible.

        Returns
        -------
        int
            Id of the decision whose participant was erased. No file of the trial contains these fields any
            more.

        Warns
        -----
        AdaptinfWarning
            If the trial is in PostgreSQL, which keeps values that were overwritten; the warning says where
            they remain.

        Raises
        ------
        ParameterError
            If no participant with this name was assigned or they were already erased, the design waits for
            their outcome or is user-defined and uses contexts, or the key belongs to another request. Nothing
            has changed in this case.
        FileError
            As in `assign`: repeat the request with its key, so that nothing remains of the fields.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
        ...     decision = trial.assign("participant 1", key="visit 1")
        ...     trial.erase("participant 1", key="letter 12", reason="a request", by="data protection")
        1
        """
        erased = self._requests.change(lambda replay: replay.erase(unit, key, reason, by), purge=True)
        if remains := self._requests.journal.store.remains:
            warnings.warn(f"erase: {remains}", AdaptinfWarning, stacklevel=2)
        return erased

    def history(self) -> tuple[Act, ...]:
        """Operator actions on the trial, in order: by whom, when and why."""
        return self._requests.read(lambda replay: tuple(map(act_of, replay.acts)))

    def audit_noise(self, others: Sequence[Operations] = ()) -> NoiseAudit:
        """Compare the noise drawn by the trial with its distribution: scale, tails, zeros, lattices, repeats.

        **Not covered** by the trial's guarantee: the tests use the noise itself. A person with both the
        result and a release knows more than the guarantee allows, so keep the result with the file.

        Parameters
        ----------
        others : sequence of Trial
            Other trials, which must be open: their noise is examined as well, and no draw may recur in
            another file. These may include copies and their continuations: rows that several files contain
            count once.

        Returns
        -------
        NoiseAudit
            All kinds of tests with their findings, and a table of them.

        Raises
        ------
        ParameterError
            If a trial draws no noise, or no trial has drawn any yet.
        FileError, JournalError
            If a file cannot be read.

        Notes
        -----
        Distributions are exact: integers from the discrete Laplace distribution at the scale stated in the
        row, which is checked against the design when the trial is opened. All tests together raise a false
        alarm with probability at most 1e-6. Their power depends on the number of nodes: tails that are cut
        off at c scales are detected after about 17 exp(c) nodes
        ([limits](../auditing.md#how-large-a-fault-is-seen)).

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.1)
        >>> with ai.Trial.create(path, design, arms=2, horizon=40, outcome_window=0) as trial:
        ...     for number in range(40):
        ...         decision = trial.assign(f"participant {number}", key=f"assign {number}")
        ...         outcome = trial.record(decision.id, 1.0, key=f"record {number}")
        ...     found = trial.audit_noise()
        >>> found.nodes, found.findings
        (39, ())
        """
        check("audit_noise", others=(others, _trials))
        trials = [self, *others]
        rows = [trial._requests.read(trial._noise_rows) for trial in trials]
        return audited(rows, [trial._requests.journal.path.name for trial in trials])

    def _noise_rows(self, replay: Replay) -> NodeRows:
        """The rows of noise, if the trial draws any."""
        if "noise" not in replay.declared:
            name = replay.declared["design"]
            raise ParameterError("audit_noise", [f"{self._requests.journal.path}: {name} draws no noise"])
        return self._requests.journal.nodes()
