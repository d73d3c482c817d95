"""The sums in `choices`, each of which is computed in one compiled pass."""

from __future__ import annotations

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray


@compiled
def add_choices(
    action: IntArray, every: FloatArray, pieces: FloatArray, stretches: FloatArray, inverse: FloatArray
) -> None:
    """Fill choices, propensities and variances by size of the propensity and by time, and inverses.

    Shapes: action (T,), every (T, K), pieces (P, K, 3), stretches (S, K, 3), inverse (K, 4). The last three
    must contain zeros.
    """
    rounds, arms = every.shape
    several, spans = pieces.shape[0], stretches.shape[0]
    for t in range(rounds):
        stretch = t * spans // rounds
        for k in range(arms):
            e = every[t, k]
            piece = min(int(e * several), several - 1)
            variance = e * (1.0 - e)
            pieces[piece, k, 1] += e
            pieces[piece, k, 2] += variance
            stretches[stretch, k, 1] += e
            stretches[stretch, k, 2] += variance
            if e > 0.0:
                inverse[k, 0] += 1.0
                inverse[k, 1] += 1.0 / e
                inverse[k, 2] = max(inverse[k, 2], 1.0 / e)
        chosen = action[t]
        own = every[t, chosen]
        pieces[min(int(own * several), several - 1), chosen, 0] += 1.0
        stretches[stretch, chosen, 0] += 1.0
        inverse[chosen, 3] += 1.0 / own


@compiled
def add_groups(action: IntArray, every: FloatArray, group: IntArray, found: FloatArray) -> None:
    """Fill choices, propensities and variances by group.

    Shapes: action, group (T,), every (T, K), found (G, K, 3), which must contain zeros.
    """
    for t in range(every.shape[0]):
        for k in range(every.shape[1]):
            e = every[t, k]
            found[group[t], k, 1] += e
            found[group[t], k, 2] += e * (1.0 - e)
        found[group[t], action[t], 0] += 1.0


@compiled
def add_chosen(action: IntArray, own: FloatArray, table: FloatArray, state: FloatArray) -> None:
    """Fill sums over the rounds in which each arm was chosen, and count rounds in which it was possible.

    Shapes: action, own (T,), table (T, K), or (0, 0) if only arms with propensity 1 exclude others, state (K,
    6). The columns of `state` are the sums of 1 / own and of its square, the number of rounds, the smallest
    value of own, which starts at 1, the number of certain rounds, and the number of possible rounds so far.
    """
    sure = 0.0
    for t in range(action.shape[0]):
        chosen, e = action[t], own[t]
        inverse = 1.0 / e
        state[chosen, 0] += inverse
        state[chosen, 1] += inverse * inverse
        state[chosen, 3] = min(state[chosen, 3], e)
        if table.shape[0] > 0:
            for k in range(table.shape[1]):
                if table[t, k] > 0.0:
                    state[k, 5] += 1.0
            state[chosen, 2] = state[chosen, 5]
        else:
            if e >= 1.0:
                sure += 1.0
                state[chosen, 4] += 1.0
            # In rounds in which another arm had propensity 1, this arm was not possible.
            state[chosen, 2] = t + 1.0 - sure + state[chosen, 4]


@compiled
def add_trends(
    action: IntArray,
    reward: FloatArray,
    time: FloatArray,
    middle: float,
    scale: float,
    found: FloatArray,
) -> None:
    """Fill the rounds, mean times and mean rewards of each arm, and sums of slope terms and their squares.

    Shapes: action, reward (n,), time (n,), or (0,) for consecutive rounds, found (5, K), which must contain
    zeros. `middle` is subtracted from rewards, and the differences are divided by `scale`.
    """
    rounds, even = action.shape[0], time.shape[0] == 0
    for t in range(rounds):
        arm = action[t]
        found[0, arm] += 1.0
        found[1, arm] += (t + 0.5) / rounds - 0.5 if even else time[t]
        found[2, arm] += (reward[t] - middle) / scale
    for arm in range(found.shape[1]):
        if found[0, arm] > 0.0:
            found[1, arm] /= found[0, arm]
            found[2, arm] /= found[0, arm]
    for t in range(rounds):
        arm = action[t]
        moment = (t + 0.5) / rounds - 0.5 if even else time[t]
        term = (moment - found[1, arm]) * ((reward[t] - middle) / scale - found[2, arm])
        found[3, arm] += term
        found[4, arm] += term * term
