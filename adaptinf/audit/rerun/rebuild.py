"""Designs, as they are given or as a log says of them."""

from __future__ import annotations

from typing import Any

from adaptinf.designs.base_design import Design
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.log import AdaptiveLog


def design_of(source: Any, problems: list[str]) -> Design | None:
    """The design itself, or the one that a log's record describes."""
    if isinstance(source, Design):
        return source
    if not isinstance(source, AdaptiveLog):
        problems.append(f"design must be a design or a log, got {source!r:.60}")
        return None
    if source.design is None:
        problems.append("the log does not name its design: give the design itself")
        return None
    made = rebuilt(source.design)
    if made is None:
        problems.append(f"{source.design.name} cannot be made from the log's record: give the design itself")
    return made
