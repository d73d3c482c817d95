"""Where designs and inference meet: audits of privacy, calibration of plans, exact and simulated tests."""

from adaptinf.audit.bias import SimulatedBias, simulate_bias
from adaptinf.audit.calibration import Coverage, coverage, coverage_from_tallies
from adaptinf.audit.characteristics import OperatingCharacteristics, operating_characteristics
from adaptinf.audit.decorrelation import DecorrelationRidge, decorrelation_ridge
from adaptinf.audit.engine import AnalysisError
from adaptinf.audit.exact import exact, exact_test
from adaptinf.audit.exact_law import ExactLaw
from adaptinf.audit.exact_results import ExactTest
from adaptinf.audit.exact_states import ExactBias
from adaptinf.audit.power import Power, power
from adaptinf.audit.privacy import epsilon_lower_bound, neighbouring_inputs, privacy_scores
from adaptinf.audit.privacy_results import EpsilonLowerBound
from adaptinf.audit.randomization import randomization_test
from adaptinf.audit.randomization_inversion import randomization_interval
from adaptinf.audit.randomization_results import (
    RandomizationInterval,
    RandomizationTest,
    WeightedRandomizationTest,
)
from adaptinf.audit.randomization_weighted import weighted_randomization_test
from adaptinf.audit.results import Study
from adaptinf.audit.stability import CountStability, stability
from adaptinf.audit.study import study
from adaptinf.audit.truth import true_value

__all__ = [
    "AnalysisError",
    "CountStability",
    "Coverage",
    "DecorrelationRidge",
    "EpsilonLowerBound",
    "ExactBias",
    "ExactLaw",
    "ExactTest",
    "OperatingCharacteristics",
    "Power",
    "RandomizationInterval",
    "RandomizationTest",
    "SimulatedBias",
    "Study",
    "WeightedRandomizationTest",
    "coverage",
    "coverage_from_tallies",
    "decorrelation_ridge",
    "epsilon_lower_bound",
    "exact",
    "exact_test",
    "neighbouring_inputs",
    "operating_characteristics",
    "power",
    "privacy_scores",
    "randomization_interval",
    "randomization_test",
    "simulate_bias",
    "stability",
    "study",
    "true_value",
    "weighted_randomization_test",
]
