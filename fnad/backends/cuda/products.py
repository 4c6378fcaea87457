"""Matrix products between launches: where their matrices begin at each iteration of the loops around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from operator import itemgetter
from typing import Any, TypeAlias

from fnad.backends.cuda.driver import Driver, Operand, Scale
from fnad.backends.cuda.frame import Frame, Run
from fnad.errors import LoweringError
from fnad.kernel.launches import DeviceProducts
from fnad.lower.index import Counter, Index, Quotient, Remainder
from fnad.lower.loop_ir import Matrix
from fnad.lower.nodes import Buffer

Offset: TypeAlias = Callable[[Sequence[int]], int]
"""From the counters of the loops around it to an offset in an array."""


def products(step: DeviceProducts, device: Driver, position: Callable[[Buffer], int]) -> Run:
    """The run of products in loops: the innermost loop is one call, whose matrices lie at equal distances."""
    product, loops, batch = step.product, step.loops, None
    parts = product.out, product.a, product.b
    if loops and all(is_even(part.offset, loops[-1].depth) for part in parts):
        *loops, batch = loops
    count, steps = (batch.extent, [step_of(part.offset, batch.depth) for part in parts]) if batch else (1, (0, 0, 0))
    size = product.m, product.k, product.n
    if not (product.m and product.n and count):
        return lambda frame: None
    matrices, multiply = [matrix(part, position) for part in parts], device.products
    extents, scale = [range(loop.extent) for loop in loops], Scale(product.alpha, product.beta)

    def run(frame: Frame) -> None:
        counters = [*frame.counters, *[0] * len(step.loops)]
        for iterations in combinations(*extents):
            for loop, iteration in zip(loops, iterations, strict=True):
                counters[loop.depth] = iteration
            out, a, b = (make(frame, counters) for make in matrices)
            multiply(out, a, b, size, count, steps, scale, frame.precision, frame.stream)

    return run


def matrix(part: Matrix, position: Callable[[Buffer], int]) -> Callable[[Frame, Sequence[int]], Operand]:
    """A function that returns the operand of a matrix in a run."""
    place, offset = position(part.buffer), offset_of(part.offset)
    strides = part.row_stride, part.column_stride
    return lambda frame, counters: Operand(frame.arrays[place], offset(counters), *strides)


def offset_of(index: Index) -> Offset:
    """An index as a function of counters; raises `LoweringError` for one that a program computes."""
    terms = [(_atom(atom), coefficient) for atom, coefficient in index.terms]
    return lambda counters: index.constant + sum(c * atom(counters) for atom, c in terms)


def _atom(atom: Any) -> Offset:
    match atom:
        case Counter(depth):
            return itemgetter(depth)
        case Quotient(dividend, divisor):
            whole = offset_of(dividend)
            return lambda counters: whole(counters) // divisor
        case Remainder(dividend, divisor):
            whole = offset_of(dividend)
            return lambda counters: whole(counters) % divisor
        case _:
            raise LoweringError("a matrix product begins at a place that the program computes, which cuda cannot do")


def is_even(index: Index, depth: int) -> bool:
    """True if an index goes equally far with each iteration of the loop at this depth."""
    return all(isinstance(atom, Counter) or not Index(0, ((atom, 1),)).reads(depth) for atom, _ in index.terms)


def step_of(index: Index, depth: int) -> int:
    """The distance by which an index advances with each iteration of the loop at this depth."""
    return sum(coefficient for atom, coefficient in index.terms if isinstance(atom, Counter) and atom.depth == depth)
