"""Columns of text as labels, numbers or times, depending on their use; no text changes its meaning."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adaptinf.claims.logs import readings as claims
from adaptinf.log.report import Reading
from adaptinf.log.validation.frame_columns import EXACT

Use = Literal["label", "context", "number", "text", "order", "flag"]
"""The use of a column: labels of arms, units or phases; contexts; numbers; outcomes that are labels; the
order of rows; booleans."""
MISSING = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that represent a missing value in a column of numbers, as empty text always does."""
NUMERAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
COMMA_NUMERAL = r"[-+]?([0-9]+,?[0-9]*|,[0-9]+)([eE][-+]?[0-9]+)?"
INFINITE = r"[-+]?([iI][nN][fF]|[iI][nN][fF][iI][nN][iI][tT][yY]|Infinity)"
FLAGS = ("True", "False", "TRUE", "FALSE", "true", "false")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+")
DOTTED = r"^\s*[-+]?[1-9][0-9]{0,2}\.[0-9]{3}\s*$"
"""Texts in which the point can separate thousands as well as decimals."""
_DOTTED = re.compile(DOTTED)
CODE = re.compile(r"0[0-9]+")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMERALS = {".": re.compile(NUMERAL), ",": re.compile(COMMA_NUMERAL)}
_INFINITE = re.compile(INFINITE)
LONGEST = 400
"""Number of characters in a number; Python does not read integers with more than 4,300."""
FEW = 10
"""Number of distinct integers that may be labels next to text, such as 0, 1, 2 and 3+."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Typed:
    """Interpretation of a text column: its type, the texts without a value, and remarks."""

    kind: Literal["text", "stripped", "whole", "float", "flag", "mixed"]
    missing: frozenset[str]
    readings: tuple[Reading, ...] = ()
    problems: tuple[str, ...] = field(default=())
    odd: tuple[str, ...] = field(default=())
    """Stripped texts affected by the problems, if these concern single cells."""


def typed(
    use: Use,
    name: str,
    counts: Mapping[str, int],
    decimal: str,
    missing_values: Collection[str] | None,
    keep: Collection[str] = (),
) -> Typed:
    """Interpretation of a column, from its distinct texts with their counts; those in `keep` are labels."""
    usual = frozenset(MISSING if missing_values is None else missing_values) - frozenset(keep)
    texts = {text: text.strip() for text in counts}
    present = [bare for bare in dict.fromkeys(texts.values()) if bare and bare not in usual]
    mark = decimal if use in ("number", "context") else "."
    numerals = [bare for bare in present if _is_number(bare, mark)]
    if use == "number":
        return Typed(_numbers(present, numerals), usual)
    if use == "flag":
        flags = bool(present) and all(bare in FLAGS for bare in present)
        return Typed("flag" if flags else "text", usual)
    if use in ("text", "order") or (present and len(numerals) == len(present)):
        # In a column of numbers, the usual texts for missing values cannot be labels.
        return _of_numerals(use, name, present, numerals, usual)
    given = usual if missing_values is not None else frozenset[str]()
    labels = [bare for bare in dict.fromkeys(texts.values()) if bare and bare not in given]
    truths = _flags(use, name, labels, given)
    if truths is not None:
        return truths
    odd = _among_numbers(labels, mark) if use == "context" else []
    problems = [_mixed(name, odd)] if odd else []
    told = [
        Reading("labels", claims.MISSING_TEXT(name=name, text=text, count=counts[text]))
        for text in counts
        if text.strip() in usual - given
    ]
    merged = _merged(name, numerals, False) if use == "label" else []
    return Typed("text", given, tuple(told), (*problems, *merged), tuple(odd))


def _is_number(bare: str, mark: str) -> bool:
    return bool(_NUMERALS[mark].fullmatch(bare) or _INFINITE.fullmatch(bare))


def number_of(bare: str, mark: str) -> float | int | None:
    """The number in a stripped text, an integer if written as one; None if it is not a number."""
    if len(bare) <= LONGEST and _WHOLE.fullmatch(bare):
        return int(bare)
    return float(bare.replace(mark, ".")) if _is_number(bare, mark) else None


def _numbers(present: Sequence[str], numerals: Sequence[str]) -> Any:
    if len(numerals) < len(present):
        return "flag" if all(bare in FLAGS for bare in present) else "mixed"
    return _numeric(numerals)


def _numeric(numerals: Sequence[str]) -> Any:
    """Integers if all numbers are integers of at most 64 bits; mixed if floats would lose digits of one."""
    wholes = [int(bare) for bare in numerals if len(bare) <= LONGEST and _WHOLE.fullmatch(bare)]
    if wholes and len(wholes) == len(numerals):
        return "whole" if all(-(2**63) <= value < 2**63 for value in wholes) else "mixed"
    return "mixed" if any(abs(value) > EXACT for value in wholes) else "float"


def _of_numerals(
    use: Use, name: str, present: Sequence[str], numerals: Sequence[str], missing: frozenset[str]
) -> Typed:
    """A column of numbers, or of labels that may be numbers; text if Python would write one differently."""
    numeric = bool(present) and len(numerals) == len(present)
    if use == "text" or not numeric:
        flags = use != "text" and bool(present) and all(bare in FLAGS for bare in present)
        bare = use == "text" and (numeric or all(each in FLAGS for each in present))
        problems = _one_truth(name, present) if flags else []
        return Typed("flag" if flags else "stripped" if bare else "text", missing, (), tuple(problems))
    problems = _merged(name, numerals, use == "order") if use in ("label", "order") else []
    rounded = _rounded(numerals) if use == "label" else []
    problems = [_told_rounded(name, rounded)] if rounded else problems
    codes = [bare for bare in numerals if CODE.fullmatch(bare)]
    odd = [bare for bare in numerals if not plainly_written(bare)] if use == "label" else []
    whole = all(bare.isdecimal() for bare in numerals)
    # Infinities are no labels, so the column contains numbers.
    infinite = any(_INFINITE.fullmatch(bare) for bare in numerals)
    kept = {"label": codes or odd, "context": codes if whole else [], "order": []}[use]
    large = use == "label" and _numeric(numerals) == "mixed"
    if (kept or large) and not infinite:
        told = claims.AS_WRITTEN(name=name, example=(kept or list(numerals))[0])
        return Typed("stripped", missing, (Reading("labels", told),), tuple(problems), tuple(rounded))
    kind = _numeric(numerals)
    return Typed(
        "text" if kind == "mixed" and use == "order" else kind, missing, (), tuple(problems), tuple(rounded)
    )


def _flags(use: Use, name: str, labels: Sequence[str], missing: frozenset[str]) -> Typed | None:
    """A column of booleans; None if it contains other values."""
    if not labels or not all(bare in FLAGS for bare in labels):
        return None
    odd = [bare for bare in labels if bare not in ("True", "False")]
    if use == "label" and odd:
        told = Reading("labels", claims.AS_WRITTEN(name=name, example=odd[0]))
        return Typed("stripped", missing, (told,), tuple(_one_truth(name, labels)))
    return Typed("flag", missing)


def _one_truth(name: str, labels: Sequence[str]) -> list[str]:
    """Booleans that are spelt in several ways, such as True and TRUE."""
    values: dict[str, list[str]] = {}
    for bare in labels:
        values.setdefault(bare.lower(), []).append(bare)
    return [one_label(name, texts) for texts in values.values() if len(texts) > 1][:1]


def _among_numbers(labels: Sequence[str], mark: str) -> list[str]:
    """The few texts among a context's numbers, which would turn all of its values into labels."""
    numerals = [bare for bare in labels if _is_number(bare, mark)]
    others = [bare for bare in labels if not _is_number(bare, mark)]
    fractions = any(not bare.lstrip("+-").isdigit() for bare in numerals)
    many = fractions or len(numerals) > FEW
    coded = any(CODE.fullmatch(bare) for bare in numerals)
    many &= not coded or not all(any(map(str.isdecimal, text)) for text in others)
    return others if numerals and len(others) < len(numerals) and many else []


def _mixed(name: str, odd: Sequence[str]) -> str:
    return (
        f"column {name!r} has text among its numbers, such as {odd[0]!r:.40}, and would be read as labels: "
        f"correct the text, leave missing values empty, or list the text in missing_values="
    )


def _merged(name: str, numerals: Sequence[str], order: bool) -> list[str]:
    """Labels that spell one number in several ways, such as 1 and 1.0."""
    # Whole numbers with and without leading zeros, such as 01 and 1, are different labels, except for
    # batches.
    spelt: dict[float | int | None, list[str]] = {}
    for bare in numerals:
        if len(bare) <= LONGEST:
            spelt.setdefault(number_of(bare, "."), []).append(bare)
    several = [
        texts for texts in spelt.values() if len(texts) > 1 and (order or not all(map(str.isdecimal, texts)))
    ]
    return [one_label(name, several[0])] if several else []


def _rounded(numerals: Sequence[str]) -> list[str]:
    """Labels written as floats so large that not every integer can be represented."""
    floats = [bare for bare in numerals if not _WHOLE.fullmatch(bare) and not _INFINITE.fullmatch(bare)]
    return [bare for bare in floats if abs(float(bare)) >= EXACT]


def _told_rounded(name: str, rounded: Sequence[str]) -> str:
    return (
        f"column {name!r} contains {rounded[0]!r:.40}: floats of this size cannot represent every whole "
        f"number, so different labels may have been merged; write the column again from its source, as "
        f"whole numbers or as text"
    )


def one_label(name: str, texts: Sequence[str]) -> str:
    """Describe a problem: texts in a column would become one label."""
    shown = " and ".join(map(repr, texts[:_SHOWN]))
    return (
        f"column {name!r} contains {shown}, which would become one label: spell each label in one way, or "
        "read the file with pandas and dtype=str"
    )


def plainly_written(bare: str) -> bool:
    """Whether Python would write a number in this way."""
    if len(bare) > LONGEST or _INFINITE.fullmatch(bare):
        return False
    return (
        bool(_PLAIN.fullmatch(bare)) and bare != "-0" if _WHOLE.fullmatch(bare) else bare == repr(float(bare))
    )


def decimal_mark(
    columns: Mapping[str, Collection[str]], given: str | None, sep: str
) -> tuple[str, list[Reading], list[str]]:
    """The decimal mark in columns of numbers, from their distinct texts, with remarks or problems.

    Points between thousands are possible in files separated by semicolons, as are decimal commas.
    """
    if given is not None:
        return given, [], []
    texts = [(name, text.strip()) for name, found in columns.items() for text in found]
    commas = [(name, bare) for name, bare in texts if "," in bare and _NUMERALS[","].fullmatch(bare)]
    points = [(name, bare) for name, bare in texts if "." in bare and _NUMERALS["."].fullmatch(bare)]
    if points or not commas:
        unclear = sep == ";" and all(_DOTTED.fullmatch(bare) for _, bare in points)
        names = {name for name, _ in points}
        long = any(name in names and len(bare.lstrip("+-")) > 3 and bare.isdecimal() for name, bare in texts)
        return ".", [], _ambiguous(points, ".") if unclear and not long else []
    if all(_GROUPED.fullmatch(bare) for _, bare in commas):
        return ".", [], _ambiguous(commas, ",")
    name, bare = next((name, bare) for name, bare in commas if not _GROUPED.fullmatch(bare))
    return ",", [Reading("dialect", claims.DECIMAL_COMMA(example=bare, name=name))], []


def _ambiguous(texts: Sequence[tuple[str, str]], mark: str) -> list[str]:
    """A problem with numbers whose mark separates decimals or thousands; texts with their columns."""
    return [
        f"column {name!r} contains {bare!r}, which can mean {bare.replace(mark, '.')} or "
        f"{bare.replace(mark, '')}: set decimal={mark!r} for the first meaning"
        for name, bare in texts[:1]
    ]
