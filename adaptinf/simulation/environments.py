"""Where contexts and rewards come from: synthetic laws, fixed potential rewards, resampled real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import count_problem, number_problem
from adaptinf.simulation.run import BERNOULLI, NORMAL, POOL, TABLEAU, UNIFORM, EnvironmentTables
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BernoulliArms",
    "Environment",
    "FiniteContext",
    "NormalArms",
    "Replay",
    "Tableau",
    "UniformArms",
]

_LAWS = {"bernoulli": BERNOULLI, "uniform": UNIFORM, "normal": NORMAL}


class Environment:
    """What a design acts on: contexts that arrive, and a reward law for each context and arm.

    Attributes
    ----------
    means : ndarray of shape (features, arms)
        Mean reward of each cell; one row where there is no context.
    arms : tuple
        Labels of the arms.
    features : tuple
        Labels of the contexts that can arrive; empty where there are none.
    probabilities : ndarray of shape (periods, features)
        Arrival probabilities in each period.
    context_name : str or None
        Name of the context column.
    reward_range : (float, float)
        Smallest and largest possible reward.
    """

    means: FloatArray
    arms: tuple[Any, ...]
    features: tuple[Any, ...] = ()
    probabilities: FloatArray
    context_name: str | None = None
    reward_range: tuple[float, float]
    _tables: EnvironmentTables

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def n_features(self) -> int:
        """Number of contexts that can arrive, 1 where there are none."""
        return max(1, len(self.features))

    def tables(self, horizon: int) -> EnvironmentTables:
        """Arrays that the run loop reads, after a check that `horizon` rounds can be had."""
        return self._tables

    def arm_means(self) -> FloatArray:
        """Mean reward of each arm over the contexts at their average arrival probabilities, shape (arms,)."""
        weights = self.probabilities.mean(axis=0)
        return np.asarray(weights @ self.means, dtype=np.float64)

    def effects(self, treatment: int = 1, control: int = 0) -> FloatArray:
        """Difference of two arms' means (by position) in each context, shape (features,)."""
        return np.asarray(self.means[:, treatment] - self.means[:, control], dtype=np.float64)

    def regret(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Pseudo-regret of runs from their numbers of pulls.

        Parameters
        ----------
        pulls, sums : ndarray of shape (runs, features, arms)
            Pulls and sums of rewards.

        Returns
        -------
        ndarray of shape (runs,)
            Sum over rounds of the best mean in the context minus the mean of the arm that was pulled.
        """
        gaps = self.means.max(axis=1, keepdims=True) - self.means
        return np.asarray(np.einsum("rfa,fa->r", pulls, gaps), dtype=np.float64)

    def __repr__(self) -> str:
        contexts = f", features={list(self.features)}" if self.features else ""
        return f"{type(self).__name__}(arms={list(self.arms)}{contexts})"


def _tables(
    kind: int,
    location: FloatArray,
    scale: FloatArray | None = None,
    arrivals: FloatArray | None = None,
    period: int = 1,
    pool: tuple[Any, Any, Any] | None = None,
    tableau: tuple[FloatArray, Any] | None = None,
) -> EnvironmentTables:
    n_features = location.shape[0]
    probabilities = np.ones((1, 1)) if arrivals is None else arrivals
    cumulative = np.cumsum(probabilities, axis=1)
    start, size, values = pool or (np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.zeros(0))
    rewards, features = tableau or (np.zeros((0, 0)), np.zeros(0, np.int64))
    return EnvironmentTables(
        kind=kind,
        n_features=n_features,
        period=period,
        arrivals=np.ascontiguousarray(cumulative),
        location=np.ascontiguousarray(location, dtype=np.float64),
        scale=np.ascontiguousarray(np.ones_like(location) if scale is None else scale, dtype=np.float64),
        start=start,
        size=size,
        pool=values,
        tableau=rewards,
        tableau_features=features,
    )


def _numbers(name: str, values: ArrayLike, problems: list[str]) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        problems.append(f"{name} must be numbers in rows of one length, got {values!r:.60}")
        return np.zeros(0)


def _vector(name: str, values: ArrayLike, problems: list[str]) -> FloatArray:
    known = len(problems)
    array = np.atleast_1d(_numbers(name, values, problems))
    if len(problems) > known:
        return array
    if array.ndim != 1 or array.size == 0:
        problems.append(f"{name} must be a list with one number an arm, got shape {array.shape}")
    elif not np.isfinite(array).all():
        problems.append(f"{name} must be finite numbers, got {array.tolist()}")
    return array


def _refuse(subject: str, problems: list[str]) -> None:
    if problems:
        raise ParameterError(subject, problems)


class BernoulliArms(Environment):
    """Arms that pay 1 with a fixed probability, else 0.

    Parameters
    ----------
    means : sequence of float
        Success probabilities in [0, 1], one an arm.

    Raises
    ------
    ParameterError
        If a probability is not in [0, 1].

    Examples
    --------
    >>> BernoulliArms([0.9, 0.8]).arm_means()
    array([0.9, 0.8])
    """

    def __init__(self, means: ArrayLike) -> None:
        problems: list[str] = []
        array = _vector("means", means, problems)
        if not problems and not ((array >= 0) & (array <= 1)).all():
            problems.append(f"means must lie in [0, 1], got {array.tolist()}")
        _refuse("BernoulliArms", problems)
        self.means = array[None]
        self.arms = tuple(range(array.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (0.0, 1.0)
        self._tables = _tables(BERNOULLI, self.means)


class NormalArms(Environment):
    """Arms with normal rewards.

    Parameters
    ----------
    means : sequence of float
        Means, one an arm.
    scale : float or sequence of float
        Standard deviation, of all arms or one an arm.

    Raises
    ------
    ParameterError
        If a scale is not positive, or the lengths differ.

    Examples
    --------
    >>> NormalArms([0.0, 0.5], scale=2.0).reward_range
    (-inf, inf)
    """

    def __init__(self, means: ArrayLike, scale: ArrayLike = 1.0) -> None:
        problems: list[str] = []
        array = _vector("means", means, problems)
        spread = _vector("scale", scale, problems)
        if not problems and spread.size not in (1, array.size):
            problems.append(f"scale must be one number or one an arm ({array.size}), got {spread.size}")
        if not problems and not (spread > 0).all():
            problems.append(f"scale must be positive, got {spread.tolist()}")
        _refuse("NormalArms", problems)
        self.means = array[None]
        self.arms = tuple(range(array.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (-np.inf, np.inf)
        self._tables = _tables(NORMAL, self.means, np.broadcast_to(spread, array.shape)[None])


class UniformArms(Environment):
    """Arms with rewards uniform on an interval.

    Parameters
    ----------
    low, high : sequence of float
        Ends of the interval, one an arm.

    Raises
    ------
    ParameterError
        If a low end is above its high end, or the lengths differ.

    Examples
    --------
    >>> UniformArms(low=[0, 0], high=[1.0, 0.9]).arm_means()
    array([0.5 , 0.45])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        problems: list[str] = []
        lows, highs = _vector("low", low, problems), _vector("high", high, problems)
        if not problems and lows.size != highs.size:
            problems.append(f"low and high must have one number an arm, got {lows.size} and {highs.size}")
        if not problems and not (lows <= highs).all():
            problems.append(f"low must not be above high, got {lows.tolist()} and {highs.tolist()}")
        _refuse("UniformArms", problems)
        self.means = (lows + highs)[None] / 2.0
        self.arms = tuple(range(lows.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (float(lows.min()), float(highs.max()))
        self._tables = _tables(UNIFORM, lows[None], (highs - lows)[None])


class FiniteContext(Environment):
    """A finite number of contexts, each with a reward law of its own for each arm; context column: feature.

    Parameters
    ----------
    probabilities : array_like of shape (features,) or (periods, features)
        Arrival probabilities; with several rows they follow each other in turn, as seasons do.
    means : array_like of shape (features, arms)
        Mean rewards.
    rewards : {"bernoulli", "uniform", "normal"}
        Reward law. Uniform rewards lie within `half_width` of their mean.
    scale : float
        Standard deviation of normal rewards.
    half_width : float or None
        Half the length of the uniform interval; by default the largest that keeps a cell within [0, 1].
    period : int or None
        Rounds of a period; needed where `probabilities` has several rows.

    Raises
    ------
    ParameterError
        Listing everything that does not fit.

    Examples
    --------
    >>> environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> environment.effects().round(2)
    array([ 0.3, -0.3])
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        means: ArrayLike,
        rewards: str = "bernoulli",
        *,
        scale: float = 1.0,
        half_width: float | None = None,
        period: int | None = None,
    ) -> None:
        problems: list[str] = []
        arrivals = np.atleast_2d(_numbers("probabilities", probabilities, problems))
        array = _numbers("means", means, problems)
        _refuse("FiniteContext", problems)
        _refuse("FiniteContext", _context_problems(arrivals, array, rewards, scale, half_width, period))
        self.means = array
        self.arms = tuple(range(array.shape[1]))
        self.features = tuple(range(array.shape[0]))
        self.probabilities = arrivals
        self.context_name = "feature"
        location, width = array, np.full_like(array, scale)
        self.reward_range = (-np.inf, np.inf) if rewards == "normal" else (0.0, 1.0)
        if rewards == "uniform":
            half = np.minimum(array, 1.0 - array) if half_width is None else np.full_like(array, half_width)
            location, width = array - half, 2.0 * half
            self.reward_range = (float(min(0.0, location.min())), float(max(1.0, (location + width).max())))
        self._tables = _tables(_LAWS[rewards], location, width, arrivals, period or 1)


def _context_problems(
    arrivals: FloatArray,
    means: FloatArray,
    rewards: str,
    scale: float,
    half_width: float | None,
    period: int | None,
) -> list[str]:
    problems = []
    if arrivals.ndim != 2 or not np.isfinite(arrivals).all() or (arrivals < 0).any():
        problems.append(
            "probabilities must be numbers of at least 0, of shape (features,) or (periods, features)"
        )
    elif np.abs(arrivals.sum(axis=1) - 1.0).max() > 1e-9:
        problems.append(f"probabilities must sum to 1, got {arrivals.sum(axis=1).tolist()}")
    if means.ndim != 2 or means.shape[0] != arrivals.shape[-1]:
        problems.append(
            f"means must have shape (features, arms) with {arrivals.shape[-1]} features, got {means.shape}"
        )
    elif not np.isfinite(means).all():
        problems.append("means must be finite numbers")
    if rewards not in _LAWS:
        problems.append(f"rewards must be one of {', '.join(_LAWS)}, got {rewards!r}")
    within_unit = rewards == "bernoulli" or (rewards == "uniform" and half_width is None)
    if within_unit and not ((means >= 0) & (means <= 1)).all():
        problems.append(f"means of {rewards} rewards must lie in [0, 1]")
    problems += number_problem("scale", scale, 0.0, open_low=True)
    if half_width is not None:
        problems += number_problem("half_width", half_width, 0.0)
    if arrivals.shape[0] > 1 and period is None:
        problems.append("period (rounds of a period) is needed where probabilities has several rows")
    if period is not None:
        problems += count_problem("period", period)
    return problems


class Tableau(Environment):
    """Fixed potential rewards: round t pays ``rewards[t, arm]``.

    Parameters
    ----------
    rewards : array_like of shape (rounds, arms)
        The reward of every arm in every round.
    contexts : array_like of int, shape (rounds,), optional
        The context of every round, 0, 1, 2, ...

    Raises
    ------
    ParameterError
        If a reward is not finite or the lengths differ.

    Notes
    -----
    `means` are the means of the columns (by context), and regret is that of the best fixed arm over the
    rounds that were run.

    Examples
    --------
    >>> Tableau([[1.0, 0.0], [0.0, 0.0]]).arm_means()
    array([0.5, 0. ])
    """

    def __init__(self, rewards: ArrayLike, contexts: ArrayLike | None = None) -> None:
        problems: list[str] = []
        array = np.ascontiguousarray(_numbers("rewards", rewards, problems))
        raw = np.zeros(array.shape[0]) if contexts is None else _numbers("contexts", contexts, problems)
        _refuse("Tableau", problems)
        if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
            problems.append(
                f"rewards must be finite numbers of shape (rounds, arms), got shape {array.shape}"
            )
        if raw.shape != (array.shape[0],):
            problems.append(f"contexts must have one entry a round ({array.shape[0]}), got shape {raw.shape}")
        elif (raw < 0).any() or (raw != np.floor(raw)).any():
            problems.append("contexts must be the integers 0, 1, 2, ...")
        _refuse("Tableau", problems)
        codes = raw.astype(np.int64)
        n_features = int(codes.max()) + 1
        counts = np.bincount(codes, minlength=n_features)
        _refuse("Tableau", [f"context {code} never occurs" for code in np.flatnonzero(counts == 0)])
        sums = np.zeros((n_features, array.shape[1]))
        np.add.at(sums, codes, array)
        self.means = sums / counts[:, None]
        self.arms = tuple(range(array.shape[1]))
        self.probabilities = counts[None] / counts.sum()
        if contexts is not None:
            self.features = tuple(range(n_features))
            self.context_name = "feature"
        self.reward_range = (float(array.min()), float(array.max()))
        self._rewards = array
        self._tables = _tables(TABLEAU, self.means, arrivals=np.ones((1, n_features)), tableau=(array, codes))

    def tables(self, horizon: int) -> EnvironmentTables:
        """Arrays that the run loop reads, after a check that `horizon` rounds can be had."""
        if horizon > self._rewards.shape[0]:
            raise ParameterError(
                "Tableau",
                [f"horizon must be at most the {self._rewards.shape[0]} rounds there are, got {horizon}"],
            )
        return self._tables

    def regret(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Reward of the best fixed arm over the rounds that were run, minus the reward that was had."""
        horizon = int(pulls[0].sum())
        best = self._rewards[:horizon].sum(axis=0).max()
        return np.asarray(best - sums.sum(axis=(1, 2)), dtype=np.float64)


class Replay(Environment):
    """A real data set, resampled by arm and context cell, so that the truth is known.

    Parameters
    ----------
    frame : DataFrame
        One row a unit.
    action, reward : str
        Columns of the arm and of the outcome.
    context : str or sequence of str, optional
        Column or columns whose values make the cells.
    arms : sequence, optional
        Order of the arms; sorted by default.

    Raises
    ------
    ParameterError
        If a column is missing, an outcome is not a finite number, or a cell has no row of some arm.

    Notes
    -----
    Contexts arrive with the frequencies of the data, and a reward is drawn with replacement from the rows of
    the same context and arm: the true mean of a cell is its mean in the data.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"arm": ["a", "b", "a", "b"], "y": [1, 0, 0, 0]})
    >>> Replay(data, action="arm", reward="y").arm_means()
    array([0.5, 0. ])
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        action: str,
        reward: str,
        context: str | Sequence[str] | None = None,
        *,
        arms: Sequence[Any] | None = None,
    ) -> None:
        names = [] if context is None else [context] if isinstance(context, str) else list(context)
        missing = [name for name in (action, reward, *names) if name not in frame.columns]
        _refuse("Replay", [f"the frame has no column {name!r}" for name in missing])
        _refuse("Replay", [] if len(frame) else ["the frame has no rows"])
        outcome, problems = _outcome(frame, reward)
        for name in (action, *names):
            if frame[name].isna().any():
                problems.append(f"column {name!r} has {int(frame[name].isna().sum())} missing values")
        _refuse("Replay", problems)
        labels = tuple(arms) if arms is not None else tuple(sorted(frame[action].unique().tolist()))
        twice = sorted({str(label) for label in labels if labels.count(label) > 1})
        _refuse("Replay", [f"arms= names {label!r} more than once" for label in twice])
        cells, codes = _cells(frame, names)
        arm_codes = frame[action].map({label: code for code, label in enumerate(labels)})
        if arm_codes.isna().any():
            unknown = sorted(map(str, set(frame[action].unique().tolist()) - set(labels)))
            raise ParameterError(
                "Replay", [f"column {action!r} has arms that are not in arms=: {', '.join(unknown)}"]
            )
        cell = codes * len(labels) + arm_codes.to_numpy(dtype=np.int64)
        size = np.bincount(cell, minlength=len(cells) * len(labels))
        _refuse("Replay", _empty_cells(size, cells, labels))
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
        self.reward_range = (float(outcome.min()), float(outcome.max()))
        self._tables = _tables(
            POOL,
            self.means,
            arrivals=self.probabilities,
            pool=(start.reshape(shape).astype(np.int64), size.reshape(shape).astype(np.int64), pool),
        )


def _outcome(frame: pd.DataFrame, reward: str) -> tuple[FloatArray, list[str]]:
    try:
        outcome = frame[reward].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return np.zeros(0), [f"column {reward!r} must hold numbers"]
    bad = int((~np.isfinite(outcome)).sum())
    return outcome, [f"column {reward!r} has {bad} missing or infinite values"] if bad else []


def _cells(frame: pd.DataFrame, names: list[str]) -> tuple[tuple[Any, ...], Any]:
    """Labels of the context cells in sorted order, and each row's cell."""
    if not names:
        return (None,), np.zeros(len(frame), dtype=np.int64)
    keys = (
        frame[names[0]].tolist() if len(names) == 1 else list(frame[names].itertuples(index=False, name=None))
    )
    labels = tuple(sorted(set(keys)))
    position = {label: code for code, label in enumerate(labels)}
    return labels, np.array([position[key] for key in keys], dtype=np.int64)


def _empty_cells(size: Any, cells: tuple[Any, ...], labels: tuple[Any, ...]) -> list[str]:
    empty = [(cells[code // len(labels)], labels[code % len(labels)]) for code in np.flatnonzero(size == 0)]
    return [
        f"no row has arm {arm!r}" + (f" in context {cell!r}" if cell is not None else "")
        for cell, arm in empty
    ]
