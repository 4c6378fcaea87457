"""The calls in a function that make an array which the function itself fills: `u = np.zeros(3); u[0] = t`.

Such an array is traced from the start if one of the variables that lead to what is written is traced; then the function
needs no second run. Found are arrays that a variable has, also in a list or an attribute of an object in the variable,
and that are written into in the same function or in one within it. Lengths and shapes lead to nothing traced.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from fnad.numpy.namespace import FRESH

UNTRACED = frozenset({"len", "range", "isinstance", "type", "hasattr"})
"""Functions whose result is no traced value."""

STATIC = frozenset({"shape", "ndim", "size", "dtype"})
"""Attributes that are no traced values."""

FILLING = frozenset(
    {
        *("at", "copyto", "fill_diagonal", "iadd", "imul", "isub", "itruediv", "place", "put", "put_along_axis"),
        *("putmask", "setitem"),
    }
)
"""Names of functions that write into their first argument."""

STORING = FILLING | {"append", "fill", "__setitem__"}
"""These, and methods that store an argument in the object."""

Names = dict[str, set[str]]


def makers(function: ast.AST) -> dict[ast.Call, tuple[str, ...]]:
    """The calls that make an array to be filled, each with the names of variables that lead to what is written."""
    if not any(isinstance(node, ast.Call) and name_of(node.func) in FRESH for node in ast.walk(function)):
        return {}
    flows = Flows()
    flows.visit(function)
    return dict(flows.makers())


def extended_in(function: ast.AST) -> set[str]:
    """The variables that lists are appended to."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    methods = [each for each in calls if isinstance(each, ast.Attribute) and each.attr in ("append", "extend")]
    targets = [node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign)]
    return {base_of(each) for each in (*targets, *(method.value for method in methods))}


def name_of(node: ast.expr) -> str:
    """The last name of a callee."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def base_of(node: ast.expr) -> str:
    """The variable at the begin of `x`, `x.a`, `x[i]`, `x.reshape(-1)`, `(x)`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        else:
            return ""
    return node.id


def names_in(node: ast.AST) -> Iterator[str]:
    """The variables that an expression, or the body of a function, depends on."""
    if isinstance(node, ast.Name):
        yield node.id
    is_untraced = isinstance(node, ast.Call) and name_of(node.func) in UNTRACED
    if not is_untraced and not (isinstance(node, ast.Attribute) and node.attr in STATIC):
        for part in ast.iter_child_nodes(node):
            yield from names_in(part)


class Flows(ast.NodeVisitor):
    """The dependences of variables, the writes into them, and the calls whose results they have."""

    def __init__(self) -> None:
        self.sources: Names = defaultdict(set)
        self.written: Names = defaultdict(set)
        self.aliases: Names = defaultdict(set)
        self.calls: list[tuple[str, ast.Call]] = []

    def makers(self) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
        """The calls whose results are filled, with the variables that lead to what is written."""
        pending = list(self.written)
        while pending:  # what an alias is filled with, the variable is filled with
            name = pending.pop()
            for other in self.aliases[name]:
                if other and not self.written[name] <= self.written[other]:
                    self.written[other] |= self.written[name]
                    pending.append(other)
        for name, call in self.calls:
            if self.written[name]:
                yield call, tuple(sorted(self._behind(self.written[name])))

    def _behind(self, names: Iterable[str]) -> set[str]:
        found, pending = set[str](), list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self.sources[name]
        return found

    def _write(self, target: ast.expr, *values: ast.AST) -> None:
        self.written[base_of(target)].update(name for value in values for name in names_in(value))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Note an assignment; one to an attribute or an element keeps a result and writes into what has it."""
        if isinstance(target, (ast.Tuple, ast.List)):
            items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            if len(items) != len(target.elts):
                items = [value] * len(target.elts)
            for part, item in zip(target.elts, items, strict=True):
                self._bind(part, item)
            return
        base = base_of(target)
        if not isinstance(target, ast.Name):
            self._write(target, value, *([target.slice] if isinstance(target, ast.Subscript) else []))
        else:
            self.aliases[base].add(base_of(value))
        self.sources[base].update(names_in(value))
        self._keep(base, value)

    def _keep(self, base: str, value: ast.AST) -> None:
        made = (node for node in ast.walk(value) if isinstance(node, ast.Call) and name_of(node.func) in FRESH)
        self.calls += ((base, call) for call in made)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind(node.target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._write(node.target, node.target, node.value)
        self.sources[base_of(node.target)].update(names_in(node.value))
        self.generic_visit(node)

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        self._bind(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_comprehension = visit_For

    def visit_Call(self, node: ast.Call) -> None:
        outs = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        if name_of(node.func) in STORING:
            outs += [*node.args[:1], node.func]
            self._keep(base_of(node.func), node)
        for out in outs:
            self._write(out, *node.args, node.func)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for statement in node.body:
            self.sources[node.name].update(names_in(statement))
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef
