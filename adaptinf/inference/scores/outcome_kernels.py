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
    order: IntArray,
    known: IntArray,
    inverse: FloatArray,
    coefficient: FloatArray,
    direction: FloatArray,
    predicted: FloatArray,
) -> None:
    """Fill `predicted`, shape (T, k), round by round, from the rewards that are known before each.

    Shapes: order (n,), rounds whose reward is observed in the order in which they became known; known (T,),
    how many of them are before each round. The arrays after these are the state of the regressions.
    """
    dimension, taken = context.shape[1], 0
    for t in range(action.shape[0]):
        while taken < known[t]:
            s = order[taken]
            taken += 1
            for j in range(codes.shape[0]):
                if codes[j] != action[s]:
                    continue
                scale, value = 1.0, 0.0
                for a in range(dimension):
                    direction[a] = 0.0
                    for b in range(dimension):
                        direction[a] += inverse[j, a, b] * context[s, b]
                    scale += direction[a] * context[s, a]
                    value += coefficient[j, a] * context[s, a]
                error = (reward[s] - value) / scale
                for a in range(dimension):
                    coefficient[j, a] += direction[a] * error
                    for b in range(dimension):
                        inverse[j, a, b] -= direction[a] * direction[b] / scale
        for j in range(codes.shape[0]):
            value = 0.0
            for a in range(dimension):
                value += coefficient[j, a] * context[t, a]
            predicted[t, j] = value
