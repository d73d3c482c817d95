"""The RAND Health Insurance Experiment, as statsmodels ships it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def rand_hie() -> pd.DataFrame:
    """Whether a free doctor is seen more often: 20,190 person-years of the RAND Health Insurance Experiment.

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
    Families of six sites were assigned to plans at random, and stayed for three or five years: a person has
    up to five rows, which the file does not link. Rows are in the order of the file.

    Free care is a coinsurance of 0 outside the individual deductible plan: 6,822 person-years. The file has a
    coinsurance of 0 for most of that plan too (4,175 person-years), but its members paid for their outpatient
    care up to a yearly limit (Manning et al. 1987): it is cost sharing here. Taking ``lncoins == 0`` alone
    for free care would mix the two.

    statsmodels notes that the data are a subset of the original ones, vary slightly compared to those
    reported in Cameron and Trivedi (2005), and are in the public domain. Behind our columns are its
    ``lncoins`` (the logarithm of coinsurance + 1), ``idp``, ``mdvis``, ``hlthg``, ``hlthf`` and ``hlthp``.

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
