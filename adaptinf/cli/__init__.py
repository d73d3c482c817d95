"""The command line: ``adaptinf demo``, ``validate``, ``analyze`` and ``convert``."""

from adaptinf.cli.entry import main

__all__ = ["main"]
