"""Two records side by side: every place in which they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

MISSING = "(missing)"


def differences(old: Any, new: Any, rtol: float, place: str = "") -> Iterator[str]:
    """One line for each difference; numbers may differ by `rtol` of the larger one."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            here = f"{place} > {key}" if place else str(key)
            yield from differences(old.get(key, MISSING), new.get(key, MISSING), rtol, here)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from differences(first, second, rtol, f"{place}[{position}]")
    elif not _same(old, new, rtol):
        yield f"{place}: {_shown(old, new)}"


def _same(old: Any, new: Any, rtol: float) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        if math.isnan(old) or math.isnan(new):
            return math.isnan(old) and math.isnan(new)
        return old == new or abs(old - new) <= rtol * max(abs(old), abs(new))
    return type(old) is type(new) and bool(old == new)


def _shown(old: Any, new: Any) -> str:
    """Both values; of long texts the part from the first difference on."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return f"{old!r:.300} is now {new!r:.300}"
    pairs = zip(old, new, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
    start = max(0, first - 40)
    return f"{old[start : first + 200]!r} is now {new[start : first + 200]!r} (from character {first})"
