"""Which matrices are products that are folded along the rows, or computed with these element by element.

p = x · w           [n, k]
y = w - p                           p, y and z are, since y is folded along the rows
m = min(y, axis 1)
z = select(y = m, 1, 0)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set as AbstractSet

from fnad.ir.primitive import ArgFold, Contraction, Fold, Scalar
from fnad.ir.program import Equation, Program, Var
from fnad.lower.across import WIDEST


def folded_along_rows(program: Program) -> AbstractSet[Var]:
    """The matrices that are computed from products and folded along the rows, with those next to them."""
    products = [e.results[0] for e in program.equations if isinstance(e.primitive.lower, Contraction)]
    folded = {e.operands[0] for e in program.equations if _is_along_rows(e)}
    if not products or not folded:
        return frozenset()
    neighbours = _neighbours(program)
    found: set[Var] = set()
    for product in products:
        if product not in found and product.aval.ndim == 2 and 1 < product.aval.shape[1] <= WIDEST:
            together = _reached(product, neighbours)
            if not folded.isdisjoint(together):
                found |= together
    return found


def _is_along_rows(equation: Equation) -> bool:
    """True if an equation folds along the rows of a matrix."""
    if not equation.operands or equation.operands[0].aval.ndim != 2:
        return False
    match equation.primitive.lower:
        case Fold():
            return equation.params["axes"] == (1,)
        case ArgFold():
            return equation.params["axis"] == 1
        case _:
            return False


def _neighbours(program: Program) -> dict[Var, list[Var]]:
    """For each matrix those that are computed from it, or it from them, element by element."""
    found: dict[Var, list[Var]] = defaultdict(list)
    for equation in program.equations:
        if isinstance(equation.primitive.lower, Scalar) and equation.results[0].aval.ndim == 2:
            (result,) = equation.results
            for operand in equation.operands:
                if isinstance(operand, Var):
                    found[operand].append(result)
                    found[result].append(operand)
    return found


def _reached(start: Var, neighbours: dict[Var, list[Var]]) -> set[Var]:
    seen, pending = {start}, [start]
    while pending:
        for other in neighbours.get(pending.pop(), ()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen
