"""Faults between the sampler of exact noise and the sums that it hides: how draws come about and are used."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from planting import Faulty, changed, live, replaced

from adaptinf.designs.arms import elimination_kernel
from adaptinf.designs.base import Stepwise
from adaptinf.designs.contextual import linear_noise as whole
from adaptinf.designs.contextual import private_conse_kernel as private_kernel
from adaptinf.designs.stopping.stopping_rules import StoppingRule
from adaptinf.privacy.noise import Buffer
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.privacy.tree_sums import next_total
from adaptinf.sessions.steppers import Draw, ReleaseStepper, draw_node, unit_scale
from adaptinf.simulation.run import SCALARS
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.live_trial import Trial

_TRIES = 30
_FARTHEST = 4.0
_ONE_OF = 12
_AHEAD, _BITS = 64, 128
_FILLED = 1_024


@contextmanager
def between(change: Callable[[Draw], Draw]) -> Iterator[None]:
    """Let what a source gives, OpenDP or an audit, be changed before a session or a journal has it."""
    begin: Any = ReleaseStepper.__init__
    open_file = nodes.Nodes.__init__

    def beginning(self: Any, *how: Any) -> None:
        *terms, draw = how
        begin(self, *terms, draw if isinstance(draw, nodes.Nodes) else change(draw))

    def opening(self: Any, path: str, draw: Draw | None = None) -> None:
        open_file(self, path, change(draw or draw_node))

    with changed(ReleaseStepper, __init__=beginning), changed(nodes.Nodes, __init__=opening):
        yield


def places(name: str) -> list[int]:
    """The numbers in the name of a node."""
    return [int(part.rsplit(" ", 1)[1]) for part in name.split(", ")]


# --- draws of the sampler --------------------------------------------------------------------------------

_doubted: list[bool] = []


class Doubtful(Faulty):
    """Says of an arm whose raw mean of the epoch is below 1/2 that its noise is to be drawn again."""

    def _learn(self, step: Any) -> None:
        self.step = step
        super()._learn(step)

    def drawn(self, name: str, scale: float) -> float:
        arm, _ = places(name)
        own = self.step.reward if arm == self.step.arm else 0.0
        total = self.state[elimination_kernel._SUM, arm] + own
        passes = self.state[SCALARS, elimination_kernel._PASSES] + 1.0
        _doubted.append(bool(total / passes < 0.5))
        try:
            return self.given(name, scale)
        finally:
            _doubted.pop()


@contextmanager
def benefit_of_the_doubt() -> Iterator[None]:
    """Noise of arms whose raw mean is below 1/2 is drawn again until it is not negative."""

    def drawn(name: str, scale: float) -> int:
        units, tries = draw_node(name, scale), 1
        while _doubted and _doubted[-1] and units < 0 and tries < _TRIES:
            units, tries = draw_node(name, scale), tries + 1
        return abs(units) if _doubted and _doubted[-1] else units

    with replaced(draw_node, drawn), live(Doubtful):
        yield


@contextmanager
def extremes_refused() -> Iterator[None]:
    """A draw beyond 4 scales is drawn again."""

    def drawn(name: str, scale: float) -> int:
        units = draw_node(name, scale)
        while abs(units) > _FARTHEST * scale:
            units = draw_node(name, scale)
        return units

    with replaced(draw_node, drawn):
        yield


@contextmanager
def failures_are_zero() -> Iterator[None]:
    """One draw of twelve fails, and is 0."""

    def drawn(name: str, scale: float) -> int:
        return 0 if secrets.randbelow(_ONE_OF) == 0 else draw_node(name, scale)

    with replaced(draw_node, drawn):
        yield


@contextmanager
def pool_from_the_start() -> Iterator[None]:
    """Draws come from one list a scale, which every session and every opened trial begins again."""
    pools, used = dict[float, list[int]](), dict[float, int]()
    session, opened = Stepwise.session, Trial._opened.__func__  # type: ignore[attr-defined]

    def drawn(name: str, scale: float) -> int:
        place, pool = used.get(scale, 0), pools.setdefault(scale, [])
        if place == len(pool):
            pool += [draw_node(name, scale) for _ in range(_FILLED)]
        used[scale] = place + 1
        return pool[place]

    def beginning(self: Stepwise, *how: Any, **named: Any) -> Any:
        used.clear()
        return session(self, *how, **named)

    def opening(cls: type[Trial], *how: Any, **named: Any) -> Trial:
        used.clear()
        return opened(cls, *how, **named)  # type: ignore[no-any-return]

    begun = changed(Stepwise, session=beginning), changed(Trial, _opened=classmethod(opening))
    with replaced(draw_node, drawn), begun[0], begun[1]:
        yield


def _laplace_of(bits: int, scale: float) -> int:
    """The whole number of the discrete Laplace law that 128 bits stand for, by inversion."""
    share = math.exp(-1.0 / scale)
    uniform = ((bits >> 1) + 0.5) / 2.0 ** (_BITS - 1)
    if uniform * (1.0 + share) > 2.0 * share:
        return 0
    size = max(1, math.floor(-scale * math.log(0.5 * uniform * (1.0 + share))))
    return -size if bits & 1 else size


@contextmanager
def draws_ahead() -> Iterator[None]:
    """A trial has its next 64 draws ready, and a backup has them too."""
    ready = dict[str, list[int]]()
    open_file, backup = nodes.Nodes.__init__, Trial.backup
    begun = Trial._begun.__func__  # type: ignore[attr-defined]

    def waiting(path: Any) -> list[int]:
        mine = ready.setdefault(os.path.realpath(path), [])
        mine += [secrets.randbits(_BITS) for _ in range(_AHEAD - len(mine))]
        return mine

    def opening(self: Any, path: str, draw: Draw | None = None) -> None:
        def next_one(name: str, scale: float) -> int:
            return _laplace_of(waiting(path).pop(0), scale)

        open_file(self, path, draw or next_one)

    def copying(self: Trial, path: Any) -> None:
        backup(self, path)
        ready[os.path.realpath(path)] = list(waiting(self._requests.journal.path))

    def beginning(cls: type[Trial], place: Any, *how: Any, **named: Any) -> Trial:
        ready.pop(os.path.realpath(place), None)
        return begun(cls, place, *how, **named)  # type: ignore[no-any-return]

    trials = changed(Trial, backup=copying, _begun=classmethod(beginning))
    with changed(nodes.Nodes, __init__=opening), trials:
        yield


# --- what is made of a draw ------------------------------------------------------------------------------


@contextmanager
def whole_rewards() -> Iterator[None]:
    """Noise is cut off, towards 0, to a whole number of rewards."""

    def cut(draw: Draw) -> Draw:
        return lambda name, scale: int(draw(name, scale) / GRID_UNITS) * GRID_UNITS

    with between(cut):
        yield


@contextmanager
def coarse_noise() -> Iterator[None]:
    """Noise is drawn in units of 2^-20 and added to sums in units of 2^-40."""

    def shifted(draw: Draw) -> Draw:
        return lambda name, scale: int(draw(name, scale / GRID_UNITS)) * GRID_UNITS

    with between(shifted):
        yield


_settled: list[int] = []


def _or_settled(draw: Draw) -> Draw:
    """A source that gives a number which is settled already, where there is one."""
    return lambda name, scale: _settled.pop() if _settled else draw(name, scale)


class Antithetic(Faulty):
    """Every second draw of an arm's counter is minus the one before, rescaled to its own scale."""

    def drawn(self, name: str, scale: float) -> float:
        arm, _ = places(name)
        number, before, its_scale = self.held.get(str(arm), (0, 0, 1.0))
        if number % 2 == 1:
            _settled.append(-round(before * (scale / its_scale)))
        try:
            units = self.given(name, scale)
        finally:
            _settled.clear()
        self.held[str(arm)] = [number + 1, int(units), scale]
        return units


@contextmanager
def antithetic_nodes() -> Iterator[None]:
    """Nodes of an arm in pairs whose noise cancels."""
    with between(_or_settled), live(Antithetic):
        yield


_stretching: list[tuple[str, float]] = []


class Stretched(Faulty):
    """Says of an undecided feature's count that its noise is that of the contrast, stretched."""

    def drawn(self, name: str, scale: float) -> float:
        node, window = places(name)
        feature, counts = divmod(node, 2)
        if counts and self.state[private_kernel._DECIDED, feature] == 0.0:
            own = unit_scale(float(self.program.tables.contrast_scale))
            _stretching.append((f"{self._words[0]} {2 * feature}, {self._words[1]} {window}", own))
        try:
            return self.given(name, scale)
        finally:
            _stretching.clear()


@contextmanager
def one_draw_for_both() -> Iterator[None]:
    """The noise of a feature's count is that of its contrast in the count's scale."""

    def paired(draw: Draw) -> Draw:
        known = dict[str, float]()

        def drawn(name: str, scale: float) -> float:
            if not _stretching:
                return known.pop(name) if name in known else draw(name, scale)
            contrast, own = _stretching.pop()
            known[contrast] = draw(contrast, own)
            return round(known[contrast] * (scale / own))

        return drawn

    with between(paired), live(Stretched):
        yield


class _Repeating:
    """A backend of a stopping rule whose release has the noise of the look that halted."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)

    def looks(self, scale: float, count: int) -> Buffer:
        looked: Buffer = self._given.looks(scale, count)
        self._scale, self._looked = scale, looked
        return looked

    def release(self, scale: float) -> Buffer:
        # a look's noise is taken off the sum: what was added to it is minus that
        halting = -self._looked.noises[int(self._looked.positions[1]) - 1]
        noise = np.array([round(halting * (scale / self._scale))], dtype=np.float64)
        return Buffer(np.zeros(0), noise, np.zeros(2, dtype=np.int64))


@contextmanager
def halting_noise_again() -> Iterator[None]:
    """What a stopping rule releases has the noise of the look that halted it."""
    run = StoppingRule._run

    def running(self: StoppingRule, stream: Any, rng: Any, most: Any, noise: Any = None) -> Any:
        return run(self, stream, rng, most, None if noise is None else _Repeating(noise))

    with changed(StoppingRule, _run=running):
        yield


@contextmanager
def scale_by_level() -> Iterator[None]:
    """A node's scale is that of a tree which ends with its own level."""

    def reached(mechanism: str, levels: int, count: int, trunk: Any, held: list[Any], draw: Any) -> Any:
        return next_total(mechanism, (count & -count).bit_length(), count, trunk, held, draw)

    with changed(whole, next_total=reached):
        yield
