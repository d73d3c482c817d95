"""The farmer trial of Kasy and Sautmann, from a file of your own."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from adaptinf.errors import ParameterError
from adaptinf.files import as_path

if TYPE_CHECKING:
    import pandas as pd

_SOURCE = (
    "data/combined_outcomes.csv of the public repository "
    "github.com/maxkasy/Precision-Agriculture-for-Development"
)
_COLUMNS = ("treatment", "outcome", "date")
_ARMS = range(1, 7)


def farmer_trial(path: str | PathLike[str]) -> pd.DataFrame:
    r"""How to call rice farmers: 8,400 calls in 14 batches of an adaptive trial, six treatments.

    Parameters
    ----------
    path : path
        A copy of ``data/combined_outcomes.csv`` of the public repository
        ``maxkasy/Precision-Agriculture-for-Development`` on GitHub. The repository states no licence, so
        adaptinf does not ship the file and does not fetch it.

    Returns
    -------
    DataFrame
        One row per call, in the order of the file, newest first:

        ========= ===================================================================================
        treatment 1 to 6: a call at 10 am without a text message before it, with one an hour or a day
                  before; the same at 6:30 pm
        outcome   1 for a successful call, else 0
        date      day of the batch, month/day/year as text
        ========= ===================================================================================

    Raises
    ------
    FileNotFoundError
        If there is no such file; it says where to get it.
    ParameterError
        If the file is another one, with all that differs.

    Notes
    -----
    Each batch of 600 calls was assigned after the outcomes of the earlier ones, by exploration sampling, a
    modified Thompson sampling; the assignment probabilities are not in the file. As it stands a log of it is
    refused, because batches go back in time; ``sort=True`` puts the rows in the order of their dates. Read
    as labels in the order of the file, the batches would make another treatment look best.

    The authors publish 139, 624, 324, 48, 166 and 222 successes in 867, 3,188, 1,766, 334, 987 and 1,258
    calls: treatment 2 is best.

    References
    ----------
    Kasy, M. and Sautmann, A. (2021). Adaptive treatment assignment in experiments for policy choice.
    Econometrica 89, 113-132.

    Examples
    --------
    The first and the last calls of a file of this form:

    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "combined_outcomes.csv"
    >>> calls = "3,0,06/30/2019\n2,1,06/30/2019\n2,0,6/3/2019\n1,0,6/3/2019\n"
    >>> _ = path.write_text("treatment,outcome,date\n" + calls)
    >>> frame = ai.datasets.farmer_trial(path)
    >>> log = ai.AdaptiveLog(frame, action="treatment", reward="outcome", batch="date", sort=True)
    >>> log.arrays.action.tolist(), log.arrays.batch.tolist()
    ([1, 0, 2, 1], [0, 0, 1, 1])
    """
    from adaptinf.formats.tables import read_table

    place = as_path("farmer_trial", "path", path)
    try:
        frame = read_table("farmer_trial", place)
    except FileNotFoundError:
        raise FileNotFoundError(f"farmer_trial: there is no file {place}; get {_SOURCE}") from None
    if tuple(frame.columns) != _COLUMNS:
        found = f"{list(frame.columns)!r:.200}"
        raise ParameterError(
            "farmer_trial", [f"{place} must have the columns {_COLUMNS}, has {found}: get {_SOURCE}"]
        )
    problems = [
        f"{place}: {name} must be {what}, and is not in {int(wrong.sum())} rows, first {wrong.argmax()}"
        for name, known, what in (
            ("treatment", _ARMS, "a whole number from 1 to 6"),
            ("outcome", (0, 1), "0 or 1"),
        )
        if (wrong := ~frame[name].isin(list(known)).to_numpy()).any()
    ]
    if problems:
        raise ParameterError("farmer_trial", problems)
    return frame
