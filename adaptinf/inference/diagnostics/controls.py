"""Negative controls: columns that arms cannot have affected, compared between arms by their propensities."""

from __future__ import annotations

from typing import Any

from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.data.covariate_adjustment import control_test
from adaptinf.inference.diagnostics.results import Check
from adaptinf.inference.inputs.arguments import labels
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.texts import listed

CONTROL = "negative control"
_OPTION = "negative_control"


def controls_of(log: AdaptiveLog | Sums, named: Any) -> tuple[str, ...]:
    """Context columns of a log that a user named, one or a list of them; none by default."""
    if named is None:
        return ()
    if isinstance(log, Sums):
        raise InvalidForLog(f"diagnose({_OPTION}=)", NEEDS_ROWS, ["diagnose of an AdaptiveLog of the rows"])
    names, problems = ((named,), []) if isinstance(named, str) else labels(_OPTION, named)
    refuse("diagnose", problems)
    columns = log.columns
    problems = [
        f"{_OPTION} {name!r} is no context of the log, whose contexts are {listed(log.context)}: name it in "
        "context="
        for name in names
        if columns.get(name, name) not in log.context
    ]
    if not names:
        problems.append(f"{_OPTION} names no column")
    if len(set(names)) < len(names):
        problems.append(f"{_OPTION} names a column more than once")
    refuse("diagnose", problems)
    return tuple(str(columns.get(name, name)) for name in names)


def control_checks(log: AdaptiveLog, names: tuple[str, ...]) -> list[Check]:
    """One row per control: of the arm in which it is farthest off, adjusted for the number of arms."""
    profile = profile_of(log)
    if reason := _untestable(profile):
        return [Check(CONTROL, name, claims=(reason,)) for name in names]
    checks = []
    for name in names:
        found = control_test(profile, name)
        if found is None:
            checks.append(Check(CONTROL, name, claims=(claims.CONTROL_UNTESTED(),)))
            continue
        arm = log.arms[found.code]
        told = claims.CONTROL_DIFFERS(name=name, arm=arm), claims.CONTROL_CAUSES(name=name)
        checks.append(Check(CONTROL, name, f"z of ranks, {arm}", found.z, found.log_pvalue, "", told))
    return checks


def _untestable(profile: LogProfile) -> str:
    """Why no control can be compared; empty where they can."""
    if not profile.knows_propensities:
        return propensities.NONE()
    if profile.estimated:
        return claims.CONTROL_CIRCULAR()
    return claims.CONTROL_ONE_DRAW() if profile.one_draw_a_unit else ""
