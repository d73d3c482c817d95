"""Statements of a report and its pictures about a log and a result, in addition to the table's."""
