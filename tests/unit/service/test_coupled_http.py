"""Neighbouring private trials behind their services, with equal coins and shifted noise: equal to the byte.

Alignments are those of `audit.coupled`. What is compared is what the service answers: assignments, outcomes,
and after each of them the status, events, alarms and figures of every role that sees no outcomes; and pages.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from served import Served, serving
from visitors import form_of, get, sign_in

import adaptinf as ai
from adaptinf.audit.privacy.coupled_pairs import PairAudit
from adaptinf.audit.privacy.coupled_plays import (
    ANSWER,
    STATUS,
    GivenNoise,
    Output,
    Shown,
    TrialStage,
    played,
)
from adaptinf.audit.privacy.histories import design_terms
from adaptinf.service import requested
from adaptinf.service.pages import contents
from adaptinf.trial import requests

NOON = "2026-11-01T12:00:00.000+00:00"
COUNTS = re.compile(r"^adaptinf_trial.*$", re.MULTILINE)
DIGEST = re.compile(r"[0-9a-f]{64}")
BLIND = ("assigner", "recorder", "monitor", "operator", "unblinder")
"""Roles that see no outcomes."""


class HttpStage(TrialStage):
    """A trial that is asked over HTTP alone; what each role is told after each event is an output."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.outputs: list[Output] = []
        self._serving = serving(self._trial)
        self._served: Served = next(self._serving)

    def _post(self, role: str, path: str, key: str, body: list[Any], words: str) -> list[Any]:
        served = self._served
        answer = served.client.post(path, json=body, headers=served.headers(role, key))
        assert answer.status_code == 200, answer.text
        self._seen(words)
        return list(answer.json())

    def _seen(self, words: str) -> None:
        """What everybody who sees no outcomes is told now; digests are of all rows, and cover nothing."""
        for role in BLIND:
            for path in ("/v1/status", "/v1/events?limit=500", "/v1/alarms", "/metrics"):
                answer = self._served.get(path, role)
                lines = COUNTS.findall(answer.text) if path == "/metrics" else [answer.text]
                text = DIGEST.sub("", "\n".join([str(answer.status_code), *lines]))
                self.outputs.append(Output(f"{path} for the {role} after {words}", text, STATUS))

    def assign(self, steps: Sequence[int], contexts: Sequence[Any]) -> list[Any]:
        known = zip(steps, contexts, strict=True)
        body = [{"unit": f"participant {step + 1}", "context": plain(context)} for step, context in known]
        made = self._post("assigner", "/v1/assignments", f"a {steps[0]}", body, f"assignment {steps[0] + 1}")
        told = [{name: value for name, value in one.items() if name != "arm"} for one in made]
        self.outputs += [
            Output(f"the answer to assignment {step + 1}", json.dumps(one), ANSWER, step)
            for step, one in zip(steps, told, strict=True)
        ]
        return [SimpleNamespace(**one) for one in made]

    def record(self, steps: Sequence[int], ids: Sequence[int], rewards: Sequence[float | None]) -> list[Any]:
        body = [{"decision": one, "reward": reward} for one, reward in zip(ids, rewards, strict=True)]
        return self._post("recorder", "/v1/outcomes", f"r {steps[0]}", body, f"outcome {steps[0] + 1}")

    def finish(self) -> None:
        super().finish()
        self._seen("the end")

    def shown(self) -> list[Output]:
        pages, client = [], sign_in(self._served, "statistician")
        covered = get(client, "/page/files/public.parquet")
        pages.append(
            Output("/page/files/public.parquet", repr((covered.status_code, covered.content)), STATUS)
        )
        for role in BLIND:
            client = sign_in(self._served, role)
            for path in ("/page", "/page/outcomes", "/page/stock", "/page/operator"):
                answer = get(client, path)
                text = answer.text.replace(form_of(answer.text), "")
                pages.append(Output(f"{path} for the {role}", DIGEST.sub("", text), STATUS))
        return [*super().shown(), *self.outputs, *pages]

    def close(self) -> None:
        assert next(self._serving, None) is None


def plain(context: Any) -> Any:
    return context.item() if isinstance(context, np.generic) else context


class HttpAudit(PairAudit):
    """Pairs whose trials are behind their services."""

    def _trial(self, coins: Any, history: Any, shifts: Mapping[str, int]) -> Shown:
        given = GivenNoise(coins.noise, dict(shifts))
        with tempfile.TemporaryDirectory() as folder:
            stage = HttpStage(self.design, coins.terms, coins.seed, given, Path(folder))
            try:
                return played(stage, coins.terms, history, given)
            finally:
                stage.close()


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of rows and of pages are equal in both trials, as outcomes do not change when they arrive."""
    warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)
    monkeypatch.setattr(requests, "now", lambda: NOON)
    monkeypatch.setattr(contents.time, "time", lambda: 1_800_000_000.0)


def pairs(design: Any, number: int, kinds: tuple[str, ...]) -> Any:
    design, terms = design_terms(design, None)
    return HttpAudit.of(design, terms).pairs(number, kinds, np.random.default_rng(number))


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("design", "kinds"),
    [
        pytest.param(ai.designs.PrivateUCB(epsilon=1.0), ("value",), id="PrivateUCB"),
        pytest.param(ai.designs.DPConSE(epsilon=1.0), ("value",), id="DPConSE", marks=pytest.mark.slow),
    ],
)
def test_every_covered_answer_is_equal_to_the_byte(design: Any, kinds: tuple[str, ...], number: int) -> None:
    for pair in pairs(design, number, kinds):
        assert pair.files
        assert pair.disagreement == ""
        assert 0.0 < pair.cost <= pair.promised.epsilon
        assert pair.shifted > 0
        assert pair.outputs > 300


def test_a_status_that_counts_successes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: a status tells the sum of the outcomes."""
    right = requested.status_of

    def told(trial: Any, site: str | None = None) -> Any:
        act = right(trial, site)

        def summed(replay: Any) -> Any:
            status, rows = act(replay)
            known = replay.session._rounds.record.reward[: replay.session.rounds]
            return {**status, "unrepeatable": int(np.nansum(np.clip(known, 0.0, 1.0)) * 1_000)}, rows

        return summed

    monkeypatch.setattr("adaptinf.service.api.status_of", told)
    (pair,) = pairs(ai.designs.PrivateUCB(epsilon=1.0), 0, ("value",))
    assert "/v1/status for the assigner after outcome" in pair.disagreement
