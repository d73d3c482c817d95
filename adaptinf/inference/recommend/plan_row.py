"""The plan of a trial with looks, as a method for the difference that the plan tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptinf.claims.logs.plans import ACCOUNTS
from adaptinf.inference.arms.arm_order import ORDER, PLANNED_LOOKS
from adaptinf.inference.recommend.rows import Method
from adaptinf.inference.validity.methods import Verdict
from adaptinf.log.stated_plans import CALL, StatedPlan, plan_of

_TARGETS, _ARMS = ("contrast", "contrasts"), ("treatment", "control", "treatments")
_ALONE = ("denominator", "covariate", "lift")


def planned_question(log: Any, target: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The target and its arguments: by default, those of the log's plan, or arm means if there is no plan."""
    asked = target is not None or any(value is not None for value in given.values())
    plan = None if asked and target not in _TARGETS else plan_of(log)
    if plan is None or any(given[name] is not None for name in _ARMS):
        return "arm-means" if target is None else target, dict(given)
    kind = "contrast" if len(plan.treatments) == 1 else "contrasts"
    if target not in (None, kind):
        return target, dict(given)
    return kind, {**given, **_compared(plan, kind)}


def _compared(plan: StatedPlan, target: str) -> dict[str, Any]:
    """The arms that a plan compares, as arguments for a target."""
    if target == "contrast":
        return {"treatment": plan.treatments[0], "control": plan.control}
    return {"treatments": list(plan.treatments), "control": plan.control}


def plan_rows(log: Any, target: str, given: Mapping[str, Any]) -> list[Method]:
    """The row of a log's plan, if the plan makes the requested comparison."""
    plan = plan_of(log) if target in _TARGETS else None
    if plan is None or (target == "contrast") != (len(plan.treatments) == 1):
        return []
    same = all(given[name] == value for name, value in _compared(plan, target).items())
    if not same or any(given[name] is not None for name in _ALONE):
        return []
    reason = plan.refusal(log)
    label, assumed = ("not valid", ()) if reason else (plan.validity, plan.assumes(log))
    verdict = Verdict("plan", label, ORDER[PLANNED_LOOKS], {}, reason or ACCOUNTS(), assumed, offered=False)
    return [Method(verdict, CALL, lambda: plan.analyse(log))]
