"""What became of a damaged input, told apart from what had to become of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oracle import Content, alike, same, seen

from adaptinf.errors import AdaptinfError, AdaptinfWarning

OUTCOMES = ("right", "unseen", "error", "unnamed", "unread", "traceback", "silent")
"""Right: the log of the undamaged input. Unseen: a log, of another value that is as valid. Error: refused.

Unnamed: refused by an error that does not name the file. Unread: refused, and harmless. Traceback: any other
exception, or a warning of another library. Silent: another log than the input is.
"""


@dataclass(frozen=True)
class Case:
    """One damaged input; `damaged` is what it says by the literal reading, None where it must be refused."""

    kind: str
    read: Callable[[], Any]
    intact: Content
    damaged: Content | None
    harmless: bool = False
    names: tuple[str, ...] = ()
    keep: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Verdict:
    """An outcome, and what was said or raised."""

    outcome: str
    told: str = ""


def judge(case: Case) -> Verdict:
    """Read a damaged input and say what became of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", AdaptinfWarning)
            log = case.read()
    except (AdaptinfError, FileNotFoundError) as error:
        if case.harmless:
            return Verdict("unread", str(error))
        named = not case.names or any(name in str(error) for name in case.names)
        return Verdict("error" if named else "unnamed", str(error))
    except Exception as error:
        return Verdict("traceback", f"{type(error).__name__}: {error}")
    content = seen(log)
    if case.harmless:
        return Verdict("right" if case.damaged is not None and same(content, case.damaged) else "silent")
    if same(content, case.intact):
        return Verdict("right")
    if case.damaged is not None and same(content, case.damaged):
        return Verdict("unseen", difference(case.intact, content))
    return Verdict("silent", "must be refused" if case.damaged is None else "read as another log")


UNSEEN = {
    "size": "rows lost or twice, where no column of rounds tells",
    "order": "rows in another order, where no column of rounds tells",
    "action": "another label of an arm",
    "reward": "another reward within its range",
    "propensity": "another probability, where no columns of all arms tell",
    "context": "another value of a context, or labels where the file says text",
    "unit": "another name of a participant",
    "batch": "another batch, where batches still follow each other",
    "round": "another round, where rounds still increase",
    "columns": "a context that an event lacks, or whose column has another name, and is none then",
    "several": "several of these",
}
"""Damage that makes another log that is as good: nothing in the file tells, and a reader cannot either."""


def difference(intact: Content, content: Content) -> str:
    """What is another in the second log: a key of `UNSEEN`."""
    if len(intact["action"]) != len(content["action"]):
        return "size"
    shared = [key for key in intact if key in content]
    if sorted(map(repr, zip(*(intact[key] for key in shared), strict=True))) == sorted(
        map(repr, zip(*(content[key] for key in shared), strict=True))
    ) and any(intact[key] != content[key] for key in shared):
        return "order"
    if set(intact) - {"round"} != set(content) - {"round"}:
        return "columns"
    found = {key.split(" ")[0] for key in shared if not all(map(alike, intact[key], content[key]))}
    return found.pop() if len(found) == 1 else "several"
