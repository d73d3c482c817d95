"""The process that serves: one line when it listens, a graceful end, TLS or this machine alone, kills."""

from __future__ import annotations

import argparse
import datetime
import gc
import ipaddress
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from served import trial_at

import adaptinf as ai
from adaptinf.cli import main, serve_commands
from adaptinf.service import server
from adaptinf.service.server import Log, Server, loopback

ROLES = ("assigner", "recorder", "monitor")
HEADERS = 2.0
IMPATIENT = (
    f"from adaptinf.service import server; server.HEADERS = {HEADERS}; from adaptinf.cli import main; main()"
)


class Process:
    """`adaptinf trial serve` of a file, on a port of its own."""

    def __init__(
        self, path: Path, *options: str, port: int = 0, program: tuple[str, ...] = ("-m", "adaptinf")
    ) -> None:
        command = [
            sys.executable,
            *program,
            "trial",
            "serve",
            str(path),
            "--port",
            str(port),
            *options,
        ]
        # Nobody reads the access log: it must not stop the service.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], 120.0)[0]:
            self.kill()
            pytest.fail("the server did not say where it listens within 120 s")
        self.line = self.process.stdout.readline().decode().strip()
        self.address = self.line.rpartition(" ")[2]

    def stop(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGTERM)
        out, log = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), log.decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def tokens(path: Path) -> dict[str, str]:
    with trial_at(path) as trial:
        return {role: trial.add_token(role).text for role in ROLES}


def headers(tokens: dict[str, str], role: str, key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {tokens[role]}", "idempotency-key": key}


def test_it_says_where_it_listens_and_ends_gracefully(path: Path, tokens: dict[str, str]) -> None:
    server = Process(path)
    assert server.line == f"serving {path} at {server.address}"
    assert server.address.startswith("http://127.0.0.1:")
    with httpx2.Client(base_url=server.address) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        sent = {"json": {"unit": "p1"}, "headers": headers(tokens, "assigner", "k1")}
        assert client.post("/v1/assignments", **sent).json()["round"] == 1
        code, out, log = server.stop()  # the connection is still open
    assert (code, out) == (0, "")
    lines = [json.loads(line) for line in log.splitlines()]
    assert [(line["path"], line["status"], line["token"]) for line in lines] == [
        ("/healthz", 200, None),
        ("/v1/assignments", 200, 1),
    ]
    with ai.Trial.open(path) as trial:
        assert trial.verify().rounds == 1


@pytest.mark.slow
def test_two_servers_on_one_trial(path: Path, tokens: dict[str, str]) -> None:
    servers = [Process(path), Process(path)]
    with ThreadPoolExecutor(4) as pool:

        def send(number: int) -> Any:
            return httpx2.post(
                f"{servers[number % 2].address}/v1/assignments",
                json={"unit": f"p{number // 2}"},
                headers=headers(tokens, "assigner", f"k{number // 2}"),
                timeout=60,
            ).json()

        answers = list(pool.map(send, range(40)))
    assert answers[::2] == answers[1::2]
    assert sorted(one["id"] for one in answers[::2]) == list(range(1, 21))
    assert [server.stop()[0] for server in servers] == [0, 0]
    with ai.Trial.open(path) as trial:
        assert trial.verify().rounds == 20


def certificate(folder: Path) -> tuple[Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), True)
        .sign(key, hashes.SHA256())
    )
    places = folder / "cert.pem", folder / "key.pem"
    places[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    places[1].write_bytes(content)
    return places


@pytest.mark.slow
def test_tls(path: Path, tokens: dict[str, str], tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    server = Process(path, "--host", "0.0.0.0", "--certificate", str(cert), "--private-key", str(key))
    port = server.address.rpartition(":")[2]
    assert server.address == f"https://0.0.0.0:{port}"
    context = ssl.create_default_context(cafile=str(cert))
    answer = httpx2.get(f"https://127.0.0.1:{port}/healthz", verify=context)
    assert answer.json() == {"status": "ok"}
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(f"http://127.0.0.1:{port}/healthz")
    assert server.stop()[0] == 0


REFUSED = [
    (("--host", "0.0.0.0"), "other machines can reach 0.0.0.0, so tokens and names need TLS"),
    (("--host", "trial.example"), "other machines can reach trial.example"),
    (("--certificate", "c.pem"), "certificate and private_key belong together"),
    (
        ("--certificate", "none.pem", "--private-key", "none.pem"),
        "none.pem cannot be read: the file does not exist",
    ),
    (("--port", "70000"), "port must be from 0 to 65,535, got 70000"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_cannot_be_served_is_told(
    path: Path,
    tokens: dict[str, str],
    options: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trial", "serve", str(path), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_an_address_in_use_is_told(
    path: Path, tokens: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    server = Process(path)
    port = server.address.rpartition(":")[2]
    assert main(["trial", "serve", str(path), "--port", port]) == 2
    assert f"127.0.0.1:{port} cannot be used: another program uses it" in capsys.readouterr().err
    assert server.stop()[0] == 0


def test_no_password_is_printed(path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    said = argparse.Namespace(
        file="postgresql://ann:secret@host/db",
        host="127.0.0.1",
        port=0,
        certificate=None,
        private_key=None,
        configuration=None,
        workers=1,
    )
    monkeypatch.setattr(server, "serve", lambda *given: given[5]("http://127.0.0.1:1"))
    with trial_at(path) as trial:
        assert serve_commands.serve_trial(trial, said) == 0
    assert capsys.readouterr().out == "serving postgresql://host/db at http://127.0.0.1:1\n"


def test_loopback_addresses() -> None:
    hosts = ("127.0.0.1", "127.9.9.9", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1", "example.org", "")
    assert [loopback(host) for host in hosts] == [True] * 4 + [False] * 5


def test_tokens_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial_at(path).close()
    assert main(["trial", "token", str(path), "--role", "assigner", "--days", "30", "--by", "Dr. Ames"]) == 0
    told = capsys.readouterr()
    assert len(told.out.strip()) == 43
    assert told.err.startswith("token 1: assigner, until ")
    assert main(["trial", "token", str(path), "--revoke", "1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["id"], found["role"], found["revoked"] is None) == (1, "assigner", False)
    assert set(found) == {"id", "role", "issued", "expires", "revoked", "site"}
    assert main(["trial", "token", str(path), "--revoke", "2"]) == 2
    assert "there is no token 2" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["trial", "token", str(path), "--role", "monitor", "--revoke", "1"])
    assert "not both" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["trial", "token", str(path), "--role", "boss"])


def test_a_log_that_nobody_reads_loses_lines_and_stops_nothing() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    kept = [log.line("x" * 1_000) for _ in range(30_000)]
    assert kept[0]
    assert not kept[-1]
    log.close()
    os.close(reader)


def answered(client: socket.socket, whole: bytes) -> None:
    """Ask whether the service is well, and read its answer."""
    client.sendall(whole)
    told = b""
    while not told.endswith(b'{"status":"ok"}'):
        told += client.recv(2**16) or b"closed"
    assert told.startswith(b"HTTP/1.1 200")


def closed_after(port: int, *sent: bytes) -> tuple[float, bytes]:
    """Seconds until a connection is closed that sends some parts, a second apart, and the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60.0) as client:
        begun, told, waiting = time.monotonic(), b"", list(sent)
        client.settimeout(1.0)
        while True:
            if waiting:
                client.sendall(waiting.pop(0))
            try:
                more = client.recv(2**16)
            except TimeoutError:
                continue
            except ConnectionError:
                more = b""
            if not more:
                return time.monotonic() - begun, told
            told += more


@pytest.mark.slow
def test_a_connection_that_does_not_ask_is_closed(path: Path, tokens: dict[str, str]) -> None:
    """Nothing, half a request, and one that comes a byte a second; one that asked may wait."""
    running = Process(path, program=("-c", IMPATIENT))
    port = int(running.address.rpartition(":")[2])
    whole = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    attacks = [
        (),
        (whole[:-4],),
        tuple(bytes([one]) for one in whole),
        (whole, *(bytes([one]) for one in whole)),
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as client, ThreadPoolExecutor(4) as pool:
        answered(client, whole)
        found = list(pool.map(lambda sent: closed_after(port, *sent), attacks))
        answered(client, whole)  # 75 s are allowed between requests.
    assert [told for _, told in found[:3]] == [b"", b"", b""]
    assert found[3][1].count(b"HTTP/1.1 200") == 1
    assert all(HEADERS - 0.5 < seconds < HEADERS + 5.0 for seconds, _ in found), found
    assert running.stop()[0] == 0


@pytest.mark.slow
def test_killed_servers_lose_nothing(path: Path, tmp_path: Path) -> None:
    """Servers are killed in the middle of requests of 16 clients, who send each until it is answered."""
    people, kills, rng = 500, 3, np.random.default_rng(11)
    with ai.Trial.create(path, ai.designs.Thompson(floor=0.1), ["A", "B"], horizon=people) as trial:
        tokens = {role: trial.add_token(role).text for role in ROLES}
    address, done, client = ["http://127.0.0.1:9"], threading.Event(), httpx2.Client(timeout=20)

    def until_answered(place: str, body: Any, role: str, key: str) -> Any:
        while True:
            try:
                sent = headers(tokens, role, key)
                answer = client.post(f"{address[0]}{place}", json=body, headers=sent)
                if answer.status_code == 200:
                    return answer.json()
                assert answer.status_code == 503, answer.text
            except httpx2.TransportError:
                done.wait(0.2)

    def pair(number: int) -> tuple[Any, Any]:
        first = until_answered("/v1/assignments", {"unit": f"p{number}"}, "assigner", f"k{number}")
        reward = {"decision": first["id"], "reward": number % 2}
        return first, until_answered("/v1/outcomes", reward, "recorder", f"r{number}")

    killed: list[int] = []

    def served() -> None:
        for _ in range(kills):
            server = Process(path)
            address[0] = server.address
            done.wait(float(rng.uniform(0.1, 0.6)))
            killed.append(int(not done.is_set()))
            server.kill()
        server = Process(path)
        address[0] = server.address
        done.wait(300.0)
        server.stop()

    keeper = threading.Thread(target=served)
    keeper.start()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(pair, range(people)))
    done.set()
    keeper.join(60.0)
    client.close()
    assert sum(killed) >= 3
    assert sorted(first["id"] for first, _ in answers) == list(range(1, people + 1))
    with ai.Trial.open(path) as trial:
        status = trial.verify()
        assert (status.rounds, status.pending, status.rows) == (people, 0, 1 + len(ROLES) + 2 * people)
        for number, (first, _) in enumerate(answers):
            again = trial.assign(f"p{number}", key=f"k{number}")
            assert (again.id, again.arm) == (first["id"], first["arm"])
        log = trial.log()
        assert log.arrays.reward[[first["id"] - 1 for first, _ in answers]].tolist() == [
            float(number % 2) for number in range(people)
        ]


@pytest.mark.slow
def test_a_trial_with_a_key_is_served_with_it(path: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    ai.Trial.make_key(key)
    with trial_at(path, key_file=key) as trial:
        tokens = {role: trial.add_token(role).text for role in ROLES}
    server = Process(path, "--key-file", str(key))
    with httpx2.Client(base_url=server.address) as client:
        headed = headers(tokens, "assigner", "a1")
        assert client.post("/v1/assignments", json={"unit": "p1"}, headers=headed).json()["id"] == 1
        answer = client.post("/v1/assignments", json={"unit": "p2"}, headers={"authorization": "Bearer no"})
        assert answer.status_code == 401
    assert server.stop()[0] == 0
    assert main(["trial", "serve", str(path), "--port", "0"]) == 2
    with ai.Trial.open(path, key_file=key) as trial:
        assert trial.status().rounds == 1


def test_the_garbage_collector_skips_what_lives_until_the_end():
    with Server.capture_signals(argparse.Namespace(_stop=None)):
        gc.collect()
        assert gc.get_count()[2] == 0
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1_000
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1
    assert gc.get_freeze_count() == 0
    assert len(gc.get_objects()) > 10_000
