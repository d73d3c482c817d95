"""Given rewards: fixed potential rewards, and real data that are resampled."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.log.validation.frame_columns import read_column, read_labels
from adaptinf.parameters import number_array, refuse
from adaptinf.simulation.environment import Environment, environment_tables, numbers
from adaptinf.simulation.environments.context_frames import arm_problems, context_names
from adaptinf.simulation.run import GIVEN, IN_ORDER, POOL, TABLEAU
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd


class Tableau(Environment):
    """Fixed potential rewards: round t pays ``rewards[t, arm]``.

    Parameters
    ----------
    rewards : array_like of shape (rounds, arms)
        The reward of every arm in every round.
    contexts : array_like of int, shape (rounds,), optional
        The context of every round, 0, 1, 2, ...
    vectors : array_like, optional
        Context vectors instead of `contexts`: of shape (rounds, dimension), which all arms share, or (rounds,
        arms, dimension). A log contains the vectors in columns ``x{k}`` (k from 1), or ``x{k}_{arm}``.
    reward_range : (float, float), optional
        Smallest and largest possible reward. The default is the range in the table. Private designs then
        refuse to create a log, because the reward range of a private log must be declared, not learned from
        the data.

    Raises
    ------
    ParameterError
        If a number is not finite, the lengths differ, both kinds of contexts are given, or rewards lie
        outside `reward_range`.

    Notes
    -----
    `means` contains the means of the columns (by context), and regret is relative to the best fixed arm over
    the completed rounds or, with context vectors, to the best arm in each round.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.environments.Tableau([[1.0, 0.0], [0.0, 0.0]]).arm_means()
    array([0.5, 0. ])
    >>> ai.environments.Tableau([[1.0, 0.0], [0.0, 0.0]], vectors=[[0.6, 0.8], [1.0, 0.0]])
    Tableau(arms=[0, 1], dimension=2)
    """

    def __init__(
        self,
        rewards: ArrayLike,
        contexts: ArrayLike | None = None,
        *,
        vectors: ArrayLike | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        problems: list[str] = []
        array = np.ascontiguousarray(numbers("rewards", rewards, problems))
        raw = np.zeros(array.shape[0]) if contexts is None else numbers("contexts", contexts, problems)
        given = None if vectors is None else numbers("vectors", vectors, problems)
        refuse("Tableau", problems)
        if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
            problems.append(
                f"rewards must be finite numbers of shape (rounds, arms), got shape {array.shape}"
            )
        if raw.shape != (array.shape[0],):
            problems.append(
                f"contexts must have one entry per round ({array.shape[0]}), got shape {raw.shape}"
            )
        elif not ((raw >= 0) & (raw < raw.size + 1_000) & (raw == np.floor(raw))).all():
            problems.append("contexts must be the integers 0, 1, 2, ...")
        if given is not None:
            problems += _vector_problems(given, array)
            if contexts is not None:
                problems.append("contexts and vectors cannot both be given")
        refuse("Tableau", problems)
        codes = raw.astype(np.int64)
        n_features = int(codes.max()) + 1
        counts = np.bincount(codes, minlength=n_features)
        refuse("Tableau", [f"context {code} never occurs" for code in np.flatnonzero(counts == 0)])
        sums = np.zeros((n_features, array.shape[1]))
        np.add.at(sums, codes, array)
        self.means = sums / counts[:, None]
        self.arms = tuple(range(array.shape[1]))
        self.probabilities = counts[None] / counts.sum()
        if contexts is not None:
            self.features = tuple(range(n_features))
            self.context_name = "feature"
        self.reward_range, self.range_learnt = _range_of("Tableau", array, reward_range)
        self._rewards = array
        if given is not None:
            self._place_vectors(given)
        self._tables = environment_tables(
            TABLEAU,
            self.means,
            arrivals=np.ones((1, n_features)),
            tableau=(array, codes),
            theta=np.zeros((len(self.arms), self.dimension)) if self.dimension else None,
            vector_law=IN_ORDER,
            shared=given is not None and given.ndim == 2,
            vectors=None if given is None else given.reshape(given.shape[0], -1),
            mean_law=GIVEN,
        )

    def _place_vectors(self, given: FloatArray) -> None:
        """Name the context vectors."""
        self.dimension = given.shape[-1]
        self.context_norm = float(np.linalg.norm(given, axis=-1).max())
        coordinates = range(1, self.dimension + 1)
        if given.ndim == 2:
            self.vector_names = tuple(f"x{k}" for k in coordinates)
        else:
            self.vector_names = tuple(f"x{k}_{arm}" for arm in self.arms for k in coordinates)

    def horizon_problems(self, horizon: int) -> list[str]:
        """Reasons why a horizon is too long for the number of given rounds."""
        rounds = self._rewards.shape[0]
        if horizon <= rounds:
            return []
        return [f"horizon must be at most {rounds}, the number of rounds, got {horizon}"]

    def regret(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Reward of the best fixed arm over the completed rounds, minus the reward obtained."""
        horizon = int(pulls[0].sum())
        best = self._rewards[:horizon].sum(axis=0).max()
        return np.asarray(best - sums.sum(axis=(1, 2)), dtype=np.float64)


def _vector_problems(given: FloatArray, rewards: FloatArray) -> list[str]:
    """Problems with a tableau's context vectors."""
    shared = given.ndim == 2 and given.shape[:1] == rewards.shape[:1]
    if given.size == 0 or not (shared or (given.ndim == 3 and given.shape[:2] == rewards.shape)):
        return [
            f"vectors must have shape (rounds, dimension) or (rounds, arms, dimension), got {given.shape}"
        ]
    return [] if np.isfinite(given).all() else ["vectors must be finite numbers"]


class Replay(Environment):
    """A real data set, resampled by cells of arm and context, so that the truth is known.

    Parameters
    ----------
    frame : DataFrame
        A frame with one row per unit.
    action, reward : str
        Columns of the arm and the outcome.
    context : str or iterable of str, optional
        Column or columns whose values define the cells.
    arms : sequence, optional
        Order of the arms; sorted by default.
    reward_range : (float, float), optional
        Smallest and largest possible outcome. The default is the range of the data. Private designs refuse to
        create a log with this default, because the reward range of a private log must be declared, not
        learned from the data.

    Raises
    ------
    ParameterError
        If a column is missing, an outcome is not a finite number, arms cannot be distinguished (1 and "1"), a
        cell has no row for some arm, or outcomes lie outside `reward_range`.

    Notes
    -----
    Contexts arrive with the frequencies of the data, and rewards are drawn with replacement from the rows
    with the same context and arm, so the true mean of a cell is its mean in the data.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> data = pd.DataFrame({"arm": ["a", "b", "a", "b"], "y": [1, 0, 0, 0]})
    >>> ai.environments.Replay(data, action="arm", reward="y").arm_means()
    array([0.5, 0. ])
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        action: str,
        reward: str,
        context: str | Iterable[str] | None = None,
        *,
        arms: Sequence[Any] | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        names = _columns(frame, action, reward, context)
        missing = [name for name in (action, reward, *names) if name not in frame.columns]
        refuse("Replay", [f"the frame has no column {name!r}" for name in missing])
        refuse("Replay", [] if len(frame) else ["the frame has no rows"])
        outcome, problems = _outcome(frame, reward)
        for name in (action, *names):
            if frame[name].isna().any():
                problems.append(f"column {name!r} has {int(frame[name].isna().sum())} missing values")
        refuse("Replay", problems)
        labels = _labels(frame, action, arms)
        twice = sorted({str(label) for label in labels if labels.count(label) > 1})
        refuse("Replay", [f"arms= names {label!r} more than once" for label in twice])
        found = read_labels(read_column(frame, list(frame.columns).index(action))).values
        refuse("Replay", arm_problems(found) or arm_problems(labels))
        cells, codes = _cells(frame, names)
        arm_codes = frame[action].map({label: code for code, label in enumerate(labels)})
        if arm_codes.isna().any():
            unknown = sorted(map(str, set(frame[action].unique().tolist()) - set(labels)))
            raise ParameterError(
                "Replay", [f"column {action!r} has arms that are not in arms=: {', '.join(unknown)}"]
            )
        cell = codes * len(labels) + arm_codes.to_numpy(dtype=np.int64)
        size = np.bincount(cell, minlength=len(cells) * len(labels))
        refuse("Replay", _empty_cells(size, cells, labels))
        order = np.argsort(cell, kind="stable")
        shape = (len(cells), len(labels))
        pool = outcome[order]
        start = np.concatenate([[0], np.cumsum(size)[:-1]])
        self.means = np.add.reduceat(pool, start).reshape(shape) / size.reshape(shape)
        self.arms = labels
        self.probabilities = (np.bincount(codes, minlength=len(cells)) / codes.size)[None]
        if names:
            self.features = cells
            self.context_name = "_".join(names)
        self.reward_range, self.range_learnt = _range_of("Replay", outcome, reward_range)
        self._tables = environment_tables(
            POOL,
            self.means,
            arrivals=self.probabilities,
            pool=(start.reshape(shape).astype(np.int64), size.reshape(shape).astype(np.int64), pool),
        )


def _range_of(subject: str, rewards: FloatArray, declared: Any) -> tuple[tuple[float, float], bool]:
    """The declared or observed range of rewards, and whether it was observed."""
    # The error states that rewards leave the range, but not which or by how much, because that would reveal
    # rewards.
    least, most = float(rewards.min()), float(rewards.max())
    if declared is None:
        return (least, most), True
    given = number_array(declared)
    if given is None or given.shape != (2,) or not np.isfinite(given).all() or not given[0] < given[1]:
        problem = f"reward_range must be two finite numbers, low < high, got {declared!r:.60}"
        raise ParameterError(subject, [problem])
    low, high = float(given[0]), float(given[1])
    if least < low or high < most:
        raise ParameterError(
            subject, [f"rewards must lie in reward_range=({low:g}, {high:g}), but some do not"]
        )
    return (low, high), False


def _columns(frame: Any, action: Any, reward: Any, context: Any) -> list[Any]:
    """Names of the context columns, after checking the arguments."""
    import pandas as pd

    problems = []
    if not isinstance(frame, pd.DataFrame):
        problems.append(f"frame must be a pandas DataFrame, got {frame!r:.60}")
    names = context_names(context, problems)
    for name in (action, reward):
        if not isinstance(name, Hashable):
            problems.append(f"a column must be named by a string, got {name!r:.60}")
    refuse("Replay", problems)
    columns = list(frame.columns)
    twice = [name for name in (action, reward, *names) if columns.count(name) > 1]
    refuse("Replay", [f"the frame has more than one column {name!r}" for name in twice])
    return names


def _labels(frame: pd.DataFrame, action: str, arms: Any) -> tuple[Any, ...]:
    """Labels of the arms, in order."""
    if arms is not None and not (isinstance(arms, Iterable) and not isinstance(arms, (str, bytes))):
        raise ParameterError("Replay", [f"arms must be a list of labels, got {arms!r:.60}"])
    try:
        found = frame[action].unique().tolist()
        labels = tuple(sorted(found) if arms is None else arms)
        hash(labels)
    except TypeError:
        raise ParameterError(
            "Replay",
            [
                f"labels in column {action!r} must be strings or numbers, and all of the same type if arms= "
                f"is not given"
            ],
        ) from None
    return labels


def _outcome(frame: pd.DataFrame, reward: str) -> tuple[FloatArray, list[str]]:
    column = frame[reward]
    if column.dtype.kind in "biuf":
        outcome: FloatArray | None = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        outcome = number_array(column.astype(object).where(column.notna(), np.nan).tolist())
    if outcome is None or outcome.shape != (len(frame),):
        return np.zeros(0), [f"column {reward!r} must contain numbers"]
    bad = int((~np.isfinite(outcome)).sum())
    return outcome, [f"column {reward!r} has {bad} missing or infinite values"] if bad else []


def _cells(frame: pd.DataFrame, names: list[str]) -> tuple[tuple[Any, ...], Any]:
    """Labels of the context cells in sorted order, and the cell of each row."""
    if not names:
        return (None,), np.zeros(len(frame), dtype=np.int64)
    keys = (
        frame[names[0]].tolist() if len(names) == 1 else list(frame[names].itertuples(index=False, name=None))
    )
    try:
        labels = tuple(sorted(set(keys)))
    except TypeError:
        raise ParameterError(
            "Replay",
            [f"labels of contexts must be strings or numbers, and all of the same type: {', '.join(names)}"],
        ) from None
    position = {label: code for code, label in enumerate(labels)}
    return labels, np.array([position[key] for key in keys], dtype=np.int64)


def _empty_cells(size: Any, cells: tuple[Any, ...], labels: tuple[Any, ...]) -> list[str]:
    empty = [(cells[code // len(labels)], labels[code % len(labels)]) for code in np.flatnonzero(size == 0)]
    return [
        f"no row has arm {arm!r}" + (f" in context {cell!r}" if cell is not None else "")
        for cell, arm in empty
    ]
