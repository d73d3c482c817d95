"""The terms on which a design is coupled: a trial's own, or such as let a design release something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adaptinf.audit.privacy.coupling.histories import Terms
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.designs.base_design import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, refuse
from adaptinf.sessions.participants import Participants

_LEAST, _MOST = 48, 64
"""Participants of a design's trial at the least, and of a trial's own terms at the most."""
_LONG, _SHORT_WINDOW, _LONG_WINDOW = 200, 9, 33
_SPARE = 1.1
"""Times the rounds of the design's own neighbours: some outcomes enter nothing while others are awaited."""


def declared_terms(trial: Any) -> tuple[Design, Terms]:
    """The design of a trial and its terms; nothing else of it is read."""
    replay = trial._requests.read(lambda replay: replay)
    entry = replay.declared
    features = entry["features"]
    terms = Terms(
        arms=tuple(entry["arms"]),
        horizon=entry["horizon"],
        rounds=min(entry["horizon"], _MOST),
        window=entry.get("outcome_window"),
        features=None if features is None else tuple(features),
        dimension=entry["dimension"],
        per_arm=entry["per_arm"],
        reward_range=tuple(entry["reward_range"]),
    )
    return replay.design, terms


def design_terms(design: Design, horizon: int | None) -> tuple[Design, Terms]:
    """Arms and contexts of the design's own neighbouring trials, and a window where it takes one.

    The design is the one that these run: it may plan for fewer rounds, where some enter nothing.
    """
    try:
        pair = neighbouring_trials(design)[0]
    except ParameterError:
        n_arms, features, dimension, least = max(2, design.needs.min_arms), None, None, _LEAST
    else:
        n_arms, dimension = pair.first.n_arms, pair.first.dimension or None
        features = tuple(pair.first.features) or None
        least = round(_SPARE * pair.horizon)
        if pair.design is None:
            least = max(_LEAST, least)
        else:
            design = pair.design
    window = None
    if design.pending == "window":
        window = _SHORT_WINDOW if least <= _LONG else _LONG_WINDOW
        least += 0 if least <= _LONG else 2 * window
        longest = design.longest_window(least if horizon is None else horizon)
        window = int(max(0, min(window, longest)))
    rounds = least if horizon is None else int(horizon)
    refuse("audit.coupled", Count(design.needs.min_horizon)("horizon", rounds))
    arms = tuple(f"arm {number}" for number in range(n_arms))
    terms = Terms(arms, rounds, rounds, window, features, dimension, dimension is not None)
    alone = replace(terms, arms=arms[: design.needs.min_arms])
    participants = Participants(*alone.declared, design.domain)
    fits = not design._environment_problems(participants, rounds)
    return design, replace(terms, fewest=design.needs.min_arms if fits else n_arms)
