"""Adaptive designs, one file per family.

Parameters out of range raise one `ParameterError` that lists them all.
"""

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.arms.kl_ucb import KLUCB
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.designs.arms.posterior_best_arm import ExplorationSampling, TopTwoThompson
from adaptinf.designs.arms.thompson import Thompson
from adaptinf.designs.arms.ucb import UCB, PrivateUCB
from adaptinf.designs.arms.uniform import EpsilonGreedy, Uniform
from adaptinf.designs.base import Design
from adaptinf.designs.best_arm.determinants import max_det
from adaptinf.designs.best_arm.dp_bai import DPBAI, DPBAIGauss
from adaptinf.designs.best_arm.g_optimal import OptimalDesign, optimal_design
from adaptinf.designs.best_arm.halving import SequentialHalving
from adaptinf.designs.best_arm.optimal import DPOD, ODLinBAI
from adaptinf.designs.conse.epochs import ConSE
from adaptinf.designs.conse.private import DPConSE
from adaptinf.designs.function import FunctionDesign
from adaptinf.designs.linear.bands import PredictionBands, prediction_bands
from adaptinf.designs.linear.models import LinPriv, LinUCB
from adaptinf.designs.local.abse import ABSE
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.linear import LDPLinear
from adaptinf.designs.local.released_sums import bin_sums
from adaptinf.designs.mixture import Mixture
from adaptinf.designs.replications import Replications
from adaptinf.designs.requirements import Needs
from adaptinf.designs.stopping.results import StoppingReplications, StoppingResult
from adaptinf.designs.stopping.rules import DPNAS, NAS
from adaptinf.log import DesignTraits, Floor, Stability
from adaptinf.sessions import Decision, Outcome, Session

__all__ = [
    "ABSE",
    "DPBAI",
    "DPNAS",
    "DPOD",
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
