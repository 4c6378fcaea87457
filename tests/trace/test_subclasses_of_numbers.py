"""Numbers of subclasses, as members of enums: NumPy promotes them as arrays, and an argument would lose its class."""

import enum
import math
import operator

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentTypeError
from tests.together import together


class Mode(enum.IntEnum):
    A = 1
    B = 2


class Share(float, enum.Enum):
    HALF = 0.5


class Flag(enum.IntFlag):
    U = 2


class Complex(complex):
    pass


class Meters(float):
    def __add__(self, other):
        return 1000.0


NUMBERS = (Mode.B, Share.HALF, Flag.U, Complex(1 + 2j), Meters(1.5), True)
BESIDE = {
    "operator": lambda x, n: x * n,
    "reflected": lambda x, n: n / (x + 3),
    "function": lambda x, n: np.add(x, n),
    "power": lambda x, n: x**n,
    "comparison": lambda x, n: (x == n) * x,
    "where": lambda x, n: np.where(x > 0, x, n),
    "a list": lambda x, n: np.stack([x, x * 0 + n]),
    "of a Python number": lambda x, n: (1.5 * n) * x,
}
OF_PYTHON = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "iadd")},
    "reflected": lambda x, n: 3 / (n * x),
    "divmod": lambda x, n: divmod(x, n)[1],
    "sum": lambda x, n: sum([x, n]),
    "math": lambda x, n: math.pow(x, n) + math.hypot(x, n),
    "max": lambda x, n: max(x, n) + min(n, x),
}


@pytest.mark.parametrize("name", BESIDE)
def test_beside_arrays(name):
    f = BESIDE[name]
    with together() as named:
        for number in NUMBERS:
            for dtype in ("i1", "f4"):
                for x in (np.array([100, 3], dtype), np.dtype(dtype).type(3)):
                    with named((number, x)):
                        found, wanted = fnad.jit(lambda x, n=number: f(x, n))(x), f(x, number)
                        assert found.dtype == wanted.dtype
                        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", OF_PYTHON)
def test_beside_python_numbers(name):
    """The result is a Python number, which gives way to an array of float32."""
    f, ones = OF_PYTHON[name], np.ones(2, np.float32)
    with together() as named:
        for number in (Mode.B, Share.HALF, Flag.U):
            for x in (1.5, 3):
                with named((number, x)):
                    found, wanted = fnad.jit(lambda x, n=number: f(x, n) * ones)(x), f(x, number) * ones
                    assert found.dtype == wanted.dtype
                    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def chosen(x, mode):
    return 2 * x if mode is Mode.A else 3 * x if isinstance(mode, Mode) else 100 * x


def test_an_argument_that_would_lose_its_class_is_an_error():
    known = fnad.jit(lambda x, n: x * n)
    for number in (1, 1, 1.5, 1.5):
        known(2.0, number)
    for f, number, remedy in (
        (fnad.jit(chosen), Mode.A, "static_argnums"),
        (known, Mode.B, "static_argnums"),
        (known, Meters(1.5), r"float\(x\)"),
        (fnad.grad(lambda x, n: x + n, argnums=1), Meters(1.5), r"float\(x\)"),
        (fnad.grad(lambda x, n: x["n"] + n), 1.0, r"float\(x\)"),
    ):
        x = {"n": Meters(1.0)} if number == 1.0 and type(number) is float else 2.0
        with pytest.raises(ArgumentTypeError, match=f"which follows other rules than a number[^@]*{remedy}"):
            f(x, number)


def test_a_static_argument_keeps_its_class():
    f = fnad.jit(chosen, static_argnames="mode")
    assert [f(2.0, mode) for mode in (Mode.A, Mode.B, 1, Mode.A)] == [4, 6, 200, 4]
    assert fnad.grad(chosen)(2.0, Mode.A) == 2
