"""What the server knows at the end of a locally private run: noisy sums by bin and arm."""

from __future__ import annotations

import numpy as np
import pandas as pd

from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog

_PARTS = ("participants", "count", "sum")


def bin_sums(log: AdaptiveLog) -> pd.DataFrame:
    """Noisy sums of a locally private run, from its releases alone.

    Parameters
    ----------
    log : AdaptiveLog
        Of `LDPBandit`.

    Returns
    -------
    DataFrame
        One row for each bin that was ever active and each arm that it began with: ``bin``, ``arm``, the
        corners ``low_x1``, ..., ``high_x1``, ...; ``participants``, who reported on it up to round ``until``;
        ``count`` and ``sum``, their noisy U and V added up; and ``noise_sd``, the standard deviation of the
        noise in either of them.

    Raises
    ------
    InvalidForLog
        If the log has no such releases.

    Notes
    -----
    ``sum / count`` estimates the arm's mean over the bin. Each sum has 2 scale^2 participants of noise
    variance, whoever's context lay in the bin. Reports on an arm end when it is dropped or the bin halved,
    both of which follow from the sums: figures of such rows are selected by their noise.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.LDPBandit(epsilon=8.0).run(ai.environments.SmoothArms(), horizon=500, rng=0)
    >>> ai.designs.bin_sums(log)[["bin", "arm", "low_x1", "high_x1", "participants", "until"]]
       bin  arm  low_x1  high_x1  participants  until
    0    0    0     0.0      1.0           500    500
    1    0    1     0.0      1.0           500    500
    2    0    2     0.0      1.0           500    500
    """
    releases = log.releases
    names = releases["name"].astype(str)
    if not names.str.startswith("participants_").any():
        raise InvalidForLog(
            "bin_sums", "the log has no sums of reports by bin", ["a log of LDPBandit, which releases them"]
        )
    boxes_and_sums = names.str.startswith(("low_", "high_", *(f"{part}_" for part in _PARTS)))
    releases = releases[boxes_and_sums]
    values = releases.pivot(index="group", columns="name", values="value")
    rounds = releases.pivot(index="group", columns="name", values="round")
    boxes = values[[name for name in releases["name"].unique() if name.startswith(("low_", "high_"))]]
    scale = releases["scale"].max()
    blocks = []
    for arm in log.arms:
        cells = values.reindex(columns=[f"{part}_{arm}" for part in _PARTS]).set_axis(list(_PARTS), axis=1)
        cells = cells.assign(arm=arm, until=rounds.get(f"count_{arm}", np.nan)).join(boxes)
        cells["noise_sd"] = scale * np.sqrt(2.0 * cells["participants"])
        blocks.append(cells.dropna(subset=["participants"]).reset_index(names="bin"))
    table = pd.concat(blocks).sort_values(["bin", "arm"], kind="stable", ignore_index=True)
    order = ["bin", "arm", *boxes.columns, *_PARTS, "until", "noise_sd"]
    return table[order].astype({"participants": np.int64, "until": np.int64})
