"""Methods that need means that stay, and what their tables say unless the user states that they do."""

from __future__ import annotations

from adaptinf.claims.stationarity import SAME_IN_EVERY_ROUND, SAME_WHENEVER_CHOSEN, UNLESS_NOTHING_ADAPTED

STATED: dict[str, bool] = {"stationary": True}
"""What a recommended call states for such a method."""


def moving_mean_cautions(*, stationary: bool, by_pull: bool, classical: str = "") -> tuple[str, ...]:
    """That a method takes the expected reward to stay, at an arm's pulls or in all rounds, unless stated.

    `classical` names the interval that holds where nothing adapted, if that may be so; it comes first.
    """
    if stationary:
        return ()
    caution = SAME_WHENEVER_CHOSEN() if by_pull else SAME_IN_EVERY_ROUND()
    return (UNLESS_NOTHING_ADAPTED(classical=classical, caution=caution) if classical else caution,)
