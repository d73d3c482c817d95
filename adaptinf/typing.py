"""Type aliases shared by the whole package."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
RandomSource: TypeAlias = int | np.random.SeedSequence | np.random.Generator

Validity: TypeAlias = Literal["exact", "anytime", "asymptotic", "not valid"]
VALIDITY_LABELS: tuple[Validity, ...] = get_args(Validity)
