"""Estimands of the terms of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimand:
    """The estimand of a term of a result.

    Attributes
    ----------
    kind : str
        ``"arm-mean"``: the mean reward of an arm. ``"contrast"`` and ``"lift"``: the difference between two
        arms' means, and their ratio minus 1. ``"ratio"``, ``"ratio-contrast"`` and ``"ratio-lift"``: the
        corresponding quantities for a ratio metric, which is an arm's mean reward divided by its mean of a
        denominator. ``"cate"``, ``"interaction"`` and ``"projection"``: the difference between two arms
        within a group, the difference between two groups in this effect, and a coefficient of the effect's
        projection on covariates. ``"policy-value"`` and ``"policy-contrast"``: the value of a policy, and the
        difference between two values. ``"bin-mean"``: the mean of an arm over a bin of contexts.
        ``"coefficient"``: a coefficient of a regression of rewards or, if an arm is given, of this arm's
        rewards.
    arm, treatment, control, group : label or None
        The arm of a mean, or the arms and the group of a difference (treatment minus control). Policies are
        represented by their names, and a bin by its ranges ((low, high), ...).
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
