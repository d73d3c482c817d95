"""The log, which a design writes and every method of inference reads."""

from adaptinf.log.log import AdaptiveLog
from adaptinf.log.log_reading import read_log
from adaptinf.log.public import PublicLog
from adaptinf.log.report import LogReport, Reading
from adaptinf.log.traits import DesignTraits, Floor, FreshEpochs, Outputs, Stability
from adaptinf.log.validation.metadata import RELEASE_COLUMNS, DesignRecord, LogArrays

__all__ = [
    "RELEASE_COLUMNS",
    "AdaptiveLog",
    "DesignRecord",
    "DesignTraits",
    "Floor",
    "FreshEpochs",
    "LogArrays",
    "LogReport",
    "Outputs",
    "PublicLog",
    "Reading",
    "Stability",
    "read_log",
]
