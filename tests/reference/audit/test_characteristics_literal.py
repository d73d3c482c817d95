"""Operating characteristics against a loop over logs, exact laws and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from adaptinf.audit.binary.exact_law import exact
from adaptinf.audit.simulation.characteristics import operating_characteristics
from adaptinf.audit.simulation.simulated_power import power
from adaptinf.designs import DPConSE, Mixture, PrivateUCB, Thompson, Uniform
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms, NormalArms

RUNS, ROUNDS = 70, 160


def contrast(log):
    return Contrast(log, treatment=1, control=0).fit()


def arms(log):
    return {"first": Contrast(log, treatment=1, control=0).fit(), "means": ArmMeans(log).fit("sample-mean")}


def by_group(log):
    return CATE(log, by="feature", treatment=1, control=0).fit()


CASES = {
    "two arms": (Thompson(floor=0.1), BernoulliArms([0.6, 0.4]), contrast),
    "three arms": (Mixture(PrivateUCB(epsilon=1.0), exploration=0.3), BernoulliArms([0.6, 0.3, 0.6]), arms),
    "normal": (Thompson(prior="normal", floor=0.05), NormalArms([0.0, 0.4]), None),
    "contexts": (DPConSE(epsilon=4.0), FiniteContext([0.3, 0.7], [[0.2, 0.7], [0.6, 0.5]]), by_group),
    "vectors, ignored": (Uniform(), LinearArms([[0.5, 0.1], [0.2, 0.2]], contexts="orthant"), contrast),
}


def value_of(frame, measure, statistic=None, **where):
    rows = frame[frame["measure"] == measure]
    for name, value in {"statistic": statistic, **where}.items():
        if value is not None:
            rows = rows[rows[name] == value]
    assert len(rows) == 1, (measure, statistic, where)
    return rows.iloc[0]


def literal_quantile(values, level):
    for value in sorted(values):
        if sum(other <= value for other in values) >= level * len(values) - 1e-9:
            return value
    raise AssertionError


def literal_errors(values):
    count = len(values)
    mean = math.fsum(values) / count
    second = math.fsum((value - mean) ** 2 for value in values) / count
    fourth = math.fsum((value - mean) ** 4 for value in values) / count
    sd = math.sqrt(second)
    sd_error = math.sqrt(max(fourth - second**2, 0.0) / (4.0 * second * count)) if second else 0.0
    return mean, sd / math.sqrt(count), sd, sd_error


def literal_selection(env, scores, known=True):
    """Shares of the arms with the highest score."""
    there = [score for score in scores if not math.isnan(score)]
    if not there or not known:
        return [0.0] * len(scores)
    top = [score == max(there) for score in scores]
    return [flag / sum(top) for flag in top]


def literal(design, env, fit):
    """Rounds, reward, regret, wrong way, selection and the terms' estimates and limits of every trial."""
    trials = []
    for log in design.logs(env, ROUNDS, RUNS, 11):
        action = log.arrays.action.tolist()
        feature = log.arrays.context["feature"].tolist() if env.features else [0] * ROUNDS
        result = None if fit is None else fit(log)
        trial = {"rounds": [action.count(arm) for arm in range(env.n_arms)]}
        trial["reward"] = math.fsum(log.arrays.reward.tolist())
        if not env.dimension:
            trial["regret"] = math.fsum(
                max(env.means[place]) - env.means[place, arm]
                for place, arm in zip(feature, action, strict=True)
            )
        trial["wrong"], trial["selected"] = [], []
        for place in range(env.n_features):
            here = [arm for where, arm in zip(feature, action, strict=True) if where == place]
            counts = [here.count(arm) for arm in range(env.n_arms)]
            means = env.means[place].tolist()
            best = max(count for count, mean in zip(counts, means, strict=True) if mean == max(means))
            worse = [count for count, mean in zip(counts, means, strict=True) if mean < max(means)]
            trial["wrong"].append(float(any(count - best > 0.1 * len(here) for count in worse)))
        if isinstance(design, DPConSE):
            sims = design.replicate(env, ROUNDS, len(trials) + 1, 11, by_rounds=True)
            for code in sims.released["better_arm"][-1]:
                trial["selected"].append([float(code == arm) for arm in range(2)])
        elif fit is None:
            own = [log.arrays.reward[log.arrays.action == arm] for arm in range(env.n_arms)]
            means = [float(part.sum() / part.size) if part.size else math.nan for part in own]
            trial["selected"].append(literal_selection(env, means))
        elif fit is arms:
            trial["selected"].append(literal_selection(env, result["means"].estimate.tolist()))
        else:
            estimate = float(result.estimate[0])
            trial["selected"].append(literal_selection(env, [0.0, estimate], not math.isnan(estimate)))
        trial["tests"] = {}
        results = {} if fit is None else (result if isinstance(result, dict) else {result.estimator: result})
        for name, one in results.items():
            versions = {name: one.conf_int()}
            if one.correction is not None:
                versions[f"{name}, corrected"] = one.conf_int_corrected()
            for label, limits in versions.items():
                for code, term in enumerate(one.terms):
                    low, high = limits.iloc[code]
                    trial["tests"][label, term] = (float(one.estimate[code]), low, high)
        trials.append(trial)
    return trials


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_figure_is_that_of_a_loop_over_logs(name):
    design, env, fit = CASES[name]
    if (
        fit is None
    ):  # without an analysis trials are those of `replicate`, the same where there is no shortcut
        assert not design._has_shortcut(env)
    frame = operating_characteristics(design, env, ROUNDS, RUNS, rng=11, fit=fit).frame
    trials = literal(design, env, fit)

    def check(values, measure, statistic="probability", **where):
        mean, error, _, _ = literal_errors(values)
        row = value_of(frame, measure, statistic, **where)
        assert row["value"] == pytest.approx(mean, abs=1e-12)
        assert row["mc_error"] == pytest.approx(error, abs=1e-12)

    for arm in range(env.n_arms):
        rounds = [trial["rounds"][arm] for trial in trials]
        for measure, values in (("rounds", rounds), ("share", [count / ROUNDS for count in rounds])):
            mean, error, sd, sd_error = literal_errors(values)
            for statistic, value, spread in (("mean", mean, error), ("sd", sd, sd_error)):
                row = value_of(frame, measure, statistic, arm=str(arm))
                assert row["value"] == pytest.approx(value, rel=1e-12, abs=1e-12)
                assert row["mc_error"] == pytest.approx(spread, rel=1e-9, abs=1e-12)
            for level in (0.025, 0.1, 0.5, 0.9, 0.975):
                row = value_of(frame, measure, f"q{level:g}", arm=str(arm))
                step = math.sqrt(level * (1 - level) / RUNS)
                ends = [literal_quantile(values, min(max(level + sign * step, 0), 1)) for sign in (-1, 1)]
                assert row["value"] == literal_quantile(values, level)
                assert row["mc_error"] == pytest.approx((ends[1] - ends[0]) / 2, abs=1e-12)
    total = "total reward" if name in ("normal", "vectors, ignored") else "successes"
    check([trial["reward"] for trial in trials], total, "mean")
    if not env.dimension:
        check([trial["regret"] for trial in trials], "regret", "mean")
    for place in range(env.n_features):
        where = {"context": str(env.features[place]) if env.features else ""}
        check([trial["wrong"][place] for trial in trials], "wrong way", **where)
        for arm in range(env.n_arms):
            chosen = [trial["selected"][place][arm] for trial in trials]
            check(chosen, "selected", arm=str(arm), **where)
        nobody = [float(sum(trial["selected"][place]) == 0) for trial in trials]
        check(nobody, "no selection", **where)
        best = env.means[place] == env.means[place].max()
        correct = [sum(np.array(trial["selected"][place])[best]) for trial in trials]
        check(correct, "correct selection", **where)
    truths = {"0": env.arm_means()[0], "1": env.arm_means()[1], "2": env.arm_means()[-1]}
    truths["1 - 0"] = truths["1"] - truths["0"]
    truths |= {
        f"feature={place}": env.means[place, 1] - env.means[place, 0]
        for place in range(env.n_features)
        if env.features
    }
    for analysis, term in {key: None for trial in trials for key in trial["tests"]}:
        found = [trial["tests"][analysis, term] for trial in trials if (analysis, term) in trial["tests"]]
        known = [one for one in found if not any(map(math.isnan, one))]
        where = {"analysis": analysis, "term": term}
        truth = truths[term]
        kind = "power" if abs(truth) > 1e-12 else "type-I error"
        rejected = [float(low > 0 or high < 0) for _, low, high in known] + [0.0] * (RUNS - len(known))
        check(rejected, kind, **where)
        check([float(low <= truth <= high) for _, low, high in known], "coverage", **where)
        check([estimate - truth for estimate, _, _ in known], "bias", "mean", **where)


def test_uniform_allocation_is_binomial():
    n, runs = 50, 8_192
    frame = operating_characteristics(
        Uniform(), {"better": BernoulliArms([0.3, 0.6]), "equal": BernoulliArms([0.3, 0.3])}, n, runs, rng=1
    ).frame.query("scenario == 'better'")
    law = binom(n, 0.5)
    tests = {
        ("rounds", "mean"): n / 2,
        ("rounds", "sd"): math.sqrt(n) / 2,
        ("wrong way", None): law.sf(27),  # 2 N - 50 > 5
    }
    for (measure, statistic), exact_value in tests.items():
        row = value_of(frame, measure, statistic, arm="0" if measure == "rounds" else None)
        assert abs(row["value"] - exact_value) < 4.5 * row["mc_error"]
    for level in (0.025, 0.1, 0.5, 0.9, 0.975):
        assert value_of(frame, "rounds", f"q{level:g}", arm="1")["value"] == law.ppf(level)
    regret = value_of(frame, "regret", "mean")
    assert abs(regret["value"] - 0.3 * n / 2) < 4.5 * regret["mc_error"]


@pytest.mark.slow
def test_thompson_has_the_exact_law_of_its_counts():
    n, theta0, theta1 = 40, 0.4, 0.6
    law = exact(Thompson(), n)
    frame = operating_characteristics(Thompson(), BernoulliArms([theta0, theta1]), n, 8_192, rng=2).frame

    def right(n1, s1, n0, s0):
        with np.errstate(invalid="ignore", divide="ignore"):
            mean1, mean0 = s1 / n1, s0 / n0
        chosen = np.where(mean1 > mean0, 1.0, np.where(mean1 == mean0, 0.5, 0.0))
        return np.where(n1 == 0, 0.0, np.where(n0 == 0, 1.0, chosen))

    checks = {
        ("rounds", "mean", "1"): lambda n1, s1, n0, s0: n1,
        ("successes", "mean", ""): lambda n1, s1, n0, s0: s1 + s0,
        ("wrong way", "probability", ""): lambda n1, s1, n0, s0: (n0 - n1 > 0.1 * n).astype(float),
        ("selected", "probability", "1"): right,
        ("correct selection", "probability", ""): right,
    }
    for (measure, statistic, arm), function in checks.items():
        row = value_of(frame, measure, statistic, arm=arm)
        truth = float(law.expectation(function, theta1, theta0))
        assert abs(row["value"] - truth) < 4.5 * row["mc_error"], measure


@pytest.mark.slow
def test_type_i_error_and_power_of_an_exact_test_are_those_by_enumeration():
    n, runs = 20, 2_048

    def fit(log):
        return ArmMeans(log, arms=[1]).fit("sample-mean", test="exact", null=0.5)

    def rejects(successes, pulls):
        tails = binom.cdf(successes, pulls, 0.5), binom.sf(successes - 1, pulls, 0.5)
        return pulls > 0 and 2 * min(tails) <= 0.05

    scenarios = {"equal": 0.5, "apart": 0.85}
    plan = power(
        Uniform(), {name: BernoulliArms([0.5, mean]) for name, mean in scenarios.items()}, fit, n, runs, rng=3
    ).frame.set_index("scenario")
    for name, mean in scenarios.items():
        truth = sum(
            binom.pmf(pulls, n, 0.5) * binom.pmf(successes, pulls, mean)
            for pulls in range(n + 1)
            for successes in range(pulls + 1)
            if rejects(successes, pulls)
        )
        assert 0.01 < truth < 0.8
        assert abs(plan.loc[name, "rejection"] - truth) < 4.5 * math.sqrt(truth * (1 - truth) / runs), name
        assert plan.loc[name, "kind"] == ("type-I error" if name == "equal" else "power")
