"""A trial behind its service, in this process, with a token for each role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

import adaptinf as ai
from adaptinf.service.api import service
from adaptinf.service.roles import ROLES
from adaptinf.service.writer import Writer


@dataclass
class Served:
    """A client, and the trial that it asks."""

    client: TestClient
    trial: ai.Trial
    tokens: dict[str, str]
    log: list[str] = field(default_factory=list)

    @property
    def writer(self) -> Writer:
        gate: Any = self.client.app
        found: Writer = gate._holders._writer
        return found

    def headers(self, role: str | None, key: str | None = None) -> dict[str, str]:
        found = {} if role is None else {"authorization": f"Bearer {self.tokens[role]}"}
        return found if key is None else {**found, "idempotency-key": key}

    def assign(self, body: Any, key: str | None, role: str | None = "assigner") -> Response:
        return self.client.post("/v1/assignments", json=body, headers=self.headers(role, key))

    def record(self, body: Any, key: str | None, role: str | None = "recorder") -> Response:
        return self.client.post("/v1/outcomes", json=body, headers=self.headers(role, key))

    def get(self, path: str, role: str | None = "monitor") -> Response:
        return self.client.get(path, headers=self.headers(role))


def trial_at(path: Path, **options: Any) -> ai.Trial:
    return ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ["A", "B"], horizon=50, **options)


def serving(trial: ai.Trial) -> Iterator[Served]:
    tokens, log = {role: trial.add_token(role).text for role in ROLES}, []

    def line(text: str) -> bool:
        log.append(text)
        return True

    with TestClient(service(trial, line), raise_server_exceptions=False) as client:
        yield Served(client, trial, tokens, log)
    trial.close()
