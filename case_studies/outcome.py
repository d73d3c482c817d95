"""What a study is told, and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Outcome", "Settings"]


@dataclass(frozen=True)
class Settings:
    """How a study is run.

    Attributes
    ----------
    quick : bool
        Fewer replications, for a check in minutes.
    n_jobs : int
        Worker processes; the numbers are the same for any.
    cache : Path
        Folder for what is fetched or unpacked once; never part of the repository.
    """

    quick: bool
    n_jobs: int
    cache: Path

    def runs(self, full: int, quick: int) -> int:
        """Number of replications."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Outcome:
    """What a study found.

    Attributes
    ----------
    figures : mapping of str to float
        Measured figures, each with a row of the same name in ``expected.toml``.
    tables : mapping of str to DataFrame
        Written as CSV and Markdown under ``tables/``.
    pictures : mapping of str to Figure
        Written as PNG and SVG under ``figures/``.
    """

    figures: Mapping[str, float]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    pictures: Mapping[str, Figure] = field(default_factory=dict)
