"""Linear algebra on arrays of a kernel: NumPy's ufuncs behind `np.linalg`, by their loops, and BLAS and LAPACK.

If a matrix has no result, for example because it is singular, NumPy raises the floating-point flag for invalid
operations. So the call is in a separate function, into which LLVM moves no other arithmetic, and which clears the flag
before the call and reads it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial, reduce
from importlib import import_module
from math import prod
from typing import NamedTuple

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import blas_threads, cholesky, small_matrices, system
from fnad.backends.cpu.blas import address, by_reference, call_blas
from fnad.backends.cpu.blas_threads import one_thread
from fnad.backends.cpu.matrices import at, copy, each, memory, transpose
from fnad.backends.cpu.ufunc_loops import BYTE, LONG, WORD, UfuncLoop, place, registered_loop
from fnad.backends.llvm.emitter import Builder, Dtype, Instructions, Kinds, Value, Values
from fnad.backends.llvm.instructions import constant
from fnad.backends.llvm.scalar import absolute, call, is_true, memory_type, on_parts, parts
from fnad.kernel.linalg import (
    LINALG,
    NEAR,
    PREFIX,
    SIGNATURES,
    SMALLEST_PIVOT,
    TRIANGULAR,
    UFUNCS,
    arguments_of,
    core_dimensions,
    gufunc,
    size_names,
)
from fnad.lapack_threads import MIDDLE
from fnad.scalar.operation import real_dtype

LIBRARY = str(import_module("numpy.linalg._umath_linalg").__file__)
"""The extension module that has NumPy's ufuncs."""


class RoutineCall(NamedTuple):
    """A routine on arrays of these dtypes, so many matrices of these sizes."""

    name: str
    dtypes: tuple[Dtype, ...]
    matrices: int
    sizes: Mapping[str, int]
    options: tuple[float, ...]

    @property
    def symbol(self) -> str:
        numbers = (self.matrices, *self.sizes.values(), *self.options)
        return f"fnad.{self.name}.{''.join(dtype.char for dtype in self.dtypes)}.{'.'.join(map(str, numbers))}"


def emit(name: str, body: Callable[..., Value], builder: Builder, kinds: Kinds, values: Values) -> None:
    """Emit the call of a routine, whose code `body` emits."""
    arrays, count, extents, options, status, faults = arguments_of(name, values)
    sizes = dict(zip(size_names(SIGNATURES[name]), (size.constant for size in extents), strict=True))
    dtypes = tuple(kind.dtype for kind in kinds[: len(arrays)])
    given = RoutineCall(name, dtypes, count.constant, sizes, tuple(number.constant for number in options))
    failure = builder.call(function_of(builder.module, given, body), arrays)
    for number, fault in enumerate(faults, 1):
        with builder.if_then(builder.icmp_unsigned("==", failure, WORD(number)), likely=False):
            builder.store(fault, status)


def function_of(module: ir.Module, given: RoutineCall, body: Callable[..., Value]) -> ir.Function:
    """The function on the arrays that does it and returns 0, or which of its faults it ended in."""
    known = module.globals.get(given.symbol)
    if known is not None:
        return known
    pointers = [memory_type(dtype).as_pointer() for dtype in given.dtypes]
    function = ir.Function(module, ir.FunctionType(WORD, pointers), name=given.symbol)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    code = small_matrices.small if small_matrices.are_small(given) else body
    builder.ret(code(builder, given, *function.args))
    return function


# ---- NumPy's loops -----------------------------------------------------------------------------------------------


@cache
def loop_of(name: str, dtypes: tuple[Dtype, ...]) -> UfuncLoop:
    return registered_loop(gufunc(name), dtypes, PREFIX + name)


def register(symbol: str) -> None:
    """Register a symbol again; raises an error if NumPy has no such loop."""
    if symbol.removeprefix(PREFIX) in blas_threads.PAIR:
        blas_threads.registered(LIBRARY, PREFIX)
        return
    name, letters, _ = symbol.removeprefix(PREFIX).rsplit("_", 2)
    loop_of(name, tuple(map(np.dtype, letters)))


def by_ufunc(builder: Builder, given: RoutineCall, *arrays: Value) -> Value:
    """The ufunc of the same name; 1 if a matrix has no result."""
    signature = UFUNCS[given.name]
    shapes = [[given.sizes[size] for size in core] for core in core_dimensions(signature)]
    extents = (given.matrices, *(given.sizes[size] for size in size_names(signature)))
    invalid = WORD(system.invalid_flag())
    call(builder, "feclearexcept", WORD, invalid)
    is_middle = any(given.matrices * prod(shape) * max(shape[-2:]) in MIDDLE for shape in shapes if len(shape) > 1)
    with one_thread(builder, LIBRARY, PREFIX) if is_middle else nullcontext():
        loop_of(given.name, given.dtypes).call(builder, arrays, extents, strides(shapes, given.dtypes))
    return builder.zext(builder.icmp_unsigned("!=", call(builder, "fetestexcept", WORD, invalid), WORD(0)), WORD)


def strides(shapes: Sequence[Sequence[int]], dtypes: Sequence[Dtype]) -> list[int]:
    """The strides in bytes of contiguous stacks: between matrices for each, then within a matrix."""
    outer = [prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True)]
    inner = [
        prod(shape[axis + 1 :]) * dtype.itemsize
        for shape, dtype in zip(shapes, dtypes, strict=True)
        for axis in range(len(shape))
    ]
    return [*outer, *inner]


def of_finite(builder: Builder, given: RoutineCall, a: Value, *results: Value) -> Value:
    """As `by_ufunc`; 2 if a matrix is not finite: LAPACK might not end."""
    count = given.matrices * given.sizes["m"] ** 2
    found = place(builder, WORD)
    builder.store(WORD(0), found)
    with each(builder, count) as number:
        value = builder.load(builder.gep(a, [number]))
        for part in parts(builder, value) if given.dtypes[0].kind == "c" else (value,):
            with builder.if_then(builder.fcmp_unordered("uno", builder.fsub(part, part), part.type(0.0)), likely=False):
                builder.store(WORD(2), found)
    with builder.if_then(builder.icmp_unsigned("==", builder.load(found), WORD(0))):
        builder.store(by_ufunc(builder, given, a, *results), found)
    return builder.load(found)


def lstsq(builder: Builder, given: RoutineCall, a: Value, b: Value, x: Value) -> Value:
    real, word = real_dtype(given.dtypes[0]), np.dtype(np.intc)
    m, n, k = given.sizes.values()
    p = min(m, n)
    dtypes = (*given.dtypes[:2], real, given.dtypes[2], real, word, real)
    rest = (real, 1), (real, given.matrices * k), (word, given.matrices), (real, given.matrices * p)
    with memory(builder, *rest) as (rcond, residuals, rank, values):
        # All matrices have the same rcond: the ufunc gets them one by one.
        builder.store(constant(given.options[0], real), rcond)
        failed = place(builder, WORD)
        builder.store(WORD(0), failed)
        one = given._replace(dtypes=dtypes, matrices=1, sizes={"m": m, "n": n, "nrhs": k, "p": p})
        with each(builder, given.matrices) as matrix:
            first = [builder.gep(array, [builder.mul(matrix, LONG(size))]) for array, size in ((a, m * n), (b, m * k))]
            found = builder.gep(x, [builder.mul(matrix, LONG(n * k))])
            failure = by_ufunc(builder, one, *first, rcond, found, residuals, rank, values)
            builder.store(builder.or_(builder.load(failed), failure), failed)
    return builder.load(failed)


# ---- triangular systems ------------------------------------------------------------------------------------------


def substitute(builder: Builder, given: RoutineCall, a: Value, b: Value, x: Value) -> Value:
    """Solve each a x = b in place of a copy of b; 1 if a divisor is 0."""
    dtype, (m, n), (is_lower, unit) = given.dtypes[0], given.sizes.values(), TRIANGULAR[given.name]
    triangle = Triangle(builder, dtype, m, n, is_lower=is_lower, unit=unit)
    copy(builder, dtype, b, x, given.matrices * m * n)
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    with each(builder, given.matrices) as matrix:
        matrix_of_a = builder.gep(a, [builder.mul(matrix, LONG(m * m))])
        triangle.solve(matrix_of_a, builder.gep(x, [builder.mul(matrix, LONG(m * n))]))
        if not unit:
            store_if_singular(builder, dtype, matrix_of_a, m, failed)
    return builder.load(failed)


class Triangle:
    """Systems of m equations, for n columns, of a triangle of a row-major matrix, or of the transposed triangle.

    The BLAS has the transposes of row-major matrices, so it solves xᵀ aᵀ = bᵀ.
    """

    def __init__(
        self, builder: Builder, dtype: Dtype, m: int, n: int, *, is_lower: bool, unit: bool, transposed: bool = False
    ) -> None:
        self.builder, self.dtype, self.work, self.is_vector = builder, dtype, LONG(m * m * n), n == 1
        triangle, trans = "U" if is_lower else "L", "T" if transposed != self.is_vector else "N"
        letters = [BYTE(ord(letter)) for letter in (triangle, trans, "U" if unit else "N")]
        numbers = (WORD(m), WORD(1)) if self.is_vector else (WORD(n), WORD(m), constant(1.0, dtype), WORD(n))
        self.side, self.rows, *self.numbers = by_reference(builder, BYTE(ord("R")), WORD(m), *letters, *numbers)

    def solve(self, a: Value, x: Value) -> None:
        """Write the solution in the place of the right sides x."""
        triangle, trans, unit, *numbers = self.numbers
        left, right = (address(self.builder, array) for array in (a, x))
        if self.is_vector:
            order, stride = numbers
            name, given = "trsv", (triangle, trans, unit, order, left, self.rows, right, stride)
        else:
            n, m, one, ldb = numbers
            name, given = "trsm", (self.side, triangle, trans, unit, n, m, one, left, self.rows, right, ldb)
        call_blas(self.builder, self.dtype, name, self.work, *given)


def store_if_singular(builder: Builder, dtype: Dtype, a: Value, m: int, failed: Value) -> None:
    """Store 1 if an element of the diagonal is 0."""
    with each(builder, m) as row:
        pivot = builder.load(at(builder, a, row, m, row))
        with builder.if_then(builder.not_(is_true(builder, dtype, pivot))):
            builder.store(WORD(1), failed)


# ---- products ----------------------------------------------------------------------------------------------------


def repeated_square(builder: Builder, given: RoutineCall, a: Value, times: Value, power: Value) -> Value:
    """1 + a, squared `times` times (`fnad.ops.matrix_function.squared`)."""
    dtype, m = given.dtypes[0], given.sizes["m"]
    size = m * m
    copy(builder, dtype, a, power, given.matrices * size)
    with memory(builder, (dtype, size), (dtype, m)) as (found, ones), each(builder, given.matrices) as matrix:
        here = builder.gep(power, [builder.mul(matrix, LONG(size))])
        fill_with_ones(builder, dtype, ones, m)
        with each(builder, builder.load(builder.gep(times, [matrix]))):
            take_in_ones(builder, dtype, m, here, ones, NEAR)
            product(builder, dtype, m, here, here, found, beta=0)
            add_between_ones(builder, dtype, m, here, ones, found)
            copy(builder, dtype, found, here, size)
        take_in_ones(builder, dtype, m, here, ones, -1.0)
    return WORD(0)


def repeated_square_along(
    builder: Builder, given: RoutineCall, a: Value, e: Value, times: Value, slope: Value
) -> Value:
    """The derivative of `repeated_square` along e, as often as `times` says: x y + y x in the place of y."""
    dtype, m = given.dtypes[0], given.sizes["m"]
    size = m * m
    copy(builder, dtype, e, slope, given.matrices * size)
    arrays = (dtype, size), (dtype, size), (dtype, m)
    with memory(builder, *arrays) as (x, found, ones), each(builder, given.matrices) as matrix:
        first = builder.mul(matrix, LONG(size))
        y = builder.gep(slope, [first])
        copy(builder, dtype, builder.gep(a, [first]), x, size)
        fill_with_ones(builder, dtype, ones, m)
        with each(builder, builder.load(builder.gep(times, [matrix]))):
            take_in_ones(builder, dtype, m, x, ones, NEAR)
            product(builder, dtype, m, x, y, found, beta=0)
            product(builder, dtype, m, y, x, found, beta=1)
            add_between_ones(builder, dtype, m, y, ones, found)
            copy(builder, dtype, found, y, size)
            product(builder, dtype, m, x, x, found, beta=0)
            add_between_ones(builder, dtype, m, x, ones, found)
            copy(builder, dtype, found, x, size)
    return WORD(0)


def fill_with_ones(builder: Builder, dtype: Dtype, ones: Value, m: int) -> None:
    with each(builder, m) as row:
        builder.store(constant(1, dtype), builder.gep(ones, [row]))


def take_in_ones(builder: Builder, dtype: Dtype, m: int, matrix: Value, ones: Value, least: float) -> None:
    """Add the ones to elements of a diagonal that are larger than `least`, and put zeros in their place."""
    with each(builder, m) as row:
        one, element_ = builder.gep(ones, [row]), at(builder, matrix, row, m + 1, LONG(0))
        value = builder.load(element_)
        size = size_of(builder, dtype, value)
        with builder.if_then(builder.fcmp_ordered(">", size, size.type(least))):
            builder.store(by_parts(builder, dtype, builder.fadd, value, builder.load(one)), element_)
            builder.store(constant(0, dtype), one)


def add_between_ones(builder: Builder, dtype: Dtype, m: int, matrix: Value, ones: Value, out: Value) -> None:
    """Add D a + a D to `out`, where `ones` is the diagonal of D: an element once, twice, or not at all."""
    with each(builder, m) as row, each(builder, m) as column:
        for one in (row, column):
            with builder.if_then(is_true(builder, dtype, builder.load(builder.gep(ones, [one])))):
                place_ = at(builder, out, row, m, column)
                values = builder.load(place_), builder.load(at(builder, matrix, row, m, column))
                builder.store(by_parts(builder, dtype, builder.fadd, *values), place_)


def by_parts(builder: Builder, dtype: Dtype, emit: Callable[..., Value], *values: Value) -> Value:
    """The result of an instruction for numbers, of complex ones for each part."""
    return on_parts(builder, emit, *values) if dtype.kind == "c" else emit(*values)


def size_of(builder: Builder, dtype: Dtype, value: Value) -> Value:
    """The absolute value, of complex numbers the sum of those of their parts."""
    numbers = parts(builder, value) if dtype.kind == "c" else (value,)
    return reduce(builder.fadd, [absolute(builder, number) for number in numbers])


def product(builder: Builder, dtype: Dtype, m: int, a: Value, b: Value, out: Value, *, beta: float) -> None:
    """Out = a b + beta out, of square matrices of which LAPACK sees the transposes."""
    letter, width = by_reference(builder, BYTE(ord("N")), WORD(m))
    one, scale = by_reference(builder, constant(1, dtype), constant(beta, dtype))
    left, right, into = (address(builder, array) for array in (b, a, out))
    call_blas(
        builder, dtype, "gemm", LONG(m**3), letter, letter, width, width, width, one, left, width, right, width, scale,
        into, width,
    )  # fmt: skip


# ---- factorizations by LAPACK, which stores matrices column by column ------------------------------------------------


def lu(builder: Builder, given: RoutineCall, a: Value, packed: Value, pivots: Value) -> Value:
    """LAPACK's getrf, which counts rows from 1."""
    dtype, (m, n, p) = given.dtypes[0], given.sizes.values()
    rows, columns, stride, info = by_reference(builder, WORD(m), WORD(n), WORD(m), WORD(0))
    with memory(builder, (dtype, m * n), (np.dtype(np.intc), p)) as (work, exchanges):
        places = [address(builder, array) for array in (work, exchanges)]
        with each(builder, given.matrices) as matrix:
            first = builder.mul(matrix, LONG(m * n))
            transpose(builder, builder.gep(a, [first]), work, m, n)
            call_blas(builder, dtype, "getrf", LONG(m * n * p), rows, columns, places[0], stride, places[1], info)
            transpose(builder, work, builder.gep(packed, [first]), n, m)
            from_one(builder, exchanges, builder.gep(pivots, [builder.mul(matrix, LONG(p))]), p)
    return WORD(0)


def lu_by_columns(builder: Builder, given: RoutineCall, a: Value, packed: Value, pivots: Value) -> Value:
    """LAPACK's getrf in the place of the transposed copy."""
    dtype, m = given.dtypes[0], given.sizes["m"]
    rows, info = by_reference(builder, WORD(m), WORD(0))
    with memory(builder, (np.dtype(np.intc), m)) as (exchanges,), each(builder, given.matrices) as matrix:
        source, here = (builder.gep(array, [builder.mul(matrix, LONG(m * m))]) for array in (a, packed))
        transpose(builder, source, here, m, m)
        place_ = address(builder, here)
        call_blas(builder, dtype, "getrf", LONG(m**3), rows, rows, place_, rows, address(builder, exchanges), info)
        from_one(builder, exchanges, builder.gep(pivots, [builder.mul(matrix, LONG(m))]), m)
    return WORD(0)


def solve_by_lu(
    transposed: bool, builder: Builder, given: RoutineCall, packed: Value, pivots: Value, b: Value, x: Value
) -> Value:
    """Solve each system in place of a copy of b by the two triangles; 1 if a pivot is 0.

    By rows the packed matrix has Uᵀ below and Lᵀ, with ones, above.
    """
    dtype, (m, _, n) = given.dtypes[0], given.sizes.values()
    sides = [
        Triangle(builder, dtype, m, n, is_lower=is_lower, unit=not is_lower, transposed=not transposed)
        for is_lower in (transposed, not transposed)
    ]
    copy(builder, dtype, b, x, given.matrices * m * n)
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    with each(builder, given.matrices) as matrix:
        lu_, columns = (builder.gep(array, [builder.mul(matrix, LONG(m * k))]) for array, k in ((packed, m), (x, n)))
        exchanges = builder.gep(pivots, [builder.mul(matrix, LONG(m))])
        store_if_singular(builder, dtype, lu_, m, failed)
        if not transposed:
            exchange(builder, exchanges, columns, m, n, is_last_first=False)
        for side in sides:
            side.solve(lu_, columns)
        if transposed:
            exchange(builder, exchanges, columns, m, n, is_last_first=True)
    return builder.load(failed)


def exchange(builder: Builder, pivots: Value, x: Value, m: int, n: int, *, is_last_first: bool) -> None:
    """Exchange each row with the row of its pivot."""
    with each(builder, m) as number:
        row = builder.sub(LONG(m - 1), number) if is_last_first else number
        other = builder.load(builder.gep(pivots, [row]))
        with builder.if_then(builder.icmp_signed("!=", row, other)), each(builder, n) as column:
            here, there = (at(builder, x, place_, n, column) for place_ in (row, other))
            upper, lower = builder.load(here), builder.load(there)
            builder.store(lower, here)
            builder.store(upper, there)


def revealing_lu(builder: Builder, given: RoutineCall, a: Value, packed: Value, *exchanges: Value) -> Value:
    """LAPACK's getrf, or its getc2 of a matrix with small pivots, which count rows and columns from 1."""
    dtype, m, word = given.dtypes[0], given.sizes["m"], np.dtype(np.intc)
    width, info = by_reference(builder, WORD(m), WORD(0))
    with memory(builder, (dtype, m * m), (word, m), (word, m)) as (work, *found):
        places = [address(builder, array) for array in (work, *found)]
        with each(builder, given.matrices) as matrix:
            source, target = (builder.gep(array, [builder.mul(matrix, LONG(m * m))]) for array in (a, packed))
            transpose(builder, source, work, m, m)
            with each(builder, m) as number:
                one = builder.trunc(builder.add(number, LONG(1)), WORD)
                builder.store(one, builder.gep(found[1], [number]))
            call_blas(builder, dtype, "getrf", LONG(m**3), width, width, places[0], width, places[1], info)
            with builder.if_then(has_small_pivots(builder, dtype, work, m), likely=False):
                transpose(builder, source, work, m, m)
                call_blas(builder, dtype, "getc2", LONG(m**3), width, places[0], width, *places[1:], info)
            transpose(builder, work, target, m, m)
            for array, numbers in zip(found, exchanges, strict=True):
                from_one(builder, array, builder.gep(numbers, [builder.mul(matrix, LONG(m))]), m)
    return WORD(0)


def has_small_pivots(builder: Builder, dtype: Dtype, columns: Value, count: int) -> Value:
    """True if an element right of a pivot is much larger, or a pivot is 0 or nan; `columns` is a factored matrix."""
    found = place(builder, WORD)
    builder.store(WORD(0), found)
    with each(builder, count) as column, each(builder, builder.add(column, LONG(1))) as row:
        elements = [builder.load(at(builder, columns, place_, count, row)) for place_ in (row, column)]
        pivot, value = (size_of(builder, dtype, x) for x in elements)
        least = builder.fmul(value, value.type(SMALLEST_PIVOT))
        is_small = builder.fcmp_unordered("<", pivot, least)
        is_zero = builder.fcmp_unordered("==", pivot, pivot.type(0.0))
        with builder.if_then(builder.or_(is_small, is_zero), likely=False):
            builder.store(WORD(1), found)
    return builder.icmp_unsigned("!=", builder.load(found), WORD(0))


def from_one(builder: Builder, source: Value, target: Value, count: int) -> None:
    """Store numbers that Fortran counts from 1, counted from 0."""
    with each(builder, count) as number:
        found = builder.sext(builder.load(builder.gep(source, [number])), LONG)
        builder.store(builder.sub(found, LONG(1)), builder.gep(target, [number]))


def row_order(builder: Builder, given: RoutineCall, pivots: Value, order: Value) -> Value:
    """1 if a pivot is the number of no row."""
    p, m = given.sizes.values()
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    with each(builder, given.matrices) as matrix:
        with each(builder, m) as row:
            builder.store(row, at(builder, order, matrix, m, row))
        with each(builder, p) as row:
            other = builder.load(at(builder, pivots, matrix, p, row))
            is_row = builder.icmp_unsigned("<", other, LONG(m))
            with builder.if_else(is_row) as (exchange, fault):
                with exchange:
                    here, there = (at(builder, order, matrix, m, place_) for place_ in (row, other))
                    upper, lower = builder.load(here), builder.load(there)
                    builder.store(lower, here)
                    builder.store(upper, there)
                with fault:
                    builder.store(WORD(1), failed)
    return builder.load(failed)


def qr(complete: bool, builder: Builder, given: RoutineCall, a: Value, *factors: Value) -> Value:
    """LAPACK's geqrf, whose R is above the reflections that orgqr multiplies if Q is a result, too."""
    *basis, r = factors
    dtype, m, n = given.dtypes[0], given.sizes["m"], given.sizes["n"]
    k = min(m, n)
    width = m if complete else k
    work_size = BLOCK * max(n, width)
    multiply = "ungqr" if dtype.kind == "c" else "orgqr"
    sizes = by_reference(builder, *map(WORD, (m, n, k, width, work_size, 0)))
    rows, columns, reflections, wide, length, info = sizes
    taken = (dtype, m * max(n, width)), (dtype, k), (dtype, work_size)
    with memory(builder, *taken) as (packed, tau, work):
        places = [address(builder, array) for array in (packed, tau, work)]
        with each(builder, given.matrices) as matrix:
            transpose(builder, builder.gep(a, [builder.mul(matrix, LONG(m * n))]), packed, m, n)
            call_blas(
                builder, dtype, "geqrf", LONG(m * n * k), rows, columns, places[0], rows, *places[1:], length, info
            )
            upper = builder.gep(r, [builder.mul(matrix, LONG(width * n))])
            with each(builder, width) as row, each(builder, n) as column:
                value = builder.load(at(builder, packed, column, m, row))
                is_upper = builder.icmp_signed("<=", row, column)
                builder.store(builder.select(is_upper, value, constant(0, dtype)), at(builder, upper, row, n, column))
            for q in basis:
                numbers = rows, wide, reflections, places[0], rows, *places[1:], length, info
                call_blas(builder, dtype, multiply, LONG(m * width * k), *numbers)
                transpose(builder, packed, builder.gep(q, [builder.mul(matrix, LONG(m * width))]), width, m)
    return WORD(0)


BLOCK = 32
"""LAPACK's block size for reflections: so many columns of workspace."""

BODIES: Mapping[str, Callable[..., Value]] = {
    **dict.fromkeys(TRIANGULAR, substitute),
    **dict.fromkeys(("eig", "eigvals"), of_finite),
    **{f.__name__: f for f in (lstsq, repeated_square, repeated_square_along)},
    **{f.__name__: f for f in (lu, revealing_lu, row_order, lu_by_columns)},
    "solve_by_lu": partial(solve_by_lu, False),
    "solve_by_lu_transposed": partial(solve_by_lu, True),
    "cholesky_lo": partial(cholesky.factors, True),
    "cholesky_up": partial(cholesky.factors, False),
    "cholesky_lo_fails": partial(cholesky.fails, True),
    "cholesky_up_fails": partial(cholesky.fails, False),
    "qr_reduced": partial(qr, False),
    "qr_complete": partial(qr, True),
    "qr_r": partial(qr, False),
}
"""The functions that emit routines that are not simply a ufunc."""

INSTRUCTIONS: Instructions = {
    PREFIX + name: partial(emit, name, BODIES.get(name, by_ufunc))
    for name in (*UFUNCS, *BODIES)
    if PREFIX + name in LINALG
}
