"""Contexts in the unit cube: scalings fixed before the trial, and external logs that inform it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.log.validation.frame_columns import column_names, frame_kind
from adaptinf.parameters import FINITE, POSITIVE, Is, OneOf, number_array, refuse
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments.context_frames import (
    column_problems,
    listed_rows,
    measurement_problems,
    numeric_columns,
)
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class AuxiliaryLog:
    """A log whose participants report to a locally private trial before it begins.

    Parameters
    ----------
    log : AdaptiveLog
        Contexts (all of the log's context columns, in order), arms and rewards of the participants.
    epsilon : float
        Privacy parameter for the participants' reports.

    Raises
    ------
    ParameterError
        If there are no contexts, or some are not numbers or lie outside [0, 1]^d; if rewards lie outside [0,
        1]; or if epsilon is not positive.

    Notes
    -----
    Contexts must have been mapped into the cube by the scaling of the trial, fixed in advance (`UnitCube`). A
    trial accepts the log only if both have the same arms in the same order, the same context columns in the
    same order, and the same reward range.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.SmoothArms(n_arms=3, dimension=1)
    >>> earlier = ai.designs.Uniform().run(env, horizon=500, rng=0)
    >>> auxiliary = ai.environments.AuxiliaryLog(earlier, epsilon=2.0)
    >>> design = ai.designs.LDPBandit(epsilon=1.0, auxiliary=(auxiliary,))
    >>> design.traits.auxiliary
    (2.0,)
    """

    log: AdaptiveLog
    epsilon: float

    def __post_init__(self) -> None:
        given: Any = self.log
        problems = POSITIVE("epsilon", self.epsilon)
        if not isinstance(given, AdaptiveLog):
            problems.append(f"log must be an AdaptiveLog, got {type(given).__name__}")
        elif not given.context:
            problems.append("the log must have context columns")
        else:
            problems += _context_problems(given)
            reward = given.arrays.reward
            wrong = np.flatnonzero(~((reward >= 0.0) & (reward <= 1.0)))
            if wrong.size:
                problems.append(
                    f"rewards must lie in [0, 1], but {wrong.size} do not, in {listed_rows(wrong)}: rescale "
                    "them like those of the trial, by constants fixed in advance"
                )
        refuse("AuxiliaryLog", problems)

    @property
    def contexts(self) -> FloatArray:
        """Contexts, shape (rounds, dimension)."""
        columns = self.log.arrays.context
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in self.log.context], axis=1)

    def mismatches(self, environment: Environment) -> list[str]:
        """Reasons why the log cannot inform a trial in an environment, with the remedy."""
        problems = []
        names = environment.vector_names[: environment.dimension]
        if self.log.arms != environment.arms:
            problems.append(
                f"its arms are {list(self.log.arms)}, but those of the trial are {list(environment.arms)}: "
                "list the same arms in the same order in arms="
            )
        if len(self.log.context) != environment.dimension:
            problems.append(
                f"its contexts have {len(self.log.context)} coordinates, but those of the trial have "
                f"{environment.dimension}: give the log the same columns as the trial in context="
            )
        elif self.log.context != names:
            problems.append(
                f"its contexts are {', '.join(self.log.context)}, but those of the trial are "
                f"{', '.join(names)}: coordinates must have the same meaning, so rename and reorder the "
                "columns"
            )
        if self.log.reward_range is not None and self.log.reward_range != environment.reward_range:
            problems.append(
                f"its rewards have the range {self.log.reward_range}, but those of the trial have "
                f"{environment.reward_range}: rescale both by the same constants, and set reward_range="
            )
        return problems


def _context_problems(log: AdaptiveLog) -> list[str]:
    """Context columns that are not coordinates of points in the unit cube."""
    columns = {name: number_array(values) for name, values in log.arrays.context.items()}
    textual = [name for name, values in columns.items() if values is None]
    problems = []
    if textual:
        problems.append(
            f"contexts must be numbers, but these columns are not: {', '.join(map(repr, textual))}"
        )
    for name, values in columns.items():
        if values is None:
            continue
        outside = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
        if outside.size:
            problems.append(
                f"contexts must lie in [0, 1]^{len(columns)}, but {outside.size} rows of column {name!r} do "
                f"not, the first being row {outside[0]}: scale them with the UnitCube of the trial, fixed "
                "in advance"
            )
    return problems


def gathered(
    env: Environment,
    contexts: FloatArray,
    action: IntArray,
    reward: FloatArray,
    policy: FloatArray,
    epsilon: float,
) -> AuxiliaryLog:
    """Log under a fixed policy (arms,) in contexts (rounds, dimension) of an environment."""
    log = AdaptiveLog.from_arrays(
        LogArrays(
            action=action,
            reward=reward,
            propensity=policy[action],
            propensities=np.tile(policy, (action.size, 1)),
            batch=None,
            phase=None,
            randomised=None,
            context=dict(zip(env.vector_names, contexts.T, strict=True)),
        ),
        arms=env.arms,
        reward_range=env.reward_range,
        propensity_status="exact",
        feedback_rounds=0,
        stopping="fixed",
    )
    return AuxiliaryLog(log, epsilon=epsilon)


_STATED = "bounds stated by the user"
_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UnitCube:
    """Scale contexts to [0, 1]^d using bounds that are fixed before the trial.

    Parameters
    ----------
    low, high : sequence of float
        Smallest and largest values of each coordinate, in its own units, known without looking at the data of
        the trial: ranges of ages, or the codes of a questionnaire.
    names : sequence of str, optional
        Names of the coordinates' columns: these are then selected from frames, and errors name them.
    outside : {"refuse", "clip"}
        How to treat finite values beyond the bounds: raise an error, or move them to the nearest bound with a
        warning.
    source : str
        Description of the origin of the bounds.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem); for `scale`, also the rows and
        columns that have missing or infinite values or, under ``"refuse"``, values outside the bounds.

    Notes
    -----
    x becomes (x - low) / (high - low), coordinate by coordinate. Bounds that were fitted to private data
    reveal information about them: the smallest and largest values *are* two people's values, every scaled
    context depends on them, and no noise added afterwards protects them. For this reason, bounds are never
    fitted to the data of a trial; `from_public` fits them to data that the user declares public, and `source`
    says so. The counts in a warning or an error come from the data: they are for those who hold the data, not
    for release.

    Examples
    --------
    >>> import adaptinf as ai
    >>> cube = ai.environments.UnitCube(low=[18, 0], high=[90, 4], names=["age", "visits"])
    >>> cube
    UnitCube(age in [18, 90], visits in [0, 4]; fixed before the trial, bounds stated by the user)
    >>> cube.scale([[54, 1], [18, 4]])
    array([[0.5 , 0.25],
           [0.  , 1.  ]])
    >>> cube.unscale([0.5, 0.25])
    array([54.,  1.])
    """

    low: Sequence[float]
    high: Sequence[float]
    names: Sequence[str] = ()
    outside: str = "refuse"
    source: str = _STATED

    def __post_init__(self) -> None:
        problems = OneOf("refuse", "clip")("outside", self.outside)
        told: Any = self.source
        if not isinstance(told, str) or not told:
            problems.append(f"source must state where the bounds come from, got {told!r:.60}")
        names = _names(self.names, problems)
        low, high = _ends("low", self.low, problems), _ends("high", self.high, problems)
        if not problems:
            problems += _bound_problems(low, high, names)
        refuse("UnitCube", problems)
        object.__setattr__(self, "low", tuple(low))
        object.__setattr__(self, "high", tuple(high))
        object.__setattr__(self, "names", tuple(names))

    @classmethod
    def from_public(
        cls,
        frame: Any,
        columns: Sequence[str] | None = None,
        *,
        outside: str = "refuse",
        description: str = "",
    ) -> UnitCube:
        """Bounds from public data, on which no one's privacy depends. Never use the trial's own data.

        Parameters
        ----------
        frame : DataFrame
            A pandas or polars frame with public rows only.
        columns : sequence of str, optional
            Columns of the coordinates; by default all.
        outside : {"refuse", "clip"}
            How to treat values beyond the bounds, which participants of the trial may well have.
        description : str
            Description of the public data, for `source`.

        Returns
        -------
        UnitCube
            A scaling with the smallest and largest values of each column.

        Raises
        ------
        ParameterError
            If a column is absent, is not numeric, has missing or infinite values, or is constant; or if
            `description` is not text.
        """
        names = list(column_names(frame)) if columns is None and frame_kind(frame) else columns
        problems = Is(str, "a string")("description", description)
        wanted = _names(() if names is None else names, problems)
        problems += column_problems(frame, wanted)
        if not problems:
            values = numeric_columns(frame, wanted, problems)
        if not problems:
            problems += measurement_problems(values, [f"column {name!r}" for name in wanted])
        refuse("UnitCube.from_public", problems)
        of = f": {description}" if description else ""
        return cls(
            low=values.min(axis=0).tolist(),
            high=values.max(axis=0).tolist(),
            names=wanted,
            outside=outside,
            source=f"bounds fitted to {values.shape[0]} rows that were declared public{of}",
        )

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    def scale(self, values: Any) -> FloatArray:
        """Map contexts into the cube.

        Parameters
        ----------
        values : DataFrame or array_like of shape (n, dimension) or (dimension,)
            Contexts in their own units. If `names` is set, these columns of a frame are used, and otherwise
            all.

        Returns
        -------
        ndarray of shape (n, dimension) or (dimension,)
            Contexts in [0, 1]^dimension.

        Raises
        ------
        ParameterError
            If values are missing, not numbers, infinite or, if this is refused, outside the bounds; the
            message lists their rows and columns.

        Warns
        -----
        AdaptinfWarning
            If values were clipped; the message gives their number.
        """
        given = self._values(values, "scale")
        rows = np.atleast_2d(given)
        low, high = np.array(self.low), np.array(self.high)
        titles = self._titles()
        problems, clipped = measurement_problems(rows, titles), []
        for k, name in enumerate(titles):
            column = rows[:, k]
            beyond = np.flatnonzero(np.isfinite(column) & ((column < low[k]) | (column > high[k])))
            if not beyond.size:
                continue
            clipped.append(f"{beyond.size} of {name}")
            if self.outside == "refuse":
                problems.append(
                    f"{name} must lie in [{low[k]:g}, {high[k]:g}], but {beyond.size} values do not, in "
                    f"{listed_rows(beyond)}; the first is {column[beyond[0]]:g}"
                )
        if problems:
            if clipped and self.outside == "refuse":
                problems.append(
                    'bounds are fixed before the trial: use wider bounds, or set outside="clip" for the '
                    "whole trial"
                )
            raise ParameterError("UnitCube.scale", problems)
        if clipped:
            warnings.warn(
                f"UnitCube: among {rows.shape[0]} rows, values were clipped to the bounds: "
                f"{', '.join(clipped)}",
                AdaptinfWarning,
                stacklevel=2,
            )
        return np.asarray((np.clip(given, low, high) - low) / (high - low), dtype=np.float64)

    def unscale(self, values: ArrayLike) -> FloatArray:
        """Map points of the cube, such as the corners of bins, back to the units of the contexts.

        Parameters
        ----------
        values : array_like of shape (n, dimension) or (dimension,)
            Points of the cube.

        Returns
        -------
        ndarray of the same shape
            low + values (high - low).

        Raises
        ------
        ParameterError
            If the shape is wrong, or a value is not a number in [0, 1].
        """
        given = self._values(values, "unscale")
        if not ((given >= 0.0) & (given <= 1.0)).all():
            raise ParameterError("UnitCube.unscale", ["values must lie in [0, 1]"])
        low, high = np.array(self.low), np.array(self.high)
        return np.asarray((1.0 - given) * low + given * high, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a protocol; `from_dict` restores the same scaling."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> UnitCube:
        """Scaling from the output of `to_dict`.

        Raises
        ------
        ParameterError
            If entries are missing, unknown or invalid.
        """
        known = {field.name for field in fields(cls)}
        given: Any = stored
        if not isinstance(given, Mapping) or set(given) != known:
            raise ParameterError(
                "UnitCube.from_dict", [f"requires a mapping with {', '.join(sorted(known))}"]
            )
        return cls(**given)

    def _titles(self) -> list[str]:
        """Names of the coordinates for error messages."""
        return [f"column {name!r}" for name in self.names] or _unnamed(self.dimension)

    def _values(self, values: Any, method: str) -> FloatArray:
        """Numbers in a frame or an array, with rows of the right length."""
        problems: list[str] = []
        array: FloatArray | None
        if frame_kind(values) is not None:
            names: list[Hashable] = list(self.names) or column_names(values)
            problems = column_problems(values, names)
            array = np.zeros(0)
            if not problems:
                array = numeric_columns(values, names, problems)
        else:
            array = number_array(values)
        if array is None:
            problems.append(f"values must be numbers in rows of equal length, got {values!r:.60}")
        elif not problems and (array.ndim not in (1, 2) or array.shape[-1] != self.dimension):
            problems.append(
                f"values must have {self.dimension} coordinates, shape (n, {self.dimension}) or "
                f"({self.dimension},), got shape {array.shape}"
            )
        if problems or array is None:
            raise ParameterError(f"UnitCube.{method}", problems)
        return array

    def __repr__(self) -> str:
        titles = self.names or _unnamed(self.dimension)
        parts = [
            f"{name} in [{low:g}, {high:g}]"
            for name, low, high in zip(titles, self.low, self.high, strict=True)
        ]
        if len(parts) > _SHOWN:
            parts[_SHOWN:] = [f"and {len(parts) - _SHOWN} more"]
        clipping = ", clipping values outside" if self.outside == "clip" else ""
        return f"UnitCube({', '.join(parts)}{clipping}; fixed before the trial, {self.source})"


def _unnamed(dimension: int) -> list[str]:
    """Default names of the coordinates."""
    return [f"x{k}" for k in range(1, dimension + 1)]


def _names(names: Any, problems: list[str]) -> list[str]:
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        problems.append(f"names must be a list of columns, got {names!r:.60}")
        return []
    listed = list(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        problems.append(f"names must be different strings, got {listed!r:.60}")
        return []
    return listed


def _ends(name: str, values: Any, problems: list[str]) -> list[float]:
    array = number_array(values)
    if array is None or array.ndim != 1 or array.size == 0:
        problems.append(f"{name} must be a list with one number per coordinate, got {values!r:.60}")
        return []
    for k, value in enumerate(array.tolist()):
        problems += FINITE(f"{name}[{k}]", value)
    return [float(value) for value in array]


def _bound_problems(low: list[float], high: list[float], names: list[str]) -> list[str]:
    if len(low) != len(high) or (names and len(names) != len(low)):
        told = f"{len(low)} low, {len(high)} high" + (f", {len(names)} names" if names else "")
        return [f"low, high and names must refer to the same coordinates, got {told}"]
    titles = [repr(name) for name in names] or _unnamed(len(low))
    return [
        f"low must be below high, but coordinate {title} has {begin:g} and {end:g}; omit the coordinate if "
        f"it is constant, or give its possible range"
        for title, begin, end in zip(titles, low, high, strict=True)
        if not begin < end
    ]
