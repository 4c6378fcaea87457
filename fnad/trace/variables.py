"""The variables that syntax reads and binds, and those of outer scopes that a function uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


def reads_in(*nodes: ast.AST | None) -> list[str]:
    """The names of the variables that nodes read, as often as they do."""
    inner = [n for node in nodes if node is not None for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [name.id for name in inner if isinstance(name.ctx, ast.Load)]


def first_read(nodes: Sequence[ast.AST], assigned: Iterable[str]) -> set[str]:
    """The variables that some way through the statements may read before it assigns them; some are assigned before."""
    found: set[str] = set()
    _follow(nodes, set(assigned), found)
    return found


def live_behind(body: Sequence[ast.AST]) -> dict[ast.AST, set[str]]:
    """The variables that may be read behind each loop of a function before they are assigned.

    Those of its inner functions may be read at any call. Loops in statements other than `if`, `with` and loops have no
    entry.
    """
    if not _has_loops(body):
        return {}
    scopes = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef
    inner = set(reads_in(*[n for node in body for n in ast.walk(node) if isinstance(n, scopes)]))
    found: dict[ast.AST, set[str]] = {}
    _live(body, set(), found, set())
    return {loop: live | inner for loop, live in found.items()}


def _has_loops(nodes: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(node, (ast.For, ast.While))
        or (isinstance(node, (ast.If, ast.With)) and _has_loops([*node.body, *getattr(node, "orelse", ())]))
        for node in nodes
    )


def _live(nodes: Sequence[ast.AST], live: set[str], found: dict[ast.AST, set[str]], around: set[str]) -> None:
    """Note the loops in a block, behind which these variables are `live`; those `around` are live where a step ends."""
    for node in reversed(nodes):
        match node:
            case ast.For() | ast.While():
                found[node] = live | first_read(node.orelse, ())
                _live(node.orelse, live, found, around)
                again = found[node] | first_read([node], ())
                _live(node.body, again, found, again)
            case ast.If():
                _live(node.body, live, found, around)
                _live(node.orelse, live, found, around)
            case ast.With():
                _live(node.body, live, found, around)
            case _:
                pass
        first: set[str] = set()
        assigned = _follow_one(node, set(), first)
        live = first | around | (set() if assigned is None else live - assigned)


def _follow(nodes: Sequence[ast.AST], assigned: set[str], found: set[str]) -> set[str] | None:
    """Add what is read before it is assigned; return what is assigned at the end, None if no way leads there."""
    now: set[str] | None = set(assigned)
    for node in nodes:
        if now is None:
            break
        now = _follow_one(node, now, found)
    return now


def _follow_one(node: ast.AST, now: set[str], found: set[str]) -> set[str] | None:
    def reads(*parts: ast.AST | None) -> None:
        found.update(set(reads_in(*parts)) - now)

    match node:
        case ast.If():
            reads(node.test)
            ends = [end for part in (node.body, node.orelse) if (end := _follow(part, now, found)) is not None]
            return set.intersection(*ends) if ends else None
        case ast.For() | ast.While():
            reads(node.iter if isinstance(node, ast.For) else node.test)
            bound = set(bound_in([node.target])) if isinstance(node, ast.For) else set()
            _follow(node.body, now | bound, found)
            _follow(node.orelse, now, found)
            return now
        case ast.Continue() | ast.Break() | ast.Raise() | ast.Return():
            reads(node)
            return None
        case ast.With():
            reads(*node.items)
            return _follow(node.body, now | bound_in(node.items), found)
        case ast.AugAssign(target=ast.Name(name)):
            reads(node.value)
            found.update({name} - now)
            return now | {name}
        case ast.Assign() | ast.AnnAssign() | ast.Name():
            reads(node)
            return now if isinstance(node, ast.AnnAssign) and node.value is None else now | bound_in([node])
        case _:
            reads(node)
            found.update(
                n.target.id
                for n in ast.walk(node)
                if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id not in now
            )
            return now


class BoundNames(ast.NodeVisitor):
    """The names that a scope binds, without what is bound in the scopes within it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.outer: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self.names.add(node.arg)

    def visit_Global(self, node: Any) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add(node.asname or node.name.partition(".")[0])

    def _visit_named(self, node: Any) -> None:
        self.names.update(name for name in (getattr(node, "name", None), getattr(node, "rest", None)) if name)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_named
    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_named

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for part in (node.iter, *node.ifs):
            self.visit(part)


def bound_in(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The variables of a scope that consists of these nodes."""
    bound = BoundNames()
    for node in nodes:
        bound.visit(node)
    return frozenset(bound.names - bound.outer)


READ, WRITTEN, COUNTED, TALLIED, EXTENDED = "read", "written", "counted", "tallied", "extended"
"""Uses of a variable of an outer scope: its value may matter; `n = x`; `n += 1`; `n["a"] += 1`; `n.append(x)`."""

FACTS = "\0fnad.facts"
"""The first element of a constant with what is known of a function."""


class Facts(NamedTuple):
    """The variables of outer scopes that a function uses, each with how: of its module, and of functions around it.

    It assigns to the globals that are `assigned`, and to the variables of functions around it that are `rebound`.
    """

    globals: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]
    assigned: tuple[str, ...]
    rebound: tuple[str, ...]

    @classmethod
    def of(cls, of_module: tuple[tuple[str, str], ...], free: tuple[tuple[str, str], ...]) -> Facts:
        """The facts with these uses."""
        assigned, rebound = (tuple(n for n, use in uses if use in (COUNTED, WRITTEN)) for uses in (of_module, free))
        return cls(of_module, free, assigned, rebound)


class Place(NamedTuple):
    """The place of a loop: line and column, the lines of its steps, and the variables that later code may read.

    Code behind the loop may read those in `after`.
    """

    line: int
    column: int
    first: int
    last: int
    names: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def left(self) -> str:
        """The variable that is true if a `return` ends the loop."""
        return f"__left_{self.line}_{self.column}__"

    @property
    def broken(self) -> str:
        """The variable that is true if a `break` ends the loop; only a loop with an `else` has it."""
        return f"__broken_{self.line}_{self.column}__"


class Scope:
    """A function, or a comprehension or class in one, while its syntax is rewritten."""

    def __init__(self, local: frozenset[str], outer: Scope | None) -> None:
        self.local = local
        self.outer = outer
        self.uses: dict[str, str] = {}

    def note(self, name: str, use: str) -> None:
        """Note a use of a variable of an outer scope; one that matters counts, whatever the others are."""
        known = self.uses.get(name, use)
        is_assigned = not {known, use}.isdisjoint((WRITTEN, COUNTED))
        self.uses[name] = use if known == use else WRITTEN if is_assigned else READ

    def is_free(self, name: str) -> bool:
        """True if a function around this one has the variable."""
        return self.outer is not None and (name in self.outer.local or self.outer.is_free(name))

    def end(self) -> ast.Constant | None:
        """The constant for the hook at the begin of the function; None if it uses nothing of outer scopes.

        Its uses of variables of functions further out are uses of the function around it, which has their cells too.
        """
        if self.outer is not None:
            for name, use in self.uses.items():
                if name not in self.outer.local and self.outer.is_free(name):
                    self.outer.note(name, use)
        free = tuple(item for item in self.uses.items() if self.is_free(item[0]))
        found = tuple(item for item in self.uses.items() if item not in free)
        return ast.Constant((FACTS, found, free)) if self.uses else None  # pyright: ignore[reportArgumentType]
