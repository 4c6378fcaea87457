"""Nodes of syntax: calls of hooks, patterns that compare bools by identity, and the errors that a clause handles."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Any

MARK = "\0fnad.hooks"
"""The constant in its place until the code is compiled."""


def is_plain(kinds: ast.expr) -> bool:
    """True if an expression for classes of errors consists of names and attributes."""
    plain = (ast.Name, ast.Attribute, ast.Tuple, ast.Load)
    return all(isinstance(part, plain) for part in ast.walk(kinds))


def handled_by(clause: ast.ExceptHandler) -> str:
    """The expression for the errors of a running program that a clause may handle; "" if there are none."""
    if clause.type is None or not is_plain(clause.type):
        return BaseException.__name__
    kinds = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
    others = (kind for kind in kinds if not (isinstance(kind, ast.Name) and kind.id in UNRAISED))
    return ", ".join(map(ast.unparse, others))


RAISED = ValueError, IndexError, ZeroDivisionError, OverflowError
UNRAISED = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not any(issubclass(e, kind) for e in RAISED)
}
"""Python's classes of errors that no running program raises."""

SINGLE = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal, ast.Import),
    *(ast.ImportFrom, ast.ClassDef, ast.AsyncFor, ast.AsyncWith),
)
"""The statements that a step which represents others may not have."""

ENDS = ast.Return, ast.Break, ast.Continue
"""The statements that leave a `finally` clause."""

NOT_COPIED = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await, ast.Lambda)
"""Expressions that no second version of a comprehension may have: functions, and variables of other scopes."""


class OfBools(ast.NodeTransformer):
    """Replaces `True` and `False` in a pattern by a variable, which `tests` compare: a traced bool is one of them."""

    def __init__(self) -> None:
        self.tests: list[ast.expr] = []
        self._is_alternative = False

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.AST:
        if node.value is None:
            return node
        if not self._is_alternative:
            return self._tested(node, [node])
        value = ast.Attribute(ast.Constant(MARK), f"same_{node.value}", ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.MatchValue(value), node))

    def visit_MatchOr(self, node: ast.MatchOr) -> ast.AST:
        """Alternatives without parts are compared one by one; in others, each bool is a value that compares."""
        if not self._is_alternative and {type(part) for part in node.patterns} == {ast.MatchSingleton}:
            return self._tested(node, node.patterns)
        before, self._is_alternative = self._is_alternative, True
        self.generic_visit(node)
        self._is_alternative = before
        return node

    def _tested(self, node: Any, singletons: Iterable[Any]) -> ast.AST:
        name = f"__matched_{node.lineno}_{node.col_offset}__"
        found: list[ast.expr] = [
            hook("same", node, name_of(name, node), ast.Constant(part.value)) for part in singletons
        ]
        self.tests.append(together(ast.Or(), found, node))
        return ast.copy_location(ast.MatchAs(None, name), node)


def together(operator: ast.boolop, tests: list[ast.expr], place: Any) -> ast.expr:
    """Tests joined by `and` or `or`."""
    return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(operator, tests), place)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes within nodes, without the bodies of functions."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from own_nodes(ast.iter_child_nodes(node))


def name_of(name: str, place: Any, context: ast.expr_context | None = None) -> ast.Name:
    """A variable at the place of a node."""
    return ast.copy_location(ast.Name(name, context or ast.Load()), place)


ORDERING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""Comparisons that call a method of the left operand."""


def left(node: ast.expr, right: ast.expr) -> ast.expr:
    """The left operand of an operator; with a constant on either side no rule is needed."""
    return node if isinstance(node, ast.Constant) or isinstance(right, ast.Constant) else hook("operand", node, node)


def hook(name: str, place: Any, *operands: ast.expr) -> ast.Call:
    """The call of a hook at the place of a node."""
    function = ast.Attribute(ast.Constant(MARK), name, ast.Load())
    call = ast.Call(function, list(operands), [])
    for node in (call, function, function.value, *(o for o in operands if isinstance(o, ast.Constant))):
        ast.copy_location(node, place)
    return call


def mangled(name: str, owner: str) -> str:
    """The name that the compiler makes of a private one in a class."""
    owner = owner.lstrip("_")
    is_private = name.startswith("__") and not name.endswith("__") and "." not in name
    return f"_{owner}{name}" if is_private and owner else name


def constant(value: Any) -> ast.Constant:
    """A constant, which may be a tuple of constants."""
    return ast.Constant(value)


def as_value(index: ast.expr) -> ast.expr:
    """The expression for an index, which may have slices."""
    if isinstance(index, ast.Slice):
        parts = [
            part or ast.copy_location(ast.Constant(None), index) for part in (index.lower, index.upper, index.step)
        ]
        return hook("slice", index, *parts)
    if isinstance(index, ast.Tuple):
        return ast.copy_location(ast.Tuple([as_value(item) for item in index.elts], ast.Load()), index)
    return index


def listed(node: ast.List) -> ast.Call:
    """The call of the hook for a list."""
    return hook("listed", node, node, ast.Constant(node.lineno), ast.Constant(node.col_offset))
