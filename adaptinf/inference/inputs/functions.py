"""What a formula may call: transforms of formulaic, and functions of NumPy for columns of numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from adaptinf.inference.inputs.sizes import ARGUMENT_SIZES

_UNARY = """
abs absolute fabs sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin
arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc rint deg2rad rad2deg isfinite isnan
logical_not
"""
_BINARY = "power minimum maximum fmin fmax arctan2 hypot mod fmod logical_and logical_or logical_xor"
_SUMMARIES = "mean median min max std var"
_PLAIN = "log log10 log2 exp exp2 exp10"
_TRANSFORMS = "C I bs cc center cr cs hashed lag poly scale standardize Poly Sum Helmert Diff Treatment"
_CODINGS = "treatment sum helmert diff poly SAS custom"
_NO_KEYWORDS = {"hash_func", "output"}


@dataclass(frozen=True, slots=True)
class Function:
    """What is called by a name, how many arguments it takes by position, and which by keyword."""

    call: Callable[..., Any]
    least: int
    most: int
    keywords: frozenset[str] = frozenset()

    @property
    def keeps_state(self) -> bool:
        """Whether it remembers the statistics of the columns that it first saw."""
        return getattr(self.call, "__is_stateful_transform__", False)

    @property
    def has_sizes(self) -> bool:
        """Whether it takes whole numbers that its time and memory grow with."""
        return bool(self.keywords & ARGUMENT_SIZES.keys())

    def problems(self, name: str, positional: int, keywords: list[str]) -> list[str]:
        """What is wrong with its arguments."""
        found = [f"{name} has no argument {key!r}" for key in keywords if key not in self.keywords]
        if not self.least <= positional + len(keywords) or positional > self.most:
            span = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            found.append(f"{name} takes {span} arguments, got {positional + len(keywords)}")
        return found


@cache
def functions() -> dict[str, Function]:
    """Everything that can be called, by name."""
    from formulaic.transforms import TRANSFORMS

    plain = {name: Function(TRANSFORMS[name], 1, 1) for name in _PLAIN.split()}
    numpy = {f"np.{name}": Function(getattr(np, name), 1, 1) for name in _UNARY.split()}
    numpy |= {f"np.{name}": Function(getattr(np, name), 2, 2) for name in _BINARY.split()}
    numpy |= {f"np.{name}": Function(getattr(np, name), 1, 1, _degrees(name)) for name in _SUMMARIES.split()}
    numpy |= {"np.where": Function(np.where, 3, 3), "np.clip": Function(np.clip, 3, 3)}
    numpy["np.round"] = Function(np.round, 1, 2)
    own = {name: _described(TRANSFORMS[name]) for name in _TRANSFORMS.split()}
    codings = {f"contr.{name}": _described(getattr(TRANSFORMS["contr"], name)) for name in _CODINGS.split()}
    return {**plain, **own, **codings, **numpy, "Q": Function(str, 1, 1)}


@cache
def values() -> dict[str, Any]:
    """Everything that can be named without being called, but for columns."""
    from formulaic.transforms import TRANSFORMS

    codings = {f"contr.{name}": getattr(TRANSFORMS["contr"], name) for name in _CODINGS.split()}
    codings |= {name: TRANSFORMS[name] for name in ("Poly", "Sum", "Helmert", "Diff")}
    return {**codings, "np.pi": np.pi, "np.e": np.e, "np.inf": np.inf}


def _degrees(name: str) -> frozenset[str]:
    return frozenset({"ddof"} if name in ("std", "var") else ())


def _described(call: Callable[..., Any]) -> Function:
    """A transform with the arguments that it shows; what begins with an underscore is formulaic's own."""
    known = [
        one
        for one in inspect.signature(call).parameters.values()
        if not one.name.startswith("_") and one.name not in _NO_KEYWORDS
    ]
    by_position = [one for one in known if one.kind is not one.KEYWORD_ONLY]
    needed = sum(one.default is one.empty for one in by_position)
    return Function(call, needed, len(by_position), frozenset(one.name for one in known))
