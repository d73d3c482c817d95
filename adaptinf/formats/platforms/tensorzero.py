"""Tables of TensorZero's gateway: inferences, with the variant that answered, and feedback on a metric."""

from __future__ import annotations

import uuid
from os import PathLike
from typing import Any

import numpy as np

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
from adaptinf.formats.transport import log_of
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.parameters import refuse

_SUBJECT = "read_tensorzero"
_LACKING = "TensorZero's tables do not contain sampling probabilities"


def read_tensorzero(
    inferences: str | PathLike[str],
    feedback: str | PathLike[str],
    *,
    metric: str | None = None,
    function: str | None = None,
    level: str = "inference",
    absent: float | None = None,
    weights: Weights = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read the tables of inferences and feedback of a TensorZero gateway.

    Parameters
    ----------
    inferences : path
        A CSV, Parquet or JSON lines file of ``ChatInference`` or ``JsonInference`` (in Postgres
        ``chat_inferences``, ``json_inferences``): ``id``, ``function_name``, ``variant_name`` and
        ``episode_id``.
    feedback : path
        The same kind of file for ``BooleanMetricFeedback`` or ``FloatMetricFeedback``: ``id``, ``target_id``,
        ``metric_name`` and ``value``.
    metric, function : str, optional
        Metric and function; required if the tables contain several.
    level : {"inference", "episode"}
        The object to which the metric's feedback refers, according to its configuration.
    absent : float, optional
        Outcome of an inference or episode without feedback.
    weights : mapping of variant to float, or "unknown"
        The variants' probabilities under ``type = "static"``, which are in the gateway's configuration but
        not in its tables. Adaptive experiments, whose probabilities are not stored, are read with
        ``"unknown"``.
    reward_range : (float, float), optional
        Smallest and largest possible outcome.

    Returns
    -------
    AdaptiveLog
        A log with one round per inference, or per episode, in chronological order, by the times in
        the identifiers.
        The unit is the episode, within which a function always uses the same variant.

    Raises
    ------
    ParameterError
        If a file cannot be read or lacks columns, an identifier is not a version 7 UUID, inferences have no
        feedback, or the probabilities are not given.
    LogValidationError
        If rows are invalid; the message lists every problem.

    Notes
    -----
    If a target has feedback more than once, the last one counts, as in TensorZero. Inferences whose variant
    was determined by the request or by an evaluation were not randomised: drop them first. Episodes in which
    a fallback answered have several variants; they are dropped and counted in ``log.report``.

    References
    ----------
    TensorZero, "Data Model" and "Run adaptive A/B tests", tensorzero.com/docs.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> ids = [f"0194{place:04d}-0000-7000-8000-000000000000" for place in range(6)]
    >>> head = "id,function_name,variant_name,episode_id\n"
    >>> rows = f"{ids[1]},draft,long,{ids[0]}\n{ids[3]},draft,short,{ids[2]}\n"
    >>> _ = (folder / "inferences.csv").write_text(head + rows)
    >>> head = "id,target_id,metric_name,value\n"
    >>> _ = (folder / "feedback.csv").write_text(head + f"{ids[5]},{ids[1]},liked,true\n")
    >>> files = folder / "inferences.csv", folder / "feedback.csv"
    >>> log = ai.formats.read_tensorzero(*files, absent=0, weights={"long": 0.5, "short": 0.5})
    >>> log.arms, log.arrays.reward
    (('long', 'short'), array([1., 0.]))
    """
    problems = (
        []
        if level in ("inference", "episode")
        else [f'level must be "inference" or "episode", got {level!r:.60}']
    )
    names = ["id", "function_name", "variant_name", "episode_id"]
    targets = ["id", "target_id", "metric_name"]
    table, other, _ = gathered(
        _SUBJECT,
        lambda: platform_table(_SUBJECT, inferences, names, text=names),
        lambda: platform_table(_SUBJECT, feedback, [*targets, "value"], text=targets),
        lambda: refuse(_SUBJECT, problems + share_problems(weights, _LACKING)),
    )
    table.only("function_name", function, "function")
    order = np.argsort(_times(table), kind="stable")
    if (np.diff(order) < 0).any():
        table.readings.append(Reading("order", claims.ROWS_SORTED(column="id")))
    table.frame = table.frame.iloc[order].reset_index(drop=True)
    several = (table.frame.groupby("episode_id")["variant_name"].transform("nunique") > 1).to_numpy()
    if level == "episode":
        table.first_of_units("episode_id", "variant_name")
    elif several.any():
        episodes = table.frame["episode_id"]
        moved = {"moved": episodes[several].nunique(), "units": episodes.nunique()}
        table.keep(~several, claims.SEVERAL_ARMS(**moved))
    target = "id" if level == "inference" else "episode_id"
    found = _feedback(table, other, metric)
    none = ~table.frame[target].isin(found.index).to_numpy()
    if none.any() and absent is None:
        problem = f"{int(none.sum())} of {len(none)} targets have no feedback: pass absent=0 if that means 0"
        raise ParameterError(_SUBJECT, [f"{table.path}: {problem}"])
    if none.any():
        table.readings.append(Reading("outcome", claims.ABSENT_OUTCOMES(absent=absent, rows=int(none.sum()))))
    rewards = table.frame[target].map(found).astype(float)
    table.frame = table.frame.assign(reward=rewards.where(~none, absent) if none.any() else rewards)
    roles = shares_of(table, "variant_name", weights)
    with log_of(str(table.path)):
        log = AdaptiveLog(
            table.frame,
            action="variant_name",
            reward="reward",
            unit="episode_id",
            id="id",
            reward_range=reward_range,
            adaptive=False if roles else None,
            about={"design": "TensorZero experiment"},
            **roles,
        )
    return log.read_from(f"TensorZero inferences {table.path.name}", table.readings)


def _feedback(table: Table, feedback: Table, metric: str | None) -> Any:
    """Value of the last feedback for each target."""
    feedback.only("metric_name", metric, "metric")
    feedback.frame = feedback.frame.iloc[np.argsort(_times(feedback), kind="stable")]
    last = ~feedback.frame.duplicated("target_id", keep="last").to_numpy()
    replaced = {"replaced": int((~last).sum()), "rows": len(last)}
    feedback.keep(last, claims.REPLACED_FEEDBACK(**replaced))
    table.readings += feedback.readings
    if feedback.frame["value"].dtype.kind not in "bif":
        shown = f"such as {feedback.frame['value'].iloc[0]!r:.60}"
        raise ParameterError(_SUBJECT, [f"{feedback.path}: value must be true, false or numbers, {shown}"])
    return feedback.frame.set_index("target_id")["value"]


def _times(table: Table) -> Any:
    """Times of the rows in milliseconds, which are the first part of a version 7 UUID."""
    times = []
    for text in table.frame["id"]:
        try:
            parsed = uuid.UUID(text)
        except ValueError:
            parsed = None
        if parsed is None or parsed.version != 7:
            raise ParameterError(
                _SUBJECT, [f"{table.path}: id must be a UUID of version 7, not {text!r:.60}"]
            )
        times.append(parsed.int >> 80)
    return np.array(times)
