"""How a trial stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TrialStatus:
    """How a trial stands; it tells no outcomes and no propensities.

    Attributes
    ----------
    design : str
        Name of the design.
    arms : tuple of labels
        The arms.
    state : {"open", "paused", "finished"}
        Whether it takes requests.
    reason : str
        Why it does not.
    rounds, horizon : int
        Participants who have been assigned, and the most that there can be.
    pending : int
        Outcomes that are not in yet.
    removed : tuple of labels
        Arms that are not assigned any more.
    erased : int
        Participants whose fields were erased.
    restored : int
        How often a copy took the trial's place.
    copied : bool
        Whether the file is a copy that has not done so, made by `backup` or in any other way: it can be read,
        and takes no requests.
    unrepeatable : int
        Decisions that stand as they were written, since they rest on a context that was erased: nobody can
        make them again.
    rows : int
        Rows of the journal.
    head : str
        Digest of the last row, which stands for all of them: keep it elsewhere, and `Trial.verify` can tell
        whether rows were lost or changed since.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     decision = trial.assign("participant 1", key="request 1")
    ...     trial.status().pending
    1
    """

    design: str
    arms: tuple[Any, ...]
    state: str
    reason: str
    rounds: int
    horizon: int
    pending: int
    removed: tuple[Any, ...]
    erased: int
    restored: int
    copied: bool
    unrepeatable: int
    rows: int
    head: str
