"""A design by its name and its parameters as JSON."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from adaptinf.errors import ParameterError
from adaptinf.texts import absent

if TYPE_CHECKING:
    from adaptinf.designs import Design
    from adaptinf.plans import Plan


def json_of(text: str) -> Any:
    """The value of a JSON text."""
    return json.loads(text)


json_of.__name__ = "JSON"
PARAMETERS = 'of the design, such as {"floor": 0.1}; a nested design is {"name": ..., "parameters": ...}'


def design_of(name: str, parameters: Any) -> Design:
    """A design, whose parameters may contain another design."""
    from adaptinf import designs

    if not isinstance(parameters, dict):
        raise ParameterError("--parameters", ['they must be a JSON object, such as {"floor": 0.1}'])
    found = {label: getattr(designs, label) for label in designs.__all__}
    kinds = {label: kind for label, kind in found.items() if isinstance(kind, type)}
    known = {
        label: kind
        for label, kind in kinds.items()
        if issubclass(kind, designs.Design) and kind is not designs.Design
    }
    if name not in known:
        raise ParameterError("--design", [absent("design", name, known)])
    _check_names(name, known[name], parameters)
    return known[name](**{label: _value(value) for label, value in parameters.items()})


def plan_of(design: Design, arms: Any, horizon: Any, given: Any) -> Plan:
    """A plan with this design, and further arguments."""
    from adaptinf.plans import Plan

    if not isinstance(given, dict):
        raise ParameterError("--plan", ['it must be a JSON object, such as {"looks": [250, 500]}'])
    whole = {"design": design, "arms": arms, "horizon": horizon, **given}
    _check_names("Plan", Plan, whole, "--plan")
    return Plan(**whole)


def _check_names(name: str, kind: type, given: dict[str, Any], flag: str = "--parameters") -> None:
    """Refuse unknown parameters, and designs or plans that lack required ones."""
    known = inspect.signature(kind).parameters
    problems = [absent("parameter", one, known, f"{name} has") for one in given if one not in known]
    problems += [
        f"{name} requires {one}"
        for one, parameter in known.items()
        if parameter.default is parameter.empty and one not in given
    ]
    if problems:
        raise ParameterError(flag, problems)


def _value(value: Any) -> Any:
    """The design that a dict describes, a tuple for a list, or the value itself."""
    if isinstance(value, dict):
        return design_of(str(value.get("name")), value.get("parameters", {}))
    return tuple(value) if isinstance(value, list) else value
