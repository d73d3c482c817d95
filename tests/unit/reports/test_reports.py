"""The report: escaped, whole, ordered, and with the numbers of the table."""

from __future__ import annotations

import hashlib
import html
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.propensities import NOT_FOLLOWED
from adaptinf.claims.reports import answers, methods
from adaptinf.claims.reports import collection as claims
from adaptinf.claims.reports.answer import PRIVATE
from adaptinf.cli.entry import main
from adaptinf.inference.results.tables import format_number
from adaptinf.reports.checklist import FOR_AUTHORS, ITEMS, TOPICS
from adaptinf.reports.report_texts import _ESTIMATORS, _KINDS, _LAWS, _SEQUENCES, REFERENCES, cited

HOSTILE = "<script>alert('x')</script>"
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Tags in order, texts, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    def every(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def log() -> ai.AdaptiveLog:
    rng = np.random.default_rng(3)
    share = np.where(np.arange(400) < 200, 0.5, 0.7)
    first = rng.random(400) < share
    frame = pd.DataFrame(
        {
            "arm": np.where(first, HOSTILE, "b & <c>"),
            "y": rng.binomial(1, np.where(first, 0.6, 0.3)).astype(float),
            "p": np.where(first, share, 1 - share),
        }
    )
    return ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", reward_range=(0, 1))


@pytest.fixture(scope="module")
def text(log: ai.AdaptiveLog, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "r.html"
    ai.report(log, path, title=HOSTILE)
    return path.read_text(encoding="utf-8")


def test_texts_are_escaped(text: str) -> None:
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in text
    assert "b &amp; &lt;c&gt;" in text


def test_the_page_is_whole_and_asks_for_nothing(text: str) -> None:
    page = Page(text)
    assert page.every("html") == [{"lang": "en"}]
    kept = [
        value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")
    ]
    assert len(kept) >= 11
    assert all((value or "").startswith(("data:", "#")) for value in kept)
    assert "url(" not in text
    assert "@import" not in text
    assert all((attributes["alt"] or "").strip() for attributes in page.every("img"))
    assert len(page.every("img")) == 2


def test_headings_are_in_order_and_links_lead_to_them(text: str) -> None:
    page = Page(text)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels == [1] + [2] * 8
    anchors = [attributes["id"] for attributes in page.every("h2")]
    links = [attributes["href"] for attributes in page.every("a")]
    assert links == [f"#{name}" for name in anchors]
    assert anchors == ["results", "allocation", "sound", "assumed", "methods", "collected", "valid", "call"]


def test_tables_have_captions_and_scopes(text: str) -> None:
    page = Page(text)
    tables = len(page.every("table"))
    assert tables == 6
    assert len(page.every("caption")) == tables
    scopes = [attributes.get("scope") for attributes in page.every("th")]
    assert set(scopes) == {"row", "col"}
    scale = 1  # the last row of the picture, which screen readers do not meet
    assert scopes.count("row") == len(re.findall("<tr>", text)) - tables - scale


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_texts_contrast_enough(text: str) -> None:
    """On each ground, light and dark; lines that mean something have three to one."""
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w+)", part)) for part in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    )
    assert set(light) == set(dark)
    for colours in (light, dark):
        for name, least in (("ink", 4.5), ("quiet", 4.5), ("link", 4.5), ("bar", 3.0), ("warn", 3.0)):
            for ground in ("ground", "soft"):
                low, high = sorted([luminance(colours[name]), luminance(colours[ground])])
                assert (high + 0.05) / (low + 0.05) >= least, (name, ground)
        low, high = sorted([luminance(colours["ink"]), luminance(colours["ask"])])
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_numbers_are_those_of_the_table(text: str, log: ai.AdaptiveLog) -> None:
    result = ai.recommend(log).fit()
    shown = re.sub(r"<[^>]*>", "\n", text)
    limits = result.conf_int()
    for at, low, high in zip(result.estimate, limits["low"], limits["high"], strict=True):
        for number in (at, low, high):
            assert f"\n{format_number(number)}\n" in shown
        assert f"\n{format_number(low)} to {format_number(high)}\n" in shown
    body = text[text.index('id="results"') : text.index('id="allocation"')]
    [row] = re.findall(r'<th scope="row">b &amp; &lt;c&gt;</th>(.*?)</tr>', body)
    cells = re.findall("<td[^>]*>(.*?)</td>", row)
    assert cells == [str(cell) for cell in result.summary().tables[-1].data[2][1:]]


def test_the_same_call_writes_the_same_file(text: str, log: ai.AdaptiveLog, tmp_path: Path) -> None:
    ai.report(log, tmp_path / "again.htm", title=HOSTILE)
    assert (tmp_path / "again.htm").read_text(encoding="utf-8") == text
    ai.report(log, tmp_path / "again.htm", title=HOSTILE, on=date(2020, 2, 1))
    today = datetime.now(UTC).date().isoformat()
    assert (tmp_path / "again.htm").read_text(encoding="utf-8") == text.replace(today, "2020-02-01")


def test_a_result_without_its_log_shows_no_rows(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    result = ai.Contrast(log, treatment=HOSTILE, control="b & <c>").fit()
    ai.report(result, tmp_path / "r.html")
    alone = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert alone.count("report(result, path, log=log)") == 4
    ai.report(result, tmp_path / "r.html", log=log, call="made() < here")
    whole = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "report(result, path, log=log)" not in whole
    assert "Methods for contrast" in whole
    assert "made() &lt; here" in whole
    assert "(Hadad 2021)" in whole
    assert whole.count(REFERENCES["Hadad 2021"].replace("'", "&#x27;")) == 1
    assert "<caption>Items</caption>" not in whole


def test_a_log_without_a_valid_method_says_why(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6])
    plain = ai.designs.UCB().run(arms, horizon=100, rng=0).frame
    frame = pd.DataFrame({"arm": plain["action"], "y": plain["reward"], "x": np.arange(100.0)})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", context=["x"], about={"context_free": False})
    ai.report(log, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "any method for arm-means is not valid for this log" in text
    assert 'id="methods"' not in text


def test_sums_are_reported_too(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    design = ai.designs.Thompson(floor=0.1, batch_size=50)
    rows = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=400, rng=0)
    ai.report(ai.Sums.of_log(rows), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "effective sample size" in text
    assert claims.SUMS(batches=8) in text
    section = text[text.index('id="allocation"') : text.index('id="sound"')]
    assert section.count("<img") == 1
    counts = rows.frame["action"].value_counts() / 400
    assert f"Over all rounds: arm 0 {counts[0]:.1%}, arm 1 {counts[1]:.1%}." in section


def test_a_guarantee_and_its_correction_are_told(tmp_path: Path) -> None:
    design = ai.designs.PrivateUCB(epsilon=0.05)
    log = design.run(ai.environments.BernoulliArms([0.3, 0.5]), horizon=500, rng=0)
    ai.report(log, tmp_path / "r.html", checklist="consort")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "epsilon = 0.05, pure, per reward" in text
    assert "simulated noise, not private" in text
    assert "(Neel 2018; Rogers 2016)" in text
    result = ai.recommend(log).fit()
    headers = re.findall('<th scope="col"[^>]*>(.*?)</th>', text[text.index('id="results"') :])
    assert headers[:7] == ["term", "coef", "std err", "z", "P exact corrected", "[0.025", "0.975]"]
    low, high = result.conf_int_corrected().iloc[0]
    told = (
        f"0: {format_number(result.estimate[0])} (95% interval {format_number(low)} to {format_number(high)})"
    )
    assert told in text[text.index('id="consort"') :]


def test_a_report_of_releases_alone_is_covered(tmp_path: Path) -> None:
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.3, 0.5], [0.4, 0.4]])
    log = ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=20_000, rng=5)
    result = ai.CATE(log, by="feature", treatment=1, control=0).fit(estimator="released")
    for given in (None, log):
        ai.report(result, tmp_path / "r.html", log=given)
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert f">{claims.SHOWS_RELEASES()}<" in text.partition('<div class="box">')[0]
        assert ('class="box"' in text) == (given is log)


def test_a_report_of_a_private_trial_says_on_top_that_it_is_not_covered(tmp_path: Path) -> None:
    """Before the first number; a trial without privacy, or with nothing to protect, has no box."""
    arms = ai.environments.BernoulliArms([0.3, 0.5])
    for design, boxed in ((ai.designs.PrivateUCB(epsilon=1.0), True), (ai.designs.Uniform(), False)):
        ai.report(design.run(arms, horizon=400, rng=1), tmp_path / "r.html")
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        promise = claims.BEYOND_GUARANTEE(guarantee="epsilon = 1, pure, per reward, central, standard")
        told = f'<div class="box">\n<p role="note" class="warning">{PRIVATE(promise=promise)}</p>'
        assert (told in text) == boxed
        assert not boxed or text.index(told) < text.index('class="lead')
    ai.report(ai.designs.Thompson().run(arms, horizon=400, rng=1), tmp_path / "r.html")
    assert 'class="box"' not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_everything_wrong_is_listed(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    result = ai.ArmMeans(log).fit()
    other = replace(result, facts=replace(result.facts, n_rounds=7, design="D"))
    with pytest.raises(ai.errors.ParameterError) as caught:
        ai.report(other, tmp_path / "r.txt", log=log, alpha=2.0, title=3)  # type: ignore[arg-type]
    said = str(caught.value)
    for part in ("alpha", "title", ".html", "n_rounds, design differ"):
        assert part in said
    with pytest.raises(ai.errors.ParameterError, match="data must be one or more results"):
        ai.report("log", tmp_path / "r.html")  # type: ignore[arg-type]
    with pytest.raises(ai.errors.ParameterError, match="omit it"):
        ai.report(log, tmp_path / "r.html", log=log)
    with pytest.raises(ai.errors.FileError):
        ai.report(log, tmp_path / "nowhere" / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_references_are_all_cited_and_all_there() -> None:
    keys = {key for own in _ESTIMATORS.values() for key in own}
    keys |= {key for own in (*_KINDS.values(), *_SEQUENCES.values()) for key in own}
    keys |= {key for _, own in _LAWS for key in own}
    keys |= {"Agresti 2000", "Welch 1947", "Neel 2018", "Rogers 2016", "Lindon 2022"}
    assert keys == set(REFERENCES)
    assert [key for key, full in REFERENCES.items() if f"({key.split()[1][:4]})" not in full] == []


def test_what_the_laws_of_fits_cite(log: ai.AdaptiveLog) -> None:
    sequence = ai.ConfidenceSequence(log).fit(method="betting")
    assert cited(sequence)[1] == ("Waudby-Smith 2024a", "Waudby-Smith 2024b")
    assert cited(ai.Winner(log).fit())[1] == ("Andrews 2024",)
    assert cited(ai.ArmMeans(log).fit(estimator="aipw", test="hall"))[1] == ("Hall 1992",)
    assert cited(ai.result({"a": 1.0}, {"a": 0.1}, label="mine")) == ((), (), ())


def test_the_checklist_has_the_items_of_both_statements() -> None:
    old = [item[0] for item in ITEMS if item[0]]
    letters = {
        2: "ab",
        3: "abc",
        4: "ab",
        6: "ab",
        7: "ab",
        8: "ab",
        12: "abc",
        13: "ab",
        14: "abc",
        15: "ab",
    }
    letters |= {1: "ab", 11: "abc", 17: "abc", 24: "ab"}
    assert old == [f"{number}{letter}" for number in range(1, 26) for letter in letters.get(number, [""])]
    halves = {
        1: "ab",
        5: "ab",
        12: "ab",
        16: "ab",
        17: "ab",
        20: "ab",
        21: "abcd",
        22: "ab",
        23: "ab",
        24: "ab",
    }
    both = {f"{number}{letter}" for number in range(1, 31) for letter in halves.get(number, [""])}
    assert {item[1].strip("()") for item in ITEMS} == both


def both(log: ai.AdaptiveLog, folder: Path) -> str:
    """A report with both checklists."""
    ai.report(log, folder / "lists.html", checklist=["consort", "ich-e20"])
    return (folder / "lists.html").read_text(encoding="utf-8")


def test_the_checklist_asks_for_what_the_log_does_not_know(
    text: str, log: ai.AdaptiveLog, tmp_path: Path
) -> None:
    assert 'id="consort"' not in text
    text = both(log, tmp_path)
    body = text[text.index('id="consort"') : text.index('id="ich-e20"')]
    assert len(re.findall("<tr>", body)) == len(ITEMS) + 1
    assert re.search(rf"<td>19</td><td>27</td>\s*<th[^>]*>harms</th><td><span[^>]*>{FOR_AUTHORS}", body)
    assert "rounds assigned:" in body


def topics(text: str) -> dict[str, str]:
    """Answers by topic, without tags."""
    body = text[text.index("<caption>Topics of ICH E20</caption>") :]
    found = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td></tr>', body[: body.index("</table>")])
    return {topic: re.sub("<[^>]*>", "", answer) for topic, answer in found}


def test_topics_of_e20_are_filled_from_the_log_and_ask_for_the_rest(
    log: ai.AdaptiveLog, tmp_path: Path
) -> None:
    found = topics(both(log, tmp_path))
    assert list(found) == [topic for topic, _ in TOPICS]
    assert found["why an adaptive design, and why one of this complexity"] == FOR_AUTHORS
    assert found["control of the type I error across the scenarios of the plan"] == FOR_AUTHORS
    assert found["bias of the estimates under the adaptation"] == FOR_AUTHORS
    assert (
        "common drift: no evidence against"
        in found["whether outcomes or the enrolled population drift over time"]
    )
    assert found["sensitivity of the estimates to such drift"] == answers.UNIFORM()


def test_weights_that_move_are_told(tmp_path: Path) -> None:
    log = ai.designs.Thompson(floor=0.1).run(ai.environments.BernoulliArms([0.3, 0.5]), 300, rng=1)
    ai.report(ai.ArmMeans(log).fit("aipw", "sqrt"), tmp_path / "r.html", log=log, checklist="ich-e20")
    found = topics((tmp_path / "r.html").read_text(encoding="utf-8"))
    told = found["sensitivity of the estimates to such drift"]
    assert html.unescape(told) == answers.WEIGHTED(weights="sqrt", for_authors=FOR_AUTHORS)


@pytest.mark.slow
def test_a_plan_is_an_appendix_or_a_page_of_its_own(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    scenarios = {
        "none": ai.environments.BernoulliArms([0.3, 0.3]),
        HOSTILE: ai.environments.BernoulliArms([0.3, 0.5]),
    }
    plan = ai.audit.operating_characteristics(
        ai.designs.Thompson(floor=0.2),
        scenarios,
        [60, 120],
        64,
        rng=0,
        fit=lambda one: ai.Contrast(one, treatment=1, control=0).fit("aipw"),
    )
    ai.report(log, tmp_path / "both.html", plan=plan, checklist=("consort", "ich-e20"))
    ai.report(plan, tmp_path / "alone.html", call="ai.audit.operating_characteristics(...)")
    rows = plan.frame.set_index("measure")
    worst = rows.loc["type-I error"].sort_values("value").iloc[-1]
    bias = rows.loc["bias", "value"]
    bias = bias[bias.abs().idxmax()] if bias.index.is_unique else bias.iloc[bias.abs().argmax()]
    for name in ("both", "alone"):
        text = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        Page(text)
        assert "<script" not in text
        found = topics(text)
        said = found["control of the type I error across the scenarios of the plan"]
        assert f"nominal 0.05; simulated at most {worst['value']:.4g} (simulation: {worst['low']:.4g}" in said
        assert says(found["bias of the estimates under the adaptation"], answers.LARGEST_BIAS, bias=bias)
        told = found["simulation report: scenarios, numbers of trials, errors, software"]
        assert says(told, answers.SIMULATED, scenarios=2, sizes=2, trials=64)
        shown = plan.table()
        body = text[text.index('id="plan"') :]
        assert len(re.findall(r'<tr><th scope="row">', body[: body.index("</table>")])) == len(shown)
        for cell in shown.iloc[-3]:
            assert html.escape(cell) in body
    assert says((tmp_path / "both.html").read_text(encoding="utf-8"), answers.PLANNED)
    with pytest.raises(ai.errors.ParameterError, match="data is itself a plan: omit it"):
        ai.report(plan, tmp_path / "r.html", plan=plan)
    with pytest.raises(ai.errors.ParameterError, match="plan must be a result of audit"):
        ai.report(log, tmp_path / "r.html", plan=3)  # type: ignore[arg-type]


def test_analyze_writes_a_report(
    log: ai.AdaptiveLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "log.parquet", tmp_path / "out.html"
    log.to_parquet(path)
    assert main(["analyze", str(path), "--report", str(page)]) == 0
    assert "ArmMeans Results" in capsys.readouterr().out
    assert f"adaptinf analyze {path} --report {page}" in page.read_text(encoding="utf-8")
    command = [
        "analyze",
        str(path),
        "--report",
        str(tmp_path / "out.txt"),
        "--output",
        str(tmp_path / "out.txt"),
    ]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "must end in .html" in said
    assert "use two different files" in said
    assert main(["analyze", str(path), "--report", str(path)]) == 2
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.slow
def test_without_matplotlib_the_rest_is_there(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    log.to_parquet(tmp_path / "log.parquet")
    code = (
        "import sys; sys.modules['matplotlib'] = None; import adaptinf as ai; "
        "ai.report(ai.read_log('log.parquet'), 'r.html')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<img" not in text
    assert "matplotlib" in text[text.index('id="allocation"') :]
    assert 'class="forest' in text


@pytest.mark.slow
def test_what_contradicts_a_result_stands_first_without_its_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    arm = rng.choice(["a", "b"], 2_000, p=[0.3, 0.7])
    frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=2_000), "p": 0.5})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p")
    found = ai.ArmMeans(log).fit("aipw", weights="uniform")
    assert says(found.cautions, NOT_FOLLOWED)
    for known in (None, log):
        ai.report(found, tmp_path / "r.html", log=known)
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        for caution in found.cautions:
            assert html.escape(caution) in text[: text.index("<nav")]
        assert says(text, methods.DOUBTED_PROPENSITIES) == (known is log)
        assert not says(text, methods.KNOWN_PROPENSITIES)
    even = frame.assign(arm=rng.choice(["a", "b"], 2_000))
    calm = ai.AdaptiveLog(even, action="arm", reward="y", propensity="p")
    ai.report(ai.ArmMeans(calm).fit("aipw", weights="uniform"), tmp_path / "r.html", log=calm)
    assert says((tmp_path / "r.html").read_text(encoding="utf-8"), methods.KNOWN_PROPENSITIES)


def test_a_word_document_has_the_sentence_the_numbers_and_the_methods(
    log: ai.AdaptiveLog, tmp_path: Path
) -> None:
    docx = pytest.importorskip("docx")
    result = ai.ArmMeans(log).fit("aipw")
    ai.report(result, tmp_path / "r.html", log=log, docx=tmp_path / "r.docx", adjust="max-t", title=HOSTILE)
    found = docx.Document(str(tmp_path / "r.docx"))
    told = [one.text for one in found.paragraphs]
    assert told[:2] == [HOSTILE, result.sentence(adjust="max-t")]
    low, high = result.conf_int_simultaneous().iloc[0]
    cells = [cell.text for cell in found.tables[0].rows[1].cells]
    assert cells[0] == HOSTILE
    assert cells[-2:] == [format_number(low), format_number(high)]
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert [text for text in told if text.startswith("400 rounds") and text in page] != []
    with pytest.raises(ai.errors.ParameterError, match=r"must end in \.docx"):
        ai.report(result, tmp_path / "r.html", docx=tmp_path / "r.doc")


def test_data_are_named_with_a_digest_that_anybody_can_take(log: ai.AdaptiveLog, tmp_path: Path) -> None:
    frame = pd.DataFrame({"arm": ["a", "b"] * 50, "y": np.arange(100) % 3, "p": 0.5})
    own = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p")
    ai.report(ai.ArmMeans(own).fit("aipw"), tmp_path / "r.html", log=own)
    rows = own.frame.to_csv(index=False, lineterminator="\n").encode()
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"Data: a frame (SHA-256 of the rows {hashlib.sha256(rows).hexdigest()})" in page
    file = tmp_path / "visits.csv"
    frame.to_csv(file, index=False)
    ai.report(ai.ArmMeans(own).fit("aipw"), tmp_path / "r.html", log=own, source=file)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"Data: visits.csv (SHA-256 {hashlib.sha256(file.read_bytes()).hexdigest()})" in page
    with pytest.raises(ai.errors.FileError):
        ai.report(ai.ArmMeans(own).fit("aipw"), tmp_path / "r.html", log=own, source=tmp_path / "none.csv")


def test_stated_contexts_have_no_part_and_are_not_called_unstated(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"a": rng.choice(["c", "t"], 300), "y": rng.normal(size=300), "x": rng.normal(size=300)}
    )
    log = ai.AdaptiveLog(
        frame.assign(p=0.5),
        action="a",
        reward="y",
        propensity="p",
        context="x",
        about={"context_free": True},
    )
    result = ai.Contrast(log, treatment="t", control="c").fit("aipw", covariate="x")
    ai.report(result, tmp_path / "r.html", log=log)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert says(page, claims.INDEPENDENT)
    assert not says(page, claims.UNSTATED)
    assert not says(page, claims.CONTEXTS_UNSTATED)
    body = page[page.index('id="methods"') :]
    assert "Covariate adjustment uses x." in body[: body.index("</p>")]


def test_inference_is_called_adaptive_only_where_assignment_may_have_been(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.choice(["c", "t"], 300), "y": rng.normal(size=300), "p": 0.5})
    for adaptive in (None, False):
        log = ai.AdaptiveLog(frame, action="a", reward="y", propensity="p", adaptive=adaptive)
        ai.report(ai.ArmMeans(log).fit("aipw"), tmp_path / "r.html", log=log)
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert (methods.UNDER_ADAPTATION() in page) == (adaptive is None)


def test_several_results_have_a_sentence_a_picture_and_a_table_each(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6, 0.5])
    log = ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=1_000, rng=0)
    means, contrasts = ai.ArmMeans(log).fit(), ai.Contrasts(log, control=0).fit()
    ai.report([means, contrasts], tmp_path / "r.html", log=log)
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    text = "\n".join(page.texts)
    for result in (means, contrasts):
        assert text.count(result.sentence()) == 1
        shown = [format_number(value) for value in result.estimate]
        assert all(text.count(f"{value}\n") >= 2 for value in shown)  # in the picture and in the table
    headings = ["Mean reward", "Difference in mean reward, compared with arm 0"]
    assert [text.count(f"\n{heading}\n") for heading in headings] == [4, 4]
    captions = [attributes.get("class") for attributes in page.every("table")]
    assert captions.count("forest") == 2
    assert len(page.every("img")) == 2  # the allocation, once
    ids = [attributes["id"] for attributes in page.every("h2") if "id" in attributes]
    assert ids == ["results", "allocation", "sound", "assumed", "methods", "collected", "valid", "call"]


def test_results_go_by_their_names_or_their_methods(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6])
    model = ai.ArmMeans(ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=500, rng=0))
    results = [model.fit("aipw", "uniform"), model.fit("alee")]
    for data, headings in (
        (results, ["Mean reward: aipw (uniform)", "Mean reward: alee"]),
        ({"First <b>": results[0], "Second": results[1]}, ["First &lt;b&gt;", "Second"]),
    ):
        ai.report(data, tmp_path / "r.html")
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert re.findall("<h2>(.*?)</h2>", text) == headings


def test_what_is_of_one_result_is_refused_for_several(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6])
    log = ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=500, rng=0)
    with pytest.raises(ai.errors.ParameterError) as caught:
        ai.report([ai.ArmMeans(log).fit(), log], tmp_path / "r.html", brief=True, docx=tmp_path / "r.docx")
    assert [problem[:49] for problem in caught.value.problems] == [
        "data must be results of fit(), got AdaptiveLog: 5",
        "brief= applies to a single result, but data has 2",
        "docx= applies to a single result, but data has 2",
    ]
    with pytest.raises(ai.errors.ParameterError, match="data must contain at least one"):
        ai.report([], tmp_path / "r.html")


def test_several_results_of_a_private_log_are_in_a_frame(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.3, 0.5])
    log = ai.designs.PrivateUCB(epsilon=0.5).run(arms, horizon=500, rng=0)
    model = ai.ArmMeans(log)
    ai.report({"one": model.fit("sample-mean"), "two": model.fit("alee")}, tmp_path / "r.html", log=log)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.index('class="box"') < text.index("<h2>one</h2>") < text.index("<h2>two</h2>")
