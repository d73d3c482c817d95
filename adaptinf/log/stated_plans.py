"""The plan of looks that a trial or its log states, and the looks that were taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from adaptinf.log.traits import LOOKS, PLAN
from adaptinf.typing import Validity

GOES_ON = "continue"
"""The decision at a look that does not end a trial."""

CALL = "Plan.of(log).analyse(log)"
"""The function that computes the results of a log's plan."""


@runtime_checkable
class StatedPlan(Protocol):
    """The interface of a plan that trials and recommendations use; `Plan` implements it."""

    design: Any
    arms: tuple[Any, ...]
    treatments: tuple[Any, ...]
    control: Any
    looks: Any
    start: Any
    horizon: int

    @property
    def validity(self) -> Validity:
        """Validity of its results."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the plan except the design, as plain values."""

    def look(self, log: Any, stage: int | None = None) -> Any:
        """The state of a trial at its latest look, or at the look of a given stage."""

    def analyse(self, log: Any) -> Any:
        """The results of a trial that has stopped."""

    def refusal(self, log: Any) -> str:
        """The reason why there are no results; empty if there are some."""

    def assumes(self, log: Any) -> tuple[str, ...]:
        """What the results assume."""

    def recorded(self, look: Mapping[str, Any]) -> Any:
        """A look from its stored numbers."""


def plan_from(arguments: Mapping[str, Any], design: Any) -> StatedPlan:
    """A plan from its stored arguments and its design."""
    # Plans use trials' logs and inference, which must not import plans; the name is resolved when a plan is
    # read.
    plan: StatedPlan = import_module("adaptinf.plans").Plan(design, **arguments)
    return plan


def plan_of(log: Any) -> StatedPlan | None:
    """The plan that a log states; None if it states none. The plan is read once, and stored with the log."""
    if not states_plan(log):
        return None
    if PLAN not in log.kept:
        log.kept[PLAN] = import_module("adaptinf.plans").Plan.of(log)
    plan: StatedPlan = log.kept[PLAN]
    return plan


def states_plan(log: Any) -> bool:
    """Whether a log has rows, and states a plan."""
    record = getattr(log, "design", None)
    return hasattr(log, "arrays") and record is not None and PLAN in record.parameters


def looks_of(log: Any) -> list[Mapping[str, Any]]:
    """The looks that a log states, in order."""
    return [] if log.design is None else list(log.design.parameters.get(LOOKS, ()))


def overridden(log: Any) -> list[Mapping[str, Any]]:
    """Looks that ended the trial, but after which someone continued it."""
    return [look for look in looks_of(log) if look["overridden"]]


def ended(looks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The look at which a plan ended its trial; a look for futility only if the trial was not continued."""
    last = looks[-1] if looks else None
    if last is None or last["decision"] == GOES_ON or (last["overridden"] and last["decision"] == "futility"):
        return None
    return last
