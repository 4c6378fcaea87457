"""Every ufunc on every dtype, and NumPy's promotion on every pair of dtypes."""

import operator

import numpy as np
import pytest

import fnad
from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.ir.types import DTYPES
from fnad.numpy.registry import RULES
from tests.numpy.against_numpy import NAMES, check, check_error, check_or_refused, sample, traced
from tests.together import in_groups, some_of, together

UFUNCS = {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc)}
WITHOUT_RULE = {"isnat"}
ELEMENTWISE = sorted(name for name in UFUNCS.keys() - WITHOUT_RULE if UFUNCS[name].signature is None)
FLOATS = ("f32", "f64", "c64", "c128")


def test_ufuncs_without_a_rule_are_those_listed():
    assert {name for name, ufunc in UFUNCS.items() if ufunc not in RULES} == WITHOUT_RULE


@in_groups("name", ELEMENTWISE)
def test_traced_ufuncs_compute_as_numpy_in_any_dtype(name):
    ufunc = UFUNCS[name]
    with together() as check:
        for dtype in NAMES:
            with check(dtype):
                check_or_refused(ufunc, *[sample((2, 3), dtype, i) for i in range(ufunc.nin)])


@in_groups("name", ELEMENTWISE)
def test_traced_ufuncs_compute_as_numpy_at_singular_values(name):
    ufunc = UFUNCS[name]
    values = np.array([0.0, -0.0, 1.0, -1.0, -2.5, 0.5, 3.0, np.inf, -np.inf, np.nan])
    operands = np.meshgrid(*[values] * ufunc.nin)
    if "dd" in "".join(ufunc.types) or ufunc.nin == 1:
        check_or_refused(ufunc, *operands)


def test_a_ufunc_without_a_rule_is_refused_by_name():
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.isnat has no rule for traced values"):
        traced(np.isnat, np.ones(2, np.int64))


# ---- promotion -------------------------------------------------------------------------------------------------------

PROMOTING = ("add", "multiply", "divide", "floor_divide", "power", "less", "equal", "logical_and", "bitwise_or")
SCALARS = {"True": True, "2": 2, "-1": -1, "2.5": 2.5, "0.5": 0.5, "1j": 1j, "300": 300, "f4(2)": np.float32(2)}
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq", "ge", "and_", "lshift")


@pytest.mark.parametrize("name", PROMOTING)
@in_groups("left", NAMES)
def test_promotion_of_arrays(name, left):
    """With half of the dtypes, which are drawn."""
    for right in some_of(NAMES, f"{name} {left}", (len(NAMES) + 1) // 2):
        check_or_refused(UFUNCS[name], sample((2, 3), left), sample(3, right, 1) + np.ones((), DTYPES[right]))


@in_groups("scalar", SCALARS)
@pytest.mark.parametrize("name", OPERATORS)
def test_promotion_with_numbers(name, scalar):
    """Beside half of the dtypes, which are drawn."""
    function, number = getattr(operator, name), SCALARS[scalar]
    for dtype in some_of(NAMES, f"{name} {scalar}", (len(NAMES) + 1) // 2):
        x = sample(3, dtype) + np.ones((), DTYPES[dtype])
        check_or_refused(lambda x: function(x, number), x)
        check_or_refused(lambda x: function(number, x), x)


@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j], ids=str)
def test_traced_python_numbers_give_way_to_arrays(scalar):
    for dtype in ("i64", *FLOATS):
        check(lambda x, s: x * s + s, sample(3, dtype), scalar)
        check(lambda s, x: np.where(x != 0, s, x), scalar, sample(3, dtype))


@pytest.mark.parametrize("name", OPERATORS)
def test_python_numbers_alone_stay_python_numbers(name):
    function = getattr(operator, name)
    for left, right in ((2.5, 2), (3, 2), (True, 2), (1.5, 2.5)):
        if name in ("and_", "lshift") and isinstance(left + right, float):
            continue
        result, _ = traced(lambda a, b: np.float32(1) * function(a, b), left, right)
        assert result == np.float32(function(left, right))
        assert result.dtype == np.result_type(np.float32, function(left, right))


def test_integers_that_do_not_fit():
    check_error(lambda x: x + 300, sample(3, "u8"))
    check_error(lambda x: x * -1, sample(3, "u8"))
    check(lambda x: x < 300, sample(3, "u8"))
    check(lambda x: x == -1, sample(3, "u8"))
    check(lambda x, y: (x < y, x >= y, y > x, x != y), np.array([-1, 2, 5]), np.array([2**64 - 1, 2, 4], np.uint64))


def test_traced_integers_wrap_around_as_numpys():
    check(lambda x: x * 3, np.array([100], np.int8))
    check(lambda x: x - 2, np.array([1], np.uint8))
    check(lambda x: x + 1, np.array([np.iinfo(np.int32).max], np.int32))
    check(lambda x: x**2, np.array([2**20], np.int32))
    check_error(lambda x: x**-1, np.array([2]))


def test_big_endian_arrays_from_outside():
    check(lambda x: x * np.array([1, 2, 3], ">f8"), sample(3, "f64"))


# ---- options and methods ---------------------------------------------------------------------------------------------


def test_traced_ufuncs_take_dtype_order_and_subok():
    x, v = sample((2, 3), "f64"), sample(3, "f32", 1)
    check(lambda x, v: np.add(x, v, dtype=np.float32), x, v)
    check(lambda x, v: np.multiply(x, v, order="F", subok=False), x, v)
    check_error(lambda x: np.add(x, 1.5, dtype=int), x)


@pytest.mark.parametrize("dtype", ["u1", "i1", "?"])
def test_neighbours_in_float16_are_refused(dtype):
    for f in (np.spacing, lambda x: np.nextafter(x, x)):
        with pytest.raises(DtypeError, match="gives float16, which is not supported"):
            fnad.jit(f)(np.ones(3, dtype))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers_are_rounded_in_both_parts(dtype):
    z = np.array([1.5 + 2.5j, -0.5 - 0.2j, np.inf - 1e30j], dtype)
    np.testing.assert_array_equal(fnad.jit(np.rint)(z), np.rint(z), strict=True)
    assert not np.any(fnad.grad(lambda z: np.sum(np.rint(z)).real)(z))


def test_where_without_out_is_refused():
    with pytest.raises(UnsupportedFunctionError, match="with where= and without out= leaves elements undefined"):
        traced(lambda x: np.add(x, 1, where=x > 0), sample(3, "f64"))


def test_options_without_a_rule_are_named():
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.add has no rule for the option signature="):
        traced(lambda x: np.add(x, 1, signature="dd->d"), sample(3, "f64"))
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.array has no rule for the option ndmax="):
        traced(lambda x: np.array(x, ndmax=3), sample(3, "f64"))


def test_methods_of_traced_ufuncs_compute_as_numpy():
    x, v = sample((2, 3), "f64"), sample(3, "f32", 1)
    check(lambda x, v: (np.add.outer(x, v), np.multiply.outer(v, 2), np.less.outer(2, x)), x, v)
    check(lambda x: (np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, axis=None)), x)
    check(lambda x: (np.minimum.reduce(x, keepdims=True), np.logical_and.reduce(x > 0.3), np.logical_or.reduce(x)), x)
    check(lambda x: np.add.accumulate(x, axis=1), x)
    check(lambda x: np.arange(6.0).reshape(2, 3).sum(where=x > 0.4), x)
    check(lambda x: np.arange(3.0).clip(x, 0.7), x)


def test_lists_beside_traced_values():
    check(lambda x: np.add(x, [1, 2, 3]) * (1, 2, 3) + [0.5], sample((2, 3), "f64"))
    check(lambda x, t: np.add([t, 2.0, t], x), sample(3, "f64"), np.float64(2))
