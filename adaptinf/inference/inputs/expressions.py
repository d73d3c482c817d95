"""Python code in formulas, which is parsed, compared with a list of allowed parts, and evaluated.

Python's `eval` is never called, so only code on the list can run.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError

_TERMS = 50_000
_COLUMNS = 5_000
_LONGEST_POWER = 100
ARGUMENT_SIZES = {"degree": 20, "df": 1_000, "levels": _COLUMNS}
"""Largest integers that transforms accept for these arguments, with which time and memory grow."""


def check_products(tree: Any) -> None:
    """Refuse a parsed formula that would expand to too many terms."""
    sizes: dict[int, float] = {}
    # An explicit stack is used, because long sums nest deeper than Python's recursion limit.
    pending = [(tree, False)]
    while pending:
        node, ready = pending.pop()
        arguments = list(getattr(node, "args", ()))
        if arguments and not ready:
            pending += [(node, True), *((argument, False) for argument in arguments)]
            continue
        sizes[id(node)] = _products(node, arguments, [sizes[id(argument)] for argument in arguments])
        if sizes[id(node)] > _TERMS:
            raise ValueError(f"it expands to more than {_TERMS:,} terms")


def _products(node: Any, arguments: Sequence[Any], sizes: Sequence[float]) -> float:
    """Number of terms generated for a node of the tree, including duplicates."""
    symbol = node.operator.symbol if arguments else ""
    if len(sizes) == 2:
        left, right = sizes
        match symbol:
            case "*":
                return left * right + left + right
            case ":" | "in":
                return left * right
            case "**" | "^":
                digits = str(getattr(arguments[1], "token", ""))
                if not digits.isdecimal():
                    return left
                power = int(digits) if len(digits) < 5 else _LONGEST_POWER + 1
                return max(left, 2.0) ** power if power <= _LONGEST_POWER else float("inf")
    return sum(sizes) if arguments else 1.0


def check_arguments(call: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse integers for which a transform would need too much time or memory."""
    given = inspect.signature(call).bind(*arguments, **named).arguments
    for name, most in ARGUMENT_SIZES.items():
        value = given.get(name)
        size = len(value) if isinstance(value, list | tuple) else value
        if isinstance(size, int | float) and size > most:
            raise ValueError(f"{name} must be at most {most:,}, got {size:.6g}")


def check_labels(model: Any, data: pd.DataFrame) -> None:
    """Refuse interactions with more labels than a model matrix can hold; data has shape (T, p)."""
    labels = {
        str(name): data[name].nunique()
        for name in data.columns
        if getattr(data[name], "ndim", 2) == 1 and not pd.api.types.is_numeric_dtype(data[name])
    }
    for term in getattr(model, "formula", model):
        columns = 1
        for factor in term.factors:
            columns *= labels.get(factor.expr, 1)
        if columns > _COLUMNS:
            raise ValueError(
                f"{term} has about {columns:,} columns, one per label; at most {_COLUMNS:,} are allowed"
            )


def numeric(column: Any) -> bool:
    """Whether a column of a frame, or its categories, are real numbers or booleans."""
    kind = column.cat.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def check_kinds(subject: str, numbers: Mapping[str, bool], table: pd.DataFrame) -> None:
    """Refuse numbers in columns that are labels in the log, and vice versa; table has shape (m, p)."""
    problems = [
        f"column {name!r} must contain {'real numbers' if known else 'labels'}, as in the log, not "
        f"{table[name].dtype}"
        for name, known in numbers.items()
        if len(table) and name in table and table[name].ndim == 1 and numeric(table[name]) != known
    ]
    if problems:
        raise ParameterError(subject, problems)


_UNARY = """
abs absolute fabs sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin
arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc rint deg2rad rad2deg isfinite isnan
logical_not
"""
_BINARY = "power minimum maximum fmin fmax arctan2 hypot mod fmod logical_and logical_or logical_xor"
_SUMMARIES = "mean median min max std var"
_PLAIN = "log log10 log2 exp exp2 exp10"
_TRANSFORMS = "C I bs cc center cr cs hashed lag poly scale standardize Poly Sum Helmert Diff Treatment"
_CODINGS = "treatment sum helmert diff poly SAS custom"
_NO_KEYWORDS = {"hash_func", "output"}


@dataclass(frozen=True, slots=True)
class Function:
    """A function that formulas can call, with its positional and its keyword arguments."""

    call: Callable[..., Any]
    least: int
    most: int
    keywords: frozenset[str] = frozenset()

    @property
    def keeps_state(self) -> bool:
        """Whether the function stores statistics of the columns on which it was first evaluated."""
        return getattr(self.call, "__is_stateful_transform__", False)

    @property
    def has_sizes(self) -> bool:
        """Whether the function takes integers that increase its time and memory."""
        return bool(self.keywords & ARGUMENT_SIZES.keys())

    def problems(self, name: str, positional: int, keywords: list[str]) -> list[str]:
        """Problems with the arguments of a call."""
        found = [f"{name} has no argument {key!r}" for key in keywords if key not in self.keywords]
        if not self.least <= positional + len(keywords) or positional > self.most:
            span = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            found.append(f"{name} takes {span} arguments, got {positional + len(keywords)}")
        return found


@cache
def functions() -> dict[str, Function]:
    """All functions that formulas can call, keyed by name."""
    from formulaic.transforms import TRANSFORMS

    plain = {name: Function(TRANSFORMS[name], 1, 1) for name in _PLAIN.split()}
    numpy = {f"np.{name}": Function(getattr(np, name), 1, 1) for name in _UNARY.split()}
    numpy |= {f"np.{name}": Function(getattr(np, name), 2, 2) for name in _BINARY.split()}
    numpy |= {f"np.{name}": Function(getattr(np, name), 1, 1, _degrees(name)) for name in _SUMMARIES.split()}
    numpy |= {"np.where": Function(np.where, 3, 3), "np.clip": Function(np.clip, 3, 3)}
    numpy["np.round"] = Function(np.round, 1, 2)
    own = {name: _described(TRANSFORMS[name]) for name in _TRANSFORMS.split()}
    codings = {f"contr.{name}": _described(getattr(TRANSFORMS["contr"], name)) for name in _CODINGS.split()}
    return {**plain, **own, **codings, **numpy, "Q": Function(str, 1, 1)}


@cache
def values() -> dict[str, Any]:
    """All values other than columns that formulas can use by name."""
    from formulaic.transforms import TRANSFORMS

    codings = {f"contr.{name}": getattr(TRANSFORMS["contr"], name) for name in _CODINGS.split()}
    codings |= {name: TRANSFORMS[name] for name in ("Poly", "Sum", "Helmert", "Diff")}
    return {**codings, "np.pi": np.pi, "np.e": np.e, "np.inf": np.inf}


def _degrees(name: str) -> frozenset[str]:
    return frozenset({"ddof"} if name in ("std", "var") else ())


def _described(call: Callable[..., Any]) -> Function:
    """A transform with its public arguments; those that begin with an underscore are set by formulaic."""
    known = [
        one
        for one in inspect.signature(call).parameters.values()
        if not one.name.startswith("_") and one.name not in _NO_KEYWORDS
    ]
    by_position = [one for one in known if one.kind is not one.KEYWORD_ONLY]
    needed = sum(one.default is one.empty for one in by_position)
    return Function(call, needed, len(by_position), frozenset(one.name for one in known))


_PIECES = re.compile(r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`(?P<name>[^`]*)`""", re.DOTALL)
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PROBLEMS: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute",
    ast.Subscript: "a subscript",
    ast.NamedExpr: "an assignment",
    ast.Lambda: "a user-defined function",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "a formatted text",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "starred arguments",
    ast.BoolOp: "and, or (write &, |)",
    ast.Not: "not (write ~)",
    ast.IfExp: "if ... else (write np.where)",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_NUMBERS, _TEXTS, _LISTS = range(3)
"""What is allowed in a position: numbers and columns; strings as well; or also lists and dicts."""


class RefusedExpression(ValueError):
    """Raised for Python that is not allowed in a formula; the arguments are the problems."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A checked Python expression in a formula: its text, its tree, and the columns that it uses."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def compute(self, columns: Mapping[str, Any], states: MutableMapping[str, Any]) -> Any:
        """Compute the value; transforms store statistics of columns in `states`, or read them from it."""
        try:
            return _value(self.tree, columns, states)
        except Exception as error:
            raise ValueError(f"`{self.text}` fails: {type(error).__name__}: {error}") from error


def read_expression(text: str) -> Expression:
    """Parse Python with names that may be quoted by backticks, and refuse parts that are not allowed."""
    if not unicodedata.is_normalized("NFKC", _PIECES.sub("", text)):
        raise RefusedExpression(f"{text!r:.200} has letters that Python normalises: write `name`")
    try:
        tree, shown = _parsed(text)
        problems = list(dict.fromkeys(_problems(tree, _NUMBERS)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RefusedExpression(f"{text!r:.200} cannot be read") from None
    if problems:
        raise RefusedExpression(*problems)
    return Expression(shown, tree, frozenset(_columns(tree)))


def unnamed_problems(text: str) -> list[str]:
    """Empty pairs of backticks, which formulaic silently omits."""
    empty = any(piece["name"] == "" for piece in _PIECES.finditer(text))
    return ["`` names no column (Q('') refers to a column without a name)"] if empty else []


def _parsed(text: str) -> tuple[ast.expr, str]:
    """The tree of an expression, with the names as given, and its text, with unusual names in backticks."""
    aliases: dict[str, str] = {}
    stem = "_"
    while stem in text:
        stem += "_"

    def alias(piece: re.Match[str]) -> str:
        if piece["name"] is None:
            return piece[0]
        name = f"{stem}{len(aliases)}"
        aliases[name] = piece["name"]
        return f" {name} "

    tree = ast.parse(_PIECES.sub(alias, text).strip(), mode="eval").body
    renamed = [
        (node, aliases[node.id])
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in aliases
    ]
    for node, name in renamed:
        node.id = name if name.isidentifier() else f"`{name}`"
    shown = ast.unparse(tree).replace("\n", " ")
    for node, name in renamed:
        node.id = name
    return tree, shown


def _dotted(node: ast.AST) -> str:
    """A dotted name such as np.log; empty if the node is anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _refused(node: ast.AST) -> str:
    kind = _PROBLEMS.get(type(node), f"{type(node).__name__}")
    return f"formulas must not contain {kind}"


def _problems(node: ast.AST, place: int) -> Iterator[str]:
    """Problems with a tree, given what is allowed in its position."""
    match node:
        case ast.Name():
            return
        case ast.Constant(value=bool() | int() | float() | None):
            return
        case ast.Constant(value=str()) if place >= _TEXTS:
            return
        case ast.Constant():
            yield f"{node.value!r:.60} is not allowed in this position"
        case ast.Attribute():
            if _dotted(node) not in values():
                yield f"{_refused(node)}, as {ast.unparse(node)!r:.60}"
        case ast.UnaryOp(op, operand):
            yield from [] if type(op) in _OPERATORS else [_refused(op)]
            yield from _problems(operand, _NUMBERS)
        case ast.BinOp(left, op, right):
            yield from [] if type(op) in _OPERATORS else [_refused(op)]
            yield from _size_problems(node)
            yield from _problems(left, _NUMBERS)
            yield from _problems(right, _NUMBERS)
        case ast.Compare(left, [op], [right]):
            yield from [] if type(op) in _OPERATORS else [_refused(op)]
            yield from _problems(left, _TEXTS)
            yield from _problems(right, _TEXTS)
        case ast.Compare():
            yield "formulas must not contain chained comparisons (write (a < x) & (x < b))"
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if place == _LISTS:
            for part in parts:
                yield from _problems(part, _LISTS)
        case ast.Dict(keys=keys, values=parts) if place == _LISTS:
            yield from (
                []
                if all(isinstance(key, ast.Constant) for key in keys)
                else ["formulas must not contain dicts with keys other than numbers and strings"]
            )
            for part in parts:
                yield from _problems(part, _LISTS)
        case ast.Call():
            yield from _call_problems(node)
        case _:
            yield _refused(node)


def _size_problems(node: ast.BinOp) -> list[str]:
    """Problems with powers of numbers whose computation could take too long."""
    if not isinstance(node.op, ast.Pow) or any(_columns(node)):
        return []
    small = all(_size(part) <= 1e3 for part in (node.left, node.right))
    return [] if small else [f"{ast.unparse(node)!r:.60} is a power of numbers that are too large"]


def _size(node: ast.expr) -> float:
    """The value of a number, or infinity if the node is anything else."""
    match node:
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() as number)):
            return abs(number)
        case ast.Constant(value=int() | float() as number):
            return abs(number)
    return math.inf


def _call_problems(node: ast.Call) -> Iterator[str]:
    name = _dotted(node.func)
    function = functions().get(name)
    if function is None:
        yield f"formulas must not call {ast.unparse(node.func)!r:.60}"
        return
    yield from function.problems(name, len(node.args), [key.arg or "**" for key in node.keywords])
    if name == "Q" and _quoted_name(node) is None:
        yield "Q requires the name of a column as a string"
    for part in [*node.args, *(key.value for key in node.keywords)]:
        yield from _problems(part, _LISTS)


def _quoted_name(node: ast.AST) -> str | None:
    """The name in Q("name"), or None if the node is anything else."""
    match node:
        case ast.Call(ast.Name("Q"), [ast.Constant(value=str(name))], []):
            return name
    return None


def _columns(node: ast.AST) -> Iterator[str]:
    """The names in a tree other than those of functions."""
    if (name := _quoted_name(node)) is not None:
        yield name
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        for part in [*node.args, *(key.value for key in node.keywords)]:
            yield from _columns(part)
    elif not isinstance(node, ast.Attribute):
        for child in ast.iter_child_nodes(node):
            yield from _columns(child)


def _value(node: ast.AST, columns: Mapping[str, Any], states: MutableMapping[str, Any]) -> Any:
    """Compute the value of a checked tree."""

    def of(part: ast.AST) -> Any:
        return _value(part, columns, states)

    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return columns[name] if name in columns else values()[name]
        case ast.Attribute():
            return values()[_dotted(node)]
        case ast.UnaryOp(op, operand):
            return _OPERATORS[type(op)](_number(of(operand)))
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_number(of(left)), _number(of(right)))
        case ast.Compare(left, [op], [right]):
            return _OPERATORS[type(op)](of(left), of(right))
        case ast.List(parts):
            return [of(part) for part in parts]
        case ast.Tuple(parts):
            return tuple(of(part) for part in parts)
        case ast.Dict(keys, parts):
            return {of(key): of(part) for key, part in zip(keys, parts, strict=True) if key is not None}
        case ast.Call(function, arguments, keywords):
            if (quoted := _quoted_name(node)) is not None:
                return columns[quoted]
            known = functions()[_dotted(function)]
            given = [of(argument) for argument in arguments]
            named = {str(key.arg): of(key.value) for key in keywords}
            if known.has_sizes:
                check_arguments(known.call, given, named)
            if known.keeps_state:
                named["_state"] = states.setdefault(ast.dump(node), {})
            return known.call(*given, **named)
    raise TypeError(f"{type(node).__name__} is not supported")


def _number(value: Any) -> Any:
    """Return a value for arithmetic, and refuse strings, which could be multiplied or formatted."""
    if np.asarray(value).dtype.kind not in "biuf":
        raise TypeError("arithmetic requires numbers")
    return value
