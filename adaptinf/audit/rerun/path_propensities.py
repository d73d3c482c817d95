"""Propensities of a design along a given path, to be compared with a log or filled into one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import LoggedRows, design_of, logged_rows
from adaptinf.designs.base import Design
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, refuse
from adaptinf.simulation.run import Results, empty_record
from adaptinf.typing import FloatArray, IntArray

_AGREE = 1e-6
# A log is said to contradict a design with hidden draws only if this many walks agree that it does.
_WALKS = 1_000


class PathFollower:
    """A design run along given paths, with its propensities on them."""

    def __init__(self, design: Design, log: AdaptiveLog, rows: LoggedRows) -> None:
        self.rows = rows
        self.program = design.program(rows, log.n_rounds, recording=True)
        self.world = self.program.world(rows, log.n_rounds)
        self.state = np.zeros(self.program.state_shape)
        self.record = empty_record(log.n_rounds, log.n_arms, True, rows.dimension)

    @property
    def mixes(self) -> bool:
        """Whether the design is overridden by coins that a path does not reveal."""
        return bool(self.program.share.shape[0])

    @property
    def has_propensities(self) -> bool:
        """Whether the design has propensities along a given path."""
        return bool(self.program.tables.propensity.shape[0])

    def walk(self, path: IntArray, stream: np.random.Generator) -> FloatArray:
        """Counts and sums by arm along a path; an empty path lets the design choose."""
        tallies = np.zeros((1, self.program.n_statuses, self.rows.n_features, self.rows.n_arms, 3))
        results = Results(tallies, np.zeros((1, self.program.n_outcomes)), np.zeros(1), self.record)
        world = self.world._replace(forced=path)
        self.program.entry(self.program.tables, world, stream, self.state, results)
        return np.asarray(tallies.sum(axis=(0, 1, 2)), dtype=np.float64)


def fixed_propensities(design: Design, log: AdaptiveLog, rows: LoggedRows) -> FloatArray | None:
    """Propensities of the logged arms under a design along the logged path, shape (rounds,)."""
    follower = PathFollower(design, log, rows)
    if follower.mixes or not follower.has_propensities:
        return None
    found = _followed(follower, log.arrays.action, 0)
    if np.isnan(found).any():  # Some designs name an arm without giving its probability.
        return None
    # Frequencies of posterior draws are coarse, so two walks may agree by chance. A log that seems to
    # contradict its design is therefore walked many times.
    walks = _WALKS if contradiction(log, found, "") else 2
    same = all(np.array_equal(found, _followed(follower, log.arrays.action, i)) for i in range(1, walks))
    return found if same else None


def _followed(follower: PathFollower, path: IntArray, seed: int) -> FloatArray:
    follower.walk(path, np.random.default_rng(seed))
    return follower.record.propensity.copy()


def contradiction(log: AdaptiveLog, implied: FloatArray | None, design: str) -> list[str]:
    """Problems if propensities that a log declares to be exact differ from the design's along its path."""
    logged = log.arrays.propensity
    if logged is None or implied is None or log.propensity_status != "exact":
        return []
    off = np.abs(logged - implied) > _AGREE
    if not off.any():
        return []
    row = int(np.argmax(off))
    return [
        f"the logged propensities differ from those of {design}: {logged[row]:.6g} in the log, "
        f"{implied[row]:.6g} under the design in row {row} (rows are counted from 0)"
    ]


def record_problems(log: AdaptiveLog, design: Design) -> list[str]:
    """Evidence in the log that it was collected by another design, or with other parameters."""
    told = log.design
    if told is None or not told.parameters:
        return []
    own = design.record()
    if own.name != told.name:
        return [f"the log was collected by {told.name}, not by {own.name}"]
    other = [
        f"{name}={told.parameters.get(name)!r:.40} in the log, {value!r:.40} here"
        for name, value in own.parameters.items()
        if _plain(told.parameters.get(name)) != _plain(value)
    ]
    if not other:
        return []
    return [f"the log was collected by {own.name} with other parameters ({'; '.join(other)})"]


def contradictions(log: AdaptiveLog, design: Design) -> list[str]:
    """Evidence that another design collected the log: its record, or the propensities along its path."""
    found = record_problems(log, design)
    if found or log.arrays.propensity is None or log.propensity_status != "exact":
        return found
    problems: list[str] = []
    rows = logged_rows(log, design, None, None, problems)
    if rows is None or design._environment_problems(rows, log.n_rounds):
        return []
    return contradiction(log, fixed_propensities(design, log, rows), f"{design!r:.80}")


def _plain(value: Any) -> Any:
    """A parameter in the form in which it is stored in files."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value


_SUBJECT = "with_propensities"
_SHARES = "batch-shares"
_LEAST = 10
_SAME = 1e-12


def with_propensities(
    log: AdaptiveLog,
    design: Any = None,
    *,
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
    walks: int = 200,
) -> AdaptiveLog:
    """Add the propensity of every arm to a log.

    Parameters
    ----------
    log : AdaptiveLog
        The log; it is not changed.
    design : design or "batch-shares", optional
        The design that collected the log, by default the one in its record; or the shares of the arms in each
        batch, which are estimates.
    context, features : optional
        The context that the design used, as in `randomization_test`.
    walks : int
        Number of times that a design with random propensities is run along the path.

    Returns
    -------
    AdaptiveLog
        The same log with ``propensity`` and ``propensities``. The propensities are exact if they follow from
        the logged actions and rewards. Otherwise (posterior draws) they are means over the walks and, like
        shares of batches, marked as estimated. If the design does not use contexts, the log then records this
        (`context_free`).

    Raises
    ------
    ParameterError
        If no design is known, the design could not have chosen the logged arms, or the log's own propensities
        contradict the design; or if a batch has fewer than 10 rounds.
    InvalidForLog
        If the design has no propensities given the past, or the log has no batches.

    Notes
    -----
    The design's own kernel is run along the logged path: the propensities of a round are computed from the
    arms and rewards of the earlier rounds. Shares of batches assume that assignment probabilities are
    constant within a batch, whatever the context.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> whole = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=300, rng=1)
    >>> frame = whole.frame[["action", "reward"]]
    >>> log = ai.AdaptiveLog(frame, action="action", reward="reward", about={"design": design})
    >>> filled = ai.audit.with_propensities(log)
    >>> filled.propensity_status
    'exact'
    >>> bool((abs(filled.arrays.propensities - whole.arrays.propensities) < 1e-12).all())
    True
    """
    require_log(_SUBJECT, log)
    refuse(_SUBJECT, COUNT("walks", walks))
    if isinstance(design, str):
        if design != _SHARES:
            problem = f"design must be a design, a log that names one, or {_SHARES!r}, got {design!r:.60}"
            raise ParameterError(_SUBJECT, [problem])
        return _filled(log, _batch_shares(log), "estimated")
    every, drawn, free = _on_path(log, design, context, features, int(walks))
    filled = _filled(log, every, "estimated" if drawn else "exact")
    filled.context_free = log.context_free if log.context_free is not None else free
    return filled


def _on_path(
    log: AdaptiveLog, design: Any, context: Any, features: Any, walks: int
) -> tuple[FloatArray, bool, bool | None]:
    """Propensities (T, K) along the logged path, whether they are random, and whether no context was used."""
    problems: list[str] = []
    given = design_of(log if design is None else design, problems)
    rows = None
    if given is not None:
        problems += record_problems(log, given)
        rows = logged_rows(log, given, context, features, problems)
    if rows is not None and given is not None:
        problems += given._environment_problems(rows, log.n_rounds)
    if problems or given is None or rows is None:
        raise ParameterError(_SUBJECT, problems)
    follower = PathFollower(given, log, rows)
    known = follower.has_propensities and not follower.mixes
    first = _walked(follower, log, 0) if known else np.full((1, 1), np.nan)
    if np.isnan(first).any():
        reason = f"{type(given).__name__} has no propensities that follow from the logged arms and rewards"
        raise InvalidForLog(_SUBJECT, reason, [f"design={_SHARES!r}, for a log with batches"])
    second = _walked(follower, log, 1)
    drawn = bool(np.any(np.abs(first - second) > _SAME))
    every = first
    if drawn:
        more = (_walked(follower, log, seed) for seed in range(2, walks))
        every = sum(more, first + second) / max(walks, 2)
    own = every[np.arange(log.n_rounds), log.arrays.action]
    never = np.flatnonzero(own <= 0.0)
    if len(never):
        arm = log.arms[log.arrays.action[never[0]]]
        problem = (
            f"{given!r:.80} could not have chosen arm {arm!r} in row {never[0]} (rows are counted from 0)"
        )
        raise ParameterError(_SUBJECT, [f"{problem}; {len(never)} such rows"])
    refuse(_SUBJECT, [] if drawn else contradiction(log, own, f"{given!r:.80}"))
    return every, drawn, True if given.traits.uses_context == "no" else None


def _walked(follower: PathFollower, log: AdaptiveLog, seed: int) -> FloatArray:
    """Every arm's propensities along the logged path, shape (T, K)."""
    follower.walk(log.arrays.action, np.random.default_rng(seed))
    return follower.record.propensities.copy()


def _batch_shares(log: AdaptiveLog) -> FloatArray:
    """Shares of the arms in each round's batch, shape (T, K)."""
    batch = log.arrays.batch
    if batch is None:
        raise InvalidForLog(
            _SUBJECT,
            "shares of batches require a log with batches (batch=)",
            ["the design itself as design="],
        )
    code = batch - int(batch[0])
    size = int(code[-1]) + 1
    counts = np.bincount(code * log.n_arms + log.arrays.action, minlength=size * log.n_arms)
    table = counts.reshape(size, log.n_arms).astype(np.float64)
    rounds = table.sum(axis=1)
    small = np.flatnonzero(rounds < _LEAST)
    if len(small):
        shown = ", ".join(map(str, small[:10])) + ", ..." * (len(small) > 10)
        problem = (
            f"batches {shown} (counted from 0) have fewer than {_LEAST} rounds: their shares are "
            "uninformative"
        )
        raise ParameterError(_SUBJECT, [problem])
    return np.asarray((table / rounds[:, None])[code], dtype=np.float64)


def _filled(log: AdaptiveLog, every: FloatArray, status: str) -> AdaptiveLog:
    """A copy of the log with propensities `every`, of shape (T, K)."""
    own = every[np.arange(log.n_rounds), log.arrays.action]
    filled = copy.copy(log)
    filled.arrays = replace(log.arrays, propensity=own, propensities=every)
    filled.propensity_status = status
    filled._frame, filled.kept = None, {}
    return filled
