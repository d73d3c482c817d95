"""Outcome models for AIPW: predictions from the past alone, and checks of predictions by users.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Sherman, Morrison (1950), "Adjustment of an inverse matrix corresponding to a change in one
element of a given matrix".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.data import outcome_models as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import by_arm
from adaptinf.inference.scores.batch_sums import batch_means
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.frame_columns import frame_kind
from adaptinf.parameters import number_array, refuse
from adaptinf.texts import absent, did_you_mean, shown
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.scores.missing import SeenRounds

BATCH_MEAN = "batch-mean"
OUTCOMES = ("running-mean", "running-ridge")
# In every round, the update of the inverse takes time proportional to the square of this number.
_MAX_COVARIATES = 200
_SAME = 1e-9
# Fewer rewards may agree with predictions by chance.
_ENOUGH = 10
_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The predictions of an outcome model.

    Attributes
    ----------
    values : ndarray of shape (T, k), or "running-mean"
        The predictions; row t is computed without the rewards of round t and later rounds.
    note : str
        A description of the model, for the lines under a table.
    start : int
        First round, counted from 0, with an earlier reward; rounds before it have no weight.
    """

    values: FloatArray | str
    note: str
    start: int = 0
    seen: SeenRounds | None = None
    """Which rewards are observed and known, if some are missing or late."""
    notes: tuple[str, ...] = ()
    """Notes for the rounds with a weight, if rewards are missing or late."""
    assumes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    """Columns of the regression of earlier rewards, if one is requested; for sums, with this penalty."""
    penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Covariates:
    """The contexts that a regression uses, which is fitted by round or by batch."""

    names: tuple[str, ...]
    by_batch: bool = False


RUNNING_MEAN = Outcome(
    "running-mean",
    claims.RUNNING_MEAN(),
    1,
)


def outcome_model(
    subject: str, log: AdaptiveLog, codes: IntArray, outcome: Any, ridge: object, *, by_batch: bool = False
) -> Outcome:
    """Complete and check the user's request; means over batches are allowed if `by_batch`; outcome (T, k)."""
    covariates = outcome if isinstance(outcome, Covariates) else None
    regression = covariates is not None or (isinstance(outcome, str) and outcome == "running-ridge")
    if ridge is not None and not regression:
        raise ParameterError(subject, ["ridge= applies to outcome='running-ridge'"])
    if outcome is None or (isinstance(outcome, str) and outcome == "running-mean"):
        return RUNNING_MEAN
    if by_batch and isinstance(outcome, str) and outcome == BATCH_MEAN:
        return _batch_mean(subject, log, codes)
    if isinstance(outcome, str) and not regression:
        known = (*OUTCOMES, BATCH_MEAN) if by_batch else OUTCOMES
        names = ", ".join(map(repr, known))
        raise ParameterError(subject, [f"{_choice_problem(names)}, got {outcome!r}"])
    if regression:
        return _regression(subject, log, codes, ridge, covariates)
    values = _own_predictions(subject, log, codes, outcome)
    reasons = foresight_problems(log.arrays.action, log.arrays.reward, values, codes)
    if reasons:
        labels = [repr(log.arms[code]) for code in codes]
        found = "; ".join(f"arm {labels[j]}: {reason}" for j, reason in reasons)
        raise InvalidForLog(
            "a user-supplied outcome model",
            f"it was fitted with rewards that it must not use: {found}. Row t may use only rounds before t "
            "(and this round's context)",
            ["outcome='running-mean'", "outcome='running-ridge'", "a model fitted on other data"],
        )
    return Outcome(values, claims.OWN())


def _choice_problem(names: str) -> str:
    """The allowed values for an outcome model."""
    return (
        f"outcome must be {names}, a mapping of every arm to a column of the log, an array of predictions, "
        "shape (rounds, arms), with columns in the order of log.arms, or a frame of predictions with one "
        "column per arm"
    )


def _regression(
    subject: str, log: AdaptiveLog, codes: IntArray, ridge: object, covariates: Covariates | None
) -> Outcome:
    """Running ridge regression on all or selected contexts; codes has shape (k,)."""
    penalty = checked_penalty(subject, ridge)
    if covariates is not None and covariates.by_batch:
        return _lines(subject, log, codes, covariates, penalty)
    return running_regression(subject, log, codes, penalty, covariates)


def running_regression(
    subject: str,
    log: AdaptiveLog,
    codes: IntArray,
    penalty: float,
    covariates: Covariates | None,
    stratum: IntArray | None = None,
) -> Outcome:
    """Running ridge regression on all or selected contexts, which are scaled by the rounds so far.

    Shapes: codes (k,), stratum (T,), numbered from 0. Each stratum has its own intercept. The regression is
    fitted before each round to the rewards that are observed and known by then.
    """
    names = log.context if covariates is None else covariates.names
    x = context_matrix(subject, log, names)
    if covariates is not None:
        x[:, 1:] = running_standardised(x[:, 1:])
    if stratum is not None and stratum.any():
        own = stratum[:, None] == np.arange(1, int(stratum.max()) + 1)
        x = np.ascontiguousarray(np.hstack([x, own.astype(np.float64)]))
    arrays = log.arrays
    order, known = arrivals(log.n_rounds, arrays.observed, arrays.known)
    # Differences from the first known reward make the penalty pull towards that reward and not towards 0.
    origin = float(arrays.recorded[order[0]]) if len(order) else 0.0
    values = origin + running_ridge(
        arrays.action, arrays.recorded - origin, x, codes, penalty, (order, known)
    )
    scaled = "" if covariates is None else claims.STANDARDISED()
    by_then = "" if arrays.known is None else " known at the time"
    start = "; round 1 has weight 0" if stratum is None else ""
    regressors = {"names": ", ".join(names), "scaled": scaled, "penalty": penalty}
    note = claims.RIDGE(known=by_then, **regressors, start=start)
    return Outcome(values, note, 1, covariates=() if covariates is None else covariates.names)


def checked_penalty(subject: str, ridge: object) -> float:
    """The penalty of a regression, 1 by default."""
    penalty = 1.0 if ridge is None else ridge
    if isinstance(penalty, bool) or not isinstance(penalty, Real) or not 0.0 < float(penalty) < math.inf:
        raise ParameterError(subject, [f"ridge must be positive and finite, got {ridge!r}"])
    return float(penalty)


def running_standardised(x: FloatArray) -> FloatArray:
    """Columns standardised by mean and standard deviation of the rounds so far; takes and returns (T, d).

    A row is known before its arm is drawn. Entries are 0 until a column varies, so a constant column is 0 in
    all rounds.
    """
    rounds = np.arange(1.0, len(x) + 1.0)[:, None]
    above = x - x[:1]  # Differences from the first row keep the digits of columns that are far from 0.
    mean = np.cumsum(above, axis=0) / rounds
    variance = np.maximum(np.cumsum(above**2, axis=0) / rounds - mean**2, 0.0)
    spread = np.sqrt(variance)
    varies = variance > _SAME * np.maximum(mean**2, np.finfo(float).tiny)
    return np.where(varies, (above - mean) / np.where(varies, spread, 1.0), 0.0)


def _batch_mean(subject: str, log: AdaptiveLog, codes: IntArray) -> Outcome:
    """Means over earlier batches; codes has shape (k,)."""
    arrays = log.arrays
    if arrays.batch is None:
        raise ParameterError(
            subject, [f"outcome={BATCH_MEAN!r} requires batches, but the log has none (set batch=)"]
        )
    values, start = batch_means(arrays.action, arrays.reward, arrays.batch, codes, log.n_arms)
    return Outcome(values, claims.BATCH_MEAN(), start)


def _lines(
    subject: str, log: AdaptiveLog, codes: IntArray, covariates: Covariates, penalty: float
) -> Outcome:
    """Means over earlier batches, and slopes estimated from these batches; codes has shape (k,)."""
    from adaptinf.inference.scores.score_forms import batch_lines

    arrays, plain = log.arrays, _batch_mean(subject, log, codes)
    x = context_matrix(subject, log, covariates.names)[:, 1:]
    assert arrays.batch is not None
    values = batch_lines(arrays.action, arrays.reward, arrays.batch, x, codes, log.n_arms, penalty)
    first = arrays.batch == 0
    values[first] = np.asarray(plain.values)[first]
    note = claims.BATCH_RIDGE(names=", ".join(covariates.names), penalty=penalty)
    return Outcome(values, note, plain.start, covariates=covariates.names)


def context_matrix(subject: str, log: AdaptiveLog, names: Sequence[str] | None = None) -> FloatArray:
    """An intercept and contexts (by default all) as regressors, with labels as indicators; returns (T, d)."""
    if not log.context:
        raise ParameterError(subject, ["outcome='running-ridge' requires contexts, but the log has none"])
    columns = [np.ones(log.n_rounds)]
    for name in log.context if names is None else names:
        values = np.asarray(log.arrays.context[name])
        if values.dtype.kind in "fiub":
            columns.append(values.astype(np.float64))
            continue
        labels, position = np.unique(values.astype(str), return_inverse=True)
        if len(columns) + len(labels) > _MAX_COVARIATES:
            raise ParameterError(subject, [f"context {name!r} has {len(labels)} labels: group them first"])
        columns += [(position == label).astype(np.float64) for label in range(1, len(labels))]
    return np.ascontiguousarray(np.column_stack(columns))


def arrivals(n_rounds: int, observed: BoolArray | None, known: IntArray | None) -> tuple[IntArray, IntArray]:
    """Rounds in the order in which rewards became known, (n,), and the number known before each round, (T,).

    Shapes: observed (T,), by default all; known (T,), the row from which on a reward is used, by default the
    next row.
    """
    rows = np.arange(n_rounds) if observed is None else np.flatnonzero(observed)
    arrival = rows + 1 if known is None else known[rows]
    order = np.argsort(arrival, kind="stable")
    return rows[order], np.searchsorted(arrival[order], np.arange(n_rounds), side="right").astype(np.int64)


def running_ridge(
    action: IntArray,
    reward: FloatArray,
    context: FloatArray,
    codes: IntArray,
    penalty: float,
    arrived: tuple[IntArray, IntArray] | None = None,
) -> FloatArray:
    """Predictions by a ridge regression for each arm, fitted to the rewards known before each round.

    Shapes: action (T,), reward (T,), context (T, d), codes (k,), arrived (n,) and (T,), from `arrivals`;
    returns (T, k). Inverses are updated by rank-one terms, in O(T (d^2 + k d)) operations and O(k d^2 + T k)
    memory.
    """
    # Numba is slow to load, so it is loaded only when it is needed.
    from adaptinf.inference.scores.score_kernels import ridge_pass

    order, known = arrivals(len(action), None, None) if arrived is None else arrived
    dimension = context.shape[1]
    inverse = np.zeros((len(codes), dimension, dimension))
    inverse[:] = np.eye(dimension) / penalty
    predicted = np.zeros((len(action), len(codes)))
    ridge_pass(
        action,
        np.ascontiguousarray(reward, dtype=np.float64),
        np.ascontiguousarray(context, dtype=np.float64),
        codes,
        order,
        known,
        inverse,
        np.zeros((len(codes), dimension)),
        np.zeros(dimension),
        predicted,
    )
    return predicted


def foresight_problems(
    action: IntArray, reward: FloatArray, predicted: FloatArray, codes: IntArray
) -> list[tuple[int, str]]:
    """Evidence that predictions were computed from the rewards that they predict.

    Shapes: action (T,), reward (T,), predicted (T, k), codes (k,).
    """
    found = []
    for j, code in enumerate(codes):
        mine = action == code
        own, guess, column = reward[mine], predicted[mine, j], predicted[:, j]
        if len(own) < 2 or np.ptp(own) == 0.0:
            continue
        spread = float(np.std(own))
        if np.ptp(column) <= _SAME * spread and abs(column[0] - own.mean()) <= _SAME * spread:
            found.append((j, "every prediction is the arm's mean over the whole log"))
        elif len(own) >= _ENOUGH and np.ptp(guess) > 0.0 and _perfectly_correlated(own, guess):
            found.append(
                (
                    j,
                    "in rounds in which the arm was chosen, its predictions follow the reward of "
                    "the same round",
                )
            )
        elif len(own) >= _ENOUGH and np.ptp(column) > 0.0 and _leave_one_out(own, guess):
            found.append(
                (j, "its predictions are means of all other rewards of the arm, including later ones")
            )
    return found


def _perfectly_correlated(own: FloatArray, guess: FloatArray) -> bool:
    return abs(float(np.corrcoef(own, guess)[0, 1])) > 1.0 - _SAME


def _leave_one_out(own: FloatArray, guess: FloatArray) -> bool:
    others = (own.sum() - own) / (len(own) - 1.0)
    return bool(np.max(np.abs(guess - others)) <= _SAME * float(np.std(own)))


def _own_predictions(subject: str, log: AdaptiveLog, codes: IntArray, outcome: Any) -> FloatArray:
    """The user's predictions for the arms with these codes; codes (k,), returns (T, k).

    If the columns have labels, these determine the order. An array has a column for each arm, in the order of
    the log's arms.
    """
    if isinstance(outcome, Mapping):
        return _named_columns(subject, log, codes, outcome)
    rows = pd.RangeIndex(log.n_rounds)
    labels = [log.arms[code] for code in codes]
    # A frame may omit arms for which no estimate is requested.
    subset = frame_kind(outcome) is not None and len(outcome.columns) == len(labels)
    arms = labels if subset else log.arms
    values, problems = by_arm("outcome", outcome, arms, rows)
    if values is None and not problems:
        problems.append(_choice_problem(" or ".join(map(repr, OUTCOMES))))
    if values is None or problems:
        raise ParameterError(subject, problems)
    shape = (log.n_rounds, len(arms))
    if values.shape != shape:
        shown = f"{list(log.arms[:_SHOWN])!r:.200}" + (" ..." if log.n_arms > _SHOWN else "")
        problems.append(
            f"outcome must have shape {shape}, with a column for each of the log's arms in their order "
            f"{shown}, got {values.shape}; a frame with columns named after arms, or a mapping, may cover "
            "only some of them"
        )
    refuse(subject, problems)
    return _finite(subject, values if subset else values[:, codes])


def _named_columns(subject: str, log: AdaptiveLog, codes: IntArray, outcome: Mapping[Any, Any]) -> FloatArray:
    """The columns of the log that a mapping names for the arms; codes (k,), returns (T, k)."""
    labels = [log.arms[code] for code in codes]
    problems = []
    if missing := [repr(label) for label in labels if label not in outcome]:
        problems.append(f"outcome has no column for arm {', '.join(missing)}")
    if strangers := [label for label in outcome if label not in log.arms]:
        problems += [f"outcome: {absent('arm', label, log.arms, 'the log has')}" for label in strangers]
    refuse(subject, problems)
    known = set(map(str, log.frame.columns)) | set(log.columns)
    named = [outcome[label] for label in labels]
    if not all(isinstance(name, Hashable) for name in named):
        raise ParameterError(subject, ["outcome must map every arm to the name of a column of the log"])
    problems = [
        f"the log has no column {shown(name)}: name it in context= of the log{did_you_mean(name, known)}"
        for name in named
        if name not in known
    ]
    refuse(subject, problems)
    values = number_array(np.column_stack([log.column(name) for name in named]))
    if values is None:
        raise ParameterError(subject, ["outcome must map every arm to a column of numbers"])
    return _finite(subject, values)


def _finite(subject: str, values: FloatArray) -> FloatArray:
    refuse(subject, [] if np.all(np.isfinite(values)) else ["outcome must be finite in every round"])
    return np.ascontiguousarray(values)
