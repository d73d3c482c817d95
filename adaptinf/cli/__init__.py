"""The command line: ``adaptinf demo``, ``adaptinf validate`` and ``adaptinf analyze``."""

from adaptinf.cli.entry import main

__all__ = ["main"]
