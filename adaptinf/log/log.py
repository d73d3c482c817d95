"""AdaptiveLog, which a design writes and every method of inference reads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import NDArray

from adaptinf.drawing import drawn
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.interim import Interim
from adaptinf.log.provenance import source_note
from adaptinf.log.public import Publishable, noise_told, not_covered
from adaptinf.log.report import encode_readings
from adaptinf.log.storage.log_files import write_file
from adaptinf.log.storage.stored import PLAIN_FIELDS, RestoredLog, StoredLog, encode, same_values, storable
from adaptinf.log.validation import (
    OF_LOGS,
    DesignRecord,
    Label,
    LogArrays,
    Metadata,
    check_frame,
    columns_by_role,
    group_options,
    incomplete,
)
from adaptinf.log.validation.frame_columns import Findings
from adaptinf.texts import visible_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AdaptiveLog(Interim, Publishable):
    """A log of adaptively collected data: one row per round, in the order in which the arms were chosen.

    Parameters
    ----------
    frame : DataFrame
        A pandas or polars frame with T rows in time order. The frame is not modified, and its index is
        ignored: rows are counted from 0. Tables of Arrow, DuckDB, Dask or another engine are loaded
        completely.
    action : str or list of str
        Column of the chosen arms: strings, whole numbers, booleans or finite numbers. Labels that look the
        same or are equal, booleans mixed with other labels, and numbers mixed with text such as ``"1"`` are
        refused. A list of names refers to columns of 0 and 1, one for each arm and named after it; each row
        must contain exactly one 1.
    reward : str
        Numeric column of finite rewards; booleans count as 0 and 1.
    propensity : str or float, optional
        Column with the probability of the chosen arm given everything before the choice, in (0, 1], or one
        number for all rows. By default, the propensity is taken from the columns of all arms, if there are
        any.
    propensities : mapping of arm to str or float, or str, optional
        Column with the probability of each arm, chosen or not, in [0, 1], or one number for all rows. A
        string is a pattern for the columns' names if it contains ``{arm}``, such as ``"p_{arm}"``; otherwise
        the name of a column that contains lists, in the order of `arms`, or JSON objects keyed by arm, where
        a missing arm has probability 0; otherwise the common prefix of the columns' names. ``"from batches"``
        computes every arm's probability from `propensity` if it is constant within batches: an arm without
        rounds in a batch receives the remainder. Rows must sum to 1 within 1e-6, and the chosen arm's entry
        must equal `propensity` within a millionth of it. By default the columns named ``propensity_<arm>``,
        if the frame has them; without ``arms=`` such a column also adds an arm that was never chosen. Such
        columns are refused if none belongs to an arm, except for a single one given in addition to
        `propensity`.
    context : str or list of str, optional
        Columns known before the choice: finite numbers, booleans, or strings as labels.
    outcomes : str or list of str, optional
        Numeric columns of further outcomes, which the arm may have affected, such as the denominator of a
        ratio.
    batch : str, optional
        Column of batches, each of which must be contiguous: numbers, dates or times, which must increase, or
        labels. Batches are numbered from 0 in the log.
    unit : str, optional
        Column that identifies the participant. If a unit's arm is drawn once for all of its rounds, the
        propensity in these rounds is that of the draw, or 1 after the first round.
    id : str, optional
        Column of decision identifiers, by which rows can be matched with other tables. An identifier that
        occurs in two rows is refused: the rows are a copy if they are equal, and the result of a join that
        multiplied rows if their outcomes differ.
    round : str, optional
        Column of round numbers, times or dates that do not decrease, possibly as text in a single format
        (times with a zone become UTC); by default 1, ..., T. Rows with the same value keep their order, which
        is reported.
    arms : list of labels, optional
        All arms, in the desired order. The default is the arms that were chosen or have a propensity column:
        sorted if they are of one type, otherwise by first appearance.
    missing : {"drop", "bounds", "worst", "best"}, optional
        How missing rewards are interpreted; by default none may be missing. ``"drop"``: missing at random
        given the arm, and the context if there is one. ``"bounds"``: anything within `reward_range`, so
        estimates have two bounds, which tables show side by side; `params` are their midpoints, or the lower
        bounds with ``"worst"`` and the upper bounds with ``"best"``.
    assigned : str, optional
        Column of the assigned arms, if `action` contains the arms actually received. Propensities, and all
        analyses but one (`Contrast.fit` with ``estimand="received"``), then refer to the assigned arm.
    adaptive : bool, optional
        Whether assignment depended on earlier outcomes; False (an A/B test) gives the classical analysis.
    stopping : {"fixed", "data-chosen", "planned"}, optional
        How the number of rounds was determined: it was fixed in advance; it was chosen after looking at
        outcomes, as in an A/B test that ends at the first p < .05; or it followed from a planned rule. In the
        last two cases, tables that assume a fixed number of rounds say so. By default, tables assume that the
        number was fixed.
    reward_range : (float, float), optional
        Smallest and largest possible reward.
    guarantee : PrivacyGuarantee or dict of its fields, optional
        The privacy guarantee; if it is given here, it is marked as stated rather than derived from a design.
    columns : dict, optional
        Further columns by role: ``"phase"``, strings such as learning and estimation; ``"randomised"``,
        booleans that mark rounds whose arm was drawn with fixed probabilities; ``"observation"``,
        probabilities, known in advance, that the rewards are observed, which implies ``missing="drop"``;
        ``"outcome_round"``, the round, counted or timed as in `round`, at the end of which the outcome became
        known.
    reading : dict, optional
        How to read the columns: ``"success"``, the value that counts as 1 in a reward column with two labels,
        such as ``"Y"``, or a dict with the number for every label; ``"date_format"``, the format of text
        dates in `round` and `batch`, as for `datetime.datetime.strptime`, required if the month cannot be
        told from the day, as in 03/04/2020; ``"sort"``, True to sort the rows by `round`, or by `batch` if
        there is no `round`, for files that are stored newest first: arrays by round that are passed to a
        model are then in that order; ``"timezone"``, the name of a zone in the IANA database, such as
        ``"Europe/Berlin"``, in which times without a zone were recorded, so that they become UTC;
        ``"every"``, ``"hour"``, ``"day"``, ``"week"`` or ``"month"``, to form batches from the times in
        `batch` (or `round`), in that zone or otherwise in UTC if they have a zone and as written if they have
        none; ``"round_propensities"``, True to renormalise rows of propensities whose sum differs from 1 by
        no more than the rounding visible in their digits; ``"missing_values"``, a list of texts that
        represent missing values.
    about : dict, optional
        Further information about the collection:

        - ``"design"``: the design that collected the log, from the library or user-defined, its
          `DesignRecord`, or a name. A name alone implies nothing: rewards and contexts may then have affected
          the choice.
        - ``"context_free"``: True if no contexts, in the log or not, affected the choice of arms. Set this to
          False if contexts did affect the choice, even if the log does not contain them. By default, contexts
          may have affected the choice if the log has contexts and does not name a design that ignores them.
        - ``"propensity_status"``: how the propensities are known, ``"exact"`` (the default if there are any),
          ``"estimated"`` or ``"absent"``.
        - ``"feedback_rounds"`` and ``"released_rounds"``: number of rounds whose reward can change a later
          action, or also a release; unknown by default.
        - ``"rounds_per_unit"``: maximum number of rounds of a unit, fixed in advance, to which
          `person_guarantee` refers.
        - ``"recommended"``: the arm that a best-arm design recommended.
        - ``"reward_guarantee"``: the guarantee for the rewards of one round, by default the one that
          `guarantee` implies.
        - ``"noise"``: source of the privacy noise, ``"simulation"`` or ``"release"``.
        - ``"releases"``: the private releases, a frame with the columns round, name, group, value, mechanism
          and scale.

    Attributes
    ----------
    arrays : LogArrays
        The columns as NumPy arrays.
    report : LogReport
        A report on reading: rounds, arms and outcomes, and anything that was sorted, converted or dropped.
    arms : tuple of labels
        All arms; ``arrays.action`` contains positions in this tuple.
    units, ids : ndarray, shape (T,), or None
        Values of `unit` and `id`.
    phases : tuple of str
        Phases in order of first appearance; ``arrays.phase`` contains positions in this tuple.
    reward_range, propensity_status, guarantee, reward_guarantee, design, noise, feedback_rounds, \
    released_rounds, rounds_per_unit, recommended, context_free, adaptive, stopping, missing
        As above.

    Raises
    ------
    LogValidationError
        If the frame is not a valid log; the message lists all problems with the frame, the rows and the
        arguments. Nothing is dropped, filled in or converted unless requested: a missing value, a number
        stored as text or a whole number beyond 2**53 is reported as a problem.

    Notes
    -----
    A log cannot show whether a propensity really is the probability with which the design chose. A propensity
    must be the design's own number, not an estimate from a model fitted afterwards (``"propensity_status":
    "estimated"``).

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, 0, 1], "p": [0.5, 0.5, 0.8]})
    >>> log = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", reward_range=(0, 1))
    >>> log.arms
    ('a', 'b')
    >>> log.column("y")
    array([1., 0., 1.])
    >>> known = {"design": ai.designs.Thompson(), "context_free": True}
    >>> ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", about=known).design.name
    'Thompson'
    >>> ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", arms=["a", "c"], reward_range=(1, 0))
    Traceback (most recent call last):
        ...
    adaptinf.errors.LogValidationError: the log has 2 problems (rows are counted from 0):
      - reward_range must be (low, high) with low < high, got (1.0, 0.0)
      - actions 'b' are not among arms=['a', 'c'] (a number and a string are different labels) [row 1]
    """

    def __init__(
        self,
        frame: Any,
        *,
        action: str | list[Any],
        reward: str,
        propensity: str | float | None = None,
        propensities: Mapping[Any, str | float] | str | None = None,
        context: str | Sequence[str] = (),
        outcomes: str | Sequence[str] = (),
        batch: str | None = None,
        unit: str | None = None,
        id: str | None = None,
        round: str | None = None,
        arms: Sequence[Any] | None = None,
        missing: str | None = None,
        assigned: str | None = None,
        adaptive: bool | None = None,
        stopping: str | None = None,
        reward_range: tuple[float, float] | None = None,
        guarantee: PrivacyGuarantee | Mapping[str, Any] | None = None,
        columns: Mapping[str, str | None] | None = None,
        reading: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        found = Findings()
        roles = {"action": action, "reward": reward, "propensity": propensity, "batch": batch}
        roles |= {"unit": unit, "id": id, "round": round}
        further = group_options("columns", columns, OF_LOGS, found)
        how = group_options("reading", reading, OF_LOGS, found, framed=True)
        known = group_options("about", about, OF_LOGS, found)
        checked = check_frame(
            frame,
            single=columns_by_role({**roles, **further}, assigned),
            context=context,
            outcomes=outcomes,
            propensities=propensities,
            arms=arms,
            reward_range=reward_range,
            reading=how,
            metadata=Metadata(
                guarantee=guarantee, adaptive=adaptive, stopping=stopping, missing=missing, **known
            ),
            found=found,
        )
        self._fill(checked.arrays, checked.arms, checked.phases, checked.reward_range, checked.metadata)
        self._name(checked.names, checked.rounds, checked.units, checked.ids)
        self._outcome_rounds, self._also_read = checked.outcome_rounds, checked.also_read
        self._source, self._readings = "a frame", checked.readings

    @classmethod
    def from_arrays(
        cls,
        arrays: LogArrays,
        *,
        arms: Sequence[Label],
        phases: Sequence[str] = (),
        reward_range: tuple[float, float] | None = None,
        propensity_status: str | None = None,
        guarantee: PrivacyGuarantee | None = None,
        reward_guarantee: PrivacyGuarantee | None = None,
        design: DesignRecord | None = None,
        noise: str | None = None,
        releases: pd.DataFrame | Mapping[str, Any] | None = None,
        feedback_rounds: int | None = None,
        released_rounds: int | None = None,
        rounds_per_unit: int | None = None,
        guarantee_source: str | None = "stated",
        recommended: Label | None = None,
        context_free: bool | None = None,
        adaptive: bool | None = None,
        stopping: str | None = None,
        missing: str | None = None,
    ) -> AdaptiveLog:
        """Create a log from arrays known to be valid, without checking or copying them.

        Parameters
        ----------
        arrays : LogArrays
            The columns.
        arms : sequence of labels
            Plain int, str, bool or float; ``arrays.action`` contains positions in this sequence.
        phases : sequence of str
            Names of the phases; ``arrays.phase`` contains positions in this sequence.
        releases : DataFrame or mapping of columns, optional
            Columns round, name, group, value, mechanism and scale.
        reward_range, propensity_status, guarantee, reward_guarantee, design, noise, feedback_rounds, \
        released_rounds, rounds_per_unit, recommended, context_free, adaptive, stopping, missing : optional
            As in the constructor, in their final types.
        guarantee_source : {"stated", "design"}
            Source of the guarantees: the caller, or the design that computed them and created the arrays.

        Returns
        -------
        AdaptiveLog
            A log whose frame is built when it is first requested.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> from adaptinf.log import LogArrays
        >>> arrays = LogArrays(action=np.array([0, 1, 0]), reward=np.array([1.0, 0.0, 1.0]))
        >>> ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b")).frame
           t action  reward
        0  1      a     1.0
        1  2      b     0.0
        2  3      a     1.0
        """
        log = cls.__new__(cls)
        metadata = Metadata(
            guarantee=guarantee,
            reward_guarantee=reward_guarantee,
            design=design,
            noise=noise,
            releases=releases,
            feedback_rounds=feedback_rounds,
            released_rounds=released_rounds,
            rounds_per_unit=rounds_per_unit,
            guarantee_source=None if guarantee is None and reward_guarantee is None else guarantee_source,
            recommended=recommended,
            propensity_status=propensity_status or ("absent" if arrays.propensity is None else "exact"),
            context_free=context_free,
            adaptive=adaptive,
            stopping=stopping,
            missing=missing,
        )
        own = arrays if missing is None else incomplete(arrays)
        log._fill(own, tuple(arms), tuple(phases), reward_range, metadata)
        return log

    def _fill(
        self,
        arrays: LogArrays,
        arms: tuple[Label, ...],
        phases: tuple[str, ...],
        reward_range: tuple[float, float] | None,
        metadata: Metadata,
    ) -> None:
        self.arrays = arrays
        self.arms = arms
        self.n_rounds, self.n_arms = len(arrays.action), len(arms)
        self.context, self.outcomes = tuple(arrays.context), tuple(arrays.outcomes)
        self.phases = phases
        self.reward_range = reward_range
        self._promise(metadata)
        self._releases = metadata.releases
        self._frame, self._outcome_rounds, self._also_read = None, None, ()
        self._name()
        self._source, self._readings = "arrays", ()
        self.kept = {}

    def _name(
        self,
        names: dict[Hashable, str] | None = None,
        rounds: NDArray[Any] | None = None,
        units: NDArray[Any] | None = None,
        ids: NDArray[Any] | None = None,
    ) -> None:
        """Store the user's column names and the names of rounds; rounds, units and ids have shape (T,)."""
        self._names, self._rounds, self.units, self.ids = names, rounds, units, ids

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the log as one Parquet file from which `read_log` restores an equal log.

        Parameters
        ----------
        path : path
            File name that ends in ``.parquet`` or ``.pq``.

        Raises
        ------
        ParameterError
            If the name has another ending, or the log contains something that a file cannot store.
        LogValidationError
            If the log could not have been created from a user's frame, so it would be refused on reading.
        FileError
            If the file cannot be written; an existing file is left unchanged.

        Notes
        -----
        The log of a trial, or one read from a file that only its owner may read, is written with the same
        restriction (mode 0600) whatever the umask, even if it replaces a file with more permissions.
        """
        write_file(path, self._stored(), "parquet", self.owner_only)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the log as CSV and its metadata to ``<path>.json``; `read_log` restores an equal log.

        Parameters
        ----------
        path : path
            File name that ends in ``.csv``.

        Raises
        ------
        ParameterError
            If the name has another ending, or the log contains something that a file cannot store.
        LogValidationError
            If the log could not have been created from a user's frame, so it would be refused on reading.
        FileError
            If the file cannot be written; an existing file is left unchanged.

        Notes
        -----
        The log of a trial, or one read from a file that only its owner may read, is written with the same
        restriction (mode 0600) whatever the umask, even if it replaces a file with more permissions.
        """
        write_file(path, self._stored(), "csv", self.owner_only)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot each arm's share of the rounds, by day, batch or block, using `plots.allocation`.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default a new figure.
        **options
            As in `plots.allocation`.

        Returns
        -------
        Axes

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        ParameterError
            If arguments are inconsistent; the message lists every problem.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
        >>> log.plot(every=20).get_ylabel()
        'share of every 20 rounds'
        """
        return drawn("allocation", self, ax, options)

    def equals(self, other: AdaptiveLog) -> bool:
        """Whether two logs have the same columns, metadata and releases; NaN equals NaN."""
        mine, theirs = self._stored(), other._stored()
        return (
            encode(mine.metadata) == encode(theirs.metadata)
            and list(mine.columns) == list(theirs.columns)
            and all(same_values(values, theirs.columns[name]) for name, values in mine.columns.items())
            and mine.releases.equals(theirs.releases)
        )

    def _stored(self) -> StoredLog:
        metadata = {name: getattr(self, name) for name in PLAIN_FIELDS} | {
            "context": self.context,
            "outcomes": self.outcomes,
            "names": self._names,
            "has_rounds": self._rounds is not None,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "reward_guarantee": None if self.reward_guarantee is None else self.reward_guarantee.to_dict(),
            "design": None if self.design is None else (self.design.name, self.design.parameters),
            "traits": None if (own := self.design) is None or own.traits is None else own.traits.to_dict(),
        }
        columns = storable(self._canonical_columns(), self.arms)
        report = encode_readings(self._source, self._readings)
        return StoredLog(columns, metadata, self.releases, not_covered(self, columns), report)

    @classmethod
    def _restored(cls, stored: RestoredLog) -> AdaptiveLog:
        checked = stored.checked
        log = cls.__new__(cls)
        log._fill(stored.arrays, checked.arms, stored.phases, checked.reward_range, checked.metadata)
        log._name(stored.names, stored.rounds, stored.units, stored.ids)
        log._source, log._readings = stored.source, stored.readings
        log._outcome_rounds = checked.outcome_rounds
        return log

    def __repr__(self) -> str:
        told = noise_told(self.noise) + source_note(self.guarantee_source)
        guarantee = f"  guarantee: {self.guarantee or 'none'}{told}"
        promised = [*self.rounds_told, guarantee, *self.promises]
        return visible_lines([*promised, self.propensities_told, *self.outcomes_told])
