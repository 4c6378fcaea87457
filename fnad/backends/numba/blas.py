"""Matrix products by symbol: scipy's BLAS, called from emitted code on flat row-major arrays.

scipy exports the BLAS it is linked to as C function pointers (`scipy.linalg.cython_blas`). Registered with LLVM under names of our own,
they are called like any C function; nothing is typed, copied or allocated. BLAS is column-major: a row-major matrix is its
transpose there, so C = op(A) op(B) is computed as Cᵀ = op(B)ᵀ op(A)ᵀ by exchanging the operands. Integers are 32-bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import Kind, OperandError, Operation, Pointer
from fnad.backends.numba.scalar import call

LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
WORD = ir.IntType(32)


@cache
def register() -> None:
    """Make scipy's gemm and gemv known to LLVM as fnad_dgemm, fnad_sgemv, …"""
    from scipy.linalg import cython_blas  # here, to keep SciPy out of `import fnad`

    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for routine in (letter + kind for letter in LETTERS.values() for kind in ("gemm", "gemv")):
        capsule = cython_blas.__pyx_capi__[routine]
        llvm.add_symbol(f"fnad_{routine}", address_of(capsule, name_of(capsule)))


def call_blas(builder: ir.IRBuilder, dtype: np.dtype[Any], kind: str, *addresses: ir.Value) -> None:
    register()
    call(builder, f"fnad_{LETTERS[dtype.str[1:]]}{kind}", ir.VoidType(), *addresses)


def by_reference(builder: ir.IRBuilder, *values: ir.Value) -> list[ir.Value]:
    """Return addresses of the values, as Fortran takes its arguments; the stack slots live in the function's entry block."""
    addresses = []
    for value in values:
        with builder.goto_entry_block():
            slot = builder.alloca(value.type)
        builder.store(value, slot)
        addresses.append(address(builder, slot))
    return addresses


def address(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.bitcast(pointer, ir.IntType(8).as_pointer())


def element(builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value) -> ir.Value:
    return address(builder, builder.gep(pointer, [offset]))


def word(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.trunc(value, WORD)


def at_least_one(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """BLAS refuses a leading dimension of 0, which empty matrices have."""
    return builder.select(builder.icmp_signed(">", value, value.type(1)), value, value.type(1))


def letter_of(builder: ir.IRBuilder, transposed: ir.Value, if_true: str, if_false: str) -> ir.Value:
    byte = ir.IntType(8)
    return builder.select(transposed, byte(ord(if_true)), byte(ord(if_false)))


def emit_gemm(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> None:
    a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k, alpha, beta = values
    letters = [letter_of(builder, flag, "T", "N") for flag in (b_transposed, a_transposed)]
    sizes = [word(builder, size) for size in (n, m, k)]
    leading = [at_least_one(builder, word(builder, ld)) for ld in (ldb, lda, ldc)]
    trans_b, trans_a, n, m, k, alpha, beta, ldb, lda, ldc = by_reference(builder, *letters, *sizes, alpha, beta, *leading)
    a, b, c = element(builder, a, a_offset), element(builder, b, b_offset), element(builder, c, c_offset)
    call_blas(builder, kinds[0].dtype, "gemm", trans_b, trans_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)


def emit_gemv(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> None:
    """BLAS leaves y as it was where the sum is over nothing; gemm, over no columns, scales it."""
    a, a_offset, lda, a_transposed, x, x_offset, incx, y, y_offset, m, n, alpha, beta = values
    with builder.if_else(builder.icmp_signed("==", n, n.type(0))) as (empty, usual):
        with empty:
            no, one = a_transposed.type(0), n.type(1)
            columns = a, a_offset, one, no, x, x_offset, one, no, y, y_offset, one, m, one, n, alpha, beta
            emit_gemm(builder, [kinds[0]], columns)
        with usual:
            rows, columns = builder.select(a_transposed, m, n), builder.select(a_transposed, n, m)
            numbers = [word(builder, value) for value in (rows, columns, lda, incx)]
            references = by_reference(builder, letter_of(builder, a_transposed, "N", "T"), *numbers, alpha, beta, WORD(1))
            trans, rows, columns, lda, incx, alpha, beta, incy = references
            a, x, y = element(builder, a, a_offset), element(builder, x, x_offset), element(builder, y, y_offset)
            call_blas(builder, kinds[0].dtype, "gemv", trans, rows, columns, alpha, a, lda, x, incx, beta, y, incy)


def plain_gemm(
    a: Any, a_offset: int, lda: int, a_transposed: bool, b: Any, b_offset: int, ldb: int, b_transposed: bool,
    c: Any, c_offset: int, ldc: int, m: int, n: int, k: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    """C[m, n] = alpha * op(A) @ op(B) + beta * C, where op(A) is [m, k] and op(B) is [k, n]; C is not read if beta is 0."""
    left = matrix(a, a_offset, lda, k, m).T if a_transposed else matrix(a, a_offset, lda, m, k)
    right = matrix(b, b_offset, ldb, n, k).T if b_transposed else matrix(b, b_offset, ldb, k, n)
    into = matrix(c, c_offset, ldc, m, n)
    product = alpha * (left @ right)
    into[...] = product + beta * into if beta != 0 else product


def plain_gemv(
    a: Any, a_offset: int, lda: int, a_transposed: bool, x: Any, x_offset: int, incx: int,
    y: Any, y_offset: int, m: int, n: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    """y[m] = alpha * op(A) @ x[n] + beta * y, where op(A) is [m, n]; y is not read if beta is 0."""
    left = matrix(a, a_offset, lda, n, m).T if a_transposed else matrix(a, a_offset, lda, m, n)
    product = alpha * (left @ x[x_offset : x_offset + n * incx : incx])
    into = y[y_offset : y_offset + m]
    into[...] = product + beta * into if beta != 0 else product


def matrix(flat: Any, offset: int, leading: int, rows: int, columns: int) -> Any:
    """Return a view of the row-major matrix that starts at `offset`, with `leading` elements from row to row."""
    strides = (leading * flat.itemsize, flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat[offset:], (rows, columns), strides)


def nothing(*kinds: Kind) -> Kind:
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, Pointer)}
    if len(dtypes) != 1 or any(dtype.str[1:] not in LETTERS for dtype in dtypes):
        raise OperandError(f"a matrix product takes arrays of one of f32, f64, c64, c128, not {', '.join(sorted(map(str, dtypes)))}")
    return None


OPERATIONS = (
    Operation("gemm", nothing, emit_gemm, plain_gemm),
    Operation("gemv", nothing, emit_gemv, plain_gemv),
)
