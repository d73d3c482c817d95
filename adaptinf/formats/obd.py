"""Folders of the Open Bandit Dataset."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, Floor
from adaptinf.parameters import refuse

_NEEDED = ("timestamp", "item_id", "position", "click", "propensity_score")
_ITEMS = "item_context.csv"
_DESIGNS = {
    "random": ("Uniform", DesignTraits(adapts=False, uses_context="no", floor=Floor(1.0, shared=True))),
    "bts": ("BernoulliTS", None),  # what it looked at, and until when it learnt, is not in the files
}


def read_open_bandit(
    folder: str | PathLike[str], *, position: int | None = None, affinities: bool = False
) -> AdaptiveLog:
    r"""Read one campaign of the Open Bandit Dataset, or any folder of the same form.

    Parameters
    ----------
    folder : path
        Folder of one policy and campaign, such as ``open_bandit_dataset/bts/women``, with ``<campaign>.csv``
        and ``item_context.csv``.
    position : int, optional
        Take the impressions at this position of the page alone; by default all, with the position as a
        context.
    affinities : bool
        Whether to keep the columns of user-item affinities as contexts too.

    Returns
    -------
    AdaptiveLog
        One round an impression, in order of time: arms are the items, the reward is 1 for a click. Contexts
        are ``position`` and the hashed ``user_feature_...`` as strings.

    Raises
    ------
    ParameterError
        If files or columns are missing, or no impression has the position.
    LogValidationError
        With all that is found wrong with the rows.

    Notes
    -----
    The propensity is that of the item *at its position*: with all positions in one log it is the probability
    given the position, which is a context, and an arm's mean is its click rate over the positions as they
    came. Only the shown item's propensity is in the files.

    Impressions under ``random`` have the design ``Uniform`` and exact propensities. Those under ``bts`` are
    of a Thompson sampling policy whose propensities the publishers computed by simulation, so they count as
    estimated. That policy was trained before the log begins; how far it still learnt from the log's own
    clicks is not in the files, so the log does not claim that it was fixed.

    Items of ``item_context.csv`` that were never shown are arms without rounds.

    References
    ----------
    Saito, Y., Aihara, S., Matsutani, M. and Narita, Y. (2021). Open Bandit Dataset and Pipeline: towards
    realistic and reproducible off-policy evaluation. NeurIPS Datasets and Benchmarks.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "random" / "men"
    >>> folder.mkdir(parents=True)
    >>> rows = "timestamp,item_id,position,click,propensity_score\n2019-11-24 00:00:17+00:00,1,2,0,0.5\n"
    >>> _ = (folder / "men.csv").write_text(rows)
    >>> _ = (folder / "item_context.csv").write_text("item_id\n0\n1\n")
    >>> log = read_open_bandit(folder)
    >>> log.arms, log.design.name, log.propensity_status
    ((0, 1), 'Uniform', 'exact')
    """
    place = as_path("read_open_bandit", "folder", folder)
    impressions, items = _read(place)
    if position is not None:
        impressions = impressions[impressions["position"] == position]
        if impressions.empty:
            raise ParameterError("read_open_bandit", [f"no impression is at position {position!r}"])
    impressions = impressions.sort_values("timestamp", kind="stable", ignore_index=True)
    policy = place.resolve().parent.name
    context = ["position", *(name for name in impressions.columns if name.startswith("user_feature_"))]
    if affinities:
        context += [name for name in impressions.columns if name.startswith("user-item_affinity_")]
    return AdaptiveLog(
        impressions[["item_id", "click", "propensity_score", *context]],
        action="item_id",
        reward="click",
        propensity="propensity_score",
        context=context,
        arms=np.union1d(items, impressions["item_id"].to_numpy()).tolist(),
        reward_range=(0, 1),
        propensity_status="exact" if policy == "random" else "estimated",
        design=_design(policy),
    )


def _design(policy: str) -> DesignRecord | None:
    if policy not in _DESIGNS:
        return None
    name, traits = _DESIGNS[policy]
    return DesignRecord(name, {"source": "Open Bandit Dataset"}, traits)


def _read(place: Path) -> tuple[pd.DataFrame, Any]:
    """Impressions, with times, and the items; everything that is missing in one error."""
    # A campaign's file has its folder's name; a folder made by hand may have any one CSV beside the items.
    tables = sorted(path for path in place.glob("*.csv") if path.name != _ITEMS)
    named = [path for path in tables if path.stem == place.resolve().name]
    problems = []
    if not place.is_dir():
        problems.append(f"{place} is no folder: name the one of a policy and campaign, such as bts/women")
    elif len(named or tables) != 1:
        problems.append(f"{place} must hold <campaign>.csv, has {[path.name for path in tables]}")
    if place.is_dir() and not (place / _ITEMS).is_file():
        problems.append(f"{place} must hold {_ITEMS}, the list of all items that could be shown")
    refuse("read_open_bandit", problems)
    impressions = pd.read_csv((named or tables)[0])
    items = pd.read_csv(place / _ITEMS)
    missing = [name for name in _NEEDED if name not in impressions]
    if missing:
        problems.append(f"{(named or tables)[0].name} has no column {', '.join(missing)}")
    else:
        times = pd.to_datetime(impressions["timestamp"], errors="coerce", utc=True, format="ISO8601")
        wrong = np.flatnonzero(times.isna())
        if wrong.size:
            problems.append(f"{wrong.size} timestamps are no times, the first in row {wrong[0]}")
        impressions = impressions.assign(timestamp=times)
    if "item_id" not in items:
        problems.append(f"{_ITEMS} has no column item_id")
    refuse("read_open_bandit", problems)
    return impressions, items["item_id"].to_numpy()
