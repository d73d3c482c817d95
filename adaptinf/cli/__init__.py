"""The command line: ``adaptinf demo``, ``validate``, ``analyze``, ``convert`` and ``trial``."""

from adaptinf.cli.entry import main

__all__ = ["main"]
