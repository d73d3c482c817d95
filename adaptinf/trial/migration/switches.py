"""Rows from which on another version decides."""

from __future__ import annotations

from typing import Any

from adaptinf.parameters import refuse
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.migration.versions import DIFFERING, MIGRATED, VERSIONS, installed
from adaptinf.trial.operator_actions import act_problems


def migrated(rounds: int, differing: int, reason: Any, by: Any) -> Entry:
    """The entry that lets the installed version decide."""
    told = {VERSIONS: installed(), "rounds": rounds, DIFFERING: differing}
    return {"kind": MIGRATED, **told, "reason": reason, "by": by}


def migrated_again(said: Entry, rounds: int) -> Entry:
    """The entry of such a row, whichever version wrote it, if it follows from the rows before it."""
    refuse(MIGRATED, act_problems(said["reason"], said["by"]))
    versions = {name: str(said[VERSIONS][name]) for name in installed()}
    return {**migrated(rounds, max(0, int(said[DIFFERING])), said["reason"], said["by"]), VERSIONS: versions}
