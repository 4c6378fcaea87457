"""The names emitted source may call: the language of the backend.

Emitted source is plain Python, one function per program, that computes on scalars and flat pointers:

    def program(x, out0, out1):                 # every parameter is a flat, contiguous array; none overlaps another that is written
        total, rest = f64(0.0), f64(0.0)
        for b in range(0, 5000, 1024):
            acc = f64(0.0)
            for i in range(b, min(b + 1024, 5000)):
                v = sin(x[i])
                out1[i] = v
                acc = acc + v * x[i]
            total, rest = compensated_add(total, rest, acc)
        out0[0] = total + rest

`compiler.compile_source` makes it native. Executed in `namespace()` as it stands, it is ordinary Python on 1-D NumPy arrays with
the same values, which is what runs with NUMBA_DISABLE_JIT=1. The language:

    statements      assignments (also of tuples), stores, for over range, while, if, calls
    + - *, /        on operands of one dtype; Numba widens small integers, so the result is cast: i32(a + b)
    comparisons     give bool_; & | ^ ~ on bool_ and integers
    constants       always cast, f32(0.1), for a Python literal is f64 or i64; inf and nan are names
    x[i], x[i] = v  on every dtype, bool_ and complex included
    casts           bool_ i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128, with NumPy's astype semantics
    operations      on operands of one dtype unless they say otherwise: see the families below

`vector_math`   exp log sin cos tanh …: vectorised in loops where glibc's libmvec is there
`fold`          compensated_add(total, rest, value) -> (total, rest)
`blas`          gemm(a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k, alpha, beta)
"""

from __future__ import annotations

from fnad.backends.numba import blas, choice, complex_math, division, fold, functions, integer, operators, scalar
from fnad.backends.numba.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *scalar.CASTS,
    *operators.OPERATIONS,
    *division.OPERATIONS,
    *integer.OPERATIONS,
    *choice.OPERATIONS,
    *functions.OPERATIONS,
    *complex_math.OPERATIONS,
    *fold.OPERATIONS,
    *blas.OPERATIONS,
)


def namespace() -> dict[str, object]:
    """Return the globals emitted source is executed in."""
    return {operation.name: operation for operation in OPERATIONS} | {"inf": float("inf"), "nan": float("nan")}
