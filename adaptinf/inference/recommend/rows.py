"""Every method that the library has for a target, tried on a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaptinf.claims import Claim, Said
from adaptinf.claims.sample_means import OPENING
from adaptinf.inference.arms.question import Question
from adaptinf.inference.recommend.metrics import Metric, method_of, with_length
from adaptinf.inference.results.base import Results
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.log import AdaptiveLog
from adaptinf.typing import Validity


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One method for one log."""

    verdict: Verdict
    call: str
    run: Callable[[], Results]

    def __repr__(self) -> str:
        return f"{self.call}  # {self.verdict.label}"


class _Model:
    """A model class and its arguments; made when it is first needed."""

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
        data = "log" if profile_of(self.log).sums is None else "sums"
        model = ", ".join([data, *_shown(self.arguments)])
        call = f"{self.name}({model}).fit({', '.join(_shown(verdict.arguments))})"
        return Method(verdict, call, lambda: self.made().fit(**verdict.arguments))


def _shown(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments as they are written; what is not short and plain by its name."""
    plain = (str, int, float, bool, np.generic)
    short = {
        name: isinstance(value, plain) or (isinstance(value, (list, tuple)) and len(value) <= 10)
        for name, value in arguments.items()
    }
    return [f"{name}={value!r}" if short[name] else f"{name}={name}" for name, value in arguments.items()]


def arm_rows(
    question: Question, arguments: Mapping[str, Any], denominator: Any = None, covariate: Any = None
) -> list[Method]:
    """Rows of `ArmMeans` or `Contrast`, of ratios to a denominator and with covariates where asked for."""
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
    from adaptinf.inference.contrasts.methods import of_lift, over_pairs, told_at_once
    from adaptinf.inference.contrasts.model import Contrasts

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
    from adaptinf.inference.winners.methods import METHODS, WinnerQuestion
    from adaptinf.inference.winners.model import Winner

    model = _Model(Winner, question.profile.log, arguments)
    model.made()  # bad arguments are refused here, and not row by row
    asked = WinnerQuestion(question, Metric(question).verdicts())
    found = [verdict for method in METHODS for verdict in method.assess(asked)]
    return [model.method(verdict) for verdict in found]


def _with_lengths(methods: Iterable[MethodRecord[Any]], question: Any) -> list[Verdict]:
    """What every variant of some methods is worth, with the length of its intervals where it is valid."""
    return [
        with_length(method, question, verdict) for method in methods for verdict in method.assess(question)
    ]


def _opened(row: Method) -> Method:
    """A row whose fit says why it is valid here, where that is known better than by the fit."""
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
    """Whether a text is a claim."""
    return isinstance(text, Said) and text.claim is claim


def sequence_rows(log: AdaptiveLog, target: str, arguments: Mapping[str, Any], order: Order) -> list[Method]:
    """Rows of `ConfidenceSequence`, at their places in the order of the target's methods."""
    from adaptinf.inference.sequences.models import ConfidenceSequence
    from adaptinf.inference.sequences.verdicts import sequence_verdicts

    model = _Model(ConfidenceSequence, log, {"target": target, **arguments})
    found = sequence_verdicts(profile_of(log), model.made().quantities, order)
    return [model.method(verdict) for verdict in found]


def policy_rows(log: AdaptiveLog, policy: Any, snapshots: Any) -> list[Method]:
    """Rows of `PolicyValue`."""
    from adaptinf.inference.policies.inputs import read_policies
    from adaptinf.inference.policies.methods import METHODS
    from adaptinf.inference.policies.models import PolicyValue
    from adaptinf.inference.policies.question import PolicyQuestion

    model = _Model(PolicyValue, log, {"policy": policy})
    policies = read_policies("PolicyValue", log, policy)
    question = PolicyQuestion(profile_of(log), policies, snapshots=snapshots)
    return [model.method(verdict) for verdict in _with_lengths(METHODS.values(), question)]


def cate_rows(log: AdaptiveLog, arguments: Mapping[str, Any]) -> list[Method]:
    """Rows of `CATE`."""
    from adaptinf.inference.effects.from_sums import FROM_SUMS
    from adaptinf.inference.effects.methods import METHODS
    from adaptinf.inference.effects.models import CATE

    model = _Model(CATE, log, arguments)
    methods: Sequence[MethodRecord[Any]] = METHODS if profile_of(log).sums is None else (FROM_SUMS,)
    return [model.method(verdict) for verdict in _with_lengths(methods, model.made().question)]


def projection_rows(log: AdaptiveLog, arguments: Mapping[str, Any], decay: float | None) -> list[Method]:
    """Rows of `CATE.from_formula`."""
    from adaptinf.inference.effects.models import CATE
    from adaptinf.inference.effects.projections.projected_scores import PROJECTION
    from adaptinf.inference.effects.projections.projection import CATEProjection

    model = _Model(CATEProjection, log, arguments, f"{CATE.__name__}.from_formula")
    question = model.made().question
    found = PROJECTION.assess(question, decay)
    return [model.method(with_length(PROJECTION, question, verdict)) for verdict in found]
