"""Commands of the command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adaptinf.cli.entry import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; give back exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(str(stop.code))
        return code, *capsys.readouterr()

    return call
