"""Logs of Eppo: actions of contextual bandits, and assignments of experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.formats.platforms.platform_tables import (
    Table,
    Weights,
    gathered,
    platform_table,
    share_problems,
    shares_of,
)
from adaptinf.formats.transport import log_of, names_problems
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.parameters import refuse

_SUBJECT = "read_eppo"
_ATTRIBUTES = ("subject_numeric_attributes", "subject_categorical_attributes")
_LACKING = "Eppo's assignment log does not contain the traffic allocation"


def read_eppo(
    assignments: str | PathLike[str],
    outcomes: str | PathLike[str] | None = None,
    *,
    experiment: str | None = None,
    value: str = "value",
    absent: float | None = None,
    context: Iterable[str] = (),
    weights: Weights = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read the table written by an Eppo bandit logger or assignment logger.

    Parameters
    ----------
    assignments : path
        A CSV, Parquet or JSON lines file. For a bandit: ``timestamp``, ``bandit_key``, ``subject``,
        ``action`` and ``action_probability``, with attributes as JSON. For an experiment: ``timestamp``,
        ``experiment``, ``subject`` and ``variation``.
    outcomes : path, optional
        Table with ``subject`` and the outcome, one row per subject; by default the outcome is a column of
        `assignments`.
    experiment : str, optional
        Key of the bandit or of the experiment; required if the table contains several.
    value : str
        Column of the outcome.
    absent : float, optional
        Outcome of subjects that are absent from `outcomes`.
    context : iterable of str, optional
        For a bandit, attributes of subjects to keep.
    weights : mapping of variation to float, or "unknown", optional
        Traffic shares of an experiment's variations, if they were constant; the log does not contain them.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.

    Returns
    -------
    AdaptiveLog
        For a bandit, one round per action, in order of time, with the probability that Eppo's client logged
        and ``'context_free': False``; batches are the versions of the model (``model_version``) if they do
        not overlap in time. For an experiment, one round per subject.

    Raises
    ------
    ParameterError
        If a file cannot be read or lacks columns, subjects have no outcomes, or the shares are not given.
    LogValidationError
        If rows are invalid; the message lists every problem.

    Notes
    -----
    Eppo's documentation recommends ``action_probability`` but does not require it; without it, a bandit's log
    cannot be read. Only the probability of the chosen action is logged. As in Eppo, subjects with several
    variations of an experiment are dropped and counted in ``log.report``.

    References
    ----------
    Eppo, "Contextual multi-armed bandits" and "Assignment logging", docs.geteppo.com.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "actions.csv"
    >>> head = "timestamp,bandit_key,subject,action,action_probability,value\n"
    >>> rows = "2024-08-14 12:19:25,ads,u1,nike,0.75,1\n2024-08-14 12:20:00,ads,u2,adidas,0.25,0\n"
    >>> _ = path.write_text(head + rows)
    >>> log = ai.formats.read_eppo(path)
    >>> log.arms, log.arrays.propensity
    (('adidas', 'nike'), array([0.75, 0.25]))
    """
    context = [context] if isinstance(context, str) else list(context)
    texts = ["subject", "action", "variation", "bandit_key", "experiment"]
    table, found, _ = gathered(
        _SUBJECT,
        lambda: platform_table(_SUBJECT, assignments, ["timestamp", "subject"], text=texts),
        lambda: outcomes and platform_table(_SUBJECT, outcomes, ["subject", value], text=["subject"]),
        lambda: refuse(_SUBJECT, names_problems("context", context)),
    )
    bandit = "action" in table.frame
    needed = ["bandit_key", "action", "action_probability"] if bandit else ["experiment", "variation"]
    missing = [name for name in [*needed, *([] if outcomes else [value])] if name not in table.frame]
    problems = [f"{table.path.name} has no column {', '.join(missing)}"] if missing else []
    if bandit and weights is not None:
        problems.append("weights apply only to experiments: a bandit's log has action_probability")
    if context and not bandit:
        problems.append("context applies only to bandits, whose subjects' attributes are logged")
    refuse(_SUBJECT, problems + ([] if bandit else share_problems(weights, _LACKING)))
    table.only(needed[0], experiment, "experiment")
    table.in_time("timestamp")
    if not bandit:
        table.first_of_units("subject", "variation")
    if found:
        if again := int(table.frame.duplicated("subject").sum()):
            problem = (
                f"{again} repeated actions by the same subject: put the outcome of each action in column "
                f"{value!r}"
            )
            raise ParameterError(_SUBJECT, [f"{table.path} has {problem} of the table itself"])
        table.join(found, "subject", value, absent)
    roles = _bandit_roles(table) if bandit else shares_of(table, "variation", weights)
    for name, values in _attributes(table, context).items():
        table.frame = table.frame.assign(**{name: values})
    with log_of(str(table.path)):
        log = AdaptiveLog(
            table.frame,
            action=needed[1],
            reward=value,
            unit="subject",
            context=context,
            reward_range=reward_range,
            adaptive=False if not bandit and roles else None,
            about={"design": "Eppo bandit", "context_free": False}
            if bandit
            else {"design": "Eppo experiment"},
            **roles,
        )
    return log.read_from(f"Eppo log {table.path.name}", table.readings)


def _bandit_roles(table: Table) -> dict[str, Any]:
    """Roles of a bandit's columns; versions of the model are batches if they do not overlap in time."""
    roles = {"propensity": "action_probability"}
    if "model_version" not in table.frame:
        return roles
    versions = table.frame["model_version"].astype(str)
    if (versions != versions.shift()).sum() > versions.nunique():
        table.readings.append(Reading("caution", claims.VERSIONS_OVERLAP()))
        return roles
    table.frame = table.frame.assign(model_version=versions)
    return roles | {"batch": "model_version"}


def _attributes(table: Table, names: list[str]) -> dict[str, Any]:
    """Values of subjects' attributes, from columns that contain JSON."""
    if not names:
        return {}
    rows: list[dict[str, Any]] = [{} for _ in range(len(table.frame))]
    for column in _ATTRIBUTES:
        for row, cell in enumerate(table.frame.get(column, [])):
            try:
                found = json.loads(cell) if isinstance(cell, str) else cell
            except ValueError:
                found = None
            if isinstance(found, dict):
                rows[row] |= found
            elif not (cell is None or (isinstance(cell, float) and np.isnan(cell))):
                raise ParameterError(_SUBJECT, [f"{table.path}: {column} is not a JSON object in row {row}"])
    known = dict.fromkeys(name for row in rows for name in row)
    unknown = [name for name in names if name not in known]
    clash = [name for name in names if name in table.frame]
    problems = (
        [f"no subject has the attribute {', '.join(unknown)}; available: {', '.join(known)}"]
        if unknown
        else []
    )
    problems += [f"attributes must not be called {', '.join(clash)}"] if clash else []
    refuse(_SUBJECT, problems)
    return {name: pd.Series([row.get(name) for row in rows], index=table.frame.index) for name in names}
