"""Folders of the Open Bandit Dataset."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.transport import column_of, labels_of, log_of, read_table
from adaptinf.formats.typed_csv import as_written, merged_problems, mixed_problems
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, Floor
from adaptinf.log.report import Reading
from adaptinf.log.validation import Label
from adaptinf.log.validation.frame_columns import label_key
from adaptinf.log.validation.row_order import read_times
from adaptinf.parameters import refuse

_NEEDED = ("timestamp", "item_id", "position", "click", "propensity_score")
ITEMS = "item_context.csv"
_SHOWN = 5
_DESIGNS = {
    "random": ("Uniform", DesignTraits(adapts=False, uses_context="no", floor=Floor(1.0, shared=True))),
    "bts": ("BernoulliTS", None),  # The files do not show which data the policy used or until when it learnt.
}


def read_open_bandit(
    folder: str | PathLike[str], *, position: int | None = None, affinities: bool = False
) -> AdaptiveLog:
    r"""Read one campaign of the Open Bandit Dataset, or any folder in the same format.

    Parameters
    ----------
    folder : path
        Folder for one policy and campaign, such as ``open_bandit_dataset/bts/women``, with ``<campaign>.csv``
        and ``item_context.csv``.
    position : int, optional
        Use only the impressions at this position on the page; by default all impressions, with the position
        as a context.
    affinities : bool
        Whether to keep the columns of user-item affinities as contexts, too.

    Returns
    -------
    AdaptiveLog
        A log with one round per impression, in order of time: arms are the items, and the reward is 1 for a
        click. The contexts are ``position`` and the hashed ``user_feature_...`` as strings.

    Raises
    ------
    ParameterError
        If files or columns are missing or damaged, timestamps are not valid times, a click is neither 0 nor
        1, an item was shown that ``item_context.csv`` does not list, or no impression has the requested
        position.
    LogValidationError
        If rows are invalid; the message lists every problem, counting rows from 0 as in the file.

    Notes
    -----
    The propensity is that of the item *at its position*: if all positions are in one log, it is the
    probability given the position, which is a context, and an arm's mean is its click rate over the observed
    positions. The files contain the propensity of the displayed item only.

    Impressions under ``random`` have the design ``Uniform`` and exact propensities. Impressions under ``bts``
    come from a Thompson sampling policy whose propensities the publishers computed by simulation, so they are
    treated as estimated. That policy was trained before the log begins; the files do not state to what extent
    it continued to learn from the log's own clicks, so the log does not claim that the policy was fixed.

    Items of ``item_context.csv`` that were never shown are arms without rounds.

    References
    ----------
    Saito, Y., Aihara, S., Matsutani, M. and Narita, Y. (2021). Open Bandit Dataset and Pipeline: towards
    realistic and reproducible off-policy evaluation. NeurIPS Datasets and Benchmarks.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp()) / "random" / "men"
    >>> folder.mkdir(parents=True)
    >>> rows = "timestamp,item_id,position,click,propensity_score\n2019-11-24 00:00:17+00:00,1,2,0,0.5\n"
    >>> _ = (folder / "men.csv").write_text(rows)
    >>> _ = (folder / "item_context.csv").write_text("item_id\n0\n1\n")
    >>> log = ai.formats.read_open_bandit(folder)
    >>> log.arms, log.design.name, log.propensity_status
    ((0, 1), 'Uniform', 'exact')
    """
    place = as_path("read_open_bandit", "folder", folder)
    impressions, path, items = _read(place)
    readings: list[Reading] = []
    if position is not None:
        total = len(impressions)
        impressions = impressions[impressions["position"] == position]
        if impressions.empty:
            raise ParameterError("read_open_bandit", [f"{path} has no impressions at position {position!r}"])
        others = {"others": total - len(impressions), "total": total, "position": position}
        readings.append(Reading("dropped", claims.OTHER_POSITIONS(**others)))
    if not impressions["timestamp"].is_monotonic_increasing:
        readings.append(Reading("order", claims.IMPRESSIONS_SORTED()))
    impressions = impressions.sort_values("timestamp", kind="stable")
    rows = impressions.index.to_numpy()
    policy = place.resolve().parent.name
    context = ["position", *(name for name in impressions.columns if name.startswith("user_feature_"))]
    if affinities:
        context += [name for name in impressions.columns if name.startswith("user-item_affinity_")]
    refuse("read_open_bandit", mixed_problems(path, impressions, context))
    with log_of(str(path), rows):
        log = AdaptiveLog(
            impressions[["item_id", "click", "propensity_score", *context]],
            action="item_id",
            reward="click",
            propensity="propensity_score",
            context=context,
            arms=sorted(items) if len(set(map(type, items))) == 1 else items,
            reward_range=(0, 1),
            about={
                "propensity_status": "exact" if policy == "random" else "estimated",
                "design": _design(policy),
            },
        )
    return log.read_from(f"Open Bandit file {path.name}", readings)


def _design(policy: str) -> DesignRecord | None:
    if policy not in _DESIGNS:
        return None
    name, traits = _DESIGNS[policy]
    return DesignRecord(name, {"source": "Open Bandit Dataset"}, traits)


def _read(place: Path) -> tuple[pd.DataFrame, Path, list[Label]]:
    """Impressions with times, their file, and the items; a single error lists everything that is missing."""
    path = campaign_file(place, "read_open_bandit")
    impressions, items = read_table("read_open_bandit", path), read_table("read_open_bandit", place / ITEMS)
    refuse(
        "read_open_bandit",
        header_problems(path, list(impressions.columns))
        + header_problems(place / ITEMS, list(items.columns)),
    )
    hashed = [name for name in impressions.columns if name.startswith("user_feature_")]
    impressions, coded = _written(path, impressions, hashed)
    items, listed_coded = _written(place / ITEMS, items, [])
    # Codes such as 01 may occur in only one of the two files, but labels must match, so both are then read as
    # text.
    if coded or listed_coded:
        impressions, _ = as_written(path, impressions, text=["item_id"])
        items, _ = as_written(place / ITEMS, items, text=["item_id"])
    listed, shown = labels_of(items, "item_id"), labels_of(impressions, "item_id")
    times, problems = _times(path, impressions)
    if (listed.missing | listed.bad).any() or len(listed.values) < len(items):
        problems.append(f"{place / ITEMS}: item_id must name every item exactly once")
    known = set(map(label_key, listed.values))
    unknown = [label for label in shown.values if label_key(label) not in known]
    if unknown:
        problems.append(
            f"{path} shows {', '.join(map(repr, unknown[:_SHOWN]))}, which {ITEMS} does not list: it must "
            "list all items that could be shown"
        )
    clicks = impressions["click"].to_numpy(dtype=object)
    wrong = [
        row for row, click in enumerate(clicks) if not isinstance(click, int | float) or click not in (0, 1)
    ]
    if wrong:
        problems.append(
            f"{path}: click must be 0 or 1; rows with other values: {len(wrong)}, the first being row "
            f"{wrong[0]}"
        )
    refuse("read_open_bandit", problems)
    return impressions.assign(timestamp=times), path, listed.values


def _written(path: Path, table: pd.DataFrame, context: list[str]) -> tuple[pd.DataFrame, bool]:
    """A table whose items and contexts keep their original text, and whether its items are text."""
    refuse("read_open_bandit", merged_problems(path, table, ["item_id"]))
    table, _ = as_written(path, table, context=context)
    table, told = as_written(path, table, ["item_id"])
    return table, bool(told)


def campaign_file(place: Path, subject: str) -> Path:
    """The file that contains the impressions."""
    try:
        folder = place.is_dir()
    except OSError:  # Some paths raise an error here, such as a name that is too long.
        folder = False
    # A campaign's file is named after its folder. A folder made by hand may contain any single CSV file
    # besides the items.
    tables = sorted(path for path in place.glob("*.csv") if path.name != ITEMS) if folder else []
    named = [path for path in tables if path.stem == place.resolve().name]
    problems = []
    if not folder:
        problems.append(
            f"{place} is not a folder: give the folder of a policy and campaign, such as bts/women"
        )
    elif len(named or tables) != 1:
        problems.append(f"{place} must contain <campaign>.csv, but has {[path.name for path in tables]}")
    if folder and not (place / ITEMS).is_file():
        problems.append(f"{place} must contain {ITEMS}, the list of all items that could be shown")
    refuse(subject, problems)
    return (named or tables)[0]


def header_problems(path: Path, names: list[Any]) -> list[str]:
    """Columns that are missing or duplicated."""
    needed = ("item_id",) if path.name == ITEMS else _NEEDED
    missing = [name for name in needed if name not in names]
    problems = [f"{path.name} has no column {', '.join(missing)}"] if missing else []
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return problems + ([f"{path.name} has several columns {', '.join(map(repr, twice))}"] if twice else [])


def _times(path: Path, impressions: pd.DataFrame) -> tuple[Any, list[str]]:
    """Times of the impressions, and problems with them."""
    times, bad = read_times(column_of(impressions[["timestamp"]].astype(object), "timestamp"))
    wrong = np.flatnonzero(bad | times.missing)
    if not wrong.size:
        return times.values, []
    said = f"the first in row {wrong[0]}: {impressions['timestamp'].iloc[wrong[0]]!r:.60}"
    return times.values, [f"{path}: {wrong.size} timestamps are not times in ISO 8601, {said}"]
