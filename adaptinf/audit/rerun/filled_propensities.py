"""Propensities that a log does not have, from its design or from the shares of its batches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import logged_rows
from adaptinf.audit.rerun.path_propensities import PathFollower, contradiction, record_problems
from adaptinf.audit.rerun.rebuild import design_of
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, refuse
from adaptinf.typing import FloatArray

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
    """A log with every arm's propensity filled in.

    Parameters
    ----------
    log : AdaptiveLog
        The data; it is not changed.
    design : design or "batch-shares", optional
        What gathered the log, by default what its record says; or the shares of the arms in each batch, which
        are estimates.
    context, features : optional
        What the design looked at, as for `randomization_test`.
    walks : int
        How often a design whose propensities are themselves drawn is led along the path.

    Returns
    -------
    AdaptiveLog
        The same log with ``propensity`` and ``propensities``. They are exact where the design's propensities
        follow from the logged actions and rewards. Where they do not (posterior draws), they are means over
        the walks, and like shares of batches marked as estimated. Of a design that looks at no contexts the
        log then says so (`context_free`).

    Raises
    ------
    ParameterError
        If there is no such design, it could not have chosen the logged arms, or the log's own propensities
        contradict it; or a batch has fewer than 10 rounds.
    InvalidForLog
        If the design has no propensities given the past, or the log no batches.

    Notes
    -----
    The design's own kernel is led along the logged path: each round's propensities are those that it has
    after the logged arms and rewards of the rounds before. Shares of batches assume that arms were drawn with
    probabilities that stay the same within a batch, whatever the context.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> whole = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=300, rng=1)
    >>> frame = whole.frame[["action", "reward"]]
    >>> log = ai.AdaptiveLog(frame, action="action", reward="reward", design=design)
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
    """Propensities on the logged path, (T, K); whether they are drawn; True for a design without contexts."""
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
    """Every arm's propensities on the logged path, shape (T, K)."""
    follower.walk(log.arrays.action, np.random.default_rng(seed))
    return follower.record.propensities.copy()


def _batch_shares(log: AdaptiveLog) -> FloatArray:
    """Shares of the arms in each round's batch, shape (T, K)."""
    batch = log.arrays.batch
    if batch is None:
        raise InvalidForLog(
            _SUBJECT, "shares of batches need batches (batch=)", ["the design itself as design="]
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
            f"batches {shown} (counted from 0) have fewer than {_LEAST} rounds: their shares tell nothing"
        )
        raise ParameterError(_SUBJECT, [problem])
    return np.asarray((table / rounds[:, None])[code], dtype=np.float64)


def _filled(log: AdaptiveLog, every: FloatArray, status: str) -> AdaptiveLog:
    """A copy of the log with propensities; every (T, K)."""
    own = every[np.arange(log.n_rounds), log.arrays.action]
    filled = copy.copy(log)
    filled.arrays = replace(log.arrays, propensity=own, propensities=every)
    filled.propensity_status = status
    filled._frame, filled.kept = None, {}
    return filled
