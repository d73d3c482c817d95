"""What the arms of a weighted regression rest on: rounds in which they could be chosen, and rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.regression.data import perfect_notes
from adaptinf.inference.regression.weighted.round_weights import shared_weights
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import effective_size
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.regression.data import RegressionData
    from adaptinf.inference.validity.profile import LogProfile


def gaps_told(data: RegressionData, profile: LogProfile) -> str:
    """Which arm of the fit was impossible in most rounds, and in how many; empty where none was."""
    codes = np.unique(data.action)
    counts = profile.impossible[codes]
    if not counts.any():
        return ""
    worst = int(np.argmax(counts))
    rounds = f"{int(counts[worst])} of {data.n_rounds} rounds"
    return f"arm {profile.log.arms[codes[worst]]!r} has propensity 0 in {rounds}"


def fewest_effective(data: RegressionData, profile: LogProfile) -> float:
    """Equally weighted rewards that the arm with the fewest has, by propensities and actions alone."""
    codes = np.unique(data.action)
    weight = np.ones(data.nobs)
    if profile.propensities is not None:
        weight = shared_weights(profile, codes, jointly=False)[data.rounds]
    assert profile.propensity is not None
    gain = np.square(weight / profile.propensity[data.rounds])
    return float(effective_size(indicators(data.action, codes) * gain[:, None]).min())


def error_notes(decided: int, errors: FloatArray) -> list[str]:
    """Why there are no standard errors; errors (p,)."""
    if decided and not np.all(errors == 0.0):
        why = f"{decided} rounds have leverage 1 (each decides a coefficient alone)"
        return [f"No standard errors: {why}."]
    if np.isnan(errors).any():
        return ["No standard errors where fewer than two rewards of an arm have a weight."]
    return perfect_notes(errors)
