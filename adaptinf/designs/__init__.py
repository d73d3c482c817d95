"""Adaptive designs, one file a family."""

from adaptinf.designs.base import Design
from adaptinf.designs.conse import ConSE
from adaptinf.designs.dp_conse import DPConSE
from adaptinf.designs.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.linear import LinPriv, LinUCB
from adaptinf.designs.linear_bands import PredictionBands, prediction_bands
from adaptinf.designs.mixture import Mixture
from adaptinf.designs.replications import Replications
from adaptinf.designs.stopping import DPNAS, NAS
from adaptinf.designs.stopping_results import StoppingReplications, StoppingResult
from adaptinf.designs.thompson import Thompson
from adaptinf.designs.ucb import UCB, PrivateUCB
from adaptinf.designs.uniform import EpsilonGreedy, Uniform

__all__ = [
    "DPNAS",
    "NAS",
    "UCB",
    "ConSE",
    "DPConSE",
    "Design",
    "EpsilonGreedy",
    "LinPriv",
    "LinUCB",
    "Mixture",
    "PredictionBands",
    "PrivateSuccessiveElimination",
    "PrivateUCB",
    "Replications",
    "StoppingReplications",
    "StoppingResult",
    "SuccessiveElimination",
    "Thompson",
    "Uniform",
    "prediction_bands",
]
