"""Sums by group: the groups of a table's rows, and the cells and batches of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.validation.frame_columns import FAULTS, Column, Findings, Label, read_labels
from adaptinf.parameters import refuse
from adaptinf.sums.cells import Cells, cells_of_shares, joined, sometimes_impossible
from adaptinf.sums.covariate_products import COVARIATE
from adaptinf.texts import absent, several
from adaptinf.typing import FloatArray, IntArray

Key = tuple[Label, ...]
"""Labels of a group, one for each group column; () for all rounds."""
Part = tuple[Cells, NDArray[Any]]
"""Cells for a set of rounds, and its batches in order, shape (B,)."""
_OF_PARTS = (
    "an arm has propensity 0 in a batch of one table but not in the same batch of the other: give the two "
    "parts of the batch different names"
)
_OF_GROUPS = (
    "an arm has propensity 0 in a batch for some groups but not for others: drop the rows that could not "
    "receive it, or form separate Sums of them"
)

_CHANCE = 100
"""Number of rounds from which equal sums of different rounds are implausible."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Strata, one for each batch of each group, numbered by batch and then by group.

    Shapes: code (R,), the stratum of each row; batch and group (S,), those of each stratum.
    """

    code: IntArray
    batch: IntArray
    group: IntArray
    labels: Sequence[Key]

    def named(self, names: Sequence[str], batches: NDArray[Any]) -> NDArray[Any]:
        """The batch of each stratum, and its group if there are groups; takes batches (B,), returns (S,)."""
        if not names:
            return np.asarray(batches[self.batch])
        told = [
            f"{batches[b]} of {_told(names, self.labels[g])}"
            for b, g in zip(self.batch, self.group, strict=True)
        ]
        return np.array(told, dtype=object)

    def parts(self, cells: Cells, batches: NDArray[Any]) -> dict[Key, Part]:
        """Cells for the strata, by group; batches has shape (B,)."""
        places = [np.flatnonzero(self.group == group) for group in range(len(self.labels))]
        return {
            label: (cells.of(place), batches[self.batch[place]])
            for label, place in zip(self.labels, places, strict=True)
        }


def group_names(what: str, names: object) -> tuple[str, ...]:
    """Names of the group columns, which may be given as one name, several names, or none."""
    found = (names,) if isinstance(names, str) else () if names is None else names
    listed = isinstance(found, Sequence) and all(isinstance(name, str) for name in found)
    problem = f"{what} must be the name of a column, or a list of names, got {names!r:.80}"
    refuse("Sums", [] if listed else [problem])
    assert isinstance(found, Sequence)
    twice = f"{what} names a column more than once: {', '.join(found)}"
    refuse("Sums", [twice] if len(set(found)) < len(found) else [])
    return tuple(found)


def _told(names: Sequence[str], label: Key) -> str:
    return ", ".join(f"{name} {one!r}" for name, one in zip(names, label, strict=True))


def strata_of(batch: IntArray, groups: tuple[IntArray, Sequence[Key]]) -> Strata:
    """The strata of the rows; batch has shape (R,), and groups contains codes of shape (R,) and labels."""
    code, labels = groups
    found, place = np.unique(batch * len(labels) + code, return_inverse=True)
    return Strata(place.astype(np.int64), found // len(labels), found % len(labels), labels)


def read_groups(
    columns: Sequence[Column], told: Sequence[str], rows: int, found: Findings
) -> tuple[IntArray, list[Key]] | None:
    """The code of each row's group, shape (R,), and the groups' labels in order; one group if no columns."""
    codes, labels = np.zeros(rows, dtype=np.int64), [list[Label]() for _ in columns]
    for place, (column, what) in enumerate(zip(columns, told, strict=True)):
        read = read_labels(column)
        found.add_rows(
            "missing-context",
            f"{what} has no value (give the rows that belong to no group a label)",
            read.missing,
        )
        infinite = np.zeros(rows, dtype=bool)
        if column.values.dtype.kind == "f":
            infinite = np.isinf(column.values) & ~column.missing
        found.add_rows("infinite-context", f"{what} {FAULTS['infinite']}", infinite)
        found.add_rows(
            "bad-context",
            f"{what} must contain strings, whole numbers, booleans or finite numbers",
            read.bad & ~infinite,
        )
        order = _order(read.values)
        labels[place] = [read.values[code] for code in order]
        codes = codes * max(len(order), 1) + np.argsort(order)[read.codes] if len(order) else codes
    if found.problems:
        return None
    present, group = np.unique(codes, return_inverse=True)
    sizes = [len(each) for each in labels]
    positions = zip(*np.unravel_index(present, sizes), strict=True) if sizes else [()]
    keys = [tuple(each[i] for each, i in zip(labels, position, strict=True)) for position in positions]
    return group.astype(np.int64), keys


def _order(labels: Sequence[Label]) -> IntArray:
    """The positions that sort the labels; labels of different types are sorted as text."""
    try:
        order = sorted(range(len(labels)), key=lambda place: labels[place])
    except TypeError:
        order = sorted(range(len(labels)), key=lambda place: str(labels[place]))
    return np.array(order, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The cells and batches of each group; if there are no groups, all rounds have the label ()."""

    names: tuple[str, ...]
    by_group: Mapping[Key, Part]

    @property
    def n_rounds(self) -> int:
        """Total number of rounds in all groups."""
        return int(sum(cells.rounds.sum() for cells, _ in self.by_group.values()))

    @property
    def covariates(self) -> tuple[str, ...]:
        """Additional columns that are treated as contexts."""
        products = next(iter(self.by_group.values()))[0].products
        pairs = () if products is None else zip(products.names, products.roles, strict=True)
        return tuple(name for name, role in pairs if role == COVARIATE)

    def whole(self, *, shares: bool) -> Part:
        """All groups together."""
        first, *others = self.by_group.values()
        for one in others:
            first = merged(first, one, shares=shares, otherwise=_OF_GROUPS)
        return first

    def at(self, moved: Callable[[NDArray[Any]], NDArray[Any]]) -> Parts:
        """These sums with renamed batches, in the same order."""
        return replace(self, by_group={key: (cells, moved(at)) for key, (cells, at) in self.by_group.items()})

    def only(self, label: Key) -> Parts:
        """The sums of a single group, as sums without groups."""
        return Parts((), {(): self.by_group[label]})

    def coarser(self, names: Sequence[str], *, shares: bool) -> Parts:
        """The groups defined by some of the columns, in the order given."""
        places = [self.names.index(name) for name in names]
        found: dict[Key, Part] = {}
        for label, part in self.by_group.items():
            key = tuple(label[place] for place in places)
            found[key] = merged(found[key], part, shares=shares) if key in found else part
        order = _order_of_keys(list(found))
        return Parts(tuple(names), {key: found[key] for key in order})

    def plus(self, other: Parts, *, shares: bool) -> Parts:
        """The sums over the rounds of both arguments, which have no round in common."""
        found, centre = dict(self.by_group), next(iter(self.by_group.values()))[0].centre
        for label, (cells, batches) in other.by_group.items():
            part = cells.about(centre), batches
            found[label] = merged(found[label], part, shares=shares) if label in found else part
        return replace(self, by_group={key: found[key] for key in _order_of_keys(list(found))})


def _order_of_keys(keys: list[Key]) -> list[Key]:
    columns = list(zip(*keys, strict=True))
    ranks = [{column[place]: rank for rank, place in enumerate(_order(column))} for column in columns]
    return sorted(keys, key=lambda key: [rank[label] for rank, label in zip(ranks, key, strict=True)])


def merged(first: Part, second: Part, *, shares: bool, otherwise: str = _OF_PARTS) -> Part:
    """The cells and batches for the rounds of both parts."""
    batches = np.unique(np.concatenate([first[1], second[1]]))
    places = (np.searchsorted(batches, first[1]), np.searchsorted(batches, second[1]))
    cells = joined(first[0], second[0], places, len(batches))
    if shares:  # Shares are those of whole batches, so they are recomputed for the merged ones.
        by_share = cells.pulls / cells.rounds[:, None]
        kept = cells.nonzero, cells.centre, cells.products
        cells = cells_of_shares(cells.moments[0], cells.rounds, by_share, *kept)
    if sometimes_impossible(cells):
        raise ParameterError("Sums", [otherwise])
    return cells, batches


def rounds_of_both(first: Parts, second: Parts) -> list[str]:
    """A problem if sums contain the same rounds, because all of their common batches are the same."""
    pairs = [(first.by_group[key], second.by_group[key]) for key in first.by_group if key in second.by_group]
    rounds, shared = 0.0, dict[Any, None]()
    for (cells, batches), (others, other_batches) in pairs:
        common, mine, theirs = np.intersect1d(batches, other_batches, return_indices=True)
        one, other = cells.of(mine), others.about(cells.centre).of(theirs)
        if not (_equal(one.moments, other.moments) and np.array_equal(one.smallest, other.smallest)):
            return []
        rounds += float(one.rounds.sum())
        shared |= dict.fromkeys(common.tolist())
    if rounds < _CHANCE:
        return []
    names = several(list(map(str, shared)), 3)
    return [
        f"the sums of every batch that both have, {names} ({rounds:,.0f} rounds), are the same: add "
        "each round once (if the rounds differ, give their batches different names)"
    ]


def _equal(one: FloatArray, other: FloatArray) -> bool:
    """Whether sums differ by no more than rounding, relative to the largest of their kind; (5, 4, B, K)."""
    size = np.nanmax(np.abs(one), axis=(2, 3), initial=0.0, keepdims=True)
    both_unknown = np.isnan(one) & np.isnan(other)
    return bool(np.all((np.abs(one - other) <= _ROUNDING * size) | both_unknown))


class Grouped:
    """Methods for sums by group."""

    group_names: tuple[str, ...]
    shares: bool
    batches: NDArray[Any]
    n_arms: int
    _parts: Parts

    def _of_parts(self, parts: Parts, **changed: Any) -> Self:
        """Sums with the same metadata."""
        raise NotImplementedError

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups in order, as tuples if several columns define them; empty without groups."""
        labels = self._parts.by_group if self.group_names else ()
        return [label[0] if len(label) == 1 else label for label in labels]

    @property
    def counts(self) -> FloatArray:
        """Numbers of rounds by batch, group and arm, shape (B, G, K); G is 1 if there are no groups."""
        parts = self._parts.by_group.values()
        found = np.zeros((len(self.batches), len(parts), self.n_arms))
        for place, (cells, batches) in enumerate(parts):
            found[np.searchsorted(self.batches, batches), place] = cells.pulls
        return found

    def by_groups(self, by: str | Sequence[str]) -> Self:
        """Sums grouped by only some of the group columns.

        Parameters
        ----------
        by : str or sequence of str
            Some of `group_names`, in the desired order.

        Returns
        -------
        Sums
            Sums with the groups defined by these columns. The other group columns are still treated as
            contexts.

        Raises
        ------
        ParameterError
            If a column does not exist.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> from adaptinf.log import LogArrays
        >>> context = {"device": np.tile([0, 1], 200), "country": np.tile([0, 0, 1, 1], 100)}
        >>> action, reward, half = np.tile([0, 0, 0, 0, 1, 1, 1, 1], 50), np.ones(400), np.full((400, 2), 0.5)
        >>> batch = np.zeros(400, int)
        >>> arrays = LogArrays(action, reward, half[:, 0], half, batch=batch, context=context)
        >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        >>> sums = ai.Sums.of_log(log, by=["device", "country"])
        >>> sums.groups, sums.by_groups("country").groups
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [0, 1])
        """
        names = group_names("by", by)
        unknown = [name for name in names if name not in self.group_names]
        problems = [absent("grouping column", name, self.group_names) for name in unknown]
        refuse("Sums.by_groups", problems + ([] if names else ["by must name at least one column"]))
        return self._of_parts(self._parts.coarser(names, shares=self.shares))

    def of_group(self, label: Any) -> Self:
        """Sums over the rounds of one group.

        Parameters
        ----------
        label : label, or tuple of labels
            One of `groups`.

        Returns
        -------
        Sums
            Without groups. The columns that define groups are no longer contexts, because they are constant
            within a group.

        Raises
        ------
        ParameterError
            If there is no such group.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import pandas as pd
        >>> table = pd.DataFrame(
        ...     {
        ...         "week": [1, 1, 1, 1],
        ...         "device": ["phone", "phone", "desk", "desk"],
        ...         "arm": ["a", "b", "a", "b"],
        ...         "users": [510, 490, 210, 190],
        ...         "buyers": [50, 74, 30, 31],
        ...         "share": [0.5, 0.5, 0.5, 0.5],
        ...     }
        ... )
        >>> roles = {"batch": "week", "arm": "arm", "n": "users", "propensity": "share"}
        >>> sums = ai.Sums(table, **roles, sum="buyers", sum_squares="buyers", group="device")
        >>> sums.groups, sums.of_group("desk").n_rounds
        (['desk', 'phone'], 400)
        """
        key = label if isinstance(label, tuple) else (label,)
        problem = absent("group", label, self.groups)
        refuse("Sums.of_group", [] if self.group_names and key in self._parts.by_group else [problem])
        return self._of_parts(self._parts.only(key))
