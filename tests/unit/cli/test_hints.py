"""Hints of a command that refuses lead on: no one leads back to the same refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

import adaptinf as ai
from adaptinf.cli.entry import main

PAIR = ("--treatment", "1", "--control", "0")
ARMS = ai.environments.BernoulliArms([0.3, 0.6])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private log, its public part, and a log in batches without propensities."""
    place = tmp_path_factory.mktemp("hints")
    private = ai.designs.PrivateSuccessiveElimination(epsilon=1.0).run(ARMS, horizon=4_000, rng=1)
    private.to_parquet(place / "private.parquet")
    private.public().to_parquet(place / "published.parquet")
    rows = ai.designs.Thompson(floor=0.1).run(ARMS, horizon=600, rng=1).frame
    rows["day"] = rows["t"] // 200
    rows[["action", "reward", "day"]].to_csv(place / "batches.csv", index=False)
    return place


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Exit code and what a command says, on one line."""
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize("asked", [(), PAIR])
def test_the_public_part_is_analysed_and_reported(
    folder: Path, asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = folder / "published.parquet", folder / "page.html"
    result = ai.Contrast(ai.read_log(file), treatment=1, control=0).fit()
    assert told(capsys, "analyze", file, *asked)[1].startswith(result.sentence())
    assert told(capsys, "report", file, *asked, "--output", page)[0] == 0
    assert result.sentence() in page.read_text(encoding="utf-8")


def test_a_question_that_releases_do_not_answer_is_refused_with_what_they_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "published.parquet"
    refused = told(capsys, "report", file, "--control", 0, "--output", folder / "page.html")
    assert refused == (
        2,
        "adaptinf report: Contrasts is not valid for this log: the public part of a log contains releases, "
        "not the outcomes of individual rounds; possible alternatives: "
        "Contrast(public, --treatment, --control)",
    )
    assert told(capsys, "validate", file) == (
        2,
        f"adaptinf validate: {file}: it is the public part of a log, without rows: use adaptinf analyze or "
        f"adaptinf report, which do not require rows",
    )


def test_a_refused_lift_names_only_methods_that_have_lifts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("analyze", folder / "batches.csv", "--action", "action", "--reward", "reward")
    words += ("--batch", "day", "--control", "0", "--lift")
    code, said = told(capsys, *words, "--estimator", "batched")
    assert code == 2
    _, _, offered = said.partition("possible alternatives: ")
    *methods, last = offered.split("; ")
    assert last == "differences, without --lift"
    assert told(capsys, *words[:-1])[0] == 0
    for method in methods:
        assert told(capsys, *words, "--estimator", method.split()[0])[0] == 0


def test_obeying_a_refusal_of_options_is_enough(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("analyze", folder / "private.parquet")
    assert told(capsys, *words, "--winner", "--lift") == (
        2,
        "adaptinf analyze: --winner must be used alone or with --control: omit --by, --received, --lift and "
        "--treatment",
    )
    assert told(capsys, *words, "--winner", "--control", 0)[0] == 0


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ((*PAIR, "--estimator", "batched"), "--batch"),
        (("--by", "x"), "--context"),
        (("--covariate", "x"), "--context"),
    ],
)
def test_a_file_that_states_its_columns_is_to_be_written_again(
    folder: Path, more: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("analyze", folder / "private.parquet")
    code, said = told(capsys, *words, *more)
    assert code == 2
    assert option in said
    assert said.endswith("write it again from its source with the option)")
    assert told(capsys, *words, *more, option, "t")[1].endswith(
        f"already states the roles of its columns: omit {option}, or write the file again from its source"
    )
