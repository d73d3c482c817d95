"""Each mend of defaults has a test that fails without it: makes docs/evidence/fixes.md.

A copy of the package is changed in one place to undo the fix, and the test for it is run on the copy: it must
fail there, and pass on the package as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import evidence

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python docs/evidence/fixes.py"
QUICK = 3


@dataclass(frozen=True)
class Fix:
    """A mend, the file and the words that carry it, what stands there without it, and its test."""

    mend: str
    file: str
    words: str
    undone: str
    test: str


ARMS, VALID, SCORES = "inference/arms", "inference/validity", "inference/scores"
UNIT = "tests/unit/inference"
RARE = f"{UNIT}/regression/test_regression.py::TestRareOutcomes"
HIDDEN = f"{UNIT}/effects/test_hidden_contexts.py"
FIXES = (
    Fix(
        "t law by effective size",
        f"{ARMS}/weighted.py",
        "freedom=means.freedom,",
        "freedom=means.freedom + 1e9,",
        "tests/reference/inference/test_combined_literal.py::test_a_contrast_by_its_rounds_propensities",
    ),
    Fix(
        "errors by unit",
        f"{ARMS}/data/arms_by_unit.py",
        "covariance=errors.covariance,",
        "covariance=means.covariance,",
        f"{UNIT}/arms/test_arms_by_unit.py::test_means_and_contrasts_are_the_literal_ones",
    ),
    Fix(
        "few units with skewed means are cautioned",
        f"{VALID}/units.py",
        "self.profile.unit_skewness > TOO_SKEWED * self._units",
        "self.profile.unit_skewness < 0.0",
        f"{UNIT}/validity/test_stationarity.py::test_few_units_with_skewed_means_are_cautioned",
    ),
    Fix(
        "one weight for both arms of a contrast",
        f"{ARMS}/arm_order.py",
        '*_scores("aipw", "joint", "combined", "uniform", "two-point", "sqrt"),',
        '*_scores("aipw", "uniform", "joint", "combined", "two-point", "sqrt"),',
        "tests/reference/inference/test_combined_literal.py::test_a_contrast_by_its_rounds_propensities",
    ),
    Fix(
        "weights by the round before",
        f"{VALID}/profile.py",
        'return self.traits is not None and self.traits.uses_context == "no"\n\n    @cached_property\n'
        "    def fixed_before_contexts",
        "return True\n\n    @cached_property\n    def fixed_before_contexts",
        f"{UNIT}/recommend/test_recommend.py::test_weights_by_propensities_that_follow_contexts_are_biased",
    ),
    Fix(
        "means that must stay are stated or cautioned",
        f"{VALID}/constant_means.py",
        "return with_absences(self.profile.drift_of(self.codes), self.absences)",
        "return None",
        f"{UNIT}/validity/test_stationarity.py::test_alee_and_sequences_say_that_means_must_stay",
    ),
    Fix(
        "arms that come and go",
        "inference/inputs/rounds.py",
        "possible = propensities > 0.0",
        "possible = propensities > -1.0",
        f"{UNIT}/arms/test_rounds.py::test_a_late_arm_has_its_own_rounds",
    ),
    Fix(
        "no interval of groups with few events",
        f"{VALID}/rare.py",
        "FEWEST = 5",
        "FEWEST = 0",
        f"{UNIT}/effects/test_cate_skewed.py::test_groups_with_few_uncommon_outcomes_have_no_interval",
    ),
    Fix(
        "Hall's interval of skewed rewards",
        f"{VALID}/rare.py",
        "SKEWED = 0.01",
        "SKEWED = 1e9",
        f"{UNIT}/arms/test_skewed_arms.py::test_means_have_the_interval_of_the_formula",
    ),
    Fix(
        "bounds of scores follow no context, one that the log lacks included",
        "inference/sequences/sequence_choice.py",
        "not np.all(profile.fixed_before_contexts[list(quantity.codes or range(log.n_arms))])",
        "log.context",
        f"{UNIT}/sequences/test_unlogged_contexts.py::"
        "test_bounds_by_propensities_that_contexts_may_move_are_refused",
    ),
    Fix(
        "asymptotic sequences of rare or skewed rewards are cautioned",
        "inference/sequences/sequence_facts.py",
        "return (*rare_cautions(terms, uncommon, skewness), *unknown)",
        "return unknown",
        f"{UNIT}/validity/test_stationarity.py::"
        "test_an_asymptotic_sequence_cautions_of_rare_and_skewed_rewards",
    ),
    Fix(
        "constant propensities cannot adapt",
        f"{VALID}/profile.py",
        "fixed = self.constant_propensities or",
        "fixed = False or",
        f"{UNIT}/validity/test_log_traits.py",
    ),
    Fix(
        "calibration of propensities is checked at fit",
        f"{VALID}/calibration.py",
        'told, asked = calibration_caution(where or ""), where is not None',
        "told, asked = (), where is not None",
        f"{UNIT}/validity/test_assignment.py::test_averages_in_the_place_of_propensities",
    ),
    Fix(
        "an arm without rewards is predicted by all of them",
        f"{SCORES}/inverse.py",
        "found = np.where(counts[:-1] == 0.0, before[:, None], own)",
        "found = np.where(counts[:-1] == 0.0, 0.0, own)",
        "tests/reference/inference/test_aipw_literal.py::test_arm_means",
    ),
    Fix(
        "the origin of rewards does not matter to asymptotic sequences",
        "inference/sequences/confidence_sequence.py",
        'if settings.estimator == "aipw" and not settings.bounded:',
        "if False:",
        f"{UNIT}/sequences/test_sequences.py::test_the_origin_of_unbounded_rewards_changes_nothing_else",
    ),
    Fix(
        "the chosen arm's propensity: AIPW before ALEE",
        f"{ARMS}/weighted.py",
        "profile.moves and comparable and (rare or compared(question).heavy_tailed)",
        "profile.moves and comparable",
        f"{UNIT}/recommend/test_recommend.py",
    ),
    Fix(
        "outcomes that arrive late",
        f"{SCORES}/missing.py",
        "arrival = np.arange(1, rounds + 1) if known is None else known",
        "arrival = np.arange(1, rounds + 1)",
        f"{UNIT}/arms/test_deviations.py::test_late_rewards_do_not_move_earlier_predictions",
    ),
    Fix(
        "batches that go back in time are refused",
        "log/validation/column_checks.py",
        "backward[1:] = values[1:] < values[:-1]",
        "backward[1:] = False",
        "tests/unit/datasets/test_precision_agriculture.py",
    ),
    Fix(
        "a short two-arm trial names its exact test",
        f"{ARMS}/facts/arm_facts.py",
        "if calls is None:",
        "if True:",
        f"{UNIT}/results/test_compare.py::test_a_short_trial_of_two_arms_names_its_exact_test",
    ),
    Fix(
        "tests of coefficients without events are refused, joint ones too",
        "inference/regression/joint_tests.py",
        "without = np.any((hypothesis.matrix != 0.0) & self.hidden, axis=1)",
        "without = np.zeros(len(hypothesis.matrix), dtype=bool)",
        f"{RARE}::test_combinations_that_involve_it_have_none_either",
    ),
    Fix(
        "p-values of all diagnostics are adjusted together",
        "inference/diagnostics/diagnosis_results.py",
        'adjusted_logs(np.array([check.log_pvalue for check in checks], dtype=np.float64), "holm")',
        "np.array([check.log_pvalue for check in checks], dtype=np.float64)",
        f"{UNIT}/diagnostics/test_diagnose.py::test_all_p_values_of_the_table_are_adjusted_together",
    ),
    Fix(
        "own weights of sums by batches of single rounds are refused",
        "claims/data/sums.py",
        "WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES, MOVING)",
        "WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES)",
        f"{UNIT}/arms/test_from_sums.py::test_own_weights_of_batches_of_single_rounds_are_refused",
    ),
    Fix(
        "a first table loads no scipy.stats",
        "inference/results/simultaneous.py",
        "from scipy import special\n",
        "from scipy import special, stats  # noqa\n",
        "tests/unit/house/test_first_table.py",
    ),
    Fix(
        "an arm's own weight in a group does not follow contexts that the log lacks",
        "inference/effects/group_question.py",
        "return propensities_before(used, self.profile.log.n_arms, before)",
        "return used",
        f"{HIDDEN}::test_the_mix_of_contexts_is_the_same_for_both_arms",
    ),
    Fix(
        "nor does the weight of both arms",
        "inference/effects/effect_weights.py",
        "if past.free or combined_stays(propensities, past.cell, batch):",
        "if True:",
        f"{HIDDEN}::test_the_mix_of_effects_is_the_log_s",
    ),
    Fix(
        "the round before is one of another unit",
        "inference/inputs/rounds.py",
        "new = np.ones(len(cell), dtype=bool) if unit is None else",
        "new = np.ones(len(cell), dtype=bool) if True else",
        f"{HIDDEN}::test_rounds_of_one_unit_are_no_past_of_each_other",
    ),
    Fix(
        "units that one draw gave an arm against the odds are cautioned",
        f"{VALID}/units.py",
        "expected < FEWEST_EXPECTED",
        "expected < 0.0",
        f"{UNIT}/validity/test_stationarity.py::"
        "test_units_that_one_draw_gave_an_arm_against_the_odds_are_cautioned",
    ),
)


def passes(test: str, source: Path) -> bool:
    """Whether a test passes on a copy of the package."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        str(ROOT / test),
    ]
    found = subprocess.run(
        command, cwd=source, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, check=False
    )
    if found.returncode not in (0, 1):
        raise SystemExit(f"{test}: {found.stdout.decode()[-2000:]}{found.stderr.decode()[-2000:]}")
    return found.returncode == 0


def undone(fix: Fix, folder: Path) -> Path:
    """A copy of the package without the mend."""
    source = folder / "copy"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "adaptinf", source / "adaptinf", ignore=shutil.ignore_patterns("__pycache__"))
    path = source / "adaptinf" / fix.file
    text = path.read_text(encoding="utf-8")
    if text.count(fix.words) != 1:
        raise SystemExit(f"{fix.mend}: {fix.file} has {text.count(fix.words)} times {fix.words!r}")
    path.write_text(text.replace(fix.words, fix.undone), encoding="utf-8")
    return source


def page(rows: list[tuple[Fix, bool, bool]]) -> str:
    lines = "\n".join(
        f"| {fix.mend} | `adaptinf/{fix.file}` | `{fix.test}` | "
        f"{'passes' if whole else '**fails**'} | {'fails' if not without else '**passes**'} |"
        for fix, whole, without in rows
    )
    good = sum(whole and not without for _, whole, without in rows)
    return f"""# Each fix in its own test

Command: `{COMMAND}`. Seed: those of the tests. Date: {evidence.stamp()}.

The table lists corrected defaults on real logs. To undo a fix, a copy of the package is changed in one place,
and the test of the fix is run on the copy. {good} of {len(rows)} tests pass for the package and fail for the
copy.

| mend | where | test | with it | without it |
| --- | --- | --- | --- | --- |
{lines}
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for fix in FIXES[:QUICK] if options.quick else FIXES:
            rows.append((fix, passes(fix.test, ROOT), passes(fix.test, undone(fix, Path(folder)))))
    evidence.publish(page(rows), __file__, options)


if __name__ == "__main__":
    main()
