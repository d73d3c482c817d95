"""Exposures of Statsig's warehouse exports, joined to outcomes."""

from __future__ import annotations

from os import PathLike

from adaptinf.formats.platforms.platform_tables import (
    Weights,
    gathered,
    platform_table,
    share_problems,
    shares_of,
)
from adaptinf.formats.transport import log_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse

_SUBJECT = "read_statsig"
_LACKING = "Statsig's exposures do not contain the allocation by group"


def read_statsig(
    exposures: str | PathLike[str],
    outcomes: str | PathLike[str],
    *,
    experiment: str | None = None,
    value: str = "value",
    absent: float | None = None,
    weights: Weights = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read Statsig's table of first exposures.

    Parameters
    ----------
    exposures : path
        A CSV, Parquet or JSON lines file with ``unit_id``, ``name``, ``experiment_group`` and
        ``first_exposure_utc``.
    outcomes : path
        Table with ``unit_id`` and the outcome, one row per unit.
    experiment : str, optional
        Name of the experiment (column ``name``); required if the table contains several.
    value : str
        Column of the outcome.
    absent : float, optional
        Outcome of units that are absent from `outcomes`.
    weights : mapping of group to float, or "unknown"
        Traffic shares of the groups, if they were constant. The export does not contain the shares. Autotune
        changes the shares, so its logs are read with ``"unknown"``.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.

    Returns
    -------
    AdaptiveLog
        A log with one round per unit, in order of first exposure. With constant shares, the log is treated as
        that of an experiment that did not adapt.

    Raises
    ------
    ParameterError
        If a file cannot be read or lacks columns, units have no outcomes, or the shares are not given.
    LogValidationError
        If rows are invalid; the message lists every problem.

    Notes
    -----
    Units that were exposed to several groups are dropped and counted in ``log.report``. Statsig exports no
    exposures for rules at 0% or 100%; ``percent`` and ``rollout`` are not the shares of the groups.

    References
    ----------
    Statsig, "Data Warehouse Exports", docs.statsig.com.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> head = "unit_id,name,experiment_group,first_exposure_utc\n"
    >>> rows = "u1,button,Control,2025-01-01 09:00:00\nu2,button,Test,2025-01-01 10:00:00\n"
    >>> _ = (folder / "exposures.csv").write_text(head + rows)
    >>> _ = (folder / "outcomes.csv").write_text("unit_id,value\nu2,3.5\n")
    >>> files = folder / "exposures.csv", folder / "outcomes.csv"
    >>> log = ai.formats.read_statsig(*files, absent=0, weights={"Control": 0.5, "Test": 0.5})
    >>> log.arms, log.arrays.reward
    (('Control', 'Test'), array([0. , 3.5]))
    """
    names = ["unit_id", "name", "experiment_group"]
    table, found, _ = gathered(
        _SUBJECT,
        lambda: platform_table(_SUBJECT, exposures, [*names, "first_exposure_utc"], text=names),
        lambda: platform_table(_SUBJECT, outcomes, ["unit_id", value], text=["unit_id"]),
        lambda: refuse(_SUBJECT, share_problems(weights, _LACKING)),
    )
    table.only("name", experiment, "experiment")
    table.in_time("first_exposure_utc")
    table.first_of_units("unit_id", "experiment_group")
    table.join(found, "unit_id", value, absent)
    roles = shares_of(table, "experiment_group", weights)
    with log_of(str(table.path)):
        log = AdaptiveLog(
            table.frame,
            action="experiment_group",
            reward=value,
            unit="unit_id",
            reward_range=reward_range,
            adaptive=False if roles else None,
            about={"design": "Statsig experiment"},
            **roles,
        )
    return log.read_from(f"Statsig exposures {table.path.name}", table.readings)
