"""Rows that decide for themselves and yet are computed together: a loop of several rows, and the choice of a branch.

Together, all rows take the steps that the slowest of them takes, and all branches are computed for each row; what a row
did not ask for is not selected. That is faster where it becomes vector instructions: then a step of a few rows takes
hardly longer than one of a single row. It is done with arithmetic alone, in which a row has the same results to the bit
as by itself. Arithmetic neither fails nor has an effect, so steps beyond the end of a row change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from fnad.control.signatures import Regions, Symbols
from fnad.control.while_loop import while_loop
from fnad.errors import Failure
from fnad.ir.axes import Elementwise
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Cond, Scalar
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval, is_complex
from fnad.ops.comparison import bitwise_and, eq, select
from fnad.ops.conversion import convert_to
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.reduction import reduce_or
from fnad.ops.shape import constant

ROWS = 16
"""Rows of a loop in lockstep. A step of all takes at most two or three times as long as one of a single row, since both
wait for one operation after the other: so that is the most that waiting for the slowest can cost."""

DEAR = 20
"""The cost from which functions call a library, which rounds otherwise for vectors or takes one element at a time."""

LANES, BRANCH = 4, 15
"""The rows that vector instructions compute at once, and the cost of a branch that is predicted wrongly."""


def is_vector_code(region: Program, *, dearest: int = DEAR) -> bool:
    """True if a region is arithmetic on scalars that cannot fail, with the same results in vector instructions.

    Functions that cost `DEAR` or more may have other results there.
    """
    return all(map(_is_real_number, region.in_avals)) and all(_is_vector(e, dearest) for e in region.equations)


def _is_vector(equation: Equation, dearest: int) -> bool:
    primitive = equation.primitive
    match primitive.lower:
        case Scalar(_, cost):
            is_plain = isinstance(primitive.axes, Elementwise) and not (primitive.raises or primitive.effect)
            return cost < dearest and is_plain and all(_is_real_number(var.aval) for var in equation.results)
        case Cond():
            are_vectors = all(is_vector_code(region, dearest=dearest) for region in equation.regions)
            return are_vectors and selecting_is_cheaper(equation.regions)
        case _:
            return False


def _is_real_number(aval: Aval) -> bool:
    """True if a value is a scalar and not complex: products of such round otherwise in NumPy's vector code."""
    return aval.shape == () and not is_complex(aval.dtype)


# ---- branches --------------------------------------------------------------------------------------------------------


def selecting_is_cheaper(regions: Regions) -> bool:
    """True if all branches, in vector instructions, take less time than each row's own, if all are equally likely."""
    total = sum(map(cost_of, regions))
    return total / LANES <= BRANCH + total / len(regions)


def cost_of(region: Program) -> int:
    """The cost of a region with all of its branches."""
    return sum(
        e.primitive.lower.cost if isinstance(e.primitive.lower, Scalar) else sum(map(cost_of, e.regions))
        for e in region.equations
    )


def selected(index: Symbol, branches: Sequence[Symbols]) -> list[Symbol]:
    """For each row the results of the branch that its index numbers, held within their number."""
    if index.dtype == BOOL:
        return [select(index, true, false) for false, true in zip(*branches, strict=True)]
    low, high = (constant(n, I64, index.shape) for n in (0, len(branches) - 1))
    held = minimum(maximum(index, low), high)

    def either(before: Symbols, after: tuple[int, Symbols]) -> list[Symbol]:
        is_it = eq(held, constant(after[0], I64, index.shape))
        return [select(is_it, y, x) for x, y in zip(before, after[1], strict=True)]

    return list(reduce(either, list(enumerate(branches))[1:], branches[0]))


# ---- loops -----------------------------------------------------------------------------------------------------------


def loop_in_lockstep(
    test: Program,
    body: Program,
    consts: tuple[Symbols, Symbols],
    start: Symbols,
    max_steps: int | None,
    failure: Failure | None,
) -> list[Symbol]:
    """The carries of several rows at their ends, and the steps of each: the loop goes on until no row goes on.

    The regions are on stacks. A row that has ended keeps its carry.
    """
    of_test, of_body = consts
    (goes_on,) = inline(test, [*of_test, *start])
    steps = constant(0, I64, goes_on.shape)
    width, given = len(start), len(of_test)

    def any_goes_on(*carry: Symbol) -> list[Symbol]:
        return [reduce_or(carry[-1], axes=(0,))]

    def step(*args: Symbol) -> list[Symbol]:
        consts, (*carry, steps, goes_on) = args[: -width - 2], args[-width - 2 :]
        found = inline(body, [*consts[given:], *carry])
        kept = [select(goes_on, new, old) for new, old in zip(found, carry, strict=True)]
        (holds,) = inline(test, [*consts[:given], *kept])
        return [*kept, steps + convert_to(goes_on, I64), bitwise_and(goes_on, holds)]

    carry, operands = [*start, steps, goes_on], [*of_test, *of_body, *start, steps, goes_on]
    regions = (
        trace(any_goes_on, *[x.aval for x in carry], name=test.name),
        trace(step, *[x.aval for x in operands], name=body.name),
    )
    params = {"max_steps": max_steps, "failure": failure} if failure else {"max_steps": max_steps}
    counts = {"test_consts": 0, "body_consts": len(operands) - len(carry)}
    return list(while_loop(*operands, **params, **counts, regions=regions))[: width + 1]
