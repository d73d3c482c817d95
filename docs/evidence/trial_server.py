"""A trial in PostgreSQL whose clients are killed and whose server is killed and restarted: makes a page.

The server and the harness are those of the tests. It needs the programs of a PostgreSQL server, such as those
of Debian's package postgresql, and runs a server of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import evidence
import numpy as np

import adaptinf as ai
from adaptinf.errors import FileError
from adaptinf.trial import requests

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from crashes import entries, in_child  # noqa: E402
from postgres_server import Database, programs, server  # noqa: E402

SEED = 20261128
COMMAND = "python docs/evidence/trial_server.py"
CLIENTS, KILLS, RESTARTS, TIMED = 50, 200, 20, 300
QUICK = {"clients": 4, "kills": 6, "restarts": 2, "timed": 20}
EVERY = 200
"""Rows from one snapshot to the next."""
DESIGN = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.2)
NAME = "Mixture(PrivateUCB(epsilon=1), exploration=0.2)"
HORIZON = 1_000_000


def known(file: Path) -> dict[str, Any]:
    """The answers that a client has had, by key."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return dict(map(json.loads, lines))


def sent(trial: ai.Trial, key: str, ids: dict[str, int]) -> Any:
    """The answer to the request of a key, which names a participant and what it is about."""
    kind, who = key.split(" ", 1)
    if kind == "assign":
        told = trial.assign(who, key=key)
        return [told.id, told.arm]
    return trial.record(ids[who], float(len(who) % 2), key=key).in_time


def client(path: Database, number: int, folder: Path, life: int) -> None:
    """Send requests until there is a file named stop; each answer is kept before the next request.

    A request that failed is sent again with its key, as its error says; answers are asked for again.
    """
    requests.EVERY = EVERY
    rng, file = np.random.default_rng([SEED, number, life]), folder / f"{number}.answers"
    answers = known(file)
    ids = {key.split(" ", 1)[1]: answer[0] for key, answer in answers.items() if key.startswith("assign")}
    kept = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    failures = os.open(folder / f"{number}.failures", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    trial, waiting = None, [f"{kind} {number}-{len(ids) - 1}" for kind in ("record",) if ids]
    while not (folder / "stop").exists():
        if not waiting:
            waiting = [f"{kind} {number}-{len(ids)}" for kind in ("record", "assign")]
        again = answers and rng.random() < 0.3
        key = str(rng.choice(list(answers))) if again else waiting[-1]
        try:
            trial = trial or ai.Trial.open(path)
            answer = json.loads(json.dumps(sent(trial, key, ids)))
        except FileError as error:
            os.write(failures, f"{error.reason}\n".encode())
            time.sleep(0.3)
            continue
        if key in answers:
            assert answers[key] == answer, (key, answer)
        else:
            os.write(kept, f"{json.dumps([key, answer])}\n".encode())
            answers[key] = answer
        if key.startswith("assign"):
            ids[key.split(" ", 1)[1]] = answer[0]
        if key == waiting[-1]:
            waiting.pop()


def disturbed(path: Database, folder: Path, sizes: dict[str, int]) -> int:
    """Let clients work, kill some and start others, kill the server too; how many clients failed."""
    rng, lives = np.random.default_rng(SEED), Counter[int]()

    def begun(number: int) -> int:
        lives[number] += 1
        return in_child(lambda: client(path, number, folder, lives[number]))

    children = {number: begun(number) for number in range(sizes["clients"])}
    acts = ["kill"] * sizes["kills"] + ["restart"] * sizes["restarts"]
    failed = 0
    for act in rng.permutation(acts).tolist():
        time.sleep(float(rng.exponential(0.7)))
        if act == "restart":
            path.server.kill()
            continue
        number = int(rng.choice(list(children)))
        os.kill(children[number], signal.SIGKILL)
        status = os.waitpid(children[number], 0)[1]
        failed += not os.WIFSIGNALED(status)
        children[number] = begun(number)
    time.sleep(1.0)
    (folder / "stop").touch()
    return failed + sum(os.waitpid(child, 0)[1] != 0 for child in children.values())


def found(path: Database, folder: Path, clients: int) -> dict[str, int]:
    """What the journal holds, beside what the clients were told."""
    rows = entries(path)
    answers = {
        key: answer
        for number in range(clients)
        for key, answer in known(folder / f"{number}.answers").items()
    }
    stored = {row["key"]: row for row in rows if row["kind"] in ("assign", "record")}
    told = {
        key: [row["round"], row["arm"]] if row["kind"] == "assign" else True for key, row in stored.items()
    }
    rounds = [row["round"] for row in rows if row["kind"] == "assign"]
    names = [row["node"] for row in rows if row["kind"] == "node"]
    keyed = sum(row["kind"] in ("assign", "record") for row in rows)
    with ai.Trial.open(path) as trial:
        status = trial.verify()
        findings = trial.audit_noise().findings
    assert not findings, findings
    assert status.rows == len(rows)
    return {
        "answers": len(answers),
        "lost": sum(key not in stored for key in answers),
        "changed": sum(key in told and answer not in (told[key], False) for key, answer in answers.items()),
        "twice": keyed - len(stored),
        "gaps": sum(one != number for number, one in enumerate(rounds, 1)),
        "nodes": len(names),
        "again": len(names) - len(set(names)),
        "rows": len(rows),
    }


def seconds(place: Any, count: int) -> tuple[float, float]:
    """Median milliseconds of a request of one client, and of its processor, with outcomes at once."""
    walls, works = [], []
    with ai.Trial.create(place, ai.designs.Thompson(floor=0.1), ["a", "b"], horizon=count + 20) as trial:
        for number in range(count + 20):
            wall, work = time.perf_counter(), time.process_time()
            told = trial.assign(f"unit {number}", key=f"a{number}")
            trial.record(told.id, 1.0, key=f"r{number}")
            walls.append((time.perf_counter() - wall) / 2.0)
            works.append((time.process_time() - work) / 2.0)
    return 1e3 * median(walls[20:]), 1e3 * median(works[20:])


def page(folder: Path, sizes: dict[str, int], command: str) -> str:
    """The page: what was done, and what was left of it."""
    path, warm = server().database(), folder / "warm.db"
    for place in (path, warm):
        ai.Trial.create(place, DESIGN, ["a", "b"], horizon=HORIZON, outcome_window=0).close()
    with ai.Trial.open(warm) as trial:  # what is compiled and loaded here, no client has to load
        for number in range(3):
            sent(trial, f"assign {number}", {})
    begun = time.perf_counter()
    failed = disturbed(path, folder, sizes)
    took = time.perf_counter() - begun
    left = found(path, folder, sizes["clients"])
    lines = [line for file in folder.glob("*.failures") for line in file.read_text().splitlines()]
    errors = "\n".join(f"| {reason} | {count:,} |" for reason, count in Counter(lines).most_common())
    served, filed = seconds(server().database(), sizes["timed"]), seconds(folder / "trial.db", sizes["timed"])
    version = str(server().ask("SHOW server_version")[0][0]).partition(" ")[0]
    return f"""# Trials on a server: killed clients, killed servers

Command: `{command}`. Seed: {SEED}, for kills; the coins of the trial are new in every run. Date:
{evidence.stamp()}.

| | number |
| --- | ---: |
| answers that were lost | {left["lost"]} |
| answers that differ from what is stored | {left["changed"]} |
| requests that were stored twice | {left["twice"]} |
| rounds out of order | {left["gaps"]} |
| noise nodes with two values | {left["again"]} |
| clients that failed | {failed} |

## What was done

{sizes["clients"]} processes simultaneously sent requests to one trial of {NAME} in PostgreSQL {version}. Each
assigned participants and recorded their outcomes, and kept each answer in a file before the next request; in
three of ten cases, it repeated an earlier request, whose answer had to be the same. In {took:,.0f} s,
{sizes["kills"]} of them were killed (`kill -9`) at random times, and others continued in their place, and the
server was killed (`pg_ctl stop -m immediate`) and started again {sizes["restarts"]} times. A client whose
request failed repeated it with its key. In the end, there were {left["answers"]:,} answers and
{left["rows"]:,} rows, {left["nodes"]:,} of which contain noise. Every decision was recomputed from them
(`verify`), and the tests of the noise found nothing (`audit_noise`). The server's data were in memory, so
nothing here tests power loss.

Clients received the following errors:

| error | times |
| --- | ---: |
{errors}

## Speed

The table shows the time of one client's requests in milliseconds, on a machine that was also doing other
work.

| database | until the answer | of the client's processor |
| --- | ---: | ---: |
| PostgreSQL, on this machine | {served[0]:.2f} | {served[1]:.2f} |
| SQLite | {filed[0]:.2f} | {filed[1]:.2f} |
"""


def main() -> None:
    """Make the page."""
    parser = evidence.parser(__doc__)
    full = {"clients": CLIENTS, "kills": KILLS, "restarts": RESTARTS, "timed": TIMED}
    for name, size in full.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    options = parser.parse_args()
    if programs() is None:
        raise SystemExit("PostgreSQL is not installed")
    sizes = QUICK if options.quick else {name: getattr(options, name) for name in full}
    given = [f"--{name} {size}" for name, size in sizes.items() if size != full[name]]
    with tempfile.TemporaryDirectory() as folder:
        text = page(Path(folder), sizes, " ".join([COMMAND, *given]))
    evidence.publish(text, __file__, options)
    table = text[text.index("| ---") : text.index("## What")].splitlines()[1:]
    for line in filter(None, table):
        if not line.endswith("| 0 |"):
            raise SystemExit(f"OFF: {line}")


if __name__ == "__main__":
    main()
