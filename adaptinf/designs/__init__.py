"""Adaptive designs, one file a family."""

from adaptinf.designs.base import Design
from adaptinf.designs.conse import ConSE
from adaptinf.designs.dp_conse import DPConSE
from adaptinf.designs.mixture import Mixture
from adaptinf.designs.replications import Replications
from adaptinf.designs.thompson import Thompson
from adaptinf.designs.ucb import UCB, PrivateUCB
from adaptinf.designs.uniform import EpsilonGreedy, Uniform

__all__ = [
    "UCB",
    "ConSE",
    "DPConSE",
    "Design",
    "EpsilonGreedy",
    "Mixture",
    "PrivateUCB",
    "Replications",
    "Thompson",
    "Uniform",
]
