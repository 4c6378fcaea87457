"""Between dtypes, and between complex numbers and their parts.

A cotangent of a complex value is that of the real-linear map, without conjugation: the pairing of ct and dz is
Re(ct * dz). So Reᵀ ct = ct + 0i, Imᵀ ct = 0 - ct i, and the transpose of (x, y) -> x + iy is ct -> (Re ct, -Im ct).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.ir.primitive import Linear, Sample, Scalar, everywhere
from fnad.ir.ranges import Range
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, Dtype, is_inexact, real_dtype
from fnad.ops.arithmetic import neg
from fnad.ops.constructors import COMPLEXES, LINE, REALS, elementwise, linear
from fnad.ops.shape import sample, zeros_like
from fnad.scalar.operation import complex_dtype


def _is_wide(result: Dtype, operand: Dtype) -> bool:
    """True if the result has room for all numbers; of integers any float has."""
    return not is_inexact(operand) or real_dtype(operand).itemsize <= real_dtype(result).itemsize


def _convert_samples() -> Iterable[Sample]:
    for source in DTYPES.values():
        for target in DTYPES.values():
            yield Sample((sample((3,), source),), {"dtype": target})


def _transpose_convert(ct: Symbol, x: Symbol, *, dtype: Dtype) -> tuple[Symbol]:
    return (convert(ct, dtype=x.dtype),)


@linear(
    lambda x, *, dtype: x.with_dtype(dtype),
    _transpose_convert,
    Scalar("{dtype}({0})"),
    _convert_samples,
    bounded=_is_wide,
    bounds=lambda x, *, dtype: x if is_inexact(dtype) else Range(x.low, x.high),
)
def convert(x: Any, *, dtype: Dtype) -> Any:
    """The value in another dtype, as NumPy's astype: to integers towards zero, from complex the real part."""
    source = x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x
    if dtype == np.uint32 and source.dtype.kind == "f":
        source = source.astype(np.int64)  # out of range NumPy's vectors differ from its scalars, for this dtype alone
    return source.astype(dtype)


def convert_to(x: Any, dtype: Dtype) -> Any:
    """Convert, if the dtype differs."""
    return x if x.dtype == dtype else convert(x, dtype=dtype)


# ---- complex numbers and their parts -----------------------------------------------------------------------------


real = elementwise(
    "real",
    np.real,
    "real({0})",
    Linear(lambda ct, z: (complex_(ct, zeros_like(ct)),)),
    domain=COMPLEXES,
    result=real_dtype,
    over=(LINE,),
    bounded=everywhere,
    doc="Real part.",
)

imag = elementwise(
    "imag",
    np.imag,
    "imag({0})",
    Linear(lambda ct, z: (complex_(zeros_like(ct), neg(ct)),)),
    domain=COMPLEXES,
    result=real_dtype,
    over=(LINE,),
    bounded=everywhere,
    doc="Imaginary part.",
)


def _make_complex(x: Any, y: Any) -> Any:
    z = np.empty(np.shape(x), complex_dtype(x.dtype))
    z.real, z.imag = x, y
    return z


complex_ = elementwise(
    "complex",
    _make_complex,
    "make_complex({0}, {1})",
    Linear(lambda ct, x, y: (real(ct), neg(imag(ct)))),
    domain=REALS,
    result=complex_dtype,
    over=(LINE, LINE),
    bounded=everywhere,
    doc="The complex number with these real and imaginary parts.",
)

conj = elementwise(
    "conj",
    np.conjugate,
    "conjugate({0})",
    Linear(lambda ct, z: (conj(ct),)),
    domain=COMPLEXES,
    over=(LINE,),
    bounded=everywhere,
    doc="Complex conjugate.",
)
