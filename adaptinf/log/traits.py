"""Statements that a design makes once about itself, for every reader of its logs: facts, not names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import (
    BOOLEAN,
    NON_NEGATIVE,
    POSITIVE,
    SHARE,
    UNIT,
    Constraint,
    Count,
    Is,
    OneOf,
    OrNone,
    refuse,
)
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray

UsesContext = Literal["no", "groups", "vectors", "position", "yes", "unknown"]
ArmMeans = Literal["comparable", "by-group", "by-vector", "by-bin", "by-released-bin", "by-context"]
Length = Literal["declared", "releases"]
Propensities = Literal["not covered", "outputs", "by-context"]
Phases = Literal["not covered", "calendar", "outputs"]


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound on every arm's propensity: scale * t^-decay in round t.

    Attributes
    ----------
    scale : float
        The floor in round 1.
    decay : float
        Exponent; 0 for a constant floor.
    shared : bool
        Whether the scale is divided by the number of arms.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> traits = ai.designs.DesignTraits(uses_context="no", floor=ai.designs.Floor(0.2, shared=True))
    >>> design = ai.designs.FunctionDesign(lambda state, context, rng: [0.1, 0.9], traits=traits)
    >>> design.run(arms, horizon=10, rng=0).arrays.propensities.min().item()
    0.1
    """

    scale: float
    decay: float = 0.0
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """The known facts about the stability of a design's arm counts.

    Attributes
    ----------
    stable : bool
        Whether each count, divided by some sequence of constants, tends to 1 in probability (Lai and Wei's
        condition). Sample means are then asymptotically normal.
    condition : str
        The conditions under which the counts are stable, or the reason why they are not.
    source : str
        Reference for the proof.

    Examples
    --------
    >>> import adaptinf as ai
    >>> settled = ai.designs.Stability(True, "constant probabilities", "law of large numbers")
    >>> traits = ai.designs.DesignTraits(stability=settled)
    >>> design = ai.designs.FunctionDesign(lambda state, context, rng: [0.3, 0.7], traits=traits)
    >>> design.traits.stability.stable
    True
    """

    stable: bool
    condition: str
    source: str


@dataclass(frozen=True, slots=True)
class FreshEpochs:
    """Epochs that each start afresh and release the mean of every remaining arm, with Laplace noise.

    In epoch e = 1, 2, ..., each of the m remaining arms is pulled ceil(R) times, where R = max(32 L_1 4^e, 8
    L_2 2^e) + 1, L_1 = log(8 m e^2 / beta) and L_2 = log(4 m e^2 / beta) / epsilon. The arm's mean over these
    pulls is released with noise of scale 1 / (epsilon ceil(R)).

    Attributes
    ----------
    epsilon : float
        Privacy parameter for a mean; infinite without noise.
    beta : float or None
        If None, 1 / horizon.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.
    """

    epsilon: float
    beta: float | None = None

    def logarithms(self, arms: ArrayLike, epoch: ArrayLike, horizon: int) -> tuple[FloatArray, FloatArray]:
        """L_1 and L_2, given the number of remaining arms and the epoch.

        Parameters
        ----------
        arms, epoch : array_like
            Shapes that broadcast.
        horizon : int
            Rounds of the trial.
        """
        beta = 1.0 / horizon if self.beta is None else self.beta
        shared = np.asarray(arms, dtype=np.float64) * np.square(np.asarray(epoch, dtype=np.float64)) / beta
        return np.log(8.0 * shared), np.log(4.0 * shared) / self.epsilon

    def length(self, arms: ArrayLike, epoch: ArrayLike, horizon: int) -> FloatArray:
        """R, given the number of remaining arms and the epoch; an arm is pulled ceil(R) times.

        Parameters
        ----------
        arms, epoch : array_like
            Shapes that broadcast.
        horizon : int
            Rounds of the trial.
        """
        wide, noise = self.logarithms(arms, epoch, horizon)
        gap = 0.5 ** np.asarray(epoch, dtype=np.float64)
        # With this length, (L_1 / (2 R))^(1/2) and L_2 / R are each below gap / 8, so 4 times their sum is
        # below the gap.
        return np.asarray(np.maximum(32.0 * wide / gap**2, 8.0 * noise / gap) + 1.0, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Properties of the outputs that a private design's guarantee covers: its actions and releases.

    Attributes
    ----------
    length : {"declared", "releases"}
        Whether the number of rounds is declared in advance or determined by releases.
    propensities : {"not covered", "outputs", "by-context"}
        Whether a round's propensities can be computed from actions, releases and published coins; or only
        given the context, so that they may reveal it; or not at all.
    phase : {"not covered", "calendar", "outputs"}
        Whether a round's phase follows from its number alone, from actions and releases, or from neither.
    recommended : bool
        Whether the arm recommended at the end is computed from releases.
    epochs : FreshEpochs or None
        For a design that releases arm means in fresh epochs, the lengths of these epochs.

    Notes
    -----
    `AdaptiveLog.public` uses these facts. The defaults cover as little as possible.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.DPConSE(epsilon=1.0).traits.outputs.phase
    'calendar'
    """

    length: Length = "declared"
    propensities: Propensities = "not covered"
    phase: Phases = "not covered"
    recommended: bool = False
    epochs: FreshEpochs | None = None


@dataclass(frozen=True, slots=True)
class DesignTraits:
    """Properties that determine how a design's logs may be analysed; designs define and logs store them.

    Attributes
    ----------
    adapts : bool
        Whether rewards may affect later choices.
    uses_context : {"no", "groups", "vectors", "position", "yes", "unknown"}
        The way in which contexts affect the choice: not at all; through a finite group; through a vector per
        arm; through the position in a cube; or in another way.
    own_coins : bool
        Whether the design randomises given the past, beyond the noise that makes it private. A design without
        its own coins is re-run on permuted rows, rather than with new assignments.
    floor : Floor or None
        Lower bound on the design's propensities, if there is one.
    stability : Stability or None
        Whether the design's arm counts are stable, if known.
    dealt : int
        Number of initial rounds per arm that are assigned to the arms in turn, regardless of rewards. The
        floor does not apply to these rounds.
    arm_means : {"comparable", "by-group", "by-vector", "by-bin", "by-released-bin", "by-context"}
        Whether the overall means of arms can be compared; if not, what is compared instead.
    auxiliary : tuple of float
        Epsilon of each auxiliary log whose participants reported before the trial began.
    outputs : Outputs or None
        For a private design, the parts that its guarantee covers besides actions and releases.

    Notes
    -----
    The defaults assume nothing about the design: it may adapt to rewards and to contexts.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.UCB().traits.own_coins, ai.designs.LinUCB().traits.uses_context
    (False, 'vectors')
    """

    adapts: bool = True
    uses_context: UsesContext = "unknown"
    own_coins: bool = True
    floor: Floor | None = None
    dealt: int = 0
    stability: Stability | None = None
    arm_means: ArmMeans = "comparable"
    auxiliary: tuple[float, ...] = ()
    outputs: Outputs | None = None

    @property
    def replays_by(self) -> Literal["assignment", "order"]:
        """How a randomisation test re-runs the design."""
        return "assignment" if self.own_coins else "order"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; fields introduced later are included only if they carry information."""
        return {name: value for name, value in asdict(self).items() if _ADDED.get(name, _NEVER) != value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DesignTraits:
        """Traits from `to_dict`.

        Parameters
        ----------
        stored : mapping
            Plain values by name.

        Raises
        ------
        ParameterError
            If a field is missing or unknown, or has an invalid value.
        """
        given: Any = stored
        whole = {**_ADDED, **given} if isinstance(given, Mapping) else given
        traits: DesignTraits = _made("traits", cls, whole)
        refuse("DesignTraits", traits_problems(traits))
        return traits


_KINDS: Mapping[str, tuple[Any, ...]] = {
    "adapts": (True, False),
    "uses_context": get_args(UsesContext),
    "own_coins": (True, False),
    "arm_means": get_args(ArmMeans),
}
_TEXT = Is(str, "a text")
_DEALT = Count(0)
_ADDED: Mapping[str, Any] = {"dealt": 0}
"""Traits that files from earlier versions lack, with their implied values."""
_NEVER = object()
_CONSTRAINTS: Mapping[type, Mapping[str, Constraint]] = {
    Floor: {"scale": UNIT, "decay": NON_NEGATIVE, "shared": BOOLEAN},
    Stability: {"stable": BOOLEAN, "condition": _TEXT, "source": _TEXT},
    FreshEpochs: {"epsilon": POSITIVE, "beta": OrNone(SHARE)},
    Outputs: {
        "length": OneOf(*get_args(Length)),
        "propensities": OneOf(*get_args(Propensities)),
        "phase": OneOf(*get_args(Phases)),
        "recommended": BOOLEAN,
    },
}
_PARTS: Mapping[type, Mapping[str, type]] = {
    DesignTraits: {"floor": Floor, "stability": Stability, "outputs": Outputs},
    Outputs: {"epochs": FreshEpochs},
}


def traits_problems(traits: Any) -> list[str]:
    """List problems with the given traits, one line per field."""
    if not isinstance(traits, DesignTraits):
        return [f"traits must be DesignTraits, got {traits!r:.60}"]
    problems = [
        unlisted(f"traits.{name}", kinds, getattr(traits, name))
        for name, kinds in _KINDS.items()
        if not any(
            type(getattr(traits, name)) is type(kind) and getattr(traits, name) == kind for kind in kinds
        )
    ]
    auxiliary: Any = traits.auxiliary
    if not isinstance(auxiliary, tuple) or any(POSITIVE("epsilon", epsilon) for epsilon in auxiliary):
        problems.append(f"traits.auxiliary must be a tuple of epsilons, got {auxiliary!r:.60}")
    problems += _DEALT("traits.dealt", traits.dealt)
    return problems + _part_problems("traits", DesignTraits, traits)


def _part_problems(what: str, kind: type, stated: Any) -> list[str]:
    """List problems with the fields of a part, and with its own parts."""
    problems = []
    for name, constraint in _CONSTRAINTS.get(kind, {}).items():
        problems += constraint(f"{what}.{name}", getattr(stated, name))
    for name, part in _PARTS.get(kind, {}).items():
        value = getattr(stated, name)
        if value is not None and not isinstance(value, part):
            problems.append(f"{what}.{name} must be a {part.__name__} or None, got {value!r:.60}")
        elif value is not None:
            problems += _part_problems(f"{what}.{name}", part, value)
    return problems


def _made(what: str, kind: type, stored: Any) -> Any:
    """A part created from its stored fields, which must be complete."""
    known = [field.name for field in fields(kind)]
    if not isinstance(stored, Mapping) or set(stored) != set(known):
        found = ", ".join(map(str, stored)) if isinstance(stored, Mapping) else f"{stored!r:.60}"
        refuse("DesignTraits", [f"{what} must have the fields {', '.join(known)}, got {found}"])
    made = dict(stored)
    for name, part in _PARTS.get(kind, {}).items():
        made[name] = None if stored[name] is None else _made(f"{what}.{name}", part, stored[name])
    return kind(**made)


PLANNED = "planned_rounds"
"""Number of rounds declared, if the log contains fewer."""
WINDOW = "outcome_window"
"""Number of further participants after which an outcome enters, whenever it arrived."""
LATE = "late_counts_as"
"""Value used for an outcome that has not arrived when its window ends."""
IN_TIME = "in_time_epsilon"
"""Privacy parameter for the released timely successes and failures."""
IN_TIME_NAMES = ("in_time_successes", "in_time_failures")
"""Names of the releases of timely outcomes, each with one row per arm."""
AMENDED = "amended_outcomes"
"""Number of outcomes in the log that had other values in the design."""
REMOVED = "removed_arms"
"""Arms that were removed, each with the number of rounds at that time."""
ADDED = "added_arms"
"""Arms that joined, each with the number of rounds at that time."""
SWITCHED = "versions_from"
"""Versions that made decisions different from those of earlier versions, each with the number of rounds."""
LEFT_OUT = "left_out_rounds"
"""Number of rounds of erased participants, which are not in the log."""
BLANKED = "blanked_contexts"
"""Names of contexts that are not in the log because those of some participants were erased."""
STOP_REASON = "stop_reason"
"""The stated reason for ending the trial before its horizon."""
UNPROMISED = "no_guarantee"
"""Reasons why the log has no guarantee although its design has one, as a list of texts."""
PLAN = "plan"
"""Arguments of the trial's plan of looks, except its design."""
LOOKS = "looks"
"""Looks at the trial, each a mapping with stage, rounds, statistic, bound, decision and overridden."""
DECLARED = (PLANNED, WINDOW, LATE, IN_TIME, PLAN)
"""Parameters that were fixed before the first round."""
_SEEN = (AMENDED, REMOVED, ADDED, SWITCHED, LEFT_OUT, BLANKED, STOP_REASON, UNPROMISED, LOOKS)
COLLECTED = (*DECLARED, *_SEEN)


def planned_rounds(log: Any) -> int:
    """Number of rounds planned by a log's design: the log's own number if nothing else is recorded."""
    parameters = {} if log.design is None else log.design.parameters
    return int(parameters.get(PLANNED, log.n_rounds))


def declared(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were fixed before the first round."""
    return {name: value for name, value in parameters.items() if name not in _SEEN}
