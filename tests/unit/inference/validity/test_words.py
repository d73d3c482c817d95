"""Nothing is decided by the wording of a text: with every sentence scrambled, all decisions are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("decisions.py")


def decisions(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_labels_defaults_refusals_and_tables_do_not_hang_on_words() -> None:
    plain, scrambled = decisions(), decisions("scrambled")
    assert scrambled.pop("sentences") > 600
    assert plain.pop("sentences") == 0
    words = scrambled.pop("words")
    assert "zqx" in words
    assert "zqx" not in plain.pop("words")
    assert len(plain) > 150
    assert {value["decision"] for value in plain.values()} >= {"InvalidForLog", "asymptotic", "not valid"}
    assert scrambled == plain
