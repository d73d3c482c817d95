"""Validation of a user's frame: all problems are collected before one error is raised."""

from adaptinf.log.validation.check import CheckedLog, arrays_of, check_frame, incomplete
from adaptinf.log.validation.column_roles import CANONICAL, LATER, columns_by_role
from adaptinf.log.validation.frame_columns import Label, label_array
from adaptinf.log.validation.grouped_options import (
    OF_AGGREGATES,
    OF_LOGS,
    OF_TABLES,
    group_options,
    nested_options,
)
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
    "OF_AGGREGATES",
    "OF_LOGS",
    "OF_TABLES",
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
    "group_options",
    "incomplete",
    "label_array",
    "nested_options",
]
