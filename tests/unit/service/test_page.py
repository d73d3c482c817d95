"""The pages on the service: their tables, and their clients in JavaScript and shell, which run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from served import trial_at
from test_server import Process

import adaptinf as ai
from adaptinf.service import problems, roles
from adaptinf.service.monitoring.webhooks import Message, signed
from adaptinf.service.pages import views
from adaptinf.service.settings import Alarms, settings_from

THEORY = Path(__file__).parents[3] / "docs" / "theory"
PAGE = (THEORY / "trial_service.md").read_text(encoding="utf-8")
CLIENTS = (THEORY / "trial_clients.md").read_text(encoding="utf-8")


def test_tables_are_those_of_the_code() -> None:
    assert roles.table() in PAGE
    assert problems.table() in PAGE
    assert views.table() in PAGE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_javascript_client(path: Path) -> None:
    (code,) = re.findall(r"^```js\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 30
    tokens, server = tokens_at(path), Process(path)

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


def tokens_at(path: Path) -> dict[str, str]:
    with trial_at(path) as trial:
        return {name: trial.add_token(name.lower()).text for name in ("ASSIGNER", "RECORDER")}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_shell_client_and_its_retries(path: Path) -> None:
    (code,) = re.findall(r"^```bash\n(.*?)^```", CLIENTS, re.MULTILINE | re.DOTALL)
    tokens, server = tokens_at(path), Process(path)

    def started(text: str) -> subprocess.Popen[str]:
        environment = {**os.environ, **tokens, "TRIAL": server.address}
        return subprocess.Popen(["bash", "-c", text], env=environment, stdout=subprocess.PIPE, text=True)

    def run(text: str) -> tuple[int, str]:
        process = started(text)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    first = run(code)
    assert first == run(code)
    arm, outcome = first[1].splitlines()
    assert (json.loads(arm)["round"], json.loads(outcome)) == (1, {"id": 1, "reward": 1.0, "in_time": True})
    status, told = run(code.replace('"visit 7301"', '"form 1"').replace("&& echo", "|| exit $?"))
    assert (status, json.loads(told)["code"]) == (22, "key-reused")
    port = int(server.address.rpartition(":")[2])
    server.kill()
    waiting = started(code.replace("participant 1", "participant 2").replace("visit 7301", "visit 7302"))
    time.sleep(0.5)
    server = Process(path, port=port)
    out, _ = waiting.communicate(timeout=120)
    assert json.loads(out.splitlines()[0])["round"] == 2
    server.stop()
    with ai.Trial.open(path) as trial:
        assert (trial.verify().rounds, trial.status().pending) == (2, 1)


def test_the_configuration_on_the_page(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", CLIENTS, re.MULTILINE | re.DOTALL)
    file = tmp_path / "service.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    found = settings_from(file).libreclinica
    assert found is not None
    assert (found.study, found.context) == ("S_HEART", "question1")


def test_the_webhook_on_the_page(tmp_path: Path) -> None:
    alarms, hooks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "ca.pem").touch()
    file = tmp_path / "service.toml"
    file.write_text(alarms + hooks.replace("office-ca.pem", str(tmp_path / "ca.pem")), encoding="utf-8")
    file.chmod(0o600)
    found = settings_from(file)
    assert found.alarms == Alarms(60.0, 45.0, 1.0)
    ((head, body),) = re.findall(r"^POST /trial\n(.*?)\n\n(.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    headers = dict(line.split(": ") for line in head.splitlines())
    message = Message(1, headers["webhook-id"], body.encode())
    assert signed(found.webhooks[0].secret, message, int(headers["webhook-timestamp"])) == headers
