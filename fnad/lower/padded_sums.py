"""Sums over part of an array run over all of it, where the gradient does.

    for i < n - 1: s += f(x[i], x[i + 1])            for i < n: s += f(x[i], x[i + 1]) if i < n - 1 else 0
    for i < n:     g[i] = …                                     g[i] = …

The cotangent of a slice is padded with zeros, so the loop for the gradient has more iterations than the one for the
sum. Of equal length the two become one loop, which reads the array once and computes once what both need. The borders
are split off later (`kernel/borders.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fnad.ir.primitive import Fold, IndexMap
from fnad.ir.program import Atom, Equation, Var
from fnad.ir.size import is_size
from fnad.ir.types import Shape
from fnad.lower.expressions import ElementExpressions, is_inlined
from fnad.lower.index import Index, as_index, counters
from fnad.lower.materialize import distances
from fnad.lower.nodes import Node

SMALLEST = 2**15
"""The fewest bytes of an array that leaves the first cache before another loop reads it."""


def folded(
    equation: Equation, fold: Fold, expressions: ElementExpressions
) -> tuple[Shape, Callable[[list[Index]], Node]]:
    """The shape that a fold runs over, and the function from indices to the element that it takes there."""
    operand = equation.operands[0]
    like = _like(equation, expressions) if fold.sum and expressions.shared.target.grid is None else None
    if like is None:
        return operand.aval.shape, partial(expressions.element, operand)
    return like.results[0].aval.shape, partial(expressions.pull, replace(like, operands=(operand,)))


def _like(total: Equation, expressions: ElementExpressions) -> Equation | None:
    """The padding of another array, which a sum can have as well, where both are computed from one large array."""
    operand = total.operands[0]
    read = _read(operand, expressions) if _is_large(operand) else None
    if not read:
        return None
    for like in expressions.definitions.values():
        if _surrounds(like) and _fits(total, like) and not read.isdisjoint(_read(like.operands[0], expressions)):
            return like
    return None


def _is_large(atom: Atom) -> bool:
    return not any(map(is_size, atom.aval.shape)) and atom.aval.nbytes >= SMALLEST


def _surrounds(equation: Equation) -> bool:
    """True for a large array that is another one with zeros around it."""
    view = equation.primitive.lower
    if not (isinstance(view, IndexMap) and view.guard):
        return False
    operand, result = equation.operands[0], equation.results[0]
    if not (isinstance(operand, Var) and _is_large(operand)):
        return False
    (distance,), own = distances(equation, operand), counters(result.aval.shape, 0)
    if distance is None:
        return False
    axes = zip(own, distance, operand.aval.shape, result.aval.shape, strict=True)
    inside = [(index, -by, size - by) for index, by, size, whole in axes if size < whole]
    found = view.guard(own, operand.aval, result.aval, **equation.params)
    return inside == [(as_index(index), low, high) for index, low, high in found]


def _fits(total: Equation, like: Equation) -> bool:
    """True if a sum stays the same where its operand is padded as another array is."""
    part, whole = like.operands[0].aval, like.results[0].aval
    widened = {axis for axis, sizes in enumerate(zip(part.shape, whole.shape, strict=True)) if len(set(sizes)) > 1}
    return part == total.operands[0].aval and widened <= {*total.params["axes"]}


def _read(atom: Atom, expressions: ElementExpressions) -> set[Var]:
    """The large arrays that are read for the elements of a value; none if one is computed in a loop of this length.

    The sum would no longer be in that loop.
    """
    found, pending = set[Var](), [atom]
    while pending:
        other = pending.pop()
        if not isinstance(other, Var) or other in found or not _is_large(other):
            continue
        equation = expressions.definitions.get(other)
        if other in expressions.buffers or equation is None or not is_inlined(equation):
            if equation is not None and other.aval.shape == atom.aval.shape:
                return set()
            found.add(other)
        else:
            pending += equation.operands
    return found
