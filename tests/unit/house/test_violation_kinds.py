"""The evidence on planted violations: its list, simulators with their truths, damage, and what is counted."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
NAMES = ("kinds", "logs", "fits", "page", "speed")


@pytest.fixture
def violation(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(EVIDENCE)
    return SimpleNamespace(**{name: importlib.import_module(f"violation_{name}") for name in NAMES})


def kind_of(violation: SimpleNamespace, what: str, **changed: Any) -> Any:
    """The first kind of the list with a violation, or of clean logs with a design, changed as told."""
    kinds = violation.kinds.read()
    found = next(one for one in kinds if what == (one.design if one.standard == "clean" else one.violation))
    return replace(found, **changed)


def test_the_list_says_what_is_planted_and_which_cautions_name_it(violation: SimpleNamespace) -> None:
    kinds = violation.kinds.read()
    assert [one.number for one in kinds] == [*range(41), *range(100, 106)]
    clean = [one for one in kinds if one.standard == violation.kinds.CLEAN]
    assert len({one.design for one in clean}) == 6
    assert {one.standard for one in kinds if one not in clean} == {
        "seen",
        "stated",
        "handled",
        "cannot be seen",
    }
    every = violation.fits.claims_by_name()
    named = [every[name] for one in kinds for name in one.names]
    assert named
    assert {claim.kind for claim in named} == {"caution"}


@pytest.mark.parametrize(
    "design", ["epsilon-greedy", "Thompson", "UCB by batches", "batched Thompson", "EXP3", "coin"]
)
def test_clean_arms_are_drawn_with_the_shares_that_are_told(violation: SimpleNamespace, design: str) -> None:
    kind = kind_of(violation, design, rounds=200)
    played = violation.logs.play(kind, 200, np.random.default_rng(7), planted=False)
    assert np.allclose(played.share.sum(axis=2), 1.0)
    off = ((np.arange(kind.arms) == played.arm[:, :, None]) - played.share).sum(axis=1)
    assert np.all(np.abs(off.sum(axis=0)) < 4.5 * np.sqrt((off**2).sum(axis=0)))
    assert played.share.min() >= violation.logs.Design(kind, design, 1).floor * (design != "coin") - 1e-12


@pytest.mark.parametrize("planted", [True, False])
@pytest.mark.parametrize("what", ["drift", "turn", "weekday", "lost rows", "chosen alone", "even shares"])
def test_weighted_rewards_have_the_means_that_are_the_truth(
    violation: SimpleNamespace, what: str, planted: bool
) -> None:
    design = "coin" if what in ("weekday", "turn") else "Thompson"
    kind = kind_of(violation, what, rounds=280, arms=2, design=design)
    played = violation.logs.play(kind, 400, np.random.default_rng(8), planted)
    chosen = np.arange(2) == played.arm[:, :, None]
    means = (chosen / played.share * played.reward[:, :, None]).mean(axis=1)
    error = means.std(axis=0) / math.sqrt(len(means))
    assert np.all(np.abs(means.mean(axis=0) - violation.logs.truth(kind, planted)) < 4.5 * error)


def test_what_turns_has_a_mean_effect_of_nothing(violation: SimpleNamespace) -> None:
    kind = kind_of(violation, "turn")
    assert violation.logs.truth(kind, planted=True).tolist() == [0.0, 0.0]
    assert np.unique(violation.logs.lead(kind, planted=True)).tolist() == [-0.6, 0.6]


def pair(violation: SimpleNamespace, what: str, **changed: Any) -> tuple[Any, Any, Any]:
    """A kind, its file and its twin's, of the same rounds."""
    kind = kind_of(violation, what, **changed)
    make = violation.logs.frames
    (planted,), (twin,) = (make(kind, 1, np.random.default_rng(9), flag) for flag in (True, False))
    return kind, planted, twin


def test_files_are_damaged_as_told(violation: SimpleNamespace) -> None:
    _, lag, twin = pair(violation, "lag")
    assert lag["p_B"].iloc[20:].tolist() == twin["p_B"].iloc[:-20].tolist()
    _, swapped, twin = pair(violation, "swapped")
    assert swapped["p_A"].tolist() == twin["p_B"].tolist()
    _, last, twin = pair(violation, "last column")
    assert last["p"].tolist() == twin["p_B"].tolist()
    _, twice, twin = pair(violation, "twice")
    assert twice["reward"].tolist() == 2 * twin["reward"].tolist()
    kind, lost, twin = pair(violation, "lost rows", gap=0.0)
    failures = int(((twin["arm"] == "B") & (twin["reward"] == 0)).sum())
    assert abs(len(twin) - len(lost) - kind.size * failures) < 4.5 * math.sqrt(0.16 * failures)
    assert (lost["arm"] == "A").sum() == (twin["arm"] == "A").sum()
    kind, sums, _ = pair(violation, "even shares", door="sums", told="every")
    assert (sums["n"].sum(), set(sums["p"])) == (kind.rounds, {0.5})


def test_a_stop_by_data_comes_at_the_first_difference(violation: SimpleNamespace) -> None:
    kind = kind_of(violation, "stop", gap=3.0)
    arm = np.tile([0, 1], kind.rounds // 2)
    noise = np.random.default_rng(1).standard_normal(kind.rounds)
    assert violation.logs.stopped(arm, noise + 3.0 * arm, kind) == violation.logs.FIRST_LOOK
    assert violation.logs.stopped(arm, np.repeat(noise[::2], 2), kind) == kind.rounds


def test_fits_count_coverage_cautions_and_names(violation: SimpleNamespace) -> None:
    swapped = kind_of(violation, "swapped")
    found = violation.fits.of_pair(swapped, 4, np.random.default_rng(3))
    planted, twin = (
        next(tally for key, tally in found.items() if key.target == target) for target in ("planted", "twin")
    )
    assert (planted.logs, planted.named, planted.caught, planted.cautioned) == (4, 4, 4, 4)
    assert (twin.logs, twin.named, twin.intervals) == (4, 0, 4)
    assert twin.covered > planted.covered == 0
    clean = violation.fits.of_clean(
        kind_of(violation, "coin", rounds=1000, arms=2), 2, np.random.default_rng(4)
    )
    fits = {key.method: tally for key, tally in clean.items() if key.target == "clean"}
    assert {"sequence", "Winner", "sample means, Contrast", "all fits"} <= set(fits)
    assert all(tally.refused == 0 for tally in fits.values())


def test_checks_that_are_silenced_speak_again(violation: SimpleNamespace) -> None:
    speed, kind = violation.speed, kind_of(violation, "swapped")
    (frame,) = violation.logs.frames(kind, 1, np.random.default_rng(3), True)
    assert "propensities_found" in speed.checks([kind])

    def cautions() -> list[str]:
        log = violation.fits.log_of(kind, frame, kind.told, {}, kind.door)
        return sorted(violation.fits.names_said(violation.fits.fit(log, kind, kind.model, {}).cautions))

    before = cautions()
    with speed.silent(["propensities_found"]):
        silenced = cautions()
    assert "propensities.NOT_FOLLOWED" in before
    assert "propensities.NOT_FOLLOWED" not in silenced
    assert cautions() == before
