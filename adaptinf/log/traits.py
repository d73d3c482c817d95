"""What a design says about itself once, and every reader of its logs asks: facts in place of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from adaptinf.parameters import POSITIVE

UsesContext = Literal["no", "groups", "vectors", "position", "yes", "unknown"]
ArmMeans = Literal["comparable", "by-group", "by-vector", "by-bin", "by-released-bin", "by-context"]


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
        """
        floor, stability = stored.get("floor"), stored.get("stability")
        return cls(
            **{
                **stored,
                "floor": None if floor is None else Floor(**floor),
                "stability": None if stability is None else Stability(**stability),
                "auxiliary": tuple(stored.get("auxiliary", ())),
            }
        )


_KINDS: Mapping[str, tuple[Any, ...]] = {
    "adapts": (True, False),
    "uses_context": get_args(UsesContext),
    "own_coins": (True, False),
    "arm_means": get_args(ArmMeans),
}


def traits_problems(traits: Any) -> list[str]:
    """Say what is wrong with stated traits, one line a field."""
    if not isinstance(traits, DesignTraits):
        return [f"traits must be DesignTraits, got {traits!r:.60}"]
    problems = [
        f"traits.{name} must be one of {', '.join(map(repr, kinds))}, got {getattr(traits, name)!r:.60}"
        for name, kinds in _KINDS.items()
        if getattr(traits, name) not in kinds
    ]
    auxiliary: Any = traits.auxiliary
    if not isinstance(auxiliary, tuple) or any(POSITIVE("epsilon", epsilon) for epsilon in auxiliary):
        problems.append(f"traits.auxiliary must be a tuple of epsilons, got {auxiliary!r:.60}")
    for name, kind in (("floor", Floor), ("stability", Stability)):
        value = getattr(traits, name)
        if value is not None and not isinstance(value, kind):
            problems.append(f"traits.{name} must be a {kind.__name__} or None, got {value!r:.60}")
    return problems
