"""Whether the time of an answer tells the arm: a permutation test, and the same with a planted delay."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from scipy import stats

import adaptinf as ai

COMMAND = "python docs/evidence/service_timing.py"
SEED, REQUESTS, PERMUTATIONS, LEVEL, DELAY = 20261128, 20_000, 4_999, 0.001, 0.0005
QUICK, WARM = 300, 100
ARMS = ("A", "B")


def serve(path: str, delay: float, port: Any) -> None:
    """A service; one arm is answered later where a delay is planted."""
    from adaptinf.service.server import serve as served
    from adaptinf.trial.replay import Replay

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the access log
    assign = Replay.assign_new

    def delayed(self: Replay, *given: Any) -> Any:
        answer = assign(self, *given)
        if delay and answer[0].arm == ARMS[1]:
            end = time.perf_counter() + delay
            while time.perf_counter() < end:
                pass
        return answer

    Replay.assign_new = delayed  # type: ignore[method-assign]
    with ai.Trial.open(path) as trial:
        served(trial, "127.0.0.1", 0, None, None, lambda where: port.send(int(where.rpartition(":")[2])))


class Connection:
    """A connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._token = token

    def assigned(self, number: int) -> tuple[str, float]:
        """The arm of a new participant, and the seconds until the answer was complete."""
        content = json.dumps({"unit": f"p{number:06d}"})
        head = (
            "POST /v1/assignments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self._token}\r\nIdempotency-Key: k{number:06d}\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        begun = time.perf_counter()
        self._socket.sendall((head + content).encode())
        whole = b""
        while not whole.endswith(b"}"):
            part = self._socket.recv(65_536)
            if not part:
                raise SystemExit("OFF: the connection was closed")
            whole += part
        took = time.perf_counter() - begun
        return str(json.loads(whole.partition(b"\r\n\r\n")[2])["arm"]), took


def measured(folder: Path, requests: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Whether each request got the second arm, and its seconds: two services, asked in turn."""
    found: dict[str, list[tuple[str, float]]] = {}
    waiting, processes = {}, []
    for name, delay in (("as it is", 0.0), ("planted", DELAY)):
        path = str(folder / f"{name.replace(' ', '_')}.db")
        with ai.Trial.create(path, ai.designs.Uniform(), ARMS, requests + WARM) as trial:
            token = trial.add_token("assigner").text
        ours, theirs = mp.Pipe()
        process = mp.get_context("spawn").Process(target=serve, args=(path, delay, theirs), daemon=True)
        process.start()
        processes.append(process)
        waiting[name], found[name] = (ours.recv(), token), []
    # A service ends connections that send nothing, so none begins before all services have started.
    services = {name: Connection(*place) for name, place in waiting.items()}
    for number in range(requests + WARM):
        for name, service in services.items():
            found[name].append(service.assigned(number))
    for process in processes:
        process.terminate()
        process.join()
    return {
        name: (
            np.array([arm == ARMS[1] for arm, _ in times[WARM:]]),
            np.array([took for _, took in times[WARM:]]),
        )
        for name, times in found.items()
    }


def p_value(second: np.ndarray, seconds: np.ndarray, rng: np.random.Generator) -> float:
    """Two-sided, from permutations of the arms, of the difference of mean ranks."""
    # A fair coin that knows nothing of time chose each arm, so every permutation is as probable.
    ranks = stats.rankdata(seconds)
    ranks -= ranks.mean()
    found = abs(ranks[second].sum())
    beyond = sum(abs(ranks[rng.permutation(second)].sum()) >= found for _ in range(PERMUTATIONS))
    return (1 + beyond) / (PERMUTATIONS + 1)


def page(requests: int) -> str:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), requests)
    rows, values = [], {}
    for name, (second, seconds) in found.items():
        values[name] = p_value(second, seconds, np.random.default_rng(SEED))
        medians = [float(np.median(seconds[second == arm])) * 1e3 for arm in (False, True)]
        rows.append(
            f"| {name} | {len(second):,} | {medians[0]:.3f} | {medians[1]:.3f} | {values[name]:.4f} |"
        )
    told = "do not reveal" if values["as it is"] > LEVEL else "**reveal**"
    seen = "is detected" if values["planted"] <= LEVEL else "**is not detected**"
    return f"""# Whether the time of an answer tells the arm

Command: `{COMMAND}`.
Seed: {SEED}, for the permutations; the coins of trials are new in every run. Date: {evidence.stamp()}.

One client requests assignments from two services in turn, over persistent connections; each trial has two
arms and the design Uniform. The second service waits {1e3 * DELAY:g} ms longer before it returns one of the
arms. The difference between the arms in the mean rank of the response time is compared with its values under
{PERMUTATIONS:,} permutations of the arms.

| service | requests | median of A, ms | median of B, ms | p |
| --- | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

At level {LEVEL:g}, response times {told} the arm, and the planted delay {seen}. The machine has
{os.cpu_count()} cores, and its load was {os.getloadavg()[0]:.1f}.
"""


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    evidence.publish(page(QUICK if options.quick else REQUESTS), __file__, options)


if __name__ == "__main__":
    main()
