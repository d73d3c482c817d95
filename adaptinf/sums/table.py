"""Sums: rewards added up by batch and arm, with what they promise, as a log has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import InvalidForLog
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.log.promises import Promises, source_note
from adaptinf.log.validation import METADATA, Label, Metadata
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.metadata import check_metadata
from adaptinf.log.validation.rows import check_reward_range
from adaptinf.parameters import FINITE, check, refuse
from adaptinf.sums.cells import Cells, cells_of_rows
from adaptinf.sums.parts import merged, sometimes_impossible, summable
from adaptinf.sums.reading import read_cells
from adaptinf.sums.storage import StoredSums, read_stored, write_stored
from adaptinf.texts import visible_lines

NEEDS_ROWS = "it needs rows, and these are sums by batch and arm"
"""Why a method that reads rounds one by one refuses sums."""
_ADDED = ("adaptive_rounds", "released_rounds")


class Sums(Promises):
    """Sums of rewards by batch and arm, from which arms are compared as from a log.

    Parameters
    ----------
    frame : DataFrame
        Of pandas or polars, a row for each batch and arm, in any order. An arm without a row in a batch had
        propensity 0 there.
    batch : str
        Column of the batches, in which nothing adapts: numbers, dates or times, whose order is theirs.
    arm : str
        Column of the arms.
    n : str
        Column of the number of rounds.
    sum, sum_squares : str
        Columns of the sums of their rewards, and of these squared.
    sum_cubes : str, optional
        Column of the sums of cubed rewards, with which intervals are corrected for skewness. Rewards that are
        0 or one other value need none, and no `nonzero` either.
    nonzero : str, optional
        Column of the number of rewards other than 0, by which rare outcomes are known.
    propensity : str, optional
        Column of the arm's propensity in the batch. Without it the arms' shares of the batch stand in, as
        estimates.
    centre : float
        What was subtracted from every reward before it was summed, so that squares keep their digits.
    arms : list of labels, optional
        All arms in the order you want.
    context : list of str, optional
        Names of contexts that may have had a part in the choice of arms.
    date_format : str, optional
        Format of dates that are text, where it is ambiguous.
    reward_range, propensity_status, guarantee, reward_guarantee, design, noise, adaptive_rounds, \
    released_rounds, context_free : optional
        As for `AdaptiveLog`.

    Attributes
    ----------
    cells : Cells
        The sums as arrays.
    batches : ndarray, shape (B,)
        The batches in order.
    arms : tuple of labels
        All arms.
    n_rounds, n_arms, n_batches : int
        Their numbers.

    Raises
    ------
    LogValidationError
        With everything that is wrong with the table, and the rows.
    ParameterError
        If the frame is none, or the centre no number.

    Notes
    -----
    Results equal those of the rows with ``outcome="batch-mean"``. A weight has to be the same for all rounds
    of a batch; what needs rows refuses and says so. `Sums` of different rounds are merged by ``a + b``.

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
        batch: str,
        arm: str,
        n: str,
        sum: str,
        sum_squares: str,
        sum_cubes: str | None = None,
        nonzero: str | None = None,
        propensity: str | None = None,
        centre: float = 0.0,
        arms: Sequence[Any] | None = None,
        context: Sequence[str] = (),
        date_format: str | None = None,
        reward_range: tuple[float, float] | None = None,
        propensity_status: str | None = None,
        guarantee: PrivacyGuarantee | Mapping[str, Any] | None = None,
        reward_guarantee: PrivacyGuarantee | Mapping[str, Any] | None = None,
        design: Any = None,
        noise: str | None = None,
        adaptive_rounds: int | None = None,
        released_rounds: int | None = None,
        context_free: bool | None = None,
    ) -> None:
        given = dict(locals())
        check("Sums", centre=(centre, FINITE))
        found = Findings()
        span = check_reward_range(reward_range, False, found)
        estimated = propensity is None or propensity_status == "estimated"
        read = read_cells(
            frame,
            {name: given[name] for name in _COLUMNS},
            arms=arms,
            centre=float(centre),
            reward_range=span,
            date_format=date_format,
            estimated=estimated,
            found=found,
        )
        self._check(read, span, given, found, shares=propensity is None)

    def _check(
        self,
        read: tuple[Cells, NDArray[Any], tuple[Label, ...]] | None,
        reward_range: tuple[float, float] | None,
        given: Mapping[str, Any],
        found: Findings,
        *,
        shares: bool,
    ) -> None:
        """Check what is given beside cells, batches and arms, and take all of it; else one error."""
        context = given["context"]
        metadata = check_metadata(
            Metadata(**{name: given[name] for name in METADATA if name in given}),
            n_rounds=2**53 if read is None else int(read[0].rounds.sum()),
            arms=() if read is None else read[2],
            has_propensity=True,
            units=None,
            found=found,
        )
        if isinstance(context, str) or not all(isinstance(name, str) for name in context):
            found.add("bad-context", f"context must be a list of names, got {context!r:.80}")
        if shares and given["propensity_status"] not in (None, "estimated"):
            message = "without propensities the arms' shares stand in for them, which are estimates"
            found.add("bad-propensity-status", f"propensity_status must be 'estimated': {message}")
        found.raise_if_any("the table of sums")
        assert read is not None
        self._fill(*read, reward_range, metadata, tuple(context), shares=shares)
        if shares:
            self.propensity_status = "estimated"

    def _fill(
        self,
        cells: Cells,
        batches: NDArray[Any],
        arms: tuple[Label, ...],
        reward_range: tuple[float, float] | None,
        metadata: Metadata,
        context: tuple[str, ...],
        *,
        shares: bool,
    ) -> None:
        self.cells, self.batches, self.arms = cells, batches, arms
        self.n_rounds, self.n_arms, self.n_batches = int(cells.rounds.sum()), len(arms), len(batches)
        self.reward_range, self.context, self.shares = reward_range, context, shares
        self._promise(metadata)
        self.units = None
        self.kept: dict[str, Any] = {}

    @classmethod
    def of_log(cls, log: AdaptiveLog, centre: float | None = None) -> Sums:
        """Sums of a log's rows, by its batches and arms.

        Parameters
        ----------
        log : AdaptiveLog
            With batches, propensities, and rewards of which none is missing.
        centre : float, optional
            What is subtracted from rewards before they are summed; by default the mean of the first batch.

        Returns
        -------
        Sums
            With the log's guarantee, design and all else that it says about itself.

        Raises
        ------
        InvalidForLog
            If the log lacks something, units have several rounds, or an arm could be chosen in some rounds of
            a batch alone.

        Examples
        --------
        >>> import adaptinf as ai
        >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
        >>> log = ai.designs.Thompson(batch_size=100, floor=0.1).run(arms, horizon=300, rng=0)
        >>> ai.Sums.of_log(log).n_batches
        3
        """
        arrays = summable(log)
        reward, batch = arrays.reward, arrays.batch
        centre = float(reward[batch == 0].mean()) if centre is None else centre
        check("Sums.of_log", centre=(centre, FINITE))
        table = arrays.propensities
        cells = cells_of_rows(
            arrays.action, reward, arrays.propensity, table, batch, log.n_arms, float(centre)
        )
        if sometimes_impossible(cells):
            raise InvalidForLog(
                "Sums", "an arm could be chosen in some rounds of a batch alone", ["smaller batches"]
            )
        sums = cls.__new__(cls)
        metadata = Metadata(**{name: getattr(log, name) for name in METADATA})
        numbered = np.arange(len(cells.rounds))
        sums._fill(cells, numbered, log.arms, log.reward_range, metadata, log.context, shares=False)
        return sums

    def __add__(self, other: object) -> Sums:
        """Sums of the rounds of both, which have no round in common."""
        if not isinstance(other, Sums):
            return NotImplemented
        refuse("Sums", _of_other_trials(self, other))
        batches, cells = merged(self, other)
        counts = {
            name: None if None in (pair := (getattr(self, name), getattr(other, name))) else int(np.sum(pair))
            for name in _ADDED
        }
        kept = {name: getattr(self, name) for name in METADATA} | counts
        sums = type(self).__new__(type(self))
        sums._fill(
            cells, batches, self.arms, self.reward_range, Metadata(**kept), self.context, shares=self.shares
        )
        return sums

    @property
    def frame(self) -> pd.DataFrame:
        """Counts, means, sums and mean propensities, a row for each batch and arm."""
        raw = self.cells.about(0.0)
        size = self.n_batches, self.n_arms
        columns = {
            "n": raw.pulls,
            "sum": raw.moments[0, 1],
            "sum_squares": raw.moments[0, 2],
            "propensity": raw.expected / raw.rounds[:, None],
        }
        labels = {
            "batch": np.repeat(self.batches, size[1]),
            "arm": [arm for _ in range(size[0]) for arm in self.arms],
        }
        return pd.DataFrame(labels | {name: values.ravel() for name, values in columns.items()})

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the sums, with all that they say about themselves, as one Parquet file.

        Parameters
        ----------
        path : path
            Ends in ``.parquet`` or ``.pq``.

        Raises
        ------
        ParameterError
            If the name ends otherwise.
        FileError
            If the file cannot be written; one that is there stays as it is.
        """
        metadata = {name: getattr(self, name) for name in METADATA}
        also = {"context": self.context, "reward_range": self.reward_range, "shares": self.shares}
        write_stored(path, StoredSums(self.cells, self.batches, self.arms, metadata, also))

    @classmethod
    def read_parquet(cls, path: str | PathLike[str]) -> Sums:
        """Sums that `to_parquet` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Sums
            Equal to those that were written.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ParameterError
            If it holds no sums that adaptinf wrote, or is damaged.
        """
        stored = read_stored(path)
        sums = cls.__new__(cls)
        also = stored.also
        sums._fill(
            stored.cells,
            stored.batches,
            stored.arms,
            also["reward_range"],
            Metadata(**stored.metadata),
            also["context"],
            shares=also["shares"],
        )
        return sums

    def __repr__(self) -> str:
        arms = ", ".join(map(repr, self.arms[:8])) + (", ..." if self.n_arms > 8 else "")
        known = ", every arm" if self.cells.knows_every else ", chosen arm only"
        told = source_note(self.guarantee_source)
        lines = [
            f"Sums: {self.n_rounds:,} rounds in {self.n_batches:,} batches, {self.n_arms} arms ({arms})",
            f"  design: {'unknown' if self.design is None else self.design.name}",
            f"  guarantee: {self.guarantee or 'none'}{told}",
            f"  propensities: {'shares of the batches' if self.shares else self.propensity_status + known}",
        ]
        return visible_lines(lines)


_COLUMNS = ("batch", "arm", "n", "sum", "sum_squares", "sum_cubes", "nonzero", "propensity")


def _of_other_trials(first: Sums, second: Sums) -> list[str]:
    """Why two sums are not of one trial."""
    problems = [
        f"{name} differs: {getattr(first, name)!r:.80} and {getattr(second, name)!r:.80}"
        for name in ("arms", "shares", "context", "reward_range", *METADATA)
        if name not in _ADDED and not _same(getattr(first, name), getattr(second, name))
    ]
    kinds = {first.batches.dtype.kind, second.batches.dtype.kind}
    if len(kinds) > 1 and "M" in kinds:
        problems.append("the batches of one are times, those of the other numbers")
    return [f"to be merged they must be of one trial: {problem}" for problem in problems]


def _same(first: object, second: object) -> bool:
    """Whether two values of metadata are equal; designs by what is stored of them."""
    return first == second or repr(first) == repr(second)
