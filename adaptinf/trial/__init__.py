"""A design at work on people: trials that are kept in a file and lose nothing, whatever stops."""

from adaptinf.trial.live_trial import Trial, TrialStatus
from adaptinf.trial.operator_actions import Act
from adaptinf.trial.trial_noise import NoiseAudit

__all__ = ["Act", "NoiseAudit", "Trial", "TrialStatus"]
