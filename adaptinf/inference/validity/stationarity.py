"""Methods that need means that stay, and what their tables say unless the user states that they do."""

from __future__ import annotations

STATED: dict[str, bool] = {"stationary": True}
"""What a recommended call states for such a method."""


def moving_mean_cautions(*, stationary: bool, by_pull: bool, classical: str = "") -> tuple[str, ...]:
    """That a method takes the expected reward to stay, at an arm's pulls or in all rounds, unless stated.

    `classical` names the interval that holds where nothing adapted, if that may be so; it comes first.
    """
    if stationary:
        return ()
    what, contexts = "the expected value is the same in every round", ""
    if by_pull:
        what = "an arm's expected reward is the same whenever it is chosen"
        contexts = ", or where contexts had a part in the choice,"
    helps = f"if assignment did not react to outcomes, say adaptive=False: then {classical}; else "
    return (
        f"{helps * bool(classical)}assumes that {what}: under a drift of rewards{contexts} intervals may "
        "miss by far (stationary=True says that it is)",
    )


def own_weights_caution(kind: str, harm: str = "a drift that both arms share biases the difference") -> str:
    """That arms with weights of their own need means that stay, and what a drift does."""
    return (
        f"each arm has {kind} weights of its own, which assume that means stay: {harm} (stationary=True says "
        "that there is none)"
    )
