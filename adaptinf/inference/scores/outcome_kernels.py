"""The compiled pass of running ridge regressions."""

from __future__ import annotations

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray


@compiled
def ridge_pass(
    action: IntArray,
    reward: FloatArray,
    context: FloatArray,
    codes: IntArray,
    inverse: FloatArray,
    coefficient: FloatArray,
    direction: FloatArray,
    predicted: FloatArray,
) -> None:
    """Fill `predicted`, shape (T, k), round by round; the other arrays are the state of the regressions."""
    dimension = context.shape[1]
    for t in range(action.shape[0]):
        for j in range(codes.shape[0]):
            value = 0.0
            for a in range(dimension):
                value += coefficient[j, a] * context[t, a]
            predicted[t, j] = value
        for j in range(codes.shape[0]):
            if codes[j] != action[t]:
                continue
            scale = 1.0
            for a in range(dimension):
                direction[a] = 0.0
                for b in range(dimension):
                    direction[a] += inverse[j, a, b] * context[t, b]
                scale += direction[a] * context[t, a]
            error = (reward[t] - predicted[t, j]) / scale
            for a in range(dimension):
                coefficient[j, a] += direction[a] * error
                for b in range(dimension):
                    inverse[j, a, b] -= direction[a] * direction[b] / scale
