"""Faults in how live sessions and trials count, add up, and give noise its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from planting import Faulty, FaultySums, changed

from adaptinf.designs.arms import ucb_kernel
from adaptinf.designs.contextual.conse import ESTIMATION_RANDOMISED
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.sessions.steppers import unit_scale
from adaptinf.simulation.run import RELEASED, SCALARS
from adaptinf.trial.operator_actions import Acts
from adaptinf.trial.replay import Replay


def earlier(count: int, hybrid: bool) -> int:
    """Items before the newest node of a counter."""
    before = count & (count - 1)
    return count >> 1 if hybrid and before == 0 else before


class BareCoordinate(FaultySums):
    """The first coordinate of every release has no noise."""

    def drawn(self, name: str, scale: float) -> float:
        return 0 if name.endswith("coordinate 1") else self.given(name, scale)


class LateNodes(FaultySums):
    """What enters a release for a node is the noise of the previous node of its level and coordinate."""

    def drawn(self, name: str, scale: float) -> float:
        units = self.given(name, scale)
        arm, count, coordinate = (int(part.rsplit(" ", 1)[1]) for part in name.split(", "))
        level = (count & -count).bit_length()
        place = f"{arm} {level} {coordinate}"
        used = self.held.get(place, units)
        self.held[place] = units
        return float(used)


class OneVector(Faulty):
    """The noise of the first phase is that of every later one, in its units."""

    def drawn(self, name: str, scale: float) -> float:
        phase = name.rpartition(" ")[2]
        first, places = self.held.setdefault("first", []), self.held.setdefault("places", {})
        place = places[phase] = places.get(phase, -1) + 1
        if phase == "1":
            units = self.given(name, scale)
            first.append(units / scale)
            return units
        return round(first[place] * scale)


class TwiceCounted(Faulty):
    """The reward of an overridden round enters its arm's counter again at the next request."""

    def __init__(self, program: Any, *how: Any) -> None:
        rows = len(program.tables.released)
        self.room = (1 << rows.bit_length()) - 1  # the counter has no level beyond
        tables = program.tables._replace(released=np.zeros((2 * rows, 5)))
        super().__init__(dataclasses.replace(program, tables=tables), *how)
        self.override = program.n_statuses - 1

    def update(self, context: Any, arm: int, reward: float, status: int, now: int) -> None:
        super().update(context, arm, reward, status, now)
        self.held["learnt"] = self.held.get("learnt", 0) + 1
        again = self.held.setdefault("again", [])
        if 0 < self.override == status and self.held["learnt"] + len(again) < self.room:
            again.append([context.tolist(), arm, reward, status])

    def choose(self, context: Any, now: int) -> Any:
        again, self.held["again"] = self.held.get("again", []), []
        for seen, *told in again:
            super().update(np.array(seen), *told, now)
            self.held["learnt"] += 1
        return super().choose(context, now)


class NoNews(Faulty):
    """A reward of 0 raises the arm's count, but brings no node and no release."""

    def update(self, context: Any, arm: int, reward: float, status: int, now: int) -> None:
        self.units = int(to_grid(min(max(reward, 0.0), 1.0)))
        counter = self.held.setdefault(str(arm), {"sum": 0, "shown": 0, "nodes": {}, "totals": {"0": 0}})
        counter["sum"] += self.units
        super().update(context, arm, reward, status, now)
        if self.units == 0:
            self.state[SCALARS, RELEASED] -= 1.0

    def drawn(self, name: str, scale: float) -> float:
        arm, count = (int(part.rsplit(" ", 1)[1]) for part in name.split(", "))
        counter, hybrid = self.held[str(arm)], bool(self.program.tables.hybrid)
        total = counter["shown"] - counter["sum"]
        if self.units > 0:
            total, node = 0, count
            while node > 0:
                total += self._node(arm, node, counter["nodes"])
                node = earlier(node, hybrid)
            counter["shown"] = counter["sum"] + total
        counter["totals"][str(count)] = total
        return float(total - counter["totals"][str(earlier(count, hybrid))])

    def _node(self, arm: int, count: int, known: dict[str, int]) -> int:
        """The noise of a node, which is drawn when a release needs it first."""
        if str(count) not in known:
            tables, level = self.program.tables, count.bit_length() - 1
            scale = tables.node
            if tables.hybrid:
                scale = tables.trunk if count == 1 << level else tables.node * level
            known[str(count)] = int(self.given(f"arm {arm}, count {count}", unit_scale(scale)))
        return known[str(count)]


class OnlySeen(Faulty):
    """At the end of a window features without an arrival in it get no noise and no release."""

    def update(self, context: Any, arm: int, reward: float, status: int, now: int) -> None:
        self.held["learnt"] = self.held.get("learnt", 0) + 1
        self.seen = self.held.setdefault("seen", [])
        first_half = self.held["learnt"] <= self.program.tables.horizon // 2
        if first_half or status == ESTIMATION_RANDOMISED:
            self.seen.append(int(context[0]))
        before = int(self.state[SCALARS, RELEASED])
        super().update(context, arm, reward, status, now)
        rows = self.program.tables.released[before : int(self.state[SCALARS, RELEASED])]
        if len(rows):
            known = rows[np.isin(rows[:, 2], self.seen)]
            rows[: len(known)] = known
            self.state[SCALARS, RELEASED] = before + len(known)
            self.held["seen"] = []

    def drawn(self, name: str, scale: float) -> float:
        feature = int(name.split(", ")[0].rpartition(" ")[2]) // 2
        return self.given(name, scale) if feature in self.seen else 0


class RawDecimals(Faulty):
    """Keeps the exact value behind each release: what is public has as many decimals as that."""

    def update(self, context: Any, arm: int, reward: float, status: int, now: int) -> None:
        self.draws: list[float] = []
        before = int(self.state[SCALARS, RELEASED])
        super().update(context, arm, reward, status, now)
        rows = self.program.tables.released[before : int(self.state[SCALARS, RELEASED])]
        noisy = [row[3] - units / GRID_UNITS for row, units in zip(rows, self.draws, strict=True)]
        self.held.setdefault("exact", []).extend(map(float, noisy))

    def drawn(self, name: str, scale: float) -> float:
        self.draws.append(self.given(name, scale))
        return self.draws[-1]


@contextmanager
def restored_without_noise() -> Iterator[None]:
    """A restored trial's counters have their sums, but the noise of the nodes in them is 0."""
    restore, follow = Acts.restore, Replay._taken_again

    def without_noise(replay: Any) -> None:
        replay.session._stepper.state[ucb_kernel._TRUNK :] = 0.0

    def restoring(self: Acts, *told: Any, **named: Any) -> Any:
        entry = restore(self, *told, **named)
        if entry is not None:
            without_noise(self)
        return entry

    def following(self: Replay, said: Any) -> Any:
        entry = follow(self, said)
        if entry["kind"] == "restore":
            without_noise(self)
        return entry

    with changed(Acts, restore=restoring), changed(Replay, _taken_again=following):
        yield
