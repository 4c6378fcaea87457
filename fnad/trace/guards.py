"""Python asks a traced scalar for its truth or its integer: it is told what that is for the arguments at hand.

What a shape depends on, a mask say, is known in the same way.
The program that comes of it is that of the path taken. It is right for all arguments for which every such question has
the same answer, so each answer becomes a guard. A question about a value of an inner trace is put to the outermost one,
where there are arrays; so the guards of nested transforms all stand in one program, in the order in which Python asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from fnad.errors import IntegerRangeError, TracerEscapeError
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, trace
from fnad.ir.known import Array, known_value
from fnad.ir.primitive import Primitive
from fnad.ir.program import Program, Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F64, I64, Shape
from fnad.ops.arithmetic import mul
from fnad.ops.comparison import bitwise_and, bitwise_or, eq, isnan, ne, signbit
from fnad.ops.conversion import convert, imag, real
from fnad.ops.floating_point import bits
from fnad.ops.guard import guard
from fnad.ops.reduction import reduce_and, reduce_or
from fnad.ops.shape import reduce_sum, reshape
from fnad.trace.capture import Guard, Trace
from fnad.trace.expansion import NotRepeatableError, RuleRecorder
from fnad.trace.looping import LOOPING, ROWS, Parted
from fnad.trace.shadow import Shadow
from fnad.trace.source import current_source, user_lines
from fnad.upward import UPWARD

LARGEST = 2**63
"""The bound of the integers that guards compare."""

DIFFERENT = "choose for each row with fnad.cond or np.where, repeat with fnad.while_loop"
MASK = "choose with np.where(mask, a, b), reduce with where=mask: what has a fixed shape is one path"


# ---- questions -------------------------------------------------------------------------------------------------------


def truth(symbol: Symbol, *, of_loop: bool = False) -> bool | None:
    """The truth of a value of one element, which guards the path; None if it has no value.

    `of_loop` marks the test of a `while_loop` at its start, which may differ among the rows of `vmap`.
    """
    builder = symbol.builder
    if symbol.shape:
        symbol = builder.bind(reshape, (symbol,), {"shape": ()})
    if symbol.dtype != BOOL:
        symbol = builder.bind(ne, (symbol, symbol.dtype.type(0)), {})
    answer = _answer(symbol, of_loop=of_loop)
    if answer is not None:
        return bool(answer)
    return None if of_loop else _agreed(symbol)


def _agreed(symbol: Symbol) -> bool | None:
    """The answer of all rows of `vmap`, if they have values and agree; the path is guarded with it."""
    stack = _at_root(symbol)
    if stack is None or not stack.aval.size:
        return None
    rows, source = _value(stack), current_source()
    answer = bool(rows.flat[0])
    if not (rows == answer).all():
        if LOOPING.loops is not None and source is not None:
            LOOPING.loops.parts(source)
        part_rows(symbol)
        raise TracerEscapeError(
            f"Python decides by a value that differs among the rows of vmap: true in {rows.sum()} of {rows.size}",
            source=source,
            remedy=DIFFERENT,
        )
    axes = tuple(range(stack.ndim))
    agreed = stack.builder.bind(reduce_and if answer else reduce_or, (stack,), {"axes": axes})
    _note(agreed, answer, source, is_own=False)
    return answer


def part_rows(symbol: Symbol) -> None:
    """Begin the trace again with the rows of `vmap` one after the other, if each row has its own value of this."""
    stack = _at_root(symbol)
    if stack is None or stack.ndim == symbol.ndim:
        return
    if LOOPING.loops is not None:
        LOOPING.loops.parts_rows()
    elif ROWS.innermost is not None:
        raise Parted


def integer(symbol: Symbol) -> int | None:
    """The integer that a scalar is towards zero, and guard the path with it; None where it has no value.

    Raises what Python does for nan and infinities, and `IntegerRangeError` for a float that is too large for guards.
    """
    if symbol.dtype == BOOL:
        return truth(symbol)
    at_root = outermost(symbol)
    if at_root is None:
        return None
    is_given = _values(at_root).is_given
    value = 0 if is_given else int(_value(at_root))
    if symbol.dtype.kind == "f" and abs(value) >= LARGEST:
        error = IntegerRangeError.here(
            f"a traced value of aval {symbol.aval} was asked for its int, and is {value:.6g} now: too large for i64",
            remedy="leave it a float, np.trunc(x), or keep it in range with np.clip",
        )
        error.is_final = True
        raise error
    if symbol.dtype != I64:
        symbol = symbol.builder.bind(convert, (symbol,), {"dtype": I64})
    answer = _answer(symbol)
    return answer if is_given else value


def value_at_hand(symbol: Symbol) -> Array | None:
    """The value for the arguments at hand; None where it has none."""
    at_root = outermost(symbol)
    return None if at_root is None else _value(at_root)


def rows_at_hand(symbol: Symbol) -> tuple[Array, bool] | None:
    """The value for the arguments at hand, or its rows under `vmap` and True; None where it has none."""
    found = _at_root(symbol)
    return None if found is None or found.ndim > symbol.ndim + 1 else (_value(found), found.ndim > symbol.ndim)


def decided(symbol: Symbol) -> Array | None:
    """The value of what a shape depends on, bools or integers, and guard the path with it; None where it has none."""
    if isinstance(symbol.builder, RuleRecorder):  # another value decides otherwise
        raise NotRepeatableError
    value = value_at_hand(symbol) if symbol.dtype.kind in "biu" else None
    if value is not None:
        content(symbol, value, f"{np.count_nonzero(value)} of {value.size}" if symbol.dtype == BOOL else None, MASK)
    return value


def needed(symbol: Symbol) -> Array | None:
    """`decided(symbol)`; if each row of `vmap` has its own value, the rows are traced one after the other."""
    found = decided(symbol)
    if found is None:
        part_rows(symbol)
    return found


UPWARD.decided, UPWARD.needed = decided, needed


def content(symbol: Symbol, value: Array, shown: str | None, remedy: str) -> None:
    """Guard the path with all elements of a value: equal, with the signs of zeros, and nan where it is nan.

    The answer is an integer that belongs to this value, so that those of other paths are told from it; that an array
    is this one is a guard of its own. It is `shown` as this text; `remedy` is what to write if there are many paths.
    """
    builder = symbol.builder
    assert isinstance(builder, Trace)
    if symbol.atom in builder.contents:
        return
    builder.contents.add(symbol.atom)
    if not value.ndim and value.dtype.kind in "biu" and value.dtype != np.uint64:
        integer(symbol)
        return
    shown = shown or str(symbol.aval if value.ndim else value)
    for part in _parts(symbol) if value.size else ():
        _answer(_key(part), shown, remedy)
    if value.ndim and value.size:
        whole = symbol.builder.capture(_frozen(value))
        for x, y in zip(_parts(symbol), _parts(whole), strict=True):
            same = _same(x, y, value)
            _answer(symbol.builder.bind(reduce_and, (same,), {"axes": tuple(range(value.ndim))}), "")


def _frozen(value: Array) -> Array:
    copy = value.copy()
    copy.flags.writeable = False
    return copy


def _parts(x: Symbol) -> tuple[Symbol, ...]:
    if x.dtype.kind != "c":
        return (x,)
    return tuple(x.builder.bind(part, (x,), {}) for part in (real, imag))


def _key(x: Symbol) -> Symbol:
    """An i64 that no other real number has, and of arrays hardly another."""
    bind = x.builder.bind
    if x.dtype.kind == "f":
        x = bind(bits, (x if x.dtype == F64 else bind(convert, (x,), {"dtype": F64}),), {})
    elif x.dtype != I64:
        x = bind(convert, (x,), {"dtype": I64})
    if not x.shape:
        return x
    products = bind(mul, (x, x.builder.capture(_weights(x.shape))), {})
    return bind(reduce_sum, (products,), {"axes": tuple(range(x.ndim))})


@lru_cache(maxsize=64)
def _weights(shape: Shape) -> Array:
    """Odd integers that look like random ones: the scrambled counters of the generator SplitMix64."""
    z = np.arange(1, prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return _frozen(((z ^ (z >> np.uint64(31))) | np.uint64(1)).view(np.int64).reshape(shape))


def _same(x: Symbol, y: Symbol, value: Array) -> Symbol:
    def of(primitive: Primitive, *operands: Symbol) -> Symbol:
        return x.builder.bind(primitive, operands, {})

    same = of(eq, x, y)
    if value.dtype.kind in "fc" and not value.all():
        same = of(bitwise_and, same, of(eq, of(signbit, x), of(signbit, y)))
    if value.dtype.kind in "fc" and np.isnan(value).any():
        same = of(bitwise_or, same, of(bitwise_and, of(isnan, x), of(isnan, y)))
    return same


def _answer(
    symbol: Symbol, shown: str | None = None, remedy: str | None = None, *, of_loop: bool = False
) -> int | None:
    """The value of a scalar of bool or i64, noted in its own trace and in the outermost one.

    `shown` is what to show in its place, `remedy` what to write if there are many.
    """
    at_root = outermost(symbol)
    if at_root is None:
        return None
    known = known_value(at_root)
    answer = (_value(at_root) if known is None else known).item()
    source = current_source()
    for asked in (symbol, at_root):
        _note(asked, answer, source, shown, remedy, is_own=asked is symbol, of_loop=of_loop)
    if LOOPING.loops is not None and not LOOPING.steps and source is not None:
        LOOPING.loops.decides(source, answer)
    return answer


def _note(
    asked: Symbol,
    answer: int,
    source: Source | None,
    shown: str | None = None,
    remedy: str | None = None,
    *,
    is_own: bool,
    of_loop: bool = False,
) -> None:
    builder = asked.builder
    if isinstance(builder, Trace) and known_value(asked) is None:
        noted = Guard(asked.atom, answer, source, len(builder.equations), is_own, shown, remedy, of_loop, user_lines())
        builder.guards.setdefault(asked.atom, noted)


def outermost(symbol: Symbol) -> Symbol | None:
    """A value as one of the outermost trace; None where it depends on what has no value yet, or one for each row."""
    found = _at_root(symbol)
    return found if found is not None and found.ndim == symbol.ndim else None


def _at_root(symbol: Symbol) -> Symbol | None:
    """A value as one of the outermost trace; of the rows of `vmap`, as the stack of theirs."""
    builder = symbol.builder
    while isinstance(builder, Trace):
        builder.values.extend(builder)
        if not builder.values.has(symbol.atom):
            return None
        if isinstance(builder.values, Shadow):
            return symbol
        if not isinstance(builder.outer, Trace):
            return None
        symbol = builder.values.value(symbol.atom)
        builder = symbol.builder
    return None


def _value(symbol: Symbol) -> Array:
    return _values(symbol).value(symbol.atom)


def _values(symbol: Symbol) -> Shadow:
    builder = symbol.builder
    assert isinstance(builder, Trace)
    assert isinstance(builder.values, Shadow)
    return builder.values


# ---- guards in a program ---------------------------------------------------------------------------------------------


def guarded(program: Program, guards: Sequence[Guard]) -> Program:
    """An outermost program with its guards, each where its question was asked, numbered in order."""

    def run(*args: Symbol) -> list[Symbol]:
        env, done = SymbolEnvironment(program.inputs, args), 0
        for number, given in enumerate(guards):
            _go_on(program, env, done, given.position)
            current_builder().source = given.source
            guard(*env.read([given.atom]), expected=given.expected, number=number)
            done = given.position
        _go_on(program, env, done, len(program.equations))
        return env.read(program.outputs)

    return trace(run, *program.in_avals, name=program.name)


def _go_on(program: Program, env: SymbolEnvironment, start: int, end: int) -> None:
    for equation in program.equations[start:end]:
        current_builder().source = equation.source
        env.write(equation.results, bind_equation(equation, env.read(equation.operands)))
