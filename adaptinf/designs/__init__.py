"""Adaptive designs, one file per family.

Parameters out of range raise a single `ParameterError` that lists them all.
"""

from adaptinf.designs.arms.biased_coin import DBCD, ERADE, PermutedBlocks
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.arms.kl_ucb import KLUCB
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.designs.arms.posterior import ExplorationSampling, Thompson, TopTwoThompson
from adaptinf.designs.arms.ucb import UCB, PrivateUCB
from adaptinf.designs.arms.uniform import EpsilonGreedy, Uniform
from adaptinf.designs.base import Design, Needs
from adaptinf.designs.best_arm.arm_collections import OptimalDesign, max_det, optimal_design
from adaptinf.designs.best_arm.fixed_budget import SequentialHalving
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss, ODLinBAI
from adaptinf.designs.contextual.conse import ConSE
from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_bands import PredictionBands, prediction_bands
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.designs.function_design import FunctionDesign
from adaptinf.designs.local.bins import LDPBandit, bin_sums
from adaptinf.designs.local.cube_designs import ABSE
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.designs.mixture import Mixture
from adaptinf.designs.run_results import Replications
from adaptinf.designs.stopping.stopping_results import StoppingReplications, StoppingResult
from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS
from adaptinf.log import DesignTraits, Floor, Stability
from adaptinf.sessions import Decision, Outcome, Session

__all__ = [
    "ABSE",
    "DBCD",
    "DPBAI",
    "DPNAS",
    "DPOD",
    "ERADE",
    "KLUCB",
    "NAS",
    "UCB",
    "ConSE",
    "DPBAIGauss",
    "DPConSE",
    "Decision",
    "Design",
    "DesignTraits",
    "EpsilonGreedy",
    "ExplorationSampling",
    "Floor",
    "FunctionDesign",
    "LDPBandit",
    "LDPLinear",
    "LinPriv",
    "LinUCB",
    "Mixture",
    "Needs",
    "ODLinBAI",
    "OptimalDesign",
    "Outcome",
    "PermutedBlocks",
    "PlayTheWinner",
    "PredictionBands",
    "PrivateSuccessiveElimination",
    "PrivateUCB",
    "Replications",
    "SequentialHalving",
    "Session",
    "Stability",
    "StoppingReplications",
    "StoppingResult",
    "SuccessiveElimination",
    "Thompson",
    "TopTwoThompson",
    "Uniform",
    "bin_sums",
    "max_det",
    "optimal_design",
    "prediction_bands",
]


def __dir__() -> list[str]:
    return sorted(__all__)
