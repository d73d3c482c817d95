"""Bandits of GrowthBook: the experiment with its weights by period, and the units with their outcomes."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.platforms.platform_tables import gathered, platform_table
from adaptinf.formats.transport import log_of
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.log.validation.frame_columns import SUM_TOLERANCE
from adaptinf.parameters import refuse

_SUBJECT = "read_growthbook"
_SEVERAL = "__multiple__"


def read_growthbook(
    experiment: str | PathLike[str],
    units: str | PathLike[str],
    *,
    value: str = "value",
    unit: str = "user_id",
    phase: int | None = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read a GrowthBook bandit, or an experiment with fixed weights.

    Parameters
    ----------
    experiment : path
        JSON of the experiment, with ``variations`` and ``phases``. A phase of a bandit has ``banditEvents``:
        the dates at which periods began, and ``updatedWeights``, the weights from that date onwards.
    units : path
        CSV, Parquet or JSON lines with one row per unit: ``variation`` (the identifier or the key), the time
        ``first_exposure_timestamp``, and the outcome. GrowthBook's own units tables contain the first two.
    value : str
        Column of the outcome of the decision metric.
    unit : str
        Column that identifies the unit, that is, the type of identifier by which the experiment randomises.
    phase : int, optional
        Phase of the experiment, counted from 1; by default the last.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.

    Returns
    -------
    AdaptiveLog
        A log with one round per unit, in order of first exposure. Arms are the keys of the variations,
        batches are the periods of the bandit, and propensities are the weights of the period.

    Raises
    ------
    ParameterError
        If a file cannot be read or lacks a required entry, a period has no weight for a variation, or a unit
        was exposed before the first period.
    LogValidationError
        If units are invalid; the message lists every problem.

    Notes
    -----
    Times without a time zone are taken as UTC. As in GrowthBook, a unit belongs to the last period that began
    no later than its first exposure. Units under ``__multiple__``, which were exposed to several variations,
    are dropped and counted in ``log.report``. Contextual bandits, whose weights differ between leaves, are
    refused.

    References
    ----------
    GrowthBook, "Bandits", docs.growthbook.io; ``ExperimentPhase`` and ``BanditEvent`` of
    ``packages/shared/src/validators/experiments.ts``.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> dates = [("2025-01-01T00:00:00Z", [0.5, 0.5]), ("2025-01-02T00:00:00Z", [0.2, 0.8])]
    >>> events = [{"date": date, "banditResult": {"updatedWeights": weights}} for date, weights in dates]
    >>> variations = [{"id": "v0", "key": "old"}, {"id": "v1", "key": "new"}]
    >>> bandit = {"variations": variations, "phases": [{"banditEvents": events}]}
    >>> _ = (folder / "bandit.json").write_text(json.dumps(bandit))
    >>> rows = "user_id,variation,first_exposure_timestamp,value\nu1,v0,2025-01-01T09:00:00Z,1\n"
    >>> _ = (folder / "units.csv").write_text(rows + "u2,v1,2025-01-02T10:00:00Z,0\n")
    >>> log = ai.formats.read_growthbook(folder / "bandit.json", folder / "units.csv")
    >>> log.frame[["action", "reward", "batch", "propensity"]]
      action  reward  batch  propensity
    0    old     1.0      0         0.5
    1    new     0.0      1         0.8
    """
    place = as_path(_SUBJECT, "experiment", experiment)
    needed = [unit, "variation", "first_exposure_timestamp", value]
    (names, starts, weights), table = gathered(
        _SUBJECT,
        lambda: _periods(place, _experiment(place), phase),
        lambda: platform_table(_SUBJECT, units, needed, text=[unit, "variation"]),
    )
    several = (table.frame["variation"] == _SEVERAL).to_numpy()
    left = table.frame.loc[several, unit].nunique()
    table.keep(~several, claims.SEVERAL_ARMS(moved=left, units=table.frame[unit].nunique()))
    table.in_time("first_exposure_timestamp")
    frame = table.frame
    times = frame["first_exposure_timestamp"].to_numpy(dtype="datetime64[us]")
    period = np.searchsorted(starts, times, side="right") - 1 if starts.size else np.zeros(len(times), int)
    action = frame["variation"].map(names)
    refuse(
        _SUBJECT,
        [f"{table.path}: {problem}" for problem in _unit_problems(frame, unit, action, period)],
    )
    keys = list(dict.fromkeys(names.values()))
    with log_of(str(table.path)):
        log = AdaptiveLog(
            pd.DataFrame(
                {"action": action, "reward": frame[value], "batch": period, unit: frame[unit]}
                | {f"propensity of {key}": weights[period, place] for place, key in enumerate(keys)}
            ),
            action="action",
            reward="reward",
            batch="batch",
            unit=unit,
            propensities={key: f"propensity of {key}" for key in keys},
            arms=keys,
            reward_range=reward_range,
            adaptive=None if starts.size else False,
            about={"design": "GrowthBook bandit" if starts.size else "GrowthBook experiment"},
        )
    periods = [Reading("caution", claims.BEFORE_PERIODS())] if starts.size else []
    return log.read_from(f"GrowthBook units {table.path.name}", [*table.readings, *periods])


def _unit_problems(frame: pd.DataFrame, unit: str, action: pd.Series, period: Any) -> list[str]:
    problems = []
    if action.isna().any():
        problems.append(f"the experiment has no variation {frame['variation'][action.isna()].iloc[0]!r:.60}")
    if twice := int(frame.duplicated(unit).sum()):
        problems.append(
            f"{twice} of {len(frame)} rows repeat the {unit} of an earlier row: keep only "
            f"each unit's first exposure"
        )
    if (period < 0).any():
        problems.append(f"{int((period < 0).sum())} units were exposed before the first period of the phase")
    return problems


def _experiment(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ParameterError(_SUBJECT, [f"{path} is not JSON: {error!s:.120}"]) from error
    found = found.get("experiment", found) if isinstance(found, dict) else {}
    refuse(
        _SUBJECT,
        [
            f"{path} has no {name}, a list of objects"
            for name in ("variations", "phases")
            if not isinstance(found.get(name), list)
            or not found[name]
            or not all(isinstance(each, dict) for each in found[name])
        ],
    )
    return dict(found)


def _periods(path: Path, experiment: dict[str, Any], phase: int | None) -> tuple[dict[str, str], Any, Any]:
    """Keys of the variations by id and key, starts of the periods (n,), and their weights (n, arms)."""
    phases, variations = experiment["phases"], experiment["variations"]
    if phase is not None and not (type(phase) is int and 1 <= phase <= len(phases)):
        raise ParameterError(_SUBJECT, [f"phase must be from 1 to {len(phases)}, got {phase!r:.60}"])
    keys = [str(each.get("key", each.get("id", place))) for place, each in enumerate(variations)]
    names = {str(each.get("id", key)): key for each, key in zip(variations, keys, strict=True)}
    names |= dict(zip(keys, keys, strict=True))
    chosen = phases[-1 if phase is None else phase - 1]
    events = chosen.get("banditEvents") or []
    results = [event.get("banditResult", {}) for event in events]
    problems = []
    if experiment.get("type") == "contextual-bandit" or any("responses" in event for event in events):
        problems.append(
            "it is a contextual bandit, whose weights differ between leaves: this format cannot be read"
        )
    if len(set(keys)) < len(keys):
        problems.append("two variations have the same key")
    weights = [result.get("updatedWeights") for result in results] or [chosen.get("variationWeights")]
    for number, shares in enumerate(weights, 1):
        sound = isinstance(shares, list) and len(shares) == len(keys)
        if not sound or not all(isinstance(share, int | float) for share in shares):
            problems.append(
                f"period {number} of the phase must have one weight per variation, but has {shares!r:.60}"
            )
        elif abs(sum(shares) - 1.0) > SUM_TOLERANCE:
            problems.append(f"the weights of period {number} sum to {sum(shares):g}, not 1")
    dates = pd.to_datetime(
        [event.get("date") for event in events], utc=True, errors="coerce", format="ISO8601"
    )
    if dates.isna().any() or not dates.is_monotonic_increasing:
        problems.append("banditEvents must have dates in ISO 8601 that increase")
    refuse(_SUBJECT, [f"{path}: {problem}" for problem in problems])
    return names, dates.tz_localize(None).to_numpy(dtype="datetime64[us]"), np.array(weights, dtype=float)
