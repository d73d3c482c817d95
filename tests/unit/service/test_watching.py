"""Events, looks and amendments over HTTP: what each role sees, and nothing by arm for those who must not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from served import Served, serving
from test_calls import code

import adaptinf as ai

LOOKS = [20, 40]
ROLES = ("monitor", "operator", "statistician")


def enrol(served: Served, until: int, good: str = "B") -> None:
    """Participants up to a number; of those with a good arm, one in four has outcome 0, of the others all."""
    for number in range(served.trial.status().rounds + 1, until + 1):
        made = served.assign({"unit": f"p{number}"}, f"a{number}").json()
        reward = float(made["arm"] in good and number % 4 > 0)
        served.record({"decision": number, "reward": reward}, f"r{number}")


@pytest.fixture(autouse=True)
def same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(range(32)))


def look(served: Served, role: str = "statistician") -> Any:
    return served.client.post("/v1/looks", headers=served.headers(role))


@pytest.fixture
def planned(path: Path) -> Iterator[Served]:
    plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=LOOKS)
    yield from serving(ai.Trial.create(path, plan))


def test_an_amendment_counts_once(served: Served) -> None:
    body = {"decision": 1, "reward": 0.5, "reason": "misread", "by": "Dr. Ames"}

    def amended(changed: dict[str, Any], key: str = "m") -> Any:
        headers = served.headers("recorder", key)
        return served.client.post("/v1/amendments", json={**body, **changed}, headers=headers)

    served.assign([{"unit": "p1"}, {"unit": "p2"}], "a")
    assert code(amended({}), 409) == "outcome-missing"
    assert code(amended({"reward": 2.0}), 422) == "does-not-fit"
    assert code(amended({"decision": 9}), 404) == "unknown-decision"
    served.record({"decision": 1, "reward": 1.0}, "r")
    assert code(amended({"reward": 1.0}), 409) == "outcome-same"
    assert code(amended({}, "r"), 409) == "key-reused"
    assert code(amended({"by": " "}), 422) == "invalid-body"
    before = served.trial.status().rows
    told = {"id": 1, "reward": 0.5, "in_time": False}
    assert amended({}).json() == amended({}).json() == told
    assert served.trial.status().rows == before + 1
    assert code(amended({"reward": 0.25}), 409) == "key-reused"
    assert served.trial.log(missing="drop").frame["reward"].iloc[0] == 0.5
    served.trial.finish("done")
    assert code(amended({"reward": 0.25}, "m2"), 409) == "finished"


def test_a_site_amends_its_own_outcomes(path: Path) -> None:
    trial = ai.Trial.create(path, ai.designs.Uniform(), ["A", "B"], horizon=50)
    for served in serving(trial):
        for site in ("Basel", "Bern"):
            trial.add_site(site, key=site, by="the office")
            served.tokens[site] = trial.add_token("recorder", site=site).text
            served.tokens[f"monitor {site}"] = trial.add_token("monitor", site=site).text
        served.assign([{"unit": "p1", "site": "Basel"}], "a")
        served.record({"decision": 1, "reward": 1.0}, "r")
        body = {"decision": 1, "reward": 0.5, "reason": "misread", "by": "Dr. Ames"}

        def amended(site: str) -> Any:
            return served.client.post("/v1/amendments", json=body, headers=served.headers(site, "m"))  # noqa: B023

        assert code(amended("Bern"), 404) == "unknown-decision"
        assert amended("Basel").json() == {"id": 1, "reward": 0.5, "in_time": False}
        for place in ("events", "looks", "alarms"):
            assert code(served.get(f"/v1/{place}", "monitor Basel"), 403) == "forbidden"
        assert "adaptinf_trial_alarm" not in served.get("/metrics", "monitor Basel").text
        kinds = [one["kind"] for one in served.get("/v1/events?after=7", "monitor").json()["events"]]
        assert kinds[:4] == ["add_site", "token", "token", "add_site"]


def test_events_are_told_by_role(served: Served) -> None:
    arm = served.assign({"unit": "p1"}, "k1").json()["arm"]
    served.record({"decision": 1, "reward": 1.0}, "k2")
    turn = {"state": "paused", "reason": "arm A: two seizures", "by": "Dr. Ames"}
    served.client.post("/v1/state", json=turn, headers=served.headers("operator"))
    served.trial.unblind("p1", reason="a seizure", by="the ward")
    served.trial.finish("arm B is better", by="the board")
    told = {role: served.get("/v1/events?after=7", role).json() for role in ("monitor", "operator")}
    kinds = ["assign", "record", "pause", "unblind", "finish"]
    assert told["monitor"]["after"] == 12
    assert [one["kind"] for one in told["monitor"]["events"]] == kinds
    assert all(set(one) == {"event", "time", "kind"} for one in told["monitor"]["events"])
    more = [
        {k: v for k, v in one.items() if k not in ("event", "time")} for one in told["operator"]["events"]
    ]
    assert more == [
        {"kind": "assign"},
        {"kind": "record"},
        {"kind": "pause", "reason": "arm A: two seizures", "by": "Dr. Ames"},
        {"kind": "unblind", "by": "the ward"},
        {"kind": "finish", "by": "the board"},
    ]
    every = served.get("/v1/events?after=7", "statistician").json()["events"]
    assert (every[0]["arm"], every[0]["round"]) == (arm, 1)
    assert (every[1]["decision"], every[1]["reward"]) == (1, 1.0)
    assert every[-1]["reason"] == "arm B is better"
    text = served.get("/v1/events", "statistician").text
    assert not any(name in text for name in ('"p1"', '"k1"', '"k2"', "digest", "seizure'"))


def test_events_come_in_pages(served: Served) -> None:
    served.assign([{"unit": f"p{number}"} for number in range(10)], "a")
    found, after = [], 0
    while page := served.get(f"/v1/events?after={after}&limit=4").json()["events"]:
        found += [one["event"] for one in page]
        after = page[-1]["event"]
    assert found == list(range(1, 18))
    assert served.get("/v1/events?after=17").json() == {"events": [], "after": 17}
    for query in ("after=-1", "after=x", "limit=0", "limit=501", "after=1e99"):
        response = served.get(f"/v1/events?{query}")
        assert code(response, 422) == "invalid-query"
        assert response.json()["fields"] == [query.partition("=")[0]]


@pytest.mark.parametrize("sealed", [False, True])
def test_noise_does_not_show_in_numbers_of_events(path: Path, sealed: bool) -> None:
    pytest.importorskip("opendp")
    design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.2)
    key = path.parent / "key"
    if sealed:
        ai.Trial.make_key(key)
    options = {"key_file": key} if sealed else {}
    trial = ai.Trial.create(path, design, ["A", "B"], horizon=40, outcome_window=1, **options)
    for served in serving(trial):
        for number in range(1, 21):
            served.assign({"unit": number}, f"a{number}")
            served.record({"decision": number, "reward": 1.0}, f"r{number}")
            assert served.get("/v1/status").json()["rows"] == 7 + 2 * number
        assert trial.status().rows > 47
        told = served.get("/v1/events?limit=500").json()
        assert told["after"] == 47
        assert [one["kind"] for one in told["events"][7:]] == ["assign", "record"] * 20
        assert served.get("/v1/events?after=45&limit=1").json()["events"] == told["events"][45:46]


def test_looks_by_role(planned: Served) -> None:
    assert look(planned).json() == {"looks": [], "next": 20}
    assert planned.get("/v1/status").json()["next_look"] == 20
    planned.assign([{"unit": f"p{number}"} for number in range(1, 21)], "a")
    assert code(look(planned), 409) == "outcomes-pending"
    assert look(planned, "monitor").status_code == 403
    events = planned.get("/v1/events?limit=500", "statistician").json()["events"]
    arms = [one["arm"] for one in events if one["kind"] == "assign"]
    body = [{"decision": number, "reward": float(arm == "B")} for number, arm in enumerate(arms, 1)]
    planned.record(body, "r")
    told = look(planned, "operator").json()
    (taken,) = told["looks"]
    assert {**taken, "time": ""} == {"stage": 1, "rounds": 20, "ends": taken["ends"], "time": ""}
    assert look(planned).json()["looks"] == []
    enrol(planned, 40)
    if planned.trial.status().state == "open":
        assert [one["stage"] for one in look(planned).json()["looks"]] == [2]
    frame = planned.trial.looks()
    seen = {role: planned.get("/v1/looks", role).json() for role in ("monitor", "statistician")}
    assert [one["ends"] for one in seen["monitor"]["looks"]] == (frame["decision"] != "continue").tolist()
    assert all(set(one) == {"stage", "rounds", "ends", "time"} for one in seen["monitor"]["looks"])
    full = seen["statistician"]["looks"]
    assert [one["decision"] for one in full] == frame["decision"].tolist()
    assert [one["statistic"] for one in full] == [
        None if np.isnan(value) else value for value in frame["statistic"]
    ]
    assert seen["monitor"]["next"] is None
    assert planned.trial.verify().rounds == planned.trial.status().rounds
    events = planned.get("/v1/events?limit=500").json()["events"]
    assert [set(one) for one in events if one["kind"] == "look"] == [
        {"event", "time", "kind", "stage", "rounds", "ends"}
    ] * len(full)


def changed(served: Served, looks: Any, role: str = "operator", **others: Any) -> Any:
    body = {"looks": looks, "reason": "more sites", "by": "the sponsor", **others}
    return served.client.post("/v1/plan", json=body, headers=served.headers(role))


def test_a_plan_is_changed_by_operators_alone_and_blindly(path: Path) -> None:
    options: dict[str, Any] = {"arms": ["A", "B"], "treatment": "B", "control": "A", "looks": LOOKS}
    plan = ai.Plan(ai.designs.Uniform(), **options)
    for served in serving(ai.Trial.create(path, plan, horizon=100)):
        assert code(changed(served, [30, 60], "statistician"), 403) == "forbidden"
        assert changed(served, [30, 60]).json() == {"looks": [30.0, 60.0]}
        assert served.get("/v1/looks").json()["next"] == 30
        for looks, told in (([60, 30], "plan-unfit"), ([30, 101], "plan-unfit"), ([], "invalid-body")):
            assert code(changed(served, looks, blinded=True), 422) == told
        enrol(served, 30, good="neither")
        assert code(changed(served, [40, 60]), 409) == "look-due"
        look(served)
        assert code(changed(served, [30, 80]), 409) == "not-blind"
        assert code(changed(served, [40, 80], blinded=True), 422) == "plan-unfit"
        rows = served.trial.status().rows
        assert changed(served, [30, 80], blinded=True).json() == {"looks": [30.0, 80.0]}
        act = served.trial.history()[-1]
        assert (act.kind, act.looks, act.by) == ("amend_plan", [30, 80], "the sponsor")
        told = {role: served.get(f"/v1/events?after={rows}", role).json()["events"][0] for role in ROLES}
        assert [told[role].get("reason") for role in ROLES] == [None, "more sites", "more sites"]
        assert {told[role]["kind"] for role in ROLES} == {"amend_plan"}
        enrol(served, 80)
        look(served)
        assert code(changed(served, [30, 80, 90], blinded=True), 409) == "plan-ended"
        served.trial.finish()
        assert code(changed(served, [30, 80, 90], blinded=True), 409) == "finished"
        assert served.trial.verify().rounds == 80
    by_rank = ai.Plan(ai.designs.Uniform(), **options, law="rerandomization", replays=19)
    for served in serving(ai.Trial.create(path.with_name("ranks.db"), by_rank)):
        assert code(changed(served, [30, 40]), 409) == "plan-fixed"


def test_looks_that_are_late_are_taken_in_order_and_stop_at_the_first_that_waits(planned: Served) -> None:
    enrol(planned, 39, good="neither")
    planned.assign({"unit": "p40"}, "a40")
    assert [one["stage"] for one in look(planned).json()["looks"]] == [1]
    assert code(look(planned), 409) == "outcomes-pending"
    planned.record({"decision": 40, "reward": 0.0}, "r40")
    told = look(planned).json()
    assert ([one["stage"] for one in told["looks"]], told["next"]) == ([2], None)
    assert planned.trial.verify().rows == planned.trial.status().rows


def test_arms_dropped_at_a_look_leave_their_rows(path: Path) -> None:
    plan = ai.Plan(
        ai.designs.Uniform(),
        arms=["A", "B", "C"],
        treatment=["B", "C"],
        control="A",
        looks=[60, 400],
        drop=-0.5,
        sides=1,
        alpha=0.025,
        least=0,
    )
    for served in serving(ai.Trial.create(path, plan)):
        enrol(served, 60, good="AC")
        told = look(served).json()["looks"]
        assert told[0]["dropped"] == ["B"]
        assert served.get("/v1/allocation", "statistician").json()["removed"] == ["B"]
        kinds = [one["kind"] for one in served.get("/v1/events?after=127").json()["events"]]
        assert kinds == ["look", "other"]
        kinds = [one["kind"] for one in served.get("/v1/events?after=127", "operator").json()["events"]]
        assert kinds == ["look", "remove_arm"]
        assert served.trial.verify().rounds == 60


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Looks that are computed only when they may, and how many were."""
    whole, found = ai.Plan.look, SimpleNamespace(begun=threading.Event(), go=threading.Event(), computed=0)

    def looked(plan: ai.Plan, *given: Any) -> Any:
        found.begun.set()
        assert found.go.wait(60.0)
        found.computed += 1
        return whole(plan, *given)

    monkeypatch.setattr(ai.Plan, "look", looked)
    yield found
    found.go.set()


@pytest.mark.parametrize(
    "law", ["z", *(pytest.param(one, marks=pytest.mark.slow) for one in ("rerandomization", "exact"))]
)
def test_participants_do_not_wait_for_a_look(path: Path, held: Any, law: str) -> None:
    plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=LOOKS, law=law)
    for served in serving(ai.Trial.create(path, plan)):
        enrol(served, 20)
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(look, served)
            assert held.begun.wait(60.0)
            assert served.assign({"unit": "p21"}, "a21").json()["id"] == 21
            held.go.set()
            (taken,) = taking.result().json()["looks"]
        assert (taken["stage"], held.computed) == (1, 1)
        events = served.get("/v1/events?after=47").json()["events"]
        assert [one["kind"] for one in events] == ["assign", "look"]
        assert served.trial.verify().pending == 1


def test_a_look_is_computed_again_if_an_outcome_was_corrected_meanwhile(path: Path, held: Any) -> None:
    plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=LOOKS, least=2)
    for planned in serving(ai.Trial.create(path, plan)):
        corrected_meanwhile(planned, held)


def corrected_meanwhile(planned: Served, held: Any) -> None:
    enrol(planned, 20, good="AB")
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(look, planned)
        assert held.begun.wait(60.0)
        wrong = {"decision": 1, "reason": "misread", "by": "Dr. Ames"}
        reward = 1.0 - planned.trial.log("drop").arrays.recorded[0]
        headers = planned.headers("recorder", "m")
        body = {**wrong, "reward": reward}
        assert planned.client.post("/v1/amendments", json=body, headers=headers).status_code == 200
        held.go.set()
        (taken,) = taking.result().json()["looks"]
    assert held.computed == 2
    log = planned.trial.log("drop")
    assert taken["statistic"] == ai.Plan.of(log).look(log, 1).statistic
    assert planned.trial.verify().rounds == 20
