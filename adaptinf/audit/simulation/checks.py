"""Everything that can be wrong with the arguments of a study, found before anything is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import BOOLEAN, COUNT, SEED, OneOf, alpha_problems
from adaptinf.simulation.environments import Environment

_NAMED = (
    ("designs", Design, "a design"),
    ("environments", Environment, "an environment"),
    ("analyses", None, "a function of a log"),
    ("truth", None, "a function of an environment and a result"),
)


def grid_problems(given: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with the arguments of `study`, by name."""
    problems = [problem for name, *what in _NAMED for problem in _named_problems(name, given[name], *what)]
    problems += list(horizon_problems(given["horizons"]))
    problems += COUNT("replications", given["replications"]) + SEED("rng", given["rng"])
    problems += _settings_problems(given)
    return problems or list(cell_problems(given))


def _named_problems(name: str, values: Any, kind: type | None, what: str) -> Iterator[str]:
    if not isinstance(values, Mapping) or (not values and name != "truth"):
        yield f"{name} must be a dict of {what} by name, with at least one entry, got {values!r:.60}"
        return
    for label, value in values.items():
        if not isinstance(label, str) or not label.strip():
            yield f"{name} must have names that are not empty strings, got {label!r:.60}"
        elif name == "analyses" and (": " in label or label.endswith(", corrected")):
            yield f"analyses[{label!r}]: a name with ': ', or ending in ', corrected', is kept for table rows"
        if not (callable(value) if kind is None else isinstance(value, kind)):
            yield f"{name}[{label!r}] must be {what}, got {value!r:.60}"


def horizon_problems(horizons: Any) -> Iterator[str]:
    """Say what is wrong with the horizons of a grid."""
    if isinstance(horizons, (str, bytes)) or not isinstance(horizons, Sequence) or not horizons:
        yield f"horizons must be a list of whole numbers, got {horizons!r:.60}"
        return
    wrong = [problem for value in horizons for problem in COUNT("horizons", value)]
    yield from wrong
    if not wrong and len(set(horizons)) < len(horizons):
        yield f"horizons must differ, got {list(horizons)}"


def _settings_problems(given: Mapping[str, Any]) -> list[str]:
    problems = alpha_problems(given["alpha"])
    path, n_jobs, keep = given["path"], given["n_jobs"], given["keep"]
    if not (path is None or isinstance(path, (str, Path))):
        problems.append(f"path must be the name of a folder, or None, got {path!r:.60}")
    elif path is not None and Path(path).exists() and not Path(path).is_dir():
        problems.append(f"path must be a folder, {path} is a file")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        problems.append(
            f"n_jobs must be a whole number of processes, or -1 for all cores, got {n_jobs!r:.60}"
        )
    if keep not in (None, "estimates"):
        problems.append(f"keep must be 'estimates' or None, got {keep!r:.60}")
    elif keep is not None and path is None:
        problems.append("keep='estimates' needs path=, a folder to keep them in")
    problems += OneOf("raise", "count")("on_error", given["on_error"])
    problems += BOOLEAN("progress", given["progress"]) + BOOLEAN("same_sources", given["same_sources"])
    if isinstance(given["truth"], Mapping) and isinstance(given["analyses"], Mapping):
        strangers = [name for name in given["truth"] if name not in given["analyses"]]
        problems += [f"truth[{name!r}] belongs to no analysis" for name in strangers]
    return problems


def cell_problems(given: Mapping[str, Any]) -> Iterator[str]:
    """Say which designs cannot be run in which environments, and why."""
    grid = itertools.product(given["designs"].items(), given["environments"].items(), given["horizons"])
    for (name, design), (place, env), horizon in grid:
        try:
            design._check(env, horizon, given["replications"], None, 0)
        except ParameterError as error:
            for problem in error.problems:
                yield f"design {name!r} in environment {place!r} over {horizon} rounds: {problem}"
