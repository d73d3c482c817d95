"""What claims on every fit of arms ask, whatever its method."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adaptinf.claims.arms.arm_fits import WITH_DESIGN
from adaptinf.inference.arms.facts.base import ArmFacts

if TYPE_CHECKING:
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.validity.profile import LogProfile

_SHORT = 200
"""Rounds up to which the exact law of a two-arm trial takes seconds."""


def exact_calls(profile: LogProfile) -> tuple[str, str] | None:
    """Calls of the exact test and interval of a short two-arm trial with rewards 0 and 1; None for others."""
    log = profile.log
    short = log.n_arms == 2 and log.n_rounds <= _SHORT and not log.context and not profile.rows_refusal
    if not (short and profile.binary and profile.adaptive):
        return None
    known = log.design is not None and log.design.traits is not None
    given = "(log)" if known else "(log, design)"
    return f"audit.exact_test{given}", f"audit.exact_interval{given}"


class FitFacts(ArmFacts):
    """Of a fit with one kind of test."""

    def __init__(self, question: Question, fit: ArmFit, test: str) -> None:
        super().__init__(question, fit)
        self._arms = list(zip(fit.labels, fit.pulls, fit.estimate, fit.std_error, strict=True))
        # Tests of counts need neither an estimate nor a standard error.
        self._weighed = [] if test in ("exact", "few") else self._arms

    @property
    def choice_reason(self) -> dict[str, str]:
        if not self.fit.choice.reason:
            return {}
        data = self.profile.data_name
        if self.profile.log.stopping not in (None, "fixed"):
            data += ", stopping='fixed'"
        return {"data": data, "reason": self.fit.choice.reason}

    @property
    def never_chosen(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n, _, _ in self._arms if n == 0]

    @property
    def unweighted(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n, mean, _ in self._weighed if n > 0 and math.isnan(mean)]

    @property
    def chosen_once(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n in self._without_error if n == 1]

    @property
    def weighted_once(self) -> list[dict[str, str]]:
        by_unit = self.fit.by_unit is not None
        return [{"arm": arm} for arm, n in self._without_error if n > 1 and not by_unit]

    @property
    def _without_error(self) -> list[tuple[str, float]]:
        return [(arm, n) for arm, n, mean, size in self._weighed if math.isnan(size) and not math.isnan(mean)]

    @property
    def exact_test(self) -> dict[str, str]:
        calls = exact_calls(self.profile)
        if calls is None:
            return {}
        given = "" if calls[0].endswith("(log)") else WITH_DESIGN()
        return {"test": calls[0], "interval": calls[1], "given": given}
