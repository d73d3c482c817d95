"""What a design says about itself once, and every reader of its logs asks: facts in place of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from adaptinf.parameters import BOOLEAN, NON_NEGATIVE, POSITIVE, UNIT, Constraint, Is, OneOf, refuse

UsesContext = Literal["no", "groups", "vectors", "position", "yes", "unknown"]
ArmMeans = Literal["comparable", "by-group", "by-vector", "by-bin", "by-released-bin", "by-context"]
Length = Literal["declared", "releases"]
Propensities = Literal["not covered", "outputs", "by-context"]
Phases = Literal["not covered", "calendar", "outputs"]
Means = Literal["none", "fresh-epochs"]


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound of every arm's propensity: scale * t^-decay in round t.

    Attributes
    ----------
    scale : float
        The bound in round 1.
    decay : float
        Exponent, 0 for a floor that does not fall.
    shared : bool
        Whether the scale is divided by the number of arms.
    """

    scale: float
    decay: float = 0.0
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """What is known of how a design's arm counts settle.

    Attributes
    ----------
    stable : bool
        Whether each count, over some sequence of constants, tends to 1 in probability (Lai and Wei's
        condition). Sample means are then asymptotically normal.
    condition : str
        Under what, or why not.
    source : str
        Where it is shown.
    """

    stable: bool
    condition: str
    source: str


@dataclass(frozen=True, slots=True)
class Outputs:
    """What follows from the outputs that a private design's guarantee speaks of: its actions and releases.

    Attributes
    ----------
    length : {"declared", "releases"}
        Whether the number of rounds is declared beforehand, or decided by releases.
    propensities : {"not covered", "outputs", "by-context"}
        Whether a round's propensities can be computed from actions, releases and coins that are published
        with them; or given the context as well, so that they can name it; or neither.
    phase : {"not covered", "calendar", "outputs"}
        Whether a round's phase follows from its number alone, from actions and releases, or neither.
    recommended : bool
        Whether the arm that is named at the end is computed from releases.
    means : {"none", "fresh-epochs"}
        Whether arms' means are released, each over an epoch's rounds alone that earlier releases fixed, with
        as many of each arm that is left and independent Laplace noise of a known scale.

    Notes
    -----
    `AdaptiveLog.public` reads these facts. The defaults are those that cover least.

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
    means: Means = "none"


@dataclass(frozen=True, slots=True)
class DesignTraits:
    """What decides how the logs of a design may be analysed; a design states it, its logs keep it.

    Attributes
    ----------
    adapts : bool
        Whether rewards may move later choices.
    uses_context : {"no", "groups", "vectors", "position", "yes", "unknown"}
        Whether contexts move the choice: not at all; by a finite group; by a vector an arm; by the position
        in a cube; in another way.
    own_coins : bool
        Whether it randomises given the past, beyond the noise that makes it private. Without coins of its
        own it is re-run on permuted rows, not on fresh assignments.
    floor : Floor or None
        Lower bound of its propensities, where it has one.
    stability : Stability or None
        Whether its arm counts settle, where that is known.
    arm_means : {"comparable", "by-group", "by-vector", "by-bin", "by-released-bin", "by-context"}
        Whether means of whole arms can be compared, or what takes their place.
    auxiliary : tuple of float
        Epsilon of each auxiliary log whose participants reported before the trial began.
    outputs : Outputs or None
        Of a private design, what its guarantee covers beside actions and releases.

    Notes
    -----
    The defaults are those of a design of which nothing is known: it may adapt, and to contexts.

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
    stability: Stability | None = None
    arm_means: ArmMeans = "comparable"
    auxiliary: tuple[float, ...] = ()
    outputs: Outputs | None = None

    @property
    def replays_by(self) -> Literal["assignment", "order"]:
        """How a randomisation test re-runs it."""
        return "assignment" if self.own_coins else "order"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a file keeps them."""
        return asdict(self)

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
            If a field is missing or unknown, or has a value that no trait has.
        """
        nested = {name: kind for name, (kind, _) in _PARTS.items()}
        problems = _field_problems("traits", cls, stored)
        for name, kind in nested.items():
            if not problems and stored[name] is not None:
                problems += _field_problems(f"traits.{name}", kind, stored[name])
        refuse("DesignTraits", problems)
        parts = {name: kind(**stored[name]) for name, kind in nested.items() if stored[name] is not None}
        traits = cls(**{**stored, **parts})
        refuse("DesignTraits", traits_problems(traits))
        return traits


_KINDS: Mapping[str, tuple[Any, ...]] = {
    "adapts": (True, False),
    "uses_context": get_args(UsesContext),
    "own_coins": (True, False),
    "arm_means": get_args(ArmMeans),
}
_TEXT = Is(str, "a text")
_PARTS: Mapping[str, tuple[type, Mapping[str, Constraint]]] = {
    "floor": (Floor, {"scale": UNIT, "decay": NON_NEGATIVE, "shared": BOOLEAN}),
    "stability": (Stability, {"stable": BOOLEAN, "condition": _TEXT, "source": _TEXT}),
    "outputs": (
        Outputs,
        {
            "length": OneOf(*get_args(Length)),
            "propensities": OneOf(*get_args(Propensities)),
            "phase": OneOf(*get_args(Phases)),
            "recommended": BOOLEAN,
            "means": OneOf(*get_args(Means)),
        },
    ),
}


def traits_problems(traits: Any) -> list[str]:
    """Say what is wrong with stated traits, one line a field."""
    if not isinstance(traits, DesignTraits):
        return [f"traits must be DesignTraits, got {traits!r:.60}"]
    problems = [
        f"traits.{name} must be one of {', '.join(map(repr, kinds))}, got {getattr(traits, name)!r:.60}"
        for name, kinds in _KINDS.items()
        if not any(
            type(getattr(traits, name)) is type(kind) and getattr(traits, name) == kind for kind in kinds
        )
    ]
    auxiliary: Any = traits.auxiliary
    if not isinstance(auxiliary, tuple) or any(POSITIVE("epsilon", epsilon) for epsilon in auxiliary):
        problems.append(f"traits.auxiliary must be a tuple of epsilons, got {auxiliary!r:.60}")
    for name, (kind, constraints) in _PARTS.items():
        value = getattr(traits, name)
        if value is not None and not isinstance(value, kind):
            problems.append(f"traits.{name} must be a {kind.__name__} or None, got {value!r:.60}")
        elif value is not None:
            for field, constraint in constraints.items():
                problems += constraint(f"traits.{name}.{field}", getattr(value, field))
    return problems


def _field_problems(what: str, kind: type, stored: Any) -> list[str]:
    """Say what is wrong with the names of stored fields."""
    known = [field.name for field in fields(kind)]
    if isinstance(stored, Mapping) and set(stored) == set(known):
        return []
    found = ", ".join(map(str, stored)) if isinstance(stored, Mapping) else f"{stored!r:.60}"
    return [f"{what} must have the fields {', '.join(known)}, got {found}"]
