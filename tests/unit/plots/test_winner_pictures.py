"""The picture of a winner draws the intervals of its four methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection

import adaptinf as ai
from adaptinf import plots
from adaptinf.claims.reports.pictures import TIED
from adaptinf.errors import ParameterError
from adaptinf.inference.winners.winner_law import NEAR


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def log() -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    return ai.designs.EpsilonGreedy(exploration=0.5).run(arms, horizon=1_500, rng=0)


def ends_of(ax: Any) -> Any:
    [lines] = [one for one in ax.collections if isinstance(one, LineCollection)]
    return np.array(lines.get_segments())[:, :, 0]


@pytest.mark.parametrize("asked", [{}, {"control": 0}, {"runner_up": True}])
def test_rows_are_the_intervals_of_the_fits(log: ai.AdaptiveLog, asked: dict[str, Any]) -> None:
    fits = {
        method: ai.Winner(log, **asked).fit(method=method)
        for method in ("conditional", "projection", "hybrid")
    }
    ax = plots.winner(fits["projection"], alpha=0.1, limits=(-9.0, 9.0))
    drawn = ends_of(ax)
    for place, fit in enumerate(fits.values(), start=1):
        expected = np.clip(fit.conf_int(0.1).to_numpy()[0], -9.0, 9.0)
        np.testing.assert_allclose(drawn[place], expected, rtol=1e-12)
    means = fits["hybrid"].means
    won = log.arms.index(fits["hybrid"].winner)
    direction = np.eye(3)[won]
    if asked:
        direction = direction - np.eye(3)[log.arms.index(fits["hybrid"].against)]
    own = float(direction @ means.estimate)
    error = float(np.sqrt(direction @ means.covariance @ direction))
    np.testing.assert_allclose(drawn[0], [own - 1.6448536 * error, own + 1.6448536 * error], rtol=1e-6)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "naive",
        "conditional",
        "projection",
        "hybrid",
    ]


def test_several_results_have_a_legend_and_a_true_value_each(log: ai.AdaptiveLog) -> None:
    named = {
        "against 0": ai.Winner(log, control=0).fit(),
        "against the second": ai.Winner(log, runner_up=True).fit(),
    }
    ax = plots.winner(named, truth={"against the second": 0.03})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(named)
    colours = {line.get_color() for line in ax.get_lines() if list(line.get_xdata()) == [0.03, 0.03]}
    assert colours == {"#D55E00"}
    assert ax.get_xlabel() == "difference in mean reward"


def test_a_conditional_interval_without_end_does_not_stretch_the_axis(log: ai.AdaptiveLog) -> None:
    close = ai.environments.BernoulliArms([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    wide = 0.0
    for rng in range(4):
        trial = ai.designs.EpsilonGreedy(exploration=0.5).run(close, horizon=600, rng=rng)
        best = ai.Winner(trial).fit()
        low, high = plots.winner(best).get_xlim()
        hybrid, projection = (
            ai.Winner(trial).fit(method=method).conf_int().to_numpy()[0]
            for method in ("hybrid", "projection")
        )
        firm = max(hybrid[1], projection[1]) - min(hybrid[0], projection[0])
        conditional = ai.Winner(trial).fit(method="conditional").conf_int().to_numpy()[0]
        wide = max(wide, np.ptp(conditional) / firm)
        assert high - low <= 1.12 * 1.6 * firm
    assert wide > 2.0  # of one of the four logs it is cut


def test_a_tie_and_held_out_rounds_say_what_is_valid(log: ai.AdaptiveLog) -> None:
    frame = log.frame.assign(reward=(np.arange(log.n_rounds) // 3) % 2, action=np.arange(log.n_rounds) % 3)
    tied = ai.Winner(ai.AdaptiveLog(frame[["action", "reward"]], action="action", reward="reward"))
    ax = plots.winner(tied.fit("sample-mean"))
    assert [" ".join(text.get_text().split()) for text in ax.texts] == [TIED(near=NEAR)] * 2
    held = ai.Winner(log).fit(held_out=np.arange(log.n_rounds) >= 1_000)
    with pytest.raises(ParameterError, match="whose usual interval needs no correction"):
        plots.winner(held)


def test_a_skewed_winner_has_one_interval() -> None:
    arms = ai.environments.NormalArms([0.0, 0.0, 0.2])
    frame = ai.designs.EpsilonGreedy(exploration=0.5).run(arms, horizon=1_500, rng=0).frame
    frame = frame[["action", "reward", "propensity"]].assign(reward=np.exp(1.5 * frame["reward"]))
    log = ai.AdaptiveLog(frame, action="action", reward="reward", propensity="propensity")
    with pytest.raises(ParameterError, match="too rare or too skewed for normal approximations, so only the"):
        plots.winner(ai.Winner(log).fit())


def test_what_is_no_winner_is_refused(log: ai.AdaptiveLog) -> None:
    wrong: Any = ai.ArmMeans(log).fit()
    with pytest.raises(ParameterError, match="3 problems"):
        plots.winner(wrong, alpha=2.0, limits=(1, 0))
    best = ai.Winner(log).fit()
    with pytest.raises(ParameterError, match="2 problems") as caught:
        plots.winner({"a": best}, truth={"b": np.nan})
    assert "no result 'b'" in str(caught.value)
    assert "truth must be a finite number" in str(caught.value)
