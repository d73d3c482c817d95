"""Exact noise of a private trial: a node is drawn once, in the transaction of the request after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from adaptinf.designs import Design
from adaptinf.errors import JournalError
from adaptinf.guarantee import sequential
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Count, refuse
from adaptinf.sessions.releasing import Draw, draw_node
from adaptinf.trial.journal import Entry

NODE = "node"
"""Kind of a row, and the name of the field that says which node it is."""


class Nodes:
    """Where the noise of a trial comes from: its journal while rows are followed, then OpenDP.

    An audit gives it in OpenDP's place.
    """

    def __init__(self, path: str, draw: Draw | None = None) -> None:
        self._path, self._draw, self._following = path, draw, False
        self._waiting: list[Entry] = []
        self._fresh: list[Entry] = []

    def __call__(self, name: str, scale: float) -> int:
        """The noise of a node whose scale is given, both in units."""
        if not self._following:
            if self._waiting:
                raise JournalError(self._path, "its last rows are missing")
            units = (self._draw or draw_node)(name, scale)
            self._fresh.append({"kind": NODE, NODE: name, "scale": scale, "units": units})
            entry = self._fresh[-1]
        elif not self._waiting or (self._waiting[0][NODE], self._waiting[0]["scale"]) != (name, scale):
            raise JournalError(self._path, f"it has no row for the noise of {name}")
        else:
            entry = self._waiting.pop(0)
        return int(entry["units"])

    def expect(self, entry: Entry) -> None:
        """Keep a row for the request behind it."""
        self._waiting.append(entry)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Draw nothing, but use the rows that are waiting, all of them."""
        self._following = True
        try:
            yield
            if self._waiting:
                raise JournalError(self._path, f"nothing asked for the noise of {self._waiting[0][NODE]}")
        finally:
            self._following = False

    def leave(self) -> None:
        """Take the rows that are waiting as they are: what they belong to cannot be made again."""
        self._waiting.clear()

    def drawn(self) -> list[Entry]:
        """The rows of what has been drawn since this was last asked."""
        fresh, self._fresh = self._fresh, []
        return fresh


def as_restored(log: AdaptiveLog, times: int) -> AdaptiveLog:
    """The log with what is promised where copies took the trial's place so often.

    An outcome enters nodes of the file that was lost and of the one in its place; the noise of those behind
    the copy is drawn in both. What a run spends on an outcome is at most epsilon over all its nodes, so that
    several runs, each chosen by what the ones before told, spend their sum.
    """
    if times == 0:
        return log
    made = copy(log)
    for name in ("guarantee", "reward_guarantee"):
        promised = getattr(log, name)
        if promised is not None:
            setattr(made, name, sequential(*[promised] * (times + 1)))
    made.kept = {}
    return made


def private_terms(design: Design, horizon: int, n_arms: int, window: Any) -> dict[str, Any]:
    """What the first entry of a trial says of noise and window; nothing where there is no noise to draw.

    Raises
    ------
    ParameterError
        If the design has no exact noise, or the window does not fit.
    """
    name, promised = type(design).__name__, design.guarantee(horizon, n_arms)
    if promised is None or promised.epsilon == 0.0:  # nothing depends on rewards: there is no noise to draw
        told = f"outcome_window must be left out: {name} has no noise, and takes outcomes as they come"
        refuse("Trial.create", [] if window is None else [told])
        return {}
    rehearses = "its session() rehearses a trial with simulated noise"
    problems = []
    if design.nodes is None:
        problems.append(
            f"{name} promises privacy, and a live private trial needs release noise of exact arithmetic, "
            f"which {name} does not draw ({design.inexact}): {rehearses}"
        )
    elif design.pending != "window":
        problems.append(
            f"{name} cannot choose while outcomes are pending: its session waits for each, with exact noise"
        )
    elif window is None:
        problems.append(
            "outcome_window is needed: after how many further participants an outcome enters, whenever it "
            "comes, as delays that follow the outcomes would reveal them"
        )
    else:
        problems += Count(0)("outcome_window", window)
    refuse("Trial.create", problems)
    return {"outcome_window": int(window), "noise": "release"}
