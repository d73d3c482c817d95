"""Real data: data sets shipped with a dependency of adaptinf, and your own files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from adaptinf.errors import ParameterError
from adaptinf.files import as_path

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["farmer_trial", "rand_hie"]


def __dir__() -> list[str]:
    return sorted(__all__)


def rand_hie() -> pd.DataFrame:
    """Effect of free care on doctor visits: 20,190 person-years from the RAND Health Insurance Experiment.

    Returns
    -------
    DataFrame
        One row per person-year:

        ===================== ============================================================================
        arm                   ``"free care"`` or ``"cost sharing"``: the insurance plan
        any_visit             1 if a doctor was seen at least once in the year, else 0
        group                 ``"excellent"``, ``"good"`` or ``"fair-or-poor"``: self-rated health
        visits                number of visits to a doctor in the year
        coinsurance           percent of the bills that the family paid, as coded in the file
        individual_deductible 1 for the individual deductible plan, else 0
        ===================== ============================================================================

    Notes
    -----
    Families at six sites were randomly assigned to plans, and stayed for three or five years: a person has up
    to five rows, which are not linked in the file. Rows are in the order of the file.

    Free care is a coinsurance of 0 outside the individual deductible plan: 6,822 person-years. The file has a
    coinsurance of 0 for most of that plan, too (4,175 person-years), but its members paid for their
    outpatient care up to a yearly limit (Manning et al. 1987): it counts as cost sharing here. Treating
    ``lncoins == 0`` alone as free care would mix the two.

    statsmodels notes that the data are a subset of the original data, differ slightly from those reported in
    Cameron and Trivedi (2005), and are in the public domain. Our columns are based on its ``lncoins`` (the
    logarithm of coinsurance + 1), ``idp``, ``mdvis``, ``hlthg``, ``hlthf`` and ``hlthp``.

    References
    ----------
    Newhouse, J. P. and the Insurance Experiment Group (1993). Free for all? Lessons from the RAND Health
    Insurance Experiment. Harvard University Press. Manning, W. G., Newhouse, J. P., Duan, N., Keeler, E. B.,
    Leibowitz, A. and Marquis, M. S. (1987). Health insurance and the demand for medical care. American
    Economic Review 77, 251-277. Cameron, A. C. and Trivedi, P. K. (2005). Microeconometrics. Cambridge
    University Press.

    Examples
    --------
    >>> import adaptinf as ai
    >>> frame = ai.datasets.rand_hie()
    >>> frame.loc[[0, 7, 99, 10000], ["arm", "any_visit", "group", "visits", "coinsurance"]]
                    arm  any_visit         group  visits  coinsurance
    0      cost sharing          0          good       0          100
    7      cost sharing          1     excellent       1          100
    99        free care          1  fair-or-poor      21            0
    10000  cost sharing          1     excellent       1            0
    >>> frame.groupby("arm")["any_visit"].agg(["size", "mean"]).round(4)
                   size    mean
    arm
    cost sharing  13368  0.6394
    free care      6822  0.7819
    """
    import numpy as np
    import pandas as pd
    from statsmodels.datasets import randhie

    source = randhie.load_pandas().data
    deductible = source["idp"] == 1
    free = (source["lncoins"] == 0) & ~deductible
    poor = (source["hlthf"] == 1) | (source["hlthp"] == 1)
    health = np.select([poor, source["hlthg"] == 1], ["fair-or-poor", "good"], "excellent")
    return pd.DataFrame(
        {
            "arm": np.where(free, "free care", "cost sharing"),
            "any_visit": (source["mdvis"] > 0).astype("int64"),
            "group": health,
            "visits": source["mdvis"].astype("int64"),
            "coinsurance": np.expm1(source["lncoins"]).round().astype("int64"),
            "individual_deductible": deductible.astype("int64"),
        }
    )


_SOURCE = (
    "data/combined_outcomes.csv of the public repository "
    "github.com/maxkasy/Precision-Agriculture-for-Development"
)
_COLUMNS = ("treatment", "outcome", "date")
_ARMS = range(1, 7)


def farmer_trial(path: str | PathLike[str]) -> pd.DataFrame:
    r"""How to call rice farmers: 8,400 calls in 14 batches from an adaptive trial with six treatments.

    Parameters
    ----------
    path : path
        Path to a copy of ``data/combined_outcomes.csv`` from the public repository
        ``maxkasy/Precision-Agriculture-for-Development`` on GitHub. The repository has no licence, so
        adaptinf neither ships nor downloads the file.

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
        If there is no such file; the message says where it can be obtained.
    ParameterError
        If the file differs from the expected one; the message lists all differences.

    Notes
    -----
    Each batch of 600 calls was assigned after the outcomes of the earlier ones, by exploration sampling, a
    modified form of Thompson sampling; the assignment probabilities are not in the file. In its original
    order, the file is refused as a log, because batches go back in time; ``"sort": True`` sorts the rows by
    date. If the batches were read as labels in the order of the file, a different treatment would appear
    best.

    The authors publish 139, 624, 324, 48, 166 and 222 successes in 867, 3,188, 1,766, 334, 987 and 1,258
    calls: treatment 2 is best.

    References
    ----------
    Kasy, M. and Sautmann, A. (2021). Adaptive treatment assignment in experiments for policy choice.
    Econometrica 89, 113-132.

    Examples
    --------
    The first and last calls of a file in this format:

    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "combined_outcomes.csv"
    >>> calls = "3,0,06/30/2019\n2,1,06/30/2019\n2,0,6/3/2019\n1,0,6/3/2019\n"
    >>> _ = path.write_text("treatment,outcome,date\n" + calls)
    >>> frame = ai.datasets.farmer_trial(path)
    >>> log = ai.AdaptiveLog(
    ...     frame, action="treatment", reward="outcome", batch="date", reading={"sort": True}
    ... )
    >>> log.arrays.action.tolist(), log.arrays.batch.tolist()
    ([1, 0, 2, 1], [0, 0, 1, 1])
    """
    from adaptinf.formats.transport import read_table

    place = as_path("farmer_trial", "path", path)
    try:
        frame = read_table("farmer_trial", place)
    except FileNotFoundError:
        raise FileNotFoundError(f"farmer_trial: file {place} does not exist: download {_SOURCE}") from None
    if tuple(frame.columns) != _COLUMNS:
        found = f"{list(frame.columns)!r:.200}"
        raise ParameterError(
            "farmer_trial",
            [f"{place} must have the columns {_COLUMNS}, but it has {found}: download {_SOURCE}"],
        )
    problems = [
        f"{place}: {name} must be {what}; rows with other values: {int(wrong.sum())}, the first being row "
        f"{wrong.argmax()}"
        for name, known, what in (
            ("treatment", _ARMS, "a whole number from 1 to 6"),
            ("outcome", (0, 1), "0 or 1"),
        )
        if (wrong := ~frame[name].isin(list(known)).to_numpy()).any()
    ]
    if problems:
        raise ParameterError("farmer_trial", problems)
    return frame
