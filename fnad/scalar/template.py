"""Templates: the notation in which a primitive states its scalar expression.

    {0} * log1p(exp({dtype}(-2) * abs({0})))

A template is a Python expression of the operations of `operations`; `{0}`, `{1}` and other words in braces stand for
operands, `{dtype}` is the cast to the result's dtype, `{lowest}` and `{highest}` are its bounds. Numbers occur
only in casts, so that each has a dtype. A word that is not in the table is an error at the declaration.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from fnad.codes import parsed
from fnad.scalar.operation import Dtype, OperandError, Operation
from fnad.scalar.operations import BINARY, DTYPES, OPERATIONS, UNARY, operation_named

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.USub: "-", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip
"""The operators of Python, as they are written."""

T = TypeVar("T")
NUMBERS = {"inf": np.inf, "nan": np.nan}


@dataclass(frozen=True, slots=True)
class Hole:
    """An operand, by its word."""

    word: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a dtype; None stands for the result's."""

    value: float | complex
    dtype: Dtype | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The lowest or the highest value of the result's dtype."""

    word: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operation; None stands for the cast to the result's dtype."""

    operation: Operation | None
    operands: tuple[Tree, ...]


Tree: TypeAlias = Hole | Number | Extreme | Call


class Maker(Protocol[T]):
    """A factory of expressions, which templates are instantiated with."""

    def constant(self, value: np.generic) -> T: ...

    def apply(self, operation: Operation, *operands: T) -> T: ...


def check(template: str) -> str:
    """The template; raises `ValueError` for a word that is no operation."""
    for word in re.findall(r"(?<!\{)\b([A-Za-z_]\w*)\b(?!\})", template):
        if operation_named(word) is None and word not in NUMBERS:
            raise ValueError(f"the template {template!r} has a word that is no scalar operation: {word}")
    return template


@cache
def parse(template: str) -> Tree:
    """The tree of a template."""
    text = re.sub(r"\{(\w+)\}", r"_hole_\1", check(template))
    return _tree(parsed(text.strip(), mode="eval").body, template)


def _tree(node: ast.expr, template: str) -> Tree:
    def inner(*nodes: ast.expr) -> tuple[Tree, ...]:
        return tuple(_tree(n, template) for n in nodes)

    match node:
        case ast.Name(id=name) if name in ("_hole_lowest", "_hole_highest"):
            return Extreme(name.removeprefix("_hole_"))
        case ast.Name(id=name) if name.startswith("_hole_"):
            return Hole(name.removeprefix("_hole_"))
        case ast.Call(func=ast.Name(id=name), args=operands) if name == "_hole_dtype" or name in DTYPES:
            dtype = DTYPES.get(name)
            number = number_of(operands[0])
            if number is not None:
                return Number(number, dtype)
            return Call(OPERATIONS[name] if dtype is not None else None, inner(*operands))
        case ast.Call(func=ast.Name(id=name), args=operands):
            return Call(operation_named(name), inner(*operands))
        case ast.BinOp(left, op, right) if type(op) in SIGNS:
            return Call(BINARY[SIGNS[type(op)]], inner(left, right))
        case ast.Compare(left, [op], [right]) if type(op) in SIGNS:
            return Call(BINARY[SIGNS[type(op)]], inner(left, right))
        case ast.UnaryOp(op, operand):
            return Call(UNARY[SIGNS[type(op)]], inner(operand))
        case _:
            raise ValueError(f"the template {template!r} has no meaning at: {ast.unparse(node)}")


def number_of(node: ast.expr) -> float | complex | None:
    """The number that an expression denotes, None if it is no number."""
    match node:
        case ast.Constant(value=int() | float() | complex() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name) if name in NUMBERS:
            return NUMBERS[name]
        case ast.UnaryOp(ast.USub(), operand) if (value := number_of(operand)) is not None:
            return -value
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            a, b = number_of(left), number_of(right)
            return None if a is None or b is None else a + b if isinstance(op, ast.Add) else a - b
        case _:
            return None


def instantiate(template: str, make: Maker[T], dtype: Dtype, operands: Mapping[str, T]) -> T:
    """The expression of a template on these operands, with a result of this dtype."""

    def build(tree: Tree) -> T:
        match tree:
            case Hole(word):
                return operands[word]
            case Number(value, of):
                return make.constant((of or dtype).type(value))
            case Extreme(word):
                return make.constant(bound(dtype, word))
            case Call(operation, arguments):
                return make.apply(operation or cast_to(dtype), *map(build, arguments))

    return build(parse(template))


class _OnArrays:
    """NumPy arrays as the expressions of a template."""

    def constant(self, value: np.generic) -> Any:
        return value

    def apply(self, operation: Operation, *operands: Any) -> Any:
        return operation(*operands)


def on_arrays(template: str) -> Callable[..., Any]:
    """The function of arrays that a template denotes: of ufuncs, casts and selects."""

    def evaluate(*operands: Any) -> Any:
        named = {str(n): operand for n, operand in enumerate(operands)}
        return np.asarray(instantiate(template, _OnArrays(), operands[0].dtype, named))

    return evaluate


def cast_to(dtype: Dtype) -> Operation:
    """The cast to a dtype."""
    if dtype not in CASTS:
        raise OperandError(f"there is no cast to {dtype}")
    return OPERATIONS[CASTS[dtype]]


CASTS = {dtype: name for name, dtype in DTYPES.items()}


def bound(dtype: Dtype, word: str) -> Any:
    """The lowest or the highest value of a dtype, infinities included."""
    low = word == "lowest"
    if dtype.kind == "f":
        return dtype.type(-np.inf if low else np.inf)
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min if low else np.iinfo(dtype).max)
    return dtype.type(not low)
