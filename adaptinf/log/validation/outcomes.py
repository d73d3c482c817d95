"""Outcomes that are labels, such as Y and N, as the numbers that the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.columns import Column, Label, Labels, plain_label, read_labels
from adaptinf.log.validation.findings import Findings

_SHOWN = 8


def implied_range(success: object) -> tuple[float, float] | None:
    """Smallest and largest number that labels can become; None where there are not two."""
    if success is None:
        return None
    if not isinstance(success, Mapping):
        return 0.0, 1.0
    numbers = [number for value in success.values() if (number := _number(value)) is not None]
    return (min(numbers), max(numbers)) if len(set(numbers)) > 1 else None


def numbered_outcomes(column: Column, name: object, success: object, found: Findings) -> Column | None:
    """A column of labels as numbers; None where one of them has none, which becomes a problem."""
    labels = read_labels(column)
    what = f"reward column {name!r}"
    if labels.bad.any():
        found.add_rows("bad-outcome", f"{what} must hold labels where success= is given", labels.bad)
        return None
    if isinstance(success, Mapping):
        numbers = _by_mapping(labels, what, success, found)
    else:
        numbers = _by_success(labels, what, success, found)
    if numbers is None:
        return None
    told = [
        f"{label!r:.40} counts as {number:g}" for label, number in zip(labels.values, numbers, strict=True)
    ]
    if told:
        shown = told if len(told) <= _SHOWN else [*told[:_SHOWN], "..."]
        found.tell("outcome", claims.COUNTED_AS(column=what, labels=", ".join(shown)))
    values = np.array([*numbers, np.nan])[labels.codes]
    return Column(values, column.missing, column.dtype)


def _by_success(labels: Labels, what: str, success: object, found: Findings) -> list[float] | None:
    """1 for the success and 0 for the one other label; None where there are several others, or no success."""
    wanted = plain_label(success)
    if wanted is None:
        found.add(
            "bad-success",
            "success must be a label of the reward column, or a mapping of its labels to numbers, got "
            f"{success!r:.60}",
        )
        return None
    others = [label for label in labels.values if not _same(label, wanted)]
    example = ", ".join(f"{label!r:.40}: ..." for label in labels.values[:_SHOWN])
    advice = f"number every text: success={{{example}}}"
    alike = [label for label in others if _read(label) == _read(wanted)]
    if len(others) == len(labels.values) and others:
        found.add(
            "no-success", f"no row of {what} holds {wanted!r:.40}, but {_counted(labels, others)}; {advice}"
        )
    elif len(others) > 1 or alike or any(not _read(label) for label in others):
        counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.values))
        usual = max((label for label in others), key=lambda label: counts[labels.values.index(label)])
        odd = [label for label in others if label in alike or not _same(label, usual) or len(others) == 1]
        member = np.array([any(_same(label, one) for one in odd) for label in labels.values] + [False])
        found.add_rows(
            "other-outcome",
            f"{what} holds {_counted(labels, others)} beside {wanted!r:.40}, and one text "
            f"alone can be that of no success; correct them, or {advice}",
            member[labels.codes],
        )
    else:
        return [float(_same(label, wanted)) for label in labels.values]
    return None


def _by_mapping(
    labels: Labels, what: str, success: Mapping[object, object], found: Findings
) -> list[float] | None:
    """The number of every label; None where one has none, or the mapping is of others."""
    keys = [plain_label(key) for key in success]
    values = [_number(value) for value in success.values()]
    if not keys or None in keys or None in values:
        found.add("bad-success", f"success must map labels to finite numbers, got {dict(success)!r:.120}")
        return None
    known = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
    numbers = [next((value for key, value in known if _same(label, key)), None) for label in labels.values]
    strangers = [label for label, number in zip(labels.values, numbers, strict=True) if number is None]
    if strangers:
        member = np.array([number is None for number in numbers] + [False])
        found.add_rows(
            "other-outcome",
            f"{what} holds {_counted(labels, strangers)}, to which success= gives no number",
            member[labels.codes],
        )
        return None
    return [number for number in numbers if number is not None]


def _same(label: Label, other: Label) -> bool:
    """Whether two labels are equal; numbers are no text and no truth values."""
    kinds = [isinstance(label, str), isinstance(label, bool)] == [
        isinstance(other, str),
        isinstance(other, bool),
    ]
    return kinds and label == other


def _read(label: Label) -> str:
    return str(label).strip().casefold()


def _counted(labels: Labels, chosen: list[Label]) -> str:
    """Labels with the number of their rows and the first of them."""
    told = []
    for label in chosen[:_SHOWN]:
        rows = np.flatnonzero(labels.codes == labels.values.index(label))
        told.append(f"{label!r:.40} ({rows.size} rows)" if rows.size > 1 else f"{label!r:.40} (1 row)")
    more = f" and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
    return ", ".join(told) + more


def _number(value: Any) -> float | None:
    label = plain_label(value)
    if label is None or isinstance(label, str) or abs(label) > 2**53:
        return None
    return float(label)
