"""The public part of a log in the place of the log: what its releases answer, and what takes rounds."""

from __future__ import annotations

from typing import Any

from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.coverage import stated_outputs

NO_ROUNDS = "the public part of a log has releases alone, and no outcomes by round"


def has_group_effects(log: AdaptiveLog | PublicLog) -> bool:
    """Whether a log releases effects by group: sums and counts, or means and lengths."""
    names = set(log.releases["name"])
    return {"contrast_sum", "arrivals"} <= names or "length" in names


def answered_by(log: PublicLog) -> list[str]:
    """Calls whose answer is in the releases."""
    outputs, names = stated_outputs(log), list(log.releases["name"])
    pair = "Contrast(public, treatment=, control=)"
    ways = []
    if has_group_effects(log):
        by = f"CATE(public, by={log.facts['contexts'][0]!r})" if log.facts["contexts"] else pair
        ways.append(by)
    elif outputs is not None and outputs.epochs is not None:
        ways.append(pair)
    if "spent" in names:
        ways.append("BinMeans(public)")
    return ways


def refuse_rounds(subject: str, log: object, **given: Any) -> None:
    """Refuse what reads the rounds of a public part: arguments that are given, or all where none is listed."""
    asked = [name for name, value in given.items() if value is not None]
    if isinstance(log, PublicLog) and (asked or not given):
        what = subject if not asked else f"{subject}({', '.join(f'{name}=' for name in asked)})"
        raise InvalidForLog(what, NO_ROUNDS, answered_by(log))


def from_releases(subject: str, log: object, estimator: Any, **given: Any) -> bool:
    """Whether a fit reads releases alone, as there is nothing else; refused where more is asked for."""
    if not isinstance(log, PublicLog):
        return False
    refuse_rounds(subject, log, estimator=None if estimator == "released" else estimator, **given)
    return True
