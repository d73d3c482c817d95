"""Where designs and inference meet: audits of privacy, calibration of plans, exact and simulated tests."""

from adaptinf.audit.bias.arms import SimulatedBias, simulate_bias
from adaptinf.audit.bias.counts import CountStability, stability
from adaptinf.audit.bias.ridge import DecorrelationRidge, decorrelation_ridge
from adaptinf.audit.binary.intervals import ExactInterval, exact_interval
from adaptinf.audit.binary.results import ExactTest
from adaptinf.audit.binary.states import ExactBias
from adaptinf.audit.binary.tested_law import ExactLaw
from adaptinf.audit.binary.two_arms import exact, exact_test
from adaptinf.audit.planning.calibration import Coverage, coverage, coverage_from_tallies
from adaptinf.audit.planning.characteristics import OperatingCharacteristics, operating_characteristics
from adaptinf.audit.planning.detection import Power, power
from adaptinf.audit.planning.sizes import SampleSize, sample_size
from adaptinf.audit.privacy.audit import epsilon_lower_bound, neighbouring_inputs, privacy_scores
from adaptinf.audit.privacy.coupling.coupled import coupled
from adaptinf.audit.privacy.coupling.results import Coupled, CoupledPair
from adaptinf.audit.privacy.designs import (
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    Replayed,
    audit_trials,
    neighbouring_trials,
)
from adaptinf.audit.privacy.results import EpsilonLowerBound, Finding
from adaptinf.audit.randomization.interval import randomization_interval
from adaptinf.audit.randomization.results import (
    RandomizationInterval,
    RandomizationTest,
    WeightedRandomizationTest,
)
from adaptinf.audit.randomization.retest import randomization_test
from adaptinf.audit.randomization.weighted import weighted_randomization_test
from adaptinf.audit.rerun.filled_propensities import with_propensities
from adaptinf.audit.simulation.analyses import true_value
from adaptinf.audit.simulation.engine import AnalysisError
from adaptinf.audit.studies.results import Study
from adaptinf.audit.studies.runner import study

__all__ = [
    "AnalysisError",
    "AuditTrial",
    "CountStability",
    "Coupled",
    "CoupledPair",
    "Coverage",
    "DecorrelationRidge",
    "EpsilonLowerBound",
    "ExactBias",
    "ExactInterval",
    "ExactLaw",
    "ExactTest",
    "Finding",
    "Neighbours",
    "NodeNoise",
    "NodeUnits",
    "OperatingCharacteristics",
    "Power",
    "RandomizationInterval",
    "RandomizationTest",
    "Replayed",
    "SampleSize",
    "SimulatedBias",
    "Study",
    "WeightedRandomizationTest",
    "audit_trials",
    "coupled",
    "coverage",
    "coverage_from_tallies",
    "decorrelation_ridge",
    "epsilon_lower_bound",
    "exact",
    "exact_interval",
    "exact_test",
    "neighbouring_inputs",
    "neighbouring_trials",
    "operating_characteristics",
    "power",
    "privacy_scores",
    "randomization_interval",
    "randomization_test",
    "sample_size",
    "simulate_bias",
    "stability",
    "study",
    "true_value",
    "weighted_randomization_test",
    "with_propensities",
]


def __dir__() -> list[str]:
    return sorted(__all__)
