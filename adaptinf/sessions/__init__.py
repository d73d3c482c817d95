"""Designs one step at a time: participants who arrive, decisions, outcomes that are told, and the log."""

from adaptinf.sessions.opening import open_session
from adaptinf.sessions.requests import Decision, Outcome
from adaptinf.sessions.session import Session

__all__ = ["Decision", "Outcome", "Session", "open_session"]
