"""Sums apart from functions: a loop in single precision that calls functions and sums becomes two loops.

    for i: v = exp(x[i]); y[i] = v; total = total + v   becomes   for i: y[i] = exp(x[i])
                                                                  for i: total = total + y[i]

Because no vector register outlives a call, the total of one loop is stored before each call and loaded after it: each
addition waits for that, longer than the function takes. The second loop reads from the first cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fnad.kernel import statements as code
from fnad.scalar.operations import ACCUMULATE, ADD, OPERATIONS

FUNCTIONS = frozenset(
    OPERATIONS[name]
    for name in (
        "exp", "exp_high", "exp_low", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "power", "sin", "cos",
        "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
        "hypot", "erf", "erfc",
    )
)  # fmt: skip
"""The operations that LLVM may call for a vector."""

SINGLE = np.dtype("f4")

FEWEST = 64
"""The fewest iterations that are worth a second loop."""

MOST = 2**12
"""The most iterations: what is read again is half of the first cache of most processors."""


def sums_apart(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements of a kernel, whose arrays have their places in memory, with such loops."""
    return [part for statement in statements for part in _statement(statement)]


def _statement(statement: code.Statement) -> list[code.Statement]:
    return (isinstance(statement, code.For) and _parts(statement)) or [statement.with_bodies(sums_apart)]


def _parts(loop: code.For) -> list[code.Statement]:
    """The loop without its sums, and one for these; nothing if it stays one loop."""
    if loop.is_parallel or loop.counted is None or not FEWEST <= len(loop.counted) <= MOST:
        return []
    sums, rest = _divided(loop.body)
    is_straight = all(isinstance(statement, code.Assign | code.Store | code.Comment) for statement in rest)
    if not (sums and is_straight and _calls(rest) and (places := _places(loop, rest))):
        return []
    apart = [statement.with_operands(lambda value: _loaded(value, places)) for statement in sums]
    changed, totals = set(code.assigned(rest)), Counter(code.assigned(list(filter(_is_sum, sums))))
    read = Counter(name for statement in loop.body for name in statement.names())
    is_free = all(read[name] == times == 1 for name, times in totals.items())
    is_known = changed.isdisjoint(part for statement in apart for part in statement.expressions())
    reads_places_alone = {store.array for store in code.stores(rest)}.isdisjoint(
        load.array for load in code.loads(sums)
    )
    if _calls(apart) or not (is_free and is_known and reads_places_alone):
        return []
    return [replace(loop, body=rest), replace(loop, body=apart)]


def _divided(body: Sequence[code.Statement]) -> tuple[list[code.Statement], list[code.Statement]]:
    """The sums of a loop, with the assignments without calls to variables that they alone read, and the rest."""
    sums = set(filter(_is_sum, body))
    read = Counter(name for statement in body if statement not in sums for name in statement.names())
    for statement in reversed(body if sums else ()):
        is_assigned = isinstance(statement, code.Assign) and statement not in sums and not _calls([statement])
        if is_assigned and not any(read[target] for target in code.assigned([statement])):
            sums.add(statement)
            read.subtract(statement.names())
    return [statement for statement in body if statement in sums], [each for each in body if each not in sums]


def _is_sum(statement: code.Statement) -> bool:
    return (
        isinstance(statement, code.Assign)
        and isinstance(statement.value, code.Apply)
        and statement.value.operation is ACCUMULATE
        and statement.value.operands[0] == statement.targets[0]
    )


def _calls(statements: Sequence[code.Statement]) -> bool:
    parts = (part for statement in statements for part in statement.expressions())
    return any(isinstance(part, code.Apply) and part.operation in FUNCTIONS for part in parts)


def _places(loop: code.For, statements: Sequence[code.Statement]) -> dict[code.Name, code.Load]:
    """The places of variables' values after a loop, each in an element of its own: few enough to be in the cache."""
    times, changing = Counter(code.assigned(statements)), {loop.counter, *code.assigned(statements)}
    stored = code.stores(statements)
    arrays = Counter(store.array for store in stored)
    return {
        store.value: place
        for store in stored
        if isinstance(store.value, code.Name) and times[store.value] == arrays[store.array] == 1
        for place in [code.Load(store.array, store.index)]
        if place.kind == store.value.kind == SINGLE and _advances(store.index, loop.counter, changing)
    }


def _advances(index: code.Expression, counter: code.Name, changing: Container[code.Expression]) -> bool:
    """True if an index is the counter plus what stays the same, so that each iteration has another one."""
    match index:
        case code.Apply(operation, (left, right), _) if operation is ADD:
            return any(
                _advances(one, counter, changing) and not any(part in changing for part in code.subexpressions(other))
                for one, other in ((left, right), (right, left))
            )
        case _:
            return index == counter


def _loaded(expression: code.Expression, places: Mapping[code.Name, code.Load]) -> code.Expression:
    if isinstance(expression, code.Name):
        return places.get(expression, expression)
    return expression.with_parts(lambda part: _loaded(part, places))
