"""Matrix products by symbol: SciPy's BLAS, called from native code on flat row-major arrays.

SciPy exports the BLAS and LAPACK it is linked to as C function pointers (`scipy.linalg.cython_blas`, `cython_lapack`).
Registered with LLVM under fnad's names, they are called like any C function; nothing is typed, copied or allocated.
BLAS is column-major, and a row-major matrix is its transpose there, so C = op(A) op(B) is computed as Cᵀ = op(B)ᵀ
op(A)ᵀ. Its integers have 32 bits.

OpenBLAS copies the operands of a product into an order of its own. On processors with AVX-512 it does not if the
product has at most 10^6 multiplications of real numbers. So there, larger ones are computed in parts of so many, where
a part has many rows, and the matrices are in the caches. Every part has the whole sums of its elements. Products whose
operands both have the terms of a sum side by side are not divided, because they are slow without copies.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial, reduce
from importlib.machinery import PathFinder
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad.backends.cpu import blas_threads, objects
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call
from fnad.lapack_threads import openblas_function

PREFIX = "fnad_"
LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
BYTE, WORD = ir.IntType(8), ir.IntType(32)

PART = 10**6
"""The most multiplications of a part."""

MOST_BYTES = 2**22
"""The most bytes of the matrices of a product that is divided."""

LONGEST_SUM = 2**9
"""The most terms of a sum: of copies OpenBLAS adds some 400 terms one after the other, otherwise all."""

ROWS = 48
"""The fewest rows of a part, each with all columns."""

CORES = (b"SkylakeX", b"Cooperlake", b"SapphireRapids")
"""OpenBLAS's names for the kernels with small products of their own."""

# ---- symbols -----------------------------------------------------------------------------------------------------


@cache
def registered(routine: str) -> str:
    """The symbol of a routine of SciPy's BLAS or LAPACK, registered with LLVM: fnad_dgemm of dgemm."""
    found = cython_module("cython_blas").__pyx_capi__
    if routine not in found:
        found = cython_module("cython_lapack").__pyx_capi__
    llvm.add_symbol(f"{PREFIX}{routine}", objects.address(found[routine]))
    return f"{PREFIX}{routine}"


@cache
def cython_module(name: str) -> Any:
    """A module of scipy.linalg, loaded without the rest of scipy.linalg, which takes a tenth of a second."""
    name = f"scipy.linalg.{name}"
    if name in sys.modules:
        return sys.modules[name]
    scipy = importlib.import_module("scipy")
    spec = PathFinder.find_spec(name, [f"{path}/linalg" for path in scipy.__path__])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def register(symbol: str) -> None:
    """Register a symbol again; raises `KeyError` if there is no such routine."""
    routine = symbol.removeprefix(PREFIX)
    thread_limits() if routine in blas_threads.PAIR else registered(routine)


def thread_limits() -> tuple[str, ...]:
    """The symbols of what limits the BLAS to one thread, and gives it back the others."""
    return blas_threads.registered(cython_module("cython_blas").__file__, PREFIX)


def call_blas(builder: Builder, dtype: Dtype, kind: str, work: Value, *addresses: Value) -> None:
    """Call a routine on these addresses; on one thread, if its `work`, in multiplications, is small."""
    small = builder.icmp_signed("<=", work, work.type(blas_threads.LARGEST))
    enter, leave = thread_limits()
    with builder.if_then(small):
        call(builder, enter, ir.VoidType())
    call(builder, registered(f"{LETTERS[dtype.str[1:]]}{kind}"), ir.VoidType(), *addresses)
    with builder.if_then(small):
        call(builder, leave, ir.VoidType())


def on_one_thread(builder: Builder) -> AbstractContextManager[None]:
    """Write calls of the BLAS on one thread: products are divided among fnad's own threads, not BLAS's."""
    return blas_threads.one_thread(builder, cython_module("cython_blas").__file__, PREFIX)


# ---- arguments, as Fortran takes them ----------------------------------------------------------------------------


def by_reference(builder: Builder, *values: Value) -> list[Value]:
    """Addresses of the values; their stack slots are allocated once, at the function's entry."""
    addresses = []
    for value in values:
        with builder.goto_entry_block():
            place = builder.alloca(value.type)
        builder.store(value, place)
        addresses.append(address(builder, place))
    return addresses


def address(builder: Builder, pointer: Value) -> Value:
    return builder.bitcast(pointer, BYTE.as_pointer())


def element(builder: Builder, array: Value, offset: Value) -> Value:
    return address(builder, builder.gep(array, [offset]))


def word(builder: Builder, value: Value) -> Value:
    return builder.trunc(value, WORD)


def leading(builder: Builder, value: Value) -> Value:
    """A leading dimension, at least 1: BLAS rejects the 0 of an empty matrix."""
    return word(builder, _positive(builder, value))


def _positive(builder: Builder, value: Value) -> Value:
    return builder.select(builder.icmp_signed(">", value, value.type(1)), value, value.type(1))


def least(builder: Builder, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def letter(builder: Builder, transposed: Value, if_true: str, if_false: str) -> Value:
    return builder.select(transposed, BYTE(ord(if_true)), BYTE(ord(if_false)))


# ---- products ----------------------------------------------------------------------------------------------------


def emit_gemm(builder: Builder, kinds: Kinds, values: Values) -> None:
    a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k, alpha, beta = values
    flags = [letter(builder, flag, "T", "N") for flag in (b_transposed, a_transposed)]
    strides = [leading(builder, stride) for stride in (ldb, lda, ldc)]
    places = by_reference(builder, *flags, word(builder, k), *strides, alpha, beta)
    trans_b, trans_a, terms, b_stride, a_stride, c_stride, alpha, beta = places
    a_step = builder.select(a_transposed, m.type(1), lda)
    dtype = kinds[0].dtype
    rows = _rows_of_part(builder, dtype, (m, n, k), (a_transposed, b_transposed))
    routine, b_place = registered(f"{LETTERS[dtype.str[1:]]}gemm"), element(builder, b, b_offset)
    with on_one_thread(builder), _parts(builder, m, rows) as (row, its_rows):
        width, height = by_reference(builder, word(builder, n), word(builder, its_rows))
        a_part = element(builder, a, builder.add(a_offset, builder.mul(row, a_step)))
        c_part = element(builder, c, builder.add(c_offset, builder.mul(row, ldc)))
        matrices = alpha, b_place, b_stride, a_part, a_stride, beta, c_part, c_stride
        call(builder, routine, ir.VoidType(), trans_b, trans_a, width, height, terms, *matrices)


@cache
def multiplies_in_place() -> bool:
    """True if this process's OpenBLAS multiplies small matrices without copies of them."""
    function = openblas_function(ctypes.CDLL(cython_module("cython_blas").__file__), "get_corename")
    if function is None:
        return False
    function.restype = ctypes.c_char_p
    return function() in CORES


def _rows_of_part(builder: Builder, dtype: Dtype, sizes: Values, transposed: Values) -> Value:
    """The rows of the parts of a product of these sizes, whose operands are transposed or not."""
    (m, n, k), (a_transposed, b_transposed), number = sizes, transposed, sizes[0].type
    if dtype.kind != "f" or not multiplies_in_place():
        return m
    compare = builder.icmp_signed
    rows = builder.sdiv(number(PART), _positive(builder, builder.mul(n, k)))
    elements = builder.add(builder.mul(m, n), builder.mul(k, builder.add(m, n)))
    conditions = (
        compare(">=", rows, number(ROWS)),
        compare("<=", elements, number(MOST_BYTES // dtype.itemsize)),
        compare("<=", k, number(LONGEST_SUM)),
        builder.or_(a_transposed, builder.not_(b_transposed)),
    )
    return builder.select(reduce(builder.and_, conditions), least(builder, rows, m), m)


@contextmanager
def _parts(builder: Builder, size: Value, most: Value) -> Generator[tuple[Value, Value]]:
    """Write a loop over the parts of the rows: where each begins, and how long it is."""
    before = builder.block
    top, body, end = (builder.append_basic_block(label) for label in ("parts", "part", "done"))
    builder.branch(top)
    builder.position_at_end(top)
    start = builder.phi(size.type)
    start.add_incoming(size.type(0), before)
    builder.cbranch(builder.icmp_signed("<", start, size), body, end)
    builder.position_at_end(body)
    left = builder.sub(size, start)
    yield start, least(builder, left, most)
    start.add_incoming(builder.add(start, most), builder.block)
    builder.branch(top)
    builder.position_at_end(end)


def emit_gemv(builder: Builder, kinds: Kinds, values: Values) -> None:
    """BLAS leaves y unchanged if the sum is empty; a gemm over no columns scales it."""
    a, a_offset, lda, a_transposed, x, x_offset, incx, y, y_offset, m, n, alpha, beta = values
    with builder.if_else(builder.icmp_signed("==", n, n.type(0))) as (empty, usual):
        with empty:
            no, one = a_transposed.type(0), n.type(1)
            emit_gemm(
                builder, kinds, (a, a_offset, one, no, x, x_offset, one, no, y, y_offset, one, m, one, n, alpha, beta)
            )
        with usual:
            rows, columns = builder.select(a_transposed, m, n), builder.select(a_transposed, n, m)
            numbers = [*(word(builder, value) for value in (rows, columns, lda, incx)), WORD(1)]
            places = by_reference(builder, letter(builder, a_transposed, "N", "T"), *numbers, alpha, beta)
            trans, rows, columns, lda, incx, incy, alpha, beta = places
            a, x, y = element(builder, a, a_offset), element(builder, x, x_offset), element(builder, y, y_offset)
            routine = registered(f"{LETTERS[kinds[0].dtype.str[1:]]}gemv")
            with on_one_thread(builder):
                call(builder, routine, ir.VoidType(), trans, rows, columns, alpha, a, lda, x, incx, beta, y, incy)


def shared(name: str, emit: Emit, builder: Builder, kinds: Kinds, values: Values) -> None:
    """Emit a call of a function of the module that holds the code of `emit`, so that long code is there once."""
    symbol = f"fnad.{name}.{kinds[0].dtype.char}"
    function = builder.module.globals.get(symbol)
    if function is None:
        function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        function = ir.Function(builder.module, function_type, name=symbol)
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        emit(inside, kinds, function.args)
        inside.ret_void()
    builder.call(function, values)


INSTRUCTIONS: Instructions = {"gemm": partial(shared, "gemm", emit_gemm), "gemv": partial(shared, "gemv", emit_gemv)}
