"""Whether a design gathered a log: its record, and the propensities on the log's path."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import logged_rows
from adaptinf.audit.rerun.path_propensities import contradiction, fixed_propensities
from adaptinf.designs.base import Design
from adaptinf.log import AdaptiveLog


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
