"""Effects within groups, from sums by batch, arm and group: a contrast of the sums of each group."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims.effects import by_group as claims
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.arms import Contrast
from adaptinf.inference.arms.choice import arm_method, arm_verdicts
from adaptinf.inference.arms.data.arms_of_sums import read_from
from adaptinf.inference.arms.question import Question
from adaptinf.inference.distributions.references import Reference, StudentReference, joined
from adaptinf.inference.distributions.skewed import SkewedSumReference
from adaptinf.inference.effects.comparisons import GroupResults
from adaptinf.inference.effects.effect_methods import GROUPS, effect, warn_of_tiny
from adaptinf.inference.effects.group_facts import tiny_propensities
from adaptinf.inference.effects.group_question import arm_pair, group_terms
from adaptinf.inference.inputs.arguments import label_problems, labels, require_data
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.results import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.tables import said_of
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.parameters import refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.typing import FloatArray, IntArray

_PLAIN = "difference-in-means"
_CONTRASTS = {_PLAIN: "sample-mean", "aipw": "aipw"}
"""The `Contrast` estimator used for each group."""
_KINDS = ("combined", "uniform", "sqrt")
_DETAILS = ("pulls_treatment", "pulls_control", "ess", "min_propensity")
_ROWS = ["an AdaptiveLog of rows"]


@dataclass(frozen=True, eq=False)
class SumsQuestion:
    """The effect of an arm over another in each of G groups; pair (2,), with the treatment first."""

    sums: Sums
    by: tuple[str, ...]
    treatment: Any
    control: Any
    pair: IntArray
    terms: tuple[str, ...]

    @property
    def profile(self) -> LogProfile:
        """The profile of the sums over all groups."""
        return profile_of(self.sums)

    @cached_property
    def parts(self) -> list[Sums]:
        """The sums for each group."""
        return [self.sums.of_group(label) for label in self.sums.groups]

    @cached_property
    def usable(self) -> list[bool]:
        """Whether both arms could be chosen in some batch of each group."""
        return [bool(part.cells.possible[:, self.pair].all(axis=1).any()) for part in self.parts]

    @cached_property
    def settled(self) -> bool:
        """Whether each group's propensities are known and constant."""
        return all(one.profile.constant_propensities for one in self.questions())

    def questions(self, *, stationary: bool = False) -> list[Question]:
        """The questions about the contrasts of the groups that have one."""
        return [
            Question(profile_of(part), self.pair, contrast=True, stationary=stationary)
            for part, usable in zip(self.parts, self.usable, strict=True)
            if usable
        ]


def sums_question(
    sums: Sums, by: str | Sequence[str], treatment: Any, control: Any, rounds: Any
) -> SumsQuestion:
    """Check and complete the user's request."""
    round_mask("CATE", sums, rounds)  # type: ignore[arg-type]
    names, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
    problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
    refuse("CATE", problems)
    treatment, control, problems = arm_pair(require_data("CATE", sums), treatment, control)
    problems += [] if names else ["by must name at least one grouping column"]
    problems += ["by names a column more than once"] if len(set(names)) < len(names) else []
    problems += [
        f"the sums are not grouped by {name!r}; "
        + (
            f"they are grouped by {', '.join(sums.group_names)}"
            if sums.group_names
            else "they have no groups (group= of Sums, by= of aggregate)"
        )
        for name in names
        if name not in sums.group_names
    ]
    refuse("CATE", problems)
    found = sums.by_groups(names)
    keys = [label if isinstance(label, tuple) else (label,) for label in found.groups]
    pair = np.array([sums.arms.index(treatment), sums.arms.index(control)])
    return SumsQuestion(found, names, treatment, control, pair, group_terms(names, keys))


def _assess(question: SumsQuestion) -> list[Verdict]:
    """Verdicts on unweighted means, if propensities are constant in every group, or else on AIPW."""
    found = question.questions()
    if not found:
        reason = claims.NO_COMMON_BATCH(treatment=question.treatment, control=question.control)
        ranks = {_PLAIN: GROUPS[_PLAIN], "aipw": GROUPS["combined weights"]}
        return [Verdict(name, "not valid", ranks[name], {"estimator": name}, reason) for name in _CONTRASTS]
    by_group = [_by_method(one) for one in found]
    verdicts = [_in_all([one["aipw", kind] for one in by_group], kind) for kind in _KINDS]
    plain = _in_all([one["sample-mean", None] for one in by_group])
    if not question.settled:
        refused = claims.MOVING_PROPENSITIES()
        plain = replace(plain, label="not valid", reason=refused, assumes=(), warning="")
    released = Verdict("released", "not valid", GROUPS["released"], {"estimator": "released"}, NEEDS_ROWS)
    return [plain, *verdicts, released]


def _by_method(question: Question) -> dict[tuple[str, str | None], Verdict]:
    """The best verdict for each estimator and kind of weights."""
    found: dict[tuple[str, str | None], Verdict] = {}
    for verdict in arm_verdicts(question):  # Valid verdicts come first, so setdefault keeps the best one.
        key = verdict.arguments["estimator"], verdict.arguments.get("weights")
        found.setdefault(key, verdict)
    return found


def _in_all(verdicts: Sequence[Verdict], weights: str | None = None) -> Verdict:
    """The verdict on a variant for all groups, which is that for the least favourable group."""
    refused = next((one for one in verdicts if not one.valid), None)
    rank = (*GROUPS["contrasts of sums"], *max(one.rank for one in verdicts))
    name = _PLAIN if weights is None else verdicts[0].name
    call = {"estimator": _PLAIN} if weights is None else dict(verdicts[0].arguments)
    if refused is not None:
        return Verdict(name, "not valid", rank, call, refused.reason)
    warning = next((one.warning for one in verdicts if one.warning), "")
    return Verdict(name, "asymptotic", rank, call, verdicts[0].reason, verdicts[0].assumes, warning)


def _length(question: SumsQuestion, verdict: Verdict) -> float:
    """The mean of the expected lengths in the groups; NaN if any is unknown."""
    method = arm_method(_CONTRASTS[verdict.arguments["estimator"]])
    return float(np.mean([method.length(one, verdict) for one in question.questions()]))


def _fit(
    question: SumsQuestion,
    null: float,
    estimator: str | None = None,
    weights: str | None = None,
    *,
    stationary: bool = False,
) -> GroupResults:
    """Estimate the contrast of every group by the same method."""
    estimator, weights = _chosen(question, estimator, weights, stationary)
    how: dict[str, Any] = {"estimator": _CONTRASTS[estimator], "weights": weights, "null": null}
    how |= {"stationary": stationary}
    with warnings.catch_warnings():
        # One warning about all groups follows, so those about single groups are suppressed.
        warnings.simplefilter("ignore", AdaptinfWarning)
        found = [
            _contrast(question, part, how) if usable else None
            for part, usable in zip(question.parts, question.usable, strict=True)
        ]
        # If one group needs a skewness correction, all groups get it, because a table has one method.
        if any(_corrected(one) for one in found):
            found = [
                one if one is None or _corrected(one) else _contrast(question, part, how | {"test": "hall"})
                for part, one in zip(question.parts, found, strict=True)
            ]
    result = _results(question, estimator, weights, null, found)
    lowest, ess = result.details["min_propensity"], result.details["ess"]
    warn_of_tiny("CATE.fit", tiny_propensities(question.terms, lowest, ess))
    return result


def _corrected(result: Results | None) -> bool:
    return result is not None and isinstance(result.reference, SkewedSumReference)


def _contrast(question: SumsQuestion, part: Sums, how: Mapping[str, Any]) -> Results:
    return Contrast(part, treatment=question.treatment, control=question.control).fit(**how)


def _chosen(
    question: SumsQuestion, estimator: str | None, weights: str | None, stationary: bool
) -> tuple[str, str | None]:
    """The requested estimator and weights, if all groups allow them, or else the first that they allow."""
    found = FROM_SUMS.assess(question)
    kinds = ("sqrt", *_KINDS[:2]) if stationary else _KINDS[:2]
    order: list[tuple[str, str | None]] = [] if weights is not None else [(_PLAIN, None)]
    order += [("aipw", kind) for kind in (kinds if weights is None else (weights,))]
    asked = [key for key in order if estimator in (None, key[0])]
    by_key = {(one.arguments["estimator"], one.arguments.get("weights")): one for one in found}
    for key in asked:
        if key in by_key and by_key[key].valid:
            return key
    refused = by_key.get(asked[0] if asked else (estimator, None), found[-1])
    ways = [one.name for one in found if one.valid]
    raise InvalidForLog(refused.name, refused.reason, ways or _ROWS)


def _results(
    question: SumsQuestion,
    estimator: str,
    weights: str | None,
    null: float,
    found: Sequence[Results | None],
) -> GroupResults:
    """The contrasts of the groups in one table, in which each note appears once."""
    estimate = np.array([np.nan if one is None else one.estimate[0] for one in found])
    std_error = np.array([np.nan if one is None else one.std_error[0] for one in found])
    details = {
        name: np.array([np.nan if one is None else one.details[name][0] for one in found])
        for name in _DETAILS
    }
    told = [(term, one) for term, one in zip(question.terms, found, strict=True) if one is not None]
    terms, results = [term for term, _ in told], [one for _, one in told]
    own = {read_from(profile_of(part)) for part in question.parts}
    absent = [term for term, one in zip(question.terms, found, strict=True) if one is None]
    return GroupResults(
        model="CATE",
        estimands=tuple(
            Estimand("cate", treatment=question.treatment, control=question.control, group=label)
            for label in question.sums.groups
        ),
        terms=question.terms,
        estimate=estimate,
        std_error=std_error,
        covariance=np.diag(std_error**2),
        reference=_law(found, estimate, std_error),
        estimator=estimator,
        facts=LogFacts.of(question.sums),
        validity="asymptotic",
        weights=weights,
        null=null,
        details=details,
        notes=(
            effect(question),
            read_from(question.profile),
            claims.GROUPS_ALONE(),
            *said_of(terms, results, lambda one: [note for note in one.notes if note not in own]),
            *([claims.GROUPS_WITHOUT_BATCH(terms=", ".join(absent))] if absent else []),
        ),
        cautions=said_of(terms, results, lambda one: one.cautions),
    )


def _law(found: Sequence[Results | None], estimate: FloatArray, std_error: FloatArray) -> Reference:
    """The joint reference distribution of all groups; estimate and std_error have shape (G,)."""
    gone = np.full(1, np.nan)
    if not any(_corrected(one) for one in found):
        lost = StudentReference(gone, gone, gone)
        return joined([lost if one is None else one.reference for one in found], estimate, std_error)
    without = SkewedSumReference(gone, np.full((1, 2), np.nan), np.zeros((1, 2)), gone)
    laws = [one.reference if one is not None else without for one in found]
    parts = [law if isinstance(law, SkewedSumReference) else without for law in laws]
    sizes, shapes, freedom = (
        np.concatenate([getattr(law, name) for law in parts]) for name in ("std_error", "skewness", "df")
    )
    related = np.concatenate([np.asarray(law.correlation) for law in parts])
    return SkewedSumReference(estimate, sizes, shapes, freedom, related)


FROM_SUMS: MethodRecord[SumsQuestion] = MethodRecord("from sums", _assess, _fit, length=_length)
"""The record that stands for all methods available for sums."""
