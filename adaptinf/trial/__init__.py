"""Trials with real participants, stored in a file so that nothing is lost if they are interrupted."""

from adaptinf.trial.custody.retention import Retention
from adaptinf.trial.custody.trail import Trail
from adaptinf.trial.live_trial import Trial, TrialStatus
from adaptinf.trial.migration.migrations import Migration
from adaptinf.trial.migration.standing_rows import Difference
from adaptinf.trial.operator_actions import Act
from adaptinf.trial.served_rows import Token
from adaptinf.trial.supplies.kit_codes import kit_codes
from adaptinf.trial.trial_noise import NoiseAudit

__all__ = [
    "Act",
    "Difference",
    "Migration",
    "NoiseAudit",
    "Retention",
    "Token",
    "Trail",
    "Trial",
    "TrialStatus",
    "kit_codes",
]
