"""Verdicts on the methods for arms: for means, for ratio metrics, and with covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import arm_method, arm_verdicts
from adaptinf.inference.arms.question import Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import IntArray


def method_of(verdict: Verdict) -> ArmMethod:
    """The method for arms that a verdict is on."""
    return arm_method(verdict.arguments["estimator"])


def with_length(method: MethodRecord[Any], question: Any, verdict: Verdict) -> Verdict:
    """The verdict with the length to expect of intervals, where it is valid."""
    if not verdict.valid:
        return verdict
    with np.errstate(under="ignore", over="ignore"):
        return replace(verdict, length=method.length(question, verdict))


def refused(verdict: Verdict, reason: str) -> Verdict:
    """The verdict on a method that is not valid for another reason than its own; its name and call."""
    return Verdict(verdict.name, "not valid", verdict.rank, verdict.arguments, reason)


class Metric:
    """A question about arms, of mean rewards or of ratios to a denominator, with covariates or without.

    What is read from all rounds is read once, and serves for all arms that are asked about.
    """

    def __init__(self, question: Question, denominator: Any = None, covariate: Any = None) -> None:
        self.question, self.covariate = question, covariate
        self.ratio, self.reason = denominator is not None, ""
        log = question.profile.log
        if question.profile.sums is not None and (self.ratio or covariate is not None):
            given = "denominator=" if self.ratio else "covariate="
            raise InvalidForLog(
                f"recommend({given})",
                "lengths to expect are known from rows alone",
                [f"fits with {given}, which take sums too", "an AdaptiveLog of the rows"],
            )
        if self.ratio:
            from adaptinf.inference.arms.circumstances.ratios import denominator_by_round, ratio_question

            try:
                self.question = ratio_question(question, denominator_by_round("recommend", log, denominator))
            except InvalidForLog as error:
                self.reason = error.reason
        self.names: Sequence[str] = ()
        self.share, self.unadjusted = 0.0, self.reason
        if covariate is not None and not self.reason:
            self._read_covariates()

    def _read_covariates(self) -> None:
        """Names of the covariates and what they explain, or why there is no adjustment."""
        from adaptinf.inference.arms.circumstances.covariates import (
            covariates_of,
            covariates_refusal,
            explained,
        )

        profile = self.question.profile
        try:
            self.names = covariates_of("recommend", profile.log, self.covariate).names
        except InvalidForLog as error:
            self.unadjusted = error.reason
            return
        self.unadjusted = covariates_refusal(profile)
        if not self.unadjusted:
            self.share = explained(profile.log, self.names)

    def verdicts(self, codes: IntArray | None = None, *, lengths: bool = True) -> list[Verdict]:
        """Verdicts on every method for some arms, by default those of the question; codes (k,)."""
        question = self.question if codes is None else replace(self.question, codes=codes)
        found = arm_verdicts(question)
        if self.reason:
            return [refused(verdict, self.reason) for verdict in found]
        if lengths:
            found = [with_length(method_of(verdict), question, verdict) for verdict in found]
        if self.ratio:
            from adaptinf.inference.arms.circumstances.ratios import ratio_verdict

            found = [
                ratio_verdict(verdict, contrast_only=method_of(verdict).contrast_only) for verdict in found
            ]
        return [*found, *self._adjusted(found)]

    def _adjusted(self, found: Sequence[Verdict]) -> list[Verdict]:
        """What AIPW is worth with covariates, where any were named."""
        if self.covariate is None:
            return []
        from adaptinf.inference.arms.circumstances.covariates import covariate_verdict

        plain = [verdict for verdict in found if verdict.arguments["estimator"] == "aipw"]
        if self.unadjusted:
            plain = [refused(one, self.unadjusted if one.valid else one.reason) for one in plain]
        return [covariate_verdict(one, self.names, self.covariate, self.share) for one in plain]
