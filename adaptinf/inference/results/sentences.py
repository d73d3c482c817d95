"""A result in one sentence, with numbers as printed in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import tables
from adaptinf.errors import InvalidForLog
from adaptinf.inference.results.multiplicity import AT_ONCE
from adaptinf.inference.results.simultaneous import JointInference
from adaptinf.inference.results.tables import format_number, percent
from adaptinf.parameters import refuse
from adaptinf.texts import absent, arm_label, level_text, several, visible

if TYPE_CHECKING:
    from adaptinf.inference.results.estimand import Estimand
    from adaptinf.typing import FloatArray

_SHOWN, _LONGEST = 3, 60
"""Largest number of names in a sentence, and largest total number of characters in them."""


def sentence_of(
    results: JointInference, term: str | None, alpha: float, unit: str | None, adjust: str | None = None
) -> str:
    """The sentence on one term or on all terms; with corrected intervals, if only these are valid."""
    names = list(map(str, results.terms))
    problems = [absent("term", term, names)] if term is not None and str(term) not in names else []
    if unit is not None and any(one.kind in tables.LIFTS for one in results.estimands):
        problems.append(tables.NO_UNIT())
    refuse("sentence", problems)
    corrected = results._is_corrected(alpha)
    at_once = adjust == AT_ONCE and not corrected and len(names) > 1
    limits = results._shown_limits(alpha, AT_ONCE if at_once else None)
    kind = "corrected " if corrected else "simultaneous " if at_once else ""
    found = _Found(results, limits.to_numpy(), alpha, unit, kind)
    if term is None and (pair := found.pair()) is not None:
        text = sentence_of(pair, None, alpha, unit)
        lacking = results.cautions and not pair.cautions
        return visible(tables.AFTER_CAUTIONS(sentence=text)) if lacking else text
    if term is not None or len(names) == 1:
        text = found.single(names.index(str(term)) if term is not None else 0)
    else:
        text = found.all_terms()
    if text.startswith("arm ") and not any(isinstance(arm, str) for arm in _arms(results)):
        text = f"A{text[1:]}"
    if results.validity == "not valid" and not corrected:
        text = tables.FIRST_NOT_VALID(
            sentence=f"{text[:1].lower()}{text[1:]}" if text[:6] == "It is " else text
        )
    return visible(tables.AFTER_CAUTIONS(sentence=text) if results.cautions else text)


def _arms(results: JointInference) -> list[Any]:
    """The arms to which the terms refer."""
    named = [arm for one in results.estimands for arm in (one.arm, one.treatment)]
    return [arm for arm in named if arm is not None]


class _Found:
    """A result from which sentences are composed; limits (k, 2)."""

    def __init__(
        self, results: JointInference, limits: FloatArray, alpha: float, unit: str | None, kind: str
    ) -> None:
        self.results, self.limits, self.alpha = results, limits, alpha
        self.unit, self.kind = f" {unit}" if unit else "", kind

    def single(self, place: int) -> str:
        """The sentence on a single term."""
        one = self.results.estimands[place]
        term = str(self.results.terms[place])
        values: dict[str, Any] = {
            "term": term,
            "estimate": self._number(place),
            "interval": self._interval(place),
        }
        if np.isnan(self.limits[place]).any():
            return tables.NO_INTERVAL(**values)
        means = self.results._chosen_from
        if means is not None and one.kind in tables.LEVEL_KINDS:
            values |= {"term": arm_label(one.arm), "what": self._what(one), "count": len(means.terms)}
            return tables.SELECTED(**values, best=self._best())
        if one.kind in tables.LEVEL_KINDS:
            return tables.LEVEL(**values | {"term": self._level_name(place)}, what=self._what(one))
        if one.kind in tables.LIFTS and self.results.null == 0.0:
            return self._lift(place, values)
        if one.kind in tables.DIFFERENCES and self.results.null == 0.0:
            text = self._difference(place, values)
            if one.kind == "cate" and one.group is not None:
                return tables.IN_GROUP(group=term, sentence=text)
            return text
        if self._decided(place):
            return tables.OTHER_DECIDED(**values)
        return tables.OTHER_UNDECIDED(**values, null=self.results.null)

    def _difference(self, place: int, values: dict[str, Any]) -> str:
        one = self.results.estimands[place]
        values |= {
            "treatment": arm_label(one.treatment),
            "control": arm_label(one.control),
            "what": self._what(one),
        }
        if not self._decided(place):
            return tables.UNDECIDED(**values)
        direction = "higher" if self.limits[place, 0] > 0.0 else "lower"
        return tables.HIGHER(**values, direction=direction)

    def _lift(self, place: int, values: dict[str, Any]) -> str:
        """The sentence on a relative effect: by how many percent a mean is higher or lower."""
        one = self.results.estimands[place]
        arms = {"treatment": arm_label(one.treatment), "control": arm_label(one.control)}
        values |= {**arms, "what": self._what(one)}
        if not self._decided(place):
            return tables.LIFT_UNDECIDED(**values)
        size, ends = float(self.results.estimate[place]), self.limits[place]
        if self.limits[place, 0] > 0.0:
            return tables.LIFTED(**values, direction="higher", size=percent(size))
        values["interval"] = self._between(*(percent(-float(end)) for end in ends[::-1]))
        return tables.LIFTED(**values, direction="lower", size=percent(-size))

    def pair(self) -> JointInference | None:
        """The difference between two levels, which is more informative than the levels; otherwise None."""
        results = self.results
        levels = [one.kind in tables.LEVEL_KINDS for one in results.estimands]
        if levels != [True, True] or self.kind or results.contrast_of is None:
            return None
        if np.isnan(self.limits).any():
            return None
        high, low = np.argsort(-results.estimate, kind="stable").tolist()
        found = results.contrast_of(high, low)
        assert isinstance(found, JointInference)
        return found

    def all_terms(self) -> str:
        """The sentence on all terms: the highest and lowest levels, or the differences that are decided."""
        results = self.results
        if all(one.kind in tables.LEVEL_KINDS for one in results.estimands):
            return self._levels()
        if self._common_control:
            return self._against_control()
        terms = [str(term) for term in results.terms]
        places = range(len(terms))
        decided = [f"{terms[k]} {self._number(k)} ({self._interval(k)})" for k in places if self._decided(k)]
        values: dict[str, Any] = {
            "decided": several(decided, _SHOWN, "; "),
            "undecided": several([terms[k] for k in places if not self._decided(k)], _SHOWN),
            "null": results.null,
        }
        if not decided:
            return tables.UNDECIDED_TERMS(**values)
        return (tables.BOTH_TERMS if values["undecided"] else tables.DECIDED_TERMS)(**values)

    @property
    def _common_control(self) -> bool:
        """Whether all terms are differences from one arm."""
        kinds = {one.kind for one in self.results.estimands}
        controls = {str(one.control) for one in self.results.estimands}
        alike = kinds <= {"contrast", "ratio-contrast"} or kinds <= set(tables.LIFTS)
        return alike and len(controls) == 1 and self.results.null == 0.0

    def _against_control(self) -> str:
        """The sentence on differences from one arm: the decided ones, clearest first, and the others."""
        results, places = self.results, range(len(self.limits))
        arms = [arm_label(one.treatment) for one in results.estimands]
        decided = sorted(filter(self._decided, places), key=results.log_pvalues.to_numpy().__getitem__)
        told = [
            (tables.LIFTED_ALONE if results.estimands[k].kind in tables.LIFTS else tables.BEYOND)(
                treatment=arms[k],
                direction="higher" if self.limits[k, 0] > 0.0 else "lower",
                what=self._what(results.estimands[k]),
                estimate=self._number(k),
                interval=self._interval(k),
            )
            for k in decided
        ]
        left = [arms[k] for k in places if k not in decided]
        few = len(left) <= _SHOWN and sum(map(len, left)) <= _LONGEST
        values = {
            "control": arm_label(results.estimands[0].control),
            "decided": several(told, _SHOWN, "; "),
            "undecided": ", ".join(left) if few else tables.OTHERS[len(left) == 1](count=len(left)),
        }
        if not decided:
            what = self._what(results.estimands[0])
            return tables.NONE_AGAINST_CONTROL(count=len(arms), control=values["control"], what=what)
        return (tables.AGAINST_CONTROL if left else tables.ALL_AGAINST_CONTROL)(**values)

    def _levels(self) -> str:
        estimate = self.results.estimate
        if np.isnan(estimate).all():
            return tables.NO_INTERVAL(term="No arm", estimate="nan")
        if self.results._bounds is not None:
            return tables.BOUNDED_LEVELS(levels=several(self._bounded(), _SHOWN, "; "))
        high, low = int(np.nanargmax(estimate)), int(np.nanargmin(estimate))
        return tables.LEVELS(
            count=len(estimate),
            high=self._level_name(high),
            low=self._level_name(low),
            what=self._what(self.results.estimands[high]),
            estimate=self._number(high),
            interval=self._interval(high),
            least=f"{self._number(low)} ({self._interval(low)})",
        )

    def _level_name(self, place: int) -> str:
        """The name of a level: its arm, or its term if this is more informative."""
        term, arm = str(self.results.terms[place]), self.results.estimands[place].arm
        return arm_label(arm) if str(arm) == term else term

    def _bounded(self) -> list[str]:
        """The levels, each with its bounds."""
        return [
            tables.BOUNDED_LEVEL(
                term=self._level_name(k),
                what=self._what(one),
                estimate=self._number(k),
                interval=self._interval(k),
            )
            for k, one in enumerate(self.results.estimands)
        ]

    def _best(self) -> str:
        """The sentence on which arms may be the best, if the results allow inference on a winner."""
        try:
            found = self.results.best_arms(self.alpha)  # type: ignore[attr-defined]
        except InvalidForLog:
            return tables.BEST_NOT_ASKED()
        kept = [arm_label(arm) for arm in found.index[found["in_set"]]]
        if len(kept) == 1:
            return tables.BEST_ALONE(alpha=self.alpha)
        return tables.BEST_OF_SEVERAL(arms=several(kept, _SHOWN), alpha=self.alpha)

    def _what(self, one: Estimand) -> str:
        reward = self.results.facts.reward or "reward"
        return {**tables.DIFFERENCES, **tables.LIFTS, **tables.LEVEL_KINDS}[one.kind].format(
            reward=reward, denominator=one.denominator
        )

    def _decided(self, place: int) -> bool:
        low, high = self.limits[place]
        return bool(low > self.results.null or high < self.results.null)

    def _number(self, place: int) -> str:
        bounds = self.results._bounds or (self.results.estimate,)
        return " to ".join(self._figure(place, float(ends[place])) for ends in bounds) + self.unit

    def _figure(self, place: int, value: float) -> str:
        """A number as printed in the table or, for a lift, in percent."""
        relative = self.results.estimands[place].kind in tables.LIFTS
        return percent(value) if relative else format_number(value)

    def _interval(self, place: int) -> str:
        return self._between(*(self._figure(place, float(end)) for end in self.limits[place]))

    def _between(self, low: str, high: str) -> str:
        name = "interval" if self.results.validity != "anytime" else "confidence sequence"
        return f"{level_text(self.alpha)} {self.kind}{name} {low} to {high}"
