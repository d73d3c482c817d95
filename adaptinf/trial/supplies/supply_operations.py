"""The part of a trial that concerns its supply: its sites, and the kits at each of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.frame_columns import label_array
from adaptinf.parameters import BOOLEAN, check
from adaptinf.sessions.session_memory import erased_steps
from adaptinf.trial.replay import Replay

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.trial.requests import Requests

LOW = 5
"""A stock is low if some arm has fewer kits than this."""
SITE = "site"
"""Name of the sites in a log."""


class SupplyOperations:
    """Sites and kits of a trial."""

    _requests: Requests

    def add_site(self, site: str, *, key: str | int, by: str) -> None:
        """Add a site, at which participants can then be assigned; units are named within their site.

        Parameters
        ----------
        site : str
            A short name, at most 15 characters without a slash. In the log, the unit "7" of site "Basel" is
            "Basel/7".
        key : str or int
            Identifies the request, as for `assign`.
        by : str
            The person responsible; the journal stores it.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is such a site, participants were assigned without a
            site, or the key belongs to another request. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
        ...     trial.add_site("Basel", key="site 1", by="the office")
        ...     decision = trial.assign("7", site="Basel", key="visit 1")
        ...     trial.log("drop").units.tolist()
        ['Basel/7']
        """
        self._requests.change(lambda replay: replay.add_site(site, key, by))

    def add_kits(self, site: str, kits: Mapping[str, Any], *, key: str | int, by: str) -> int:
        """Add kits to the stock of a site of a blinded trial.

        Parameters
        ----------
        site : str
            A site of the trial.
        kits : dict
            The arm of each code, for example a part of what `kit_codes` returns. Codes are unique in the
            trial, of one length (4 to 40 letters, digits or hyphens), and must not reveal the arm.
        key : str or int
            Identifies the request, as for `assign`.
        by : str
            The person responsible; the journal stores it.

        Returns
        -------
        int
            Number of kits added. They are on disk.

        Raises
        ------
        ParameterError
            If the trial is not blinded, or is finished or closed, there is no such site or arm, codes do not
            meet the requirements, or the key belongs to another request. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> from adaptinf.trial import kit_codes
        >>> import tempfile
        >>> design, path = ai.designs.Thompson(floor=0.1), f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, design, arms=["drug", "sham"], horizon=100, blinded=True) as trial:
        ...     trial.add_site("Basel", key="site 1", by="the office")
        ...     codes = kit_codes({"drug": 10, "sham": 10})
        ...     added = trial.add_kits("Basel", codes, key="delivery 1", by="the pharmacy")
        ...     decision = trial.assign("7", site="Basel", key="visit 1")
        >>> added, decision.arm, len(decision.kit)
        (20, None, 6)
        """
        return self._requests.change(lambda replay: replay.add_new_kits(site, kits, key, by))

    def retire_kit(self, kit: str, *, key: str | int, reason: str, by: str) -> None:
        """Record that a kit in stock was lost, was damaged or has expired: no one will receive it.

        Parameters
        ----------
        kit : str
            Its code.
        key : str or int
            Identifies the request, as for `assign`.
        reason, by : str
            The reason and the person responsible; the journal stores both.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such kit, it was given to a participant or retired
            before, or the key belongs to another request. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> design, path = ai.designs.Thompson(floor=0.1), f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, design, arms=["drug", "sham"], horizon=100, blinded=True) as trial:
        ...     trial.add_site("Basel", key="site 1", by="the office")
        ...     kits = {"4711": "drug", "1174": "sham"}
        ...     added = trial.add_kits("Basel", kits, key="delivery 1", by="the pharmacy")
        ...     trial.retire_kit("4711", key="loss 1", reason="broken seal", by="the ward")
        ...     trial.stock()["retired"].tolist()
        [1]
        """
        self._requests.change(lambda replay: replay.retire_kit(kit, key, reason, by))

    def stock(self, *, by_arm: bool = False) -> pd.DataFrame:
        """Kits at each site.

        Parameters
        ----------
        by_arm : bool
            Whether to count kits by arm, which shows how often each arm was assigned.

        Returns
        -------
        DataFrame
            One row per site, or per site and arm: `site`, `arm`, and the numbers of kits `in_stock`, `given`
            and `retired`. Without arms, there is also `low`: whether some arm, which is not named, has fewer
            than five kits.

        Notes
        -----
        A person who knows what was delivered learns from `low` that some arm was assigned often at this site,
        but not which one. Counts by arm show which one.
        """
        check("stock", by_arm=(by_arm, BOOLEAN))
        return _frame(self._requests.read(lambda replay: stock_of(replay, by_arm)), by_arm)

    def kits(self) -> pd.DataFrame:
        """All kits, without their arms.

        Returns
        -------
        DataFrame
            One row per kit: `kit`, `site`, `state` ("in stock", "given" or "retired"), and `decision`, the id
            of the decision of the participant who received it.
        """
        import pandas as pd

        rows = self._requests.read(_kits)
        frame = pd.DataFrame(rows, columns=["kit", "site", "state", "decision"])
        return frame.astype({"decision": "Int64"})


def _kits(replay: Replay) -> list[tuple[str, str, str, int | None]]:
    supply = replay.supply
    given = {code: step + 1 for step, (_, code) in enumerate(supply.given) if code is not None}
    found = []
    for code, kit in sorted(supply.kits.items()):
        state = "given" if code in given else "retired" if code in supply.retired else "in stock"
        found.append((code, kit.site, state, given.get(code)))
    return found


def stock_of(replay: Replay, by_arm: bool) -> list[dict[str, Any]]:
    """Numbers of kits by site, or by site and arm."""
    supply, arms = replay.supply, replay.session.arms
    size = len(supply.sites), len(arms)
    all_of, given, retired = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    place = {site: number for number, site in enumerate(supply.sites)}
    for code, kit in supply.kits.items():
        all_of[place[kit.site], kit.arm] += 1
        retired[place[kit.site], kit.arm] += code in supply.retired
    for _, given_code in supply.given:
        if given_code is not None:
            kit = supply.kits[given_code]
            given[place[kit.site], kit.arm] += 1
    left, found = all_of - given - retired, []
    for row, site in enumerate(supply.sites):
        counts = {"in_stock": left[row], "given": given[row], "retired": retired[row]}
        if by_arm:
            for position, arm in enumerate(arms):
                told = {name: int(count[position]) for name, count in counts.items()}
                found.append({"site": site, "arm": arm, **told})
        else:
            low = bool(left[row][replay.assignable()].min() < LOW)
            found.append(
                {"site": site, **{name: int(count.sum()) for name, count in counts.items()}, "low": low}
            )
    return found


def _frame(rows: list[dict[str, Any]], by_arm: bool) -> pd.DataFrame:
    import pandas as pd

    counts = ["in_stock", "given", "retired"]
    return pd.DataFrame(rows, columns=["site", "arm", *counts] if by_arm else ["site", *counts, "low"])


def with_sites(log: AdaptiveLog, replay: Replay, erased: str | None) -> AdaptiveLog:
    """The log with the site of each round as a context; the same log if there are no sites."""
    gone = erased_steps(replay.session) if erased == "drop" else set()
    given = enumerate(replay.supply.given)
    sites = [site for step, (site, _) in given if site is not None and step not in gone]
    if not sites:
        return log
    made, context = copy(log), {**log.arrays.context, SITE: label_array(sites)}
    made.arrays = type(log.arrays)(**{**log.arrays.by_field(), "context": context})
    made.context, made.kept = tuple(context), {}
    return made
