"""Random programs with control flow: branches, loops and stacks in one another, over arrays that are written in part.

Values stay bounded, so that any number of steps is harmless; loops are short. Everything is drawn from one
`random.Random`, so that hypothesis can drive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from fnad.control.cond import cond
from fnad.control.scan import scan
from fnad.control.while_loop import while_loop
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F32, F64, I64, Aval
from fnad.ops.arithmetic import add, mul, neg, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, lt, select
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import convert
from fnad.ops.elementary import cos, sin, tanh
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, gather, scatter, scatter_add
from fnad.ops.shape import broadcast_in_dim, concatenate, reduce_sum, reshape, reverse, transpose
from fnad.ops.sorting import argsort
from fnad.transforms.interpret import interpret

SCALAR, ONE, ROW, MATRIX, EMPTY = (Aval(F64, shape) for shape in ((), (1,), (3,), (3, 3), (0,)))
SINGLE, NUMBER, TRUTH, NUMBERS = Aval(F32, (3,)), Aval(I64), Aval(BOOL), Aval(I64, (3,))
AVALS = (SCALAR, SCALAR, ONE, ROW, ROW, ROW, MATRIX, EMPTY, SINGLE, NUMBER, TRUTH, NUMBERS)
MOVES = (SCALAR, ONE, ROW, MATRIX, SINGLE)

Pool = list[Symbol]


def random_control_program(random: Random, *, library: bool = False) -> tuple[Program, list[Any]]:
    """Return a program and arguments for it; with `library`, it also calls functions that are not native."""
    avals = [random.choice(AVALS) for _ in range(random.randint(2, 5))]
    outs = [random.choice(AVALS) for _ in range(random.randint(1, 4))]
    grow = _Growth(random, library)
    program = trace(lambda *inputs: grow.body(inputs, outs, 3), *avals, name="f")
    return program, [_argument(random, aval) for aval in avals]


def _argument(random: Random, aval: Aval) -> Any:
    rng = np.random.default_rng(random.randrange(2**32))
    if aval.dtype == BOOL:
        return rng.random(aval.shape) < 0.5
    drawn = rng.integers(-3, 4, aval.shape) if aval.dtype == I64 else rng.uniform(-1, 1, aval.shape)
    return np.asarray(drawn, aval.dtype)


class _Growth:
    def __init__(self, random: Random, library: bool) -> None:
        self.random = random
        self.steps: list[Callable[[Pool, int], list[Symbol]]] = [
            self.elementwise, self.elementwise, self.combine, self.moved, self.read, self.write, self.write,
            self.number, self.choose, self.repeat, self.repeat, self.loop,
        ]  # fmt: skip
        self.steps += [self.sorted] * library

    def body(self, inputs: Sequence[Symbol], outs: Sequence[Aval], depth: int) -> list[Symbol]:
        pool = list(inputs)
        for _ in range(self.random.randint(1, 6)):
            pool += self.random.choice(self.steps)(pool, depth)
        return [self.pick(pool, aval) for aval in outs]

    def pick(self, pool: Pool, aval: Aval) -> Symbol:
        """Return a value of this aval, a recent one rather, or a constant."""
        found = [symbol for symbol in pool if symbol.aval == aval]
        if found and self.random.random() < 0.95:
            return found[-1] if self.random.random() < 0.5 else self.random.choice(found)
        value = aval.dtype.type(self.random.choice((0, 1)))
        if not aval.shape:
            return current_builder().literal(value)
        return broadcast_in_dim(value, shape=aval.shape, dims=())

    # ---- one step ------------------------------------------------------------------------------------------------

    def elementwise(self, pool: Pool, depth: int) -> list[Symbol]:
        x = self.pick(pool, self.random.choice(MOVES))
        return [self.random.choice((sin, cos, tanh, neg))(x)]

    def combine(self, pool: Pool, depth: int) -> list[Symbol]:
        aval = self.random.choice(MOVES)
        x, y = self.pick(pool, aval), self.pick(pool, aval)
        condition = lt(x, y)
        return [condition, sin(self.random.choice((add, mul, sub))(x, y)), select(condition, x, tanh(y))]

    def moved(self, pool: Pool, depth: int) -> list[Symbol]:
        row, matrix = self.pick(pool, ROW), self.pick(pool, MATRIX)
        product = dot_general(matrix, row, contract=((1,), (0,)), batch=((), ()))
        one = reshape(reduce_sum(row, axes=(0,)), shape=(1,))
        results = [
            lambda: reverse(row, axes=(0,)),
            lambda: tanh(product),
            lambda: broadcast_in_dim(row, shape=(3, 3), dims=(self.random.randrange(2),)),
            lambda: transpose(matrix, permutation=(1, 0)),
            lambda: sin(reduce_sum(matrix, axes=(1,))),
            lambda: concatenate(tanh(one), sin(one), self.pick(pool, ONE), axis=0),
            lambda: convert(row, dtype=F32),
        ]
        return [self.random.choice(results)()]

    def number(self, pool: Pool, depth: int) -> list[Symbol]:
        n, truth = self.pick(pool, NUMBER), self.pick(pool, TRUTH)
        return [bitwise_and(n + 1, np.int64(3)), bitwise_not(truth), convert(truth, dtype=I64), convert(n, dtype=F64)]

    def _position(self, pool: Pool, below: int) -> Symbol:
        return bitwise_and(self.pick(pool, NUMBER), np.int64(below - 1))

    def read(self, pool: Pool, depth: int) -> list[Symbol]:
        row, at = self.pick(pool, ROW), self._position(pool, 2)
        places = bitwise_and(self.pick(pool, NUMBERS), broadcast_in_dim(np.int64(1), shape=(3,), dims=()))
        return [dynamic_slice(row, at, sizes=(1,)), gather(row, at), gather(row, places)]

    def write(self, pool: Pool, depth: int) -> list[Symbol]:
        row, at = self.pick(pool, ROW), self._position(pool, 2)
        places = bitwise_and(self.pick(pool, NUMBERS), broadcast_in_dim(np.int64(1), shape=(3,), dims=()))
        results = [
            lambda: dynamic_update_slice(row, self.pick(pool, ONE), at),
            lambda: dynamic_update_slice(row, dynamic_slice(row, self._position(pool, 2), sizes=(2,)), at),
            lambda: tanh(scatter_add(row, self.pick(pool, ROW), places)),
            lambda: scatter(row, gather(row, at), at),
        ]
        return [self.random.choice(results)()]

    def sorted(self, pool: Pool, depth: int) -> list[Symbol]:
        return [argsort(self.pick(pool, ROW), axis=0, stable=True)]

    # ---- control flow --------------------------------------------------------------------------------------------

    def _some(self, pool: Pool, most: int) -> list[Symbol]:
        return [self.pick(pool, self.random.choice(AVALS)) for _ in range(self.random.randint(0, most))]

    def _region(self, avals: Sequence[Aval], outs: Sequence[Aval], depth: int) -> Program:
        return trace(lambda *inputs: self.body(inputs, outs, depth), *avals, name="region")

    def choose(self, pool: Pool, depth: int) -> list[Symbol]:
        if depth == 0:
            return []
        is_bool = self.random.random() < 0.5
        index = self.pick(pool, TRUTH if is_bool else NUMBER)
        operands = [index, *self._some(pool, 3)]  # one at least, for constants to be made in
        avals = [operand.aval for operand in operands]
        outs = [self.random.choice(AVALS) for _ in range(self.random.randint(1, 3))]
        count = 2 if is_bool else self.random.randint(2, 4)
        return list(cond(index, *operands, regions=tuple(self._region(avals, outs, depth - 1) for _ in range(count))))

    def repeat(self, pool: Pool, depth: int) -> list[Symbol]:
        if depth == 0:
            return []
        length = self.random.choice((0, 1, 2, 4))
        consts, carry = [self.pick(pool, ROW), *self._some(pool, 2)], self._some(pool, 3)
        rows = [self.random.choice(AVALS) for _ in range(self.random.randint(0, 2))]
        xs = [self._stack(pool, aval, length) for aval in rows]
        avals = [symbol.aval for symbol in (*consts, *carry)] + rows
        outs = [self.random.choice(AVALS) for _ in range(self.random.randint(0, 2))]
        region = self._region(avals, [*[symbol.aval for symbol in carry], *outs], depth - 1)
        params = {"consts": len(consts), "carry": len(carry), "length": length, "reverse": self.random.random() < 0.5}
        found = list(scan(*consts, *carry, *xs, **params, regions=(region,)))
        stacked = found[len(carry) :]
        return [*found[: len(carry)], *(reduce_last(y) for y in stacked if length)]

    def _stack(self, pool: Pool, aval: Aval, length: int) -> Symbol:
        dims = tuple(range(1, aval.ndim + 1))
        return broadcast_in_dim(self.pick(pool, aval), shape=(length, *aval.shape), dims=dims)

    def loop(self, pool: Pool, depth: int) -> list[Symbol]:
        """A loop that counts its steps itself, then a scan over the stacks that it wrote."""
        if depth == 0:
            return []
        limit, consts, carry = self._position(pool, 4), self._some(pool, 2), self._some(pool, 3)
        avals = [symbol.aval for symbol in carry]
        rows = [self.random.choice(AVALS) for _ in range(self.random.randint(0, 2))]
        inner = self._region([*[c.aval for c in consts], NUMBER, *avals], [*avals, *rows], depth - 1)

        def step(*inputs: Symbol) -> list[Symbol]:
            return [inputs[len(consts)] + 1, *inline(inner, inputs)]

        body = trace(step, *[c.aval for c in consts], NUMBER, *avals, name="step")
        test = trace(lambda limit, i, *_: [lt(i, limit)], NUMBER, NUMBER, *avals, name="test")
        params = {"test_consts": 1, "body_consts": len(consts), "max_steps": None}
        found = list(while_loop(limit, *consts, np.int64(0), *carry, **params, regions=(test, body)))
        ends = 1 + len(carry)
        return [*found[: ends + 1], *self._over_stacks(found[ends], found[ends + 1 :], pool, rows, depth)]

    def _over_stacks(
        self, steps: Symbol, stacks: Sequence[Symbol], pool: Pool, rows: Sequence[Aval], depth: int
    ) -> Pool:
        carry = [self.pick(pool, ROW), *self._some(pool, 1)]
        avals = [symbol.aval for symbol in carry]
        region = self._region([*avals, *rows], avals, depth - 1)
        params = {"consts": 0, "carry": len(carry), "length": None, "reverse": self.random.random() < 0.7}
        return list(scan(steps, *carry, *stacks, **params, regions=(region,)))


def reduce_last(stacked: Symbol) -> Symbol:
    """Return the last row of a stack."""
    starts = [np.int64(-1), *[np.int64(0)] * (stacked.aval.ndim - 1)]
    row = dynamic_slice(stacked, *starts, sizes=(1, *stacked.shape[1:])) if 0 not in stacked.shape else None
    return stacked if row is None else reshape(row, shape=stacked.shape[1:])


def expected(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """Return what the program computes."""
    return [np.asarray(value) for value in interpret(program, arguments)]
