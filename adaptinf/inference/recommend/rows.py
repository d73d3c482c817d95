"""All methods of the library for a target, assessed on a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaptinf.claims import Claim, Said
from adaptinf.claims.arms.sample_means import OPENING
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import arm_method, arm_verdicts
from adaptinf.inference.arms.question import Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.typing import IntArray, Validity


def method_of(verdict: Verdict) -> ArmMethod:
    """The method for arms to which a verdict refers."""
    return arm_method(verdict.arguments["estimator"])


def with_length(method: MethodRecord[Any], question: Any, verdict: Verdict) -> Verdict:
    """The verdict with the expected length of its intervals, if it is valid."""
    if not verdict.valid:
        return verdict
    with np.errstate(under="ignore", over="ignore"):
        return replace(verdict, length=method.length(question, verdict))


def refused(verdict: Verdict, reason: str) -> Verdict:
    """The verdict that a method is not valid, for a reason that the method itself does not check."""
    return Verdict(verdict.name, "not valid", verdict.rank, verdict.arguments, reason)


def _arm_lengths(question: Question) -> list[Verdict]:
    """Verdicts on methods for arms, with expected lengths, computed only once for a log."""
    found = arm_verdicts(question)
    return question.profile.worked_out(
        ("lengths", *question.asked),
        lambda: [with_length(method_of(verdict), question, verdict) for verdict in found],
    )


class Metric:
    """A question about mean rewards of arms or their ratios to a denominator, with or without covariates.

    Quantities based on all rounds are computed once for all arms in question.
    """

    def __init__(self, question: Question, denominator: Any = None, covariate: Any = None) -> None:
        self.question, self.covariate = question, covariate
        self.ratio, self.reason = denominator is not None, ""
        log = question.profile.log
        if question.profile.rows_refusal and (self.ratio or covariate is not None):
            given = "denominator=" if self.ratio else "covariate="
            raise InvalidForLog(
                f"recommend({given})",
                "expected lengths can be computed only from rows",
                [f"fits with {given}, which also accept sums", "an AdaptiveLog of the rows"],
            )
        if self.ratio:
            from adaptinf.inference.arms.data.ratio_metrics import denominator_by_round, ratio_question

            try:
                self.question = ratio_question(question, denominator_by_round("recommend", log, denominator))
            except InvalidForLog as error:
                self.reason = error.reason
        self.names: Sequence[str] = ()
        self.share, self.unadjusted = 0.0, self.reason
        if covariate is not None and not self.reason:
            self._read_covariates()

    def _read_covariates(self) -> None:
        """Find the covariates and the variance that they explain, or why there is no adjustment."""
        from adaptinf.inference.arms.data.covariate_adjustment import (
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
        """Verdicts on every method for these arms, by default those of the question; codes (k,)."""
        question = self.question if codes is None else replace(self.question, codes=codes)
        if self.reason:
            return [refused(verdict, self.reason) for verdict in arm_verdicts(question)]
        found = _arm_lengths(question) if lengths else arm_verdicts(question)
        if self.ratio:
            from adaptinf.inference.arms.data.ratio_metrics import ratio_verdict

            found = [
                ratio_verdict(verdict, contrast_only=method_of(verdict).contrast_only) for verdict in found
            ]
        return [*found, *self._adjusted(found)]

    def _adjusted(self, found: Sequence[Verdict]) -> list[Verdict]:
        """The verdict on AIPW with covariates, if covariates were named."""
        if self.covariate is None:
            return []
        from adaptinf.inference.arms.data.covariate_adjustment import covariate_verdict

        plain = [verdict for verdict in found if verdict.arguments["estimator"] == "aipw"]
        if self.unadjusted:
            # Covariates do not repair an estimator that is not valid without them, so that reason comes
            # first.
            plain = [refused(one, self.unadjusted if one.valid else one.reason) for one in plain]
        return [covariate_verdict(one, self.names, self.covariate, self.share) for one in plain]


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A row of the table: a method, assessed on a log."""

    verdict: Verdict
    call: str
    run: Callable[[], Results]

    def __repr__(self) -> str:
        return f"{self.call}  # {self.verdict.label}"


class _Model:
    """A model class and its arguments; the model is created when it is first needed."""

    def __init__(self, kind: Any, log: AdaptiveLog, arguments: Mapping[str, Any], name: str = "") -> None:
        self.kind, self.log = kind, log
        self.arguments = {key: value for key, value in arguments.items() if value is not None}
        self.name = name or kind.__name__
        self._made: Any = None

    def made(self) -> Any:
        if self._made is None:
            self._made = self.kind(log=self.log, **self.arguments)
        return self._made

    def method(self, verdict: Verdict) -> Method:
        data = profile_of(self.log).data_name
        model = ", ".join([data, *_shown(self.arguments)])
        call = f"{self.name}({model}).fit({', '.join(_shown(verdict.arguments))})"
        return Method(verdict, call, lambda: self.made().fit(**verdict.arguments))


def _shown(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments as they would be written in code; long or complex values are represented by names."""
    plain = (str, int, float, bool, np.generic)
    short = {
        name: isinstance(value, plain) or (isinstance(value, (list, tuple)) and len(value) <= 10)
        for name, value in arguments.items()
    }
    return [f"{name}={value!r}" if short[name] else f"{name}={name}" for name, value in arguments.items()]


def arm_rows(
    question: Question, arguments: Mapping[str, Any], denominator: Any = None, covariate: Any = None
) -> list[Method]:
    """Rows of `ArmMeans` or `Contrast`; on request, for ratios to a denominator or with covariates."""
    from adaptinf.inference.arms import ArmMeans, Contrast

    kind = Contrast if question.contrast else ArmMeans
    model = _Model(kind, question.profile.log, {**arguments, "denominator": denominator})
    found = Metric(question, denominator, covariate).verdicts()
    return [_opened(model.method(verdict)) for verdict in found]


def contrasts_rows(
    log: AdaptiveLog,
    arguments: Mapping[str, Any],
    decay: float | None,
    *,
    denominator: Any = None,
    covariate: Any = None,
    lift: bool = False,
) -> list[Method]:
    """Rows of `Contrasts`; the lengths are those of the first pair."""
    from adaptinf.inference.contrasts.contrast_verdicts import of_lift, over_pairs, told_at_once
    from adaptinf.inference.contrasts.many_contrasts import Contrasts

    model = _Model(Contrasts, log, {**arguments, "denominator": denominator})
    made = Contrasts(log, **arguments)
    base = log.arms.index(made.control)
    codes = np.array([log.arms.index(arm) for arm in made.treatments])
    pairs = [np.array([code, base]) for code in codes]
    profile = profile_of(log)
    metric = Metric(Question(profile, pairs[0], contrast=True, decay=decay), denominator, covariate)
    found = [metric.verdicts(), *(metric.verdicts(pair, lengths=False) for pair in pairs[1:])]
    terms = [f"{arm} - {made.control}" for arm in made.treatments]
    rows = []
    for verdict in over_pairs(found, terms):
        method = method_of(verdict)
        told = told_at_once(profile, method, verdict)
        rows.append(model.method(of_lift(profile, np.append(codes, base), method, told) if lift else told))
    return rows


def winner_rows(question: Question, arguments: Mapping[str, Any]) -> list[Method]:
    """Rows of `Winner`."""
    from adaptinf.inference.winners.winner import Winner
    from adaptinf.inference.winners.winner_methods import METHODS, WinnerQuestion

    model = _Model(Winner, question.profile.log, arguments)
    model.made()  # Invalid arguments are refused here once, and not in each row.
    asked = WinnerQuestion(question, Metric(question).verdicts())
    found = [verdict for method in METHODS for verdict in method.assess(asked)]
    return [model.method(verdict) for verdict in found]


def _with_lengths(methods: Iterable[MethodRecord[Any]], question: Any) -> list[Verdict]:
    """Verdicts on all variants of these methods, with expected lengths for those that are valid."""
    return [
        with_length(method, question, verdict) for method in methods for verdict in method.assess(question)
    ]


def _opened(row: Method) -> Method:
    """The row, with the explanation of validity given by its own fit if this is more specific."""
    opening = row.verdict.opening
    if not opening:
        return row

    def run() -> Results:
        result = row.run()
        validity: Validity = "exact" if result.reference.exact else "asymptotic"
        notes = [opening if is_said(note, OPENING) else note for note in result.notes]
        return replace(result, notes=tuple(notes), validity=validity)

    return replace(row, run=run)


def is_said(text: str, claim: Claim) -> bool:
    """Whether a text was stated by this claim."""
    return isinstance(text, Said) and text.claim is claim


def sequence_rows(log: AdaptiveLog, target: str, arguments: Mapping[str, Any], order: Order) -> list[Method]:
    """Rows of `ConfidenceSequence`, with their ranks among the methods for the target."""
    from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
    from adaptinf.inference.sequences.sequence_verdicts import sequence_verdicts

    model = _Model(ConfidenceSequence, log, {"target": target, **arguments})
    profile, quantities = profile_of(log), model.made().quantities
    # Policies are functions and tables, which cannot be compared cheaply, so their verdicts are not cached.
    if target == "policy-value":
        return [model.method(verdict) for verdict in sequence_verdicts(profile, quantities, order)]
    asked = ("sequences", target, order, *(one.codes for one in quantities))
    found = profile.worked_out(asked, lambda: sequence_verdicts(profile, quantities, order))
    return [model.method(verdict) for verdict in found]


def policy_rows(log: AdaptiveLog, policy: Any, snapshots: Any) -> list[Method]:
    """Rows of `PolicyValue`."""
    from adaptinf.inference.policies.policy_methods import METHODS
    from adaptinf.inference.policies.policy_models import PolicyValue
    from adaptinf.inference.policies.policy_question import PolicyQuestion, read_policies

    model = _Model(PolicyValue, log, {"policy": policy})
    policies = read_policies("PolicyValue", log, policy)
    question = PolicyQuestion(profile_of(log), policies, snapshots=snapshots)
    return [model.method(verdict) for verdict in _with_lengths(METHODS.values(), question)]


def cate_rows(log: AdaptiveLog, arguments: Mapping[str, Any]) -> list[Method]:
    """Rows of `CATE`."""
    from adaptinf.inference.effects.cate import CATE, METHODS
    from adaptinf.inference.effects.groups_of_sums import FROM_SUMS

    model = _Model(CATE, log, arguments)
    methods: Sequence[MethodRecord[Any]] = METHODS if profile_of(log).sums is None else (FROM_SUMS,)
    return [model.method(verdict) for verdict in _with_lengths(methods, model.made().question)]


def projection_rows(log: AdaptiveLog, arguments: Mapping[str, Any], decay: float | None) -> list[Method]:
    """Rows of `CATE.from_formula`."""
    from adaptinf.inference.effects.cate import CATE
    from adaptinf.inference.effects.projections.projected_scores import PROJECTION
    from adaptinf.inference.effects.projections.projection import CATEProjection

    model = _Model(CATEProjection, log, arguments, f"{CATE.__name__}.from_formula")
    question = model.made().question
    found = PROJECTION.assess(question, decay)
    return [model.method(with_length(PROJECTION, question, verdict)) for verdict in found]
