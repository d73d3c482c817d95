"""How a fault is planted in the library itself, for as long as a block lasts, and what is said of it.

The library is changed where it runs: a function is bound to another one wherever the package uses it, a
stepper of live sessions is one of a class below, or a module of kernels is executed again with some of its
functions replaced, and compiled afresh. The audits are never touched.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import adaptinf
import adaptinf.audit
import adaptinf.log.public
import adaptinf.trial.live_trial  # all that binds what is replaced has to be there before
from adaptinf.sessions.steppers import ReleaseStepper, SumsStepper

Plant = Callable[[], AbstractContextManager[None]]

DEPENDENT = "dependent noise"
TAILS = "cut tails, conditioned draws, atoms"
LATTICES = "lattices, rounding"
DECIDED = "data decide how much is released"
LIVE = "live path"
BESIDE = "outputs beside the releases"

_EXECUTED: list[ModuleType] = []
"""Modules that were executed again: Numba's code must not go while anything may call it."""


@dataclass(frozen=True)
class Fault:
    """A fault: its class, what it does and why it leaks, in words; where, and in which design.

    Attributes
    ----------
    kind, does, leaks : str
        In words.
    plant : callable
        Makes the context in which the library has the fault.
    design : callable
        Makes the design that is audited.
    live : bool
        Whether the fault is in sessions, trials or what they publish, and not in simulations.
    trial : mapping
        What `Trial.create` is told of the trial whose noise is tested: arms, features and so on; without
        ``horizon`` there is none.
    """

    kind: str
    does: str
    leaks: str
    plant: Plant
    design: Callable[[], Any]
    live: bool = True
    trial: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def replaced(original: Any, planted: Any) -> Iterator[None]:
    """Bind every name in the package that is bound to one object to another one."""
    places = _bound(original)
    assert places, f"nothing is bound to {original!r}"
    for module, name in places:
        setattr(module, name, planted)
    try:
        yield
    finally:
        for module, name in _bound(planted):
            setattr(module, name, original)


def _bound(wanted: Any) -> list[tuple[ModuleType, str]]:
    own = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == adaptinf.__name__]
    return [(module, name) for module in own for name, value in list(vars(module).items()) if value is wanted]


@contextmanager
def changed(owner: Any, **attributes: Any) -> Iterator[None]:
    """Set attributes of a class or a module."""
    before = {name: inspect.getattr_static(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextmanager
def recompiled(module: str, **kernels: Any) -> Iterator[ModuleType]:
    """Execute a module of kernels again, some of them replaced, and let the package call what comes of it.

    Its classes stay the package's own; nothing that is compiled here is kept on disk.
    """
    right = importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(module, Path(str(right.__file__)))
    assert spec is not None
    assert spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    _EXECUTED.append(fresh)
    for name, value in vars(right).items():
        if isinstance(value, type):
            setattr(fresh, name, value)
    for name, kernel in kernels.items():
        assert hasattr(right, name), f"{module} has no {name}"
        setattr(fresh, name, kernel)
    own = [name for name, value in vars(right).items() if _is_own(value, module)]
    pairs = [(getattr(right, name), getattr(fresh, name)) for name in own]
    for _, made in pairs:
        if isinstance(made, Dispatcher):
            made._cache = NullCache()
    places = [(place, name, made) for original, made in pairs for place, name in _bound(original)]
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    for place, name, made in places:
        setattr(place, name, made)
    try:
        yield fresh
    finally:
        for place, name, original in before:
            setattr(place, name, original)


def _is_own(value: Any, module: str) -> bool:
    """Whether a function, compiled or not, is defined in a module."""
    return isinstance(value, (FunctionType, Dispatcher)) and value.__module__ == module


class Faulty(ReleaseStepper):
    """The stepper of live sessions, whose noise passes through `drawn`; `held` is remembered by trials."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self.held: dict[str, Any] = {}
        self.given, self._draw = self._draw, self.drawn

    def drawn(self, name: str, scale: float) -> float:
        """The noise of a node, as the kernels get it."""
        return self.given(name, scale)

    def memory(self, fresh: Any) -> dict[str, Any]:
        return {**super().memory(fresh), "held": self.held}

    def kept(self) -> dict[str, Any] | None:
        kernels = super().kept()
        return None if kernels is None else {**kernels, "held": deepcopy(self.held)}

    def remember(self, memory: dict[str, Any]) -> None:
        super().remember(memory)
        self.held = memory["held"]


class FaultySums(Faulty, SumsStepper):
    """The same for designs that add up outside of their kernels."""


def live(stepper: type[ReleaseStepper]) -> AbstractContextManager[None]:
    """Let every live session that is opened have this stepper."""
    return replaced(SumsStepper if issubclass(stepper, SumsStepper) else ReleaseStepper, stepper)
