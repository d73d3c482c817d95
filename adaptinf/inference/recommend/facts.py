"""What was read from a log, told above the table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adaptinf.claims import recommendations as claims
from adaptinf.inference.arms.facts.fits import exact_calls
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.promises import source_note
from adaptinf.log.stopping import Stopping

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


def facts_of(log: AdaptiveLog, variation: float | None) -> tuple[tuple[str, str], ...]:
    """Design, rounds, propensities, batches, contexts, rewards, guarantee."""
    profile, known = profile_of(log), "none"
    if profile.knows_propensities:
        which = "every arm's" if profile.knows_every_propensity else "the chosen arm's"
        known = f"{which}, {log.propensity_status}, smallest {smallest_propensity(log):.2g}"
        decay = profile.floor_decay
        known += "" if decay is None else f", floor falls like t^-{decay:g}"
    guarantee = log.reward_guarantee or log.guarantee
    span = log.reward_range
    bounded = span is not None and all(math.isfinite(end) for end in span)
    facts = [
        ("Design", f"{profile.design_title or 'unknown'}{log.adaptive_told}"),
        ("Rounds", f"{log.n_rounds}, stopping {Stopping.of(log).told}"),
        ("Propensities", known),
        ("Batches", batches_told(log)),
        ("Contexts", contexts_told(log)),
        (
            "Rewards",
            f"within [{span[0]:g}, {span[1]:g}]" if bounded and span is not None else "no known bounds",
        ),
        ("Guarantee", "none" if guarantee is None else f"{guarantee}{source_note(log.guarantee_source)}"),
    ]
    if variation is not None:
        facts.append(("Arm counts", claims.COUNTS_VARY(variation=variation)))
    return tuple(facts)


def smallest_propensity(log: AdaptiveLog) -> float:
    """Smallest logged propensity, of every arm where these are known."""
    if (sums := profile_of(log).sums) is not None:
        return float(sums.cells.smallest.min())
    every = log.arrays.propensity if log.arrays.propensities is None else log.arrays.propensities
    return 1.0 if every is None else float(every.min(initial=1.0))


def batches_told(log: AdaptiveLog) -> str:
    """How many batches there are."""
    if (sums := profile_of(log).sums) is not None:
        return str(sums.n_batches)
    return "none" if log.arrays.batch is None else str(int(log.arrays.batch[-1]) + 1)


def exact_fact(log: AdaptiveLog) -> tuple[tuple[str, str], ...]:
    """The exact interval and test of a short trial, which need its design and stand apart from the table."""
    profile = profile_of(log)
    calls = None if profile.incomplete or profile.sums is not None else exact_calls(profile)
    return () if calls is None else (("Exact", f"{calls[1]}, {calls[0]}"),)


def contexts_told(log: AdaptiveLog) -> str:
    """Which contexts there are, and whether they moved the choice."""
    known = ", ".join(log.context[:5]) + (", ..." if len(log.context) > 5 else "") or "none"
    if log.context_free is None:
        return known
    return (claims.NO_PART if log.context_free else claims.HAD_PART)(contexts=known)
