"""Validation of a user's frame: all that is found wrong with it is found before one error is raised."""

from adaptinf.log.validation.check import CheckedLog, arrays_of, check_frame, incomplete
from adaptinf.log.validation.column_roles import CANONICAL, LATER, columns_by_role
from adaptinf.log.validation.frame_columns import Label, label_array
from adaptinf.log.validation.metadata import (
    METADATA,
    RELEASE_COLUMNS,
    DesignRecord,
    IncompleteArrays,
    LogArrays,
    Metadata,
)

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
