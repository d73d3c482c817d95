"""Designs one step at a time: arriving participants, decisions, recorded outcomes, and the log."""

from adaptinf.sessions.session import Session
from adaptinf.sessions.session_rounds import Decision, Outcome
from adaptinf.sessions.session_setup import open_session

__all__ = ["Decision", "Outcome", "Session", "open_session"]
