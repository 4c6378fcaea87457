"""Matrix products by symbol: SciPy's BLAS, called from native code on flat row-major arrays.

SciPy exports the BLAS and LAPACK it is linked to as C function pointers (`scipy.linalg.cython_blas`, `cython_lapack`).
Registered with LLVM under fnad's names, they are called like any C function; nothing is typed, copied or allocated.
BLAS is column-major, and a row-major matrix is its transpose there, so C = op(A) op(B) is computed as Cᵀ = op(B)ᵀ
op(A)ᵀ. Its integers have 32 bits.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad.backends.cpu import blas_threads, objects
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call

PREFIX = "fnad_"
LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
BYTE, WORD = ir.IntType(8), ir.IntType(32)

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


def call_on_one_thread(builder: Builder, dtype: Dtype, kind: str, *addresses: Value) -> None:
    """Call a routine on these addresses, on one thread: products are divided among fnad's own threads, not BLAS's."""
    enter, leave = thread_limits()
    call(builder, enter, ir.VoidType())
    call(builder, registered(f"{LETTERS[dtype.str[1:]]}{kind}"), ir.VoidType(), *addresses)
    call(builder, leave, ir.VoidType())


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
    return word(builder, builder.select(builder.icmp_signed(">", value, value.type(1)), value, value.type(1)))


def letter(builder: Builder, transposed: Value, if_true: str, if_false: str) -> Value:
    return builder.select(transposed, BYTE(ord(if_true)), BYTE(ord(if_false)))


# ---- products ----------------------------------------------------------------------------------------------------


def emit_gemm(builder: Builder, kinds: Kinds, values: Values) -> None:
    a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k, alpha, beta = values
    flags = [letter(builder, flag, "T", "N") for flag in (b_transposed, a_transposed)]
    sizes = [word(builder, size) for size in (n, m, k)]
    strides = [leading(builder, stride) for stride in (ldb, lda, ldc)]
    trans_b, trans_a, n, m, k, ldb, lda, ldc, alpha, beta = by_reference(builder, *flags, *sizes, *strides, alpha, beta)
    a, b, c = element(builder, a, a_offset), element(builder, b, b_offset), element(builder, c, c_offset)
    call_on_one_thread(builder, kinds[0].dtype, "gemm", trans_b, trans_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)


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
            call_on_one_thread(
                builder, kinds[0].dtype, "gemv", trans, rows, columns, alpha, a, lda, x, incx, beta, y, incy
            )


def shared(name: str, emit: Emit) -> Emit:
    """The emitter of a call of a function of the module that has what `emit` writes, which is long, once."""

    def emit_call(builder: Builder, kinds: Kinds, values: Values) -> None:
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

    return emit_call


INSTRUCTIONS: Instructions = {"gemm": shared("gemm", emit_gemm), "gemv": shared("gemv", emit_gemv)}
