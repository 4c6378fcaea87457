"""Writes of ordinary numbers into arrays outside of a function that is traced once, and runs never, once or many times.

Branches, bodies of loops, what solvers call and custom rules are such functions. What Python writes into an array that
the program does not have is written once, whatever runs: so it is undone, and is an error. Looked at are the arrays
that the function may lead to (`fnad.trace.reaching`), where code that it may lead to may write at all.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from fnad.codes import names_of, original_of, remembered, with_inner
from fnad.errors import MutationError
from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.capture import Array, same_bits
from fnad.trace.reaching import Reach, Reached
from fnad.trace.source import line_naming, syntax_of

WRITING = frozenset(
    {
        *("at", "copyto", "fill", "fill_diagonal", "flat", "imag", "nan_to_num", "partition", "place", "put"),
        *("put_along_axis", "putmask", "real", "resize", "shuffle", "sort"),
        *("iadd", "imul", "isub", "itruediv", "setitem", "__setitem__"),
    }
)
"""Names of what writes into an array, or may be assigned to."""

OPERANDS = {"clip": 3, "dot": 2} | {name: ufunc.nin for name, ufunc in vars(np).items() if isinstance(ufunc, np.ufunc)}
"""The number of operands of functions before the array for their result."""


class _Array(NamedTuple):
    """An array that was reached, and a copy."""

    found: Reached
    before: Array

    def is_changed(self) -> bool:
        return not same_bits(self.found.value, self.before)

    def undo(self) -> None:
        self.found.value[...] = self.before


@contextmanager
def without_outer_writes(**named: Any) -> Generator[None]:
    """Undo what this block writes into arrays that values lead to, and raise for it; errors have these names for them.

    The values are functions, and what they are called with from outside.
    """
    with undone_writes(**named) as errors:
        yield
    for error in errors:
        raise error


@contextmanager
def undone_writes(**named: Any) -> Generator[list[MutationError]]:
    """Undo what this block writes into arrays that values lead to; the list has an error for each then."""
    reach = Reach(named)
    writers = [function for function in reach.functions if _may_write(original_of(function.__code__))]
    ordinary = [each for each in reach.arrays if writers and type(each.value) is np.ndarray]
    arrays = [_Array(each, each.value.copy()) for each in ordinary if each.value.flags.writeable]
    errors: list[MutationError] = []
    try:
        yield errors
    finally:
        for array in arrays:
            if array.is_changed():
                array.undo()
                errors.append(_error(array.found, writers))


@remembered
def _may_write(code: CodeType) -> bool:
    """True if code stores elements, or names what writes, `out` among it; or if its source is not there."""
    if not WRITING.isdisjoint(names_of(code)):
        return True
    nodes = list(ast.walk(syntax_of(code)))
    return len(nodes) == 1 or any(map(_writes, nodes))


def _writes(node: ast.AST) -> bool:
    match node:
        case ast.AugAssign() | ast.keyword(arg="out") | ast.Subscript(ctx=ast.Store() | ast.Del()):
            return True
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args):
            return len(args) > OPERANDS.get(name, len(args))
        case _:
            return False


def _error(written: Reached, writers: list[FunctionType]) -> MutationError:
    function = written.function or writers[0]
    return MutationError(
        f"{_described(function)} writes into {written.name}, an array outside of it: it is traced once, whether it "
        f"runs never, once or many times",
        source=_source(written.name, [function, *writers]),
        remedy="make the array in the function, or part of its operands or of what a loop carries, and return it",
    )


def _described(function: FunctionType) -> str:
    code = original_of(function.__code__)
    return f"{code.co_name} ({code.co_filename.rpartition(os.sep)[2]}:{code.co_firstlineno})"


def _source(name: str, functions: Iterable[FunctionType]) -> Source:
    """The first line of functions that names the last attribute of an expression, else that of the first function."""
    last = re.findall(r"\w+", re.sub(r"\[.*?\]", "", name))[-1]
    codes = [code for function in functions for code in with_inner(original_of(function.__code__))]
    lines = ((code, line_naming(code, last)) for code in codes)
    code, line = next(((code, line) for code, line in lines if line is not None), (codes[0], codes[0].co_firstlineno))
    return Source(code.co_filename, line, code.co_name)
