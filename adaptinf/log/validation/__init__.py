"""Validation of a user's frame: all that is found wrong with it is found before one error is raised."""

from adaptinf.log.validation.check import CheckedLog, check_frame
from adaptinf.log.validation.columns import Label, label_array
from adaptinf.log.validation.gaps import arrays_of, incomplete
from adaptinf.log.validation.metadata import METADATA, RELEASE_COLUMNS, Metadata
from adaptinf.log.validation.records import DesignRecord, IncompleteArrays, LogArrays
from adaptinf.log.validation.roles import CANONICAL, LATER, columns_by_role

__all__ = [
    "CANONICAL",
    "LATER",
    "METADATA",
    "RELEASE_COLUMNS",
    "CheckedLog",
    "DesignRecord",
    "IncompleteArrays",
    "Label",
    "LogArrays",
    "Metadata",
    "arrays_of",
    "check_frame",
    "columns_by_role",
    "incomplete",
    "label_array",
]
