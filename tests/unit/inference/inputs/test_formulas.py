"""Formulas: what they may hold, that nothing else runs, and the numbers of formulaic itself."""

from __future__ import annotations

import pickle
from typing import Any

import formulaic
import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.formulas import Formula, model_on, name_in_formula, read_formula
from adaptinf.log import LogArrays

ORDINARY = (
    "C(arm) * x + np.log(z) + I(x**2)",
    "poly(x, 2) + poly(z, 2, raw=True) + bs(z, df=4)",
    "bs(x, knots=[1.5, 2.0], degree=2) + cr(z, df=3) + cc(x, df=3)",
    "center(x) + scale(z) + standardize(x) + scale(x, center=False)",
    "center(np.log(x)) + I(center(x) ** 2)",
    "C(i, contr.sum):x + g",
    "C(g, levels=['c', 'a', 'b'])",
    "C(g, contr.treatment('b')) + C(i, Treatment(1))",
    "C(g, contr.treatment(base='b')) * C(arm, Sum)",
    "C(g, contr.helmert) + C(i, contr.poly(scores=[0, 1, 3])) + C(arm, Diff)",
    "C(g, {'low': [1, 0, 0], 'high': [0, 0, 1]})",
    "C(g, contr.custom([[1, 0], [0, 1], [1, 1]], names=['u', 'v']))",
    "x + {x + 1} + I(x / z) - 1",
    "0 + g + arm:x",
    "hashed(g, levels=3)",
    "I(g == 'a') + I((x > 2) & (z < 2)) + I(~(x > 1.5)) + b",
    "(x + z + i) ** 2",
    "x / g + x %in% g",
    "`age y` + np.log(`age y 2`) + `centre.no` + centre.no:x",
    "Q('x') + Q(\"age y\"):g",
    "log(x) + exp(z) + log10(x) + exp2(z) + np.sqrt(x) + np.abs(x - 2)",
    "np.where(x > 2, x, 0) + np.clip(x, 1, 2) + np.maximum(x, z) + np.power(x, 3) + np.round(x, 1)",
    "I(x - np.mean(x)) + I(x / np.std(z, ddof=1)) + I(x * np.pi)",
    "x + {x} + g + x:g + 2:x:z",
    "I(x**-1) + I(-x // 2) + I(x % 2)",
)
REFUSED = (
    "I(x.sum())",
    "{x.__class__}",
    "I(x.real)",
    "x[0]",
    "I(x[0])",
    "I(x[:3])",
    "I((y := x))",
    "I((lambda: x)())",
    "I(lambda: x)",
    "C(x, levels=[v for v in x])",
    "C(x, levels={v for v in x})",
    "C(x, {v: v for v in x})",
    "C(x, levels=(v for v in x))",
    "I(f'{x}')",
    "C(x, f'{x.__class__}')",
    "I('%s' % x)",
    "I('a' * 99999)",
    "I('{0.__class__}'.format(x))",
    "C(x, '{0}'.format)",
    "C(*x)",
    "C(**x)",
    "C(x, [*x])",
    "C(x, {**x})",
    "I(await x)",
    "I(yield x)",
    "I(x if x else x)",
    "I(x and z)",
    "I(not x)",
    "I(1 < x < 2)",
    "I(x in [1, 2])",
    "I(x is None)",
    "I(x @ z)",
    "I(x << 3)",
    "I({1, 2})",
    "I(...)",
    "I(1j)",
    "I(b'a')",
    "I(2 ** 10 ** 10)",
    "I(9 ** 9 ** 9)",
    "(x + z) ** 99",
    "__import__('os').mkdir('CANARY')",
    "I(__import__('os').mkdir('CANARY'))",
    "{__import__('os').mkdir('CANARY')}",
    "`x`+{__import__('os').mkdir('CANARY').bit_length()}+`x`",
    "C(x, levels=__import__('os').mkdir('CANARY'))",
    "__import__('os').mkdir('CANARY')() + x",
    "I(x)(__import__('os').mkdir('CANARY'))",
    "np.os.mkdir('CANARY')",
    "np.lib.format.open_memmap('CANARY')",
    "np.load('CANARY')",
    "np.savetxt('CANARY', x)",
    "np.frompyfunc(print, 1, 1)(x)",
    "np.vectorize(print)(x)",
    "np.log(x, x)",
    "np.log(x, out=x)",
    "np.log.__call__(x)",
    "np.log.reduce(x)",
    "contr.treatment.__init__(x)",
    "C(x, contr.treatment().apply)",
    "C(x, contr.__class__)",
    "center(x, _state=x)",
    "scale(x, _context=1)",
    "hashed(x, levels=3, hash_func=print)",
    "Q(x)",
    "Q('x' + 'z')",
    "Q(Q('x'))",
    "Q(variable='x')",
    "eval('1')",
    "exec('1')",
    "compile('1', '', 'eval')",
    "getattr(x, 'real')",
    "type(x)",
    "open('CANARY', 'w')",
    "print(x)",
    "globals()",
    "I(x\x00)",
    "I(" + "(" * 400 + "x" + ")" * 400 + ")",
    "I(" + "-" * 20_000 + "x)",
)
UNKNOWN = (
    "(lambda: x)()",
    "np",
    "contr",
    "print",
    "__builtins__",
    "I(__builtins__)",
    "Q('\\x60')",
    "x.__class__",
    "I(print)",
)
STATE_KEYS = (
    r"""center(Q('"]+__import__("os").mkdir("CANARY")+["'))""",
    r"""C(g, levels=['\\\\"]+__import__("os").mkdir("CANARY")+[\\\\"'])""",
    r"""scale(Q("\x22]+__import__('os').mkdir('CANARY')+[\x22"))""",
)


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {name: rng.uniform(1.0, 3.0, n) for name in ("x", "z", "centre.no", "age y", "age y 2")}
    )
    made["g"] = rng.choice(["a", "b", "c"], n)
    made["i"] = rng.integers(0, 3, n)
    made["b"] = rng.random(n) > 0.5
    labels = pd.CategoricalDtype(["c", "a", "b"])
    return made.assign(arm=pd.Series(rng.choice(["b", "a", "c"], n)).astype(labels))


@pytest.fixture
def no_eval(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Formulaic without Python's eval, and a folder in which nothing may be made."""

    calls: list[Any] = []

    def refuse(*arguments: Any) -> Any:
        calls.append(arguments)
        raise NameError("no eval here")

    for module in ("stateful_transforms", "variables"):
        monkeypatch.setattr(f"formulaic.utils.{module}.eval", refuse, raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    assert calls == []
    assert not list(tmp_path.iterdir())


def test_formulaic_itself_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr("formulaic.utils.stateful_transforms.eval", lambda *_: calls.append(_), raising=False)
    assert "x" in formulaic.Formula("np.log(x)").required_variables
    assert calls != []


def made(text: str, data: pd.DataFrame) -> Any:
    return model_on("a formula", read_formula("a formula", text), data)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_formulas_give_the_numbers_of_formulaic(text: str) -> None:
    data = frame()
    theirs = formulaic.Formula(text).get_model_matrix(data, output="numpy", na_action="raise")
    ours = made(text, data)
    assert ours.names == tuple(map(str, theirs.model_spec.column_names))
    np.testing.assert_allclose(ours.matrix, np.asarray(theirs, dtype=float), rtol=1e-12, atol=1e-12)
    few = data.iloc[:7].assign(unused=1.0)
    again = pickle.loads(pickle.dumps(ours)).rows("predict", few)
    expected = np.asarray(theirs.model_spec.get_model_matrix(few), dtype=float)
    np.testing.assert_allclose(again, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_formulas_need_no_eval(text: str, no_eval: Any) -> None:
    made(text, frame())


@pytest.mark.parametrize("text", REFUSED)
def test_other_python_is_refused_before_anything_runs(text: str, no_eval: Any) -> None:
    for place in ("{}", "x + {}", "{} ~ x", "x ~ {}"):
        with pytest.raises(ParameterError, match="formula"):
            read_formula("a formula", place.format(text))


@pytest.mark.parametrize("text", [*UNKNOWN, *STATE_KEYS])
def test_names_are_columns_and_nothing_else(text: str, no_eval: Any) -> None:
    with pytest.raises(ParameterError):
        made(text, frame())
    arrays = LogArrays(
        np.tile([0, 1], 30), np.zeros(60), context={"x": np.ones(60), "g": frame()["g"].to_numpy()}
    )
    log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    with pytest.raises(ParameterError):
        ai.AdaptiveOLS.from_formula(f"reward ~ {text}", log)
    with pytest.raises(ParameterError):
        ai.CATE.from_formula(text, log)


def test_a_hostile_name_within_a_transform_is_a_name(no_eval: Any) -> None:
    name = '"]+__import__("os").mkdir("CANARY")+["'
    data = frame().rename(columns={"x": name})
    given = made(f"center({name_in_formula(name)})", data)
    np.testing.assert_allclose(given.matrix, made("center(x)", frame()).matrix, rtol=1e-12)


def test_everything_that_is_wrong_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        read_formula("a formula", "I(x.y) + open(z) + x[0] + np.log(x, z)")
    problems = caught.value.problems
    assert [problem.split("': ", 1)[1].split(" (trusted")[0] for problem in problems] == [
        "formulas must not contain an attribute, as 'x.y'",
        "formulas must not call 'open'",
        "formulas must not contain a subscript",
        "np.log takes 1 arguments, got 2",
    ]
    assert problems[-1].endswith(
        "(trusted=True evaluates any Python code in a formula, as if it were your own)"
    )


PARTS = (
    *"()[]{}`'\"\\+-*/:~|,.=%^ ",
    "x",
    "g",
    "np.log(",
    "Q('",
    "C(",
    "__import__('os')",
    ".mkdir('CANARY')",
    "lambda: ",
)


def test_no_text_makes_formulaic_evaluate_python(no_eval: Any) -> None:
    rng = np.random.default_rng(7)
    read = 0
    for _ in range(3000):
        text = "".join(rng.choice(PARTS, rng.integers(1, 12)))
        try:
            formula = read_formula("a formula", text)
        except ParameterError:
            continue
        read += isinstance(formula, Formula)
    assert read > 50


def log_of(context: dict[str, Any]) -> ai.AdaptiveLog:
    n = len(next(iter(context.values())))
    action = np.random.default_rng(2).integers(0, 2, n)
    arrays = LogArrays(action, np.random.default_rng(1).normal(size=n), context=context)
    return ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


@pytest.mark.parametrize("arm", [None, "b"])
def test_default_columns_are_those_of_the_formula(arm: str | None) -> None:
    data = frame()
    context = {name: data[name].to_numpy() for name in ("x", "g", "i", "b", "z")}
    context["one"] = np.full(60, "k", dtype=object)
    context["word"] = np.where(data["x"] > 2, "Ä", "a b").astype(object)
    log = log_of(context)
    plain = ai.AdaptiveOLS(log, arm=arm).data
    formula = ai.AdaptiveOLS.from_formula("reward ~ x + g + i + b + z + one + word", log, arm=arm).data
    assert plain.names == formula.names
    assert plain.names == ("Intercept", "x", "g[T.b]", "g[T.c]", "i", "b", "z", "word[T.Ä]")
    np.testing.assert_allclose(plain.x, formula.x, rtol=1e-12)
    assert plain.formula == formula.formula
    assert plain.covariates == tuple(context)


def test_a_header_is_no_code(no_eval: Any) -> None:
    name = "x`+{str(__import__('os').mkdir('CANARY')).__len__()}+`x"
    data = frame()
    context = {"x": data["x"].to_numpy(), name: data["g"].to_numpy(dtype=object)}
    arrays = LogArrays(
        np.tile([0, 1], 30), data["z"].to_numpy(), propensity=np.full(60, 0.5), context=context
    )
    log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    assert ai.AdaptiveOLS(log).data.names == ("Intercept", "x", f"{name}[T.b]", f"{name}[T.c]")
    with pytest.raises(ParameterError, match="formulas must not call"):
        ai.CATE.from_formula(f"`{name}`", log)
    terms = ai.CATE.from_formula(name_in_formula(name), log).fit().terms
    assert terms == ("Intercept", *(f"Q({name!r})[T.{label}]" for label in "bc"))


def test_labels_that_formulaic_would_leave_out() -> None:
    labels = np.tile(np.array(["__a", "b", "c"], dtype=object), 20)
    log = log_of({"g": labels})
    assert ai.AdaptiveOLS(log).data.names == ("Intercept", "g[T.b]", "g[T.c]")
    with pytest.raises(ParameterError, match="'g' has labels that begin with two underscores, '__a': rename"):
        ai.AdaptiveOLS.from_formula("reward ~ g", log)


def test_columns_of_one_name_are_refused() -> None:
    log = log_of({"Intercept": np.arange(60.0), "x": np.arange(60.0) ** 2})
    with pytest.raises(ParameterError, match="several columns are called 'Intercept': rename the contexts"):
        ai.AdaptiveOLS(log)


def test_trusted_formulas_are_ones_own_code() -> None:
    x = np.random.default_rng(0).normal(size=60)
    log = log_of({"x": x, "age y": x**2})
    text = "reward ~ I(x.clip(0)) + `age y`"
    with pytest.raises(ParameterError, match=r"formulas must not call 'x\.clip'"):
        ai.AdaptiveOLS.from_formula(text, log)
    own = ai.AdaptiveOLS.from_formula(text, log, trusted=True).data
    np.testing.assert_allclose(own.x[:, 1:], np.column_stack([x.clip(0), x**2]))
    assert own.covariates == ("x", "age y")
    arrays = LogArrays(log.arrays.action, log.arrays.reward, propensity=np.full(60, 0.5), context={"x": x})
    known = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    effect = ai.CATE.from_formula("I(x.clip(0))", known, trusted=True).fit()
    assert effect.predict({"x": [-1.0, -5.0]})["effect"].nunique() == 1
    table = ai.recommend(known, "cate", formula="I(x.clip(0))", trusted=True)
    assert "trusted=True" in table.best.call
    with pytest.raises(ParameterError, match="formulas must not call"):
        ai.recommend(known, "cate", formula="I(x.clip(0))")
    for wrong in ("yes", 1, None):
        with pytest.raises(ParameterError, match="trusted must be True or False"):
            ai.AdaptiveOLS.from_formula("reward ~ x", log, trusted=wrong)


ODD = [
    "centre no.",
    "a`b",
    "class",
    "1st",
    "a\\b",
    "x + y",
    "it's",
    "Größe",
    "{x}",
    "%",
    "a:b",
    "0",
    "naïve.no",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_in_formulas(name: str) -> None:
    data, quoted = frame().rename(columns={"x": name}), name_in_formula(name)
    inside = f"`{name}`" if quoted == "naïve.no" else quoted
    given = made(f"{quoted} + z:{quoted} + np.log({inside}) + I({inside} + z)", data)
    plain = made("x + z:x + np.log(x) + I(x + z)", frame())
    np.testing.assert_allclose(given.matrix, plain.matrix, rtol=1e-12)
    assert given.formula.needed == {name, "z"}
