"""Designs made again from what a log says of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from adaptinf.designs.base import Design
from adaptinf.designs.logs import PLANNED
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog, DesignRecord


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


def rebuilt(record: DesignRecord) -> Design | None:
    """The design that a record describes, and for a mixture the one that it follows."""
    from adaptinf import designs

    kind = getattr(designs, record.name, None)
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.parameters.items()
        if name != PLANNED
    }
    if not isinstance(kind, type) or not _complete(kind, parameters):
        return None
    try:
        if kind is Mixture:
            inner = DesignRecord(str(parameters.pop("design")), dict(parameters.pop("parameters")))
            parameters["design"] = rebuilt(inner)
        made: Any = kind(**parameters)
    except (KeyError, TypeError, ValueError, ParameterError):
        made = None
    return made if isinstance(made, Design) else None


def _complete(kind: type, parameters: dict[str, Any]) -> bool:
    """Whether a record has every parameter of its design."""
    return dataclasses.is_dataclass(kind) and {one.name for one in dataclasses.fields(kind)} <= set(
        parameters
    )
