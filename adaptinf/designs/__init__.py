"""Adaptive designs, one file a family."""

from adaptinf.designs.base import Design
from adaptinf.designs.best_arm import DPBAI, DPBAIGauss
from adaptinf.designs.best_arm_halving import SequentialHalving
from adaptinf.designs.best_arm_optimal import DPOD, ODLinBAI
from adaptinf.designs.conse import ConSE
from adaptinf.designs.dp_conse import DPConSE
from adaptinf.designs.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.ldp_linear import LDPLinear
from adaptinf.designs.linear import LinPriv, LinUCB
from adaptinf.designs.linear_bands import PredictionBands, prediction_bands
from adaptinf.designs.max_det import max_det
from adaptinf.designs.mixture import Mixture
from adaptinf.designs.nonparametric import LDPBandit
from adaptinf.designs.nonparametric_abse import ABSE
from adaptinf.designs.nonparametric_sums import bin_sums
from adaptinf.designs.optimal_design import OptimalDesign, optimal_design
from adaptinf.designs.play_the_winner import PlayTheWinner
from adaptinf.designs.replications import Replications
from adaptinf.designs.stopping import DPNAS, NAS
from adaptinf.designs.stopping_results import StoppingReplications, StoppingResult
from adaptinf.designs.thompson import Thompson
from adaptinf.designs.ucb import UCB, PrivateUCB
from adaptinf.designs.uniform import EpsilonGreedy, Uniform

__all__ = [
    "ABSE",
    "DPBAI",
    "DPNAS",
    "DPOD",
    "NAS",
    "UCB",
    "ConSE",
    "DPBAIGauss",
    "DPConSE",
    "Design",
    "EpsilonGreedy",
    "LDPBandit",
    "LDPLinear",
    "LinPriv",
    "LinUCB",
    "Mixture",
    "ODLinBAI",
    "OptimalDesign",
    "PlayTheWinner",
    "PredictionBands",
    "PrivateSuccessiveElimination",
    "PrivateUCB",
    "Replications",
    "SequentialHalving",
    "StoppingReplications",
    "StoppingResult",
    "SuccessiveElimination",
    "Thompson",
    "Uniform",
    "bin_sums",
    "max_det",
    "optimal_design",
    "prediction_bands",
]
