import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fnad.ir.constant import parse_scalar, scalar_text, static_text
from fnad.ir.types import DTYPES

F64, C128 = DTYPES["f64"], DTYPES["c128"]


@given(st.sampled_from(list(DTYPES.values())), st.binary(min_size=16, max_size=16))
def test_every_bit_pattern_round_trips(dtype: np.dtype, pattern: bytes) -> None:
    value = np.frombuffer(pattern, dtype)[0] if dtype.kind != "b" else np.bool_(pattern[0] & 1)
    digits, _, name = scalar_text(value).partition(":")
    assert DTYPES[name] == dtype
    assert parse_scalar(digits, dtype).tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1.5), "1.5:f64"),
        (np.float64(-0.0), "-0.0:f64"),
        (np.float64(np.nan), "nan:f64"),
        (np.float64(-np.nan), "0xfff8000000000000:f64"),
        (np.float32(0.1), "0.1:f32"),
        (np.float64(-np.inf), "-inf:f64"),
        (np.complex128(1 + 2j), "1+2j:c128"),
        (np.complex128(complex(-0.0, np.nan)), "-0+nanj:c128"),
        (np.int8(-3), "-3:i8"),
        (np.bool_(True), "True:bool"),
    ],
)
def test_constants_read_well(value: np.generic, text: str) -> None:
    assert scalar_text(value) == text


@pytest.mark.parametrize(
    ("text", "name"),
    [("300", "i8"), ("1e400", "f64"), ("1e39", "f32"), ("1e39j", "c64"), ("2.5", "i32"), ("1", "bool"), ("j", "f64")],
)
def test_a_constant_outside_its_dtype_is_an_error(text: str, name: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        parse_scalar(text, DTYPES[name])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-0.0, "-0.0"),
        (1e-300, "1e-300"),
        (True, "True"),
        (None, "None"),
        ('a "b"\nπ', r'"a \"b\"\nπ"'),
        (C128, "c128"),
        ((), "()"),
        ((1, (2.0,)), "(1, (2.0,))"),
    ],
)
def test_static_values_read_well(value: object, text: str) -> None:
    assert static_text(value) == text


def test_a_param_that_is_not_static_has_no_text() -> None:
    with pytest.raises(TypeError, match="a param is a number, str, None, dtype or a tuple of these, not list"):
        static_text((1, [2]))
