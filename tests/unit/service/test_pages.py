"""Pages: every role at every page, what no page may show, and the numbers that each has to show."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from served import Served, serving
from visitors import form_of, get, sign_in, tables_of

import adaptinf as ai
from adaptinf.claims.reports import trial_pages as claims
from adaptinf.service.pages import contents, reading, views
from adaptinf.service.roles import ROLES
from adaptinf.sessions.session_memory import first_rounds
from adaptinf.trial import requests

ARMS = ["zebra<b>bold</b>", "quagga"]
NAME = "<script>alert(1)</script>'; DROP TABLE journal; --"
LOOK = "/page/pictures/{}-{}.svg"
EXPECTED: dict[str, set[str]] = {
    "/page": set(ROLES),
    "/page/outcomes": {"recorder", "monitor", "statistician", "operator"},
    "/page/allocation": {"statistician", "unblinder"},
    "/page/checks": {"statistician"},
    "/page/looks": {"statistician"},
    "/page/results": {"statistician"},
    "/page/stock": {"monitor", "statistician", "operator", "unblinder"},
    "/page/unblinding": {"unblinder"},
    "/page/downloads": set(ROLES),
    "/page/operator": {"operator"},
    "/page/files/head.json": set(ROLES),
    "/page/files/declaration.json": {"operator", "statistician"},
    "/page/files/log.csv": {"statistician"},
    "/page/files/log.parquet": {"statistician"},
    "/page/files/public.parquet": {"statistician"},
    "/page/files/report.html": {"statistician"},
    **{LOOK.format("enrolment", theme): set(ROLES) for theme in ("light", "dark")},
    **{LOOK.format("allocation", theme): {"statistician", "unblinder"} for theme in ("light", "dark")},
    **{LOOK.format("sequence", theme): {"statistician"} for theme in ("light", "dark")},
}
OPEN = {"/", "/page/sign-in", "/page/sign-out", "/page/style.css", "/page/icon.svg"}
NOT_PRIVATE = "/page/files/public.parquet"
"""Of the trial below, which has no privacy guarantee."""


def filled(path: Path) -> ai.Trial:
    """A trial of 60, in which the outcomes of 40, 48 and 56 are pending, and the arm of one was revealed."""
    rng = np.random.default_rng(5)
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=80)
    for number in range(60):
        made = trial.assign(f"{NAME} {number}", key=f"a{number}")
        if number < 40 or number % 8:
            trial.record(made.id, float(rng.random() < 0.5 + 0.2 * (made.arm == "quagga")), key=f"r{number}")
    trial.unblind(f"{NAME} 3", reason=f"{ARMS[0]} was suspected", by="a")
    return trial


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    before = os.umask(0o077)
    yield from serving(filled(tmp_path_factory.mktemp("pages") / "trial.db"))
    os.umask(before)


def test_the_tables_are_what_was_decided() -> None:
    paths = {one.path: set(one.roles) for one in (*views.VIEWS, *views.FILES)}
    paths |= {
        views.picture_path(name, theme): set(roles)
        for name, roles in views.PICTURES
        for theme in views.THEMES
    }
    assert paths == EXPECTED
    assert set(EXPECTED) | OPEN == views.PAGES
    assert views.table().splitlines()[4] == (
        "| `/page/allocation` | participants by arm over time, and the sample ratio |  |  |  | yes |  | yes |"
    )


@pytest.mark.parametrize("role", ROLES)
def test_each_cell(shown: Served, role: str) -> None:
    client = sign_in(shown, role)
    for path, roles in EXPECTED.items():
        answer = get(client, path)
        expected = 403 if role not in roles else 404 if path == NOT_PRIVATE else 200
        assert answer.status_code == expected, path
        if expected == 403:
            assert "The role of your token does not permit this page." in answer.text
    links = [view.path for view in views.VIEWS if role in EXPECTED[view.path]]
    text = get(client, "/page").text
    assert [one.path for one in views.VIEWS if f'<li><a href="{one.path}"' in text] == links
    files = [one.path for one in views.FILES if role in EXPECTED[one.path]]
    assert [
        one.path for one in views.FILES if f'<a href="{one.path}"' in get(client, "/page/downloads").text
    ] == files


@pytest.mark.parametrize("path", EXPECTED)
def test_signed_out_everything_leads_to_the_form(shown: Served, path: str) -> None:
    shown.client.cookies.clear()
    for cookies in ({}, {"adaptinf": "wrong"}, {"adaptinf": ""}, {"adaptinf": shown.tokens["statistician"]}):
        header = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        answer = shown.client.get(path, headers=header, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/page/sign-in")
        assert answer.content == b""
    bearer = shown.headers("statistician")
    assert shown.client.get(path, headers=bearer, follow_redirects=False).status_code == 303


def test_every_answer_keeps_the_page_to_itself(shown: Served) -> None:
    client = sign_in(shown, "statistician")
    for path in (*EXPECTED, *OPEN, "/page/nothing"):
        answer = get(client, path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'")
        assert policy.endswith("base-uri 'none'; frame-ancestors 'none'")
        assert "unsafe" not in policy
        found = [
            answer.headers[name] for name in ("cache-control", "x-content-type-options", "x-frame-options")
        ]
        assert found == ["no-store", "nosniff", "DENY"]
        if answer.headers["content-type"].startswith("text/html") and "/files/" not in path:
            assert "<style" not in answer.text
            assert " style=" not in answer.text
            assert "<script" not in answer.text
            assert "://" not in answer.text


def test_problems_are_pages(shown: Served) -> None:
    client = sign_in(shown, "monitor")
    answer = get(client, "/page/nothing")
    assert (answer.status_code, "There is nothing at this address." in answer.text) == (404, True)
    answer = client.put("/page")
    assert (answer.status_code, "does not accept this method" in answer.text) == (405, True)
    shown.client.cookies.clear()
    assert get(shown.client, "/page/nothing").status_code == 404
    assert get(shown.client, "/").headers["location"] == "/page"
    assert shown.client.get("/pages").json()["code"] == "not-found"


@pytest.mark.parametrize("role", ["monitor", "recorder", "assigner", "operator"])
def test_nothing_by_arm_is_shown_to_those_who_must_not_know(shown: Served, role: str) -> None:
    client = sign_in(shown, role)
    seen = [path for path, roles in EXPECTED.items() if role in roles]
    if role == "operator":  # The declaration names the arms, and nothing that happened to them.
        seen.remove("/page/files/declaration.json")
    text = "".join(get(client, path).text for path in seen)
    for secret in ("zebra", "quagga", "alert(1)", "suspected", "propensit"):
        assert secret not in text
    assert "60 of 80 participants have been assigned; the trial is open." in text


def test_two_trials_that_differ_only_in_arms_look_the_same(tmp_path: Path) -> None:
    """A monitor's pages are the same bytes, whichever arm leads, but for times, digests and secrets."""

    def pages_of(name: str, arm: str) -> list[str]:
        texts: list[str] = []
        trial = ai.Trial.create(tmp_path / name, ai.designs.Thompson(floor=0.1), ARMS, horizon=40)
        for number in range(30):
            made = trial.assign(number, key=f"a{number}")
            if number % 5:
                trial.record(made.id, float(made.arm == arm), key=f"r{number}")
        for served in serving(trial):
            client, head = sign_in(served, "monitor"), trial.status().head
            paths = [path for path, roles in EXPECTED.items() if "monitor" in roles]
            texts = [get(client, path).text for path in paths if not path.endswith("head.json")]
        form = form_of("".join(texts))
        return [text.replace(form, "").replace(head, "") for text in texts]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "now", lambda: "2026-11-01T12:00:00.000+00:00")
        patch.setattr(contents.time, "time", lambda: 1_800_000_000.0)
        one, other = (pages_of(f"{at}.db", arm) for at, arm in enumerate(ARMS))
    assert len(one) == 6
    assert one == other


def test_names_are_escaped(shown: Served) -> None:
    client = sign_in(shown, "statistician")
    outcomes = get(client, "/page/outcomes").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&#x27;; DROP TABLE journal; -- 40" in outcomes
    for path in ("/page/allocation", "/page/checks", "/page/results"):
        text = get(client, path).text
        assert "zebra&lt;b&gt;bold&lt;/b&gt;" in text
        assert "<b>" not in text
    for theme in views.THEMES:
        for name in ("allocation", "sequence"):
            assert "<b>" not in get(client, LOOK.format(name, theme)).text
    assert shown.trial.verify().rounds == 60


def test_outcomes(shown: Served) -> None:
    text = get(sign_in(shown, "recorder"), "/page/outcomes").text
    assert "57 of 60 outcomes are recorded; 3 are pending." in text
    assert '<th scope="row">less than a day</th><td class="number">3</td>' in text
    assert claims.NO_WINDOW() in text
    rows = tables_of(text)[1]
    assert rows["decision"].tolist() == ["41", "49", "57"]
    assert rows["overdue"].tolist() == ["no"] * 3
    assert "participant" not in rows
    assert "participant" in tables_of(get(sign_in(shown, "statistician"), "/page/outcomes").text)[1]


def test_allocation(shown: Served) -> None:
    log = shown.trial.log("drop")
    rows = tables_of(get(sign_in(shown, "unblinder"), "/page/allocation").text)
    assert rows[0]["arm"].tolist() == ARMS
    assert rows[0]["participants"].astype(int).tolist() == log._rounds_by_arm().tolist()
    propensities = log.arrays.propensities
    assert propensities is not None
    np.testing.assert_allclose(rows[0]["expected"].astype(float), propensities.sum(axis=0), atol=0.05)
    found = {one.name: one.verdict for one in ai.diagnose(log).checks if one.name.startswith("sample ratio")}
    assert (
        dict(zip(rows[1]["check"], rows[1]["finding"], strict=True))
        == found
        == {
            "sample ratio": "no evidence against",
            "sample ratio, anytime": "no evidence against",
        }
    )


def test_checks(shown: Served) -> None:
    found = ai.diagnose(shown.trial.log("drop"))
    text = get(sign_in(shown, "statistician"), "/page/checks").text
    assert f"Checks that raised a concern: {len(found.concerns)} of {len(found.checks)}." in text


def test_results(shown: Served) -> None:
    text = get(sign_in(shown, "statistician"), "/page/results").text
    log = shown.trial.log("drop")
    fitted = ai.recommend(log).fit()
    tables = tables_of(text)
    np.testing.assert_allclose(tables[0]["coef"].astype(float), fitted.params, atol=5e-5)
    assert claims.ONE_LOOK() in text
    assert claims.PENDING(pending=3) in text
    assert claims.PREFIX(rounds=40) in text
    sequence = ai.ConfidenceSequence(first_rounds(log, 40)).fit()
    for name, column in (("low", "[0.025"), ("high", "0.975]")):
        np.testing.assert_allclose(tables[-1][column].astype(float), sequence.conf_int()[name], atol=5e-5)


def test_the_first_rounds_are_those_of_the_log(shown: Served) -> None:
    log = shown.trial.log("drop")
    part = first_rounds(log, 25)
    assert (part.n_rounds, part.stopping, part.missing) == (25, "data-chosen", None)
    for name in ("action", "recorded", "propensity", "propensities"):
        np.testing.assert_array_equal(getattr(part.arrays, name), getattr(log.arrays, name)[:25])
    assert first_rounds(log, 60).n_rounds == 60
    assert first_rounds(log, 41).missing == "drop"


def test_downloads(shown: Served, tmp_path: Path) -> None:
    client = sign_in(shown, "statistician")
    status = shown.trial.status()
    told = get(client, "/page/files/head.json").json()
    assert (told["rows"], told["head"]) == (status.rows, status.head)
    assert shown.trial.verify(told["head"]).rounds == 60
    stated = get(client, "/page/files/declaration.json").json()
    assert (stated["design"], stated["arms"], stated["horizon"]) == ("Thompson", ARMS, 80)
    assert not {"seed", "place", "own", "format"} & set(stated)
    answer = get(client, "/page/files/log.parquet")
    assert answer.headers["content-disposition"] == 'attachment; filename="log.parquet"'
    (tmp_path / "log.parquet").write_bytes(answer.content)
    log = shown.trial.log("drop")
    pd.testing.assert_frame_equal(ai.read_log(tmp_path / "log.parquet").frame, log.frame)
    frame = pd.read_csv(io.StringIO(get(client, "/page/files/log.csv").text))
    assert frame["reward"].sum() == log.frame["reward"].sum()
    assert "<h1>Report of a running trial</h1>" in get(client, "/page/files/report.html").text
    assert "no privacy guarantee, so none of it is covered" in get(client, NOT_PRIVATE).text


def test_times_are_read_in_parts_and_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_ROWS", 7)
    first = datetime(2026, 11, 1, tzinfo=UTC)
    count = iter(range(10_000))
    monkeypatch.setattr(
        requests, "now", lambda: (first + timedelta(hours=next(count))).isoformat(timespec="milliseconds")
    )
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=80)
    for number in range(10):
        trial.assign(number, key=f"a{number}")
        trial.record(number + 1, 1.0, key=f"r{number}")
    for served in serving(trial):
        client = sign_in(served, "monitor")
        assert "2026-11-01 19:00 UTC" in get(client, "/page").text
        served.assign({"unit": 99}, "k")
        told = served.trial.history()[-1].time
        last = datetime.fromisoformat(told) + timedelta(hours=1)
        text = get(client, "/page").text
        assert f"<dd>{last:%Y-%m-%d %H:%M} UTC</dd>" in text
        assert "11 of 80 participants have been assigned" in text


def test_times_of_a_trial_with_a_key(path: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=80, key_file=key)
    trial.assign(1, key="a")
    for served in serving(trial):
        answer = get(sign_in(served, "monitor"), "/page")
        assert (answer.status_code, "<dd>1 participant</dd>" in answer.text) == (200, True)


def private_trial(path: Path) -> ai.Trial:
    design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.1)
    trial = ai.Trial.create(path, design, ARMS, horizon=40, outcome_window=5)
    for number in range(20):
        made = trial.assign(number, key=f"a{number}")
        if number not in (13, 14):
            trial.record(made.id, 1.0, key=f"r{number}")
    return trial


def test_a_private_trial(path: Path, tmp_path: Path) -> None:
    for served in serving(private_trial(path)):
        client = sign_in(served, "monitor")
        assert (
            "<dt>Guarantee</dt><dd>epsilon = 1, pure, per reward, central, standard</dd>"
            in get(client, "/page").text
        )
        text = get(client, "/page/outcomes").text
        assert "1 outcome is overdue." in text
        assert claims.WINDOW(window=5) in text
        rows = tables_of(text)[1]
        assert dict(zip(rows["decision"], rows["overdue"], strict=True)) == {"14": "yes", "15": "no"}
        client = sign_in(served, "statistician")
        overdue = [served.record({"decision": one, "reward": 1.0}, f"late {one}") for one in (14, 15)]
        assert [one.json()["in_time"] for one in overdue] == [False, True]
        for page in ("checks", "results"):
            text = get(client, f"/page/{page}").text
            assert claims.UNCOVERED() in text
        (tmp_path / "public.parquet").write_bytes(get(client, NOT_PRIVATE).content)
        assert ai.read_log(tmp_path / "public.parquet").n_rounds == 20


def test_a_guarantee_that_was_withdrawn(path: Path) -> None:
    trial = private_trial(path)
    trial.finish("the sponsor ended it", by="a")
    for served in serving(trial):
        assert claims.NOT_PROMISED() in get(sign_in(served, "monitor"), "/page").text


def test_a_trial_without_participants(path: Path) -> None:
    for served in serving(ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ARMS, horizon=80)):
        client = sign_in(served, "statistician")
        for page in ("outcomes", "allocation", "checks", "results"):
            assert claims.NOBODY() in get(client, f"/page/{page}").text
        assert claims.NO_PLAN() in get(client, "/page/looks").text
        assert "0 of 80 participants" in get(client, "/page").text
        for name, theme in product(("enrolment", "allocation", "sequence"), views.THEMES):
            assert get(client, LOOK.format(name, theme)).status_code == 404
        assert get(client, "/page/files/log.csv").status_code == 404


def test_a_trial_with_a_plan(path: Path) -> None:
    plan = ai.Plan(
        ai.designs.Uniform(), arms=ARMS, treatment="quagga", control=ARMS[0], looks=[200, 250, 300]
    )
    trial = ai.Trial.create(path, plan)
    for number in range(250):
        made = trial.assign(number, key=f"a{number}")
        trial.record(made.id, float(number % 3 == 0), key=f"r{number}")
        if number == 220:
            look = trial.look()
    for served in serving(trial):
        client = sign_in(served, "statistician")
        text = get(client, "/page/looks").text
        taken, planned = tables_of(text)
        assert claims.LOOK_DUE() in text
        assert taken["participants"].tolist() == ["200"]
        np.testing.assert_allclose(taken["statistic"].astype(float), look.statistic, atol=5e-4)
        assert planned["state"].tolist() == ["taken", "reached", "planned"]
        assert claims.PLAN_GOES_ON() in get(client, "/page/results").text
        text = get(sign_in(served, "monitor"), "/page").text
        assert tables_of(text)[0]["state"].tolist() == ["taken", "reached", "planned"]
        assert "continue" not in text


def test_the_access_log_has_the_token_and_no_names(shown: Served) -> None:
    client = sign_in(shown, "recorder")
    get(client, "/page/outcomes")
    get(client, "/page/zebra")
    one, other = map(json.loads, shown.log[-2:])
    number = {token.role: token.id for token in shown.trial.tokens()}["recorder"]
    assert (one["path"], one["status"], one["token"]) == ("/page/outcomes", 200, number)
    assert (other["path"], other["status"], other["token"]) == (None, 404, None)
    assert "zebra" not in "".join(shown.log)


def test_pages_without_matplotlib(shown: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.service.pages import parts

    monkeypatch.setattr(parts, "find_spec", lambda name: None)
    text = get(sign_in(shown, "monitor"), "/page").text
    assert "<img" not in text
    assert claims.NO_PICTURE() in text


def test_errors_of_the_library_are_not_quoted(shown: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("zebra")

    client = sign_in(shown, "monitor")
    monkeypatch.setattr(contents, "overview", broken)
    answer = get(client, "/page")
    assert answer.status_code == 500
    assert "The page could not be created." in answer.text
    assert "zebra" not in answer.text
