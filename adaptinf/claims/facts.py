"""Facts that claims use for every method that weights rounds: the kind of weights, and any fit."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Fit = TypeVar("Fit")


class Fitted(Generic[Fit]):
    """Facts for a row of `recommend`, and for a fit once there is one."""

    fit: Fit
    """The fit to which notes and cautions refer."""

    @property
    def has_fit(self) -> bool:
        """Whether there is one."""
        return "fit" in vars(self)


class KindOfWeights:
    """Facts for one kind of weights."""

    profile: Any
    """The profile of the log."""
    weights: str | None

    @property
    def is_uniform(self) -> bool:
        return self.weights == "uniform"

    @property
    def is_combined(self) -> bool:
        return self.weights == "combined"

    @property
    def is_sqrt(self) -> bool:
        return self.weights == "sqrt"

    @property
    def unsettled(self) -> bool:
        return bool(self.is_uniform and self.profile.moves)
