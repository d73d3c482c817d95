"""Where contexts and rewards come from: synthetic laws, fixed potential rewards, resampled real data."""

from adaptinf.simulation.auxiliary import AuxiliaryLog
from adaptinf.simulation.classification import Classification
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.given import Replay, Tableau
from adaptinf.simulation.linear import LinearArms
from adaptinf.simulation.scaling import UnitCube
from adaptinf.simulation.smooth import SmoothArms
from adaptinf.simulation.synthetic import BernoulliArms, FiniteContext, NormalArms, UniformArms

__all__ = [
    "AuxiliaryLog",
    "BernoulliArms",
    "Classification",
    "Environment",
    "FiniteContext",
    "LinearArms",
    "NormalArms",
    "Replay",
    "SmoothArms",
    "Tableau",
    "UniformArms",
    "UnitCube",
]
