"""The public part of two live trials that differ in one participant: equal to the byte, given equal releases.

Coins are equal, and the noise of the second trial is shifted, node by node, until it released what the first
one did. Whatever else differed then would tell of the participant without any noise.
"""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adaptinf.designs import Design, DPConSE, LinPriv, Mixture, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.designs.arms.elimination_kernel import elimination_epochs
from adaptinf.log import AdaptiveLog
from adaptinf.privacy import GRID_UNITS
from adaptinf.trial import Trial

PEOPLE, WINDOW, MOST_NODES, EXAMPLES = 24, 2, 40, 6
WHY = {"reason": "as planned", "by": "a monitor"}
VECTORS = np.random.default_rng(5).dirichlet(np.ones(4), (PEOPLE, 2))[..., :2].tolist()
SHORTER = 80


def short_epochs(n_arms: int, horizon: int, *terms: float) -> tuple[Any, Any]:
    """Epochs of a few pulls, as many as a horizon holds."""
    lengths, thresholds = elimination_epochs(n_arms, SHORTER * horizon, *terms)
    return np.ceil(lengths / SHORTER), thresholds


EPOCHS = mock.patch("adaptinf.designs.arms.elimination_kernel.elimination_epochs", short_epochs)


@dataclass(frozen=True)
class Live:
    """A private design as a trial has it; `codes` where participants have one of two contexts."""

    design: Design
    codes: bool = False
    vectors: bool = False
    in_time: float | None = None

    def options(self) -> dict[str, Any]:
        if self.in_time is not None:
            return {"in_time": self.in_time}
        if self.vectors:
            return {"dimension": 2, "per_arm": True}
        return {"features": ["f", "m"]} if self.codes else {}


CALENDAR = DPConSE(epsilon=1.0, first_window=5)
LIVE = {
    "PrivateUCB": Live(PrivateUCB(epsilon=1.0)),
    "PrivateUCB, binary": Live(PrivateUCB(epsilon=1.0, counter="binary")),
    "elimination": Live(PrivateSuccessiveElimination(epsilon=4.0, beta=1.0)),
    "LinPriv": Live(LinPriv(epsilon=1.0), vectors=True),
    "DPConSE": Live(CALENDAR, codes=True),
    "DPConSE, two arms": Live(DPConSE(epsilon=1.0, first_window=5, contrast_share=1)),
    "PrivateUCB, in-time outcomes": Live(PrivateUCB(epsilon=1.0), in_time=0.5),
    "Mixture of PrivateUCB": Live(Mixture(PrivateUCB(epsilon=1.0), exploration=0.3)),
    "Mixture of LinPriv": Live(Mixture(LinPriv(epsilon=1.0), exploration=0.3), vectors=True),
    "Mixture of elimination": Live(
        Mixture(PrivateSuccessiveElimination(epsilon=4.0, beta=1.0), exploration=0.3)
    ),
    "Mixture of DPConSE": Live(Mixture(CALENDAR, exploration=0.3), codes=True),
}


@dataclass(frozen=True)
class Person:
    """What becomes of a participant: after how many others an outcome comes, None for never; what it is
    amended to, and after how many they are erased."""

    outcome: float | None
    code: str
    after: int | None
    amended: float | None = None
    erased_after: int | None = None


class Noise:
    """Noise that follows from a node's name, shifted by so many units; the names in order."""

    def __init__(self, shifts: dict[str, int]) -> None:
        self.shifts, self.order = shifts, list[str]()

    def __call__(self, name: str, scale: float) -> int:
        self.order.append(name)
        units = int.from_bytes(hashlib.sha256(name.encode()).digest()[:3], "big") - 2**23
        return units + self.shifts.get(name, 0)


def played(live: Live, people: list[Person], noise: Noise) -> AdaptiveLog:
    """The log of a trial that was finished when its horizon was used up."""
    keys = itertools.count()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("adaptinf.trial.trial_noise.draw_node", noise),
        mock.patch("adaptinf.trial.trial_setup.fresh_seed", return_value=bytes(32)),
        Trial.create(
            f"{folder}/trial.db", live.design, ["a", "b"], PEOPLE, outcome_window=WINDOW, **live.options()
        ) as trial,
    ):
        for now in range(PEOPLE):
            context = VECTORS[now] if live.vectors else people[now].code if live.codes else None
            trial.assign(f"unit {now}", context, key=next(keys))
            for number, person in enumerate(people[: now + 1]):
                step = now - number
                if person.after == step and step <= (person.erased_after or step):
                    trial.record(number + 1, person.outcome, key=next(keys))
                    if person.amended not in (None, person.outcome):
                        trial.amend(number + 1, person.amended, key=next(keys), **WHY)
                if person.erased_after == step:
                    trial.erase(f"unit {number}", key=next(keys), **WHY)
        trial.finish("all have come")
        return trial.log(missing="drop", erased="keep")


def coupled(play: Callable[[Noise], AdaptiveLog], other: Callable[[Noise], AdaptiveLog]) -> Any:
    """The logs of two trials, of which the second released what the first one did.

    The first release that differs is mended by the node that was drawn for it, and all is run again, as the
    decisions behind it may be others then. What a unit of noise does to a release follows from a first step.
    """
    one, noise = play(Noise({})), Noise({})
    wanted = [Fraction(value) for value in one.releases["value"]]
    tried: dict[str, tuple[int, Fraction]] = {}
    for _ in range(3 * MOST_NODES):
        noise = Noise(noise.shifts)
        two = other(noise)
        found = [Fraction(value) for value in two.releases["value"]]
        assert len(found) == len(wanted)
        differ = next((place for place, value in enumerate(found) if value != wanted[place]), None)
        if differ is None:
            return one, two
        nodes = [place for place, scale in enumerate(two.releases["scale"]) if scale > 0.0]
        assert differ in nodes, f"release {differ + 1} has no noise, and differs"
        name, gap = noise.order[nodes.index(differ)], wanted[differ] - found[differ]
        before, value = tried.get(name, (0, found[differ]))
        shift, moved = noise.shifts.get(name, 0), found[differ] - value
        by = Fraction(shift - before) / moved if moved else Fraction(GRID_UNITS)
        tried[name] = shift, found[differ]
        noise.shifts[name] = shift + round(gap * by)
    raise AssertionError("no noise makes the releases agree")


def written(log: AdaptiveLog) -> Iterator[tuple[str, Any]]:
    """All that a public part shows, by name; every file with its bytes."""
    public = log.public()
    yield "facts", repr(public.facts)
    yield "statement", public.statement
    yield "parts", public.parts
    yield "guarantee", public.guarantee
    yield "releases", public.releases.to_csv()
    yield "rounds", None if public.rounds is None else public.rounds.to_csv()
    with tempfile.TemporaryDirectory() as folder:
        public.to_parquet(f"{folder}/public.parquet")
        public.to_csv(f"{folder}/public.csv")
        for path in sorted(Path(folder).iterdir()):
            yield path.name, path.read_bytes()


OUTCOMES = st.sampled_from([0.0, 0.25, 1.0])
PERSONS = st.builds(
    Person,
    outcome=OUTCOMES,
    code=st.sampled_from("fm"),
    after=st.sampled_from([None, 0, 0, 0, 1, WINDOW, WINDOW + 1, 9]),
    amended=st.sampled_from([None, None, 0.5]),
)
CHANGED = st.builds(
    Person,
    outcome=st.one_of(OUTCOMES, st.none()),
    code=st.sampled_from("fm"),
    after=st.sampled_from([None, 0, WINDOW, WINDOW + 1, 12]),
    amended=st.sampled_from([None, 0.5]),
    erased_after=st.sampled_from([None, None, 13]),
)


def same_public(live: Live, people: list[Person], who: int, other: Person) -> None:
    changed = [*people[:who], other, *people[who + 1 :]]
    one, two = coupled(lambda noise: played(live, people, noise), lambda noise: played(live, changed, noise))
    for (name, first), (_, second) in zip(written(one), written(two), strict=True):
        assert first == second, name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")
@pytest.mark.parametrize("name", LIVE)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(people=st.lists(PERSONS, min_size=PEOPLE, max_size=PEOPLE), who=st.integers(0, 10), other=CHANGED)
def test_one_participant_changes_nothing_but_the_releases(
    name: str, people: list[Person], who: int, other: Person
) -> None:
    live = LIVE[name]
    guarantee = live.design.guarantee(PEOPLE, 2)
    assert guarantee is not None
    if guarantee.unit == "reward":  # contexts are public
        other = replace(other, code=people[who].code)
    with EPOCHS:
        same_public(live, people, who, other)
