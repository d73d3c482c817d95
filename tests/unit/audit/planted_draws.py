"""Faults in what draws the noise of live sessions and trials."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planting import changed, replaced

from adaptinf.privacy.release import discrete_gaussian
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import draw_node
from adaptinf.trial import trial_noise as nodes


class _Noted:
    """Coins that note the first number they gave."""

    def __init__(self, coins: Any) -> None:
        self._coins, self.first = coins, None

    def random(self) -> float:
        number = self._coins.random()
        self.first = number if self.first is None else self.first
        return float(number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coins, name)


@contextmanager
def coin_signs_noise() -> Iterator[None]:
    """The number that decided on an override gives the next noise its sign."""
    choose, learn = Session._choose, Session._learn
    coin: list[float | None] = [None]

    def choosing(self: Session, context: Any) -> int:
        coins, self._coins = self._coins, _Noted(self._coins)  # type: ignore[assignment]
        try:
            return choose(self, context)
        finally:
            self.noted = self._coins.first  # type: ignore[attr-defined]
            self._coins = coins

    def learning(self: Session, step: int, reward: float) -> None:
        coin[0] = getattr(self, "noted", None)
        try:
            learn(self, step, reward)
        finally:
            coin[0] = None

    def drawn(name: str, scale: float) -> int:
        units = draw_node(name, scale)
        return units if coin[0] is None else int(math.copysign(units, 0.5 - coin[0]))

    with changed(Session, _choose=choosing, _learn=learning), replaced(draw_node, drawn):
        yield


@contextmanager
def normal_for_laplace() -> Iterator[None]:
    """A trial's nodes are discrete normal of the same variance; a session's are right."""

    def drawn(name: str, scale: float) -> int:
        return int(discrete_gaussian(math.sqrt(2.0) * scale, 1)[0])

    with changed(nodes, draw_node=drawn):
        yield


@contextmanager
def keyed_by_name() -> Iterator[None]:
    """A trial's noise follows from the name of its file and that of the node."""
    call, names = nodes.Nodes.__call__, [""]

    def calling(self: Any, name: str, scale: float) -> int:
        names[0] = Path(self._path).stem
        return call(self, name, scale)

    def drawn(name: str, scale: float) -> int:
        for number in itertools.count():
            bits = hashlib.sha256(f"{names[0]}|{name}|{number}".encode()).digest()
            uniform = (int.from_bytes(bits[:16], "big") + 0.5) / 2.0**128
            size = math.floor(-scale * math.log(uniform))
            if size > 0 or bits[16] < 128:  # 0 has one sign
                return -size if bits[16] >= 128 else size
        raise AssertionError

    with changed(nodes.Nodes, __call__=calling), changed(nodes, draw_node=drawn):
        yield


@contextmanager
def one_draw_an_epoch() -> Iterator[None]:
    """The draws of an epoch are remembered by their scale: all its arms get the same one."""
    begin, known = Session.__init__, dict[tuple[str, float], int]()

    def beginning(self: Session, *how: Any) -> None:
        known.clear()
        begin(self, *how)

    def drawn(name: str, scale: float) -> int:
        key = name.partition(", ")[2], scale
        if key not in known:
            known.clear()
            known[key] = draw_node(name, scale)
        return known[key]

    with changed(Session, __init__=beginning), replaced(draw_node, drawn):
        yield
