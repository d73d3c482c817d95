"""Codes of kits: generated in random order, and checked so that they do not reveal the arm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random, SystemRandom
from typing import Any

import numpy as np

from adaptinf.parameters import SEED, Count, Is, check
from adaptinf.sessions.participants import plain
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.spelling import reads_as
from adaptinf.texts import several, shown
from adaptinf.typing import RandomSource

_SIGNS = "0123456789"
_SHORTEST, _LONGEST, _SHOWN = 4, 40, 5
_ROOM = 10
"""Smallest ratio of possible codes to required ones at which codes cannot be guessed."""
_NAMED = 3
"""An arm's label that is at least this long must not occur in codes."""
_CHANCE = 1e-4
"""Codes are refused if the probability that shuffled codes follow such a pattern is smaller than this."""
_LENGTH = Count(_SHORTEST)
_KITS = Is(
    lambda kits: isinstance(kits, Mapping) and not any(Count(0)("", one) for one in kits.values()),
    "a dict of the number of kits for each arm",
)


def kit_codes(
    kits: Mapping[Any, int], length: int = 6, *, taken: Iterable[str] = (), rng: RandomSource | None = None
) -> dict[str, Any]:
    """Codes for kits that are to be packed and labelled, in an order that does not reveal the arm.

    Parameters
    ----------
    kits : dict
        Number of kits of each arm.
    length : int
        Number of digits of each code, at least 4.
    taken : iterable of str
        Codes that exist already.
    rng : int, SeedSequence or Generator, optional
        Source of randomness, by default the system's cryptographic source. Anyone who knows a seed knows the
        arm of every kit, so seeds are for tests only.

    Returns
    -------
    dict
        The arm of each code, sorted by code. Only those who pack the kits should have this table.

    Raises
    ------
    ParameterError
        If an argument is out of range, or there are too few codes of this length.

    Examples
    --------
    >>> from adaptinf.trial import kit_codes
    >>> kit_codes({"drug": 2, "placebo": 2}, rng=1)
    {'005746': 'drug', '265084': 'drug', '880013': 'placebo', '944392': 'placebo'}
    """
    check("kit_codes", kits=(kits, _KITS), length=(length, _LENGTH), rng=(rng, SEED))
    known = set(taken)
    arms = [plain(arm) for arm, number in kits.items() for _ in range(number)]
    most = len(_SIGNS) ** length
    few = f"length must be larger: the {most:,} codes of {length} digits are too few for {len(arms):,} kits"
    check("kit_codes", [few] if most < _ROOM * (len(arms) + len(known)) else [])
    draw = SystemRandom() if rng is None else _seeded(rng)
    codes: set[str] = set()
    while len(codes) < len(arms):
        code = f"{draw.randrange(most):0{length}d}"
        codes |= {code} - known
    draw.shuffle(arms)
    return dict(zip(sorted(codes), arms, strict=True))


def _seeded(rng: RandomSource) -> Random:
    words = np.random.default_rng(rng if isinstance(rng, np.random.Generator) else seed_sequence(rng))
    return Random(int(words.integers(0, 2**63)))


def form_problems(codes: Sequence[Any], taken: Iterable[str]) -> list[str]:
    """Problems with the form of new codes, given the existing ones."""
    before = list(taken)
    wrong = [code for code in codes if not _is_code(code)]
    if wrong:
        few = several([repr(code)[:_LONGEST] for code in wrong], _SHOWN)
        return [
            f"codes of kits must be text of {_SHORTEST} to {_LONGEST} letters, digits or hyphens, got {few}"
        ]
    problems = []
    lengths = sorted({len(code) for code in [*before, *codes]})
    if len(lengths) > 1:
        problems.append(
            f"all codes of kits must have the same length, got lengths {', '.join(map(str, lengths))}"
        )
    looks = Counter(look(code) for code in codes) + Counter({look(code): 1 for code in before})
    twice = [code for code in codes if looks[look(code)] > 1]
    if twice:
        problems.append(
            f"codes of kits must be unique, also without regard to case: {several(twice, _SHOWN)}"
        )
    return problems


def look(code: str) -> str:
    """The form of a code, which is the same for two codes that could be confused."""
    return reads_as(code).lower()


def _is_code(code: Any) -> bool:
    fits = isinstance(code, str) and _SHORTEST <= len(code) <= _LONGEST
    return fits and code.isascii() and code.replace("-", "").isalnum()


def telling_problems(arm_of: Mapping[str, Any]) -> list[str]:
    """Why codes reveal arms: through a label, through one character, or through their order."""
    labels = {str(arm).casefold() for arm in arm_of.values()}
    for label in sorted(labels):
        if len(label) >= _NAMED and any(label in code.casefold() for code in arm_of):
            return [f"codes of kits must not contain the label of an arm, {shown(label)}"]
    codes = sorted(arm_of)
    arms = [arm_of[code] for code in codes]
    shortest = min(map(len, codes), default=0)
    features = [[code[place] for code in codes] for place in range(shortest)]
    features.append([str(int(code[-1], 36) % 2) if code[-1] != "-" else code[-1] for code in codes])
    patterns = [f"character {place + 1} of the code" for place in range(shortest)] + [
        "the parity of the last character"
    ]
    told = [
        name for name, feature in zip(patterns, features, strict=True) if _tells(feature, arms, len(features))
    ]
    if _in_blocks(arms, len(features)):
        told.append("the order of the codes")
    return [f"{several(told, 1)} reveals the arm: shuffle the codes, as kit_codes does"] if told else []


def _tells(feature: Sequence[str], arms: Sequence[Any], patterns: int) -> bool:
    """Whether a feature determines the arm, which is very unlikely for shuffled codes."""
    found: dict[str, Any] = {}
    if any(found.setdefault(sign, arm) != arm for sign, arm in zip(feature, arms, strict=True)):
        return False
    # At most so many of all equally likely arrangements give one arm to each sign.
    ways = len(found) * math.log(len(set(arms)))
    return ways - _log_arrangements(arms) < math.log(_CHANCE / patterns)


def _in_blocks(arms: Sequence[Any], patterns: int) -> bool:
    """Whether the codes of each arm follow one another, which is very unlikely for shuffled codes."""
    changes = sum(one != other for one, other in pairwise(arms))
    if changes >= len(set(arms)):
        return False
    return math.lgamma(len(set(arms)) + 1) - _log_arrangements(arms) < math.log(_CHANCE / patterns)


def _log_arrangements(arms: Sequence[Any]) -> float:
    """Logarithm of the number of different orders of the arms."""
    counts = Counter(arms).values()
    return math.lgamma(len(arms) + 1) - sum(math.lgamma(count + 1) for count in counts)
