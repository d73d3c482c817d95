"""Checks of arguments that several estimators share."""

from __future__ import annotations

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog

__all__ = ["require_log"]


def require_log(subject: str, log: object) -> None:
    """Refuse what is not a log.

    Parameters
    ----------
    subject : str
        What is being built, for the message.
    log : object
        What was given.

    Raises
    ------
    ParameterError
        If it is not an `AdaptiveLog`.

    Examples
    --------
    >>> require_log("ArmMeans", [1, 0, 1])
    Traceback (most recent call last):
        ...
    adaptinf.errors.ParameterError: ArmMeans: log must be an AdaptiveLog, got list
    """
    if not isinstance(log, AdaptiveLog):
        raise ParameterError(subject, [f"log must be an AdaptiveLog, got {type(log).__name__}"])
