"""Propensities rounded before they were written: rounding seen in their digits, and rows that sum to 1."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.frame_columns import FAULTS, MATCH_TOLERANCE, SUM_TOLERANCE, Findings
from adaptinf.typing import BoolArray, FloatArray, IntArray

ROUND_HINT = (
    "set 'round_propensities' to True (--round-propensities on the command line) to renormalise the rows"
)
MOST_DECIMALS = 7
"""Number of decimals above which the sums of rows differ from 1 by less than the tolerance."""
_FLOAT32 = 6e-8
"""Maximum difference between a 32-bit number and the decimal number that it represents."""
_EXACT = 1e-9
_EVERY = "every arm must have its own column; specify the columns in propensities= or the arms in arms="
_BLOCK = 1 << 17
"""Number of rows processed at a time, to limit memory."""


def no_flag(asked: object) -> tuple[str, str]:
    """The problem that 'round_propensities' is not a flag: its code and message."""
    return "bad-round-propensities", f"'round_propensities' must be True or False, got {asked!r:.60}"


class Rounding(NamedTuple):
    """The number of decimals to which a table of propensities was rounded."""

    decimals: int
    n_arms: int

    @property
    def unit(self) -> float:
        """Amount by which a propensity may have been changed by rounding."""
        return float(0.5 * 10.0**-self.decimals)

    @property
    def most(self) -> float:
        """Largest amount by which a row's sum may differ from 1."""
        return self.n_arms * self.unit + _EXACT

    def __str__(self) -> str:
        return f"{self.decimals} decimal{'s' if self.decimals > 1 else ''}"


def slack_of(decimals: int) -> float:
    """Largest difference between a 32-bit float and a number with this many decimals."""
    return float(min(10.0 ** -(decimals + 3), _FLOAT32))


def rounding_of(table: FloatArray) -> Rounding | None:
    """The rounding indicated by the digits of propensities, shape (T, K); None if there is none."""
    for decimals in range(1, MOST_DECIMALS + 1):
        slack = slack_of(decimals)
        blocks = (table[first : first + _BLOCK] for first in range(0, len(table), _BLOCK))
        # Missing values show no digits, and comparisons with NaN are false.
        # Numbers that are no propensities may overflow here; another check reports them.
        with np.errstate(over="ignore", invalid="ignore"):
            shown = all(not np.any(np.abs(part - np.round(part, decimals)) > slack) for part in blocks)
        if shown:
            return Rounding(decimals, table.shape[1])
    return None


def told_sums(total: FloatArray) -> str:
    """Sums of rows as text; total has shape (n,)."""
    least, most = f"{total.min():.7g}", f"{total.max():.7g}"
    return f"but to {least}" if least == most else f"but to {least} to {most}"


def settle_sums(
    table: FloatArray, names: Sequence[Hashable], asked: bool, found: Findings
) -> tuple[BoolArray, Rounding | None]:
    """Report rows of propensities that do not sum to 1, or renormalise them in place if requested.

    Returns the rows that were renormalised, shape (T,), and the rounding of the table, shape (T, K), which is
    computed if sums of rows differ from 1 or if it is requested.
    """
    total = table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        amiss = np.abs(total - 1) > SUM_TOLERANCE
    if not amiss.any():
        return amiss, rounding_of(table) if asked else None
    rounding = rounding_of(table)
    beyond = amiss if rounding is None else amiss & (np.abs(total - 1) > rounding.most)
    if asked and not beyond.any():
        table[amiss] /= total[amiss, None]
        return amiss, rounding
    wrong = beyond if asked else amiss
    if asked and rounding is not None:
        advice = f"the rounding of {rounding} explains at most {rounding.most:.2g}; {_EVERY}"
    elif rounding is not None and not beyond.any():
        advice = f"if they were rounded to {rounding}, {ROUND_HINT}; otherwise {_EVERY}"
    else:
        advice = _EVERY
    found.add_rows(
        "propensities-sum",
        f"rows of {', '.join(map(repr, names))} {FAULTS['propensities-sum']} {told_sums(total[wrong])}; "
        f"{advice}",
        wrong,
    )
    return np.zeros_like(amiss), rounding


def settle_chosen(
    chosen: FloatArray,
    own: FloatArray,
    table: FloatArray,
    action: IntArray,
    rounding: Rounding | None,
    asked: bool,
    found: Findings,
) -> FloatArray:
    """The chosen arms' propensities, shape (T,), which must match the arms' own columns.

    Shapes: chosen, own, action (T,), table (T, K); `own` is the table's entry as it was written. If
    requested, a chosen arm's propensity with more digits than the table replaces its entry there, and the
    others share the remainder.
    """
    with np.errstate(invalid="ignore"):
        differs = np.abs(chosen - own) > MATCH_TOLERANCE * own
        finer = differs & (np.abs(chosen - own) <= (0.0 if rounding is None else rounding.unit + _EXACT))
    wrong = differs & ~finer if asked else differs
    if wrong.any():
        explained = not asked and not (wrong & ~finer).any()
        hint = f"; if it was rounded to {rounding}, {ROUND_HINT}" if explained else ""
        found.add_rows("propensity-mismatch", FAULTS["propensity-mismatch"] + hint, wrong)
    if not asked or wrong.any():
        return chosen
    rows = np.flatnonzero(differs)
    place = action[rows]
    others = 1.0 - table[rows, place]
    scale = np.where(others > 0.0, (1.0 - chosen[rows]) / np.where(others > 0.0, others, 1.0), 1.0)
    table[rows] *= scale[:, None]
    table[rows, place] = chosen[rows]
    short = np.zeros_like(differs)
    short[rows] = np.abs(table[rows].sum(axis=1) - 1.0) > SUM_TOLERANCE
    found.add_rows(
        "propensities-sum",
        "the chosen arm's propensity is below 1, but the columns of all other arms contain 0",
        short,
    )
    settled = table[np.arange(len(action)), action]
    settled[rows] = chosen[rows]
    return settled


def tell_rounding(rounding: Rounding, changed: int, chosen: FloatArray, found: Findings) -> None:
    """Report that rows were renormalised, and the precision of the smallest chosen propensity."""
    least = float(chosen.min())
    values = {"decimals": str(rounding), "changed": changed, "rows": len(chosen), "least": least}
    found.tell("propensities", claims.RENORMALISED(**values, share=rounding.unit / least))
