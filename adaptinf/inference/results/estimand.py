"""Estimands of the terms of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimand:
    """The estimand of one term of a result.

    Attributes
    ----------
    kind : str
        ``"arm-mean"``: mean reward of an arm. ``"contrast"`` and ``"lift"``: difference of two arms' means,
        and their ratio minus 1. ``"ratio"``, ``"ratio-contrast"`` and ``"ratio-lift"``: the corresponding
        quantities for a ratio metric, an arm's mean reward divided by its mean of a denominator. ``"cate"``,
        ``"interaction"`` and ``"projection"``: difference of two arms within a group, difference of two
        groups in this effect, and coefficient of its projection on covariates. ``"policy-value"`` and
        ``"policy-contrast"``: value of a policy, and difference of two values. ``"bin-mean"``: mean of an arm
        over a bin of the contexts. ``"coefficient"``: coefficient of a regression of rewards, of one arm's
        rewards if an arm is given.
    arm, treatment, control, group : label or None
        The arm of a mean, the arms of a difference (treatment minus control) and its group; for policies,
        their names; the group of a bin is its ranges, ((low, high), ...).
    term : str or None
        Name of a coefficient.
    denominator : str or None
        Name of the denominator of a ratio metric.
    """

    kind: str
    arm: Any = None
    treatment: Any = None
    control: Any = None
    group: Any = None
    term: str | None = None
    denominator: str | None = None
