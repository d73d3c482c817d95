"""Designs whose arm counts are known to settle, or not: where sample means are asymptotically normal.

References
----------
Lai, Wei (1982), "Least squares estimates in stochastic regression models with applications to identification
and control of dynamic systems". The sources of each entry are in `STABILITY`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from adaptinf.inference.validity.profile import design_names

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["STABILITY", "Stability", "stability_of"]


@dataclass(frozen=True, slots=True)
class Stability:
    """What is known of a design's arm counts."""

    design: str
    stable: bool
    condition: str
    source: str


_WIDTH = 2.0
_OPTIMISM = "Praharaj, Khamaru (2025), 'On instability of minimax optimal optimism-based bandit algorithms'"
_THOMPSON = "Halder, Pan, Khamaru (2025), 'Stable Thompson sampling: valid inference via variance inflation'"
_ENTRIES = (
    Stability(
        "UCB",
        True,
        "a bonus of the order sqrt(log T / pulls)",
        "Khamaru, Zhang (2024), 'Inference with the upper confidence bound algorithm'; Han, Khamaru, Zhang "
        "(2024), 'UCB algorithms for multi-armed bandits: precise regret and adaptive inference'",
    ),
    Stability(
        "LinUCB",
        True,
        "arms from the unit ball, not a finite list of contexts",
        "Fan, Tan, Wei (2025), 'Statistical inference under adaptive sampling with LinUCB'",
    ),
    Stability(
        "Variance-inflated Thompson",
        True,
        "a posterior variance that is inflated by a logarithmic factor",
        _THOMPSON,
    ),
    Stability("Thompson", False, "its counts stay random where arms are equally good", _THOMPSON),
    Stability("MOSS", False, "its counts stay random where arms are equally good", _OPTIMISM),
    Stability("KL-UCB++", False, "its counts stay random where arms are equally good", _OPTIMISM),
)

STABILITY: Mapping[str, Stability] = MappingProxyType({entry.design: entry for entry in _ENTRIES})
"""What is known, by name of the design."""


def stability_of(log: AdaptiveLog) -> Stability | None:
    """What is known of the design that gathered a log.

    Notes
    -----
    LinUCB on a finite list of contexts, which is what `designs.LinUCB` plays, is not covered. UCB is covered
    from the width of UCB1 on, 2: with a small one it is nearly greedy, and a name without a width says
    nothing of it.
    """
    names = design_names(log)
    entry = STABILITY.get(names[0]) if len(names) == 1 else None
    if entry is None or log.design is None or entry.design == "LinUCB":
        return None
    if entry.design == "UCB" and not log.design.parameters.get("width", 0.0) >= _WIDTH:
        return None
    return entry
