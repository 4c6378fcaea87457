"""Splitting loops at borders: where a branch depends on the counter alone, each side becomes a loop of its own.

    for i < n: if i < k: v = a[i] else: v = b[i]      becomes      for i < k: v = a[i];  for k <= i < n: v = b[i]

Such branches come from concatenations, from padding, which is the transpose of a slice, and from shifted reads. LLVM
keeps them in the loop, which then does not vectorise, or only with masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import TypeAlias

from fnad.kernel import statements as code
from fnad.scalar.operation import Operation
from fnad.scalar.operations import ADD, AND, GREATER_EQUAL, LESS, MAX, MIN, MULTIPLY, NEGATIVE, SUBTRACT

MOST = 6
"""The most loops that one is split into."""

LARGEST = 240
"""The most statements of all of them together."""

FEW = 4
"""The most iterations of a part in which neither inner loops are split nor further borders count."""

SHORTEST = 16
"""The fewest iterations of an innermost loop that is split: LLVM unrolls shorter ones."""

Line: TypeAlias = tuple[int, int]
"""(slope, constant) of slope · counter + constant."""


def split(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements of a kernel with loops split."""
    return _Splitting(statements).block(statements)


class _Splitting:
    """The pass; what only a loop assigns has another name in each of its parts."""

    def __init__(self, statements: Sequence[code.Statement]) -> None:
        self.assigned = Counter(code.assigned(statements))
        self.parts = count(1)

    def block(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        return [part for statement in statements for part in self.statement(statement)]

    def statement(self, statement: code.Statement) -> list[code.Statement]:
        inner = code.walk(statement.body) if isinstance(statement, code.For) else []
        if not isinstance(statement, code.For) or any(isinstance(s, code.While) for s in inner):
            return [statement.with_bodies(self.block)]
        found = {border for s in inner if isinstance(s, code.If) for border in _borders(s.condition, statement.counter)}
        borders = _apart(sorted(border for border in found if _is_inside(border, statement)), statement)
        if not borders or len(borders) >= MOST or statement.step != 1 or _is_short(statement):
            return [statement.with_bodies(self.block)]
        parts = list(pairwise([None, *borders, None]))
        decided = [list(_decided(statement.body, statement.counter, low, high)) for low, high in parts]
        if sum(len(code.walk(body)) for body in decided) > LARGEST:
            return [statement.with_bodies(self.block)]
        times = Counter(code.assigned(statement.body))
        own = {name.name for name in times if times[name] == self.assigned[name]}
        return [
            self.part(statement, *part, _renamed(body, self.names(own)))
            for part, body in zip(parts, decided, strict=True)
        ]

    def names(self, own: set[str]) -> dict[str, str]:
        """New names of variables that only a part assigns."""
        number = next(self.parts)
        return {name: f"{name}_{number}" for name in own}

    def part(self, loop: code.For, low: int | None, high: int | None, body: list[code.Statement]) -> code.For:
        """The iterations from one border to the next with their own body, whose loops are split if it runs often."""
        start = loop.start if low is None else _nearer(MAX, loop.start, low)
        stop = loop.stop if high is None else _nearer(MIN, loop.stop, high)
        self.assigned.update({name: n for name, n in Counter(code.assigned(body)).items() if name not in self.assigned})
        is_rare = high is not None and high - (low or 0) <= FEW
        return replace(loop, start=start, stop=stop, body=body if is_rare else self.block(body))


def _renamed(statements: Sequence[code.Statement], names: Mapping[str, str]) -> list[code.Statement]:
    """The statements with other names of some variables."""

    def expression(given: code.Expression) -> code.Expression:
        return renamed(given) if isinstance(given, code.Name) else given.with_parts(expression)

    def renamed(name: code.Name) -> code.Name:
        return code.Name(names.get(name.name, name.name), name.kind)

    def statement(given: code.Statement) -> code.Statement:
        given = given.with_operands(expression).with_bodies(lambda body: _renamed(body, names))
        if not isinstance(given, code.Assign):
            return given
        return code.Assign(tuple(map(renamed, given.targets)), given.value)

    return [statement(given) for given in statements]


def _is_inside(border: int, loop: code.For) -> bool:
    """True if a border may be between two iterations."""
    start, stop = loop.start.number, loop.stop.number
    return (0 if start is None else start) < border and (stop is None or border < stop)


def _apart(borders: Sequence[int], loop: code.For) -> list[int]:
    """The borders without those in the midst of a few iterations, where the branches remain."""
    apart, low = list[int](), loop.start.number
    for border, following in zip(borders, [*borders[1:], loop.stop.number], strict=False):
        if low is None or following is None or following - low > FEW:
            apart.append(low := border)
    return apart


def _is_short(loop: code.For) -> bool:
    counted = loop.counted
    return (
        counted is not None
        and len(counted) < SHORTEST
        and not any(isinstance(s, code.For) for s in code.walk(loop.body))
    )


def _nearer(choice: Operation, bound: code.Expression, border: int) -> code.Expression:
    """The border, or the loop's own bound where that is not a number and may come first."""
    return code.integer(border) if isinstance(bound, code.Constant) else code.apply(choice, bound, code.integer(border))


def _decided(
    block: Sequence[code.Statement], counter: code.Name, low: int | None, high: int | None
) -> Iterator[code.Statement]:
    for statement in block:
        inside = statement.with_bodies(lambda body: list(_decided(body, counter, low, high)))
        if not isinstance(statement, code.If) or not isinstance(inside, code.If):
            yield inside
            continue
        holds = _holds(statement.condition, counter, low, high)
        if holds is None:
            yield replace(inside, condition=_undecided(statement.condition, counter, low, high))
        else:
            yield from inside.then if holds else inside.otherwise


# ---- conditions --------------------------------------------------------------------------------------------------


def _borders(condition: code.Expression, counter: code.Name) -> Iterator[int]:
    """The iterations at which a part of a conjunction begins to hold, or ceases to."""
    match condition:
        case code.Apply(operation, (left, right), _) if operation is AND:
            yield from _borders(left, counter)
            yield from _borders(right, counter)
        case _:
            border = _border(condition, counter)
            if border is not None:
                yield border[0]


def _holds(condition: code.Expression, counter: code.Name, low: int | None, high: int | None) -> bool | None:
    """True if a condition holds in all iterations from one border to the next, or in none; None if neither is known."""
    match condition:
        case code.Apply(operation, (left, right), _) if operation is AND:
            both = _holds(left, counter, low, high), _holds(right, counter, low, high)
            return False if False in both else None if None in both else True
        case _:
            border = _border(condition, counter)
    if border is None:
        return None
    first, rises = border
    if low is not None and first <= low:
        return rises
    return not rises if high is not None and high <= first else None


def _undecided(condition: code.Expression, counter: code.Name, low: int | None, high: int | None) -> code.Expression:
    """A condition without the parts of a conjunction that hold in all iterations from one border to the next."""
    match condition:
        case code.Apply(operation, (left, right), _) if operation is AND:
            parts = [part for part in (left, right) if not _holds(part, counter, low, high)]
            return code.apply(AND, *(_undecided(part, counter, low, high) for part in parts)) if parts[1:] else parts[0]
        case _:
            return condition


def _border(condition: code.Expression, counter: code.Name) -> tuple[int, bool] | None:
    """The first iteration at which a comparison with a number is another one, and whether it holds from there on."""
    match condition:
        case code.Apply(operation, (left, code.Constant(value)), _) if operation in (LESS, GREATER_EQUAL):
            line = _line(left, counter)
        case _:
            return None
    if line is None or line[0] == 0:
        return None
    slope, constant = line
    distance = int(value) - constant
    if slope > 0:  # slope · i >= distance from the quotient on, rounded up
        return -(-distance // slope), operation is GREATER_EQUAL
    return distance // slope + 1, operation is LESS  # slope · i < distance behind the quotient, rounded down


def _line(index: code.Expression, counter: code.Name) -> Line | None:
    """An index as a line over the counter, if it is one."""
    match index:
        case code.Constant(value) if value.dtype.kind == "i":
            return 0, int(value)
        case code.Name():
            return (1, 0) if index == counter else None
        case code.Apply(operation, operands, _):
            lines = [_line(operand, counter) for operand in operands]
            known = [line for line in lines if line is not None]
            return None if len(known) < len(lines) else _combined(operation, known)
        case _:
            return None


def _combined(operation: Operation, lines: Sequence[Line]) -> Line | None:
    (a, b), (c, d) = lines[0], lines[-1]
    if operation is ADD:
        return a + c, b + d
    if operation is SUBTRACT:
        return a - c, b - d
    if operation is NEGATIVE:
        return -a, -b
    return (b * c, b * d) if operation is MULTIPLY and a == 0 else None
