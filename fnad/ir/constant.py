"""Scalar constants and static values of params as text, to the bit.

A constant is written with its dtype: `1.5:f64`, `-3:i32`, `True:bool`, `1+2j:c128`, `nan:f32`. A float that does not
round-trip through decimal text (a NaN with a sign or a payload) is written as its bits: `0xfff8000000000000:f64`.
"""

from __future__ import annotations

import sys
from typing import cast

import numpy as np

from fnad.ir.types import Dtype, dtype_name


def scalar_text(value: np.generic) -> str:
    """A constant as text.

    >>> scalar_text(np.float64(1.5)), scalar_text(np.complex64(-2j))
    ('1.5:f64', '-0-2j:c64')
    """
    return f"{_digits(value)}:{dtype_name(value.dtype)}"


def _digits(value: np.generic) -> str:
    text = str(value).strip("()")
    if value.dtype.kind not in "fc" or parse_scalar(text, value.dtype).tobytes() == value.tobytes():
        return text
    return hex(int.from_bytes(value.tobytes(), sys.byteorder))


def parse_scalar(text: str, dtype: Dtype) -> np.generic:
    """The constant of a dtype written as `text`; raises `ValueError` or `ArithmeticError` where it is none.

    >>> parse_scalar("1.5", np.dtype(np.float64))
    np.float64(1.5)
    """
    make = dtype.type
    if dtype.kind == "b":
        return make(("False", "True").index(text))
    if dtype.kind in "iu":
        return make(int(text))
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, sys.byteorder), dtype)[0]
    with np.errstate(over="ignore"):
        value = make(complex(text) if dtype.kind == "c" else float(text))
    if np.isinf(value) and "inf" not in text:
        raise OverflowError(f"{text} is out of the range of {dtype_name(dtype)}")
    return value


def static_text(value: object) -> str:
    """The value of a param as text; raises `TypeError` where it is not static.

    >>> static_text((0, True, None)), static_text(np.dtype(np.float32)), static_text("first")
    ('(0, True, None)', 'f32', '"first"')
    """
    match value:
        case None | bool() | int():
            return str(value)
        case float():
            return repr(float(value))
        case str():
            from json import dumps  # noqa: PLC0415 - hardly ever needed, and kept out of `import fnad`

            return dumps(value, ensure_ascii=False)
        case np.dtype():
            return dtype_name(cast(Dtype, value))
        case tuple():
            texts = [static_text(item) for item in cast("tuple[object, ...]", value)]
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        case _:
            raise TypeError(f"a param is a number, str, None, dtype or a tuple of these, not {type(value).__name__}")
