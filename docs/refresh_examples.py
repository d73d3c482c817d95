"""Run the examples of a page and write what they print below them.

    python docs/refresh_examples.py README.md docs/quickstart.md

A fenced block of Python, or of one ``adaptinf`` command, may be followed by a block of text: its output. The
blocks of a page share their names and run in an empty folder. A test demands that nothing is left to refresh.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from adaptinf.cli.entry import main

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and content of each fenced block."""
    return _FENCED.findall(page)


def refreshed(page: str) -> str:
    """Page with the outputs that its examples have now.

    Raises
    ------
    RuntimeError
        If a command fails, or something is printed that the page has no block of text for.
    """
    names: dict[str, Any] = {}
    output = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal output
        language, content = match.groups()
        if language == "text" and output:
            content, output = output, ""
            return f"```text\n{content}```"
        if output:
            raise RuntimeError(f"no block of text shows this output:\n{output}")
        output = _output(language, content, names)
        return match.group()

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = _FENCED.sub(replace, page)
    if output:
        raise RuntimeError(f"no block of text shows this output:\n{output}")
    return text


def _output(language: str, content: str, names: dict[str, Any]) -> str:
    """What a block prints; nothing if it is not an example."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if language == "python":
            exec(compile(content, "example", "exec"), names)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")  # nobody looks at them
        elif language == "bash" and content.startswith("adaptinf ") and main(shlex.split(content)[1:]):
            raise RuntimeError(f"this command failed:\n{content}")
    return printed.getvalue()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
