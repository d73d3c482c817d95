"""Kits of blinded trials: a code in place of the arm, refusal before the draw, and stock that adds up."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries, in_child, rechained, twin_of
from scipy import stats

from adaptinf.designs import EpsilonGreedy, Mixture, PrivateUCB, Thompson, Uniform
from adaptinf.errors import JournalError, ParameterError
from adaptinf.trial import Trial, kit_codes, requests
from adaptinf.trial.access import answer_each
from adaptinf.trial.journal import Journal
from adaptinf.trial.supplies.kit_codes import telling_problems

ARMS = ["drug", "sham"]
WHY: dict[str, Any] = {"reason": "broken seal", "by": "the ward"}


def blinded(path: Path, kits: int = 30, design: Any = None, **options: Any) -> Trial:
    trial = Trial.create(path, design or Thompson(floor=0.1), ARMS, horizon=100, blinded=True, **options)
    trial.add_site("Basel", key="site 1", by="the office")
    trial.add_site("Bern", key="site 2", by="the office")
    codes = list(kit_codes(dict.fromkeys(ARMS, 2 * kits), rng=3).items())
    for number, site in enumerate(["Basel", "Bern"]):
        some: dict[str, Any] = {}
        for arm in ARMS:
            some |= dict([one for one in codes if one[1] == arm][number * kits : (number + 1) * kits])
        assert trial.add_kits(site, some, key=f"delivery {number}", by="the pharmacy") == 2 * kits
    return trial


def refused(call: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(ParameterError) as caught:
        call(*given, **options)
    assert len(caught.value.problems) == 1, caught.value.problems
    return caught.value.problems[0]


def arms_of(path: Path) -> dict[str, Any]:
    return {code: arm for row in entries(path) if row["kind"] == "add_kits" for code, arm in row["codes"]}


@both
def test_a_kit_of_the_arm_is_given_once_and_no_arm_is_shown(path: Path) -> None:
    with blinded(path) as trial:
        made = [trial.assign(n, key=f"a{n}", site=("Basel", "Bern")[n % 2]) for n in range(20)]
        assert [one.arm for one in made] == [None] * 20
        kits = [str(one.kit) for one in made]
        assert len(set(kits)) == 20
        assert repr(made[0]) == f"Decision(id=1, kit={kits[0]!r}, round=1)"
        assert made[0].known() == {"id": 1, "kit": kits[0], "round": 1}
        log = trial.log("drop")
        known = arms_of(path)
        assert [known[kit] for kit in kits] == log.frame["action"].tolist()
        assert log.frame["site"].tolist() == ["Basel", "Bern"] * 10
        assert log.units.tolist() == [f"{('Basel', 'Bern')[n % 2]}/{n}" for n in range(20)]
        # Sent again, under its key or another: the same kit, and no other leaves the stock.
        assert trial.assign(3, key="a3", site="Bern") == trial.assign(3, key="b3", site="Bern") == made[3]
        told = trial.unblind("Bern/3", **WHY)
        assert (told.arm, told.kit) == (known[kits[3]], kits[3])
        stock = trial.stock().to_dict("records")
        counts = {"in_stock": 50, "given": 10, "retired": 0, "low": False}
        assert stock == [{"site": "Basel", **counts}, {"site": "Bern", **counts}]
        by_arm = trial.stock(by_arm=True)
        assert by_arm.groupby("arm")["given"].sum().to_dict() == dict(Counter(log.frame["action"]))
        state = trial.kits().set_index("kit")
        assert state.loc[kits, "decision"].tolist() == list(range(1, 21))
        assert (state["state"] == "given").sum() == 20
        head = trial.verify().head
    with Trial.open(path) as trial:
        assert trial.status().head == head
        assert trial.stock().to_dict("records") == stock
        assert trial.assign(3, key="a3", site="Bern") == made[3]
        with pytest.raises(ParameterError, match=r"with another context|another request"):
            trial.assign(4, key="a3", site="Bern")


def test_a_unit_belongs_to_its_site(path: Path) -> None:
    with blinded(path) as trial:
        one, other = (trial.assign("7", key=site, site=site) for site in ("Basel", "Bern"))
        assert (one.id, other.id) == (1, 2)
        assert refused(trial.assign, "8", key="x") == "site is required, because the trial has sites"
        assert "site must be one of 'Basel', 'Bern', got 'Genf'" in refused(
            trial.assign, "8", key="x", site="Genf"
        )
        assert "another request" in refused(trial.assign, "7", key="Basel", site="Bern")
    with Trial.create(path.with_name("no.db"), Uniform(), ARMS, horizon=9) as trial:
        assert "the trial has no sites" in refused(trial.assign, "8", key="x", site="Basel")
        trial.assign("8", key="x")
        assert "participants were assigned without a site" in refused(
            trial.add_site, "Basel", key="s", by="the office"
        )


@both
def test_nothing_is_drawn_unless_every_arm_has_a_kit(path: Path) -> None:
    """The refusal comes whichever arm would be drawn, and the draw after it is the one without it."""
    twin = path.with_name("twin.db") if isinstance(path, Path) else None
    with blinded(path, kits=3, design=Uniform()) as trial:
        if twin is not None:
            twin_of(trial, twin)
        given: Counter[Any] = Counter()
        for number in range(6):
            if max(given.values(), default=0) == 3:
                break
            made = trial.assign(number, key=f"a{number}", site="Basel")
            given[arms_of(path)[str(made.kit)]] += 1
        rows, place = trial.status().rows, len(entries(path))
        for again in range(3):
            problem = refused(trial.assign, 50 + again, key=f"x{again}", site="Basel")
            assert (
                problem
                == "site 'Basel' has no kit left for at least one arm: add kits before the next participant"
            )
        assert (trial.status().rows, len(entries(path))) == (rows, place)
        next_one = trial.assign("n", key="n", site="Bern")
        (empty,) = [arm for arm, count in given.items() if count == 3]
        trial.add_kits("Basel", {"999999": empty}, key="more", by="the pharmacy")
        after = trial.assign("m", key="m", site="Basel")
        trial.verify()
    if twin is None:
        return
    with Trial.open(twin) as calm:
        for number in range(sum(given.values())):
            calm.assign(number, key=f"a{number}", site="Basel")
        assert calm.assign("n", key="n", site="Bern") == next_one
        calm.add_kits("Basel", {"999999": empty}, key="more", by="the pharmacy")
        assert calm.assign("m", key="m", site="Basel") == after


def test_a_removed_arm_needs_no_kit(path: Path) -> None:
    with blinded(path, kits=1, design=Uniform()) as trial:
        made = trial.assign(1, key="a", site="Basel")
        arm = arms_of(path)[str(made.kit)]
        refused(trial.assign, 2, key="b", site="Basel")
        trial.remove_arm(arm, key="r", reason="seizures", by="the board")
        assert arms_of(path)[str(trial.assign(2, key="b", site="Basel").kit)] != arm
        trial.verify()


@both
def test_requests_of_operators_count_once(path: Path) -> None:
    with blinded(path, kits=2) as trial:
        rows = trial.status().rows
        trial.add_site("Bern", key="site 2", by="the office")
        code = trial.kits()["kit"].iloc[0]
        trial.retire_kit(code, key="loss", **WHY)
        trial.retire_kit(code, key="loss", **WHY)
        assert trial.status().rows == rows + 1
        assert refused(trial.retire_kit, code, key="loss 2", **WHY) == f"kit {code} was retired before"
        assert refused(trial.retire_kit, "000000", key="loss 3", **WHY) == "there is no kit '000000'"
        assert "another request" in refused(trial.retire_kit, "000000", key="loss", **WHY)
        assert "another request" in refused(trial.add_site, "Genf", key="site 2", by="the office")
        assert "another request (add_site)" in refused(trial.assign, 1, key="site 2", site="Bern")
        made = trial.assign(1, key="a", site="Bern")
        assert (
            refused(trial.retire_kit, made.kit, key="l", **WHY)
            == f"kit {made.kit} was given to a participant"
        )
        acts = [(act.kind, act.site, act.kit, act.by) for act in trial.history()]
        assert acts[-3:] == [
            ("add_kits", "Basel", None, "the pharmacy"),
            ("add_kits", "Bern", None, "the pharmacy"),
            ("retire_kit", None, code, "the ward"),
        ]
        trial.finish("all are in")
        assert "finished" in refused(trial.add_site, "Genf", key="site 3", by="the office")
        trial.verify()


WRONG: list[tuple[Any, str]] = [
    ({"1234": "drug", "12345": "sham"}, "all codes of kits must have the same length, got lengths 4, 5, 6"),
    ({"abcdef": "drug", "ABCDEF": "sham"}, "must be unique, also without regard to case: ABCDEF, abcdef"),
    ({"12 456": "drug"}, "must be text of 4 to 40 letters, digits or hyphens, got '12 456'"),
    ({123456: "drug"}, "must be text of 4 to 40 letters, digits or hyphens, got 123456"),
    ({"123456": "other"}, "arm must be one of 'drug', 'sham', got 'other'"),
    ({"sham12": "drug"}, "codes of kits must not contain the label of an arm, 'sham'"),
    ({}, "kits must be a dict that maps codes to arms"),
    ("123456", "kits must be a dict that maps codes to arms"),
]


@pytest.mark.parametrize(("kits", "problem"), WRONG)
def test_codes_that_cannot_be_used_are_refused(path: Path, kits: Any, problem: str) -> None:
    with blinded(path, kits=2) as trial:
        rows = trial.status().rows
        assert problem in refused(trial.add_kits, "Basel", kits, key="k", by="the pharmacy")
        assert trial.status().rows == rows
        known = trial.kits()["kit"].iloc[0]
        assert "unique" in refused(trial.add_kits, "Basel", {known: "drug"}, key="k", by="the pharmacy")
        assert "site must be one of" in refused(trial.add_kits, "Genf", {"999999": "drug"}, key="k", by="p")


def test_a_trial_that_is_not_blinded_has_no_kits(path: Path) -> None:
    with Trial.create(path, Uniform(), ARMS, horizon=9) as trial:
        trial.add_site("Basel", key="s", by="the office")
        assert "the trial is not blinded" in refused(
            trial.add_kits, "Basel", {"1234": "drug"}, key="k", by="p"
        )
        made = trial.assign(1, key="a", site="Basel")
        assert made.arm in ARMS
        assert made.kit is None
        assert trial.log("drop").frame["site"].tolist() == ["Basel"]
    with pytest.raises(ParameterError, match="blinded must be True or False, got 1"):
        Trial.create(path.with_name("x.db"), Uniform(), ARMS, horizon=9, blinded=1)  # type: ignore[arg-type]
    with Trial.create(path.with_name("y.db"), Uniform(), ARMS, horizon=9, blinded=True) as trial:
        assert "add sites and kits first" in refused(trial.assign, 1, key="a")


def numbered(kits: int, first: str, second: str) -> dict[str, str]:
    return {f"{first}{n:03d}": "x" for n in range(kits)} | {f"{second}{n:03d}": "y" for n in range(kits)}


def test_codes_that_tell_the_arm_are_found_and_shuffled_ones_are_not() -> None:
    assert telling_problems(numbered(20, "1", "2")) == [
        "character 1 of the code and 1 more reveals the arm: shuffle the codes, as kit_codes does"
    ]
    blocks = {f"{n:04d}": "xy"[n >= 55] for n in range(40, 70)}
    assert telling_problems(blocks) == [
        "the order of the codes reveals the arm: shuffle the codes, as kit_codes does"
    ]
    parity = {f"{n:04d}": "xy"[n % 2] for n in range(40)}
    assert (
        "the parity of the last character" in telling_problems(parity)[0]
        or "character 4" in telling_problems(parity)[0]
    )
    for seed in range(300):
        assert telling_problems(kit_codes({"x": 12, "y": 12}, 4, rng=seed)) == []


def test_codes_are_shuffled_and_of_one_length() -> None:
    codes = kit_codes({"a": 200, "b": 100}, 6, taken=["123456"], rng=1)
    assert Counter(codes.values()) == {"a": 200, "b": 100}
    assert list(codes) == sorted(codes)
    assert {len(code) for code in codes} == {6}
    assert "123456" not in codes
    # The number of a code in the order has the same distribution for both arms.
    ranks = [[n for n, arm in enumerate(codes.values()) if arm == one] for one in "ab"]
    assert stats.mannwhitneyu(*ranks).pvalue > 0.001
    assert kit_codes({"a": 3, "b": 3}) != kit_codes({"a": 3, "b": 3})
    with pytest.raises(ParameterError, match="10,000 codes of 4 digits are too few for 1,001 kits"):
        kit_codes({"a": 1_001}, 4)
    with pytest.raises(ParameterError) as caught:
        kit_codes({"a": -1}, 3)
    assert [problem.split()[0] for problem in caught.value.problems] == ["kits", "length"]


def test_the_kit_of_an_arm_is_drawn_and_not_the_first(path: Path) -> None:
    """The position of a kit among those of its arm is uniform: the order of codes shows nothing of arms."""
    with blinded(path, kits=50, design=Uniform()) as trial:
        left: dict[Any, list[str]] = {}
        for code, arm in arms_of(path).items():
            left.setdefault(arm, []).append(code)
        here = set(trial.kits().query("site == 'Basel'")["kit"])
        stock = {arm: sorted(here & set(codes)) for arm, codes in left.items()}
        known, places = arms_of(path), []
        for number in range(80):
            if min(map(len, stock.values())) == 0:
                break
            kit = str(trial.assign(number, key=f"a{number}", site="Basel").kit)
            of_arm = stock[known[kit]]
            places.append((of_arm.index(kit) + 0.5) / len(of_arm))
            of_arm.remove(kit)
    assert len(places) >= 50
    assert stats.kstest(places, "uniform").pvalue > 1e-6
    assert np.std(places) > 0.2


def test_groups_are_refused_whole_or_one_by_one(path: Path) -> None:
    with blinded(path, kits=1, design=Uniform()) as trial:
        rows, stock = trial.status().rows, trial.stock(by_arm=True)
        with pytest.raises(ParameterError, match=r"request 1 \(key 'b'\): site 'Basel' has no kit left"):
            trial.assign_many([1, 2, 3], keys=["a", "b", "c"], sites=["Basel", "Basel", "Bern"])
        assert trial.status().rows == rows
        assert trial.stock(by_arm=True).equals(stock)
        acts = [
            lambda replay, unit=unit, site=site: replay.assign_new(unit, None, f"k{unit}", site)
            for unit, site in ((1, "Basel"), (2, "Basel"), (3, "Bern"))
        ]
        told = answer_each(trial, acts)
        assert [type(one).__name__ for one in told] == ["Decision", "ParameterError", "Decision"]
        assert trial.stock()["given"].tolist() == [1, 1]
        trial.verify()


@both
def test_erasure_and_snapshots_keep_the_stock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 7)
    with blinded(path, design=EpsilonGreedy(), features=["f", "m"]) as trial:
        made = [trial.assign(n, "fm"[n % 2], key=f"a{n}", site="Basel") for n in range(12)]
        trial.record_many(
            [one.id for one in made], [n % 2 for n in range(12)], keys=[f"r{n}" for n in range(12)]
        )
        trial.erase("Basel/3", key="e", reason="a request", by="data protection")
        more = [trial.assign(n, "fm"[n % 2], key=f"a{n}", site="Bern") for n in range(12, 24)]
        stock, kits = trial.stock(by_arm=True), trial.kits()
        assert kits["decision"].max() == 24
        assert trial.log("drop", erased="drop").frame["site"].tolist() == ["Basel"] * 11 + ["Bern"] * 12
        trial.verify()
    with Trial.open(path) as trial:
        assert trial.stock(by_arm=True).equals(stock)
        assert trial.kits().equals(kits)
        assert trial.assign(13, "m", key="a13", site="Bern") == more[1]
        assert "was erased" in refused(trial.assign, 3, "m", key="new", site="Basel")


def test_a_private_trial_has_kits(path: Path) -> None:
    design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
    with blinded(path, design=design, outcome_window=1) as trial:
        for number in range(10):
            made = trial.assign(number, key=f"a{number}", site="Basel")
            trial.record(made.id, 1.0, key=f"r{number}")
        assert trial.verify().rounds == 10
        assert trial.log().guarantee is not None
        assert trial.log().guarantee.epsilon == 1.0


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("assign", {"kit": "000000"}),
    ("assign", {"site": "Bern"}),
    ("assign", {"site": "Genf"}),
    ("add_kits", {"site": "Genf"}),
    ("retire_kit", {"kit": "000000"}),
    ("add_site", {"site": "a/b"}),
]


@pytest.mark.parametrize(("kind", "change"), FORGED)
def test_changed_rows_are_found(path: Path, kind: str, change: dict[str, Any]) -> None:
    with blinded(path, kits=4) as trial:
        trial.retire_kit(trial.kits()["kit"].iloc[0], key="loss", **WHY)
        trial.assign(1, key="a", site="Basel")
    with closing(sqlite3.connect(path)) as file:
        rechained(file, lambda _, entry: {**entry, **change} if entry["kind"] == kind else entry)
    with pytest.raises(JournalError, match=r"row \d+"):
        Trial.open(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@both
def test_a_kill_gives_no_kit_twice(path: Path) -> None:
    blinded(path, kits=40).close()
    for when in ("before", "after"):
        for count in (1, 2, 3, 4):

            def work(when: str = when, count: int = count) -> None:
                whole, left = Journal.commit, [count]

                def commit(journal: Journal) -> None:
                    left[0] -= 1
                    if left[0] == 0:
                        if when == "after":
                            whole(journal)
                        os.kill(os.getpid(), 9)
                    whole(journal)

                Journal.commit = commit  # type: ignore[method-assign]
                trial = Trial.open(path)
                for number in range(12):
                    trial.assign(f"{when} {count} {number}", key=f"{when} {count} {number}", site="Basel")

            assert os.waitpid(in_child(work), 0)[1] == 9
    with Trial.open(path) as trial:
        rounds = trial.verify().rounds
        kits = trial.kits().query("state == 'given'")
        assert len(kits) == rounds == trial.stock()["given"].sum() == 2 * (0 + 1 + 2 + 3) + 4
        assert sorted(kits["decision"]) == list(range(1, rounds + 1))


def test_a_trial_without_sites_has_the_rows_it_had(path: Path) -> None:
    with Trial.create(path, Thompson(), ARMS, horizon=9) as trial:
        trial.assign("p", key="k")
    first, row = entries(path)
    assert "blinded" not in first
    names = {"kind", "round", "arm", "status", "propensities", "key", "unit", "context"}
    assert set(row) - {"salt"} == names


def test_a_sealed_trial_shows_no_kit_and_no_arm(path: Path) -> None:
    """With a key outside the file, neither codes nor arms nor sites can be read in it."""
    key = path.with_name("key")
    Trial.make_key(key)
    with Trial.create(path, Uniform(), ARMS, horizon=9, blinded=True, key_file=key) as trial:
        trial.add_site("Basel", key="s", by="the office")
        trial.add_kits("Basel", kit_codes(dict.fromkeys(ARMS, 3), 9, rng=5), key="d", by="the pharmacy")
        made = trial.assign(1, key="a", site="Basel")
        codes = trial.kits()["kit"].tolist()
        trial.verify()
    content = b"".join(place.read_bytes() for place in path.parent.glob("trial.db*"))
    assert not [text for text in ("Basel", *ARMS, *codes) if text.encode() in content]
    with Trial.open(path, key_file=key) as trial:
        assert trial.assign(1, key="a", site="Basel") == made
