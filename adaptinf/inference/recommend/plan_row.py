"""The plan of a trial with looks, as a method for the difference that it compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptinf.claims.logs.plans import ACCOUNTS
from adaptinf.inference.arms.order import ORDER, PLANNED_LOOKS
from adaptinf.inference.recommend.rows import Method
from adaptinf.inference.validity.methods import Verdict
from adaptinf.log.stated_plans import CALL, plan_of

_ALONE = ("denominator", "covariate")


def planned_question(log: Any, target: Any, treatment: Any, control: Any) -> tuple[Any, Any, Any]:
    """Target, treatment and control, by default those of the log's plan."""
    plan = plan_of(log) if target in (None, "contrast") and treatment is None and control is None else None
    if plan is not None and plan.treatment in log.arms:
        return "contrast", plan.treatment, plan.control
    return target, treatment, control


def plan_rows(log: Any, target: str, given: Mapping[str, Any]) -> list[Method]:
    """The row of a log's plan, if it compares what was asked."""
    plan = plan_of(log) if target == "contrast" else None
    if plan is None or (plan.treatment, plan.control) != (given["treatment"], given["control"]):
        return []
    if any(given[name] is not None for name in _ALONE):
        return []
    reason = plan.refusal(log)
    label, assumed = ("not valid", ()) if reason else (plan.validity, plan.assumes(log))
    verdict = Verdict("plan", label, ORDER[PLANNED_LOOKS], {}, reason or ACCOUNTS(), assumed, offered=False)
    return [Method(verdict, CALL, lambda: plan.analyse(log))]
