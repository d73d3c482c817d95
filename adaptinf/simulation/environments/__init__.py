"""Sources of contexts and rewards: synthetic distributions, fixed potential rewards, resampled real data."""

from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments.classification import Classification
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog, UnitCube
from adaptinf.simulation.environments.function_environment import FunctionEnvironment
from adaptinf.simulation.environments.given import Replay, Tableau
from adaptinf.simulation.environments.synthetic import (
    BernoulliArms,
    DriftingArms,
    FiniteContext,
    HeavyTailedArms,
    NormalArms,
    RepeatedUnits,
    UniformArms,
)
from adaptinf.simulation.environments.vector_arms import LinearArms, SmoothArms

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
