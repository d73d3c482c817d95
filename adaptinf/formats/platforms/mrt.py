"""Long tables of micro-randomised trials: one row per participant and decision point."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.formats.platforms.platform_tables import platform_table
from adaptinf.formats.transport import log_of, names_problems
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse

_SUBJECT = "read_mrt"
_CODES = ({0.0, 1.0}, {-1.0, 1.0})


def read_mrt(
    path: str | PathLike[str],
    *,
    unit: str,
    treatment: str,
    probability: str | float,
    outcome: str,
    decision: str | None = None,
    available: str | None = None,
    context: Iterable[str] = (),
    missing: str | None = None,
    reward_range: tuple[float, float] | None = None,
    adaptive: bool | None = None,
) -> AdaptiveLog:
    r"""Read the long table of a micro-randomised trial.

    Parameters
    ----------
    path : path
        A CSV, Parquet or JSON lines file with one row per participant and decision point.
    unit, treatment, outcome : str
        Columns of the participant, the treatment (1 and 0, or 1 and -1), and the proximal outcome.
    probability : str or float
        Column of the probability of treatment 1, or the probability itself if it is constant.
    decision : str, optional
        Column that numbers a participant's decision points; by default rows are already in order.
    available : str, optional
        Column that is 1 if the participant was available, and 0 if no treatment was randomised.
    context : iterable of str, optional
        Columns known before the choice.
    missing : {"drop", "bounds", "worst", "best"}, optional
        How missing outcomes are interpreted, as in `AdaptiveLog`; by default none may be missing.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.
    adaptive : bool, optional
        Whether the probabilities depended on outcomes; False if the protocol fixed them.

    Returns
    -------
    AdaptiveLog
        A log with one round per available decision point; the arms are 0 and 1, where 0 stands for 0 or -1.
        Participants are units, and if `decision` is given, the rounds are in order of the decision points.

    Raises
    ------
    ParameterError
        If the file cannot be read or lacks columns, or a code, probability or availability is invalid.
    LogValidationError
        If rows are invalid; the message lists every problem.

    Notes
    -----
    Rows in which the participant was not available have no randomised treatment; they are dropped, and
    counted in ``log.report``. An arm's mean refers to available decision points, given the treatments
    actually received before: the "excursion" effect of the literature. If probabilities were learned from
    several participants, calendar order matters: give the rows in that order, and omit `decision`.

    References
    ----------
    Qian, T. et al. (2022). The microrandomized trial for developing digital interventions: experimental
    design and data analysis considerations. Psychological Methods 27.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "mrt.csv"
    >>> rows = "userid,time,avail,intervention,steps\n1,1,1,1,40\n1,2,0,0,10\n2,1,1,0,25\n"
    >>> _ = path.write_text(rows)
    >>> columns = {"unit": "userid", "treatment": "intervention", "outcome": "steps", "decision": "time"}
    >>> log = ai.formats.read_mrt(path, **columns, probability=0.6, available="avail")
    >>> log.arms, log.arrays.propensity
    ((0, 1), array([0.6, 0.4]))
    """
    context = [context] if isinstance(context, str) else list(context)
    named = probability if isinstance(probability, str) else None
    problems = names_problems("context", context)
    if named is None and not 0.0 < float(probability) < 1.0:
        problems.append(f"probability must be a column or a number in (0, 1), got {probability!r:.60}")
    refuse(_SUBJECT, problems)
    optional = [name for name in (named, decision, available) if name is not None]
    table = platform_table(_SUBJECT, path, [unit, treatment, outcome, *optional, *context], text=[unit])
    if available is not None:
        kept = _numbers(table, available, ({0.0, 1.0},), "1 (available) or 0") == 1.0
        absent = {"absent": int((~kept).sum()), "rows": len(kept)}
        table.keep(kept, claims.NOT_AVAILABLE(**absent))
        if table.frame.empty:
            raise ParameterError(
                _SUBJECT, [f"{table.path}: no participant was available at any decision point"]
            )
    treated = _numbers(table, treatment, _CODES, "1 and 0, or 1 and -1") == 1.0
    chance = _numbers(table, named, None, "numbers") if named else np.full(len(treated), float(probability))
    if (wrong := np.flatnonzero(~((chance >= 0.0) & (chance <= 1.0)))).size:
        problem = f"{named} must be in [0, 1], but is {chance[wrong[0]]:g} in {wrong.size} rows"
        raise ParameterError(_SUBJECT, [f"{table.path}: {problem}"])
    own = {"drawn": treated.astype(int), "propensity of 0": 1.0 - chance, "propensity of 1": chance}
    if clash := [name for name in own if name in table.frame]:
        raise ParameterError(_SUBJECT, [f"{table.path}: columns must not be called {', '.join(clash)}"])
    frame = table.frame.assign(**own)
    rows = np.asarray(frame.index)
    if decision is not None:
        frame = _in_order(frame, table.path, unit, decision)
        rows = np.asarray(frame.index)
    with log_of(str(table.path), rows):
        log = AdaptiveLog(
            frame,
            action="drawn",
            reward=outcome,
            propensities={0: "propensity of 0", 1: "propensity of 1"},
            unit=unit,
            context=context,
            arms=[0, 1],
            missing=missing,
            reward_range=reward_range,
            adaptive=adaptive,
            about={"design": "micro-randomised trial"},
        )
    return log.read_from(f"micro-randomised trial {table.path.name}", table.readings)


def _in_order(frame: pd.DataFrame, path: Any, unit: str, decision: str) -> pd.DataFrame:
    """Rows in order of the decision points, each of which may occur only once per participant."""
    if twice := int(frame.duplicated([unit, decision]).sum()):
        raise ParameterError(
            _SUBJECT,
            [f"{path}: {twice} of {len(frame)} rows repeat the {unit} and {decision} of an earlier row"],
        )
    return frame.sort_values(decision, kind="stable")


def _numbers(table: Any, name: str, codes: tuple[set[float], ...] | None, wanted: str) -> Any:
    """Numbers of a column; values other than those allowed are an error."""
    values = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=float)
    sound = not np.isnan(values).any()
    if not sound or (codes is not None and not any(set(values.tolist()) <= each for each in codes)):
        shown = table.frame[name].drop_duplicates().head(4).tolist()
        raise ParameterError(_SUBJECT, [f"{table.path}: {name} must be {wanted}, but has {shown!r:.80}"])
    return values
