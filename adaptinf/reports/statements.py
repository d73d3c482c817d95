"""What the rows of a log, or its sums, say against it and what it states, whatever method is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims import Finding, contradictions, said
from adaptinf.claims.logs import statements as log_claims
from adaptinf.inference.results.log_facts import copies_told
from adaptinf.inference.validity.profile import profile_of

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums


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
        return self.profile.context_followed(log_claims.FOLLOWED)


def log_cautions(log: AdaptiveLog | Sums) -> list[str]:
    """What speaks against a log and its statements; nothing where nothing does, or nothing could be asked."""
    facts = StatementFacts(profile_of(log))
    stated = contradictions(said(log_claims.STATED, facts, "assumes"))
    return [*copies_told(log), *stated, *said(log_claims.STATED, facts, "caution")]
