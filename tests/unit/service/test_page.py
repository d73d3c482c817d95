"""The page on the service: its tables, and its JavaScript client, which runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from served import trial_at
from test_server import Process

import adaptinf as ai
from adaptinf.service import problems, roles
from adaptinf.service.pages import views

PAGE = (Path(__file__).parents[3] / "docs" / "theory" / "trial_service.md").read_text(encoding="utf-8")


def test_tables_are_those_of_the_code() -> None:
    assert roles.table() in PAGE
    assert problems.table() in PAGE
    assert views.table() in PAGE


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_javascript_client(path: Path) -> None:
    (code,) = re.findall(r"^```js\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 35
    with trial_at(path) as trial:
        tokens = {name: trial.add_token(name.lower()).text for name in ("ASSIGNER", "RECORDER")}
    server = Process(path)

    def run(text: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **tokens, "TRIAL": server.address}
        command = ["node", "--input-type=module", "-e", text]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    first, again = run(code), run(code)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    arm, *rest = first.stdout.splitlines()
    assert arm in ("A", "B")
    assert rest == ["{ id: 1, reward: 1, in_time: true }"]
    refused = run(code.replace('"visit 7301"', '"form 1"'))
    assert refused.returncode == 1
    assert "The Idempotency-Key belongs to another request" in refused.stderr
    assert server.stop()[0] == 0
    with ai.Trial.open(path) as trial:
        assert (trial.verify().rounds, trial.status().pending) == (1, 0)
