# PYTHON_ARGCOMPLETE_OK
"""The command line: checks, estimates, plans, reports and live trials without Python."""

from adaptinf.cli.entry import main

__all__ = ["main"]
