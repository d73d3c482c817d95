"""Signing in and out: cookies, secrets of forms, limits, and what ends a visit."""

from __future__ import annotations

from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from served import Served, serving, trial_at
from visitors import ask_to_sign_in, form_of, get, sign_in

from adaptinf.service import gate
from adaptinf.service.pages import visits
from adaptinf.service.pages.visits import Visits, same


def cookies_of(answer: Any) -> dict[str, Any]:
    """Cookies that an answer sets, by name."""
    found: dict[str, Any] = {}
    for line in answer.headers.get_list("set-cookie"):
        found.update(SimpleCookie(line))
    return found


def test_cookies_are_for_this_site_alone(served: Served) -> None:
    form = cookies_of(get(served.client, "/page/sign-in"))["adaptinf-form"]
    answer = ask_to_sign_in(served.client, served.tokens["monitor"])
    visit = cookies_of(answer)["adaptinf"]
    for one in (form, visit):
        assert len(one.value) == 43
        assert (one["httponly"], one["samesite"], one["path"]) == (True, "strict", "/")
        assert (one["max-age"], one["secure"], one["domain"]) == ("28800", "", "")
    assert cookies_of(answer)["adaptinf-form"]["max-age"] == "0"
    assert served.tokens["monitor"] not in str(answer.headers)


def test_cookies_over_tls_are_sent_over_tls_alone(path: Path) -> None:
    for served in serving(trial_at(path)):
        served.client.base_url = "https://testserver"
        answer = ask_to_sign_in(served.client, served.tokens["monitor"])
        assert set(cookies_of(answer)) == {"__Host-adaptinf", "__Host-adaptinf-form"}
        assert all(one["secure"] and one["path"] == "/" for one in cookies_of(answer).values())
        assert get(served.client, "/page").status_code == 200


def test_a_wrong_token(served: Served) -> None:
    for text in ("", "x", served.tokens["monitor"][:-1], f"{served.tokens['monitor']}x", "é" * 100):
        answer = ask_to_sign_in(served.client, text)
        assert answer.status_code == 401
        assert "This token is not valid" in answer.text
        assert "adaptinf" not in cookies_of(answer)
    assert get(served.client, "/page").headers["location"] == "/page/sign-in"
    assert ask_to_sign_in(served.client, f" {served.tokens['monitor']}\n").status_code == 303


def test_wrong_tokens_are_limited_with_those_of_the_calls(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(gate.time, "monotonic", lambda: clock[0])
    bad = {"authorization": "Bearer bad"}
    for _ in range(50):
        assert served.client.get("/v1/status", headers=bad).status_code == 401
        assert ask_to_sign_in(served.client, "bad").status_code == 401
    answer = ask_to_sign_in(served.client, "bad")
    assert (answer.status_code, answer.headers.get("location")) == (429, None)
    assert served.client.get("/v1/status", headers=bad).status_code == 429
    assert ask_to_sign_in(served.client, served.tokens["monitor"]).status_code == 303
    clock[0] += 1.0
    served.client.cookies.clear()
    assert [ask_to_sign_in(served.client, "bad").status_code for _ in range(2)] == [401, 429]


@pytest.mark.parametrize("form", [None, "", "wrong", "x" * 43])
def test_signing_in_requires_the_secret_of_the_form(served: Served, form: str | None) -> None:
    token = {"token": served.tokens["monitor"]}
    sent = token if form is None else {**token, "form": form}
    answer = served.client.post("/page/sign-in", data=sent, follow_redirects=False)
    assert answer.status_code == 403  # Nor is there a cookie.
    get(served.client, "/page/sign-in")
    answer = served.client.post("/page/sign-in", data=sent, follow_redirects=False)
    assert (answer.status_code, "came from another website" in answer.text) == (403, True)
    assert "adaptinf" not in cookies_of(answer)


@pytest.fixture
def paused(served: Served) -> Any:
    """What a form of the operator does, and the state of the trial after it."""
    client = sign_in(served, "operator")
    secret = form_of(get(client, "/page/operator").text)

    def send(**fields: str) -> tuple[Any, str]:
        values = {"form": secret, "state": "paused", "reason": "a", "by": "b", **fields}
        sent = {name: value for name, value in values.items() if value != "-"}
        answer = client.post("/page/operator", data=sent, follow_redirects=False)
        return answer, served.trial.status().state

    return send


@pytest.mark.parametrize("form", ["-", "", "wrong", "x" * 43])
def test_a_form_requires_its_secret(served: Served, paused: Any, form: str) -> None:
    answer, state = paused(form=form)
    assert (answer.status_code, state) == (403, "open")
    answer = served.client.post("/page/sign-out", data={} if form == "-" else {"form": form})
    assert answer.status_code == 403
    assert get(served.client, "/page").status_code == 200


def test_the_secret_is_that_of_the_visit(served: Served, paused: Any) -> None:
    mine = served.client.cookies["adaptinf"]
    other = form_of(get(sign_in(served, "operator"), "/page").text)
    served.client.cookies.clear()
    served.client.cookies["adaptinf"] = mine
    assert paused(form=other)[0].status_code == 403
    assert paused()[1] == "paused"


def test_pausing_and_resuming(served: Served, paused: Any) -> None:
    answer, state = paused(reason="a <b>bad</b> batch", by="Dr. Ames")
    assert (answer.status_code, answer.headers["location"], state) == (303, "/page/operator", "paused")
    done = served.trial.history()[-1]
    assert (done.kind, done.reason, done.by) == ("pause", "a <b>bad</b> batch", "Dr. Ames")
    text = get(served.client, "/page/operator").text
    assert "The trial is paused." in text
    assert "Resume the trial" in text
    assert "batch" not in text  # A reason may name an arm.
    assert served.assign({"unit": 1}, "k").json()["code"] == "paused"
    assert paused(state="open")[1] == "open"
    assert served.assign({"unit": 1}, "k").status_code == 200


def test_mistakes_in_a_form_change_nothing(served: Served, paused: Any) -> None:
    answer, state = paused(reason=" ", by="<i>me</i>")
    assert (answer.status_code, state) == (422, "open")
    assert "reason must be a string of at most 1,000 characters" in answer.text
    assert 'value="&lt;i&gt;me&lt;/i&gt;"' in answer.text
    assert "by must be" not in answer.text
    answer, _ = paused(reason="-", by="-")
    assert answer.text.count("must be a string") == 2
    assert paused(reason="x" * 1_001)[0].status_code == 422
    for wrong in ("finished", "", "-"):
        assert paused(state=wrong)[0].status_code == 422
    assert served.client.post("/page/operator", content=b"\xff" * 2_000).status_code == 403
    many = "&".join(f"a{number}=1" for number in range(100))
    assert served.client.post("/page/operator", content=many.encode()).status_code == 403
    assert served.client.post("/page/operator", content=b"x" * 2**21).status_code == 413
    assert served.trial.status().state == "open"
    served.trial.finish("done", by="a")
    answer, _ = paused()
    assert (answer.status_code, "The trial is finished." in answer.text) == (409, True)


@pytest.mark.parametrize("role", ["monitor", "statistician", "assigner"])
def test_only_an_operator_pauses(served: Served, role: str) -> None:
    client = sign_in(served, role)
    form = form_of(get(client, "/page").text)
    sent = {"form": form, "state": "paused", "reason": "a", "by": "b"}
    assert client.post("/page/operator", data=sent).status_code == 403
    served.client.cookies.clear()
    answer = client.post("/page/operator", data=sent, follow_redirects=False)
    assert answer.headers["location"] == "/page/sign-in"
    assert served.trial.status().state == "open"


def test_signing_out(served: Served) -> None:
    client = sign_in(served, "monitor")
    kept = client.cookies["adaptinf"]
    answer = client.post("/page/sign-out", data={"form": form_of(get(client, "/page").text)})
    assert (answer.status_code, "Signed out." in answer.text) == (200, True)
    assert cookies_of(answer)["adaptinf"]["max-age"] == "0"
    header = {"cookie": f"adaptinf={kept}"}
    assert served.client.get("/page", headers=header, follow_redirects=False).status_code == 303


def test_signing_in_again_ends_the_visit_before(served: Served) -> None:
    client = sign_in(served, "monitor")
    kept = client.cookies["adaptinf"]
    form = client.get("/page/sign-in", follow_redirects=False)
    assert form.headers["location"] == "/page"
    sent = {"form": "f" * 43, "token": served.tokens["operator"]}
    header = {"cookie": f"adaptinf={kept}; adaptinf-form={'f' * 43}"}
    client.cookies.clear()
    answer = client.post("/page/sign-in", data=sent, headers=header, follow_redirects=False)
    assert answer.status_code == 303
    client.cookies.clear()
    assert get(client, "/page").status_code == 303
    header = {"cookie": f"adaptinf={kept}"}
    assert client.get("/page", headers=header, follow_redirects=False).status_code == 303


def test_a_revoked_token_ends_its_visits(served: Served) -> None:
    client = sign_in(served, "monitor")
    assert get(client, "/page").status_code == 200
    (token,) = [one for one in served.trial.tokens() if one.role == "monitor"]
    served.trial.revoke_token(token.id)
    # The service has not read the row yet: the transaction itself refuses.
    assert get(client, "/page").headers["location"] == "/page/sign-in"
    assert ask_to_sign_in(client, served.tokens["monitor"]).status_code == 401


def test_visits_end(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(visits.time, "monotonic", lambda: clock[0])
    client = sign_in(served, "monitor")
    clock[0] += 3_599.0
    assert get(client, "/page/downloads").status_code == 200
    clock[0] += 3_601.0
    assert get(client, "/page/downloads").status_code == 303
    client = sign_in(served, "monitor")
    for _ in range(8):
        clock[0] += 3_599.0
        assert get(client, "/page/downloads").status_code == 200
    clock[0] += 100.0
    assert get(client, "/page/downloads").status_code == 303


def test_there_are_at_most_a_thousand_visits() -> None:
    kept = Visits()
    first, second = kept.begin("a"), kept.begin("b")
    kept.of(first)
    for _ in range(999):
        kept.begin("c")
    assert kept.of(second) is None
    assert kept.of(first) is not None


def test_secrets_are_compared_whole() -> None:
    assert same("é", "é")
    assert not same("", "")
    assert not same("a", "ab")


def test_a_token_of_one_site_cannot_see_the_whole_trial(served: Served) -> None:
    served.trial.add_site("Basel", key="s", by="a")
    token = served.trial.add_token("monitor", site="Basel")
    answer = ask_to_sign_in(served.client, token.text)
    assert (answer.status_code, "limited to one site" in answer.text) == (403, True)
    assert "adaptinf" not in cookies_of(answer)
    assert get(served.client, "/page").status_code == 303
