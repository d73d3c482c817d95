"""Designs reconstructed from the records in logs and trials."""

from __future__ import annotations

import dataclasses
from typing import Any

from adaptinf.designs.base import Design
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import ParameterError
from adaptinf.log import DesignRecord
from adaptinf.log.traits import COLLECTED


def rebuilt(record: DesignRecord) -> Design | None:
    """The design that a record describes and, for a mixture, the design inside the mixture."""
    from adaptinf import designs

    kind = getattr(designs, record.name, None)
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.parameters.items()
        if name not in COLLECTED
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
