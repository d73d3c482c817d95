"""Audits of the live path: right designs pass; faults in sessions, files and copies are found and named.

Shares of an audit that are as small as its parts allow: what is planted shows in a few draws. Faults that
take thousands are in the evidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adaptinf.audit import audit_trials, epsilon_lower_bound
from adaptinf.audit.privacy import live_runs as runs
from adaptinf.audit.privacy import trial_checks as checks
from adaptinf.audit.privacy.epsilon_audit import _design_sources
from adaptinf.audit.privacy.trial_checks import _live_checks, live_problems, live_trial, stopping_checks
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    DPBAIGauss,
    DPConSE,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
)
from adaptinf.errors import MissingDependencyError, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.public import PublicLog
from adaptinf.privacy import release
from adaptinf.sessions import session_setup as opening
from adaptinf.sessions import steppers as releasing
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import draw_node
from adaptinf.trial import Trial
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.operator_actions import Acts

FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7))
DESIGNS: dict[str, Any] = {
    "PrivateUCB": PrivateUCB(epsilon=1.0),
    "PrivateUCB, binary": PrivateUCB(epsilon=0.1, counter="binary"),
    "LinPriv": LinPriv(epsilon=1.0),
    "PrivateSuccessiveElimination": PrivateSuccessiveElimination(epsilon=4.0, beta=1.0),
    "DPConSE": DPConSE(epsilon=1.0),
    "DPBAI": DPBAI(epsilon=1.0, features=FEATURES),
    "Mixture": Mixture(PrivateUCB(epsilon=1.0), exploration=0.2),
    "Mixture of DPConSE": Mixture(DPConSE(epsilon=1.0), exploration=0.2),
}
IN_FILES = [name for name in DESIGNS if name != "DPBAI"]
NAS = DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential")
SHARE = 0.002
LAW, NOISY = "not have the stated distribution", "scale implies"
Draw = Callable[[str, float], int]


def found(name: str = "PrivateUCB", share: float = SHARE) -> list[str]:
    """What an audit of a design's live path finds, with the kind of check before it."""
    checked = _live_checks(DESIGNS[name], np.random.SeedSequence(1), share, needed=True)
    return [f"{one.check}: {one.text}" for one in checked.findings]


def plant(monkeypatch: pytest.MonkeyPatch, sessions: Draw | None, files: Draw | None) -> None:
    """Let sessions, or trials in files, draw their noise so."""
    for module, draw in ((opening, sessions), (nodes, files)):
        if draw is not None:
            monkeypatch.setattr(module, "draw_node", draw)


def nothing(name: str, scale: float) -> int:
    return 0


class Seeded:
    """Noise of a seed that is made of what is given, or of the order of the draws."""

    def __init__(self, by_name: bool, scale: float = 1.0) -> None:
        self.by_name, self.scale, self.stream = by_name, scale, np.random.default_rng(0)

    def __call__(self, name: str, scale: float) -> int:
        rng = np.random.default_rng([ord(letter) for letter in name]) if self.by_name else self.stream
        return round(rng.laplace(scale=self.scale * scale))


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_a_right_design_passes(name: str) -> None:
    checked = _live_checks(DESIGNS[name], np.random.SeedSequence(0), SHARE, needed=True)
    assert checked.findings == ()
    (looked,) = checked.looked
    assert looked.startswith("The live path was replayed and its exact noise was tested: ")
    assert (", stored in files" in looked) == (name in IN_FILES)
    assert "sessions of" in looked


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_no_noise_in_sessions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, nothing, None)
    told = found(name)
    assert any(NOISY in one and "sessions" in one for one in told)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_FILES)
def test_no_noise_in_files(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, None, nothing)
    told = found(name)
    assert any(NOISY in one and "stored in files" in one for one in told)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PrivateUCB", "LinPriv", "DPConSE"])
def test_no_noise_in_restored_copies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of a trial whose copy took its place."""
    own: Any = runs.restored_runs
    restored = Acts.restore

    def quiet(*given: Any) -> Any:
        with monkeypatch.context() as after:
            after.setattr(
                Acts, "restore", lambda *a: (after.setattr(nodes, "draw_node", nothing), restored(*a))[1]
            )
            yield from own(*given)

    monkeypatch.setattr("adaptinf.audit.privacy.trial_checks.restored_runs", quiet)
    told = found(name)
    assert any(one.startswith("noise: ") and "stored in files" in one for one in told)


@pytest.mark.slow
def test_no_noise_is_found_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, nothing, nothing)
    design = PrivateUCB(epsilon=1.0, counter="binary")
    result = epsilon_lower_bound(design, runs=2_000, rng=0)
    assert result.refuted
    assert result.epsilon < 1.0  # the simulation is right
    assert not epsilon_lower_bound(design, backend="simulation", runs=2_000, rng=0).refuted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Seeded(by_name=True), "occurred before"),
        (Seeded(by_name=False, scale=0.5), NOISY),
        (lambda name, scale: draw_node(name, scale) // 4 * 4, "multiples of 4"),
        (lambda name, scale: abs(draw_node(name, scale)), LAW),
        (lambda name, scale: 0 if "count 7" in name else draw_node(name, scale), "are 0"),
        (lambda name, scale: draw_node(name, scale) if "arm 1" in name else 0, "are 0"),
        (lambda name, scale: draw_node(name, min(scale, 2.0**21)), NOISY),
    ],
    ids=[
        "by name",
        "half the scale",
        "multiples of 4",
        "one side",
        "a count",
        "an arm",
        "no more than a scale",
    ],
)
@pytest.mark.parametrize("where", ["sessions", "stored in files"])
def test_draws_that_are_wrong(fault: Any, words: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, fault if where == "sessions" else None, None if where == "sessions" else fault)
    assert any(words in one and where in one for one in found(share=0.03))


class Antithetic:
    """Every second draw is the one before with the other sign."""

    def __init__(self) -> None:
        self.last: int | None = None

    def __call__(self, name: str, scale: float) -> int:
        drawn = draw_node(name, scale) if self.last is None else -self.last
        self.last = drawn if self.last is None else None
        return drawn


class Carried:
    """The first draws of an arm are those that another run had at the same counts."""

    def __init__(self, counts: int) -> None:
        self.counts, self.kept = counts, dict[str, int]()

    def __call__(self, name: str, scale: float) -> int:
        drawn = draw_node(name, scale)
        if name != "none" and int(name.split()[-1]) <= self.counts:
            return self.kept.setdefault(name, drawn)
        return drawn


class OffByOne:
    """A node has the noise of the one before."""

    def __init__(self) -> None:
        self.before = dict[str, int]()

    def __call__(self, name: str, scale: float) -> int:
        stream, count = f"arm {name}".rsplit(" ", 1)
        if count != "none" and int(count) % 2 == 0 and stream in self.before:
            return self.before[stream]
        self.before[stream] = draw_node(name, scale)
        return self.before[stream]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Antithetic, "with the other sign"),
        (lambda: Carried(3), "occurred before"),
        (OffByOne, "occurred before in its run"),
    ],
    ids=["antithetic", "carried", "off by one"],
)
@pytest.mark.parametrize("where", ["sessions", "stored in files"])
def test_draws_that_depend_on_others(
    fault: Any, words: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, fault() if where == "sessions" else None, None if where == "sessions" else fault())
    assert any(words in one and where in one for one in found())


def test_noise_of_the_sampler_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    right = release._draw
    monkeypatch.setattr(release, "_draw", lambda *given: right(*given) // 2 * 2)
    told = found("PrivateSuccessiveElimination")
    assert any(
        "all 64 draws are multiples of 2 [64 draws from the sampler used by trials]" in one for one in told
    )


def test_noise_that_is_left_out_of_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has the node, and the release has not."""
    right = releasing.ReleaseStepper._learn

    def learn(self: Any, step: Any) -> None:
        draw, self._draw = self._draw, lambda name, scale: 0 * draw(name, scale)
        right(self, step)
        self._draw = draw

    monkeypatch.setattr(releasing.ReleaseStepper, "_learn", learn)
    assert any(NOISY in one for one in found())


def test_noise_that_goes_with_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = releasing.ReleaseStepper._learn

    def learn(self: Any, step: Any) -> None:
        draw = self._draw
        self._draw = lambda name, scale: abs(draw(name, scale)) * (1 if step.reward > 0.5 else -1)
        right(self, step)
        self._draw = draw

    monkeypatch.setattr(releasing.ReleaseStepper, "_learn", learn)
    told = found()
    assert any("the draws are associated with the outcomes" in one for one in told)


def test_a_lattice_that_follows_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = releasing.ReleaseStepper._learn

    def learn(self: Any, step: Any) -> None:
        draw = self._draw
        coarse = 64 if step.reward > 0.5 else 1
        self._draw = lambda name, scale: draw(name, scale) // coarse * coarse
        right(self, step)
        self._draw = draw

    monkeypatch.setattr(releasing.ReleaseStepper, "_learn", learn)
    assert any("multiples of 64" in one for one in found())


def test_a_choice_that_reads_raw_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise is shown, and not used."""
    right = releasing.ReleaseStepper._learn

    def learn(self: Any, step: Any) -> None:
        right(self, step)
        if step.reward > 0.5:
            self.state[0] += 0.25

    monkeypatch.setattr(releasing.ReleaseStepper, "_learn", learn)
    assert any(one.startswith("replay: the arm does not follow from the releases") for one in found())


def test_an_outcome_that_never_came_and_enters_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides how much is released."""
    right = Session._learn

    def learn(self: Any, step: int, reward: float) -> None:
        if not np.isnan(reward):
            right(self, step, reward)

    monkeypatch.setattr(Session, "_learn", learn)
    assert any("stored in files" in one for one in found())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wholly", "words"),
    [
        (True, "replay: a trial cannot be reopened: "),
        (False, "public: the releases of a trial changed when it was reopened"),
    ],
)
def test_nodes_that_are_drawn_again_when_a_trial_is_opened(
    wholly: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wholly, so that decisions change, or by so little that none does."""

    def again(self: Any, name: str, scale: float) -> int:
        units = right(self, name, scale)
        return (draw_node(name, scale) if wholly else units + 1) if self._following else units

    right = nodes.Nodes.__call__
    monkeypatch.setattr(nodes.Nodes, "__call__", again)
    told = found()
    assert any(words in one for one in told)


def test_a_public_part_that_is_rounded_by_what_it_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdaptiveLog.public

    def public(self: Any, *given: Any, **more: Any) -> PublicLog:
        made = right(self, *given, **more)
        made.releases["value"] = made.releases["value"].round(2)
        return made

    monkeypatch.setattr(AdaptiveLog, "public", public)
    told = found()
    assert any(
        one.startswith("public: the releases in the public part of a log differ from those that were made")
        for one in told
    )
    assert any("are not on the grid of 1/1,048,576" in one for one in told)


def test_a_stopping_rule_on_data(monkeypatch: pytest.MonkeyPatch) -> None:
    root = np.random.SeedSequence(0)
    right = stopping_checks(NAS, None, root, 0.05, simulated=False, needed=True)
    assert right.findings == ()
    assert right.looked == (
        "The stopping time and the estimate were tested in 200 runs with the release backend.",
    )
    monkeypatch.setattr(release, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    faulty = stopping_checks(NAS, None, root, 0.05, simulated=False, needed=True)
    assert any(LAW in one.text for one in faulty.findings)
    assert any("are 0" in one.text for one in faulty.findings)


class TestBounds:
    @pytest.mark.slow
    def test_of_sessions(self) -> None:
        design = PrivateUCB(epsilon=4.0, counter="binary")
        result = epsilon_lower_bound(design, backend="release", view="releases", runs=300, rng=0)
        assert "sessions with exact noise" in result.target
        assert 0.3 < result.epsilon <= 4.0
        assert not result.refuted

    @pytest.mark.slow
    def test_of_sessions_without_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plant(monkeypatch, lambda name, scale: draw_node(name, scale / 8.0), None)
        design = PrivateUCB(epsilon=0.5, counter="binary")
        result = epsilon_lower_bound(design, backend="release", view="releases", runs=300, rng=0)
        assert result.epsilon > 0.5
        assert result.refuted

    @pytest.mark.parametrize(
        ("name", "simulated", "live"),
        [("PrivateUCB", 1_000_000, 1_000), ("PrivateSuccessiveElimination", 2**28 // 714, 112)],
    )
    def test_default_runs_go_with_the_rounds(self, name: str, simulated: int, live: int) -> None:
        root = np.random.SeedSequence(0)
        pairs = [_design_sources(DESIGNS[name], None, "releases", root, live=one)[0] for one in (False, True)]
        assert [source.default_runs for (source,) in pairs] == [simulated, live]

    def test_of_a_rule_on_data(self) -> None:
        result = epsilon_lower_bound(NAS, backend="release", view="releases", runs=100, rng=0)
        assert result.runs == 100


def test_the_live_trial_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(checks, "audit_trials", lambda design: asked.append(design) or audit_trials(design))
    assert found("PrivateUCB") == []
    assert asked == [DESIGNS["PrivateUCB"]]


class TestWhatCannotBeRunLive:
    def test_it_is_refused_where_it_is_asked_for(self) -> None:
        gauss = DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES)
        with pytest.raises(ParameterError, match='noise="release" is not available for DPBAIGauss'):
            epsilon_lower_bound(gauss, backend="release")
        assert live_problems(Thompson(), live_trial(Thompson())) == [
            "the design does not specify how its decisions follow from its releases"
        ]

    def test_else_the_result_says_why(self) -> None:
        gauss = DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES)
        (looked,) = _live_checks(gauss, np.random.SeedSequence(0), SHARE, needed=False).looked
        assert looked.startswith(
            'The live path was not checked: noise="release" is not available for DPBAIGauss'
        )

    def test_noise_of_ones_own_may_be_a_function(self) -> None:
        class Own(PrivateUCB):
            pass

        trial = audit_trials(PrivateUCB(epsilon=1.0))[-1]
        told = trial.noise
        assert told is not None
        audit_trials.register(
            Own, lambda design: (dataclasses.replace(trial, noise=lambda seen: told(seen)),)
        )
        assert live_problems(Own(epsilon=1.0), live_trial(Own(epsilon=1.0))) == []

    def test_a_missing_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(purpose: str) -> Any:
            raise MissingDependencyError(purpose, "opendp", "release")

        monkeypatch.setattr(release, "_opendp", missing)
        monkeypatch.setattr(release, "_samplers", release._Samplers())
        design, root = DESIGNS["PrivateUCB"], np.random.SeedSequence(0)
        (looked,) = _live_checks(design, root, SHARE, needed=False).looked
        assert looked.startswith("The live path was not checked: ")
        assert "opendp" in looked
        with pytest.raises(MissingDependencyError):
            _live_checks(design, root, SHARE, needed=True)


def test_files_of_an_audit_are_gone_afterwards(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    right = Trial.open.__func__  # type: ignore[attr-defined]

    def noted(kind: Any, path: Any, design: Any = None) -> Trial:
        opened.append(str(path))
        return right(kind, path, design)

    monkeypatch.setattr(Trial, "open", classmethod(noted))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert found() == []
    assert opened
    assert all(path.startswith(str(tmp_path)) for path in opened)
    assert list(tmp_path.iterdir()) == []
