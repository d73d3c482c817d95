"""Neighbouring trials: two data sets that differ in one unit, on which a design's outputs are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from adaptinf.designs.base_design import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import COUNT, OneOf, OrNone, problems_of, refuse
from adaptinf.simulation.environments import Environment, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

UNIT_RANGE = (0.0, 1.0)
"""Rewards of the library's neighbouring trials: declared, as any private trial's are."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two environments that differ in one unit, and what tells their trials apart.

    Parameters
    ----------
    first, second : Environment
        Where the trial is run: the same but for one unit.
    horizon : int
        Rounds of the trial.
    unit : {"reward", "record"}
        What differs: the potential rewards of one round, or context and potential rewards.
    differs : str
        In words.
    score : callable, optional
        Takes `Transcripts` and returns one number per run, of shape (runs,), that is large where the second
        environment is the likelier one: best the log-likelihood ratio of all that is released.
    score_name : str
        In words; an event is "<score_name> is at least 0.5".
    hidden : tuple of int
        Rounds, counted from 0, that an audit of the actions leaves out: the participant's own where the
        notion is anticipating, and rounds in which nothing can be chosen.
    for_actions : bool
        Whether this is the pair, of those that a design supplies, on which its actions alone tell most.
    design : Design, optional
        What is run on both, where it is not the audited design itself but the same one in a state, or with
        sizes that do not enter its privacy, in which the unit tells most.

    Raises
    ------
    ParameterError
        Listing what is wrong.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rewards = np.zeros((4, 2))
    >>> changed = rewards.copy()
    >>> changed[0] = 1.0
    >>> sides = ai.environments.Tableau(rewards), ai.environments.Tableau(changed)
    >>> pair = ai.audit.Neighbours(*sides, horizon=4, unit="reward", differs="reward 1 is 0 or 1")
    >>> design = ai.designs.PrivateUCB(epsilon=4.0)
    >>> ai.audit.epsilon_lower_bound(design, pair, view="actions", runs=2_000, rng=0).refuted
    False
    """

    first: Environment
    second: Environment
    horizon: int
    unit: str
    differs: str
    score: Callable[[Transcripts], FloatArray] | None = None
    score_name: str = "the log-likelihood ratio of the releases"
    hidden: tuple[int, ...] = ()
    for_actions: bool = False
    design: Design | None = None

    def __post_init__(self) -> None:
        problems = problems_of(horizon=(self.horizon, COUNT), unit=(self.unit, OneOf("reward", "record")))
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), Environment):
                problems.append(f"{name} must be an environment, such as Tableau(rewards)")
        if not problems and self.first.n_arms != self.second.n_arms:
            problems.append("first and second must have the same arms")
        if not problems and any(not 0 <= shown < self.horizon for shown in self.hidden):
            problems.append(f"hidden must hold rounds from 0 to {self.horizon - 1}, got {self.hidden!r}")
        if not problems and isinstance(self.first, Tableau) and isinstance(self.second, Tableau):
            problems += _unit_problems(self.first, self.second, self.horizon, self.unit)
        refuse("Neighbours", problems)


def _unit_problems(first: Tableau, second: Tableau, horizon: int, unit: str) -> list[str]:
    """What two tables differ in, where it is not one unit of the rounds that are run."""
    problems = first.horizon_problems(horizon) + second.horizon_problems(horizon)
    if problems:
        return problems
    tables = [env.tables(horizon) for env in (first, second)]
    rewards, contexts, vectors = (
        _rows_apart([getattr(table, part)[:horizon] for table in tables])
        for part in ("tableau", "tableau_features", "vectors")
    )
    given = contexts | vectors
    if unit == "reward" and given:
        return ["first and second must have the same contexts where unit is reward"]
    if len(rewards | given) > 1:
        rounds = ", ".join(str(row + 1) for row in sorted(rewards | given)[:5])
        return [f"first and second must differ in one round, they differ in rounds {rounds}"]
    return []


def _rows_apart(pair: list[Any]) -> set[int]:
    """Rows in which two arrays differ; all of those of the longer one where their shapes differ."""
    one, other = pair
    if one.shape != other.shape:
        return set(range(max(one.shape[0], other.shape[0])))
    if one.size == 0:
        return set()
    return set(np.flatnonzero((one != other).reshape(one.shape[0], -1).any(axis=1)).tolist())


def refuse_unit(unit: Any) -> None:
    """Refuse a unit other than the reward, which is all that the design protects."""
    refuse("neighbouring_trials", OrNone(OneOf("reward"))("unit, where it is given,", unit))


def record_unit(unit: Any) -> str:
    """The unit of a design that protects whole records, rewards among them: records where none is named."""
    return "record" if unit is None else str(unit)


def one_reward_apart(rewards: FloatArray, row: int) -> tuple[FloatArray, FloatArray]:
    """Two tables of potential rewards that differ in one round: 0 for every arm, and 1."""
    first, second = rewards.copy(), rewards.copy()
    first[row], second[row] = 0.0, 1.0
    return first, second


@singledispatch
def neighbouring_trials(design: Any, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Pairs of trials that differ in one unit, on which a design's outputs differ most.

    `epsilon_lower_bound` takes the first of them, or the one that is for actions.

    Parameters
    ----------
    design : Design or DPNAS
        What is to be audited.
    unit : {"reward", "record"}, optional
        What differs between the two; by default what the guarantee protects.

    Returns
    -------
    tuple of Neighbours
        The worst case first.

    Raises
    ------
    ParameterError
        If the design promises no privacy, or none for this unit.

    Notes
    -----
    Pairs are found by the design's class. A class of your own has those of the design that it inherits from;
    ``@ai.audit.neighbouring_trials.register`` on a function of such a design and a unit gives it its own.

    Examples
    --------
    >>> import adaptinf as ai
    >>> first, second = ai.audit.neighbouring_trials(ai.designs.PrivateUCB(epsilon=1.0))
    >>> first.horizon, first.differs
    (16, 'the rewards of round 9 are 0 and 1')
    """
    if not isinstance(design, Design):
        raise ParameterError("neighbouring_trials", [f"design must be a private design, got {design!r:.60}"])
    raise ParameterError(
        "neighbouring_trials",
        [
            f"none are known for {type(design).__name__}: it promises no privacy, or is of your own; give "
            "neighbours= to see what its outputs reveal, or register its trials"
        ],
    )
