"""Linear algebra on arrays of a kernel: NumPy's generalized ufuncs behind `np.linalg`, by their loops, and BLAS's trsm.

If a matrix has no result, for example because it is singular, NumPy raises the floating-point flag for invalid
operations. So the call is in a separate function, into which LLVM moves no other arithmetic, and which clears the flag
before the call and reads it afterwards.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from math import prod

import llvmlite.ir as ir

from fnad.backends.cpu.blas import address, by_reference, call_blas, element
from fnad.backends.cpu.ufunc_loops import ADDRESS, BYTE, LONG, WORD, UfuncLoop, place, registered_loop
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.instructions import constant
from fnad.backends.llvm.scalar import call, is_true, memory_type
from fnad.kernel.linalg import LINALG, PREFIX, TRIANGULAR, core_dimensions, gufunc, size_names

INVALID = WORD(1)
"""FE_INVALID of C, on x86 and ARM."""


def emitter(routine: str) -> Emit:
    """The emitter of a routine."""
    name = routine.removeprefix(PREFIX)
    cores = core_dimensions(name)

    def emit(builder: Builder, kinds: Kinds, values: Values) -> None:
        arrays, (count, *sizes), (status, fault) = values[: len(cores)], values[len(cores) : -2], values[-2:]
        dtypes = tuple(kind.dtype for kind in kinds[: len(cores)])
        function = define(builder.module, name, dtypes, count.constant, tuple(size.constant for size in sizes))
        failed = builder.call(function, arrays)
        if fault.constant:
            with builder.if_then(builder.icmp_unsigned("!=", failed, WORD(0)), likely=False):
                builder.store(fault, status)

    return emit


def define(module: ir.Module, name: str, dtypes: tuple[Dtype, ...], count: int, sizes: tuple[int, ...]) -> ir.Function:
    """The function on the arrays that calls the ufunc and returns whether it failed."""
    symbol = f"fnad.{name}.{''.join(dtype.char for dtype in dtypes)}.{'.'.join(map(str, (count, *sizes)))}"
    known = module.globals.get(symbol)
    return known or _defined(module, symbol, name, dtypes, count, sizes)


def _defined(
    module: ir.Module, symbol: str, name: str, dtypes: tuple[Dtype, ...], count: int, sizes: tuple[int, ...]
) -> ir.Function:
    pointers = [memory_type(dtype).as_pointer() for dtype in dtypes]
    function = ir.Function(module, ir.FunctionType(WORD, pointers), name=symbol)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    if name in TRIANGULAR:
        builder.ret(substitute(builder, name, dtypes[0], function.args, (count, *sizes)))
        return function
    call(builder, "feclearexcept", WORD, INVALID)
    loop_of(name, dtypes).call(builder, function.args, (count, *sizes), strides(name, dtypes, sizes))
    builder.ret(call(builder, "fetestexcept", WORD, INVALID))
    return function


# ---- NumPy's loops -----------------------------------------------------------------------------------------------


@cache
def loop_of(name: str, dtypes: tuple[Dtype, ...]) -> UfuncLoop:
    return registered_loop(gufunc(name), dtypes, PREFIX + name)


def strides(name: str, dtypes: tuple[Dtype, ...], sizes: tuple[int, ...]) -> list[int]:
    """The strides in bytes of contiguous stacks: between matrices for each, then within a matrix."""
    size_of = dict(zip(size_names(name), sizes, strict=True))
    outer: list[int] = []
    inner: list[int] = []
    for core, dtype in zip(core_dimensions(name), dtypes, strict=True):
        shape = [size_of[size] for size in core]
        outer.append(prod(shape) * dtype.itemsize)
        inner += [prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    return [*outer, *inner]


# ---- triangular systems ------------------------------------------------------------------------------------------


def substitute(builder: Builder, name: str, dtype: Dtype, arrays: Values, extents: tuple[int, ...]) -> Value:
    """Solve each a x = b in place of a copy of b; whether a divisor is 0.

    BLAS reads the transposes of matrices that are stored row by row, so it solves xᵀ aᵀ = bᵀ.
    """
    (a, b, x), (count, m, n), (is_lower, unit) = arrays, extents, TRIANGULAR[name]
    call(
        builder, "memcpy", ADDRESS, *(address(builder, array) for array in (x, b)), LONG(count * m * n * dtype.itemsize)
    )
    letters = [BYTE(ord(letter)) for letter in ("R", "U" if is_lower else "L", "N", "U" if unit else "N")]
    numbers = by_reference(builder, *letters, WORD(n), WORD(m), constant(1.0, dtype), WORD(m), WORD(n))
    *head, lda, ldb = numbers
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    with each(builder, count) as matrix:
        first_of_a, first_of_x = builder.mul(matrix, LONG(m * m)), builder.mul(matrix, LONG(m * n))
        left, right = element(builder, a, first_of_a), element(builder, x, first_of_x)
        call_blas(builder, dtype, "trsm", LONG(m * m * n), *head, left, lda, right, ldb)
        with each(builder, 0 if unit else m) as row:
            pivot = builder.load(builder.gep(a, [builder.add(first_of_a, builder.mul(row, LONG(m + 1)))]))
            with builder.if_then(builder.not_(is_true(builder, dtype, pivot))):
                builder.store(WORD(1), failed)
    return builder.load(failed)


@contextmanager
def each(builder: Builder, count: int) -> Generator[Value]:
    """Write the body of a loop over the numbers from 0 to `count`."""
    number = place(builder, LONG)
    builder.store(LONG(0), number)
    test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    builder.cbranch(builder.icmp_signed("<", builder.load(number), LONG(count)), body, after)
    builder.position_at_end(body)
    value = builder.load(number)
    yield value
    builder.store(builder.add(value, LONG(1)), number)
    builder.branch(test)
    builder.position_at_end(after)


INSTRUCTIONS: Instructions = {routine: emitter(routine) for routine in LINALG}
