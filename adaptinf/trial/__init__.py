"""A design at work on people: trials that are kept in a file and lose nothing, whatever stops."""

from adaptinf.trial.history import Act
from adaptinf.trial.noise import NoiseAudit
from adaptinf.trial.status import TrialStatus
from adaptinf.trial.trial import Trial

__all__ = ["Act", "NoiseAudit", "Trial", "TrialStatus"]
