"""Less common arguments of a log are grouped in dicts: `columns=`, `reading=` and `about=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptinf.log.validation.frame_columns import Findings
from adaptinf.texts import did_you_mean

Groups = Mapping[str, tuple[str, ...]]

OF_FILES = ("sep", "decimal", "encoding")
"""Options of reading that describe how a file is written, and do not apply to a frame."""
_ABOUT = ("design", "noise", "feedback_rounds", "released_rounds", "context_free", "propensity_status")
OF_LOGS: Groups = {
    "columns": ("phase", "randomised", "observation", "outcome_round"),
    "reading": (
        *(*OF_FILES, "missing_values", "date_format", "timezone", "sort", "every"),
        *("round_propensities", "success"),
    ),
    "about": (*_ABOUT, "reward_guarantee", "releases", "rounds_per_unit", "recommended"),
}
"""Arguments of `AdaptiveLog` that are dicts, and their options."""
OF_TABLES: Groups = {
    "columns": tuple(
        f"{role}_{part}"
        for role in ("denominator", "covariate")
        for part in ("sum_squares", "sum_products", "sum_cubes")
    ),
    "reading": (*OF_FILES, "missing_values", "date_format", "round_propensities"),
    "about": (*_ABOUT, "reward_guarantee", "context"),
}
"""Arguments of `Sums` that are dicts, and their options."""
OF_AGGREGATES: Groups = {
    "reading": (*OF_FILES, "missing_values", "timezone", "round_propensities"),
    "about": OF_TABLES["about"],
}
"""Arguments of `aggregate` that are dicts, and their options."""


def nested_options(flat: Mapping[str, Any], groups: Groups = OF_LOGS) -> dict[str, Any]:
    """Arguments from options given separately, as on the command line, with grouped options in their dicts.

    Examples
    --------
    >>> from adaptinf.log.validation import nested_options
    >>> nested_options({"action": "arm", "sort": True, "reading": {"success": "Y"}})
    {'action': 'arm', 'reading': {'success': 'Y', 'sort': True}}
    """
    homes = {option: group for group, options in groups.items() for option in options}
    nested = {name: value for name, value in flat.items() if name not in homes}
    for name, value in flat.items():
        if name in homes:
            given = nested.get(homes[name]) or {}
            # Values that are not mappings are left for the log to refuse.
            nested[homes[name]] = {**given, name: value} if isinstance(given, Mapping) else given
    return nested


def group_options(
    group: str, given: object, groups: Groups, found: Findings, *, framed: bool = False
) -> dict[str, Any]:
    """The options in a dict; unknown ones, and with `framed` those for files, are reported as problems."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        found.add("bad-option", f"{group}= must be a dict of options by name, got {given!r:.80}")
        return {}
    known = groups[group]
    for name in given:
        if name not in known:
            found.add("unknown-option", _unknown(group, name, known, groups))
    files = [name for name in OF_FILES if framed and name in given and name in known]
    if files:
        message = f"{group}= has options that apply only to files, {', '.join(map(repr, files))}"
        found.add("bad-option", f"{message}, but the log is created from a frame: omit it")
    return {name: value for name, value in given.items() if name in known and name not in files}


def _unknown(group: str, name: object, known: tuple[str, ...], groups: Groups) -> str:
    """Message for an unknown option: where it belongs, or which option may have been intended."""
    elsewhere = next((other for other, options in groups.items() if name in options), None)
    if elsewhere is not None:
        return f"{group}= has no option {name!r}: give it in {elsewhere}="
    hint = did_you_mean(name, known) or f"; its options are {', '.join(map(repr, known))}"
    return f"{group}= has no option {name!r:.60}{hint}"
