"""Coupled neighbouring trials: right designs agree and cost what a count says, planted faults are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import planted_building
import planted_live as live
import pytest

from adaptinf.audit import coupled
from adaptinf.audit.privacy.coupling.histories import OUTSIDE, Terms, base_history, neighbour
from adaptinf.audit.privacy.coupling.pairs import PairAudit
from adaptinf.audit.privacy.coupling.stopping import stream_pair
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    DPConSE,
    LDPBandit,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
)
from adaptinf.errors import ParameterError

FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7), (0.3, 0.9), (0.8, 0.2))
UCB = PrivateUCB(epsilon=1.0, counter="binary")
HYBRID = PrivateUCB(epsilon=0.5)
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
    "mixture": Mixture(UCB, exploration=0.2),
    "mixture of phases": Mixture(PHASES, exploration=0.2),
    "mixture of conse": Mixture(CONSE, exploration=0.2),
}


def tree(items: int) -> list[range]:
    """The nodes of a binary counter: a new one at each count, of the items that no older one covers there."""
    return [range(count & (count - 1), count) for count in range(1, items + 1)]


@pytest.mark.parametrize("name", PRIVATE)
def test_all_that_is_covered_agrees_at_no_more_than_the_promise(name: str) -> None:
    found = coupled(PRIVATE[name], "value", rng=7)
    assert not found.refuted, found.disagreement
    assert 0.4 < found.share <= 1.0
    assert min(pair.releases for pair in found.pairs) > 0


def test_records_cost_all_of_epsilon_and_outcomes_their_share() -> None:
    found = coupled(CONSE, ["value", "context", "early"], rng=3)
    frame = found.to_frame().groupby("kind")[["cost", "promised"]].max()
    assert not found.refuted, found.disagreement
    assert frame.loc["value"].tolist() == pytest.approx([0.6, 0.6], rel=1e-12)
    assert frame.loc["context"].tolist() == pytest.approx([1.0, 1.0], rel=1e-12)
    assert frame.loc["early", "cost"] == 0.0


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


class Planted:
    """A fault, where it is planted, the neighbours that show it, and in which words."""

    def __init__(self, fault: live.Fault, target: Any, kinds: str | Sequence[str], words: str) -> None:
        self.fault, self.target, self.kinds, self.words = fault, target, kinds, words


COST = "Cost above the promise"
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
    Planted(live.half_the_scale, UCB, "value", "and it was drawn with"),
    Planted(live.half_the_scale, CONSE, "value", "and it was drawn with"),
    Planted(live.half_the_scale, EPOCHS, "value", "and it was drawn with"),
    Planted(live.half_the_scale, PHASES, "value", "and it was drawn with"),
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


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: f"{planted.fault.__name__}")
def test_a_planted_fault_is_found_by_a_default_call(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.fault(monkeypatch)
    found = coupled(planted.target, planted.kinds, rng=5)
    assert found.refuted
    assert planted.words in " ".join(found.summary().as_text().split()), found.summary()


def test_one_participant_alone_has_a_label_and_another_one_then() -> None:
    """Releases of a label that nobody has in a window must be there all the same."""
    terms = Terms(("a", "b"), 40, 40, 4, features=("x", "y", "z"))
    rng = np.random.default_rng(0)
    base = base_history(terms, 7, OUTSIDE, rng)
    assert np.flatnonzero(base.contexts).tolist() == [7]
    other = neighbour(base, terms, "context", 7, OUTSIDE, rng)
    assert not other.history.contexts.any()


def test_results_of_releases_are_compared() -> None:
    found = PairAudit.of(CONSE, Terms(("a", "b"), 40, 40, 4, features=("x", "y"))).pairs(
        0, ["value"], np.random.default_rng(0)
    )
    assert not any(pair.refuted for pair in found)
    with planted_building.FAULTS["intervals take the raw count"].plant():
        assert "effects by group from the releases" in coupled(CONSE, "context", rng=0).disagreement


def test_a_design_without_noise_of_its_own_is_refused_for_that() -> None:
    with pytest.raises(ParameterError, match="no whole-number noise that could be shifted"):
        coupled(LDPBandit(epsilon=1.0))
