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
        ``"arm-mean"``, ``"contrast"``, ``"lift"``, ``"ratio"``, ``"ratio-contrast"``, ``"ratio-lift"``,
        ``"cate"``, ``"interaction"``, ``"projection"``, ``"policy-value"``, ``"policy-contrast"``,
        ``"bin-mean"`` or ``"coefficient"``: mean reward of an arm; difference of two arms, or the ratio of
        their means minus 1; the same for a ratio metric, an arm's mean reward over its mean of a denominator;
        that difference within a group, the difference of two groups in it, or a coefficient of its projection
        on covariates; value of a policy, or difference of two; mean of an arm over a bin of the contexts;
        coefficient of a regression of rewards, of one arm's if an arm is given.
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
