"""Where contexts and rewards come from: synthetic laws, fixed potential rewards, resampled real data."""

from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments.auxiliary import AuxiliaryLog
from adaptinf.simulation.environments.classification import Classification
from adaptinf.simulation.environments.fields import DriftingArms, HeavyTailedArms, RepeatedUnits
from adaptinf.simulation.environments.function import FunctionEnvironment
from adaptinf.simulation.environments.given import Replay, Tableau
from adaptinf.simulation.environments.linear import LinearArms
from adaptinf.simulation.environments.scaling import UnitCube
from adaptinf.simulation.environments.smooth import SmoothArms
from adaptinf.simulation.environments.synthetic import BernoulliArms, FiniteContext, NormalArms, UniformArms

__all__ = [
    "AuxiliaryLog",
    "BernoulliArms",
    "Classification",
    "DriftingArms",
    "Environment",
    "FiniteContext",
    "FunctionEnvironment",
    "HeavyTailedArms",
    "LinearArms",
    "NormalArms",
    "RepeatedUnits",
    "Replay",
    "SmoothArms",
    "Tableau",
    "UniformArms",
    "UnitCube",
]


def __dir__() -> list[str]:
    return sorted(__all__)
