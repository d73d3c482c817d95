"""What is wrong with an audit's target, its neighbours and its settings: all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.counters import stream_problems
from adaptinf.audit.privacy.designs import Neighbours
from adaptinf.audit.privacy.mechanisms import pair_problems, worst_inputs
from adaptinf.audit.privacy.sources import DEFAULT_RUNS
from adaptinf.designs.base_design import Design
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import (
    COUNT,
    JOBS,
    SEED,
    UNIT,
    Count,
    Is,
    Number,
    OneOf,
    OrNone,
    number_array,
    problems_of,
)
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.mechanism import BACKENDS, Mechanism
from adaptinf.typing import FloatArray

CONFIDENCE = Number(0.5, 1.0 - 1e-9)
_VIEWS = ("all", "releases", "actions", "digits")
_FEWEST_RUNS, _FEWEST_LIVE = 1_000, 100


@dataclass(frozen=True)
class Settings:
    """How runs are made."""

    view: Any
    backend: Any
    runs: Any
    decimals: Any
    rng: Any
    n_jobs: Any

    def problems(self, target: Any, neighbours: Any) -> list[str]:
        """All that is found wrong with them, the target and its neighbours."""
        fewest = _FEWEST_LIVE if self.live(target) else _FEWEST_RUNS
        problems = OrNone(Count(fewest))("runs", self.runs) + OneOf(*_VIEWS)("view", self.view)
        problems += OrNone(Count(0))("decimals, where it is not None,", self.decimals)
        problems += JOBS("n_jobs", self.n_jobs)
        return problems + self._backend_problems(target) + _target_problems(target, neighbours, self.view)

    def _backend_problems(self, target: Any) -> list[str]:
        if self.backend is not None:
            problems = OneOf(*BACKENDS)("backend", self.backend)
            if not problems and isinstance(target, Counter) and target.backend != self.backend:
                return [
                    f"the counter's noise is of the {target.backend} backend: make it with backend= instead"
                ]
            known = (Design, DPNAS, Mechanism, Counter)
            if not problems and self.backend == "release" and not isinstance(target, known):
                return ["backend must be simulation where target is a callable"]
            if problems:
                return problems
        if self.drawn_by(target) == "release" and not self.live(target) and self.rng is not None:
            return ["rng must be left out: noise of the release backend is never seeded"]
        return SEED("rng", self.rng)

    def live(self, target: Any) -> bool:
        """Whether all runs are of the live path: sessions, trials in files, a rule on data."""
        return self.backend == "release" and isinstance(target, (Design, DPNAS))

    def live_share(self, target: Any) -> float:
        """How much of what there is of the live path is looked at: less where simulated runs are fewer."""
        if self.backend == "simulation":
            return 0.0
        return 1.0 if self.live(target) or self.runs is None else min(1.0, int(self.runs) / DEFAULT_RUNS)

    def drawn_by(self, target: Any) -> str:
        """The backend of the noise."""
        if isinstance(target, Counter):
            return target.backend
        return "simulation" if self.backend is None else str(self.backend)


def inputs_problems(target: Any, rounds: Any) -> list[str]:
    """Say what is wrong with a target of which inputs are asked for, or with their length."""
    problems = []
    if not isinstance(target, Counter) and not (isinstance(target, Mechanism) and _audited(target)):
        problems.append(f"target must be a mechanism or a counter of adaptinf.privacy, got {target!r:.60}")
    if rounds is not None:
        problems += COUNT("rounds, where it is not None,", rounds)
        if not isinstance(target, Counter):
            problems.append("rounds must be left out where target is no counter")
    return problems


def level_problems(confidence: Any, delta: Any, promised: Any) -> list[str]:
    """Say what is wrong with the confidence, with delta or with a claim."""
    return problems_of(
        confidence=(confidence, CONFIDENCE),
        delta=(delta, OrNone(UNIT)),
        promised=(promised, OrNone(Is(PrivacyGuarantee, "a PrivacyGuarantee"))),
    )


def claim_problems(own: PrivacyGuarantee | None, claim: PrivacyGuarantee | None) -> list[str]:
    """Refuse a claim about other neighbours than those that are audited."""
    if own is None or claim is None or claim.unit == own.unit:
        return []
    if claim.unit == "record" and claim.notion == "standard":
        return []
    return [f"promised is per {claim.unit}, and the neighbours differ in a {own.unit}"]


def _target_problems(target: Any, neighbours: Any, view: Any) -> list[str]:
    if isinstance(target, (Design, DPNAS)):
        problems = OrNone(Is(Neighbours, "Neighbours"))("neighbours", neighbours)
        if view == "digits" and isinstance(target, DPNAS):
            problems.append("view must be all, releases or actions where target is a stopping rule")
        return problems
    problems = ["view='actions' is for designs alone"] if view == "actions" else []
    if isinstance(target, (Mechanism, Counter)):
        if isinstance(target, Mechanism) and not _audited(target):
            problems.append(f"no score is known for {type(target).__name__}: give a callable that samples it")
        elif neighbours is not None:
            problems += _input_problems(target, neighbours)
    elif not callable(target):
        problems.append(
            f"target must be a design, a mechanism, a counter or sample(side, runs, rng), got {target!r:.60}"
        )
    elif neighbours is not None:
        problems.append("neighbours must be left out where target is a callable: it is both sides")
    return problems


def _audited(mechanism: Mechanism) -> bool:
    return worst_inputs.dispatch(type(mechanism)) is not worst_inputs.dispatch(object)


def _input_problems(target: Any, neighbours: Any) -> list[str]:
    sides = None
    if isinstance(neighbours, Sequence) and len(neighbours) == 2:
        sides = [number_array(side) for side in neighbours]
    if sides is None or sides[0] is None or sides[1] is None:
        return [f"neighbours must be a pair of arrays of numbers, got {neighbours!r:.60}"]
    if isinstance(target, Counter):
        return stream_problems(target, stream_array(sides[0]), stream_array(sides[1]))
    return pair_problems(target, sides[0], sides[1])


def stream_array(items: Any) -> FloatArray:
    """A stream as an array of shape (items, dimension)."""
    array = np.asarray(items, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
