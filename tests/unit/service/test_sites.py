"""Kits over HTTP, and tokens of one site: what is elsewhere does not exist for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from served import Served, serving

import adaptinf as ai
from adaptinf.service.problems import PROBLEMS
from adaptinf.service.roles import CALLS, ROLES
from adaptinf.trial import kit_codes
from adaptinf.trial.served_rows import SITED

SITES = ["Basel", "Bern"]
SECRET = ("drug", "sham")


@pytest.fixture
def sites(path: Path) -> Iterator[Served]:
    """A blinded trial with two sites, kits, tokens of each role, and tokens of each site."""
    design = ai.designs.Thompson(floor=0.1)
    trial = ai.Trial.create(path, design, list(SECRET), horizon=90, blinded=True)
    for one in serving(trial):
        for number, site in enumerate(SITES):
            trial.add_site(site, key=f"site {site}", by="the office")
            codes = kit_codes(dict.fromkeys(SECRET, 9), rng=number)
            trial.add_kits(site, codes, key=f"kits {site}", by="the pharmacy")
            one.tokens |= {f"{role}@{site}": trial.add_token(role, site=site).text for role in SITED}
        yield one


def code(response: Any, status: int) -> str:
    assert response.status_code == status, response.text
    problem = response.json()
    assert problem["title"] == PROBLEMS[problem["code"]][1]
    return str(problem["code"])


def test_an_assignment_is_a_kit_and_no_arm(sites: Served) -> None:
    first = sites.assign({"unit": "7", "site": "Basel"}, "k1")
    assert first.status_code == 200
    told = first.json()
    assert list(told) == ["id", "kit", "round"]
    assert (told["id"], told["round"], len(told["kit"])) == (1, 1, 6)
    here = sites.assign({"unit": "7"}, "k1", "assigner@Bern").json()
    assert here["id"] == 2
    assert not [arm for arm in SECRET if arm in first.text]
    assert sites.assign({"unit": "7", "site": "Basel"}, "k1").json() == told
    revealed = sites.client.post(
        "/v1/unblindings",
        json={"unit": "7", "site": "Basel", "reason": "a seizure", "by": "the ward"},
        headers=sites.headers("unblinder"),
    ).json()
    assert revealed == {**told, "arm": sites.trial.log("drop").frame["action"][0]}
    assert (
        sites.client.post(
            "/v1/unblindings",
            json={"unit": "Bern/7", "reason": "a seizure", "by": "the ward"},
            headers=sites.headers("unblinder"),
        ).json()["id"]
        == 2
    )
    batch = sites.assign([{"unit": n, "site": "Basel"} for n in range(3)] + [{"unit": "x"}], "many").json()
    assert [sorted(one)[:2] for one in batch[:3]] == [["id", "kit"]] * 3
    assert batch[3]["code"] == "does-not-fit"
    assert sites.trial.verify().rounds == 5


def test_units_and_keys_belong_to_the_site_of_the_token(sites: Served) -> None:
    """Attack: an assigner of another site named a participant under a new key, and was told the arm."""
    basel = sites.assign({"unit": "p1"}, "visit 1", "assigner@Basel").json()
    bern = sites.assign({"unit": "p1"}, "visit 1", "assigner@Bern").json()
    assert (basel["id"], bern["id"]) == (1, 2)
    assert basel["kit"] != bern["kit"]
    assert code(sites.assign({"unit": "p1", "site": "Basel"}, "v", "assigner@Bern"), 403) == "other-site"
    assert code(sites.assign({"unit": "p1", "site": "none"}, "v", "assigner@Bern"), 403) == "other-site"
    # The full name of a unit of Basel is a new unit in Bern.
    again = sites.assign({"unit": "Basel/p1"}, "visit 2", "assigner@Bern").json()
    assert again["id"] == 3
    assert sites.trial.log("drop").units.tolist() == ["Basel/p1", "Bern/p1", "Bern/Basel/p1"]
    assert code(sites.assign({"unit": "p1", "site": "Genf"}, "v"), 422) == "does-not-fit"


@pytest.mark.parametrize("state", ["open", "erased", "finished"])
def test_a_decision_of_another_site_does_not_exist(sites: Served, state: str) -> None:
    """The answer is the same, to the byte, as for an id that no decision has."""
    sites.assign({"unit": "p1"}, "a", "assigner@Basel")
    sites.assign({"unit": "p2"}, "b", "assigner@Basel")
    sites.record({"decision": 2, "reward": 1.0}, "r2", "recorder@Basel")
    if state == "erased":
        sites.trial.erase("Basel/p1", key="e", reason="a request", by="the office")
    elif state == "finished":
        sites.trial.finish("all are in")
    rows = sites.trial.status().rows
    for key in ("r2", "new", "a"):
        bodies = [{"decision": number, "reward": 0.0} for number in (1, 2, 77)]
        answers = [sites.record(body, key, "recorder@Bern") for body in bodies]
        assert len({(one.status_code, one.text) for one in answers}) == 1
        expected = (409, "finished") if state == "finished" else (404, "unknown-decision")
        assert (answers[0].status_code, answers[0].json()["code"]) == expected
    for unit in ("p1", "p2", "p9"):
        answer = sites.client.post(
            "/v1/unblindings",
            json={"unit": unit, "reason": "a", "by": "b"},
            headers=sites.headers("unblinder@Bern"),
        )
        assert code(answer, 404) == "unknown-unit"
    assert sites.trial.status().rows == rows
    if state == "open":
        assert sites.record({"decision": 1, "reward": 0.0}, "r1", "recorder@Basel").status_code == 200


def test_counts_are_those_of_the_site(sites: Served) -> None:
    for number in range(5):
        site = "Bern" if number == 4 else "Basel"
        sites.assign({"unit": f"p{number}"}, "k" + str(number), f"assigner@{site}")
    sites.record({"decision": 1, "reward": 1.0}, "r", "recorder@Basel")
    sites.trial.erase("Basel/p2", key="e", reason="a request", by="the office")
    told = sites.get("/v1/status", "monitor@Basel").json()
    assert told == {"site": "Basel", "state": "open", "rounds": 4, "pending": 2, "erased": 1}
    told = sites.get("/v1/status", "monitor@Bern").json()
    assert told == {"site": "Bern", "state": "open", "rounds": 1, "pending": 1, "erased": 0}
    text = sites.get("/metrics", "monitor@Bern").text
    assert "adaptinf_trial_rounds 1.0" in text
    assert "adaptinf_trial_rows" not in text
    arms = sites.get("/v1/allocation", "unblinder@Bern").json()["arms"]
    assert sum(one["assigned"] for one in arms) == 1
    assert sum(one["assigned"] for one in sites.get("/v1/allocation", "unblinder").json()["arms"]) == 5


def test_stock_by_role(sites: Served) -> None:
    for number in range(4):
        sites.assign({"unit": f"p{number}"}, f"k{number}", "assigner@Basel")
    bern = {"site": "Bern", "in_stock": 18, "given": 0, "retired": 0}
    basel = {"site": "Basel", "in_stock": 14, "given": 4, "retired": 0}
    assert sites.get("/v1/kits", "monitor").json() == [basel, bern]
    assert sites.get("/v1/kits", "monitor@Bern").json() == [bern]
    assert sites.get("/v1/kits", "operator").json() == [{**basel, "low": False}, {**bern, "low": False}]
    for role in ("monitor", "operator", "monitor@Basel"):
        assert not [arm for arm in SECRET if arm in sites.get("/v1/kits", role).text]
    for role in ("statistician", "unblinder"):
        rows = sites.get("/v1/kits", role).json()
        assert [(row["site"], row["arm"]) for row in rows] == list(product(SITES, SECRET))
        assert [sum(row["given"] for row in rows if row["site"] == site) for site in SITES] == [4, 0]
    log = sites.trial.log("drop").frame["action"].value_counts()
    assert {row["arm"]: row["given"] for row in rows if row["given"]} == log.to_dict()
    assert len(sites.get("/v1/kits", "unblinder@Bern").json()) == 2


def test_the_operator_adds_sites_and_kits(sites: Served) -> None:
    def post(path: str, body: Any, key: str) -> Any:
        return sites.client.post(path, json=body, headers=sites.headers("operator", key))

    site = {"site": "Genf", "by": "the office"}
    assert post("/v1/sites", site, "s3").json() == {"site": "Genf"}
    rows = sites.trial.status().rows
    assert post("/v1/sites", site, "s3").json() == {"site": "Genf"}
    assert sites.trial.status().rows == rows
    assert code(post("/v1/sites", site, "s4"), 409) == "site-exists"
    assert code(post("/v1/sites", {**site, "site": "Graz"}, "s3"), 409) == "key-reused"
    assert code(post("/v1/sites", {**site, "site": "a/b"}, "s4"), 422) == "does-not-fit"
    assert code(sites.assign({"unit": "p", "site": "Genf"}, "k"), 409) == "no-kit"
    kits = [{"kit": code, "arm": arm} for code, arm in kit_codes(dict.fromkeys(SECRET, 2), rng=9).items()]
    delivery = {"site": "Genf", "kits": kits, "by": "the pharmacy"}
    assert post("/v1/kits", delivery, "d").json() == {"site": "Genf", "kits": 4}
    assert post("/v1/kits", delivery, "d").json() == {"site": "Genf", "kits": 4}
    assert code(post("/v1/kits", delivery, "d2"), 422) == "kits-unfit"
    assert code(post("/v1/kits", {**delivery, "kits": [kits[0], kits[0]]}, "d2"), 422) == "kits-unfit"
    assert code(post("/v1/kits", {**delivery, "site": "Graz"}, "d2"), 422) == "does-not-fit"
    assert code(post("/v1/kits", {**delivery, "kits": []}, "d2"), 422) == "invalid-body"
    assert sites.assign({"unit": "p", "site": "Genf"}, "k").status_code == 200
    loss = {"reason": "broken seal", "by": "the ward"}
    free = sites.trial.kits().query("site == 'Genf' and state == 'in stock'")["kit"].iloc[0]
    used = sites.trial.kits().query("state == 'given'")["kit"].iloc[0]
    assert post("/v1/retirements", {"kit": free, **loss}, "l1").json() == {"kit": free}
    assert post("/v1/retirements", {"kit": free, **loss}, "l1").json() == {"kit": free}
    assert code(post("/v1/retirements", {"kit": free, **loss}, "l2"), 409) == "kit-used"
    assert code(post("/v1/retirements", {"kit": used, **loss}, "l2"), 409) == "kit-used"
    assert code(post("/v1/retirements", {"kit": "no such", **loss}, "l2"), 404) == "unknown-kit"
    assert sites.get("/v1/kits", "operator").json()[2]["low"] is True
    sites.trial.finish("all are in")
    assert code(post("/v1/sites", {"site": "Graz", "by": "x"}, "s5"), 409) == "finished"
    sites.trial.verify()


def test_no_kit_is_the_same_answer_whichever_arm_would_be_drawn(sites: Served) -> None:
    """Rows, coins and answers are those of a trial in which nobody asked."""
    sites.trial.add_site("Genf", key="g", by="x")
    sites.trial.add_kits("Genf", {"111111": "drug"}, key="g2", by="x")
    rows = sites.trial.status().rows
    answers = {sites.assign({"unit": f"u{n}", "site": "Genf"}, f"k{n}").text for n in range(12)}
    assert len(answers) == 1
    assert sites.trial.status().rows == rows


BODIES: dict[str, Any] = {
    "assign": {"unit": "p9"},
    "record": {"decision": 1, "reward": 1.0},
    "amend": {"decision": 1, "reward": 0.5, "reason": "a", "by": "b"},
    "amend_plan": {"looks": [10, 20], "reason": "a", "by": "b"},
    "look": None,
    "state": {"state": "paused", "reason": "a", "by": "b"},
    "unblind": {"unit": "p1", "reason": "a", "by": "b"},
    "add_site": {"site": "Genf", "by": "b"},
    "add_kits": {"site": "Basel", "kits": [{"kit": "000000", "arm": "drug"}], "by": "b"},
    "retire_kit": {"kit": "000000", "reason": "a", "by": "b"},
}
CELLS = {
    ("assigner", "assign"): (200, 200),
    ("assigner", "status"): (200, 200),
    ("recorder", "record"): (200, 404),
    ("recorder", "amend"): (409, 404),
    ("recorder", "status"): (200, 200),
    ("monitor", "status"): (200, 200),
    ("monitor", "stock"): (200, 200),
    ("unblinder", "status"): (200, 200),
    ("unblinder", "allocation"): (200, 200),
    ("unblinder", "unblind"): (200, 404),
    ("unblinder", "stock"): (200, 200),
}
"""Statuses for a token of the site of the only participant, and for one of another; otherwise 403."""


@pytest.mark.parametrize(
    ("role", "call"), list(product(SITED, CALLS)), ids=lambda one: getattr(one, "name", one)
)
def test_each_cell_for_tokens_of_a_site(sites: Served, role: str, call: Any) -> None:
    sites.assign({"unit": "p1"}, "first", "assigner@Basel")
    expected = CELLS.get((role, call.name), (403, 403))
    for site, status in zip(reversed(SITES), reversed(expected), strict=True):
        rows = sites.trial.status().rows
        headers = sites.headers(f"{role}@{site}", "k")
        if call.method == "GET":
            response = sites.client.get(call.path, headers=headers)
        else:
            response = sites.client.post(call.path, json=BODIES[call.name], headers=headers)
        assert response.status_code == status, response.text
        if status != 200:
            assert sites.trial.status().rows == rows


def test_a_call_is_closed_to_tokens_of_a_site_unless_it_says_otherwise(sites: Served) -> None:
    """Also within the transaction, where a caller of the writer states no site."""
    from adaptinf.service.roles import Call
    from adaptinf.service.writer import Writer

    by_text = {token.role: token for token in sites.trial.tokens() if token.site == "Basel"}
    call = Call("new", "GET", "/v1/new", ROLES, "something new")
    assert not call.permits(by_text["monitor"])
    assert call.permits(next(token for token in sites.trial.tokens() if token.site is None))
    assert Writer.ask.__defaults__ == (None, (), False)


def test_tokens_of_sites_are_rows(sites: Served) -> None:
    with pytest.raises(ai.errors.ParameterError, match="the role operator concerns the whole trial"):
        sites.trial.add_token("operator", site="Basel")
    with pytest.raises(ai.errors.ParameterError, match="site must be one of 'Basel', 'Bern'"):
        sites.trial.add_token("assigner", site="Genf")
    assert [token.site for token in sites.trial.tokens()] == [None] * 6 + ["Basel"] * 4 + ["Bern"] * 4
    acts = [(act.role, act.site) for act in sites.trial.history() if act.kind == "token"]
    assert acts[6:] == [(role, site) for site in SITES for role in SITED]
    sites.trial.verify()
