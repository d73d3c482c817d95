"""Validation of a user's frame: all that is found wrong with it is found before one error is raised."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.log.report import Reading
from adaptinf.log.validation import column_checks as rows
from adaptinf.log.validation.arm_columns import (
    FROM_BATCHES,
    ArmColumns,
    check_actions,
    check_propensity_rows,
    code_actions,
    declare_arms,
    filled_from_batches,
    find_arm_columns,
    order_arms,
)
from adaptinf.log.validation.column_checks import check_probabilities, implied_range, numbered_outcomes
from adaptinf.log.validation.column_roles import CANONICAL, Roles, check_arm_names, locate_roles
from adaptinf.log.validation.frame_columns import (
    Column,
    Findings,
    Label,
    Labels,
    as_float,
    column_names,
    frame_kind,
    label_key,
    read_column,
    read_labels,
)
from adaptinf.log.validation.metadata import IncompleteArrays, LogArrays, Metadata, check_metadata
from adaptinf.log.validation.row_order import check_date_format, date_column, date_formats, row_order
from adaptinf.typing import BoolArray, FloatArray, IntArray

MEANINGS = ("drop", "worst", "best")
"""What a missing reward may mean: missing at random given the arm, or anything within the range."""


def check_meaning(
    missing: object, observation: bool, reward_range: tuple[float, float] | None, found: Findings
) -> str | None:
    """What missing rewards mean; None where there may be none. Probabilities of observation imply "drop"."""
    if missing is None:
        return "drop" if observation else None
    if not isinstance(missing, str) or missing not in MEANINGS:
        found.add("bad-missing", f"missing must be {' or '.join(map(repr, MEANINGS))}, got {missing!r:.60}")
        return None
    if missing != "drop" and observation:
        found.add(
            "bad-missing",
            f"'observation' belongs to missing='drop': bounds (missing={missing!r}) use no probabilities",
        )
    bounded = reward_range is not None and bool(np.isfinite(reward_range).all())
    if missing != "drop" and not bounded:
        found.add(
            "bad-missing", f"missing={missing!r} needs reward_range=, the ends between which rewards are"
        )
    return missing


def check_some_observed(reward: FloatArray | None, found: Findings) -> None:
    """Refuse rewards of which none is observed; reward (T,)."""
    if reward is not None and np.isnan(reward).all():
        found.add("missing-reward", "every reward is missing: there is nothing to estimate from")


def check_observation(column: Column, name: object, found: Findings) -> FloatArray | None:
    """Probabilities that outcomes are observed, shape (T,): above 0, as they are divided by."""
    return check_probabilities(column, f"observation column {name!r}", "(0", found)


def check_received(column: Column, name: object, arms: Sequence[Label], found: Findings) -> IntArray | None:
    """Codes of the arms that were received, shape (T,); they are among the arms that can be assigned."""
    labels = read_labels(column)
    what = f"received column {name!r}"
    found.add_rows("missing-received", f"{what} has no value", labels.missing)
    found.add_rows("bad-received", f"{what} must hold labels of arms", labels.bad)
    aside = Findings()
    codes = code_actions(labels, arms, True, aside)
    unseen = [label for label in labels.values if not any(_same(label, arm) for arm in arms)]
    told = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
    found.add_rows(
        "unseen-received",
        f"{what} holds {told}, which are not among the arms that are assigned, {list(arms)!r:.200}; name "
        "further arms in arms=",
        (codes < 0) & (labels.codes >= 0),
    )
    return None if (codes < 0).any() else codes


def check_known(
    column: Column,
    name: object,
    rounds: NDArray[Any] | None,
    missing: BoolArray,
    date_format: str | None,
    found: Findings,
) -> tuple[NDArray[Any], IntArray] | None:
    """When outcomes became known, as written and as numbers of rounds that had begun, shape (T,) each.

    Shapes: rounds (T,), missing (T,). An outcome that is missing may have no time.
    """
    what = f"outcome_round column {name!r}"
    found.add_rows("missing-outcome-round", f"{what} has no value", column.missing & ~missing)
    if column.values.dtype.kind == "O":
        dates = date_column(column, what, "outcome-round", date_format, found)
        if dates is None:
            return None
        column = dates
    values = column.values
    own = np.arange(1, len(values) + 1) if rounds is None else rounds
    if values.dtype.kind not in "iufM" or (values.dtype.kind == "M") != (own.dtype.kind == "M"):
        kind = "times" if own.dtype.kind == "M" else "numbers"
        counted = " (1, 2, ..., as there is no round=)" if rounds is None else ""
        found.add(
            "bad-outcome-round", f"{what} must hold {kind}, as the rounds do{counted}, not {column.dtype}"
        )
        return None
    if values.dtype.kind == "f":
        values, inexact = as_float(values)
        found.add_rows(
            "bad-outcome-round", f"{what} is infinite or beyond float64", inexact | np.isinf(values)
        )
    elif values.dtype.kind in "iu" and column.missing.any():
        values = np.where(column.missing, np.nan, values.astype(np.float64))
    early = ~column.missing & (values < own)
    found.add_rows("early-outcome-round", f"{what} is before the round itself", early)
    known = np.searchsorted(own, values, side="right").astype(np.int64)
    return values.copy(), np.where(column.missing, len(own), known)


def arrays_of(columns: dict[str, Any]) -> LogArrays:
    """The arrays of a log by field: those of an incomplete log where a reward is missing."""
    gaps = bool(np.isnan(columns["reward"]).any())
    return IncompleteArrays(**columns) if gaps else LogArrays(**columns)


def incomplete(arrays: LogArrays) -> LogArrays:
    """Arrays that were not checked, as those of an incomplete log where a reward is missing."""
    if arrays.observed is not None:
        return arrays
    return arrays_of(arrays.by_field())


def _same(label: Label, arm: Label) -> bool:
    return type(label) is type(arm) and label == arm


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """Everything that a frame was found to hold; rounds, units, ids (T,)."""

    arrays: LogArrays
    arms: tuple[Label, ...]
    phases: tuple[str, ...]
    rounds: NDArray[Any] | None
    units: NDArray[Any] | None
    reward_range: tuple[float, float] | None
    names: dict[Hashable, str]
    metadata: Metadata
    readings: tuple[Reading, ...] = ()
    outcome_rounds: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None


def check_frame(
    frame: Any,
    *,
    single: Mapping[str, object],
    context: object,
    propensities: object,
    arms: object,
    reward_range: object,
    metadata: Metadata,
    outcomes: object = None,
    reading: Mapping[str, Any] | None = None,
    as_written: bool = False,
    found: Findings | None = None,
) -> CheckedLog:
    """Read a frame, or raise one error that lists all that is found wrong with it, and was before."""
    # `as_written` says that no step before can have changed a number, as in a file with a digest.
    found, how = Findings() if found is None else found, reading or {}
    if frame_kind(frame) is None:
        found.add("not-a-frame", f"the log must be a pandas or polars DataFrame, got {type(frame).__name__}")
        found.raise_if_any()
    if not len(frame):
        found.add("empty-frame", "the frame has no rows")
    declared = declare_arms(arms, found)
    check = _FrameCheck(frame, locate_roles(column_names(frame), single, context, found, outcomes), found)
    check.as_written = as_written
    check.put_in_order(how.get("sort", False), check_date_format(how.get("date_format"), found))
    check.from_batches = isinstance(propensities, str) and propensities == FROM_BATCHES
    check.find_arms(None if check.from_batches else propensities, declared)
    check.success = how.get("success")
    given_range = implied_range(check.success) if reward_range is None else reward_range
    checked_range = rows.check_reward_range(given_range, as_written, found)
    meaning = check_meaning(metadata.missing, "observation" in check.roles.single, checked_range, found)
    check.gaps = meaning is not None
    columns = check.columns(declared is not None, checked_range)
    rounds = check.single("round", rows.check_rounds, check.formats.get("round"))
    outcome_rounds = check.outcome_rounds(columns, rounds)
    units, ids = check.single("unit", rows.check_units), check.single("id", rows.check_ids)
    checked = check_metadata(
        replace(metadata, missing=meaning, feedback_rounds=check.feedback_rounds(metadata, columns["known"])),
        n_rounds=len(frame),
        arms=check.arms,
        has_propensity=single.get("propensity") is not None or bool(check.arm_columns.labels),
        # a column of units with problems of its own has none that could be counted
        units=np.zeros(0) if units is None and single.get("unit") is not None else units,
        found=found,
    )
    found.raise_if_any()
    phases = columns.pop("phases")
    return CheckedLog(
        arrays_of(columns),
        check.arms,
        phases,
        rounds,
        units,
        checked_range,
        check.names(),
        checked,
        tuple(found.readings),
        outcome_rounds,
        ids,
    )


class _FrameCheck:
    """The checks of one frame, and what later ones need of earlier ones."""

    def __init__(self, frame: Any, roles: Roles, found: Findings) -> None:
        self.frame = frame
        self.roles = roles
        self.found = found
        self.labels: Labels | None = None
        self.arm_columns = ArmColumns()
        self.arms: tuple[Label, ...] = ()
        self.as_written = False
        self.gaps = False
        self.success: object = None
        self.formats: dict[str, str | None] = {}
        self.from_batches = False

    def put_in_order(self, sort: object, date_format: str | None) -> None:
        """Take the rows in the order of their rounds, else batches, where the user says so."""
        roles: tuple[str, ...] = ("round", "batch")
        names = {role: self.roles.single[role] for role in roles if role in self.roles.single}
        columns = {role: column for role, name in names.items() if (column := self.read(name)) is not None}
        self.formats = date_formats(columns, date_format, self.found)
        self.found.order = row_order(sort, columns, names, self.formats, self.found)

    def read(self, name: Hashable) -> Column | None:
        """Column of that name; None where it is repeated or has no rows."""
        position = self.roles.positions.get(name)
        if position is None or not len(self.frame):
            return None
        column, order = read_column(self.frame, position), self.found.order
        return column if order is None else Column(column.values[order], column.missing[order], column.dtype)

    def single(self, role: str, check: Callable[..., Any], *options: object) -> Any:
        """Result of a check on the column of a role, or None where there is no such column."""
        if role not in self.roles.single:
            return None
        name = self.roles.single[role]
        column = self.read(name)
        return None if column is None else check(column, name, *options, self.found)

    def find_arms(self, propensities: object, declared: Sequence[Label] | None) -> None:
        """Settle the arms, their order and their propensity columns."""
        self.labels = self.single("action", check_actions, "action", self.as_written)
        observed = [] if self.labels is None else self.labels.values
        self.arm_columns = find_arm_columns(propensities, observed, declared, self.roles, self.found)
        self.arms = order_arms(observed, declared, self.arm_columns, self.found)
        check_arm_names(self.roles, self.arms, self.arm_columns.pairs, self.found)

    def columns(self, declared: bool, reward_range: tuple[float, float] | None) -> dict[str, Any]:
        """Arrays by field of `LogArrays`, and the phases."""
        labels, self.labels = self.labels, None
        action = None if labels is None else code_actions(labels, self.arms, declared, self.found)
        del labels  # of every row
        reward = self.single("reward", self.check_rewards, reward_range)
        batch = self.single("batch", rows.check_batches, self.formats.get("batch"))
        chosen, table = self.propensities(action, batch)
        check_some_observed(reward, self.found)
        phase, phases = self.single("phase", rows.check_phases) or (None, ())
        context = {name: self.read(name) for name in self.roles.context}
        outcomes = {name: self.read(name) for name in self.roles.outcomes}
        return {
            "action": action,
            "reward": reward,
            "propensity": chosen,
            "propensities": table,
            "batch": batch,
            "phase": phase,
            "phases": phases,
            "randomised": self.single("randomised", rows.check_randomised),
            "received": self.single("received", check_received, self.arms),
            "observation": self.single("observation", check_observation),
            "known": None,
            "context": {
                name: rows.check_context(column, name, self.found)
                for name, column in context.items()
                if column is not None
            },
            "outcomes": {
                name: rows.check_outcome(column, name, self.found)
                for name, column in outcomes.items()
                if column is not None
            },
        }

    def check_rewards(
        self, column: Column, name: object, reward_range: tuple[float, float] | None, found: Findings
    ) -> FloatArray | None:
        """Rewards as float64, shape (T,); labels as the numbers that the user says."""
        if self.success is not None:
            numbered = numbered_outcomes(column, name, self.success, found)
            if numbered is None:
                return None
            column = numbered
        return rows.check_rewards(column, name, reward_range, self.as_written, self.gaps, found)

    def outcome_rounds(self, columns: dict[str, Any], rounds: NDArray[Any] | None) -> NDArray[Any] | None:
        """When outcomes became known, shape (T,), as written; `columns` gets the numbers of rounds."""
        unusable = columns["reward"] is None or (rounds is None and "round" in self.roles.single)
        if unusable or self.found.problems:
            return None
        options = rounds, np.isnan(columns["reward"]), self.formats.get("round")
        written, columns["known"] = self.single("outcome_round", check_known, *options) or (None, None)
        return written

    def feedback_rounds(self, given: Metadata, known: IntArray | None) -> Any:
        """Number of rewards that could reach a later choice, where the log tells; known (T,)."""
        if known is None:
            return given.feedback_rounds
        if given.adaptive is False and given.feedback_rounds is None:
            return None
        most = int(np.count_nonzero(known < len(known)))
        if isinstance(given.feedback_rounds, (int, np.integer)) and given.feedback_rounds > most:
            self.found.add(
                "bad-feedback-rounds",
                f"feedback_rounds is {given.feedback_rounds}, and only {most} outcomes became known before "
                "the last choice",
            )
        return most if given.feedback_rounds is None else given.feedback_rounds

    def propensities(
        self, action: IntArray | None, batch: IntArray | None
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Propensity of the chosen arm, shape (T,), and of every arm, shape (T, K)."""
        chosen: FloatArray | None = self.single("propensity", rows.check_propensity)
        if self.from_batches:
            settled = action is not None and not self.found.problems
            filled = (batch, action, chosen, len(self.arms), self.found)
            return chosen, filled_from_batches(*filled) if settled else None  # type: ignore[arg-type]
        position = {label_key(arm): place for place, arm in enumerate(self.arms)}
        table, complete = np.empty((len(self.frame), len(self.arms))), set()
        for arm, name in self.arm_columns.pairs:
            if (column := self.read(name)) is None:
                continue
            values = rows.check_probabilities(column, f"propensity column {name!r}", "[0", self.found)
            if values is not None and label_key(arm) in position:
                table[:, position[label_key(arm)]] = values
                complete.add(label_key(arm))
            del values, column  # a log may fill the memory
        if not complete or len(complete) < len(self.arms):
            return chosen, None
        names = [name for _, name in self.arm_columns.pairs]
        return check_propensity_rows(chosen, table, action, names, self.found), table

    def names(self) -> dict[Hashable, str]:
        """Canonical names by the user's own."""
        single = {name: CANONICAL[role] for role, name in self.roles.single.items()}
        by_arm = {name: f"propensity_{arm}" for arm, name in self.arm_columns.pairs}
        own: dict[Hashable, str] = {name: name for name in (*self.roles.context, *self.roles.outcomes)}
        return {**single, **by_arm, **own}
