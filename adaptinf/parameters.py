"""Constraints on arguments: declared by field or in a call, checked together, reported in one error."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, TypeAlias, get_args

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray

SMALLEST, LARGEST = 1e-30, 1e100
_MOST = 2**53

Constraint: TypeAlias = Callable[[str, Any], list[str]]
"""A constraint takes the name and value of an argument and returns problems, one sentence for each."""


def check(subject: str, /, also: Iterable[str] = (), **declared: tuple[Any, Constraint]) -> None:
    """Raise one error with the problems of all arguments, given as name=(value, constraint), then others."""
    refuse(subject, [*problems_of(**declared), *also])


def problems_of(**declared: tuple[Any, Constraint]) -> list[str]:
    """Problems with arguments given as name=(value, constraint), in order."""
    return [problem for name, (value, constraint) in declared.items() for problem in constraint(name, value)]


def refuse(subject: str, problems: Iterable[str]) -> None:
    """Raise one error with all problems, if there are any."""
    if listed := list(problems):
        raise ParameterError(subject, listed)


def check_fields(parameters: Any, also: Callable[[], list[str]] = list, first: str = "") -> None:
    """Check the fields of a dataclass against their constraints, `first` before the others, then `also`.

    Numbers are converted to Python's own types, which are printed and divided as expected.
    """
    kind: Any = type(parameters)
    declared = {name: (getattr(parameters, name), each) for name, each in _field_constraints(kind).items()}
    if first:
        declared = {first: declared.pop(first), **declared}
    check(kind.__name__, also=problems_of(**declared) + also())
    for field in dataclasses.fields(parameters):
        value: Any = getattr(parameters, field.name)
        if not isinstance(value, bool) and isinstance(value, Real):
            plain = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(parameters, field.name, plain)


@cache
def _field_constraints(kind: type) -> dict[str, Constraint]:
    """Constraints on the fields of a dataclass, from `Annotated` types and from their unions with None."""
    found: dict[str, Constraint] = {}
    for base in reversed(kind.__mro__):
        try:
            hints = inspect.get_annotations(base, eval_str=True)
        except NameError:
            # A user's class may annotate fields with names that are imported for type checking only.
            continue
        found |= {name: constraint for name, hint in hints.items() if (constraint := _annotated(hint))}
    return {field.name: found[field.name] for field in dataclasses.fields(kind) if field.name in found}


def _annotated(hint: Any) -> Constraint | None:
    if direct := getattr(hint, "__metadata__", ()):
        own: Constraint = direct[0]
        return own
    return next(
        (OrNone(part.__metadata__[0]) for part in get_args(hint) if hasattr(part, "__metadata__")), None
    )


@dataclasses.dataclass(frozen=True)
class Number:
    """A number in [low, high], or (low, high].

    If there is no upper end, sizes whose squares or inverses are outside the range of floats are also
    refused.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = dataclasses.field(default=False, kw_only=True)

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        low, high = self.low, self.high
        if low == -math.inf and high == math.inf:
            span = "that is finite"
        else:
            span = f"{'above' if self.open_low else 'at least'} {low:g}"
            span += f" and at most {high:g}" if high < math.inf else ""
        if isinstance(value, bool) or not isinstance(value, Real):
            return [f"{name} must be a number {span}, got {value!r:.60}"]
        size = _as_float(value)
        span = span.removeprefix("that is ")
        if not ((size > low if self.open_low else size >= low) and size <= high):
            return [f"{name} must be {span}, got {size!r}"]
        if high == math.inf and abs(size) > LARGEST:
            return [f"{name} must be {span}, and at most {LARGEST:g} in absolute value, got {size!r}"]
        if self.open_low and low == 0.0 and high == math.inf and size < SMALLEST:
            return [f"{name} must be {span}, and at least {SMALLEST:g}, got {size!r}"]
        return []


def check_alpha(subject: str, alpha: object) -> None:
    """Refuse an alpha that is not between 0 and 0.5."""
    refuse(subject, alpha_problems(alpha))


def alpha_problems(alpha: object) -> list[str]:
    """List problems with an alpha, which must lie between 0 and 0.5."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0.0 < float(alpha) < 0.5:
        return [f"alpha must be between 0 and 0.5 (0.05 gives 95% intervals), got {alpha!r}"]
    return []


@dataclasses.dataclass(frozen=True)
class Count:
    """An integer from `low` to `high`, by default the largest up to which floats are exact."""

    low: int = 1
    high: int = _MOST

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        # NumPy's durations are subclasses of its integers.
        whole = isinstance(value, Integral) and not isinstance(value, (bool, np.timedelta64))
        if whole and self.low <= int(value) <= self.high:
            return []
        if self.high < _MOST:
            span = f"from {self.low:,} to {self.high:,}"
        else:
            span = "of at most 2^53" if whole and value > _MOST else f"of at least {self.low}"
        return [f"{name} must be a whole number {span}, got {value!r:.60}"]


class OneOf:
    """One of some names."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        if isinstance(value, str) and value in self.choices:
            return []
        return [unlisted(name, self.choices, value)]


@dataclasses.dataclass(frozen=True)
class Is:
    """A value that passes a test, or has a type; `what` describes it in words."""

    test: type | Callable[[Any], bool]
    what: str
    shown: bool = True

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        kind = self.test
        accepted = isinstance(value, kind) if isinstance(kind, type) else kind(value)
        got = f", got {value!r:.60}" if self.shown else ""
        return [] if accepted else [f"{name} must be {self.what}{got}"]


@dataclasses.dataclass(frozen=True)
class OrNone:
    """None, or a value that a constraint accepts."""

    constraint: Constraint

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        return [] if value is None else self.constraint(name, value)


class Each:
    """Two constraints applied in turn; the first that fails reports the problem."""

    def __init__(self, *constraints: Constraint) -> None:
        self.constraints = constraints

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        return next((found for each in self.constraints if (found := each(name, value))), [])


class Callee:
    """A function that can be called with these arguments by position."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def __call__(self, name: str, value: Any) -> list[str]:
        """Problems with the value."""
        listed = self.arguments
        try:
            inspect.signature(value).bind(*listed)
        except TypeError as error:
            return [f"{name} is called with {len(listed)} arguments, ({', '.join(listed)}): {error}"]
        except ValueError:  # Some built-in functions have no signature.
            return []
        return []


def _jobs(name: str, value: Any) -> list[str]:
    return [] if value == -1 else COUNT(f"{name}, if not -1,", value)


def _is_seed(value: Any) -> bool:
    known = value is None or isinstance(value, (np.random.SeedSequence, np.random.Generator))
    return known or (not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0)


def open_share(because: str = "") -> Constraint:
    """Constraint: a number strictly between 0 and 1, with the reason why it cannot be 1."""
    return Each(SHARE, Is(lambda share: share < 1.0, f"below 1{because}", shown=False))


FINITE, NON_NEGATIVE, POSITIVE = Number(), Number(0.0), Number(0.0, open_low=True)
UNIT, SHARE = Number(0.0, 1.0), Number(0.0, 1.0, open_low=True)
DELTA = Each(NON_NEGATIVE, Is(lambda delta: delta < 1.0, "below 1"))
OPEN_SHARE = open_share()
COUNT = Count()
CALIBRATION = OneOf("corrected", "published")
BOOLEAN, FLAG = Is(bool, "True or False"), OrNone(Is(bool, "True, False or None"))
JOBS: Constraint = _jobs
SEED = Is(_is_seed, "a whole number of at least 0, a SeedSequence, a Generator or None")

Finite: TypeAlias = Annotated[float, FINITE]
NonNegative: TypeAlias = Annotated[float, NON_NEGATIVE]
Positive: TypeAlias = Annotated[float, POSITIVE]
Unit: TypeAlias = Annotated[float, UNIT]
Share: TypeAlias = Annotated[float, SHARE]
Whole: TypeAlias = Annotated[int, COUNT]
Calibration: TypeAlias = Annotated[str, CALIBRATION]


def number_array(values: Any) -> FloatArray | None:
    """Values as an array of floats; None if they are not numbers in rows of equal length."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and not all(isinstance(entry, Real) for entry in array.flat):
            return None
        return array.astype(np.float64) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
