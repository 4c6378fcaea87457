"""The prelude of printed kernels: with it they are ordinary Numba functions, which need only NumPy and Numba.

Most operations are NumPy's functions under their own names. The others are short functions, for scalars of any dtype
that the table of scalar operations allows; where Numba's integers and floats need two versions, the one for integers
has the suffix `_int`. Random draws, SciPy's functions and residual stacks have no such form, and are listed in a
comment.
"""

from __future__ import annotations

import re

import numpy as np

from fnad.kernel.routines import LOCAL_ARRAYS, ROUTINES, routine_named
from fnad.scalar.operation import Kind, Operation
from fnad.scalar.operations import DTYPES

NUMPY = frozenset(
    (
        *("abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "ceil", "conjugate"),
        *("copysign", "cos", "cosh", "exp", "exp2", "expm1", "floor", "fmax", "fmin", "fmod", "hypot", "imag"),
        *("isfinite", "isinf", "isnan", "ldexp", "log", "log10", "log1p", "log2", "logical_not", "maximum", "minimum"),
        *("nextafter", "power", "real", "remainder", "rint", "sign", "signbit", "sin", "sinh", "sqrt", "tan", "tanh"),
        "trunc",
        "inf",
        "nan",
    )
)
"""Operations and numbers that NumPy has under the same name."""

INTEGER = {"i": "_int", "u": "_int"}
BY_KIND = {
    **dict.fromkeys(("floor_divide", "remainder", "fmod", "sign", "left_shift", "right_shift"), INTEGER),
    "power": {**INTEGER, "c": "_complex"},
    "divide": {"c": "_complex"},
}
"""Operations with several versions, by the kind of their operands."""

DEFINITIONS = {
    "select": """\
def select(condition, a, b):
    return a if condition else b""",
    "strong_multiply": """\
def strong_multiply(ct, partial):
    return type(ct)(ct * partial) if ct != 0 else type(ct)(0)""",
    "accumulate": """\
def accumulate(acc, value):
    return acc + value""",
    "erf": """\
def erf(x):
    return type(x)(math.erf(x))""",
    "erfc": """\
def erfc(x):
    return type(x)(math.erfc(x))""",
    "sech2": """\
def sech2(x):
    e = math.exp(-2.0 * abs(x))
    return type(x)(4.0 * e / ((1.0 + e) * (1.0 + e)))""",
    "exp_high": """\
def exp_high(x):
    root = math.exp(np.float64(x) / 2) * 2.0**50
    return type(x)(root * root if x < -600 else math.exp(np.float64(x)) * 2.0**100)""",
    "exp_low": """\
def exp_low(x):
    whole = math.exp(np.float64(x)) * 2.0**100
    return type(x)(whole - type(x)(whole))""",
    "muladd": """\
def muladd(x, y, z):
    return x * y + z""",
    "make_complex": """\
def make_complex(re, im):
    return complex(re, im)""",
    "interrupted": """\
def interrupted():
    return False""",
    "floor_divide": """\
def floor_divide(a, b):
    ratio = a / b
    if b == 0:
        return ratio
    rest = np.fmod(a, b)
    near = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        near = near - type(a)(1)
    if near == 0:
        return np.copysign(type(a)(0), ratio)
    whole = np.floor(near)
    return whole + type(a)(1) if near - whole > type(a)(0.5) else whole""",
    "floor_divide_int": """\
def floor_divide_int(a, b):
    if b == 0:
        return type(a)(0)
    return type(a)(-a) if b == -1 else type(a)(a // b)""",
    "remainder_int": """\
def remainder_int(a, b):
    return type(a)(0) if b == 0 or b == -1 else type(a)(a % b)""",
    "fmod_int": """\
def fmod_int(a, b):
    if b == 0 or b == -1:
        return type(a)(0)
    rest = type(a)(a % b)
    return type(a)(rest - b) if rest != 0 and (a < 0) != (b < 0) else rest""",
    "left_shift_int": """\
def left_shift_int(a, b):
    return type(a)(a << b) if 0 <= b < 64 else type(a)(0)""",
    "right_shift_int": """\
def right_shift_int(a, b):
    return type(a)(a >> b) if 0 <= b < 64 else type(a)(0) if a >= 0 else type(a)(-1)""",
    "power_int": """\
def power_int(base, exponent):
    product = type(base)(1)
    while exponent > 0:
        if exponent & 1:
            product = type(base)(product * base)
        base = type(base)(base * base)
        exponent = type(exponent)(exponent >> 1)
    return product""",
    "divide_complex": """\
def divide_complex(a, b):
    real, imag = b.real, b.imag
    if b == 0:
        return complex(a.real / abs(real), a.imag / abs(real))
    if abs(real) >= abs(imag):
        ratio = imag / real
        scale = type(real)(1) / (real + imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = real / imag
    scale = type(real)(1) / (imag + real * ratio)
    return complex((a.imag + a.real * ratio) * scale, (a.imag * ratio - a.real) * scale)""",
    "power_complex": """\
def power_complex(base, exponent):
    if base == 0 and exponent != 0:
        zero = type(base.real)(0) if exponent.real > 0 else type(base.real)(np.nan)
        return type(base)(complex(zero, zero))
    return type(base)(base**exponent)""",
    "sign_int": """\
def sign_int(x):
    return type(x)(1) if x > 0 else type(x)(0) if x == 0 else type(x)(-1)""",
    "compensated_add": """\
def compensated_add(total, rest, value):
    new = total + value
    if not np.isfinite(new):
        return new, rest
    seen = new - total
    return new, rest + ((total - (new - seen)) + (value - seen))""",
    **{
        routine.name: f"""\
def {routine.name}(size):
    return np.empty(size, np.{dtype.name})"""
        for dtype, routine in LOCAL_ARRAYS.items()
    },
    "gemm": """\
def gemm(a, a0, lda, a_t, b, b0, ldb, b_t, c, c0, ldc, m, n, k, alpha, beta):
    for i in range(m):
        for j in range(n):
            total = type(alpha)(0)
            for p in range(k):
                left = a[a0 + p * lda + i] if a_t else a[a0 + i * lda + p]
                right = b[b0 + j * ldb + p] if b_t else b[b0 + p * ldb + j]
                total = total + left * right
            old = beta * c[c0 + i * ldc + j] if beta != 0 else beta
            c[c0 + i * ldc + j] = alpha * total + old""",
    "gemv": """\
def gemv(a, a0, lda, a_t, x, x0, incx, y, y0, m, n, alpha, beta):
    for i in range(m):
        total = type(alpha)(0)
        for p in range(n):
            left = a[a0 + p * lda + i] if a_t else a[a0 + i * lda + p]
            total = total + left * x[x0 + p * incx]
        old = beta * y[y0 + i] if beta != 0 else beta
        y[y0 + i] = alpha * total + old""",
}


def spelled(operation: Operation, kind: Kind) -> str:
    """The name of an operation on operands of a kind, in printed kernels."""
    kinds = BY_KIND.get(operation.name, {})
    return operation.name + (kinds.get(kind.kind, "") if isinstance(kind, np.dtype) else "")


SPELLINGS = {f"{name}{suffix}": ROUTINES[name] for name, kinds in BY_KIND.items() for suffix in ("", *kinds.values())}
"""The operations of the names with a suffix."""


def words_of(code: str) -> list[str]:
    """The names in Python code."""
    return sorted({*re.findall(r"[A-Za-z_]\w*", code)})


def prelude(text: str) -> str:
    """The imports and the helpers of printed kernels."""
    words = words_of(without_comments(text))
    helpers = [DEFINITIONS[word] for word in words if word in DEFINITIONS]
    lines = ["import math"] if any("math." in helper for helper in helpers) else []
    lines += ["import numpy as np", f"from numba import njit{', prange' * ('prange' in words)}"]
    lines += [f"from numpy import {DTYPES[word].name} as {word}" for word in words if word in DTYPES]
    lines += [f"from numpy import {', '.join(found)}"] if (found := [w for w in words if w in NUMPY]) else []
    lines += ["", "span = range"] * ("span" in words)
    lines += [f"# {word} needs fnad" for word in missing(text)]
    return "\n".join([*lines, *(f"\n\n@njit(error_model='numpy')\n{helper}" for helper in helpers)])


def missing(text: str) -> list[str]:
    """The operations that printed kernels call and that have no form without fnad."""
    return [word for word in words_of(without_comments(text)) if word not in KNOWN and routine_named(word)]


def without_comments(text: str) -> str:
    """The lines of a printed kernel that are code."""
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))


KNOWN = frozenset((*DTYPES, *NUMPY, *DEFINITIONS, "min", "max", "span"))
"""Everything that printed kernels may call without fnad."""
