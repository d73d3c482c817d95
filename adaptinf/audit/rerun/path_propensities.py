"""Propensities that a design has on a given path, and whether a log and its record agree with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import LoggedRows, logged_rows
from adaptinf.designs.base_design import Design
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.run import Results, empty_record
from adaptinf.typing import FloatArray, IntArray

_AGREE = 1e-6
_WALKS = 1_000
"""Walks that have to agree before a log is said to contradict a design whose draws are hidden."""


class PathFollower:
    """A design led along given paths, with its propensities on them."""

    def __init__(self, design: Design, log: AdaptiveLog, rows: LoggedRows) -> None:
        self.rows = rows
        self.program = design.program(rows, log.n_rounds, recording=True)
        self.world = self.program.world(rows, log.n_rounds)
        self.state = np.zeros(self.program.state_shape)
        self.record = empty_record(log.n_rounds, log.n_arms, True, rows.dimension)

    @property
    def mixes(self) -> bool:
        """Whether coins that a path does not tell override the design."""
        return bool(self.program.share.shape[0])

    @property
    def has_propensities(self) -> bool:
        """Whether the design has propensities on a given path."""
        return bool(self.program.tables.propensity.shape[0])

    def walk(self, path: IntArray, stream: np.random.Generator) -> FloatArray:
        """Counts and sums by arm on a path; an empty path lets the design choose."""
        tallies = np.zeros((1, self.program.n_statuses, self.rows.n_features, self.rows.n_arms, 3))
        results = Results(tallies, np.zeros((1, self.program.n_outcomes)), np.zeros(1), self.record)
        world = self.world._replace(forced=path)
        self.program.entry(self.program.tables, world, stream, self.state, results)
        return np.asarray(tallies.sum(axis=(0, 1, 2)), dtype=np.float64)


def fixed_propensities(design: Design, log: AdaptiveLog, rows: LoggedRows) -> FloatArray | None:
    """Propensities of the logged arms that a design has on the logged path, shape (rounds,).

    Returns shape (rounds,).
    """
    follower = PathFollower(design, log, rows)
    if follower.mixes or not follower.has_propensities:
        return None
    found = _followed(follower, log.arrays.action, 0)
    if np.isnan(found).any():  # a design that names arms without saying with what chance
        return None
    # Coarse frequencies of posterior draws agree by luck now and then: a log that differs is walked often.
    walks = _WALKS if contradiction(log, found, "") else 2
    same = all(np.array_equal(found, _followed(follower, log.arrays.action, i)) for i in range(1, walks))
    return found if same else None


def _followed(follower: PathFollower, path: IntArray, seed: int) -> FloatArray:
    follower.walk(path, np.random.default_rng(seed))
    return follower.record.propensity.copy()


def contradiction(log: AdaptiveLog, implied: FloatArray | None, design: str) -> list[str]:
    """What is wrong where the propensities that a log states as exact are not a design's on its path."""
    logged = log.arrays.propensity
    if logged is None or implied is None or log.propensity_status != "exact":
        return []
    off = np.abs(logged - implied) > _AGREE
    if not off.any():
        return []
    row = int(np.argmax(off))
    return [
        f"the logged propensities are not those of {design}: {logged[row]:.6g} in the log, "
        f"{implied[row]:.6g} by the design in row {row} (rows are counted from 0)"
    ]


def record_problems(log: AdaptiveLog, design: Design) -> list[str]:
    """What the log says where another design gathered it, or one with other parameters."""
    told = log.design
    if told is None or not told.parameters:
        return []
    own = design.record()
    if own.name != told.name:
        return [f"the log was gathered by {told.name}, not by {own.name}"]
    other = [
        f"{name}={told.parameters.get(name)!r:.40} in the log, {value!r:.40} here"
        for name, value in own.parameters.items()
        if _plain(told.parameters.get(name)) != _plain(value)
    ]
    if not other:
        return []
    return [f"the log was gathered by {own.name} with other parameters ({'; '.join(other)})"]


def contradictions(log: AdaptiveLog, design: Design) -> list[str]:
    """What says that another design gathered the log: its record, or the propensities on its path."""
    found = record_problems(log, design)
    if found or log.arrays.propensity is None or log.propensity_status != "exact":
        return found
    problems: list[str] = []
    rows = logged_rows(log, design, None, None, problems)
    if rows is None or design._environment_problems(rows, log.n_rounds):
        return []
    return contradiction(log, fixed_propensities(design, log, rows), f"{design!r:.80}")


def _plain(value: Any) -> Any:
    """A parameter as a log that was written to a file has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value
