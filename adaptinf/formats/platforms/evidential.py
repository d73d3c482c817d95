"""Draws of bandit experiments in Evidential, as exported by its server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.formats.platforms.platform_tables import (
    Table,
    Weights,
    platform_table,
    share_problems,
    shares_of,
)
from adaptinf.formats.transport import log_of, names_problems
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse

_SUBJECT = "read_evidential"
_LACKING = "Evidential's draws do not contain probabilities"
_VALUES = "context_vals"


def read_evidential(
    draws: str | PathLike[str],
    *,
    weights: Weights = None,
    context: Iterable[str] = (),
    missing: str | None = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read the draws of an Evidential bandit experiment.

    Parameters
    ----------
    draws : path
        The CSV of a bandit's assignments (or the same columns as Parquet or JSON lines): ``participant_id``,
        ``arm_id``, ``arm_name``, ``created_at`` and ``outcome``, and for a contextual bandit
        ``context_vals``.
    weights : mapping of arm name to float, or "unknown"
        Probabilities of the arms, if they were constant. The export does not contain these probabilities, and
        those of Thompson sampling change: such a log is read with ``"unknown"``, that is, without
        propensities.
    context : iterable of str, optional
        Names of the values in ``context_vals``, in their order, which is that of the contexts' identifiers;
        all of them or none.
    missing : {"drop", "bounds", "worst", "best"}, optional
        How draws without an outcome are interpreted, as in `AdaptiveLog`; by default every draw must have
        one.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.

    Returns
    -------
    AdaptiveLog
        A log with one round per draw, in order of time; each participant has one round. For a contextual
        bandit without `context`, the log has ``'context_free': False``.

    Raises
    ------
    ParameterError
        If the file cannot be read or lacks columns, two arms have the same name, or the probabilities are not
        given. The export of a frequentist experiment is refused because it has no ``outcome``.
    LogValidationError
        If rows are invalid; the message lists every problem.

    Notes
    -----
    An outcome that the server filled in after a deadline (``autofailed_outcome`` in its database) cannot be
    distinguished from an observed one in the export. The CSV does not state when an outcome became known,
    either.

    References
    ----------
    The Agency Fund, evidential-be: ``Draw`` in ``src/xngin/apiserver/sqla/tables.py``.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "draws.csv"
    >>> head = "participant_id,arm_id,arm_name,created_at,outcome\n"
    >>> rows = "p1,arm_a,call,2025-06-01T08:00:00Z,1\np2,arm_b,text,2025-06-01T09:00:00Z,0\n"
    >>> _ = path.write_text(head + rows)
    >>> log = ai.formats.read_evidential(path, weights="unknown")
    >>> log.arms, log.propensity_status
    (('call', 'text'), 'absent')
    """
    context = [context] if isinstance(context, str) else list(context)
    refuse(_SUBJECT, names_problems("context", context) + share_problems(weights, _LACKING))
    names = ["participant_id", "arm_id", "arm_name"]
    table = platform_table(_SUBJECT, draws, [*names, "created_at", "outcome"], text=names)
    arms = table.frame.drop_duplicates(["arm_id", "arm_name"])
    if arms["arm_name"].duplicated().any() or arms["arm_id"].duplicated().any():
        raise ParameterError(_SUBJECT, [f"{table.path}: every arm_id must have its own arm_name"])
    table.in_time("created_at")
    used = _VALUES in table.frame and bool(table.frame[_VALUES].notna().any())
    if context and not used:
        raise ParameterError(_SUBJECT, [f"{table.path} has no {_VALUES}: omit context"])
    if context:
        table.frame = table.frame.assign(**_contexts(table, context))
    roles = shares_of(table, "arm_name", weights)
    with log_of(str(table.path)):
        log = AdaptiveLog(
            table.frame,
            action="arm_name",
            reward="outcome",
            unit="participant_id",
            context=context,
            missing=missing,
            reward_range=reward_range,
            about={"design": "Evidential bandit", "context_free": False if used and not context else None},
            **roles,
        )
    return log.read_from(f"Evidential draws {table.path.name}", table.readings)


def _contexts(table: Table, names: list[str]) -> dict[str, Any]:
    """Columns of the values in one cell, which contains a Postgres array or a list."""
    rows = []
    for row, cell in enumerate(table.frame[_VALUES]):
        text = json.dumps(list(cell)) if isinstance(cell, list | np.ndarray) else str(cell)
        try:
            values = json.loads(text.replace("{", "[").replace("}", "]"))
        except ValueError:
            values = None
        if not isinstance(values, list) or len(values) != len(names):
            problem = (
                f"{_VALUES} must have {len(names)} values, one per name in context, but is {text:.60} in "
                f"row {row}"
            )
            raise ParameterError(_SUBJECT, [f"{table.path}: {problem}"])
        rows.append(values)
    if clash := [name for name in names if name in table.frame]:
        raise ParameterError(_SUBJECT, [f"{table.path}: contexts must not be called {', '.join(clash)}"])
    return {name: pd.Series([row[place] for row in rows], dtype=float) for place, name in enumerate(names)}
