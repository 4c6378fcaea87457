"""Abstract values: what the compiler knows of an array before it exists, its dtype and its shape.

An aval is written `f64[3,4]`, `i32[]`, `bool[7]`. The dtypes are NumPy's own, in native byte order, under short names.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from fnad import forks
from fnad.errors import DtypeError
from fnad.scalar.operation import real_dtype  # noqa: F401 - functions of avals import it from here

Dtype: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = tuple[int, ...]

DTYPES: dict[str, Dtype] = {
    "bool": np.dtype(np.bool_),
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
NAMES: dict[Dtype, str] = {dtype: name for name, dtype in DTYPES.items()}

UNKNOWN = -1
"""The length of a leading axis that is known only at run time: that of a residual stack, one row per iteration."""

BOOL, I64, F32, F64 = DTYPES["bool"], DTYPES["i64"], DTYPES["f32"], DTYPES["f64"]


def dtype_name(dtype: Dtype) -> str:
    """The short name of a dtype, `f64` for `np.float64`."""
    name = NAMES.get(dtype)
    if name is None:
        raise DtypeError(
            f"dtype {dtype} is not supported",
            remedy=f"convert it to one of {', '.join(map(str, NAMES))} before the call",
        )
    return name


def in_native_order(dtype: Dtype) -> Dtype:
    """The dtype in the byte order of the machine; some, such as StringDType, have no other."""
    try:
        return dtype.newbyteorder("=")
    except TypeError:
        return dtype


def native_dtype(dtype: Any) -> Dtype:
    """Fnad's dtype for anything `np.dtype` takes; raises `DtypeError` where there is none."""
    try:
        found = in_native_order(np.dtype(dtype))
    except TypeError as error:
        raise DtypeError(str(error), remedy=f"give one of {', '.join(map(str, NAMES))}") from None
    return DTYPES[dtype_name(found)]


def is_inexact(dtype: Dtype) -> bool:
    """True if values of this dtype carry derivatives: real or complex floating point."""
    return dtype.kind in "fc"


def is_complex(dtype: Dtype) -> bool:
    """True if the dtype is complex."""
    return dtype.kind == "c"


class Aval:
    """An array's dtype and shape; equal ones are one object, so that tables find them by identity."""

    __slots__ = ("__weakref__", "dtype", "shape")
    dtype: Dtype
    shape: Shape

    def __new__(cls, dtype: Dtype, shape: Shape = ()) -> Aval:  # noqa: PYI034  (there is one class)
        known = _AVALS.get((dtype, shape))
        return (known and known()) or _new_aval(dtype, shape)

    def __reduce__(self) -> tuple[type[Aval], tuple[Dtype, Shape]]:
        return Aval, (self.dtype, self.shape)

    def __repr__(self) -> str:
        return f"Aval({self.dtype!r}, {self.shape!r})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_residual_stack(self) -> bool:
        """True if the number of rows is known only when the program runs."""
        return self.shape[:1] == (UNKNOWN,)

    def with_shape(self, shape: Shape) -> Aval:
        return Aval(self.dtype, shape)

    def with_dtype(self, dtype: Dtype) -> Aval:
        return Aval(dtype, self.shape)

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join('?' if n == UNKNOWN else str(n) for n in self.shape)}]"


_AVALS: dict[tuple[Dtype, Shape], ref[Aval]] = {}
_LOCK = forks.lock()


def _new_aval(dtype: Dtype, shape: Shape) -> Aval:
    with _LOCK:  # another thread may have made it in the meantime
        known = _AVALS.get((dtype, shape))
        found = known and known()
        if found is None:
            found = object.__new__(Aval)
            found.dtype, found.shape = DTYPES.get(NAMES.get(dtype, ""), dtype), shape  # of equal dtypes one
            _AVALS[dtype, shape] = ref(found, partial(_forget, (dtype, shape)))
        return found


def _forget(key: tuple[Dtype, Shape], gone: ref[Aval]) -> None:
    with _LOCK:
        if _AVALS.get(key) is gone:
            del _AVALS[key]


def aval_of(value: np.ndarray[Any, Any] | np.generic) -> Aval:
    """The aval of an array of a supported dtype."""
    dtype = value.dtype
    return Aval(dtype if dtype in NAMES else native_dtype(dtype), value.shape)
