"""LibreClinica's form of randomisation: a client that asks as its Java sources do, and what is refused."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from served import Served, trial_at
from starlette.testclient import TestClient
from test_calls import code
from test_server import Process

import adaptinf as ai
from adaptinf.cli import main
from adaptinf.errors import FileError, ParameterError
from adaptinf.service.api import service
from adaptinf.service.settings import LibreClinica, Settings, settings_from

SECRET = "s3cret_path-of-22-letters"
PLAIN = {
    "accept": "text/plain, application/json, application/*+json, */*",
    "user-agent": "Apache-HttpClient/4.5",
}


class RandomizeService:
    """What LibreClinica's classes of these names send, and how they read answers."""

    def __init__(self, client: TestClient, module_manager: str = f"/{SECRET}") -> None:
        self.client = client
        url = f"{module_manager}/app/rest/oc/se_randomizations?studyoid=S_1&instanceurl=https://lc/rest2/openrosa/S_1"
        found = client.get(url, headers=PLAIN)
        self.access = found.json() if found.status_code == 200 else {}

    def headers(self) -> dict[str, str]:
        auth = base64.b64encode(f"{self.access['username']}:{self.access['password']}".encode()).decode()
        return {
            **PLAIN,
            "authorization": f"Basic {auth}",
            "content-type": "application/x-www-form-urlencoded",
        }

    def code(self, identifier: str, questions: tuple[str, ...] = ()) -> Any:
        """`getRandomizationCode`: an earlier code, or else a site and a new one; "" if it is refused."""
        found = self.client.get(f"/api/randomisation?identifier={identifier}", headers=self.headers())
        if found.status_code == 200:
            return self.text(found)
        site = {"siteIdentifier": "S_1", "name": "Ward Ä", "timezone": "America/New_York"}
        self.client.post("/api/sites", data=site, headers=self.headers()).raise_for_status()
        made = self.client.post(
            "/api/randomise",
            data={
                "identifier": identifier,
                "siteIdentifier": "S_1",
                "user": "root",
                **{f"question{number}": answer for number, answer in enumerate(questions, 1)},
            },
            headers=self.headers(),
        )
        return self.text(made) if made.status_code == 200 else ""

    @staticmethod
    def text(response: Any) -> str:
        found = response.json()["code"]
        assert isinstance(found, str)  # Anything else is a ClassCastException.
        return found


def settings(trial: ai.Trial, role: str = "assigner") -> LibreClinica:
    return LibreClinica("S_1", "http://testserver", "lc", trial.add_token(role).text, SECRET)


def serving(trial: ai.Trial, chosen: LibreClinica) -> Iterator[Served]:
    log: list[str] = []
    app = service(trial, lambda text: not log.append(text), Settings(chosen))  # type: ignore[func-returns-value]
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Served(client, trial, {}, log)
    trial.close()


@pytest.fixture
def neighbour(path: Path) -> Iterator[Served]:
    trial = trial_at(path)
    yield from serving(trial, settings(trial))


def test_the_registrar_answers_as_the_sources_read_it(neighbour: Served) -> None:
    client = RandomizeService(neighbour.client)
    assert client.access == {
        "studyOid": "S_1",
        "instanceUrl": "https://lc/rest2/openrosa/S_1",
        "url": "http://testserver",
        "username": "lc",
        "password": client.access["password"],
        "status": "ACTIVE",
    }
    address = f"/{SECRET}/app/rest/oc/se_randomizations"
    assert code(neighbour.client.get(f"{address}?studyoid=S_2&instanceurl=x"), 404) == "not-found"
    assert code(neighbour.client.get("/app/rest/oc/se_randomizations?studyoid=S_1"), 404) == "not-found"
    assert not any(SECRET in line or client.access["password"] in line for line in neighbour.log)


def test_each_participant_has_one_code(neighbour: Served) -> None:
    client = RandomizeService(neighbour.client)
    codes = {name: client.code(name) for name in ("SS_1", "SS_2", "SS_3")}
    assert set(codes.values()) <= {"A", "B"}
    assert {name: client.code(name) for name in codes} == codes
    rows = neighbour.trial.status().rows
    form = {"identifier": "SS_1", "siteIdentifier": "S_1", "user": "root"}
    again = neighbour.client.post("/api/randomise", data=form, headers=client.headers())
    assert (again.json(), neighbour.trial.status().rows) == ({"code": codes["SS_1"]}, rows)
    assert neighbour.trial.verify().rounds == 3


def test_what_is_missing_is_a_404_without_code(neighbour: Served) -> None:
    headers = RandomizeService(neighbour.client).headers()

    def asked(query: str) -> Any:
        return neighbour.client.get(f"/api/randomisation{query}", headers=headers)

    assert code(asked("?identifier=SS_9"), 404) == "unknown-unit"
    assert code(asked(""), 422) == "invalid-query"
    assert neighbour.trial.status().rounds == 0


BODIES = [
    b"",
    b'{"identifier": "SS_1"}',
    b"identifier=",
    b"identifier=a&identifier=b",
    b"identifier=%ff",
    b"\xff=1",
]


@pytest.mark.parametrize("body", [*BODIES, b"identifier=" + b"u" * 201, b"&".join([b"a=1"] * 101)])
def test_what_is_no_form_is_refused(neighbour: Served, body: bytes) -> None:
    headers = RandomizeService(neighbour.client).headers()
    response = neighbour.client.post("/api/randomise", content=body, headers=headers)
    assert code(response, 422) == "invalid-form"
    assert neighbour.trial.status().rounds == 0


def test_the_password_is_an_assigners_token(path: Path) -> None:
    trial = trial_at(path)
    other = trial.add_token("recorder").text
    for neighbour in serving(trial, settings(trial)):
        client = RandomizeService(neighbour.client)
        right = client.access["password"]
        for password, status, told in (
            (other, 403, "forbidden"),
            ("x", 401, "unauthorized"),
            ("", 401, "unauthorized"),
        ):
            client.access["password"] = password
            response = neighbour.client.post(
                "/api/randomise", data={"identifier": "1"}, headers=client.headers()
            )
            assert code(response, status) == told
        for text in (f"Bearer {right}", "Basic !", "Basic /w==", "Basic"):
            headers = {"authorization": text}
            assert neighbour.client.get("/api/randomisation?identifier=1", headers=headers).status_code == 401
        client.access["password"] = right
        basic = {**client.headers(), "idempotency-key": "k"}
        assert neighbour.client.post("/v1/assignments", json={"unit": "1"}, headers=basic).status_code == 401
        assert client.code("1") in ("A", "B")


def test_refusals_leave_the_code_empty(neighbour: Served) -> None:
    client = RandomizeService(neighbour.client)
    assert client.code("SS_1")
    assert client.code("ss_1") == ""
    neighbour.trial.pause("a batch was bad")
    assert client.code("SS_2") == ""
    assert client.code("SS_1")
    neighbour.trial.erase("SS_1", key="e", reason="asked", by="office")
    response = neighbour.client.get("/api/randomisation?identifier=SS_1", headers=client.headers())
    assert code(response, 410) == "erased"


def test_a_question_may_be_the_context(path: Path) -> None:
    design = ai.designs.EpsilonGreedy(batch_size=7)
    trial = ai.Trial.create(path, design, [1, 2], horizon=50, features=["young", "old"])
    for neighbour in serving(trial, replace(settings(trial), context="question2")):
        client = RandomizeService(neighbour.client)
        assert client.code("SS_1", ("Female", "old")) in ("1", "2")
        assert client.code("SS_2", ("Female", "middle")) == ""
        assert trial.assign("SS_1", "old", key="k").id == trial.status().rounds == 1


def test_a_blinded_trial_answers_with_kits_of_the_site(path: Path) -> None:
    trial = ai.Trial.create(path, ai.designs.Uniform(), ["A", "B"], horizon=50, blinded=True)
    for site in ("S_1", "S_2"):
        trial.add_site(site, key=site, by="the office")
        codes = {f"{site[-1]}{number}1": arm for number, arm in ((10, "A"), (20, "B"), (30, "A"), (40, "B"))}
        trial.add_kits(site, codes, key=f"kits {site}", by="the pharmacy")
    chosen, here = settings(trial), trial.add_token("assigner", site="S_2").text
    for neighbour in serving(trial, chosen):
        client = RandomizeService(neighbour.client)
        kits = {name: client.code(name) for name in ("SS_1", "SS_2")}
        assert all(kit.startswith("1") for kit in kits.values())
        assert {name: client.code(name) for name in kits} == kits
        assert trial.status().rounds == 2
        client.access["password"] = here
        response = neighbour.client.get("/api/randomisation?identifier=SS_1", headers=client.headers())
        assert code(response, 404) == "unknown-unit"
        form = {"identifier": "SS_1", "siteIdentifier": "S_1"}
        response = neighbour.client.post("/api/randomise", data=form, headers=client.headers())
        assert code(response, 403) == "other-site"
        form["siteIdentifier"] = "S_2"
        response = neighbour.client.post("/api/randomise", data=form, headers=client.headers())
        assert response.json()["code"].startswith("2")


def test_it_is_off_unless_turned_on(served: Served, path: Path, tmp_path: Path) -> None:
    for address in ("/api/randomisation?identifier=1", "/app/rest/oc/se_randomizations?studyoid=S_1"):
        assert served.client.get(address, headers=served.headers("assigner")).status_code == 404
    trial = trial_at(tmp_path / "other.db")
    for neighbour in serving(trial, replace(settings(trial), secret_path="")):
        assert RandomizeService(neighbour.client).access == {}
        assert RandomizeService(neighbour.client, "/").access == {}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    return path


def test_the_configuration_file(tmp_path: Path) -> None:
    token = "t" * 43
    access = f'username = "lc"\ntoken = "{token}"\n'
    text = f'[libreclinica]\nstudy = "S_1"\nurl = "https://trial.example.org"\n{access}'
    found = settings_from(written(tmp_path / "good.toml", text))
    assert found == Settings(LibreClinica("S_1", "https://trial.example.org", "lc", token))
    assert settings_from(written(tmp_path / "empty.toml", "")) == Settings()
    bad = '[libreclinica]\nstudy = 1\nurl = "ftp://x/"\nfoo = 1\n[other]\n'
    with pytest.raises(ParameterError) as caught:
        settings_from(written(tmp_path / "bad.toml", bad))
    assert list(caught.value.problems) == [
        "'other' is not a section of this file",
        "libreclinica.username is required",
        "libreclinica.token is required",
        "libreclinica has no entry 'foo'",
        "libreclinica.study must be text",
    ]
    wrong = text.replace("https://trial.example.org", "trial/").replace(token, "x").replace('"lc"', '"l:c"')
    with pytest.raises(ParameterError) as caught:
        settings_from(written(tmp_path / "bad.toml", f'{wrong}secret_path = "short"\n'))
    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        "libreclinica.url",
        "libreclinica.username",
        "libreclinica.token",
        "libreclinica.secret_path",
    ]


@pytest.mark.parametrize("text", ["[", "\xff"])
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match="it is not TOML"):
        settings_from(path)
    with pytest.raises(FileError, match="No such file"):
        settings_from(tmp_path / "none.toml")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_secrets_that_others_can_read_are_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial_at(path).close()
    wide = written(path.parent / "wide.toml", "")
    wide.chmod(0o640)
    assert main(["trial", "serve", str(path), "--configuration", str(wide)]) == 2
    assert "it contains secrets, but other users can read it: run chmod 600 on it" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_line_turns_it_on(path: Path) -> None:
    with trial_at(path) as trial:
        chosen = settings(trial)
    text = "[libreclinica]\n" + "".join(
        f'{name} = "{getattr(chosen, name)}"\n'
        for name in ("study", "url", "username", "token", "secret_path")
    )
    server = Process(path, "--configuration", str(written(path.parent / "service.toml", text)))
    import httpx2

    with httpx2.Client(base_url=server.address) as client:
        assert RandomizeService(client).code("SS_1") in ("A", "B")  # type: ignore[arg-type]
    code, _, log = server.stop()
    assert code == 0
    assert SECRET not in log
    assert chosen.token not in log
