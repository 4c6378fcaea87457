"""The text of a traced value: `str(x)`, `f"{x:.3f}"`, `"%.3f" % x`, `repr(x)`, `print(x)`.

What Python computes with a text is fixed in a trace, so the text is that of the value at hand, and the path is right
for this value alone: a guard says so, as for `if`. A text that is shown and goes nowhere else needs no guard.

Note [Shown or computed with]
    A text asked for in the arguments of `print`, of `warnings.warn` or of a logger's method is shown, as the syntax
    around the instruction says, and so is one that a logger, a debugger or a report of an error asks for. Any other
    may come back into the computation, through a variable, a list or a file: so it is guarded, which at worst traces
    once more.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import io
import linecache
import reprlib
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Any, TypeAlias

from fnad.codes import parsed, remembered
from fnad.ir.known import known_value
from fnad.trace import escape, guards
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_machinery
from fnad.trace.source import HOOKS

FIXED = "show the text by fnad.callback, or leave it until the function has returned"
"""The remedy for a text that makes many paths."""

SHOWING = {"logging", "warnings", "traceback", "pdb", "bdb", "cmd", "code", "_pytest", "IPython", "pydevd", "debugpy"}
"""Packages that ask for a text to show it."""

LOGGING = {"debug", "info", "warning", "error", "exception", "critical"}
"""The methods of loggers."""

PASSING = {"str", "repr", "ascii", "format", "len", "join", "ljust", "rjust", "center"}
"""Functions and methods that make a text of texts, and keep none."""

TEXTS = {"__str__", "__repr__", "__format__"}
"""Methods that make a text for whoever calls them."""

OWN = [__file__.replace("text.py", f"{name}.py") for name in ("text", "tracer", "hooks", "loading", "reading_calls")]
PASSED = {*OWN, *HOOKS, reprlib.__file__, dataclasses.__file__}
"""Files whose functions stand between such a method and its caller."""


def text(x: Handle, write: Callable[[Any], str]) -> str:
    """The text of `write` for the value at hand; raise if there is no value and the text is used in computation."""
    if not x.is_alive and write is not repr and use_of_text() == "computed with":
        raise escape.used_after_trace(x.symbol)
    value = value_to_write(x) if x.is_alive else None
    return description(x) if value is None else write(value)


def formats_a_number() -> bool:
    """True if `"%.2f" % x` asks for a float: only the instruction tells it from `float(x)`."""
    frame = asking_frame()
    nodes = () if frame is None else nodes_at(frame.f_code, frame.f_lasti)
    return any(isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Mod) for node in nodes[-1:])


def number_to_format(x: Handle) -> float:
    """The number at hand, of which `"%.2f" % x` makes a text; raise where there is none."""
    if not x.is_alive:
        raise escape.used_after_trace(x.symbol)
    value = value_to_write(x)
    if value is None:
        raise escape.text_asked(x.aval)
    return float(value)


def value_to_write(x: Handle) -> Any:
    """The value at hand as it is outside of a trace, guarded unless its text is only shown; None where there is none.

    Raise where there is none and its text is computed with.
    """
    known = known_value(x.symbol)
    if known is not None:
        return as_outside(x, known)
    use, value = use_of_text(), guards.value_at_hand(x.symbol)
    if value is None and use == "computed with":
        guards.part_rows(x.symbol)
        raise escape.text_asked(x.aval)
    if value is not None and use != "shown":
        guards.content(x.symbol, value, None, FIXED)
    return None if value is None else as_outside(x, value)


def description(x: Handle) -> str:
    """The text of a value that is not at hand."""
    return f"Tracer({x.aval})"


def as_outside(x: Handle, value: Any) -> Any:
    """A value as the array, NumPy number or Python number that it is outside of a trace."""
    if not x.is_scalar:
        return value
    return value.item() if x.is_weak else value[()]


# ---- what becomes of a text ------------------------------------------------------------------------------------------


def use_of_text() -> str:
    """The use of a text: "shown", "raised" as the message of an error, or "computed with"."""
    frame = asking_frame()
    if frame is None or is_machinery(frame.f_code.co_filename):  # fnad's own messages, and NumPy's
        return "shown"
    if str(frame.f_globals.get("__name__")).partition(".")[0] in SHOWING:
        return "shown"
    nodes = nodes_at(frame.f_code, frame.f_lasti)
    if any(isinstance(node, ast.Raise) for node in nodes) or _is_message_of_assert(nodes):
        return "raised"
    return "shown" if _is_shown(nodes, frame) else "computed with"


def asking_frame() -> FrameType | None:
    """The innermost frame that is not itself about to return the text of something."""
    frame = inspect.currentframe()
    while frame is not None and (frame.f_code.co_name in TEXTS or frame.f_code.co_filename in PASSED):
        frame = frame.f_back
    return frame


@remembered
def nodes_at(code: CodeType, offset: int) -> tuple[ast.AST, ...]:
    """The syntax around an instruction: the innermost statement and what it contains, inwards; () if not to be had."""
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    tree = _tree("".join(linecache.getlines(code.co_filename)))
    if tree is None or line is None or end_line is None or column is None or end_column is None:
        return ()
    path = list(_around(tree, (line, column), (end_line, end_column)))
    start = max((i for i, node in enumerate(path) if isinstance(node, ast.stmt)), default=len(path))
    return tuple(path[start:])


Place: TypeAlias = tuple[int, int]
"""A line and a column."""


def _around(node: ast.AST, start: Place, end: Place) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr | ast.stmt | ast.keyword | ast.excepthandler | ast.match_case):
            continue
        if isinstance(child, ast.match_case) or _covers(child, start, end):
            yield child
            yield from _around(child, start, end)


def _covers(node: Any, start: Place, end: Place) -> bool:
    return (node.lineno, node.col_offset) <= start and end <= (node.end_lineno, node.end_col_offset)


@lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module | None:
    try:
        return parsed(source) if source else None
    except (SyntaxError, ValueError):
        return None


def _is_message_of_assert(nodes: tuple[ast.AST, ...]) -> bool:
    return len(nodes) > 1 and isinstance(nodes[0], ast.Assert) and nodes[1] is nodes[0].msg


def _is_shown(nodes: tuple[ast.AST, ...], frame: FrameType) -> bool:
    """True if there is a call that shows its arguments, and nothing else in these receives the text."""
    start = next((i for i, node in enumerate(nodes) if isinstance(node, ast.Call) and _shows(node, frame)), None)
    return start is not None and all(map(_keeps_nothing, nodes[start + 1 :]))


def _keeps_nothing(node: ast.AST) -> bool:
    return _name(node) in PASSING if isinstance(node, ast.Call) else not isinstance(node, ast.NamedExpr | ast.Yield)


def _name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _shows(call: ast.Call, frame: FrameType) -> bool:
    match call.func:
        case ast.Name("print"):
            is_pythons = frame.f_locals.get("print", frame.f_globals.get("print", builtins.print)) is builtins.print
            to_file = isinstance(sys.stdout, io.StringIO) or any(word.arg in ("file", None) for word in call.keywords)
            return is_pythons and not to_file
        case ast.Attribute(ast.Name("warnings"), "warn"):
            return True
        case ast.Attribute(attr=name):
            return name in LOGGING
        case _:
            return False
