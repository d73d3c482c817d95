"""Corrections for adaptive collection: max-information and bounds on the bias."""

from adaptinf.inference.corrections.arm_bias import bias_bound
from adaptinf.inference.corrections.information import (
    Correction,
    correct_pvalues,
    corrected_level,
    max_information,
)
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.corrections.prediction_bias import (
    LinearBias,
    LinearBiasBound,
    linear_bias,
    linear_bias_bound,
)

__all__ = [
    "Correction",
    "LinearBias",
    "LinearBiasBound",
    "bias_bound",
    "correct_pvalues",
    "corrected_level",
    "correction_for",
    "linear_bias",
    "linear_bias_bound",
    "max_information",
]
