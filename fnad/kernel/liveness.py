"""Dead-code elimination: stores into arrays that are never read, and values that are never used, are removed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from fnad.kernel import statements as code
from fnad.kernel.device import PUBLISHED, TICKET
from fnad.kernel.routines import INTERRUPTED, RESERVE
from fnad.scalar.operation import Pointer

EFFECTS = (INTERRUPTED, RESERVE, TICKET, PUBLISHED)
"""Routines with side effects."""


def read_arrays(statements: Sequence[code.Statement]) -> Iterator[str]:
    """The names of the arrays that statements read: by loads, or by passing them to routines."""
    for statement in code.walk(statements):
        for expression in statement.expressions():
            if isinstance(expression, code.Load):
                yield expression.array.name
            elif isinstance(expression, code.Apply):
                yield from (o.name for o in expression.operands if isinstance(o, code.Name))


def live(statements: Sequence[code.Statement], unread: AbstractSet[str]) -> list[code.Statement]:
    """The statements without stores into the `unread` arrays, and without what is computed only for these."""
    kept = _without_stores(statements, unread)
    return _without(kept, _dead(kept))


def _without_stores(statements: Sequence[code.Statement], unread: AbstractSet[str]) -> list[code.Statement]:
    stays = (s for s in statements if unread.isdisjoint(_written(s)))
    return [s.with_bodies(lambda body: _without_stores(body, unread)) for s in stays]


def _written(statement: code.Statement) -> tuple[str, ...]:
    """The variables that a statement assigns, or the array that it stores into."""
    match statement:
        case code.Store(array, _, _):
            return (array.name,)
        case code.Assign(targets, _):
            return tuple(target.name for target in targets)
        case _:
            return ()


def _dead(statements: Sequence[code.Statement]) -> set[str]:
    """The variables used by nothing but their own updates and other dead code."""
    definitions: dict[str, list[code.Assign]] = defaultdict(list)
    uses: Counter[str] = Counter()
    for statement in code.walk(statements):
        own: AbstractSet[str] = frozenset()
        if isinstance(statement, code.Assign):
            own = {target.name for target in statement.targets}
            for name in own:
                definitions[name].append(statement)
        uses.update(name for name in _used(statement) if name not in own)
    dead: set[str] = set()
    pending = [name for name in definitions if not uses[name]]
    while pending:
        name = pending.pop()
        if name in dead or not all(_is_removable(a, uses) for a in definitions[name]):
            continue
        for assign in definitions[name]:
            own = {target.name for target in assign.targets}
            dead |= own
            for used in _used(assign):
                if used not in own:
                    uses[used] -= 1
                    if not uses[used] and used in definitions:
                        pending.append(used)
    return dead


def has_effect(expression: code.Expression) -> bool:
    """True if a routine with a side effect is called in an expression."""
    return any(isinstance(e, code.Apply) and e.operation in EFFECTS for e in code.subexpressions(expression))


def _is_removable(assign: code.Assign, uses: Counter[str]) -> bool:
    is_array = isinstance(assign.targets[0].kind, Pointer)
    return not has_effect(assign.value) and not is_array and not any(uses[target.name] for target in assign.targets)


def _used(statement: code.Statement) -> Iterator[str]:
    return (name.name for name in statement.names())


def _without(statements: Sequence[code.Statement], dead: AbstractSet[str]) -> list[code.Statement]:
    """The statements without assignments to dead variables, and without loops and branches left empty."""
    found: list[code.Statement] = []
    for statement in statements:
        if isinstance(statement, code.Assign) and statement.targets[0].name in dead:
            continue
        statement = statement.with_bodies(lambda body: _without(body, dead))  # noqa: PLW2901
        if not _is_empty(statement):
            found.append(statement)
    return found


def _is_empty(statement: code.Statement) -> bool:
    match statement:
        case code.For(body=body):
            return has_no_code(body)
        case code.If(condition, then, otherwise):
            return not has_effect(condition) and has_no_code(then) and has_no_code(otherwise)
        case _:
            return False


def has_no_code(statements: Sequence[code.Statement]) -> bool:
    """True if there is nothing but comments."""
    return all(isinstance(statement, code.Comment) for statement in statements)


def used_outside(statements: Sequence[code.Statement]) -> set[str]:
    """The variables used after a block, of a loop or a branch, that they are assigned in."""
    found: set[str] = set()
    _close(statements, frozenset(), found)
    return found


def _close(statements: Sequence[code.Statement], closed: AbstractSet[str], found: set[str]) -> set[str]:
    """The variables assigned in a block; uses of what is assigned in blocks `closed` before it are `found`."""
    assigned: set[str] = set()
    inside: set[str] = set()
    for statement in statements:
        found.update(name for name in _used(statement) if name in closed or name in inside)
        blocks = [_close(body, closed | inside, found) for body in statement.bodies]
        inside.update(*blocks)
        if isinstance(statement, code.Assign):
            assigned.update(target.name for target in statement.targets)
    return assigned | inside
