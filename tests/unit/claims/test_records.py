"""Every claim of the room: its kind is known, what it names exists, its sentence and phrases stand once."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

import adaptinf
from adaptinf import claims
from adaptinf.claims import Claim, Part
from adaptinf.claims.claim import Kind
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.sums_profile import SumsProfile

ROOT = Path(adaptinf.__file__).parent


def listed(value: Any) -> Iterator[Claim | Part]:
    """The claims and places in a value of a module, itself or in lists, tables and records of them."""
    if isinstance(value, (Claim, Part)):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from listed(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from listed(one)


def everything() -> dict[str, Claim | Part]:
    """Every claim and place of the room, each once, by the module and the name that it is first met under."""
    found: dict[int, tuple[str, Claim | Part]] = {}
    for module in pkgutil.walk_packages(claims.__path__, "adaptinf.claims."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for place, one in enumerate(listed(value)):
                label = f"{module.name.removeprefix('adaptinf.claims.')}.{name}"
                found.setdefault(id(one), (f"{label}.{place}" if one is not value else label, one))
    return dict(found.values())


ALL = everything()
CLAIMS = {name: one for name, one in ALL.items() if isinstance(one, Claim)}


def resolves(path: str) -> bool:
    """Whether a dotted path below adaptinf leads to a module, or something in one."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["adaptinf", *parts[:size]]))
        except ModuleNotFoundError:
            continue
        for name in parts[size:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def attributes_in(path: Path) -> Iterator[str]:
    """What the classes of a file define, and what their methods set on `self`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        for one in ast.walk(node):
            if isinstance(one, ast.FunctionDef):
                yield one.name
            elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                yield one.target.id
            elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                yield one.attr
        for line in node.body:
            if isinstance(line, ast.Assign):
                yield from (target.id for target in line.targets if isinstance(target, ast.Name))


def asks_for_claims(path: Path) -> bool:
    """Whether a file may have a class that claims are read with: one of facts, or one that reads claims."""
    return (
        path.stem.endswith("facts")
        or path.parent.name == "facts"
        or "adaptinf.claims import" in path.read_text("utf-8")
    )


@functools.cache
def facts() -> frozenset[str]:
    """Attributes of all classes that claims may be read with."""
    return frozenset(
        name
        for path in sorted(ROOT.rglob("*.py"))
        if (path.stem == "facts" or "claims" not in path.relative_to(ROOT).parts) and asks_for_claims(path)
        for name in attributes_in(path)
    )


PROFILES = (LogProfile, SumsProfile)


def is_fact(path: str) -> bool:
    """Whether a facts object can be asked for it: of a log's profile where it begins so.

    A path in the room of logs leads to a function, although facts have a `log`, too.
    """
    first, *rest = path.split(".")
    if first == "log" and rest:
        return False
    if first == "profile" and rest:
        return any(hasattr(kind, rest[0]) for kind in PROFILES) or rest[0] in ("log", "sums")
    return first in facts() or any(hasattr(kind, first) for kind in PROFILES)


def test_there_are_claims() -> None:
    assert len(CLAIMS) > 50
    assert {"profile", "arms"} <= facts() | {name.split(".")[0] for name in CLAIMS}


@pytest.mark.parametrize("name", ALL)
def test_what_a_claim_is_for_is_known(name: str) -> None:
    assert ALL[name].kind in get_args(Kind)


@pytest.mark.parametrize("name", ALL)
def test_its_fact_exists(name: str) -> None:
    fact = ALL[name].fact
    assert is_fact(fact) or resolves(fact), fact


def test_facts_that_do_not_exist_are_seen() -> None:
    assert resolves("inference.validity.profile.LogProfile.context_refusal")
    assert not resolves("inference.validity.profile.LogProfile.none_such")
    assert not resolves("inference.none_such")
    assert is_fact("profile.repeated_units")
    assert not is_fact("profile.none_such")
    assert not is_fact("none_such")


@pytest.mark.parametrize("name", [name for name, one in CLAIMS.items() if one.check])
def test_what_a_log_is_asked_of_an_assumption_exists(name: str) -> None:
    claim = CLAIMS[name]
    assert claim.kind == "assumes"
    assert is_fact(claim.check), claim.check


@pytest.mark.parametrize("name", CLAIMS)
def test_its_sentence_can_be_filled(name: str) -> None:
    sentence = CLAIMS[name].sentence
    fields = [field for _, field, _, _ in string.Formatter().parse(sentence) if field is not None]
    assert all(field.isidentifier() for field in fields), fields
    assert sentence.strip()


def test_no_sentence_stands_in_two_claims() -> None:
    found = defaultdict(list)
    for name, claim in CLAIMS.items():
        found[claim.sentence].append(name)
    assert [names for names in found.values() if len(names) > 1] == []


LENGTH, MOST = 5, 20
"""Words in a phrase, and phrases that may stand in two sentences or more."""


def phrases(sentence: str) -> set[str]:
    """The phrases of a sentence, none of which spans a placeholder."""
    found = set()
    for part, *_ in string.Formatter().parse(sentence):
        words = re.findall(r"[\w'-]+", part.lower())
        found |= {" ".join(words[k : k + LENGTH]) for k in range(len(words) - LENGTH + 1)}
    return found


def repeated(sentences: Iterable[str]) -> list[str]:
    """Phrases that stand in more than one of the sentences."""
    found: defaultdict[str, int] = defaultdict(int)
    for sentence in sentences:
        for phrase in phrases(sentence):
            found[phrase] += 1
    return sorted(phrase for phrase, count in found.items() if count > 1)


def test_phrases_that_stand_twice_are_seen() -> None:
    one = "Arm {arm} has only one reward, so its error is unknown."
    assert phrases("Only {n} words; these five words count.") == {"words these five words count"}
    assert repeated([one, "{term}: only one reward, so its error is 0"]) == [
        "one reward so its error",
        "only one reward so its",
        "reward so its error is",
    ]
    assert repeated([one]) == []


def test_few_phrases_stand_in_two_claims() -> None:
    """Claims that share one state a fact twice: use one claim, or make the phrase a claim of its own."""
    found = repeated(claim.sentence for claim in CLAIMS.values())
    assert len(found) <= MOST, found
