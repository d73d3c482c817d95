"""Logs in other people's formats: Open Bandit Dataset folders, VW's dsjson, CDISC ADaM data sets."""

from adaptinf.formats.adam import read_adam
from adaptinf.formats.dsjson import read_dsjson
from adaptinf.formats.obd import read_open_bandit
from adaptinf.formats.streaming import convert

__all__ = ["convert", "read_adam", "read_dsjson", "read_open_bandit"]


def __dir__() -> list[str]:
    return sorted(__all__)
