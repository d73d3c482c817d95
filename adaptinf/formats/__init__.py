"""Logs in other formats: bandit libraries, experiment platforms, clinical data sets."""

from adaptinf.formats.adam import read_adam
from adaptinf.formats.dsjson import read_dsjson
from adaptinf.formats.obd import read_open_bandit
from adaptinf.formats.platforms.eppo import read_eppo
from adaptinf.formats.platforms.evidential import read_evidential
from adaptinf.formats.platforms.growthbook import read_growthbook
from adaptinf.formats.platforms.mrt import read_mrt
from adaptinf.formats.platforms.statsig import read_statsig
from adaptinf.formats.platforms.tensorzero import read_tensorzero
from adaptinf.formats.streaming import convert
from adaptinf.formats.vw_text import read_vw

__all__ = [
    "convert",
    "read_adam",
    "read_dsjson",
    "read_eppo",
    "read_evidential",
    "read_growthbook",
    "read_mrt",
    "read_open_bandit",
    "read_statsig",
    "read_tensorzero",
    "read_vw",
]


def __dir__() -> list[str]:
    return sorted(__all__)
