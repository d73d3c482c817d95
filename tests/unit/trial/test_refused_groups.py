"""A group of which one request is refused: nothing of it is left in memory, and nothing is read again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from crashes import named_noise, twin_of
from test_trial_snapshots import follows

from adaptinf.designs import (
    ABSE,
    ConSE,
    Design,
    DPConSE,
    EpsilonGreedy,
    FunctionDesign,
    LinPriv,
    LinUCB,
    Mixture,
    PrivateUCB,
    SuccessiveElimination,
    Thompson,
)
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.sessions.session_rounds import Marks
from adaptinf.trial import Trial
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.snapshot_bytes import pack

LABELS: dict[str, Any] = {"features": ["f", "m"]}
VECTORS: dict[str, Any] = {"dimension": 2}
WINDOW: dict[str, Any] = {"outcome_window": 2}
DESIGNS: list[tuple[Design, dict[str, Any]]] = [
    (Thompson(floor=0.1), {}),
    (EpsilonGreedy(batch_size=7), LABELS),
    (SuccessiveElimination(), {}),
    (LinUCB(), VECTORS),
    (ABSE(), VECTORS),
    (ConSE(), LABELS),
    (Mixture(PrivateUCB(epsilon=1.0), exploration=0.2), WINDOW),
    (Mixture(LinPriv(epsilon=1.0), exploration=0.2), {**WINDOW, **VECTORS}),
    (Mixture(DPConSE(epsilon=1.0, first_window=4), exploration=0.2), {**WINDOW, **LABELS}),
]


def image(trial: Trial) -> tuple[bytes, bytes]:
    """All that a trial holds in memory."""
    found = trial._requests.read(lambda replay: replay.image(Marks()))
    assert found is not None
    return pack(found[0]), pack(found[1])


def contexts(options: dict[str, Any], people: range) -> list[Any]:
    if "features" in options:
        return ["fm"[number % 3 == 0] for number in people]
    return [[0.5, number / 100] if "dimension" in options else None for number in people]


def go_on(trial: Trial, options: dict[str, Any], people: range) -> list[Any]:
    told = []
    for number, context in zip(people, contexts(options, people), strict=True):
        told.append(trial.assign(f"u{number}", context, key=f"a{number}"))
        told.append(trial.record(number + 1, float(number % 2), key=f"r{number}"))
    return told


@pytest.mark.parametrize(("design", "options"), DESIGNS, ids=[repr(design)[:28] for design, _ in DESIGNS])
def test_a_refused_group_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, design: Design, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # of designs without coins
        trial = Trial.create(tmp_path / "trial.db", design, ["a", "b"], horizon=60, **options)
    go_on(trial, options, range(20))
    twin_of(trial, tmp_path / "twin.db")
    pending = trial.assign("u20", *contexts(options, range(20, 21)), key="a20")
    before, status, seen = image(trial), trial.status(), follows(monkeypatch)
    names, more = [f"u{n}" for n in range(21, 27)], contexts(options, range(21, 27))
    with pytest.raises(ParameterError, match=r"request 6 .*identifies another request"):
        trial.assign_many([*names, "x"], [*more, more[0]], keys=[*(f"a{n}" for n in range(21, 27)), "a0"])
    with pytest.raises(ParameterError, match=r"request 1 .*there is no decision 99"):
        trial.record_many([pending.id, 99, pending.id], [1.0, 1.0, 1.0], keys=["x0", "x1", "x2"])
    assert image(trial) == before
    assert trial.status() == status
    assert seen == []
    trial.record(pending.id, 0.0, key="r20")
    after = go_on(trial, options, range(21, 40))
    trial.verify()
    trial.close()
    with Trial.open(tmp_path / "twin.db") as calm:
        go_on(calm, options, range(20, 21))
        assert go_on(calm, options, range(21, 40)) == after


def test_a_design_of_ones_own_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its functions hold on to is not known."""
    design = FunctionDesign(lambda state, context, rng: [0.4, 0.6])
    with Trial.create(tmp_path / "trial.db", design, ["a", "b"], horizon=60) as trial:
        go_on(trial, {}, range(5))
        seen = follows(monkeypatch)
        with pytest.raises(ParameterError, match="request 1"):
            trial.assign_many(["u5", "x"], keys=["a5", "a0"])
        assert trial.assign("u5", key="a5").id == 6
        assert seen == list(range(2, 12))
        trial.verify()


def test_a_file_of_the_format_before_learns_its_place_after_a_refused_group(tmp_path: Path) -> None:
    from test_restored_copies import old_format

    with Trial.open(old_format(tmp_path / "trial.db")) as trial:
        with pytest.raises(ParameterError, match="request 1"):
            trial.assign_many(["x", "y"], keys=["a", "a"])
        trial.assign("x", key="a")
        assert trial.verify().rows == 3
