"""Validation of a user's frame: all problems are collected before one error is raised."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.log.report import Reading
from adaptinf.log.validation import column_checks as rows
from adaptinf.log.validation.arm_columns import (
    FROM_BATCHES,
    ArmColumns,
    arms_of_entries,
    check_actions,
    check_propensity_rows,
    code_actions,
    declare_arms,
    filled_from_batches,
    find_arm_columns,
    order_arms,
)
from adaptinf.log.validation.column_checks import check_probabilities, implied_range, numbered_outcomes
from adaptinf.log.validation.column_roles import (
    CANONICAL,
    check_arm_names,
    locate_roles,
    missing_column,
)
from adaptinf.log.validation.decision_ids import check_decisions
from adaptinf.log.validation.frame_columns import (
    SUM_TOLERANCE,
    Column,
    Findings,
    Label,
    Labels,
    as_float,
    column_names,
    index_names,
    label_key,
    read_labels,
)
from adaptinf.log.validation.metadata import IncompleteArrays, LogArrays, Metadata, check_metadata
from adaptinf.log.validation.one_hot_actions import one_hot_column, one_hot_names
from adaptinf.log.validation.propensity_rounding import no_flag
from adaptinf.log.validation.propensity_shapes import (
    Supplied,
    constant_column,
    entry_columns,
    holds_entries,
    is_constant,
    read_entries,
)
from adaptinf.log.validation.relations import in_memory, without_texts
from adaptinf.log.validation.row_order import check_date_format, date_column, has_zone, tell_ties
from adaptinf.log.validation.times.clock_changes import in_utc_from
from adaptinf.log.validation.times.timed_rows import TimedRows
from adaptinf.texts import listed
from adaptinf.typing import BoolArray, FloatArray, IntArray

MEANINGS = ("drop", "bounds", "worst", "best")
"""Possible meanings of a missing reward: missing at random given the arm, or any value in the range."""


def check_meaning(
    missing: object, observation: bool, reward_range: tuple[float, float] | None, found: Findings
) -> str | None:
    """The meaning of missing rewards; None if none are allowed. Probabilities of observation imply "drop"."""
    if missing is None:
        return "drop" if observation else None
    if not isinstance(missing, str) or missing not in MEANINGS:
        found.add("bad-missing", f"missing must be {' or '.join(map(repr, MEANINGS))}, got {missing!r:.60}")
        return None
    if missing != "drop" and observation:
        found.add(
            "bad-missing",
            f"'observation' applies only to missing='drop': bounds (missing={missing!r}) do not use "
            f"probabilities",
        )
    bounded = reward_range is not None and bool(np.isfinite(reward_range).all())
    if missing != "drop" and not bounded:
        found.add("bad-missing", f"missing={missing!r} requires reward_range=, the limits of the rewards")
    return missing


def check_some_observed(reward: FloatArray | None, found: Findings) -> None:
    """Refuse rewards if none is observed; reward has shape (T,)."""
    if reward is not None and np.isnan(reward).all():
        found.add("missing-reward", "every reward is missing, so nothing can be estimated")


def check_observation(column: Column, name: object, found: Findings) -> FloatArray | None:
    """Probabilities that outcomes are observed, shape (T,): above 0, because they are used as divisors."""
    return check_probabilities(column, f"observation column {name!r}", "(0", found)


def check_received(column: Column, name: object, arms: Sequence[Label], found: Findings) -> IntArray | None:
    """Codes of the arms received, shape (T,); they are among the arms that can be assigned."""
    labels = read_labels(column)
    what = f"received column {name!r}"
    found.add_rows("missing-received", f"{what} has no value", labels.missing)
    found.add_rows("bad-received", f"{what} must contain labels of arms", labels.bad)
    aside = Findings()
    codes = code_actions(labels, arms, True, what, aside)
    unseen = [label for label in labels.values if not any(_same(label, arm) for arm in arms)]
    told = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
    found.add_rows(
        "unseen-received",
        f"{what} contains {told}, which are not among the assigned arms, {list(arms)!r:.200}; list all arms "
        f"in arms=",
        (codes < 0) & (labels.codes >= 0),
    )
    return None if (codes < 0).any() else codes


def check_known(
    column: Column,
    name: object,
    rounds: NDArray[Any] | None,
    missing: BoolArray,
    date_format: str | None,
    zone: str | None,
    found: Findings,
) -> tuple[NDArray[Any], IntArray] | None:
    """Times at which outcomes became known, as written and as numbers of rounds begun, shape (T,) each.

    Shapes: rounds (T,), missing (T,). A missing outcome need not have a time.
    """
    what = f"outcome_round column {name!r}"
    found.add_rows("missing-outcome-round", f"{what} has no value", column.missing & ~missing)
    zoned = has_zone(column, date_format)
    if column.values.dtype.kind == "O":
        dates = date_column(column, what, "outcome-round", date_format, found)
        if dates is None:
            return None
        column = dates
    values = column.values
    own = np.arange(1, len(values) + 1) if rounds is None else rounds
    if values.dtype.kind not in "iufM" or (values.dtype.kind == "M") != (own.dtype.kind == "M"):
        kind = "times" if own.dtype.kind == "M" else "numbers"
        counted = " (1, 2, ..., because there is no round=)" if rounds is None else ""
        found.add(
            "bad-outcome-round", f"{what} must contain {kind}, like the rounds{counted}, not {column.dtype}"
        )
        return None
    if values.dtype.kind == "f":
        values, inexact = as_float(values)
        found.add_rows(
            "bad-outcome-round", f"{what} is infinite or too large for float64", inexact | np.isinf(values)
        )
    elif values.dtype.kind in "iu" and column.missing.any():
        values = np.where(column.missing, np.nan, values.astype(np.float64))
    elif zone is not None and not zoned:
        values = in_utc_from(values, own, zone, what, "outcome-round", found)
    early = ~column.missing & (values < own)
    found.add_rows("early-outcome-round", f"{what} is before the round itself", early)
    known = np.searchsorted(own, values, side="right").astype(np.int64)
    return values.copy(), np.where(column.missing, len(own), known)


def arrays_of(columns: dict[str, Any]) -> LogArrays:
    """The arrays of a log, from columns by field; incomplete arrays if a reward is missing."""
    gaps = bool(np.isnan(columns["reward"]).any())
    return IncompleteArrays(**columns) if gaps else LogArrays(**columns)


def incomplete(arrays: LogArrays) -> LogArrays:
    """The arrays of a log, unchecked; incomplete arrays if a reward is missing."""
    if arrays.observed is not None:
        return arrays
    return arrays_of(arrays.by_field())


def _same(label: Label, arm: Label) -> bool:
    return type(label) is type(arm) and label == arm


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """The contents found in a frame; rounds, units and ids have shape (T,)."""

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
    also_read: tuple[Hashable, ...] = ()
    """Columns that were read and have no canonical name."""


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
    """Read a frame, or raise one error that lists all problems, including earlier ones."""
    # `as_written` means that no earlier step can have changed a number, as in a file with a digest.
    found, how = Findings() if found is None else found, reading or {}
    frame = _frame_of(frame, how.get("missing_values"), found)
    if not len(frame):
        found.add("empty-frame", "the frame has no rows")
    declared = declare_arms(arms, found)
    check = _FrameCheck(frame, single, context, outcomes, how, found)
    check.as_written = as_written
    arms_of_columns = check.find_one_hot()
    declared = arms_of_columns if declared is None else declared
    check.from_batches = isinstance(propensities, str) and propensities == FROM_BATCHES
    check.find_arms(None if check.from_batches else propensities, declared)
    given_range = implied_range(check.success) if reward_range is None else reward_range
    checked_range = rows.check_reward_range(given_range, as_written, found)
    meaning = check_meaning(metadata.missing, "observation" in check.roles.single, checked_range, found)
    check.gaps = meaning is not None
    columns = check.columns(declared is not None, checked_range)
    rounds = check.rounds(columns["batch"] is not None)
    outcome_rounds = check.outcome_rounds(columns, rounds)
    units, ids = check.single("unit", rows.check_units), check.single("id", rows.check_ids)
    check.compare_decisions(ids, columns, {"round": rounds, "unit": units, "outcome_round": outcome_rounds})
    checked = check_metadata(
        replace(metadata, missing=meaning, feedback_rounds=check.feedback_rounds(metadata, columns["known"])),
        n_rounds=len(frame),
        arms=check.arms,
        has_propensity=single.get("propensity") is not None or bool(check.arm_columns.labels),
        # Units in an invalid column cannot be counted.
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
        tuple(check.also_read),
    )


def _is_number_alone(given: object, names: Sequence[Hashable]) -> bool:
    """Whether a number was given in place of a column and no column has that name."""
    return is_constant(given) and given not in names


def _frame_of(table: Any, missing_values: object, found: Findings) -> Any:
    """The frame in memory for a table, without texts that mean a missing value, or one error."""
    frame = in_memory(table)
    if frame is None:
        kinds = "a DataFrame of pandas or polars, or a table of Arrow, DuckDB, Dask or another engine"
        found.add("not-a-frame", f"the log must be {kinds}, got {type(table).__name__}")
        found.raise_if_any()
    found.index = index_names(frame)
    if missing_values is None:
        return frame
    given = missing_values if isinstance(missing_values, (list, tuple, set, frozenset)) else [None]
    texts = [text for text in given if isinstance(text, str)]
    if len(texts) < len(given):
        found.add("bad-option", f"missing_values must be a list of strings, got {missing_values!r:.60}")
        return frame
    return without_texts(frame, texts)


class _FrameCheck(TimedRows):
    """The checks on one frame, and the results that later checks need."""

    def __init__(
        self,
        frame: Any,
        single: Mapping[str, object],
        context: object,
        outcomes: object,
        how: Mapping[str, Any],
        found: Findings,
    ) -> None:
        names, constant = column_names(frame), single.get("propensity")
        self.one_hot = {role: given for role, given in single.items() if isinstance(given, list)}
        no_columns = {*self.one_hot, *({"propensity"} if _is_number_alone(constant, names) else ())}
        named = {role: name for role, name in single.items() if role not in no_columns}
        super().__init__(frame, locate_roles(names, named, context, found, outcomes), found)
        self.constant: Column | None = None
        if "propensity" in no_columns - {*self.one_hot}:
            self.constant = constant_column(constant, "propensity=", "(0", len(frame), found)
        self.labels: Labels | None = None
        self.arm_columns = ArmColumns()
        self.arms: tuple[Label, ...] = ()
        self.as_written = False
        self.gaps = False
        self.success = how.get("success")
        self.from_batches = False
        self.also_read: list[Hashable] = []
        self.check_rounding(how.get("round_propensities", False))
        self.check_periods(how.get("every"), how.get("timezone"))
        self.put_in_order(how.get("sort", False), check_date_format(how.get("date_format"), found))

    def check_rounding(self, asked: object) -> None:
        """Determine whether rows of propensities whose sum differs from 1 by rounding are renormalised."""
        self.rounded = bool(asked)
        if not isinstance(asked, (bool, np.bool_)):
            self.found.add(*no_flag(asked))

    def find_arms(self, propensities: object, declared: Sequence[Label] | None) -> None:
        """Determine the arms, their order and their propensity columns."""
        self.labels = self.single("action", check_actions, "action", self.as_written)
        observed = [] if self.labels is None else self.labels.values
        propensities = self.supplied(propensities, observed, declared)
        self.arm_columns = find_arm_columns(propensities, observed, declared, self.roles, self.found)
        self.arms = order_arms(observed, declared, self.arm_columns, self.found)
        check_arm_names(self.roles, self.arms, self.arm_columns.pairs, self.found)

    def find_one_hot(self) -> list[Label] | None:
        """Derive the arms for roles that list 0/1 columns; returns all arms that can be chosen."""
        arms = None
        for role, given in self.one_hot.items():
            told = "action" if role == "received" else role
            names = one_hot_names(told, given, self.found)
            absent = [name for name in names or () if name not in self.roles.names]
            for name in absent:
                missing_column(name, told, self.roles.names, self.found)
            if names is None or absent or not self.use(names, told):
                continue
            columns = {name: column for name in names if (column := self.read(name)) is not None}
            made = one_hot_column(columns, told, self.found) if len(columns) == len(names) else None
            if made is not None:
                key = Supplied(f"of {listed(names)}")
                self.made[key], self.roles.single[role] = made, key
                arms = names if role == "action" else arms
        return arms

    def use(self, names: Sequence[Hashable], role: str) -> bool:
        """Mark columns as read, and report those with a second role."""
        taken = {name: other for other, name in self.roles.users}
        twice = [name for name in names if name in taken]
        for name in twice:
            told = (
                f"column {name!r} is used as {taken[name]} and as {role}; use a separate copy of it "
                "for each role"
            )
            self.found.add("column-used-twice", told)
        self.also_read += names
        return not twice

    def supplied(
        self, propensities: object, observed: Sequence[Label], declared: Sequence[Label] | None
    ) -> object:
        """The value of propensities=, with constants and the entries of lists as columns by arm."""
        if isinstance(propensities, Mapping):
            return {arm: self.constant_of(arm, given) for arm, given in propensities.items()}
        if not isinstance(propensities, str) or (column := self.read(propensities)) is None:
            return propensities
        if not holds_entries(column):
            return propensities
        self.use([propensities], "propensities")
        n_arms = None if declared is None else len(declared)
        entries = read_entries(column, propensities, n_arms, self.found)
        if entries is None:
            return None
        by_place = {arm: place for place, arm in enumerate(declared or ())}
        if entries.texts is not None:
            what = f"propensity column {propensities!r}"
            arms = arms_of_entries(entries.texts, what, observed, declared, self.found)
            by_place = {arm: entries.texts.index(text) for arm, text in arms}
        made = entry_columns(entries, by_place, propensities)
        self.made |= {key: column for key, (_, column) in made.items()}
        return {arm: key for key, (arm, _) in made.items()}

    def constant_of(self, arm: object, given: object) -> object:
        """The column of an arm's propensities; a constant if a number is given that names no column."""
        if not is_constant(given) or given in self.roles.names:
            return given
        key = Supplied(f"{given!r} (arm {arm!r})")
        what = f"propensities= of arm {arm!r}"
        self.made[key] = constant_column(given, what, "[0", len(self.frame), self.found)
        return key

    def columns(self, declared: bool, reward_range: tuple[float, float] | None) -> dict[str, Any]:
        """Arrays by field of `LogArrays`, and the phases."""
        labels, self.labels = self.labels, None
        what = f"action column {self.roles.single.get('action', None)!r}"
        action = None if labels is None else code_actions(labels, self.arms, declared, what, self.found)
        del labels  # Labels of all rows may take much memory.
        reward = self.single("reward", self.check_rewards, reward_range)
        batch = self.batches()
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
        """Rewards as float64, shape (T,); labels become the numbers that the user specified."""
        if self.success is not None:
            numbered = numbered_outcomes(column, name, self.success, found)
            if numbered is None:
                return None
            column = numbered
        return rows.check_rewards(column, name, reward_range, self.as_written, self.gaps, found)

    def rounds(self, batched: bool) -> NDArray[Any] | None:
        """Numbers or times of the rounds, shape (T,); ties are reported."""
        rounds: NDArray[Any] | None = self.single("round", rows.check_rounds, self.formats.get("round"))
        if rounds is not None and not self.found.problems:
            tell_ties(f"round column {self.roles.single['round']!r}", rounds, batched, self.found)
        return rounds

    def compare_decisions(
        self,
        ids: NDArray[Any] | None,
        columns: Mapping[str, Any],
        others: Mapping[str, NDArray[Any] | None],
    ) -> None:
        """Report ids that occur in several rows, as far as columns could be read; all have shape (T,)."""
        if ids is None:
            return
        single = {**columns, **others}
        read = {(role, name): single.get(role) for role, name in self.roles.single.items()}
        for role, names in (("context", self.roles.context), ("outcomes", self.roles.outcomes)):
            read |= {(role, name): columns[role].get(name) for name in names}
        table = columns["propensities"]
        if table is not None:
            read |= {("propensities", arm): table[:, place] for place, arm in enumerate(self.arms)}
        known = {key: values for key, values in read.items() if values is not None}
        check_decisions(ids, self.roles.single["id"], known, self.found)

    def outcome_rounds(self, columns: dict[str, Any], rounds: NDArray[Any] | None) -> NDArray[Any] | None:
        """Times at which outcomes became known, shape (T,); `columns` receives the numbers of rounds."""
        unusable = columns["reward"] is None or (rounds is None and "round" in self.roles.single)
        if unusable or self.found.problems:
            return None
        options = rounds, np.isnan(columns["reward"]), self.formats.get("round"), self.zone
        written, columns["known"] = self.single("outcome_round", check_known, *options) or (None, None)
        return written

    def feedback_rounds(self, given: Metadata, known: IntArray | None) -> Any:
        """Number of rewards that could affect a later choice, if the log shows it; known (T,)."""
        if known is None:
            return given.feedback_rounds
        if given.adaptive is False and given.feedback_rounds is None:
            return None
        most = int(np.count_nonzero(known < len(known)))
        if isinstance(given.feedback_rounds, (int, np.integer)) and given.feedback_rounds > most:
            self.found.add(
                "bad-feedback-rounds",
                f"feedback_rounds is {given.feedback_rounds}, but only {most} outcomes became known before "
                "the last choice",
            )
        return most if given.feedback_rounds is None else given.feedback_rounds

    def propensities(
        self, action: IntArray | None, batch: IntArray | None
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Propensity of the chosen arm, shape (T,), and of every arm, shape (T, K)."""
        chosen: FloatArray | None = self.single("propensity", rows.check_propensity)
        if self.constant is not None:
            chosen = self.constant.values
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
            del values, column  # A log may be as large as the memory, so columns are released one by one.
        if not complete and self.constant is not None and chosen is not None:
            # One propensity for the chosen arm, whichever it is, applies to every arm if it is one over their
            # number.
            alike = np.broadcast_to(chosen[:, None], table.shape)
            fills = len(chosen) and abs(float(chosen[0]) * len(self.arms) - 1.0) <= SUM_TOLERANCE
            return chosen, alike.copy() if fills else None
        if not complete or len(complete) < len(self.arms):
            return chosen, None
        names = [name for _, name in self.arm_columns.pairs]
        own = check_propensity_rows(chosen, table, action, names, self.rounded, self.found)
        return own, table

    def names(self) -> dict[Hashable, str]:
        """Canonical names keyed by the user's own."""
        single = {name: CANONICAL[role] for role, name in self.roles.single.items() if name not in self.made}
        by_arm = {name: f"propensity_{arm}" for arm, name in self.arm_columns.pairs if name not in self.made}
        own: dict[Hashable, str] = {name: name for name in (*self.roles.context, *self.roles.outcomes)}
        return {**single, **by_arm, **own}
