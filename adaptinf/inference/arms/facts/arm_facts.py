"""Facts on which claims about any method for arm means depend, for a log and for a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import Finding, said
from adaptinf.claims.arms.arm_fits import WITH_DESIGN, WITHOUT_NUMBERS
from adaptinf.claims.facts import Fitted
from adaptinf.inference.arms.data import arms_of_sums
from adaptinf.inference.validity.constant_means import ConstantMeans

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import ArmFit, Question
    from adaptinf.inference.validity.profile import LogProfile

_SHORT = 200
"""Largest number of rounds for which the exact distribution of a two-arm trial is computed in seconds."""


def exact_calls(profile: LogProfile) -> tuple[str, str] | None:
    """Code for the exact test and interval, if this is a short two-arm trial with 0/1 rewards; else None."""
    log = profile.log
    short = log.n_arms == 2 and log.n_rounds <= _SHORT and not log.context and profile.sums is None
    if not (short and profile.binary and profile.adaptive):
        return None
    known = log.design is not None and log.design.traits is not None
    given = "(log)" if known else "(log, design)"
    return f"audit.exact_test{given}", f"audit.exact_interval{given}"


class ArmFacts(Fitted["ArmFit"], ConstantMeans):
    """Facts about a question and about a fit with a given test; without a fit, for a row of `recommend`."""

    def __init__(self, question: Question, fit: ArmFit | None = None, test: str = "") -> None:
        self.question, self.profile = question, question.profile
        self.codes, self.stationary, self.test = question.codes, question.stationary, test
        if fit is not None:
            self.fit = fit

    @property
    def always(self) -> bool:
        return True

    @property
    def contexts_found(self) -> Finding | None:
        return self.profile.contexts_found

    @property
    def sums_notes(self) -> list[str]:
        return [] if self.profile.sums is None else arms_of_sums.notes(self.question)

    @property
    def sums_cautions(self) -> list[str]:
        return [] if self.profile.sums is None else arms_of_sums.cautions(self.question)

    @property
    def choice_reason(self) -> dict[str, str]:
        if not self.fit.choice.reason:
            return {}
        data = "log" if self.profile.sums is None else "sums"
        if self.profile.log.stopping not in (None, "fixed"):
            data += ", stopping='fixed'"
        return {"data": data, "reason": self.fit.choice.reason}

    @property
    def _lacking_numbers(self) -> list[tuple[str, float, bool]]:
        """Arms without an estimate or standard error, with their pulls and whether they have an estimate."""
        fit = self.fit
        unknown = np.isnan(fit.estimate)
        lacking = (np.isnan(fit.std_error) | unknown | (fit.pulls == 0)).nonzero()[0].tolist()
        return [(fit.labels[k], fit.pulls[k], not unknown[k]) for k in lacking]

    @property
    def without_numbers(self) -> list[str]:
        return said(WITHOUT_NUMBERS, self) if self._lacking_numbers else []

    @property
    def _weighed(self) -> list[tuple[str, float, bool]]:
        """The same arms for tests that need both numbers; tests based on counts need neither."""
        return [] if self.test in ("exact", "few") else self._lacking_numbers

    @property
    def never_chosen(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n, _ in self._lacking_numbers if n == 0]

    @property
    def unweighted(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n, estimated in self._weighed if n > 0 and not estimated]

    @property
    def chosen_once(self) -> list[dict[str, str]]:
        return [{"arm": arm} for arm, n, estimated in self._weighed if n == 1 and estimated]

    @property
    def weighted_once(self) -> list[dict[str, str]]:
        by_unit = self.fit.by_unit is not None
        return [{"arm": arm} for arm, n, estimated in self._weighed if n > 1 and estimated and not by_unit]

    @property
    def exact_test(self) -> dict[str, str]:
        calls = exact_calls(self.profile)
        if calls is None:
            return {}
        given = "" if calls[0].endswith("(log)") else WITH_DESIGN()
        return {"test": calls[0], "interval": calls[1], "given": given}
