"""Trials on which designs are audited: neighbouring pairs, and trials whose decisions are recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import COUNT, OneOf, OrNone, problems_of, refuse
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.simulation.environments import Environment, Tableau
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import TABLEAU
from adaptinf.simulation.transcripts import Outputs, Transcripts, join_transcripts, replay, sample_transcripts
from adaptinf.typing import FloatArray, IntArray

# The library's neighbouring trials declare this range, because every private trial has to declare one.
UNIT_RANGE = (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two environments that differ in one unit, and a score that distinguishes their trials.

    Parameters
    ----------
    first, second : Environment
        The environments in which the trial is run, identical except for one unit.
    horizon : int
        Number of rounds of the trial.
    unit : {"reward", "record"}
        The part that differs: the potential rewards of one round, or its context and potential rewards.
    differs : str
        The difference in words.
    score : callable, optional
        A function of `Transcripts` that returns one number per run, of shape (runs,), that is large if the
        second environment is more likely: ideally the log-likelihood ratio of everything released.
    score_name : str
        Description of the score; an event is "<score_name> is at least 0.5".
    hidden : tuple of int
        Rounds, counted from 0, that an audit of the actions omits: the participant's own round if the
        guarantee is anticipating, and rounds without a choice.
    for_actions : bool
        Whether this is the pair, among those that a design supplies, whose actions alone are most
        informative.
    design : Design, optional
        The design that is run on both environments, if it is not the audited design itself: for example, the
        same design in a state, or with sizes that do not affect its privacy, in which the outputs reveal the
        unit most clearly.

    Raises
    ------
    ParameterError
        If the pair is invalid; the message lists every problem.

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
            problems.append(f"hidden must contain rounds from 0 to {self.horizon - 1}, got {self.hidden!r}")
        if not problems and isinstance(self.first, Tableau) and isinstance(self.second, Tableau):
            problems += _unit_problems(self.first, self.second, self.horizon, self.unit)
        refuse("Neighbours", problems)


def _unit_problems(first: Tableau, second: Tableau, horizon: int, unit: str) -> list[str]:
    """Problems if two tables do not differ in exactly one unit of the rounds that are run."""
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
        return ["first and second must have the same contexts if unit is reward"]
    if len(rewards | given) > 1:
        rounds = ", ".join(str(row + 1) for row in sorted(rewards | given)[:5])
        return [f"first and second must differ in one round, but they differ in rounds {rounds}"]
    return []


def _rows_apart(pair: list[Any]) -> set[int]:
    """Rows in which two arrays differ, or all rows of the longer array if their shapes differ."""
    one, other = pair
    if one.shape != other.shape:
        return set(range(max(one.shape[0], other.shape[0])))
    if one.size == 0:
        return set()
    return set(np.flatnonzero((one != other).reshape(one.shape[0], -1).any(axis=1)).tolist())


def refuse_unit(unit: Any) -> None:
    """Refuse a unit other than the reward, because the design protects only rewards."""
    refuse("neighbouring_trials", OrNone(OneOf("reward"))("unit, if given,", unit))


def record_unit(unit: Any) -> str:
    """The unit of a design that protects whole records, including rewards: by default the record."""
    return "record" if unit is None else str(unit)


def one_reward_apart(rewards: FloatArray, row: int) -> tuple[FloatArray, FloatArray]:
    """Two tables of potential rewards that differ in one round: 0 in the first, 1 in the second."""
    first, second = rewards.copy(), rewards.copy()
    first[row], second[row] = 0.0, 1.0
    return first, second


def reward_neighbours(
    first: FloatArray, second: FloatArray, row: int, score: Any, hidden: tuple[int, ...] = (), **tables: Any
) -> Neighbours:
    """Trials on two tables of rewards (rounds, arms) that differ in one round; `tables` goes to `Tableau`."""
    return Neighbours(
        Tableau(first, reward_range=UNIT_RANGE, **tables),
        Tableau(second, reward_range=UNIT_RANGE, **tables),
        len(first),
        "reward",
        f"the rewards of round {row + 1} are 0 and 1",
        score,
        hidden=hidden,
    )


@singledispatch
def neighbouring_trials(design: Any, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Pairs of trials that differ in one unit, on which a design's outputs differ most.

    By default, `epsilon_lower_bound` uses the first pair, or the one marked for actions.

    Parameters
    ----------
    design : Design or DPNAS
        The design to be audited.
    unit : {"reward", "record"}, optional
        The unit in which the two trials differ; by default the one that the guarantee protects.

    Returns
    -------
    tuple of Neighbours
        The pairs, the worst case first.

    Raises
    ------
    ParameterError
        If the design has no privacy guarantee, or none for this unit.

    Notes
    -----
    Pairs are looked up by the design's class. A user-defined class inherits the pairs of its base design. To
    supply other pairs, register a function of the design and a unit with
    ``@ai.audit.neighbouring_trials.register``.

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
            f"no neighbouring trials are known for {type(design).__name__}: it has no privacy guarantee or "
            "is user-defined; pass neighbours= to examine what its outputs reveal, or register its "
            "neighbouring trials"
        ],
    )


# Tests of independence subtract this mean from rewards of 0 and 1.
FAIR = 0.5
# Some of these rewards are clipped to [0, 1]; after clipping, their mean is 1/2, like that of fair coins.
_OUTSIDE = np.array([-3.0, 0.0, 0.25, 0.5, 1.0, 4.0])


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """Outputs of runs, and the values implied by their releases and earlier actions.

    Shapes: seen, recomputed (runs, places).

    Parameters
    ----------
    what : str
        Description of the quantities that are compared.
    seen, recomputed : ndarray of shape (runs, places)
        The outputs and the implied values, NaN where undefined.
    place : str
        Description of the places.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> ai.audit.Replayed("the arm", seen=np.array([[0, 1]]), recomputed=np.array([[0, 0]])).place
    'round'
    """

    what: str
    seen: Any
    recomputed: Any
    place: str = "round"


@dataclass(frozen=True, slots=True, eq=False)
class NodeUnits:
    """Untransformed noise of released numbers, for tests of its distribution.

    Parameters
    ----------
    noise : ndarray of shape (runs, nodes)
        Released number minus the true number; NaN if a run has no such number.
    scales : ndarray of shape (nodes,)
        The scales required by the guarantee.
    steps : ndarray of shape (runs, nodes)
        The round, counted from 0, after which each number was released.
    own : ndarray of shape (runs, nodes)
        Sums of the fair coins that entered a node, each minus 1/2; zeros if there are none.
    grid : float
        Number of noise units per 1, if the noise is exact.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> units = ai.audit.NodeUnits(np.array([[3.0]]), np.ones(1), np.array([[0]]), np.array([[0.5]]))
    >>> float(units.noise[0, 0] * units.grid)
    3145728.0
    """

    noise: FloatArray
    scales: FloatArray
    steps: IntArray
    own: FloatArray
    grid: float = float(GRID_UNITS)


@dataclass(frozen=True, slots=True, eq=False)
class NodeNoise:
    """Noise of released numbers, transformed by the distribution function that the guarantee requires.

    If the guarantee holds, the entries of a run are independent, uniform on (0, 1), and independent of every
    reward. An entry is NaN if a run has no such number.

    Parameters
    ----------
    uniforms : ndarray of shape (runs, nodes)
        The noise.
    names : sequence of str
        Names of the nodes.
    groups : ndarray of shape (nodes,)
        Groups of nodes whose noise is also tested as one sample, such as the levels of a tree.
    group_names : sequence of str
        Names of the groups.
    fair : ndarray of shape (runs, rewards)
        Rewards drawn by fair coins, minus 1/2, of which the noise must be independent; none by default.
    fair_names : sequence of str
        Names of these rewards.
    independent : bool
        Whether the nodes are mutually independent; if False, only their marginal distributions are tested.
    units : NodeUnits, optional
        The untransformed noise, for designs that can be run with exact noise.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> uniforms = np.random.default_rng(0).random((512, 2))
    >>> noise = ai.audit.NodeNoise(uniforms, ["node 1", "node 2"], np.zeros(2, dtype=int), ["all nodes"])
    >>> noise.independent
    True
    """

    uniforms: FloatArray
    names: Sequence[str]
    groups: IntArray
    group_names: Sequence[str]
    fair: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    fair_names: Sequence[str] = ()
    independent: bool = True
    units: NodeUnits | None = None


Replay = Callable[[Transcripts], tuple[Replayed, ...]]
Noise = Callable[[Transcripts], tuple[NodeNoise, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class AuditTrial:
    """A trial of a design, and how an audit examines it.

    Parameters
    ----------
    words : str
        Description of the trial's distinguishing feature.
    environment : Environment
        The environment; its rewards may lie outside the range that the design declares.
    horizon : int
        Its rounds.
    replay : callable, optional
        A function that recomputes the design's decisions from the releases and actions in `Transcripts`.
    noise : callable, optional
        A function of `Transcripts` that returns the noise of the releases.
    design : Design, optional
        The design that is run, if it is not the audited design itself.
    live_rounds : int
        Rounds after which a session or a trial in a file may stop, because all its noise has been observed; 0
        for all rounds.

    Examples
    --------
    >>> import adaptinf as ai
    >>> coins = ai.environments.BernoulliArms([0.5, 0.5])
    >>> ai.audit.AuditTrial("two arms for 64 rounds", coins, horizon=64).replay is None
    True
    """

    words: str
    environment: Environment
    horizon: int
    replay: Replay | None = None
    noise: Noise | None = None
    design: Design | None = None
    live_rounds: int = 0

    def sample(self, design: Design, runs: int, root: np.random.SeedSequence) -> Transcripts:
        """Simulate the given number of runs, including their rewards."""
        run = design if self.design is None else self.design
        pieces = sample_transcripts(run, self.environment, self.horizon, 0, runs, root, with_rewards=True)
        return join_transcripts(pieces)


@singledispatch
def audit_trials(design: Any) -> tuple[AuditTrial, ...]:
    """Trials on which an audit recomputes a design's decisions and tests its noise.

    Parameters
    ----------
    design : Design
        The design to be audited.

    Returns
    -------
    tuple of AuditTrial
        Some of the trials are longer than those of `neighbouring_trials`, have rewards outside the declared
        range, or have rewards drawn by coins. Noise distributions are derived from the parameters, not from
        the draws of the design. Empty if no trials are known for the design.

    Notes
    -----
    Trials are looked up by the design's class. A user-defined class is tested against the rule and the noise
    of its base design; to supply other trials for it, register a function of the design with
    ``@ai.audit.audit_trials.register``.

    Examples
    --------
    >>> import adaptinf as ai
    >>> [trial.horizon for trial in ai.audit.audit_trials(ai.designs.PrivateUCB(epsilon=1.0))]
    [1100, 1100, 256]
    >>> ai.audit.audit_trials(ai.designs.UCB())
    ()
    """
    return ()


def laplace_uniforms(noise: FloatArray, scale: Any) -> FloatArray:
    """Distribution function of a centred Laplace variable with the given scale, evaluated at the noise."""
    half = 0.5 * np.exp(-np.abs(noise) / scale)
    return np.asarray(np.where(noise < 0.0, half, 1.0 - half))


def fair_rewards(seen: Transcripts, fair: bool) -> dict[str, Any]:
    """Rewards drawn by fair coins, in the form that `NodeNoise` requires; empty if there were no coins."""
    names = [f"the reward of round {step + 1}" for step in range(seen.rewards.shape[1])]
    return {"fair": seen.rewards - FAIR if fair else np.zeros((0, 0)), "fair_names": names}


def outside_rewards(rounds: int, n_arms: int) -> FloatArray:
    """Rewards inside and outside [0, 1], in a different order for every arm; shape (rounds, arms)."""
    steps = np.arange(rounds)[:, None] + 2 * np.arange(n_arms)
    return np.asarray(_OUTSIDE[steps % _OUTSIDE.size])


# If the lowest and the highest coin lead to the same decision, every coin does.
_COINS = 0.0, 1.0 - 2.0**-53


@dataclass(frozen=True, slots=True, eq=False)
class PublicReplay:
    """Decisions recomputed from earlier actions and releases; contexts have shape (rounds, entries)."""

    # Coins are not outputs, so rounds are compared with the decisions that follow from the lowest and from
    # the highest coin. A kind of round that neither coin gives is wrong. If the kind of round involves no
    # coin, a different arm is wrong, too.

    program: Program
    contexts: FloatArray
    drawn: tuple[bool, ...]

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Recompute round types and arms, release times, and the final report."""
        outputs = Outputs(seen.actions, seen.statuses, seen.releases, self.contexts)
        sides = [replay(self.program, outputs, coin) for coin in _COINS]
        low, high = sides
        agreed = seen.statuses == low.statuses
        status = np.where(agreed, low.statuses, high.statuses)
        arm = np.where(agreed, low.actions, high.actions)
        # If both coins give this kind of round, they determine its arm, except in kinds of rounds in which a
        # coin chooses the arm.
        open_ = np.isin(seen.statuses, np.flatnonzero(self.drawn))
        overridden = seen.statuses == self._override
        return (
            Replayed("the round of a release", seen.releases[:, :, 0], high.ends, "release"),
            Replayed("the kind of round", seen.statuses, np.where(overridden, seen.statuses, status)),
            Replayed("the arm", seen.actions, np.where(overridden | open_, seen.actions, arm)),
            Replayed("what is reported at the end", seen.outcomes, high.outcomes, "number"),
        )

    @property
    def _override(self) -> int:
        """The status of rounds that a mixture overrides."""
        return self.program.n_statuses - 1 if self.program.share.size else -1


def public_replay(
    design: Design, environment: Environment, horizon: int, contexts: FloatArray | None = None
) -> PublicReplay | None:
    """The replay of trials; None if releases do not determine decisions, or there are no decisions.

    The default of `contexts`, of shape (rounds, entries), is the contexts of the environment.
    """
    program = design.program(environment, horizon, recording=True)
    if program.replay is None or environment.n_arms == 1:
        return None
    drawn = tuple(status.randomised for status in design.statuses)
    given = fixed_contexts(environment, horizon) if contexts is None else contexts
    return PublicReplay(program, given, drawn)


def replays(trial: AuditTrial, design: Design) -> tuple[Any, ...]:
    """All checks that recompute the decisions of a trial: its own check, and the check for all designs."""
    run = design if trial.design is None else trial.design
    general = public_replay(run, trial.environment, trial.horizon)
    return tuple(part for part in (general, trial.replay) if part is not None)


def fixed_contexts(environment: Environment, horizon: int) -> FloatArray:
    """Inputs to the choice in every round, if they are common to all runs; shape (rounds, entries)."""
    tables = environment.tables(horizon)
    entries = max(1, environment.n_arms * environment.dimension)
    contexts = np.zeros((horizon, entries))
    if environment.dimension:
        given = np.reshape(tables.vectors[:horizon], (horizon, -1))
        contexts[:] = np.tile(given, entries // given.shape[1])
    elif tables.kind == TABLEAU:
        contexts[:, 0] = tables.tableau_features[:horizon]
    return contexts
