"""A trial in PostgreSQL behind the service: each request counts once, whatever happens to the connection."""

from __future__ import annotations

from typing import Any

from crashes import on_a_server
from postgres_server import Database, server
from starlette.testclient import TestClient

from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.service.api import service
from adaptinf.trial import Trial


class Client:
    """A trial behind its service in this process."""

    def __init__(self, trial: Trial) -> None:
        self.tokens = {role: trial.add_token(role).text for role in ("assigner", "recorder", "monitor")}
        self.http = TestClient(service(trial, lambda _: True), raise_server_exceptions=False)

    def ask(self, place: str, role: str, key: str, body: Any) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[role]}", "idempotency-key": key}
        return self.http.post(f"/v1/{place}", json=body, headers=headers)


@on_a_server
def test_requests_count_once_also_after_the_connection_was_cut(path: Database) -> None:
    with Trial.create(path, Thompson(floor=0.1), ["A", "B"], horizon=50) as trial:
        client = Client(trial)
        with client.http:
            first = client.ask("assignments", "assigner", "a1", {"unit": "p1"})
            assert (first.status_code, first.json()["id"]) == (200, 1)
            name = path.rpartition("/")[2]
            connected = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
            assert server().ask(connected)[0][0] == 1
            server().cut(name)
            again = client.ask("assignments", "assigner", "a1", {"unit": "p1"})
            while again.status_code == 503:
                again = client.ask("assignments", "assigner", "a1", {"unit": "p1"})
            assert again.json() == first.json()
            told = client.ask("outcomes", "recorder", "o1", {"decision": 1, "reward": 1.0})
            assert told.json() == {"id": 1, "reward": 1.0, "in_time": True}
        assert (trial.status().rounds, trial.status().pending) == (1, 0)


@on_a_server
def test_a_private_trial_runs_over_http_and_follows_its_journal(path: Database) -> None:
    design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
    with Trial.create(path, design, ["A", "B"], horizon=40, outcome_window=2) as trial:
        client = Client(trial)
        with client.http:
            for number in range(1, 21):
                arm = client.ask("assignments", "assigner", f"a{number}", {"unit": number}).json()
                assert arm["id"] == number
                reward = {"decision": number, "reward": float(number % 2)}
                assert client.ask("outcomes", "recorder", f"o{number}", reward).status_code == 200
            headers = {"authorization": f"Bearer {client.tokens['monitor']}"}
            told = client.http.get("/v1/events?after=34&limit=500", headers=headers).json()
            assert [one["kind"] for one in told["events"]] == ["assign", "record"] * 5
            assert told["after"] == client.http.get("/v1/status", headers=headers).json()["rows"] == 44
            far = client.http.get(f"/v1/events?after={2**53}", headers=headers)
            assert far.json() == {"events": [], "after": 2**53}
        head = trial.status().head
    with Trial.open(path) as trial:
        assert trial.verify(head).rounds == 20
        assert len(trial.log().releases) > 0
