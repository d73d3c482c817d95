"""The data behind a report: their name, and a digest by which they can be recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adaptinf.claims.reports import answer as claims
from adaptinf.files import file_digest, told
from adaptinf.sums import Sums

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.claims import Claim
    from adaptinf.log import AdaptiveLog

_SHOWN = 12
"""Number of characters of a digest shown next to the answer."""


class _Digest:
    """SHA-256 of the text written to it."""

    def __init__(self) -> None:
        self.whole = hashlib.sha256()

    def write(self, text: str) -> None:
        """Add more text."""
        self.whole.update(text.encode())


def frame_digest(frame: pd.DataFrame) -> str:
    r"""SHA-256 of the output of ``frame.to_csv(index=False, lineterminator="\n")``, in UTF-8.

    Examples
    --------
    >>> import pandas as pd
    >>> from adaptinf.reports.data_digest import frame_digest
    >>> frame_digest(pd.DataFrame({"arm": ["a", "b"], "y": [0, 1]}))[:16]
    'e56f20aab53839bb'
    """
    digest = _Digest()
    frame.to_csv(digest, index=False, lineterminator="\n")  # type: ignore[call-overload]
    return digest.whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Source:
    """Data by their name and digest."""

    claim: Claim
    name: str
    digest: str

    @property
    def told(self) -> str:
        """With the complete digest."""
        return self.claim(name=self.name, digest=self.digest)

    @property
    def short(self) -> str:
        """With its first characters."""
        return self.claim(name=self.name, digest=f"{self.digest[:_SHOWN]}...")


def sources_of(log: AdaptiveLog | Sums | None, files: Sequence[Path]) -> list[Source]:
    """Each file from which the data were read, or the data themselves."""
    if files:
        return [Source(claims.NAMED, path.name, _of_file(path)) for path in files]
    if log is None:
        return []
    if isinstance(log, Sums):
        return [Source(claims.SUMMED, "", frame_digest(log.frame))]
    return [Source(claims.ROWS, log.report.source, frame_digest(log.frame))]


def _of_file(path: Path) -> str:
    with told(path, "read"):
        return file_digest(path) or hashlib.sha256(path.read_bytes()).hexdigest()
