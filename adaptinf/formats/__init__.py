"""Logs in other people's formats: bandit libraries, experiment platforms, clinical data sets."""

from adaptinf.formats.adam import read_adam
from adaptinf.formats.dsjson import read_dsjson
from adaptinf.formats.obd import read_open_bandit
from adaptinf.formats.streaming import convert
from adaptinf.formats.vw_text import read_vw

__all__ = ["convert", "read_adam", "read_dsjson", "read_open_bandit", "read_vw"]


def __dir__() -> list[str]:
    return sorted(__all__)
