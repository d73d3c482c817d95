"""Faults in what is published beside the releases, which are right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
from planted_steppers import RawDecimals
from planting import changed, live, replaced

from adaptinf.inference.released.group_effects import released_effects
from adaptinf.log import AdaptiveLog
from adaptinf.sessions.session import Session

_MOST_DECIMALS = 6


@contextmanager
def interval_of_raw_counts() -> Iterator[None]:
    """Intervals of released effects take the number of participants as it is."""

    def effects(log: Any) -> Any:
        found = released_effects(log)
        arrays = getattr(log, "arrays", None)
        if arrays is None or arrays.phase is None or not arrays.context:
            return found
        (labels,) = arrays.context.values()
        trial = (arrays.phase == len(log.phases) - 1) & arrays.randomised
        counts = np.array([np.count_nonzero(trial & (labels == group)) for group in found.groups])
        effect = dataclasses.replace(found.effect, size=np.maximum(counts, 1).astype(np.float64))
        return dataclasses.replace(found, effect=effect)

    with replaced(released_effects, effects):
        yield


@contextmanager
def arms_in_order_of_success() -> Iterator[None]:
    """What is public of a live trial lists the arms in the order of their last rewards above 0."""
    public = AdaptiveLog.public

    def publish(log: Any, *given: Any) -> Any:
        made = public(log, *given)
        if log.noise != "release":
            return made
        order = list(range(log.n_arms))
        for arm, reward in zip(log.arrays.action.tolist(), log.frame["reward"].tolist(), strict=True):
            if reward > 0.0:
                order.remove(arm)
                order.append(arm)
        arms = [log.arms[code] for code in order]
        facts = {**made.facts, "arms": arms}
        if "pulls" in facts:
            facts["pulls"] = {arm: facts["pulls"][arm] for arm in arms}
        return dataclasses.replace(made, facts=facts)

    with changed(AdaptiveLog, public=publish):
        yield


@contextmanager
def raw_decimals() -> Iterator[None]:
    """A released contrast has as many decimals in public as the exact one."""
    make, public = Session.log, AdaptiveLog.public

    def log(self: Any, *given: Any, **named: Any) -> Any:
        made = make(self, *given, **named)
        made.exact = getattr(self._stepper, "held", {}).get("exact", [])
        return made

    def publish(self: Any, *given: Any) -> Any:
        made, exact = public(self, *given), getattr(self, "exact", [])
        if len(exact) != len(made.releases):
            return made
        shown = made.releases.copy()
        for row in np.flatnonzero(shown["name"] == "contrast_sum").tolist():
            places = -int(Decimal(exact[row]).normalize().as_tuple().exponent)
            value = round(float(shown["value"].iat[row]), min(max(places, 0), _MOST_DECIMALS))
            shown.iat[row, shown.columns.get_loc("value")] = value
        return dataclasses.replace(made, releases=shown)

    with live(RawDecimals), changed(Session, log=log), changed(AdaptiveLog, public=publish):
        yield
