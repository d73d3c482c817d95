"""The policies that collected a log, evaluated at any context, with one snapshot per batch.

Contextual weights require the propensities that the design of one round would have had at the context of
another. A log alone does not contain these, unless its propensities do not depend on contexts.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims import propensities as claims
from adaptinf.errors import InvalidForLog, ParameterError, Problem
from adaptinf.inference.inputs.arguments import by_arm
from adaptinf.inference.inputs.rounds import propensities_before, turns
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_array, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

CHUNK = 1 << 13
SAME = 1e-6
_SAME_SHARE = 1e-3


class PolicySnapshots:
    """The policy of the design in every batch, as probabilities of all arms at any context.

    Parameters
    ----------
    starts : sequence of int, shape (B,), or None
        Row of the log, counted from zero, at which each batch starts. The numbers must increase, and the
        first must be zero. If None, the log's own batches are used.
    policies : sequence, shape (B,)
        For each batch, one of: a callable that takes a frame of n contexts (the log's context columns) and
        returns an (n, K) array in the order of ``log.arms``, or a frame with one column per arm; a fitted
        model with ``predict_proba``, whose columns follow ``classes_`` if it has them; an array of shape
        (K,), or a Series indexed by the arms, for a batch that ignores contexts; an array of shape (T, K), or
        a frame, with the batch's policy at the contexts of all T rounds.

    Raises
    ------
    ParameterError
        If the starts are invalid. The message lists every problem.

    Notes
    -----
    A policy must be the same function each time it is called. A fit evaluates every snapshot at the log's
    contexts twice, in chunks, so memory does not grow with the number of batches. In the rounds of its own
    batch, a snapshot must agree with the logged propensities within 1e-6, and within a thousandth of their
    size.

    References
    ----------
    Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from
    contextual bandits".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> def greedy(contexts):
    ...     first = np.where(contexts["x"] > 0, 0.9, 0.1)
    ...     return np.column_stack([first, 1 - first])
    >>> ai.PolicySnapshots([0, 500], [np.array([0.5, 0.5]), greedy])
    PolicySnapshots: 2 batches, starting at rows 0, 500
    """

    def __init__(self, starts: Sequence[int] | IntArray | None, policies: Sequence[Any]) -> None:
        if not isinstance(policies, (list, tuple)):
            raise ParameterError("PolicySnapshots", ["policies must be a list, one entry per batch"])
        self.policies = tuple(policies)
        self.starts = None if starts is None else _starts(starts, len(self.policies))

    def __repr__(self) -> str:
        """The number of batches and their first rounds."""
        count = len(self.policies)
        head = f"PolicySnapshots: {count} batch{'es' if count != 1 else ''}"
        if self.starts is None:
            return f"{head}, starting with the log's"
        shown = ", ".join(map(str, self.starts[:6])) + (", ..." if count > 6 else "")
        return f"{head}, starting at rows {shown}"


@dataclass(frozen=True, slots=True, eq=False)
class LoggingPolicies:
    """Propensities under the designs of all batches at all contexts; starts (B,), rows (B, K), first (K,).

    `lagged` contains the propensities of the preceding rounds, which do not depend on any context of the
    round itself.
    """

    starts: IntArray
    n_rounds: int
    rows: FloatArray | None = None
    first: FloatArray | None = None
    evaluate: Callable[[int, int, int], FloatArray] | None = None
    lagged: bool = False

    @property
    def sizes(self) -> IntArray:
        """Number of rounds in each batch, shape (B,)."""
        return np.diff(np.append(self.starts, self.n_rounds))

    @property
    def batch(self) -> IntArray:
        """Number of the batch of each round, shape (T,)."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    def within(self, keep: BoolArray) -> LoggingPolicies:
        """The designs in the selected rounds, at the contexts of these rounds; keep (T,)."""
        rounds = np.flatnonzero(keep)
        batches, starts = np.unique(self.batch[rounds], return_index=True)

        def evaluate(batch: int, low: int, high: int) -> FloatArray:
            own = rounds[low:high]
            every = self.at(int(batches[batch]), int(own[0]), int(own[-1]) + 1)
            return np.asarray(every[own - own[0]], dtype=np.float64)

        return LoggingPolicies(
            starts.astype(np.int64),
            len(rounds),
            rows=None if self.rows is None else self.rows[batches],
            first=self.rows[batches[0]] if self.rows is not None else self.first if keep[0] else None,
            evaluate=None if self.evaluate is None else evaluate,
        )

    def at(self, batch: int, low: int, high: int) -> FloatArray:
        """Propensities, shape (n, K), under the design of a batch at the contexts of rows low to high - 1."""
        if self.evaluate is not None:
            return self.evaluate(batch, low, high)
        assert self.rows is not None
        return np.broadcast_to(self.rows[batch], (high - low, self.rows.shape[1]))


def chunks(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Blocks of at most `CHUNK` rows that cover low, ..., high - 1."""
    for start in range(low, high, CHUNK):
        yield start, min(start + CHUNK, high)


def logging_policies(log: AdaptiveLog, snapshots: Any, method: str) -> LoggingPolicies:
    """Determine the propensities that the design of each round would have had at other rounds' contexts."""
    if isinstance(snapshots, PolicySnapshots):
        logging = _given(log, snapshots)
        _check_agreement(log, logging)
        return logging
    problems = snapshots_problems(snapshots)
    refuse(method, problems)
    unweighted = f"weights='uniform' ({claims.UNSETTLED()})"
    if log.arrays.propensities is None:
        raise InvalidForLog(method, claims.EVERY_ONE_NEEDED(), [unweighted])
    if snapshots is None and not profile_of(log).context_free:
        raise InvalidForLog(
            method,
            claims.OTHER_CONTEXTS_UNKNOWN(),
            [
                "snapshots=PolicySnapshots(starts, policies)",
                "snapshots='context-free', if the design did not use contexts",
                unweighted,
            ],
        )
    propensities = log.arrays.propensities
    profile = profile_of(log)
    lagged = snapshots is None and not profile.fixed_in_time
    if lagged:
        cell, unit = np.zeros(log.n_rounds, dtype=np.int64), profile.units
        before = turns(cell, unit)[1] if profile.repeated_units else None
        propensities = propensities_before(propensities, log.n_arms, before)
    new = np.any(propensities[1:] != propensities[:-1], axis=1)
    starts = np.append(0, np.flatnonzero(new) + 1).astype(np.int64)
    rows = propensities[starts]
    return LoggingPolicies(starts, log.n_rounds, rows=rows, first=propensities[0], lagged=lagged)


def snapshots_problems(snapshots: Any) -> list[str]:
    """List problems with the type of `snapshots`."""
    if snapshots is None or isinstance(snapshots, PolicySnapshots):
        return []
    if isinstance(snapshots, str) and snapshots == "context-free":
        return []
    return [f"snapshots must be PolicySnapshots, 'context-free' or None, got {snapshots!r:.60}"]


def predict(subject: str, name: str, policy: Any, contexts: Any, arms: tuple[Any, ...]) -> FloatArray | None:
    """Probabilities, shape (n, K), from a callable or fitted model at the given contexts."""
    model = hasattr(policy, "predict_proba")
    try:
        given = policy.predict_proba(contexts) if model else policy(contexts)
    except Exception as error:
        problem = f"{name} failed on the contexts: {type(error).__name__}: {error}"
        raise ParameterError(subject, [problem]) from error
    classes = getattr(policy, "classes_", None)
    if model and classes is not None:
        labels = np.asarray(classes).tolist()
        if set(labels) != set(arms) or len(labels) != len(arms):
            raise ParameterError(subject, [f"{name}: its classes_ {labels} are not the arms {list(arms)}"])
        given = _by_class(given, labels, arms)
    values, problems = by_arm(name, given, arms, contexts.index)
    refuse(subject, problems)
    return values


def _by_class(given: Any, classes: list[Any], arms: tuple[Any, ...]) -> Any:
    """Label a model's columns by its classes, unless they are already labelled by the arms."""
    if isinstance(given, pd.DataFrame) and set(given.columns) == set(arms):
        return given
    values = np.asarray(given)
    if values.ndim != 2 or values.shape[1] != len(classes):
        return values
    index = given.index if isinstance(given, pd.DataFrame) else None
    return pd.DataFrame(values, columns=classes, index=index)


def probability_problems(name: str, values: FloatArray | None, shape: tuple[int, int], low: int) -> list[str]:
    """List problems with an array whose rows contain probabilities."""
    if values is None or values.shape != shape:
        got = "something else" if values is None else f"shape {values.shape}"
        return [f"{name} must return an array of numbers of shape {shape}, one column per arm, got {got}"]
    problems: list[str] = []
    if not np.all(np.isfinite(values)):
        return [_rows(f"{name} has probabilities that are not finite", ~np.isfinite(values).all(axis=1), low)]
    if values.size and values.min() < 0.0:
        problems.append(_rows(f"{name} has negative probabilities", values.min(axis=1) < 0.0, low))
    wrong = np.abs(values @ np.ones(shape[1]) - 1.0) > SAME
    if wrong.any():
        problems.append(_rows(f"{name} has probabilities that do not sum to 1", wrong, low))
    return problems


def _rows(message: str, wrong: NDArray[Any] | np.bool_, low: int) -> str:
    places = np.flatnonzero(wrong) + low
    return str(Problem("policy", message, tuple(places[:10].tolist()), len(places)))


def _starts(starts: Sequence[int] | IntArray, count: int) -> IntArray:
    values = number_array(starts)
    problems = []
    if values is None or values.ndim != 1 or not np.array_equal(values, np.floor(values)):
        problems.append(f"starts must be whole numbers, rows of the log counted from 0, got {starts!r:.80}")
        raise ParameterError("PolicySnapshots", problems)
    if len(values) != count:
        problems.append(f"there must be one start per policy, got {len(values)} starts and {count} policies")
    if len(values) == 0 or values[0] != 0:
        problems.append("the first batch must start at row 0")
    if np.any(np.diff(values) <= 0):
        problems.append(f"starts must increase, got {starts!r:.80}")
    refuse("PolicySnapshots", problems)
    return values.astype(np.int64)


def _given(log: AdaptiveLog, snapshots: PolicySnapshots) -> LoggingPolicies:
    starts = snapshots.starts
    count = len(snapshots.policies)
    if starts is None:
        if log.arrays.batch is None:
            raise ParameterError(
                "PolicySnapshots", ["the log has no batches: give the rows at which they start"]
            )
        starts = np.flatnonzero(np.diff(log.arrays.batch, prepend=-1)).astype(np.int64)
        if len(starts) != count:
            problem = f"the log has {len(starts)} batches, but there are {count} policies"
            raise ParameterError("PolicySnapshots", [problem])
    if starts[-1] >= log.n_rounds:
        problem = f"batch {count - 1} starts at row {starts[-1]}, beyond the log's {log.n_rounds} rounds"
        raise ParameterError("PolicySnapshots", [problem])
    entries = [_entry(log, b, policy) for b, policy in enumerate(snapshots.policies)]
    first = entries[0] if isinstance(entries[0], np.ndarray) and entries[0].ndim == 1 else None
    if all(isinstance(entry, np.ndarray) and entry.ndim == 1 for entry in entries):
        return LoggingPolicies(starts, log.n_rounds, rows=np.array(entries), first=first)
    return LoggingPolicies(starts, log.n_rounds, first=first, evaluate=_evaluator(log, entries))


def _entry(log: AdaptiveLog, batch: int, policy: Any) -> Any:
    """Return a callable or model unchanged, and other values as a checked array of shape (K,) or (T, K)."""
    if callable(policy) or hasattr(policy, "predict_proba"):
        return policy
    name = f"the policy of batch {batch}"
    values, problems = by_arm(name, policy, log.arms, pd.RangeIndex(log.n_rounds))
    refuse("PolicySnapshots", problems)
    if values is not None and values.ndim == 1:
        problems = probability_problems(name, values[None, :], (1, log.n_arms), 0)
    else:
        problems = probability_problems(name, values, (log.n_rounds, log.n_arms), 0)
    refuse("PolicySnapshots", problems)
    return values


def _evaluator(log: AdaptiveLog, entries: Sequence[Any]) -> Callable[[int, int, int], FloatArray]:
    contexts = log.frame[list(log.context)]

    def evaluate(batch: int, low: int, high: int) -> FloatArray:
        entry, shape = entries[batch], (high - low, log.n_arms)
        if isinstance(entry, np.ndarray):
            return np.broadcast_to(entry, shape) if entry.ndim == 1 else entry[low:high]
        name = f"the policy of batch {batch}"
        values = predict("PolicySnapshots", name, entry, contexts.iloc[low:high], log.arms)
        problems = probability_problems(name, values, shape, low)
        if problems or values is None:
            raise ParameterError("PolicySnapshots", problems)
        return values

    return evaluate


def _check_agreement(log: AdaptiveLog, logging: LoggingPolicies) -> None:
    """Refuse snapshots that are not the policies that produced the logged propensities."""
    arrays, wrong, largest = log.arrays, np.zeros(log.n_rounds, dtype=np.bool_), 0.0
    for batch, (start, size) in enumerate(zip(logging.starts, logging.sizes, strict=True)):
        for low, high in chunks(int(start), int(start + size)):
            values = logging.at(batch, low, high)
            if arrays.propensities is not None:
                logged = arrays.propensities[low:high]
            elif arrays.propensity is not None:
                values = np.take_along_axis(values, arrays.action[low:high, None], axis=1)
                logged = arrays.propensity[low:high, None]
            else:
                return
            gap = np.abs(values - logged)
            # Weights contain inverse propensities, so small propensities must agree relative to their size as
            # well.
            wrong[low:high] = np.any((gap > SAME) | (gap > _SAME_SHARE * logged + 1e-12), axis=1)
            largest = max(largest, float(gap.max()))
    if wrong.any():
        problem = (
            "the snapshots are not the policies that collected the log: their probabilities differ from "
            f"its propensities by up to {largest:.2g} (check the rows at which batches start, and the order "
            "of the arms)"
        )
        raise ParameterError("PolicySnapshots", [_rows(problem, wrong, 0)])
