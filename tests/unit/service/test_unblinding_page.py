"""The page that reveals an arm, and that of kits: one answer, one row, and nothing by arm for others."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from served import Served, serving
from visitors import form_of, get, sign_in, tables_of

import adaptinf as ai
from adaptinf.claims.reports import trial_pages as claims
from adaptinf.service.problems import PROBLEMS
from adaptinf.service.roles import ROLES
from adaptinf.trial import kit_codes

ARMS, SITES, EACH = ["zebra<b>", "quagga"], ["Basel", "Bern"], 9


@pytest.fixture
def supplied(path: Path) -> Iterator[Served]:
    """A blinded trial with two sites, their kits, and seven participants of Basel, one named by a number."""
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=90, blinded=True)
    for number, site in enumerate(SITES):
        trial.add_site(site, key=f"site {site}", by="the office")
        trial.add_kits(site, kit_codes(dict.fromkeys(ARMS, EACH), rng=number), key=f"kits {site}", by="p")
    for number in range(7):
        trial.assign("p" + str(number) if number else 77, key=f"k{number}", site="Basel")
    yield from serving(trial)


@pytest.fixture
def plain(path: Path) -> Iterator[Served]:
    """A trial without kits, whose only participant is named by a number."""
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=90)
    trial.assign(77, key="k")
    yield from serving(trial)


def reveal(client: Any, form: str | None = None, **fields: str) -> Any:
    secret = form_of(get(client, "/page/unblinding").text) if form is None else form
    said = {"unit": "p3", "site": "Basel", "reason": "a seizure", "by": "the ward", "confirm": "yes"}
    values = {name: value for name, value in {**said, **fields}.items() if value != "-"}
    return client.post("/page/unblinding", data={"form": secret, **values}, follow_redirects=False)


def rows(served: Served) -> int:
    return int(served.trial.status().rows)


def test_an_arm_is_revealed_once(supplied: Served) -> None:
    client, before = sign_in(supplied, "unblinder"), rows(supplied)
    form = form_of(get(client, "/page/unblinding").text)
    answer = reveal(client, form)
    arm = supplied.trial.log("drop").frame["action"][3]
    other = next(one for one in ARMS if one != arm)
    shown = unescape(answer.text)
    assert answer.status_code == 200
    assert f"<dt>Arm</dt><dd><strong>{arm}</strong></dd>" in shown
    assert other not in shown
    assert "<dt>Decision</dt><dd>4</dd>" in shown
    assert supplied.trial.kits().query("decision == 4")["kit"].item() in shown
    assert answer.headers["cache-control"] == "no-store"
    done = supplied.trial.history()[-1]
    assert (done.kind, done.reason, done.by, rows(supplied)) == (
        "unblind",
        "a seizure",
        "the ward",
        before + 1,
    )
    again = reveal(client, form)  # As a browser does when the answer is loaded again.
    assert (again.status_code, rows(supplied)) == (403, before + 1)
    assert not [one for one in ARMS if one in unescape(again.text)]
    assert not [one for one in ARMS if one in unescape(get(client, "/page/unblinding").text)]
    assert reveal(client, form_of(answer.text), unit="p4").status_code == 200
    assert supplied.trial.verify().rounds == 7


@pytest.mark.parametrize(
    ("fields", "status", "told"),
    [
        ({"confirm": "-"}, 422, claims.NOT_CONFIRMED()),
        ({"confirm": "no"}, 422, claims.NOT_CONFIRMED()),
        ({"reason": " "}, 422, "reason must be a string of at most 1,000 characters"),
        ({"by": "-"}, 422, "by must be a string of at most 1,000 characters"),
        ({"unit": "p9"}, 404, claims.NO_SUCH_UNIT()),
        ({"site": "Bern"}, 404, claims.NO_SUCH_UNIT()),
        ({"site": ""}, 404, claims.NO_SUCH_UNIT()),
        ({"unit": "p5"}, 410, PROBLEMS["erased"][1]),
    ],
)
def test_a_mistake_reveals_nothing(supplied: Served, fields: dict[str, str], status: int, told: str) -> None:
    supplied.trial.erase("Basel/p5", key="e", reason="a request", by="the office")
    client, before = sign_in(supplied, "unblinder"), rows(supplied)
    answer = (
        reveal(client, by="<i>me</i>", **{"reason": "why", **fields})
        if "by" not in fields
        else reveal(client, **fields)
    )
    assert (answer.status_code, rows(supplied)) == (status, before)
    assert told in unescape(answer.text)
    assert "Nothing was revealed:" in answer.text
    assert "<i>me" not in answer.text
    assert not [one for one in ARMS if one in unescape(answer.text)]
    assert reveal(client, form_of(answer.text)).status_code == 200  # What was written can be corrected.


def test_a_participant_named_by_a_number(plain: Served) -> None:
    client = sign_in(plain, "unblinder")
    assert "select" not in get(client, "/page/unblinding").text
    answer = reveal(client, unit="77", site="")
    assert plain.trial.log("drop").frame["action"][0] in unescape(answer.text)
    assert plain.trial.history()[-1].kind == "unblind"


def test_the_number_77_of_a_site_has_the_same_name_as_the_text(supplied: Served) -> None:
    assert "<dt>Decision</dt><dd>1</dd>" in reveal(sign_in(supplied, "unblinder"), unit="77").text


@pytest.mark.parametrize("role", [role for role in ROLES if role != "unblinder"])
def test_nobody_else_reveals(supplied: Served, role: str) -> None:
    client, before = sign_in(supplied, role), rows(supplied)
    form = form_of(get(client, "/page").text)
    assert reveal(client, form).status_code == 403
    supplied.client.cookies.clear()
    assert reveal(client, form).headers["location"] == "/page/sign-in"
    assert rows(supplied) == before


def test_stock_by_role(supplied: Served) -> None:
    taken = supplied.trial.log("drop").frame["action"].value_counts()
    for role in ("statistician", "unblinder"):
        text = get(sign_in(supplied, role), "/page/stock").text
        (found,) = tables_of(text)
        assert list(found.columns) == ["site", "arm", "in stock", "given", "retired"]
        here = found[found["site"] == "Basel"].set_index("arm")
        assert here["given"].astype(int).to_dict() == {arm: int(taken.get(arm, 0)) for arm in ARMS}
        assert here["in stock"].astype(int).to_dict() == {arm: EACH - int(taken.get(arm, 0)) for arm in ARMS}
        assert claims.STOCK_BY_ARM() in text
    for role, more in (("monitor", []), ("operator", ["low"])):
        text = get(sign_in(supplied, role), "/page/stock").text
        (found,) = tables_of(text)
        assert list(found.columns) == ["site", "in stock", "given", "retired", *more]
        cells = [["Basel", "11", "7", "0"], ["Bern", "18", "0", "0"]]
        low = "yes" if EACH - taken.max() < 5 else "no"
        ends = [[low], ["no"]] if more else [[], []]
        assert found.to_numpy().tolist() == [a + b for a, b in zip(cells, ends, strict=True)]
        assert not [one for one in ARMS if one in unescape(text)]


def test_pages_of_stock_are_equal_whichever_arm_was_given(tmp_path: Path) -> None:
    """Trials that differ in the arms of their participants: only those who see arms can tell them apart."""
    seen: dict[tuple[str, ...], dict[str, str]] = {}
    while len(seen) < 2:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=90, blinded=True)
        trial.add_site("Basel", key="s", by="a")
        trial.add_kits("Basel", kit_codes(dict.fromkeys(ARMS, EACH), rng=1), key="k", by="a")
        for number in range(3):
            trial.assign(f"p{number}", key=f"a{number}", site="Basel")
        for one in serving(trial):
            texts = {}
            for role in ("monitor", "operator", "statistician"):
                text = get(sign_in(one, role), "/page/stock").text
                texts[role] = text.replace(form_of(text), "FORM")
            seen[tuple(sorted(trial.log("drop").frame["action"]))] = texts
    first, second = seen.values()
    assert (first["monitor"], first["operator"]) == (second["monitor"], second["operator"])
    assert first["statistician"] != second["statistician"]


def test_a_trial_without_kits_says_so(plain: Served) -> None:
    for role in ("monitor", "unblinder"):
        assert claims.NO_KITS() in get(sign_in(plain, role), "/page/stock").text


def test_a_trial_without_sites_says_so(path: Path) -> None:
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=9, blinded=True)
    for served in serving(trial):
        assert claims.NO_SITES() in get(sign_in(served, "monitor"), "/page/stock").text
