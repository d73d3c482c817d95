"""Validation of a user's frame: everything that is wrong with it is found before one error is raised."""

from adaptinf.log.validation.check import CheckedLog, check_frame
from adaptinf.log.validation.columns import Label, label_array
from adaptinf.log.validation.metadata import METADATA, RELEASE_COLUMNS, Metadata
from adaptinf.log.validation.records import DesignRecord, LogArrays
from adaptinf.log.validation.roles import CANONICAL

__all__ = [
    "CANONICAL",
    "METADATA",
    "RELEASE_COLUMNS",
    "CheckedLog",
    "DesignRecord",
    "Label",
    "LogArrays",
    "Metadata",
    "check_frame",
    "label_array",
]
