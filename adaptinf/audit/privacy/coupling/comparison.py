"""Whether two runs show the same, in all that a guarantee covers."""

from __future__ import annotations

from itertools import zip_longest

from adaptinf.audit.privacy.coupling.plays import ANSWER, ARM, PROPENSITIES, RECORDS, Output, Shown

_NOTHING = Output("nothing", "nothing", "")
_SHOWN, _BEFORE = 120, 40


def covered(shown: Shown, kind: str, step: int, propensities: bool) -> list[Output]:
    """What the guarantee that neighbours of a kind are held against covers, in order.

    Answers about the participant who differs are told to nobody else. Where contexts differ that holds for
    the participant's arm, and for what a trial tells of an arm's probability by round; where outcomes come at
    other times, so does what a status tells of them.
    """
    record = kind == "context"
    counted = kind in ("value", "context")
    return [
        output
        for output in shown.outputs
        if not (output.step == step and (output.part == ANSWER or (record and output.part == ARM)))
        and (output.part != PROPENSITIES or (propensities and not record))
        and (output.part != RECORDS or counted)
    ]


def first_difference(one: list[Output], other: list[Output]) -> tuple[Output, str] | None:
    """The first output in which two runs differ, and in words how."""
    for mine, theirs in zip_longest(one, other, fillvalue=_NOTHING):
        if mine.words != theirs.words:
            told = f"{mine.words} in one of the runs, {theirs.words} in the other"
            return (theirs if mine is _NOTHING else mine), told
        if mine.text != theirs.text:
            return mine, f"{mine.words}: {' and '.join(_apart(mine.text, theirs.text))}"
    return None


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two texts from shortly before the place where they part."""
    shorter = min(len(one), len(other))
    place = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), shorter)
    begin = max(place - _BEFORE, 0) if max(len(one), len(other)) > _SHOWN else 0
    dots = "..." if begin else ""
    shown = [f"{dots}{text[begin : begin + _SHOWN]}" for text in (one, other)]
    return shown[0], shown[1]
