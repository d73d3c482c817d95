"""Designs combined with inference: privacy audits, calibration of plans, exact and simulated tests."""

from adaptinf.audit.binary.count_states import ExactBias
from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.audit.binary.exact_results import ExactInterval, ExactTest
from adaptinf.audit.binary.log_tests import exact_interval, exact_test
from adaptinf.audit.privacy.coupled_pairs import Coupled, CoupledPair
from adaptinf.audit.privacy.coupled_trials import coupled
from adaptinf.audit.privacy.designs import (
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    Replayed,
    audit_trials,
    neighbouring_trials,
)
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound, neighbouring_inputs, privacy_scores
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound, Finding
from adaptinf.audit.randomization.randomization_intervals import randomization_interval
from adaptinf.audit.randomization.randomization_results import (
    RandomizationInterval,
    RandomizationTest,
    WeightedRandomizationTest,
)
from adaptinf.audit.randomization.randomization_tests import randomization_test, weighted_randomization_test
from adaptinf.audit.rerun.path_propensities import with_propensities
from adaptinf.audit.rerun.simulated_bias import SimulatedBias, simulate_bias
from adaptinf.audit.rerun.simulated_counts import (
    CountStability,
    DecorrelationRidge,
    decorrelation_ridge,
    stability,
)
from adaptinf.audit.simulation.characteristics import OperatingCharacteristics, operating_characteristics
from adaptinf.audit.simulation.engine import AnalysisError, true_value
from adaptinf.audit.simulation.sample_sizes import SampleSize, sample_size
from adaptinf.audit.simulation.simulated_coverage import Coverage, coverage, coverage_from_tallies
from adaptinf.audit.simulation.simulated_power import Power, power
from adaptinf.audit.simulation.study_runs import study
from adaptinf.audit.simulation.study_tables import Study

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
