"""The locally private nonparametric bandit: successive elimination in bins refined by noisy reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from adaptinf.designs.local.bins_kernel import LDPTables, ldp_program, released_rows
from adaptinf.designs.local.cube_designs import LocallyPrivate
from adaptinf.designs.run_results import release_columns
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, DesignTraits, Outputs
from adaptinf.parameters import Calibration, NonNegative, OneOf, Positive, Whole
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.typing import FloatArray

_REPORT_SENSITIVITY = 4.0
_WIDTH, _REFINEMENT = 8.0, 0.1
_WEIGHTED = ("weighted_count", "weighted_sum", "weighted_squares")
_NOT_COVERED = (
    "everything but the participant's own arm: bins differ in the arms left, so the arm reveals something "
    "about the context"
)


@dataclass(frozen=True, kw_only=True)
class LDPBandit(LocallyPrivate):
    """Locally private bandit for contexts in the unit cube and rewards in [0, 1].

    Parameters
    ----------
    epsilon : float
        Privacy parameter for a participant's record, that is, context and reward.
    calibration : {"corrected", "published"}
        Radius of the confidence intervals, which determines when arms are dropped and bins are halved. The
        choice of radius does not affect privacy.
    width : float
        Squared number of standard deviations in a radius (corrected), called C in the notes.
    refinement : float
        A bin is halved when one of its radii falls below this multiple of the paper's threshold (corrected).
    check_every : int
        Number of participants between checks of arms and bins. The paper checks after every participant;
        longer gaps are faster, because the noise of a gap is drawn at once.
    axis : {"random", "first"}
        Which of the longest edges of a bin is halved: any of them, as in the paper, or the first.
    max_bins : int
        Maximum number of active bins; once it is reached, bins are no longer halved.
    auxiliary : tuple of AuxiliaryLog
        Logs whose participants report before the trial begins, one log after another, each with its own
        epsilon.

    Raises
    ------
    ParameterError
        If a parameter is out of range (the message lists every problem); when run, if contexts differ between
        arms or may lie outside [0, 1]^d, or rewards may lie outside [0, 1].

    Notes
    -----
    The whole cube is the first bin. Each participant finds the bin of their context and pulls one of its
    remaining arms, chosen uniformly. They then report, *for every active bin and each of its arms*, U =
    1{context in the bin, arm pulled} and V = U times the reward, each with added Laplace noise of scale 4 /
    epsilon. The sums of U and V over the t participants of a bin so far give the estimate f = V / U, with a
    radius r.

    Corrected: r = sqrt(C (64 t / epsilon^2 + U / 4)) / (U - sqrt(32 C t / epsilon^2)) if the denominator is
    positive, and otherwise infinite. An arm is dropped if its f + r lies below another arm's f - r. A bin of
    depth s is halved along one of its longest edges when one of the remaining radii is below refinement times
    2 sqrt(d) 2^(-s/d). The halves begin with the remaining arms and without data.

    Published: r = sqrt(C_n max(t / epsilon^2, U)) / abs(U) with C_n = 2 log2(n) (which the paper gives up to
    constants), refinement 1, intervals that extend 2 r to each side, and no arm dropped before t reaches
    log(n)^2. The published radius ignores the variance of the noise in each sum, 32 t / epsilon^2, so bins
    are halved because of noise.

    Auxiliary participants report in the same way, at the scale of their own epsilon, on the arm recorded in
    their log; arms are dropped and bins halved meanwhile (the jump-start). From then on, f is the ratio of
    weighted sums over sources m, with weights l_m = min(abs(epsilon_m^2 U_m / t_m), 1), or 0 before t_m
    reaches log(n)^2, where n is the size of the largest source. Corrected: r = sqrt(C sum l_m^2 (64 t_m /
    epsilon_m^2 + U_m / 4)) / (sum l_m U_m - sqrt(32 C sum l_m^2 t_m / epsilon_m^2)); published: the paper's
    (28) and (29). The guarantee covers the trial's participants; those of an auxiliary log are covered at the
    epsilon of that log (see `auxiliary_guarantees`).

    Replacing one participant's record changes all U by at most 2 in total (L1), and all V by at most 2: all
    reports of a participant together are locally epsilon-private. Changing only the reward moves one V by at
    most 1, so the guarantee for rewards is epsilon / 4, which max-information uses. Rewards are clipped to
    [0, 1] before they are reported. A participant's arm is not among the outputs: if bins differ in their
    remaining arms, it reveals something about the context, as do the propensities; a log contains both
    because it comes from a simulation.

    The releases of a log are the information that the server has at the end: for each bin that was ever
    active (the group is its number), its corners ``low_x`` and ``high_x``; and for each of its arms
    ``participants``, ``count`` and ``sum``: the number of participants who reported on it, and the sums of
    the noisy U and V. `scale` is the noise scale for each participant; sums contain as many noise draws as
    participants. For intervals (`BinMeans`), the server also weights reports, with weights w fixed before the
    reports arrive: at the end of each stage of a bin's life (when its arms change, it is halved or the trial
    ends), ``weighted_count``, ``weighted_sum`` and ``weighted_squares`` are the sums so far of w U, w V and
    w^2 U, and ``spent`` is the sum of w^2 over participants, at most 1. All of these are computed from the
    same noisy reports. `Replications.released` has ``bins``, ``depth`` and ``dropped`` (number of active
    bins, depth of the smallest, number of arms dropped over all bins), ``decided`` (volume of the bins with
    one arm left) and ``full`` (1 if `max_bins` prevented a bin from being halved).

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.LDPBandit(epsilon=8.0)
    >>> log = design.run(ai.environments.SmoothArms(n_arms=3, dimension=2), horizon=2_000, rng=0)
    >>> print(log.guarantee)
    epsilon = 8, pure, per record, local, anticipating
    >>> print(log.reward_guarantee)
    epsilon = 2, pure, per reward, local, standard
    """

    epsilon: Positive
    calibration: Calibration = "corrected"
    width: Positive = _WIDTH
    refinement: NonNegative = _REFINEMENT
    check_every: Whole = 1
    axis: Annotated[str, OneOf("random", "first")] = "random"
    max_bins: Whole = 1024
    auxiliary: tuple[AuxiliaryLog, ...] = ()

    report_sensitivity: ClassVar[float] = _REPORT_SENSITIVITY
    not_covered: ClassVar[str] = _NOT_COVERED
    outcomes: ClassVar[tuple[str, ...]] = ("bins", "depth", "dropped", "decided", "full")

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on the bin of the cube."""
        epsilons = tuple(float(part.epsilon) for part in self.auxiliary)
        outputs = Outputs(propensities="by-context")
        return DesignTraits(
            uses_context="position", arm_means="by-released-bin", auxiliary=epsilons, outputs=outputs
        )

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if self.calibration == "published" and (self.width, self.refinement) != (_WIDTH, _REFINEMENT):
            problems.append("width and refinement must be omitted: the published radius defines its own")
        return problems

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        tables = self.tables(environment.n_arms, environment.dimension, horizon, recording=recording)
        return ldp_program(tables, self.max_bins)

    def tables(self, n_arms: int, dimension: int, horizon: int, *, recording: bool = False) -> LDPTables:
        """Inputs to the kernels: constants of the radius, and space for recorded values."""
        published = self.calibration == "published"
        logs = [part.log.arrays for part in self.auxiliary]
        sizes = [part.reward.size for part in logs]
        edges = np.append(np.cumsum([0, *sizes]) - sum(sizes), horizon)
        epsilons = np.array([*(part.epsilon for part in self.auxiliary), self.epsilon], dtype=np.float64)
        most = max([horizon, *sizes])
        rows = released_rows(n_arms, dimension, self.max_bins) if recording else 0
        return LDPTables(
            n_arms=n_arms,
            dimension=dimension,
            horizon=horizon,
            starts=edges[:-1],
            ends=edges[1:],
            epsilons=epsilons,
            scales=_REPORT_SENSITIVITY / epsilons,
            contexts=np.concatenate([np.zeros((0, dimension)), *(part.contexts for part in self.auxiliary)]),
            arms=np.concatenate([np.zeros(0, np.int64), *(part.action for part in logs)]),
            rewards=np.concatenate([np.zeros(0), *(part.reward for part in logs)]),
            enough=math.log(most) ** 2,
            published=published,
            width=2.0 * math.log2(most) if published else float(self.width),
            warm_up=math.log(horizon) ** 2 if published and not self.auxiliary else 0.0,
            reach=2.0 if published else 1.0,
            refinement=2.0 * math.sqrt(dimension) * (1.0 if published else float(self.refinement)),
            check_every=int(self.check_every),
            first_axis=self.axis == "first",
            **written_arrays(n_arms if recording else 0, rows),
        )

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        names = [f"{end}_{name}" for end in ("low", "high") for name in env.vector_names[: env.dimension]]
        for parts in (("participants", "count", "sum"), _WEIGHTED):
            names += [f"{part}_{arm}" for arm in env.arms for part in parts]
        released = released[np.lexsort((released[:, 1], released[:, 0], released[:, 2]))]
        bins = range(int(released[:, 2].max()) + 1)
        columns = release_columns(released, [*names, "spent"], bins, ["laplace reports"])
        noisy = released[:, 4] > 0.0
        return columns | {"mechanism": np.where(noisy, columns["mechanism"], "public").astype(object)}


_PARTS = ("participants", "count", "sum")


def bin_sums(log: AdaptiveLog) -> pd.DataFrame:
    """Noisy sums of a locally private run, from its releases alone.

    Parameters
    ----------
    log : AdaptiveLog
        A log of `LDPBandit`.

    Returns
    -------
    DataFrame
        One row for each bin that was ever active and each of its initial arms: ``bin``, ``arm``, the corners
        ``low_x1``, ..., ``high_x1``, ...; ``participants``, the number who reported on it up to round
        ``until``; ``count`` and ``sum``, the sums of their noisy U and V; and ``noise_sd``, the standard
        deviation of the noise in either sum.

    Raises
    ------
    InvalidForLog
        If the log has no such releases.

    Notes
    -----
    ``sum / count`` estimates the arm's mean over the bin. Each sum has noise variance 2 scale^2 participants,
    regardless of whose context lay in the bin. Reports on an arm end when the arm is dropped or the bin is
    halved, and both events depend on the sums: the values in such rows are therefore affected by selection on
    their noise.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.LDPBandit(epsilon=8.0).run(ai.environments.SmoothArms(), horizon=500, rng=0)
    >>> ai.designs.bin_sums(log)[["bin", "arm", "low_x1", "high_x1", "participants", "until"]]
       bin  arm  low_x1  high_x1  participants  until
    0    0    0     0.0      1.0           500    500
    1    0    1     0.0      1.0           500    500
    2    0    2     0.0      1.0           500    500
    """
    releases = log.releases
    names = releases["name"].astype(str)
    if not names.str.startswith("participants_").any():
        raise InvalidForLog(
            "bin_sums", "the log has no sums of reports by bin", ["a log of LDPBandit, which releases them"]
        )
    boxes_and_sums = names.str.startswith(("low_", "high_", *(f"{part}_" for part in _PARTS)))
    releases = releases[boxes_and_sums]
    values = releases.pivot(index="group", columns="name", values="value")
    rounds = releases.pivot(index="group", columns="name", values="round")
    boxes = values[[name for name in releases["name"].unique() if name.startswith(("low_", "high_"))]]
    scale = releases["scale"].max()
    blocks = []
    for arm in log.arms:
        cells = values.reindex(columns=[f"{part}_{arm}" for part in _PARTS]).set_axis(list(_PARTS), axis=1)
        cells = cells.assign(arm=arm, until=rounds.get(f"count_{arm}", np.nan)).join(boxes)
        cells["noise_sd"] = scale * np.sqrt(2.0 * cells["participants"])
        blocks.append(cells.dropna(subset=["participants"]).reset_index(names="bin"))
    table = pd.concat(blocks).sort_values(["bin", "arm"], kind="stable", ignore_index=True)
    order = ["bin", "arm", *boxes.columns, *_PARTS, "until", "noise_sd"]
    return table[order].astype({"participants": np.int64, "until": np.int64})
