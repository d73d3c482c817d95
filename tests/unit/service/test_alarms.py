"""Alarms and webhooks: when they are raised, who sees them, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from receiver import SECRET, Receiver, until
from served import Served, trial_at
from starlette.testclient import TestClient
from test_calls import code
from test_libreclinica import written
from test_server import Process, certificate

import adaptinf as ai
from adaptinf.errors import FileError, JournalError, ParameterError
from adaptinf.service.api import service
from adaptinf.service.monitoring import alarms, webhooks
from adaptinf.service.monitoring.alarms import wrong_about_arms
from adaptinf.service.roles import ROLES
from adaptinf.service.settings import Alarms, Settings, Webhook, settings_from
from adaptinf.trial import requests
from adaptinf.trial.sealing import Snapshots

QUICK = Alarms(every_seconds=0.05)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "POLL", 0.05)


@contextmanager
def watching(trial: ai.Trial, *hooks: Webhook, chosen: Alarms | None = QUICK) -> Iterator[Served]:
    tokens = {role: trial.add_token(role).text for role in ROLES}
    app = service(trial, lambda _: True, Settings(alarms=chosen, webhooks=hooks))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Served(client, trial, tokens)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(certificate(tmp_path))
    yield made
    made.close()


def hook(receiver: Receiver, **others: Any) -> Webhook:
    return Webhook("pager", receiver.url, SECRET, str(receiver.ca), **others)


def raised(served: Served, role: str = "monitor") -> list[str]:
    return [one["alarm"] for one in served.get("/v1/alarms", role).json()["alarms"]]


def acts(trial: ai.Trial, kind: str) -> list[Any]:
    return [act for act in trial.history() if act.kind == kind]


def test_an_overdue_outcome_raises_an_alarm_until_it_arrives(path: Path) -> None:
    with trial_at(path) as trial, watching(trial, chosen=Alarms(0.05, overdue_days=1e-6)) as served:
        assert served.get("/v1/alarms").json() == {"on": True, "alarms": []}
        served.assign([{"unit": "p1"}, {"unit": "p2"}], "a")
        until(lambda: raised(served) == ["overdue"])
        (act,) = acts(trial, "alarm")
        assert (act.alarm, act.raised, act.reason, act.decision) == ("overdue", True, None, None)
        assert 'adaptinf_trial_alarm{alarm="overdue"} 1.0' in served.get("/metrics").text
        served.record([{"decision": 1, "reward": 1.0}, {"decision": 2, "reward": 0.0}], "r")
        until(lambda: raised(served) == [])
        assert 'adaptinf_trial_alarm{alarm="overdue"} 0.0' in served.get("/metrics").text
        told = [one for one in served.get("/v1/events?limit=500").json()["events"] if one["kind"] == "alarm"]
        assert [(one["alarm"], one["raised"]) for one in told] == [("overdue", True), ("overdue", False)]
    with ai.Trial.open(path) as trial:
        assert [act.raised for act in acts(trial, "alarm")] == [True, False]
        assert trial.verify().rounds == 2


def test_without_a_configuration_nothing_is_watched(served: Served) -> None:
    assert served.get("/v1/alarms").json() == {"on": False, "alarms": []}
    assert "adaptinf_trial_alarm" not in served.get("/metrics").text


def test_a_full_disk_and_a_finished_trial(path: Path) -> None:
    with trial_at(path) as trial, watching(trial, chosen=Alarms(0.05, free_gigabytes=1e9)) as served:
        until(lambda: raised(served) == ["disk"])
        trial.finish("done")
        until(lambda: raised(served) == [])


def test_snapshots_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise FileError(str(path), "written", "as the test has it")

    monkeypatch.setattr(requests, "EVERY", 20)
    monkeypatch.setattr(Snapshots, "write", failing)
    with trial_at(path) as trial, watching(trial) as served:
        served.assign([{"unit": f"p{number}"} for number in range(10)], "a")
        assert raised(served) == []
        served.assign([{"unit": f"q{number}"} for number in range(30)], "b")
        until(lambda: raised(served) == ["snapshot"])
        monkeypatch.undo()
        monkeypatch.setattr(requests, "EVERY", 20)
        served.record([{"decision": number, "reward": 1.0} for number in range(1, 41)], "r")
        until(lambda: raised(served) == [])


def log_of(share: float, rounds: int = 400) -> ai.AdaptiveLog:
    rng = np.random.default_rng(3)
    arm = np.where(rng.random(rounds) < share, "A", "B")
    frame = pd.DataFrame({"action": arm, "reward": rng.random(rounds), "propensity": 0.5})
    return ai.AdaptiveLog(frame, action="action", reward="reward", propensity="propensity")


def test_arms_that_were_not_chosen_as_stated() -> None:
    assert wrong_about_arms(log_of(0.5)) == {"imbalance": False, "checks": False}
    assert wrong_about_arms(log_of(0.7)) == {"imbalance": True, "checks": True}
    design, arms = ai.designs.Thompson(floor=0.1), ai.environments.BernoulliArms([0.3, 0.7])
    for seed in range(20):
        log = design.run(arms, horizon=300, rng=seed)
        for rounds in (20, 50, 125, 300):
            assert not any(wrong_about_arms(log[:rounds]).values())


def test_only_those_who_may_see_arms_are_told_of_alarms_about_them(
    path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarms, "wrong_about_arms", lambda _: {"imbalance": True, "checks": False})
    hooks = hook(receiver), Webhook("office", receiver.url, SECRET, str(receiver.ca), arms=True)
    with trial_at(path) as trial, watching(trial, *hooks) as served:
        served.assign([{"unit": f"p{number}"} for number in range(20)], "a")
        until(lambda: acts(trial, "sent")[2:])
        seen = {role: raised(served, role) for role in ("monitor", "operator", "statistician", "unblinder")}
        assert seen == {
            "monitor": [],
            "operator": [],
            "statistician": ["imbalance"],
            "unblinder": ["imbalance"],
        }
        for role in ROLES:
            text = served.get("/metrics", role).text
            assert ("imbalance" in text) == (role in ("statistician", "unblinder")), role
        kinds = {
            role: [one["kind"] for one in served.get("/v1/events?after=29", role).json()["events"]]
            for role in ("monitor", "operator", "statistician")
        }
        assert kinds == {
            "monitor": ["other", "other"],
            "operator": ["other", "sent"],
            "statistician": ["alarm", "sent"],
        }
        assert [one["data"] for one in receiver.messages()] == [{"alarm": "imbalance"}]


def test_an_unblinding_is_told_without_participant_and_arm(path: Path, receiver: Receiver) -> None:
    with trial_at(path) as trial:
        trial.assign("p1", key="k1")
        trial.unblind("p1", reason="before the receiver was known", by="the ward")
        with watching(trial, hook(receiver), chosen=None) as served:
            body = {"unit": "p1", "reason": "a seizure", "by": "the ward"}
            served.client.post("/v1/unblindings", json=body, headers=served.headers("unblinder"))
            until(lambda: acts(trial, "sent")[1:])
        (told,) = receiver.messages()
        at = acts(trial, "unblind")[1].time
        assert told == {"id": told["id"], "type": "unblinding", "timestamp": at, "data": {}}
        assert len(told["id"]) == 32
        ((path_of, headers, _),) = receiver.got
        assert (path_of, headers["content-type"]) == ("/trial", "application/json")
        assert [act.hook for act in acts(trial, "sent")] == ["pager", "pager"]
        with watching(trial, hook(receiver), chosen=None):
            trial.unblind("p1", reason="again", by="the ward")
            until(lambda: len(receiver.got) == 2)
        first, second = receiver.messages()
        assert first["id"] != second["id"]
        assert trial.verify().rounds == 1


def test_it_is_sent_until_it_is_accepted_and_not_redirected(path: Path, receiver: Receiver) -> None:
    receiver.answers += [500, 302, 404]
    with trial_at(path) as trial, watching(trial, hook(receiver), chosen=None) as served:
        trial.assign("p1", key="k1")
        trial.unblind("p1", reason="a", by="b")
        until(lambda: acts(trial, "sent")[1:])
        assert [where for where, _, _ in receiver.got] == ["/trial"] * 4
        assert len({told["id"] for told in receiver.messages()}) == 1
        assert "adaptinf_webhook_failures_total 3.0" in served.get("/metrics", None).text


def test_a_receiver_that_hangs_or_is_a_stranger_stops_nobody(
    path: Path, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.5)
    receiver.answers += [None]
    (tmp_path / "other").mkdir()
    stranger = Webhook("stranger", receiver.url, SECRET, str(certificate(tmp_path / "other")[0]))
    with trial_at(path) as trial, watching(trial, hook(receiver), stranger, chosen=None) as served:
        trial.assign("p1", key="k1")
        trial.unblind("p1", reason="a", by="b")
        until(lambda: receiver.got)
        assert served.assign({"unit": "p2"}, "k2").status_code == 200
        until(lambda: acts(trial, "sent")[2:])
        assert [act.hook for act in acts(trial, "sent")] == ["pager", "stranger", "pager"]
        assert len({told["id"] for told in receiver.messages()}) == 1


@pytest.mark.slow
def test_a_kill_loses_no_alarm(path: Path, receiver: Receiver) -> None:
    text = (
        "[alarms]\nevery_seconds = 1\nfree_gigabytes = 1e9\n"
        f'[[webhooks]]\nname = "pager"\nurl = "{receiver.url}"\nsecret = "{SECRET}"\nca = "{receiver.ca}"\n'
    )
    chosen = str(written(path.parent / "service.toml", text))
    trial_at(path).close()
    receiver.answers += [None]
    server = Process(path, "--configuration", chosen)
    until(lambda: receiver.got)
    server.kill()
    with ai.Trial.open(path) as trial:
        assert ([act.alarm for act in acts(trial, "alarm")], len(acts(trial, "sent"))) == (["disk"], 1)
    servers = [Process(path, "--configuration", chosen), Process(path, "--configuration", chosen)]
    with ai.Trial.open(path) as trial:
        until(lambda: acts(trial, "sent")[1:])
        assert len(acts(trial, "alarm")) == 1
    assert [server.stop()[0] for server in servers] == [0, 0]
    told = receiver.messages()
    assert len(told) >= 2
    assert {(one["id"], one["type"], one["data"]["alarm"]) for one in told} == {
        (told[0]["id"], "alarm.raised", "disk")
    }


def test_rows_about_alarms_must_follow_from_each_other(path: Path) -> None:
    row = {"kind": "alarm", "alarm": "disk", "raised": True}
    with trial_at(path) as trial:
        trial._requests.change(lambda _: (None, dict(row)))
        assert trial.verify().rows == 2
        trial._requests.change(lambda _: (None, dict(row)))
        with pytest.raises(JournalError, match=r"row 3 cannot be replayed"):
            trial.verify()


def test_a_copy_raises_and_sends_nothing(path: Path, receiver: Receiver, tmp_path: Path) -> None:
    with trial_at(path) as trial:
        token = trial.add_token("monitor").text
        trial.backup(tmp_path / "copy.db")
    with ai.Trial.open(tmp_path / "copy.db") as copy:
        chosen = Settings(alarms=Alarms(0.01, free_gigabytes=1e9), webhooks=(hook(receiver),))
        with TestClient(service(copy, lambda _: True, chosen)) as client:
            for _ in range(20):
                answer = client.get("/v1/alarms", headers={"authorization": f"Bearer {token}"})
                assert answer.json() == {"on": True, "alarms": []}
        assert copy.status().rows == 2


BAD = """
[alarms]
every_seconds = 0.5
overdue_days = "x"
[[webhooks]]
name = "a b"
url = "http://127.0.0.1/"
secret = "short"
arms = 1
ca = "none.pem"
[[webhooks]]
name = "a b"
url = "https://user:word@example.org"
"""


def test_what_is_wrong_with_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        settings_from(written(tmp_path / "bad.toml", BAD))
    assert list(caught.value.problems) == [
        "alarms.every_seconds must be a number of at least 1",
        "alarms.overdue_days must be a number of at least 0",
        "webhooks 1.url must be an address such as https://alarms.example.org/trial",
        "webhooks 1.name must consist of letters, digits and ._-",
        "webhooks 1.secret must be whsec_ and the base64 form of 24 to 64 random bytes",
        "webhooks 1.arms must be true or false",
        "webhooks 1.ca must be a file of certificates",
        "webhooks 2.secret is required",
        "webhooks must have different names",
    ]
    for url in (
        "https://user:a@example.org",
        "https://",
        "https://x/ y",
        "https://x/\r\nA: b",
        "file:///etc",
    ):
        text = f"[[webhooks]]\nname = 'a'\nurl = {url!r}\nsecret = '{SECRET}'\n".replace("\\r\\n", "\\\\")
        with pytest.raises(ParameterError, match=r"webhooks 1[.]url"):
            settings_from(written(tmp_path / "bad.toml", text))
    for text, told in (
        ("alarms = 1", "alarms must be a section, [alarms]"),
        ("webhooks = 1", "webhooks must be a list of sections, [[webhooks]]"),
        ("[alarms]\nfoo = 1", "alarms has no entry 'foo'"),
    ):
        with pytest.raises(ParameterError) as caught:
            settings_from(written(tmp_path / "bad.toml", text))
        assert list(caught.value.problems) == [told]


def test_a_good_configuration(tmp_path: Path) -> None:
    hooks = f"[[webhooks]]\nname = 'a'\nurl = 'https://x.org:8443/y?z=1'\nsecret = '{SECRET}'\n"
    text = f"[alarms]\noverdue_days = 45\n{hooks}"
    found = settings_from(written(tmp_path / "good.toml", text))
    assert found == Settings(
        None, Alarms(overdue_days=45), (Webhook("a", "https://x.org:8443/y?z=1", SECRET),)
    )
    assert settings_from(written(tmp_path / "good.toml", "[alarms]\n")).alarms == Alarms(60.0, None, 1.0)


def test_alarms_need_a_token(served: Served) -> None:
    assert code(served.get("/v1/alarms", None), 401) == "unauthorized"
