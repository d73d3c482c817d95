"""The methods of `CATE` in their order: the default, and what errors offer, follow from the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptinf.claims.effects import by_group as group_effects
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.inference.effects.aipw import AIPW
from adaptinf.inference.effects.difference_in_means import DIFFERENCE_IN_MEANS, POOLED
from adaptinf.inference.effects.from_releases import RELEASED
from adaptinf.inference.effects.question import GroupQuestion
from adaptinf.inference.effects.record import EffectMethod
from adaptinf.inference.validity.verdicts import Verdict

Record = EffectMethod[GroupQuestion]
METHODS: tuple[Record, ...] = (DIFFERENCE_IN_MEANS, POOLED, AIPW, RELEASED)
ESTIMATORS: Mapping[str, Record] = {one.name: one for one in METHODS if one is not POOLED}
"""Methods by the name of their estimator; pooling is an option of the first."""


def default_method(question: GroupQuestion) -> tuple[Record, str]:
    """The first method that the log supports, and a note why it is not the very first.

    Where rewards are missing none is taken: a table that falls back on releases would show that some are.
    """
    if question.gap_refusal:
        return METHODS[0], ""
    refused: list[Verdict] = []
    for record in METHODS:
        found = record.assess(question)
        if any(verdict.valid for verdict in found):
            return record, _note(refused)
        refused += found
    # its refusal is the one that says what a log needs
    return AIPW if question.profile.repeated_units else METHODS[0], ""


def valid_alternatives(question: GroupQuestion, refused: Any) -> list[str]:
    """What errors offer in place of a refused method."""
    ways = [one.name for one in (DIFFERENCE_IN_MEANS, AIPW) if one is not refused and _valid(one, question)]
    if refused is POOLED:
        ways = [f"{way} with pooled=False" if way == METHODS[0].name else way for way in ways]
    if refused is RELEASED:
        return ways
    return [*ways, effects.MARK_THE_ROUNDS(), *([RELEASED.name] if _valid(RELEASED, question) else [])]


def _valid(record: Record, question: GroupQuestion) -> bool:
    return any(verdict.valid for verdict in record.assess(question))


def _note(refused: list[Verdict]) -> str:
    if not refused:
        return ""
    return group_effects.CHOSEN(name=refused[0].name, reason=refused[0].reason)
