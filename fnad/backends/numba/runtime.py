"""The language of emitted source: the names it may call, and what they mean.

Emitted source is plain Python, a function per program, that computes on scalars and flat arrays:

    def program(x, out0, out1):
        total, rest = f64(0.0), f64(0.0)
        for b in range(0, 5000, 1024):
            acc = f64(0.0)
            for i in range(b, min(b + 1024, 5000)):
                v = sin(x[i])
                out1[i] = v
                acc = accumulate(acc, v * x[i])
            total, rest = compensated_add(total, rest, acc)
        out0[0] = total + rest

`compiler.compile_source` makes it native. Executed in `namespace()` as it stands it is ordinary Python on 1-D NumPy
arrays, with the same values; that is what runs with NUMBA_DISABLE_JIT=1.

Parameters are flat, contiguous arrays of any dtype, bool and complex included, none of which overlaps another.
Statements are assignments, also of tuples, stores, `for` over `range`, `while`, `break`, `if`, `return`, calls.
Operands of an operator have one dtype, which is the result's: integers wrap; a comparison gives bool_; // and % floor;
there is no **. A Python literal is an f64 or i64, so that constants are cast, f32(0.1); `inf` and `nan` are names. An
index is an i64.
Operations:

    casts       bool_ i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128, as NumPy's astype
    choice      select(condition, a, b)   strong_multiply(ct, p): 0 where ct is 0, else ct * p
                minimum maximum fmin fmax sign   min max: of i64, for the bounds of loops
    tests       isnan isinf isfinite signbit logical_not
    division    floor_divide remainder fmod
    integers    power, with an exponent that is not negative   left_shift right_shift
    functions   exp exp2 expm1 log log2 log10 log1p sqrt cbrt power abs sin cos tan arcsin arccos arctan arctan2
                sinh cosh tanh arcsinh arccosh arctanh hypot erf erfc floor ceil trunc rint copysign nextafter
    complex     real imag conjugate make_complex(re, im), and the functions that NumPy has for complex numbers
    draws       philox_low philox_high(index, stream, key): the halves of a block, u64   random_gamma(index, key, shape)
                random_normal random_exponential random_gumbel random_laplace random_cauchy(index, key): f64
    sums        acc = accumulate(acc, value): acc + value, where LLVM may change the order of additions
                total, rest = compensated_add(total, rest, value): the sum is total + rest
    loops       interrupted(): whether Python has an exception for us, a KeyboardInterrupt
                reserve(tapes, n, rows, row): whether tape n has room for so many rows of `row` bytes, now
                tape_f64(tapes, n), and so for each dtype: the array of tape n, until it grows
    products    gemm(a, a_offset, lda, a_transposed, b, b_offset, ldb, b_transposed, c, c_offset, ldc, m, n, k,
                alpha, beta): C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C
                gemv(a, a_offset, lda, a_transposed, x, x_offset, incx, y, y_offset, m, n, alpha, beta):
                y[m] = alpha op(A)[m, n] x[n] + beta y

Matrices are row-major, with lda elements from row to row; op transposes where the flag says so; alpha and beta have the
arrays' dtype; if beta is 0, C and y are not read.
"""

from __future__ import annotations

from fnad.backends.numba import (
    blas,
    cast,
    choice,
    complex_math,
    division,
    fold,
    functions,
    integer,
    interrupt,
    operators,
    random_bits,
    tape,
)
from fnad.backends.numba.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *cast.OPERATIONS,
    *operators.OPERATIONS,
    *choice.OPERATIONS,
    *division.OPERATIONS,
    *integer.OPERATIONS,
    *functions.OPERATIONS,
    *complex_math.OPERATIONS,
    *random_bits.OPERATIONS,
    *fold.OPERATIONS,
    *blas.OPERATIONS,
    *interrupt.OPERATIONS,
    *tape.OPERATIONS,
)


def namespace() -> dict[str, object]:
    """Return the globals that emitted source is executed in."""
    return {**{operation.name: operation for operation in OPERATIONS}, "inf": float("inf"), "nan": float("nan")}
