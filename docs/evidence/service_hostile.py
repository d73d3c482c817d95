"""Generated requests to every call of the service, with the token of each role and without one: makes a page.

They are made by schemathesis from the service's own OpenAPI document. It is not a dependency: it is taken
from the path, or fetched by uv.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import evidence

import adaptinf as ai
from adaptinf.trial.served_rows import ROLES

COMMAND = "python docs/evidence/service_hostile.py"
SEED, VERSION, EXAMPLES, WANTED = 20261128, "4.32.5", 40, 5_000
QUICK_EXAMPLES = 5
DESIGN = ai.designs.Thompson(floor=0.1)


def schemathesis() -> list[str]:
    """The program."""
    found = shutil.which("schemathesis")
    return [found] if found else ["uvx", "--from", f"schemathesis=={VERSION}", "schemathesis"]


def tried(port: int, token: str | None, examples: int, folder: str) -> bool:
    """Whether no check failed for the requests of one role; the program keeps files in a folder."""
    command = [*schemathesis(), "run", f"http://127.0.0.1:{port}/openapi.json", "--seed", str(SEED)]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--no-color"]
    command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"]
    command[-1] += ",response_schema_conformance,response_headers_conformance"
    command += ["--suppress-health-check", "all", "--generation-database", "none"]
    command += [] if token is None else ["-H", f"Authorization: Bearer {token}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode not in (0, 1):
        raise SystemExit(f"OFF: schemathesis ended with {done.returncode}\n{done.stdout}{done.stderr}")
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0


def page(examples: int, wanted: int) -> str:
    """All figures."""
    rows, total, errors, failed = [], 0, 0, []
    with tempfile.TemporaryDirectory() as name:
        path, log = Path(name, "trial.db"), Path(name, "log")
        with ai.Trial.create(path, DESIGN, ["A", "B"], horizon=1_000_000) as trial:
            tokens = {role: trial.add_token(role).text for role in ROLES}
        served = [sys.executable, "-m", "adaptinf", "trial", "serve", str(path), "--port", "0"]
        with log.open("w") as lines:
            process = subprocess.Popen(served, stdout=subprocess.PIPE, stderr=lines, text=True)
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().rpartition(":")[2])
        seen = 0
        for role in (*ROLES, None):
            right = tried(port, None if role is None else tokens[role], examples, name)
            failed += [] if right else [role or "no token"]
            every = [json.loads(line)["status"] for line in log.read_text().splitlines() if line[:1] == "{"]
            count, seen = Counter(every[seen:]), len(every)
            told = ", ".join(f"{status}: {number:,}" for status, number in sorted(count.items()))
            rows.append(
                f"| {role or 'no token'} | {count.total():,} | {told} | {'none' if right else 'some'} |"
            )
            total += count.total()
            errors += sum(number for status, number in count.items() if status >= 500)
        process.terminate()
        process.wait(60)
        with ai.Trial.open(path) as trial:
            verified = trial.verify().rows
    if total < wanted:
        raise SystemExit(f"OFF: only {total:,} requests")
    return f"""# Whatever is sent to a served trial has one answer

Command: `{COMMAND}`.
Seed: {SEED}, for schemathesis; the coins of the trial are new in every run. Date: {evidence.stamp()}.

schemathesis {VERSION} generates requests from the service's OpenAPI document, both valid and invalid: with
missing, extra and wrongly typed fields, unusual texts and numbers, and wrong methods and headers. No answer
may be a server error, and the status, type, headers and body of every answer must agree with the document.
The counts are taken from the service's access log.

| token | requests | answers by status | failed checks |
| --- | ---: | --- | ---: |
{chr(10).join(rows)}

In total, there were **{total:,}** requests with **{errors}** server errors; failed checks:
{", ".join(failed) or "none"}. The trial, which then had {verified:,} rows, was verified from its first row.
The load of the machine was {os.getloadavg()[0]:.1f}.
"""


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    sizes = (QUICK_EXAMPLES, 0) if options.quick else (EXAMPLES, WANTED)
    evidence.publish(page(*sizes), __file__, options)


if __name__ == "__main__":
    main()
