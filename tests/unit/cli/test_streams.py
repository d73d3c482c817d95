"""What the command line writes to streams of other encodings, and to none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "adaptinf.cli", "analyze", "log.csv", "--action", "arm", "--reward", "y")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{arm},{value}\n" for value in (0.2, 0.5, 0.9) for arm in ("caf\u00e9", "\U0001f600"))
    (tmp_path / "log.csv").write_text(f"arm,y\n{rows}", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_json_is_json_in_every_encoding(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    out = subprocess.run(
        [*COMMAND, "--format", "json"], cwd=folder, env=environment, capture_output=True, check=True
    )
    terms = {row["term"] for row in json.loads(out.stdout.decode("ascii"))["results"]}
    assert terms == {"caf\u00e9", "\U0001f600"}


@pytest.mark.slow
def test_standard_output_may_be_closed(folder: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "--output", "out.txt"]
    run = subprocess.run(closed, cwd=folder, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "adaptinf analyze: wrote out.txt (text)\n")
    assert "ArmMeans Results" in (folder / "out.txt").read_text(encoding="utf-8")
