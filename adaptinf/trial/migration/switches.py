"""Rows of a journal that change the version that decides."""

from __future__ import annotations

from typing import Any

from adaptinf.parameters import refuse
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.migration.versions import DIFFERING, MIGRATED, VERSIONS, installed
from adaptinf.trial.operator_actions import act_problems


def migrated(rounds: int, differing: int, reason: Any, by: Any) -> Entry:
    """The entry that lets the installed version decide from now on."""
    told = {VERSIONS: installed(), "rounds": rounds, DIFFERING: differing}
    return {"kind": MIGRATED, **told, "reason": reason, "by": by}


def migrated_again(said: Entry, rounds: int) -> Entry:
    """The entry of a migration, written by any version, if it follows from the rows before it."""
    refuse(MIGRATED, act_problems(said["reason"], said["by"]))
    # Versions may name other libraries than this one does, but all name their own.
    versions = {"adaptinf": said[VERSIONS]["adaptinf"], **said[VERSIONS]}
    refuse(MIGRATED, [] if all(isinstance(one, str) for one in versions.values()) else ["no versions"])
    return {**migrated(rounds, max(0, int(said[DIFFERING])), said["reason"], said["by"]), VERSIONS: versions}
