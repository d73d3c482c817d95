"""Use of the public part of a log in place of the log: what releases can answer, and what needs rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adaptinf.claims.logs.rows import NO_ROUNDS
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.public import stated_outputs
from adaptinf.log.traits import IN_TIME_NAMES
from adaptinf.parameters import refuse


def has_group_effects(log: AdaptiveLog | PublicLog) -> bool:
    """Whether the releases of a log include effects by group, as sums and counts or means and lengths."""
    releases = log.releases
    names = set(releases["name"]) if len(releases) else set()
    return {"contrast_sum", "arrivals"} <= names or "length" in names


def answered_by(log: AdaptiveLog | PublicLog) -> list[str]:
    """Calls that the releases can answer."""
    outputs, names = stated_outputs(log), set(log.releases["name"])
    public = isinstance(log, PublicLog)
    contexts = log.facts["contexts"] if isinstance(log, PublicLog) else log.context
    data, fit = ("public", "") if public else ("log", ".fit('released')")
    pair, ways = f"Contrast({data}, treatment=, control=){fit}", []
    if has_group_effects(log):
        ways.append(f"CATE({data}, by={contexts[0]!r}){fit}" if contexts else pair)
    elif outputs is not None and outputs.epochs is not None:
        ways.append(pair)
    if IN_TIME_NAMES[0] in names:
        ways.append(f"ArmMeans({data}){fit}")
    return [*ways, *([f"BinMeans({data})"] if "spent" in names else [])]


def refuse_rounds(subject: str, log: object, **given: Any) -> None:
    """For the public part of a log, refuse the given arguments, or the whole call if none are given."""
    asked = [name for name, value in given.items() if value is not None]
    if isinstance(log, PublicLog) and (asked or not given):
        what = subject if not asked else f"{subject}({', '.join(f'{name}=' for name in asked)})"
        raise InvalidForLog(what, NO_ROUNDS(), answered_by(log))


def from_releases(subject: str, log: object, estimator: Any, **given: Any) -> bool:
    """Whether a fit uses only releases because nothing else is available; refuse requests for more."""
    if not isinstance(log, PublicLog):
        return False
    refuse_rounds(
        subject,
        log,
        estimator=None if isinstance(estimator, str) and estimator == "released" else estimator,
        **given,
    )
    return True


def refuse_others(subject: str, given: Mapping[str, Any], allowed: Sequence[str], of: str) -> None:
    """Refuse arguments of `fit` that do not apply to this table, unless they have their default values."""
    usual = {"test": "auto", "arm_error": "conservative", "chosen_from": "actions"}
    refuse(
        subject,
        [
            f"{name} does not apply to a table {of}: omit it"
            for name, value in given.items()
            if name not in allowed and value is not None and value is not False and value != usual.get(name)
        ],
    )
