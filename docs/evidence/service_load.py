"""A served trial under load from Node, beside a service that does nothing: makes a page in three parts.

    python docs/evidence/service_load.py --part sqlite        # about 4 minutes
    python docs/evidence/service_load.py --part postgresql    # the same
    python docs/evidence/service_load.py --part many          # 100,000 requests
    python docs/evidence/service_load.py                      # what is missing, and the page

Parts that were measured before are not measured again: remove their files in the folder for that. It needs
Node, and the programs of a PostgreSQL server, such as those of Debian's packages nodejs and postgresql.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import service as alone

import adaptinf as ai

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from postgres_server import Server, programs  # noqa: E402

COMMAND = "python docs/evidence/service_load.py"
CLIENT = Path(__file__).with_suffix(".mjs")
SECONDS, RATE, REQUESTS = 60.0, 200, 100_000
QUICK = {"seconds": 2.0, "rate": 10, "requests": 300}
SLICES, SHORT = 3, 3
"""Slices in turn with those of the service that does nothing, which are shorter by this factor."""
GAP, CONNECTIONS, CLIENTS, COMMITS, WARM = 500, 512, 48, 150, 3.0
PARTS = ("sqlite", "postgresql", "many")
ADDED, COMMITTED, USED = 20.0, 3.0, {"Thompson": 1.5, "PrivateUCB": 2.0}
"""Most milliseconds beside commits; how many commits; most milliseconds of the processor for a request."""
DESIGNS = {
    "Thompson": ai.designs.Thompson(floor=0.1),
    "PrivateUCB": ai.designs.PrivateUCB(epsilon=1.0),
}
NAMES = {"Thompson": "Thompson(floor=0.1)", "PrivateUCB": "PrivateUCB(epsilon=1)"}
WINDOWS = {"Thompson": None, "PrivateUCB": 1_000}
"""Participants after which an outcome is used, which a private design requires."""
ROLES = ("assigner", "recorder", "monitor")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Service:
    """A service in a process of its own, with those that it started."""

    process: subprocess.Popen[bytes]
    port: int

    def processor(self) -> float:
        """Seconds of processor time of all its processes."""
        return sum(map(_used, _family(self.process.pid)))

    def end(self) -> None:
        """Stop it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(90) != 0:
            raise SystemExit("OFF: the service did not end")


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in _family(int(child)))]


def _used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def served(*options: str) -> Iterator[Service]:
    """`adaptinf trial serve`, whose access log nobody reads."""
    command = [sys.executable, "-m", "adaptinf", "trial", "serve", *options, "--port", "0"]
    found = Service(*alone.started(command))
    try:
        yield found
    finally:
        found.end()


@contextmanager
def nothing() -> Iterator[Service]:
    """The service that does nothing."""
    process, port = alone.started([sys.executable, "-c", alone.IDLE, str(free_port())])
    time.sleep(WARM)
    try:
        yield Service(process, port)
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def sent(service: Service, tokens: dict[str, str], name: str, **load: Any) -> dict[str, Any]:
    """What the client found."""
    given = {
        "port": service.port,
        "tokens": tokens,
        "name": name,
        "gap": GAP,
        "connections": CONNECTIONS,
        **load,
    }
    command = ["node", str(CLIENT)]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"OFF: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def created(place: Any, design: str, horizon: int) -> dict[str, str]:
    """Tokens of a new trial; that a design without coins can be predicted is no news here."""
    warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)
    with ai.Trial.create(
        place, DESIGNS[design], ["A", "B"], horizon, outcome_window=WINDOWS[design]
    ) as trial:
        return {role: trial.add_token(role).text for role in ROLES}


def checked(place: Any, answers: list[dict[str, Any]]) -> dict[str, int]:
    """What the trial contains, which must be what was answered and nothing else."""
    with ai.Trial.open(place) as trial:
        status, log = trial.verify(), trial.log("drop")
        acts = Counter(act.kind for act in trial.history())
    assigned = [one for found in answers for one in found["assigned"]]
    recorded = {decision: reward for found in answers for decision, reward in found["recorded"]}
    arms, units = log.frame["action"].tolist(), log.units.tolist()
    wrong = sum((units[number - 1], arms[number - 1]) != (unit, arm) for unit, number, arm in assigned)
    kept = log.arrays.recorded
    wrong += sum(kept[decision - 1] != reward for decision, reward in recorded.items())
    return {
        "participants": status.rounds,
        "pending": status.pending,
        "assigned": len(assigned),
        "recorded": len(recorded),
        "wrong": int(wrong),
        "tokens": acts["token"],
    }


def held(found: dict[str, int]) -> None:
    """End where anything was lost, changed or added."""
    same = found["participants"] == found["assigned"]
    same &= found["participants"] - found["pending"] == found["recorded"]
    if not same or found["wrong"]:
        raise SystemExit(f"OFF: {found}")


def committed(server: Server | None, folder: Path) -> list[float]:
    """Seconds of bare commits of one row."""
    if server is None:
        place = Path(tempfile.mkdtemp(dir=folder))
        return alone.committed_rows(place)[:COMMITS]
    import psycopg

    with psycopg.connect(str(server.database()), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x text)")
        times = []
        for _ in range(COMMITS):
            begun = time.perf_counter()
            connection.execute("INSERT INTO t VALUES (%s)", ("x" * 600,))
            times.append(time.perf_counter() - begun)
    return times


def loaded(design: str, server: Server | None, folder: Path, sizes: dict[str, Any]) -> dict[str, Any]:
    """One design under load, in slices by turns with the service that does nothing and with bare commits."""
    rate, seconds = sizes["rate"], sizes["seconds"] / SLICES
    place: Any = folder / f"{design}.db" if server is None else server.database()
    tokens = created(place, design, int(rate * (sizes["seconds"] + 3 * WARM)) + 100)
    workers = () if server is None else ("--workers", "2")
    trial, idle, bare, used, idled = [], [], [], 0.0, 0.0
    with served(str(place), *workers) as service, nothing() as other:
        kept = [
            sent(one, tokens, f"warm {number}", rate=min(rate, 20), seconds=WARM)
            for number, one in enumerate((service, other))
        ][:1]
        for number in range(SLICES):
            bare += committed(server, folder)
            before = service.processor()
            trial.append(sent(service, tokens, f"s{number}", rate=rate, seconds=seconds))
            used += service.processor() - before
            before = other.processor()
            idle.append(sent(other, tokens, f"n{number}", rate=rate, seconds=seconds / SHORT))
            idled += other.processor() - before
    held(checked(place, [*kept, *trial]))
    return {
        "design": design,
        "database": "SQLite" if server is None else "PostgreSQL",
        "workers": 1 if server is None else 2,
        "trial": summary(trial, used),
        "nothing": summary(idle, idled),
        "commit": [1e3 * float(np.quantile(bare, level)) for level in (0.5, 0.99)],
    }


def summary(found: list[dict[str, Any]], used: float) -> dict[str, float]:
    """Figures of some slices together."""
    times = np.concatenate([one["times"] for one in found])
    late = np.concatenate([one["late"] for one in found])
    statuses = sum((Counter(one["statuses"]) for one in found), Counter[str]())
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return {
        "requests": int(times.size),
        "refused": int(times.size - statuses["200"]),
        "p50": float(p50),
        "p99": float(p99),
        "longest": float(times.max()),
        "processor": 1e3 * used / times.size,
        "client": float(np.quantile(late, 0.99)),
    }


def many(folder: Path, sizes: dict[str, Any]) -> dict[str, Any]:
    """Requests of all kinds, as fast as they are answered."""
    place, count = folder / "many.db", sizes["requests"]
    tokens = created(place, "Thompson", count)
    with served(str(place)) as service:
        found = sent(service, tokens, "m", requests=count, clients=CLIENTS)
    statuses = Counter(found["statuses"])
    told = checked(place, [found])
    held(told)
    return {
        "requests": statuses.total(),
        "errors": statuses.total() - statuses["200"],
        "seconds": found["seconds"],
        **told,
    }


def measured(part: str, sizes: dict[str, Any]) -> dict[str, Any]:
    """The figures of a part, with date, load and size of the machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if part == "many":
            found: dict[str, Any] = many(folder, sizes)
        else:
            server = Server(on_disk=True) if part == "postgresql" else None
            found = {"rows": [loaded(design, server, folder, sizes) for design in DESIGNS]}
    return {**found, "stamp": evidence.stamp(), "load": os.getloadavg()[0], "sizes": sizes}


def verdict(row: dict[str, Any]) -> str:
    """Whether a row holds, and by what."""
    trial, idle, limit = row["trial"], row["nothing"], USED[row["design"]]
    most = COMMITTED * row["commit"][0] + ADDED
    if trial["refused"]:
        return f"does not hold: {trial['refused']:,} refused"
    if idle["p99"] < ADDED:
        return f"{said(trial['p99'] <= most)}: p99 {trial['p99']:.1f} of at most {most:.1f} ms"
    fits = said(trial["processor"] <= limit)
    told = f"{fits} by processor: {trial['processor']:.2f} of at most {limit:.1f} ms"
    return f"{told}, because the service that does nothing had p99 {idle['p99']:.0f} ms"


def said(well: bool) -> str:
    """A verdict in words."""
    return "holds" if well else "does not hold"


def lines(row: dict[str, Any]) -> list[str]:
    """Lines of the table: the trial, and the service that does nothing."""
    name = NAMES[row["design"]]
    found = []
    for what, one, told in ((name, row["trial"], verdict(row)), ("nothing", row["nothing"], "")):
        counts = [row["database"], str(row["workers"]), what, f"{one['requests']:,}", f"{one['refused']:,}"]
        times = [f"{one['p50']:.1f}", f"{one['p99']:.1f}", f"{one['longest']:.0f}"]
        last = [f"{one['processor']:.2f}", f"{row['commit'][0]:.2f}", told]
        found.append(f"| {' | '.join([*counts, *times, *last])} |")
    return found


def page(found: dict[str, dict[str, Any]], command: str) -> str:
    """The page of all parts."""
    rows = [row for part in PARTS[:2] for row in found[part]["rows"]]
    table = "\n".join(line for row in rows for line in lines(row))
    rate, seconds, last = RATE, found["sqlite"]["sizes"]["seconds"], found["many"]
    well = sum(verdict(row).startswith("holds") for row in rows)
    late = max(row[kind]["client"] for row in rows for kind in ("trial", "nothing"))
    loads = ", ".join(f"{part}: {found[part]['load']:.1f}" for part in PARTS)
    total, errors, wrong, people = (last[name] for name in ("requests", "errors", "wrong", "participants"))
    speed, used = (
        last["requests"] / last["seconds"],
        " or ".join(f"{one:g} ms ({name})" for name, one in USED.items()),
    )
    return f"""# A trial over HTTP under load

Command: `{command}`.
Seed: none, because the coins of trials are new in every run. Date: {found["sqlite"]["stamp"]}.

A client in Node sends {rate} assignments per second for {seconds:g} s at fixed times, whether or not earlier
requests have been answered, over persistent connections. The outcome of each participant is due half a second
after the assignment. Response times are measured from the time at which a request was due. The load is sent
in {SLICES} slices, by turns with the same load on *nothing*, a FastAPI service that answers without doing
anything, and with bare commits of one row. Times are in milliseconds. The processor time is that of the
service alone, per request; the time of a commit is the median.

| database | workers | service | requests | refused | p50 | p99 | longest | processor | commit | verdict |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
{table}

**Criterion**: no request is refused, and p99 is at most the time of {COMMITTED:g} commits plus {ADDED:g} ms.
Response times are judged if a service that does nothing has a p99 below {ADDED:g} ms; otherwise, processor
time is judged: at most {used} per request. If requests have to wait because the machine is busy, more of them
share a commit, so each needs less processor time. The client itself was late by {late:.1f} ms at its 99th
percentile. After each run, the trial was verified from its first row, and contained exactly what had been
answered. Loads for which the criterion is met: **{well} of {len(rows)}**.

## Many requests

Errors in {total:,} requests of {CLIENTS} clients: **{errors}**. Of every ten requests, four were assignments,
four were outcomes, one was for the status and one for events; {speed:,.0f} were answered per second. The
trial in SQLite was then verified. It had {people:,} participants, as many as had received an answer; answers
that differ from what is stored: **{wrong}**.

The machine has {os.cpu_count()} cores, shared by client, service and database. Its load was {loads}.
"""


def main() -> None:
    """Measure a part, or what is missing, and make the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--folder", type=Path, help="where parts are kept; by default build/service_load")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    options = parser.parse_args()
    if programs() is None:
        raise SystemExit("PostgreSQL is not installed")
    whole = {"seconds": options.seconds, "rate": RATE, "requests": options.requests}
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        found = parts(folder, options.part, QUICK if options.quick else whole)
    if options.part is None:
        evidence.publish(page(found, " ".join([COMMAND, *_given(options)])), __file__, options)


def parts(folder: Path, only: str | None, sizes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All parts, or one: as they were measured before, or as they are measured now."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for part in PARTS if only is None else (only,):
        file = folder / f"{part}.json"
        if not file.exists():
            file.write_text(json.dumps(measured(part, sizes)), encoding="utf-8")
        found[part] = json.loads(file.read_text(encoding="utf-8"))
        for row in found[part].get("rows", ()):
            print(f"{row['database']}, {NAMES[row['design']]}: {verdict(row)}", flush=True)
    return found


def _given(options: argparse.Namespace) -> list[str]:
    """Arguments that make the run smaller."""
    full = {"seconds": SECONDS, "requests": REQUESTS}
    return [f"--{name} {value:g}" for name, most in full.items() if (value := getattr(options, name)) != most]


if __name__ == "__main__":
    main()
