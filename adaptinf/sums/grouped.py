"""The groups of sums: their labels, one of them by itself, and fewer columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adaptinf.parameters import refuse
from adaptinf.sums.groups import Parts, group_names
from adaptinf.texts import absent
from adaptinf.typing import FloatArray


class Grouped:
    """What sums of groups can be asked."""

    group_names: tuple[str, ...]
    shares: bool
    batches: NDArray[Any]
    n_arms: int
    _parts: Parts

    def _of_parts(self, parts: Parts, **changed: Any) -> Self:
        """Sums that say the same about themselves."""
        raise NotImplementedError

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups in order, a tuple where several columns make them; empty without groups."""
        labels = self._parts.by_group if self.group_names else ()
        return [label[0] if len(label) == 1 else label for label in labels]

    @property
    def counts(self) -> FloatArray:
        """Rounds by batch, group and arm, shape (B, G, K); one group where there are none."""
        parts = self._parts.by_group.values()
        found = np.zeros((len(self.batches), len(parts), self.n_arms))
        for place, (cells, batches) in enumerate(parts):
            found[np.searchsorted(self.batches, batches), place] = cells.pulls
        return found

    def by_groups(self, by: str | Sequence[str]) -> Self:
        """Sums by some of the columns that make the groups.

        Parameters
        ----------
        by : str or sequence of str
            Some of `group_names`, in the order you want.

        Returns
        -------
        Sums
            With the groups that these columns make. The others stay contexts.

        Raises
        ------
        ParameterError
            If there is no such column.

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
        problems = [absent("column of groups", name, self.group_names) for name in unknown]
        refuse("Sums.by_groups", problems + ([] if names else ["by must name at least one column"]))
        return self._of_parts(self._parts.coarser(names, shares=self.shares))

    def of_group(self, label: Any) -> Self:
        """Sums of one group's rounds.

        Parameters
        ----------
        label : label, or tuple of labels
            One of `groups`.

        Returns
        -------
        Sums
            Without groups. The columns that made them are no contexts any more, as they are the same in all
            rounds.

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
