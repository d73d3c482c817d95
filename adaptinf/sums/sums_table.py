"""Rewards summed by batch and arm, with the guarantees of the trial; the sums are used like a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import rows as claims
from adaptinf.files import owners_alone
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.log.log_reading import dialect_from
from adaptinf.log.provenance import Promises, source_note
from adaptinf.log.validation import METADATA, OF_TABLES, Label, Metadata, group_options
from adaptinf.log.validation.column_checks import check_reward_range
from adaptinf.log.validation.frame_columns import Findings
from adaptinf.log.validation.metadata import check_metadata
from adaptinf.parameters import FINITE, check, refuse
from adaptinf.sums.covariate_columns import WithFurther, further_columns, further_roles
from adaptinf.sums.groups import Grouped, Parts, rounds_of_both
from adaptinf.sums.storage import StoredSums, frame_of, read_stored, write_stored
from adaptinf.sums.sums_of_log import parts_of_log
from adaptinf.sums.sums_reading import read_parts
from adaptinf.sums.unit_totals import UnitTotals
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray

ADDED = ("feedback_rounds", "released_rounds")
"""Counts that are added when the parts of a trial are combined."""
_ALIKE = ("arms", "group_names", "denominators", "covariates", "shares", "context", "reward_range")


def other_trials(first: Sums, second: Sums) -> list[str]:
    """The differences that show that two objects of type `Sums` are not from the same trial."""
    problems = [
        f"{name} differs: {getattr(first, name)!r:.80} and {getattr(second, name)!r:.80}"
        for name in (*_ALIKE, *METADATA)
        if name not in ADDED and not _same(getattr(first, name), getattr(second, name))
    ]
    kinds = {first.batches.dtype.kind, second.batches.dtype.kind}
    if len(kinds) > 1 and "M" in kinds:
        problems.append("the batches of one are times, but those of the other are numbers")
    problems = [
        f"they can be merged only if they come from the same trial: {problem}" for problem in problems
    ]
    if not (first.batched and second.batched):
        problems.append(
            "totals without batches cannot be merged: number the parts, and name the column in batch="
        )
    if first.by_unit is not None or second.by_unit is not None:
        reason = "a unit may be in both tables, so sums by unit cannot be merged: aggregate all rows together"
        problems.append(reason)
    return problems


def joint_movement(first: Sums, second: Sums) -> float | None:
    """Bonferroni p-value for constant shares within the batches of both; None if neither has a p-value."""
    seen = [each.share_movement for each in (first, second) if each.share_movement is not None]
    return min(1.0, len(seen) * min(seen)) if seen else None


def _same(first: object, second: object) -> bool:
    """Whether two items of metadata are equal; designs are compared in their stored form."""
    return first == second or repr(first) == repr(second)


NEEDS_ROWS = claims.NEEDS_ROWS()
"""The reason given when a method that needs individual rounds refuses sums."""


class Sums(WithFurther, Grouped, Promises):
    """Sums of rewards by batch and arm, which can be used like a log to compare arms.

    Parameters
    ----------
    frame : DataFrame or path
        A pandas or polars frame, or anything that `read_log` reads, with one row for each batch and arm, in
        any order. An arm without a row in a batch is assumed to have had propensity 0 there. If it is the
        only such arm, and may have received no rounds by chance, its propensity is the remaining probability.
    arm : str
        Column of the arms.
    n : str
        Column with the number of rounds.
    sum, sum_squares : str
        Columns with the sums of the rewards and of their squares.
    batch : str, optional
        Column of the batches; propensities must not depend on rewards of the same batch. Batches are numbers,
        dates or times, which also determine their order. If it is omitted, the table contains totals, and
        propensities are assumed to be constant over all rounds.
    sum_cubes : str, optional
        Column with the sums of the cubes of the rewards, used to correct intervals for skewness. Neither this
        column nor `nonzero` is needed if the rewards take only 0 and one other value.
    nonzero : str, optional
        Column with the number of nonzero rewards, which shows whether outcomes are rare.
    propensity : str or float, optional
        Column with the arm's propensity in the batch, or one number for all rows. If it is omitted, the arms'
        shares of the batch are used as estimates, and an arm without rounds in a batch is treated as
        unavailable there.
    group : str or list of str, optional
        Columns whose labels define groups. The table then has one row for each batch, group and arm. These
        columns are treated as contexts.
    denominator : str, optional
        Column with the sums of another, nonnegative outcome, by whose mean the mean rewards are divided.
    covariate : str, optional
        Column with the sums of a variable that was observed before the choice and can explain rewards. The
        variable is treated as a context.
    centre : float
        Value that was subtracted from every reward before summation, so that squares do not lose precision.
    arms : list of labels, optional
        All arms, in the desired order.
    reward_range, guarantee, adaptive, stopping : optional
        As in `AdaptiveLog`.
    columns : dict, optional
        Further columns, of which `denominator` requires two: ``"denominator_sum_squares"``, the sums of
        squares of the denominator z, and ``"denominator_sum_products"``, the sums of products of z and the
        reward y. ``"denominator_sum_cubes"``, a list of the columns with the sums of y^2 z, y z^2 and z^3, is
        used to correct intervals for skewness. A covariate requires the corresponding columns
        ``"covariate_sum_squares"`` and so on.
    reading : dict, optional
        ``"date_format"``, the format of batches that are text dates, if it is ambiguous; ``"sep"``,
        ``"decimal"``, ``"encoding"`` and ``"missing_values"`` as for `read_log`; ``"round_propensities"`` as
        for `AdaptiveLog`.
    about : dict, optional
        ``"context"``, a list of names of contexts that may have affected the choice of arms; and, as for
        `AdaptiveLog`, ``"design"``, ``"noise"``, ``"feedback_rounds"``, ``"released_rounds"``,
        ``"context_free"``, ``"propensity_status"`` and ``"reward_guarantee"``.

    Attributes
    ----------
    cells : Cells
        Arrays of sums over all groups.
    batches : ndarray, shape (B,)
        The batches in order.
    arms : tuple of labels
        All arms.
    n_rounds, n_arms, n_batches : int
        Their numbers.
    n_units : int or None
        Number of units, if there are totals by unit for clustered standard errors; otherwise None.
    group_names : tuple of str
        Columns that define the groups; empty if there are none.
    denominators, covariates : tuple of str
        Additional columns, for ratios and for adjustment; empty if there are none.
    batched : bool
        Whether the table has batches.
    share_movement : float or None
        P-value for the hypothesis that arms' shares are constant within batches. The p-value is known only if
        `aggregate` truncated times and found no propensities, or read rows in their order (from pandas,
        Polars or Arrow) whose propensities are unknown or constant within batches; otherwise None.

    Raises
    ------
    LogValidationError
        If the table or its rows are invalid; the message lists every problem.
    ParameterError
        If the frame is not a table, or the centre is not a number.

    Notes
    -----
    Results equal those that the rows would give with ``outcome="batch-mean"``. Weights must be the same for
    all rounds of a batch. Methods that need individual rounds raise an error if they are given sums. `Sums`
    over different rounds are combined by ``a + b``.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> table = pd.DataFrame(
    ...     {
    ...         "week": [1, 1, 2, 2],
    ...         "arm": ["a", "b", "a", "b"],
    ...         "users": [510, 490, 380, 620],
    ...         "buyers": [50, 74, 41, 88],
    ...         "share": [0.5, 0.5, 0.4, 0.6],
    ...     }
    ... )
    >>> sums = ai.Sums(
    ...     table,
    ...     batch="week",
    ...     arm="arm",
    ...     n="users",
    ...     sum="buyers",
    ...     sum_squares="buyers",
    ...     propensity="share",
    ... )
    >>> sums
    Sums: 2,000 rounds in 2 batches, 2 arms ('a', 'b')
      design: unknown
      guarantee: none
      propensities: exact, every arm
    >>> ai.Contrast(sums, treatment="b", control="a").fit().conf_int().round(3)
             low   high
    b - a  0.015  0.073
    """

    def __init__(
        self,
        frame: Any,
        *,
        arm: str,
        n: str,
        sum: str,
        sum_squares: str,
        batch: str | None = None,
        sum_cubes: str | None = None,
        nonzero: str | None = None,
        propensity: str | float | None = None,
        group: str | Sequence[str] | None = None,
        denominator: str | None = None,
        covariate: str | None = None,
        centre: float = 0.0,
        arms: Sequence[Any] | None = None,
        reward_range: tuple[float, float] | None = None,
        guarantee: PrivacyGuarantee | Mapping[str, Any] | None = None,
        adaptive: bool | None = None,
        stopping: str | None = None,
        columns: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        check("Sums", centre=(centre, FINITE))
        found = Findings()
        span = check_reward_range(reward_range, False, found)
        further = group_options("columns", columns, OF_TABLES, found)
        how = group_options("reading", reading, OF_TABLES, found)
        known = group_options("about", about, OF_TABLES, found)
        roles: dict[str, object] = {"batch": batch, "arm": arm, "propensity": propensity, "n": n, "sum": sum}
        roles |= {"sum_squares": sum_squares, "sum_cubes": sum_cubes, "nonzero": nonzero}
        roles |= further_roles({"denominator": denominator, "covariate": covariate, **further}, found)
        read = read_parts(
            frame,
            roles,
            group=group,
            arms=arms,
            centre=float(centre),
            reward_range=span,
            date_format=how.get("date_format"),
            rounded=how.get("round_propensities", False),
            estimated=propensity is None or known.get("propensity_status") == "estimated",
            found=found,
            dialect=dialect_from("Sums", how)[0],
        )
        stated = {"guarantee": guarantee, "adaptive": adaptive, "stopping": stopping, **known}
        self._check(read, span, stated, found, shares=propensity is None, batched=batch is not None)

    def _check(
        self,
        read: tuple[Parts, tuple[Label, ...]] | None,
        reward_range: tuple[float, float] | None,
        given: Mapping[str, Any],
        found: Findings,
        *,
        shares: bool,
        **kept: Any,
    ) -> None:
        """Check and store everything except parts and arms; raise a single error if anything is invalid."""
        context = given.get("context") or ()
        metadata = check_metadata(
            Metadata(**{name: value for name, value in given.items() if name != "context"}),
            n_rounds=2**53 if read is None else read[0].n_rounds,
            arms=() if read is None else read[1],
            has_propensity=True,
            units=None,
            found=found,
        )
        if isinstance(context, str) or not all(isinstance(name, str) for name in context):
            found.add("bad-context", f"context must be a list of names, got {context!r:.80}")
        if shares and given.get("propensity_status") not in (None, "estimated"):
            message = (
                "without propensities, the arms' shares are used in their place, and these are estimates"
            )
            found.add("bad-propensity-status", f"propensity_status must be 'estimated': {message}")
        found.raise_if_any("the table of sums")
        assert read is not None
        named = tuple(dict.fromkeys([*context, *read[0].names, *read[0].covariates]))
        self._fill(*read, reward_range, metadata, named, shares=shares, **kept)
        if shares:
            self.propensity_status = "estimated"

    def _fill(
        self,
        parts: Parts,
        arms: tuple[Label, ...],
        reward_range: tuple[float, float] | None,
        metadata: Metadata,
        context: tuple[str, ...],
        *,
        shares: bool,
        by_unit: UnitTotals | None = None,
        moved: float | None = None,
        batched: bool = True,
    ) -> None:
        self._parts, self.arms, self.group_names = parts, arms, parts.names
        self.cells, self.batches = parts.whole(shares=shares)
        self.n_rounds, self.n_arms, self.n_batches = parts.n_rounds, len(arms), len(self.batches)
        self.reward_range, self.context, self.shares = reward_range, context, shares
        self._promise(metadata)
        self.units, self.by_unit = None, by_unit
        self.n_units = None if by_unit is None else by_unit.count
        self.share_movement, self.batched = moved, batched
        self.kept: dict[str, Any] = {}

    @classmethod
    def of_log(
        cls,
        log: AdaptiveLog,
        centre: float | None = None,
        by: str | Sequence[str] = (),
        *,
        denominator: str | Sequence[str] = (),
        covariate: str | Sequence[str] = (),
    ) -> Sums:
        """Sums of the rows of a log, by batch and arm.

        Parameters
        ----------
        log : AdaptiveLog
            A log with batches and propensities, and without missing rewards.
        centre : float, optional
            Value subtracted from rewards before summation; by default the mean of the first batch.
        by : str or list of str
            Context columns whose labels define groups; by default none.
        denominator : str or list of str
            Columns of the log by whose means mean rewards can be divided; by default none.
        covariate : str or list of str
            Numeric contexts that can explain rewards; by default none.

        Returns
        -------
        Sums
            The sums, with the log's guarantee, its design and its other metadata.

        Raises
        ------
        ParameterError
            If there is no such context, the centre is not a number, or `log` is not a log.
        InvalidForLog
            If the log lacks something that sums require, if an arm was certain in only some rounds of a batch
            (and group), or if units have several rounds and either groups are requested or an arm was
            impossible in some round.

        Examples
        --------
        >>> import adaptinf as ai
        >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
        >>> log = ai.designs.Thompson(batch_size=100, floor=0.1).run(arms, horizon=300, rng=0)
        >>> ai.Sums.of_log(log).n_batches
        3
        """
        further = further_columns("Sums.of_log", denominator, covariate)
        parts, context, by_unit = parts_of_log(log, by, centre, further)
        sums = cls.__new__(cls)
        metadata = Metadata(**{name: getattr(log, name) for name in METADATA})
        sums._fill(parts, log.arms, log.reward_range, metadata, context, shares=False, by_unit=by_unit)
        sums.owner_only = log.owner_only
        return sums

    def __add__(self, other: object) -> Sums:
        """Sums over the rounds of both, which must have no round in common."""
        if not isinstance(other, Sums):
            return NotImplemented
        refuse("Sums", other_trials(self, other) or rounds_of_both(self._parts, other._parts))
        counts = {
            name: None if None in (pair := (getattr(self, name), getattr(other, name))) else int(np.sum(pair))
            for name in ADDED
        }
        sums = self._of_parts(self._parts.plus(other._parts, shares=self.shares), **counts)
        sums.share_movement = joint_movement(self, other)
        sums.owner_only = self.owner_only or other.owner_only
        return sums

    def _of_parts(self, parts: Parts, **changed: Any) -> Sums:
        """Sums with the same metadata."""
        metadata = Metadata(**{name: getattr(self, name) for name in METADATA} | changed)
        gone = () if parts.names else self.group_names
        context = tuple(name for name in self.context if name not in gone)
        sums = type(self).__new__(type(self))
        about = self.reward_range, metadata, context
        kept: dict[str, Any] = {"moved": self.share_movement, "batched": self.batched}
        sums._fill(parts, self.arms, *about, shares=self.shares, **kept)
        sums.owner_only = self.owner_only
        return sums

    @property
    def frame(self) -> pd.DataFrame:
        """Counts, means, sums and mean propensities, with one row for each batch and arm (and group)."""
        return frame_of(self._parts, self.arms)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the sums and their metadata to a single Parquet file.

        Parameters
        ----------
        path : path
            File name that ends in ``.parquet`` or ``.pq``.

        Raises
        ------
        ParameterError
            If the name has another ending.
        FileError
            If the file cannot be written; an existing file is left unchanged.
        """
        metadata = {name: getattr(self, name) for name in METADATA}
        also = {name: getattr(self, name) for name in _ALSO}
        write_stored(path, StoredSums(self._parts, self.arms, metadata, also, self.by_unit), self.owner_only)

    @classmethod
    def read_parquet(cls, path: str | PathLike[str]) -> Sums:
        """Load sums written by `to_parquet`.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Sums
            The sums that were written.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ParameterError
            If the file is damaged, or was not written by `to_parquet`.
        """
        stored = read_stored(path)
        sums, also = cls.__new__(cls), stored.also
        told = also["reward_range"], Metadata(**stored.metadata), also["context"]
        kept = {"shares": also["shares"], "moved": also["share_movement"], "batched": also["batched"]}
        kept |= {"by_unit": stored.by_unit}
        sums._fill(stored.parts, stored.arms, *told, **kept)
        sums.owner_only = owners_alone(Path(path)) is True
        return sums

    def _rounds_by_arm(self) -> FloatArray:
        return np.asarray(self.cells.pulls.sum(axis=0))

    def __repr__(self) -> str:
        arms = ", ".join(map(repr, self.arms[:8])) + (", ..." if self.n_arms > 8 else "")
        known = ", every arm" if self.cells.knows_every else ", chosen arm only"
        told = source_note(self.guarantee_source)
        groups = f"{', '.join(self.group_names)} ({', '.join(map(repr, self.groups[:8]))}"
        groups += ", ...)" if len(self.groups) > 8 else ")"
        lines = [
            claims.SUMS(total=self.n_rounds, batches=self.n_batches, arms=self.n_arms, labels=arms),
            f"  design: {'unknown' if self.design is None else self.design.name}{self.adaptive_told}",
            *self.stopping_told,
            f"  guarantee: {self.guarantee or 'none'}{told}",
            f"  propensities: {'shares of the batches' if self.shares else self.propensity_status + known}",
            *([f"  groups: {groups}"] if self.group_names else []),
            *self._further_lines(),
            *([] if self.n_units is None else [f"  units: {self.n_units:,}"]),
        ]
        return visible_lines(lines)


_ALSO = ("context", "reward_range", "shares", "share_movement", "batched")
