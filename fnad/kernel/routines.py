"""The routines that kernels call besides scalar operations, by names that each target implements.

    total, rest = compensated_add(total, rest, value): the sum is total + rest, or on a device an infinite total
    interrupted(): whether Python has raised an exception, such as KeyboardInterrupt
    reserve(stacks, n, rows, row): makes room for so many rows of `row` bytes on residual stack n; whether it could
    stack_f64(stacks, n), and so for each dtype: the array of residual stack n, until it grows
    local_f64(n), and so for each dtype: a new array of a constant number of elements
    gemm(a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k, alpha, beta):
        C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C
    gemv(a, a_offset, lda, a_transposed, x, x_offset, incx, y, y_offset, m, n, alpha, beta):
        y[m] = alpha op(A)[m, n] x[n] + beta y

Matrices are row-major, with lda elements from row to row; op transposes where the flag says so; alpha and beta have the
arrays' dtype; if beta is 0, C and y are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.kernel import residual_stack
from fnad.kernel.collectives import COLLECTIVES, numbers_of_collective
from fnad.kernel.device import DEVICE, array_routine
from fnad.kernel.fourier import FOURIER
from fnad.kernel.linalg import LINALG, stack_sizes
from fnad.lower.loop_ir import LibraryCall
from fnad.scalar.operation import BOOL, Dtype, Kind, OperandError, Operation, Pointer, among
from fnad.scalar.operations import DTYPES, OPERATIONS, operation_named

# ---- sums --------------------------------------------------------------------------------------------------------


def compensated_add(total: Any, rest: Any, value: Any) -> tuple[Any, Any]:
    """The new total, and the sum of the rounding errors so far."""
    if np.iscomplexobj(total):
        real, real_rest = compensated_add(total.real, rest.real, value.real)
        imaginary, imaginary_rest = compensated_add(total.imag, rest.imag, value.imag)
        return type(total)(complex(real, imaginary)), type(rest)(complex(real_rest, imaginary_rest))
    new_total = total + value
    if not np.isfinite(new_total):
        return new_total, rest
    seen = new_total - total
    return new_total, rest + ((total - (new_total - seen)) + (value - seen))


def total_and_rest(dtype: Dtype) -> Kind:
    return (dtype, dtype)


# ---- matrix products ---------------------------------------------------------------------------------------------

MATRIX_DTYPES = frozenset(map(np.dtype, ("f4", "f8", "c8", "c16")))


def of_matrices(*kinds: Kind) -> Kind:
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, Pointer)}
    if len(dtypes) != 1 or not dtypes <= MATRIX_DTYPES:
        names = ", ".join(sorted(map(str, dtypes)))
        raise OperandError(f"a matrix product takes arrays of one of f32, f64, c64, c128, not {names}")
    return None


def gemm(
    a: Any, a_offset: int, lda: int, a_transposed: bool, b: Any, b_offset: int, ldb: int, b_transposed: bool,
    c: Any, c_offset: int, ldc: int, m: int, n: int, k: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    """C[m, n] = alpha op(A) op(B) + beta C, where op(A) is [m, k], op(B) is [k, n]; if beta is 0, C is not read."""
    left = matrix(a, a_offset, lda, k, m).T if a_transposed else matrix(a, a_offset, lda, m, k)
    right = matrix(b, b_offset, ldb, n, k).T if b_transposed else matrix(b, b_offset, ldb, k, n)
    into = matrix(c, c_offset, ldc, m, n)
    product = alpha * (left @ right)
    into[...] = product + beta * into if beta != 0 else product


def gemv(
    a: Any, a_offset: int, lda: int, a_transposed: bool, x: Any, x_offset: int, incx: int,
    y: Any, y_offset: int, m: int, n: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    """y[m] = alpha op(A) x + beta y, where op(A) is [m, n]; if beta is 0, y is not read."""
    left = matrix(a, a_offset, lda, n, m).T if a_transposed else matrix(a, a_offset, lda, m, n)
    product = alpha * (left @ x[x_offset : x_offset + n * incx : incx])
    into = y[y_offset : y_offset + m]
    into[...] = product + beta * into if beta != 0 else product


def matrix(flat: Any, offset: int, stride: int, rows: int, columns: int) -> Any:
    """A view of the row-major matrix that starts at `offset`, with `stride` elements from row to row."""
    strides = (stride * flat.itemsize, flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat[offset:], (rows, columns), strides)


# ---- the table ---------------------------------------------------------------------------------------------------


def stack_array(name: str, dtype: Dtype) -> Operation:
    """The routine that gives a residual stack as an array."""
    return Operation(
        f"stack_{name}", lambda *kinds: Pointer(dtype), lambda table, n: residual_stack.recorded(table, n, dtype)
    )


COMPENSATED_ADD = Operation("compensated_add", among("fc", total_and_rest), compensated_add)
INTERRUPTED = Operation("interrupted", lambda: BOOL, lambda: False)
RESERVE = Operation("reserve", lambda *kinds: BOOL, residual_stack.reserve)
GEMM = Operation("gemm", of_matrices, gemm)
GEMV = Operation("gemv", of_matrices, gemv)
LOCAL_ARRAYS = {dtype: array_routine(f"local_{name}", dtype) for name, dtype in DTYPES.items()}
STACK_ARRAYS = {dtype: stack_array(name, dtype) for name, dtype in DTYPES.items()}

ROUTINES: dict[str, Operation] = OPERATIONS | {
    routine.name: routine
    for routine in (
        COMPENSATED_ADD,
        INTERRUPTED,
        RESERVE,
        GEMM,
        GEMV,
        *LOCAL_ARRAYS.values(),
        *STACK_ARRAYS.values(),
        *LINALG.values(),
        *COLLECTIVES.values(),
        *FOURIER.values(),
    )
}
"""Everything that a kernel may call, except SciPy's ufuncs and what only a device has."""


def routine_named(word: str) -> Operation | None:
    """The routine of this name; None if there is none."""
    return ROUTINES.get(word) or DEVICE.get(word) or operation_named(word)


def numbers_of(call: LibraryCall) -> tuple[int, ...]:
    """The numbers that the routine of a call takes behind the arrays."""
    name = call.routine.name if call.routine is not None else ""
    if name in LINALG:
        count, sizes = stack_sizes(name, [buffer.aval.shape for buffer in (*call.operands, *call.results)])
        return count, *sizes
    return numbers_of_collective(call) if name in COLLECTIVES else ()
