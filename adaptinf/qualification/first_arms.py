"""The first arms of each compiled design at a seed, and how often each arm is then chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from adaptinf import designs
from adaptinf.designs import Design
from adaptinf.errors import AdaptinfWarning
from adaptinf.qualification.rows import Known
from adaptinf.simulation import environments
from adaptinf.simulation.environment import Environment

SEED, FIRST = 1, 40
_FEATURES = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
_SOURCE = "recorded when this version was made, from designs compared with slow versions of their formulas"
_PLACES: Mapping[str, Callable[[], Environment]] = {
    "two": lambda: environments.BernoulliArms([0.3, 0.6]),
    "three": lambda: environments.BernoulliArms([0.3, 0.5, 0.7]),
    "five": lambda: environments.BernoulliArms([0.2, 0.4, 0.5, 0.6, 0.8]),
    "groups": lambda: environments.FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]]),
    "smooth": lambda: environments.SmoothArms(n_arms=2, dimension=1),
    "vectors": lambda: environments.LinearArms(
        [[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli"
    ),
    "shared": lambda: environments.LinearArms(
        [[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli", shared=True
    ),
}
_DESIGNS: Mapping[str, tuple[Callable[[], Design], str, int]] = {
    "Uniform": (designs.Uniform, "three", 200),
    "PermutedBlocks": (designs.PermutedBlocks, "two", 200),
    "DBCD": (designs.DBCD, "two", 200),
    "ERADE": (designs.ERADE, "two", 200),
    "PlayTheWinner": (designs.PlayTheWinner, "two", 200),
    "EpsilonGreedy": (lambda: designs.EpsilonGreedy(exploration=0.2), "three", 200),
    "Thompson": (lambda: designs.Thompson(floor=0.1), "three", 200),
    "TopTwoThompson": (designs.TopTwoThompson, "three", 200),
    "ExplorationSampling": (designs.ExplorationSampling, "three", 200),
    "UCB": (designs.UCB, "three", 200),
    "KLUCB": (designs.KLUCB, "three", 200),
    "PrivateUCB": (lambda: designs.PrivateUCB(epsilon=2.0), "three", 200),
    "SuccessiveElimination": (designs.SuccessiveElimination, "three", 900),
    "PrivateSuccessiveElimination": (
        lambda: designs.PrivateSuccessiveElimination(epsilon=9.0, beta=0.9),
        "two",
        3_000,
    ),
    "Mixture": (lambda: designs.Mixture(designs.UCB(), exploration=0.3), "three", 200),
    "ConSE": (designs.ConSE, "groups", 300),
    "DPConSE": (lambda: designs.DPConSE(epsilon=4.0), "groups", 300),
    "LinUCB": (designs.LinUCB, "vectors", 200),
    "LinPriv": (lambda: designs.LinPriv(epsilon=5.0, dimension=2), "vectors", 200),
    "LDPBandit": (lambda: designs.LDPBandit(epsilon=8.0), "smooth", 200),
    "ABSE": (designs.ABSE, "smooth", 200),
    "LDPLinear": (lambda: designs.LDPLinear(epsilon=4.0), "shared", 200),
    "SequentialHalving": (designs.SequentialHalving, "five", 200),
    "ODLinBAI": (lambda: designs.ODLinBAI(features=_FEATURES), "five", 200),
    "DPBAI": (lambda: designs.DPBAI(epsilon=2.0, features=_FEATURES), "five", 200),
    "DPBAIGauss": (lambda: designs.DPBAIGauss(epsilon=2.0, delta=1e-3, features=_FEATURES), "five", 200),
    "DPOD": (lambda: designs.DPOD(epsilon=2.0, features=_FEATURES), "five", 200),
}


def first_arms(name: str) -> str:
    """The first arms of a design, and the number of rounds with each arm."""
    design, place, horizon = _DESIGNS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        log = design().run(_PLACES[place](), horizon, rng=SEED)
    actions = log.arrays.action
    counts = np.bincount(actions, minlength=log.n_arms)
    return f"{''.join(map(str, actions[:FIRST]))}; {', '.join(map(str, counts))}"


def design_tests() -> Iterator[Known]:
    """One test for each design."""
    for name, (_, _, horizon) in _DESIGNS.items():
        what = f"{name}: first {FIRST} arms at seed {SEED}; rounds with each arm out of {horizon:,}"
        yield Known("Designs", what, _SOURCE, partial(first_arms, name), _ARMS[name])


_ARMS: Mapping[str, str] = {
    "Uniform": "0201111100112021111112010121102001121110; 54, 81, 65",
    "PermutedBlocks": "0101100100111010100101010110001101011010; 100, 100",
    "DBCD": "0101100100111011111101000110001001011110; 90, 110",
    "ERADE": "0101101010101010101111010110001011101011; 89, 111",
    "PlayTheWinner": "0101111100111111111111010111101001111110; 53, 147",
    "EpsilonGreedy": "2010000001000000000000222222222022222222; 27, 8, 165",
    "Thompson": "0212222210222222222222122222222022222222; 13, 15, 172",
    "TopTwoThompson": "0212211210112121221112011221112012122221; 17, 76, 107",
    "ExplorationSampling": "0212111200112121221112011221112012122221; 14, 80, 106",
    "UCB": "0120222120222202112222222000122222022211; 21, 26, 153",
    "KLUCB": "0120222222222202222222222222222212222222; 6, 4, 190",
    "PrivateUCB": "0121020210001022222011112222220000000201; 40, 57, 103",
    "SuccessiveElimination": "0120120120120120120120120120120120120120; 125, 388, 387",
    "PrivateSuccessiveElimination": "0101010101010101010101010101010101010101; 370, 2630",
    "Mixture": "2010222012102222122210112210222222120222; 17, 31, 152",
    "ConSE": "0101010110000101001111000001000000001010; 148, 152",
    "DPConSE": "0101010110000101001111000001000000001010; 161, 139",
    "LinUCB": "0100000110100111100100000100000011010000; 134, 66",
    "LinPriv": "0000000000000000111111111111110011000101; 91, 109",
    "LDPBandit": "1001101001001111110011111101110001111111; 86, 114",
    "ABSE": "1010101001111010110000111110111111110101; 94, 106",
    "LDPLinear": "0101010101010101010101010101010101010101; 57, 143",
    "SequentialHalving": "0000000000000111111111111122222222222223; 13, 35, 13, 68, 71",
    "ODLinBAI": "0000000000000000000000000000000000000000; 99, 0, 101, 0, 0",
    "DPBAI": "0000000000000000000000000000000000000000; 99, 0, 101, 0, 0",
    "DPBAIGauss": "0000000000000000000000000000000000000000; 99, 0, 101, 0, 0",
    "DPOD": "0000000000000000000000000000000000000000; 99, 0, 101, 0, 0",
}
