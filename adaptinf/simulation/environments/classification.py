"""Classification data as a bandit problem: the arms are the classes, and the correct one pays 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.log.validation.column_roles import CANONICAL, is_hashable
from adaptinf.log.validation.frame_columns import Label
from adaptinf.parameters import POSITIVE, SEED, OneOf, number_array, refuse
from adaptinf.simulation.environment import Environment, environment_tables, rows_problems
from adaptinf.simulation.environments.context_frames import (
    column_problems,
    context_names,
    label_codes,
    measurement_problems,
    numeric_columns,
)
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog, UnitCube, gathered
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.simulation.run import (
    BERNOULLI,
    GIVEN,
    IN_ORDER,
    LINEAR_BERNOULLI,
    RESAMPLED,
    SHUFFLED,
    EnvironmentTables,
)
from adaptinf.typing import FloatArray, IntArray, RandomSource

_ORDERS = {"resampled": RESAMPLED, "shuffled": SHUFFLED, "given": IN_ORDER}
_ROUNDING = 1e-9


class Classification(Environment):
    """A labelled data set as a bandit: arms are classes; the correct class pays 1, and the others 0.

    Parameters
    ----------
    frame : DataFrame
        A pandas or polars frame with one row per case.
    label : str
        Column with the correct class.
    context : str or iterable of str, optional
        Numeric or boolean columns that form the context vector, which all arms share. Without such columns,
        the rows are a bandit without contexts.
    scaler : UnitCube, optional
        Maps contexts into the unit cube, using bounds that do not come from these data.
    order : {"resampled", "shuffled", "given"}
        How the row of a round is chosen: drawn with replacement; or each row is used at most once in a run,
        in an order that is reshuffled in every run, or in the order of the frame.
    arms : sequence, optional
        The classes in the desired order. The default is the classes that occur, sorted if possible, and
        otherwise by first appearance.

    Attributes
    ----------
    rows : int
        Number of rows.
    contexts : ndarray of shape (rows, dimension)
        Context vectors, scaled if there is a `scaler`.
    classes : ndarray of int, shape (rows,)
        Position of each row's correct class among the arms.
    scaler : UnitCube or None
        As given.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem): columns that are missing, not
        numeric, or have missing values; labels that are not among `arms`, cannot be distinguished (1 and
        "1"), or are floats that hardly repeat; contexts outside the bounds of the `scaler`.

    Notes
    -----
    `means` contains the shares of the classes. Every row has an arm that pays 1, so the regret of a round is
    1 minus its reward. Every potential reward is known, unlike in a real trial.

    Rows drawn with replacement (``order="resampled"``) represent new people with these contexts and answers,
    and privacy is counted for each of them: a real person can participate only once.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, 35, 50, 80], "choice": ["bus", "car", "car", "bus"]})
    >>> cube = ai.environments.UnitCube(low=[18], high=[98], names=["age"])
    >>> environment = ai.environments.Classification(frame, "choice", "age", scaler=cube, order="shuffled")
    >>> environment
    Classification(arms=['bus', 'car'], dimension=1)
    >>> environment.arm_means(), environment.contexts.ravel()
    (array([0.5, 0.5]), array([0.025 , 0.2125, 0.4   , 0.775 ]))
    """

    def __init__(
        self,
        frame: Any,
        label: str,
        context: str | Iterable[str] | None = None,
        *,
        scaler: UnitCube | None = None,
        order: str = "resampled",
        arms: Sequence[Any] | None = None,
    ) -> None:
        problems = OneOf(*_ORDERS)("order", order)
        columns = _columns(label, context, scaler, problems)
        named = (label, *columns) if is_hashable(label) else columns
        refuse("Classification", problems + column_problems(frame, named))
        classes, labels = label_codes(frame, label, arms, problems)
        contexts = _contexts(frame, columns, scaler, problems)
        refuse("Classification", problems + _name_problems(columns, labels))
        n_arms, dimension = len(labels), len(columns)
        self.arms = labels
        self.dimension = dimension
        self.rows = len(classes)
        self.contexts, self.classes, self.scaler = contexts, classes, scaler
        self.context_norm = float(np.linalg.norm(contexts, axis=1).max())
        self.means = (np.bincount(classes, minlength=n_arms) / classes.size)[None]
        self.probabilities = np.ones((1, 1))
        self.reward_range = (0.0, 1.0)
        self.vector_names = tuple(map(str, columns))
        self._label, self._columns, self._order = label, columns, order
        # Without contexts, rows differ only in their classes, so it is enough to draw these.
        if dimension == 0 and order == "resampled":
            self._tables = environment_tables(BERNOULLI, self.means)
            return
        self._tables = environment_tables(
            LINEAR_BERNOULLI,
            self.means,
            tableau=(np.eye(n_arms)[classes], np.zeros(0, dtype=np.int64)),
            theta=np.zeros((n_arms, dimension)),
            vector_law=_ORDERS[order],
            shared=True,
            vectors=contexts,
            mean_law=GIVEN,
        )

    def horizon_problems(self, horizon: int) -> list[str]:
        """Reasons why a horizon is too long: rows that are used only once may run out."""
        return rows_problems(horizon, None if self._order == "resampled" else self.rows, "rows")

    def tables(self, horizon: int) -> EnvironmentTables:
        """Arrays that the run loop reads, after checking that `horizon` rounds are available."""
        rows = self.rows if self._order == "shuffled" else 0
        return super().tables(horizon)._replace(order=np.zeros(rows, dtype=np.int64))

    def regret(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Number of rounds without the reward for the correct class, shape (runs,)."""
        return np.asarray(pulls.sum(axis=(1, 2)) - sums.sum(axis=(1, 2)), dtype=np.float64)

    def auxiliary(
        self,
        frame: Any,
        epsilon: float = 8.0,
        rng: RandomSource | None = None,
        *,
        behaviour: str | ArrayLike = "uniform",
    ) -> AuxiliaryLog:
        """Labelled cases as auxiliary data: a fixed policy assigns an arm, with its reward, to each case.

        Parameters
        ----------
        frame : DataFrame
            Cases from elsewhere, one row per person, with the same columns. A person who is also among the
            rows of the trial, or appears in this frame twice, reports more than once, and the epsilons add
            up: omit such rows. Rows that are drawn with replacement represent new people with these answers.
        epsilon : float
            Privacy parameter under which these participants will report.
        rng : int, SeedSequence, Generator or None
            Source of randomness for the arms.
        behaviour : {"uniform"} or array_like of shape (arms,)
            Probability of each arm.

        Returns
        -------
        AuxiliaryLog
            The raw log in the order of the rows, with contexts scaled as in this environment, and with its
            propensities.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem.
        """
        problems = POSITIVE("epsilon", epsilon) + SEED("rng", rng)
        policy = _policy(behaviour, len(self.arms), problems)
        if not self.dimension:
            problems.append("there are no contexts: name their columns in context=")
        contexts, classes = self._cases(frame, problems)
        refuse("Classification.auxiliary", problems)
        draws = np.random.default_rng(seed_sequence(rng))
        action = draws.choice(len(self.arms), size=classes.size, p=policy)
        return gathered(self, contexts, action, (action == classes).astype(np.float64), policy, epsilon)

    def _cases(self, frame: Any, problems: list[str]) -> tuple[FloatArray, IntArray]:
        """Contexts and classes for the rows of another frame."""
        if wrong := column_problems(frame, (self._label, *self._columns)):
            problems += wrong
            return self.contexts[:0], self.classes[:0]
        classes, _ = label_codes(frame, self._label, self.arms, problems)
        return _contexts(frame, self._columns, self.scaler, problems), classes


def _columns(label: Any, context: Any, scaler: Any, problems: list[str]) -> list[Hashable]:
    """Names of the context columns; invalid names are added to the problems."""
    known = len(problems)
    names = context_names(context, problems)
    listed = len(problems) == known
    if not is_hashable(label):
        problems.append(f"label must be the name of one column, got {label!r:.60}")
    elif len(set(map(str, (label, *names)))) <= len(names):
        problems.append(f"label and context must be different columns, got {label!r:.60} and {names!r:.60}")
    if scaler is None or not listed:
        return names
    if not isinstance(scaler, UnitCube):
        problems.append(f"scaler must be a UnitCube, got {type(scaler).__name__}")
    elif scaler.dimension != len(names) or (scaler.names and list(scaler.names) != list(names)):
        of = ", ".join(scaler.names) or f"{scaler.dimension} coordinates"
        problems.append(f"the scaler is for {of}, but the context is {', '.join(map(str, names)) or 'empty'}")
    return names


def _contexts(
    frame: Any, columns: Sequence[Hashable], scaler: UnitCube | None, problems: list[str]
) -> FloatArray:
    """Context vectors, scaled; problems with them are added to `problems`."""
    known = len(problems)
    values = numeric_columns(frame, columns, problems)
    if len(problems) > known:
        return values
    if scaler is not None and columns:
        named = scaler if scaler.names else dataclasses.replace(scaler, names=list(map(str, columns)))
        try:
            return named.scale(values)
        except ParameterError as refused:
            problems += refused.problems
            return values
    problems += measurement_problems(values, [f"column {name!r}" for name in columns])
    return values


def _name_problems(columns: Sequence[Hashable], arms: Sequence[Label]) -> list[str]:
    """Problems with context columns whose names are reserved in logs."""
    kept = {*CANONICAL.values(), *(f"propensity_{arm}" for arm in arms)}
    return [
        f"context column {name!r} has a name that logs reserve; rename it"
        for name in columns
        if str(name) in kept
    ]


def _policy(behaviour: Any, n_arms: int, problems: list[str]) -> FloatArray:
    """Probability of each arm."""
    if isinstance(behaviour, str) and behaviour == "uniform":
        return np.full(n_arms, 1.0 / n_arms)
    given = None if isinstance(behaviour, str) else number_array(behaviour)
    fits = given is not None and given.shape == (n_arms,) and bool((given >= 0.0).all())
    if given is None or not fits or not abs(given.sum() - 1.0) <= _ROUNDING:
        problems.append(
            f'behaviour must be "uniform" or {n_arms} probabilities that sum to 1, one per arm, got '
            f"{behaviour!r:.60}"
        )
        return np.full(n_arms, 1.0 / n_arms)
    return np.asarray(given / given.sum(), dtype=np.float64)
