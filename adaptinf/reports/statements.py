"""What the rows of a log, or its sums, say against what it states itself, whatever method is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims import Finding, contexts, contradictions, said
from adaptinf.claims.logs import statements as claims
from adaptinf.inference.validity.assignment import VISIBLE
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.sums_profile import SumsProfile
from adaptinf.sums import Sums

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog


class StatementFacts:
    """What claims ask of a log's own statements."""

    def __init__(self, profile: LogProfile) -> None:
        self.profile = profile

    @property
    def states_context_free(self) -> bool:
        """Whether it says that contexts had no part."""
        return self.profile.log.context_free is True

    @property
    def contexts_found(self) -> Finding | None:
        """Whether one of them visibly had."""
        found = self.profile.visible_context
        if found is None:
            return None
        visibly = contexts.VISIBLY(context=found, visible=VISIBLE)
        return Finding((claims.FOLLOWED(visibly=visibly),) if found else ())


def log_cautions(log: AdaptiveLog | Sums) -> list[str]:
    """What speaks against the statements in a log; nothing where nothing does, or nothing could be asked."""
    profile = profile_of(log)
    assert isinstance(profile, SumsProfile) == isinstance(log, Sums)
    facts = StatementFacts(profile)
    return [*contradictions(said(claims.STATED, facts, "assumes")), *said(claims.STATED, facts, "caution")]
