"""Coupled neighbouring trials: right designs agree and cost what a count says, planted faults are found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import planted_building
import planted_live as live
import pytest

from adaptinf.audit import Coupled, CoupledPair, coupled
from adaptinf.audit.privacy.coupled_pairs import PairAudit
from adaptinf.audit.privacy.coupled_trials import stream_pair
from adaptinf.audit.privacy.histories import OUTSIDE, Terms, base_history, neighbour
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    DPOD,
    Design,
    DPBAIGauss,
    DPConSE,
    LDPBandit,
    LDPLinear,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
)
from adaptinf.errors import ParameterError
from adaptinf.sessions import steppers as releasing
from adaptinf.trial import Trial
from adaptinf.trial import trial_noise as nodes

FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7), (0.3, 0.9), (0.8, 0.2))
UCB = PrivateUCB(epsilon=1.0, counter="binary")
HYBRID = PrivateUCB(epsilon=0.5)
MIXED = Mixture(UCB, exploration=0.2)
CONSE = DPConSE(epsilon=1.0, first_window=4)
EPOCHS = PrivateSuccessiveElimination(epsilon=4.0, beta=1.0)
PHASES = DPBAI(epsilon=1.0, features=FEATURES)
LINEAR = LinPriv(epsilon=1.0)
RULE = DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential")
PRIVATE: dict[str, Any] = {
    "ucb": UCB,
    "hybrid": HYBRID,
    "conse": CONSE,
    "conse, one context": DPConSE(epsilon=1.0, contrast_share=1.0),
    "linear": LINEAR,
    "phases": PHASES,
    "rule": RULE,
    "rule at every sample": DPNAS(epsilon=1.0, alpha=0.9, beta=0.5),
    "mixture": MIXED,
    "mixture of phases": Mixture(PHASES, exploration=0.2),
    "mixture of conse": Mixture(CONSE, exploration=0.2),
}


def tree(items: int) -> list[range]:
    """The nodes of a binary counter: a new one at each count, of the items that no older one covers there."""
    return [range(count & (count - 1), count) for count in range(1, items + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVATE)
def test_all_that_is_covered_agrees_at_no_more_than_the_promise(name: str) -> None:
    found = coupled(PRIVATE[name], "value", rng=7)
    assert not found.refuted, found.disagreement
    assert 0.4 < found.share <= 1.0
    assert min(pair.releases for pair in found.pairs) > 0


@pytest.mark.slow
def test_records_cost_all_of_epsilon_and_outcomes_their_share() -> None:
    found = coupled(CONSE, ["value", "context", "early"], pairs=2, rng=3)
    cost = {
        kind: max(pair.cost for pair in found.pairs if pair.kind == kind) for kind in ("value", "context")
    }
    promised = {pair.kind: pair.promised.epsilon for pair in found.pairs}
    assert not found.refuted, found.disagreement
    assert promised == {"value": 0.6, "context": 1.0, "early": 0.6}
    assert cost["value"] == pytest.approx(0.6, rel=1e-12)
    assert cost["context"] == pytest.approx(1.0, rel=1e-12)
    assert max(pair.cost for pair in found.pairs if pair.kind == "early") == 0.0


def test_an_epoch_is_paid_for_once() -> None:
    found = coupled(EPOCHS, "value", pairs=1, rng=0)
    assert not found.refuted, found.disagreement
    assert found.cost == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("step", [0, 5, 16, 30])
def test_the_cost_is_that_of_the_nodes_that_hold_an_outcome(step: int) -> None:
    rounds = 31
    audit = PairAudit.of(UCB, Terms(("only",), rounds, rounds, 0))
    (pair,) = audit.pairs(0, ["value"], np.random.default_rng(1), step=step)
    nodes = [node for node in tree(rounds) if step in node]
    assert pair.agrees, pair.disagreement
    assert pair.shifted == len(nodes)
    assert pair.cost == pytest.approx(len(nodes) / 5.0, rel=1e-12)


def test_a_stopping_rule_pays_a_sixth_a_third_and_a_half() -> None:
    value, missing = (coupled(RULE, kind, rng=0) for kind in ("value", "never"))
    assert not value.refuted
    assert not missing.refuted
    assert value.cost == pytest.approx(1.0, rel=1e-12)
    assert missing.cost == pytest.approx(0.75, rel=1e-12)
    silent = stream_pair(RULE, np.zeros(64), "value", 0, np.random.default_rng(0))
    assert silent.agrees
    assert silent.cost == pytest.approx(1.0 / 6.0, rel=1e-12)


QUICK = (live.decides_by_raw_sums, live.carried_to_later_windows, live.half_the_threshold)
"""Faults that a quick run looks for, by a disagreement, a cost and a rule; slow tests look for the others."""


class Planted:
    """A fault, where it is planted, what shows it, in which words, and whether a quick run looks for it."""

    def __init__(self, fault: live.Fault, target: Any, kinds: str | Sequence[str], words: str) -> None:
        self.fault, self.target, self.kinds, self.words = fault, target, kinds, words
        self.quick = fault in QUICK


COST = "The largest cost exceeds the guarantee"
FAULTS = [
    Planted(live.stops_on_raw_sums, UCB, "value", "the arm of participant"),
    Planted(live.lost_enters_nothing, UCB, "never", "release"),
    Planted(live.lost_enters_nothing, PHASES, "never", "arm of participant"),
    Planted(live.one_more_draw_at_a_count, UCB, "value", "draw"),
    Planted(live.decimals_by_raw_sums, UCB, "value", "release"),
    Planted(live.rounding_by_raw_sums, UCB, "value", COST),
    Planted(live.decides_by_raw_sums, UCB, "value", "the arm of participant"),
    Planted(live.last_bits_of_raw_sums, Mixture(UCB, exploration=0.2), "value", "public().rounds half-way"),
    Planted(live.status_counts_events, UCB, "value", "status().reason"),
    Planted(live.public_counts_events, UCB, "value", "public().facts['mean outcome']"),
    Planted(live.files_count_events, UCB, "value", "the file public.csv.json"),
    Planted(live.half_the_scale, UCB, "value", "but it was drawn with"),
    Planted(live.half_the_scale, CONSE, "value", "but it was drawn with"),
    Planted(live.half_the_scale, EPOCHS, "value", "but it was drawn with"),
    Planted(live.half_the_scale, PHASES, "value", "but it was drawn with"),
    Planted(live.half_the_product_scale, LINEAR, "value", COST),
    Planted(live.carried_to_later_windows, CONSE, "value", COST),
    Planted(live.counts_for_the_next_too, UCB, "value", COST),
    Planted(live.clipping_left_out, LINEAR, "value", COST),
    Planted(live.amended_enters_again, CONSE, "amended", COST),
    Planted(live.enters_as_it_comes, UCB, ("early", "late"), "release"),
    Planted(live.erased_leaves_the_sums, CONSE, "erased", COST),
    Planted(live.noise_turned_by_sums, UCB, "value", "depends on its noise"),
    Planted(live.scale_by_sums, UCB, "value", "scale"),
    Planted(live.half_the_threshold, RULE, "value", COST),
    Planted(live.half_the_estimate, RULE, "value", COST),
    Planted(live.estimate_carries_raw_sums, RULE, "value", "the result's"),
]


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(
            planted,
            id=f"{planted.fault.__name__}-{number}",
            marks=[] if planted.quick else [pytest.mark.slow],
        )
        for number, planted in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_is_found_by_a_default_call(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.fault(monkeypatch)
    found = coupled(planted.target, planted.kinds, rng=5)
    assert found.refuted
    assert planted.words in " ".join(found.summary().as_text().split()), found.summary()


def test_real_noise_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit that the page states: without any noise in earnest a design passes."""
    for place in (releasing, nodes):
        monkeypatch.setattr(place, "draw_node", lambda name, scale: 0)
    assert not coupled(UCB, "value", pairs=1, rng=0).refuted


def test_the_same_seed_makes_the_same_pairs() -> None:
    one, again, other = (coupled(PHASES, "value", pairs=1, rng=seed).to_frame() for seed in (1, 1, 2))
    assert one.equals(again)
    assert not one.equals(other)


def test_a_trial_is_read_for_its_terms_alone(tmp_path: Path) -> None:
    with Trial.create(tmp_path / "trial.db", MIXED, ["a", "b", "c"], 200, outcome_window=4) as trial:
        decision = trial.assign("somebody", key="first")
        before = trial.status()
        found = coupled(trial, ["value", "early"], pairs=1, rng=0)
        assert trial.status() == before
        trial.record(decision.id, 1.0, key="outcome")
    assert not found.refuted, found.disagreement
    assert "3 arms, 64 of 200 participants, outcome window 4" in found.target


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (LinPriv(epsilon=1.0, delta=1e-5), "normal noise"),
        (DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES), "normal"),
        (DPOD(epsilon=1.0, features=FEATURES), "rewards times features"),
        (LDPBandit(epsilon=1.0), "added by the participant"),
        (LDPLinear(epsilon=1.0), "added by the participant"),
        (DPConSE(epsilon=1.0, calibration="published"), "the published version"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_designs_without_whole_noise_are_sent_to_the_lower_bound(target: Design, words: str) -> None:
    with pytest.raises(ParameterError, match=r"audit\.epsilon_lower_bound") as refused:
        coupled(target)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": Thompson()}, "no privacy guarantee"),
        ({"target": 3}, "target must be a private design"),
        ({"neighbours": "removed"}, "neighbours must be among value"),
        ({"neighbours": []}, "neighbours must be among value"),
        ({"neighbours": ["value", "context"]}, "contexts are public"),
        ({"target": PHASES, "neighbours": "late"}, "waits for each outcome"),
        ({"target": RULE, "neighbours": "erased"}, "a stream only has samples"),
        ({"target": RULE, "horizon": 8}, "horizon must be omitted if"),
        ({"pairs": 0}, "pairs must be a whole number"),
    ],
    ids=str,
)
def test_a_call_that_cannot_be_answered_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        coupled(**{"target": UCB, **given})


def test_results_show_kinds_costs_and_what_disagrees() -> None:
    promise = UCB.guarantee(48, 2)
    right = CoupledPair("value", "one outcome differs", 0.5, promise, 1, 40, 8, True)
    dear = CoupledPair("value", "another outcome differs", 1.5, promise, 3, 40, 8, False)
    wrong = CoupledPair("late", "an outcome is late", 0.0, promise, 0, 40, 8, False, "the status differs")
    assert not Coupled("a design", (right,)).refuted
    found = Coupled("a design", (right, dear, wrong))
    text = " ".join(str(found).split())
    assert found.refuted
    assert (found.cost, found.share, found.disagreement) == (
        1.5,
        1.5,
        "an outcome is late: the status differs",
    )
    assert (
        "The largest cost exceeds the guarantee: 1.5 instead of at most 1, where another outcome differs."
        in text
    )
    assert "First disagreement: an outcome is late: the status differs." in text
    assert found.to_frame()["refuted"].tolist() == [False, True, True]
    assert "<table" in found._repr_html_()


AFTER_WINDOW = ("early", "late", "never", "amended", "erased")


def kinds_of(name: str) -> list[str]:
    target = PRIVATE[name]
    if isinstance(target, DPNAS):
        return ["never"]
    return ["never", "amended"] if target.pending == "last" else list(AFTER_WINDOW)


SAME = ("hybrid", "rule at every sample", "mixture of phases", "mixture of conse")
"""Designs whose timing is that of another one."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in PRIVATE for kind in kinds_of(name) if name not in SAME],
)
def test_when_outcomes_come_shows_in_nothing_that_is_covered(name: str, kind: str) -> None:
    found = coupled(PRIVATE[name], kind, pairs=2, rng=11)
    assert not found.refuted, found.disagreement


def test_that_nothing_was_late_is_not_told_either(tmp_path: Path) -> None:
    with Trial.create(tmp_path / "trial.db", MIXED, ["a", "b"], 40, outcome_window=0) as trial:
        found = coupled(trial, ["late", "never"], pairs=1, rng=0)
    assert not found.refuted, found.disagreement


def test_no_arm_of_a_live_private_design_can_be_removed(tmp_path: Path) -> None:
    for number, target in enumerate((MIXED, CONSE)):
        features = [0, 1] if target is CONSE else None
        place = tmp_path / f"{number}.db"
        with Trial.create(place, target, ["a", "b"], 8, outcome_window=1, features=features) as trial:
            trial.assign("somebody", features and 0, key="first")
            with pytest.raises(ParameterError, match="waits for outcomes before it chooses"):
                trial.remove_arm("a", key="second", reason="safety", by="the board")


@pytest.mark.parametrize("erased", ["keep", "drop"])
def test_what_was_ended_early_or_left_out_promises_nothing(tmp_path: Path, erased: str) -> None:
    with Trial.create(tmp_path / "trial.db", MIXED, ["a", "b"], 8, outcome_window=0) as trial:
        for number in range(8 if erased == "drop" else 5):
            decision = trial.assign(f"person {number}", key=f"assign {number}")
            trial.record(decision.id, 1.0, key=f"record {number}")
        trial.erase("person 2", key="erase", reason="on request", by="data protection")
        trial.finish("a bad outcome" if erased == "keep" else "the horizon is used up")
        assert trial.log(erased=erased).guarantee is None


def test_one_participant_alone_has_a_label_and_another_one_then() -> None:
    """Releases of a label that nobody has in a window must be there all the same."""
    terms = Terms(("a", "b"), 40, 40, 4, features=("x", "y", "z"))
    rng = np.random.default_rng(0)
    base = base_history(terms, 7, OUTSIDE, rng)
    assert np.flatnonzero(base.contexts).tolist() == [7]
    other = neighbour(base, terms, "context", 7, OUTSIDE, rng)
    assert not other.history.contexts.any()


@pytest.mark.slow
def test_results_of_releases_are_compared() -> None:
    found = PairAudit.of(CONSE, Terms(("a", "b"), 40, 40, 4, features=("x", "y"))).pairs(
        0, ["value"], np.random.default_rng(0)
    )
    assert not any(pair.refuted for pair in found)
    with planted_building.FAULTS["intervals take the raw count"].plant():
        assert "effects by group from the releases" in coupled(CONSE, "context", rng=0).disagreement
