"""The exact message of every error that a user's call can bring about."""

from __future__ import annotations

import contextlib
import decimal
import importlib
import linecache
import operator
import pickle
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest
import scipy.special

import fnad
from fnad import errors, grad, jit, jvp, value_and_grad, vjp
from fnad.api.functions import grad as grad_module

FLAGS = np.array([True, False])
K = np.arange(3)
X = np.array([0.5, 1.0, 2.0])
SOURCE = Path(__file__).read_text().splitlines()


def total(x: Any) -> Any:
    return np.sum(x * x)


def square(x: Any) -> Any:
    return x * x


def holomorphic(z: Any) -> Any:
    return z * z


def counting(x: Any) -> Any:
    return np.argmax(x)


def both(x: Any) -> Any:
    return {"value": x, "square": x * x}


def labelled(x: Any) -> Any:
    return [x, {"label": "a"}]


def mixed(x: Any) -> Any:
    return x * 2.0, np.argmax(x)


def defined(f: Callable[..., Any]) -> str:
    """Return the line of a message that says where a function of this file is defined."""
    number = f.__code__.co_firstlineno
    return f"  at test_errors.py:{number} in {f.__name__}:  {SOURCE[number - 1].strip()}"


@contextlib.contextmanager
def raises(kind: type[errors.FnadError], *lines: str) -> Generator[None]:
    """Check that the block, one line, raises an error of this class with these lines; HERE stands for the block's."""
    with pytest.raises(errors.FnadError) as caught:
        yield
    frame = next(f for f in traceback.extract_tb(caught.value.__traceback__) if f.name.startswith("test_"))
    here = f"  at test_errors.py:{frame.lineno} in {frame.name}:  {frame.line}"
    assert str(caught.value).splitlines() == [here if line == HERE else line for line in lines]
    assert type(caught.value) is kind


HERE = "here"
CONVERT = (
    "  convert it with astype to one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, "
    "float64, complex64, complex128"
)
CONTAINERS = "  put arrays and numbers in tuples, lists, dicts, dataclasses or classes registered with optree"
CONSTANT = "  name it in static_argnums or static_argnames, which make it a constant of the program"


# ---- grad ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [grad, value_and_grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))])
def test_output_of_several_elements(transform: Any) -> None:
    with raises(
        errors.NonScalarOutputError,
        "square returned f64[3], where grad takes one real element",
        defined(square),
        "  reduce it, with np.sum for example, or give a cotangent for each element to fnad.vjp",
    ):
        transform(square)(X)


def test_grad_of_a_complex_result_is_refused_with_a_remedy() -> None:
    with raises(
        errors.NonScalarOutputError,
        "holomorphic returned c128[], where grad takes one real element",
        defined(holomorphic),
        "  take its real part, or its absolute value",
    ):
        grad(holomorphic)(1.0 + 2.0j)


def test_grad_of_an_integer_result_is_refused_with_a_remedy() -> None:
    with raises(
        errors.NonScalarOutputError,
        "counting returned i64[], where grad takes one real element",
        defined(counting),
        "  integers and bools have no derivative: return a float",
    ):
        grad(counting)(X)


def test_grad_of_a_pytree_is_refused_with_a_remedy() -> None:
    with raises(
        errors.NonScalarOutputError,
        "both returned a pytree, {'value': *, 'square': *}, where grad takes one real element",
        defined(both),
        "  return the one value to differentiate; has_aux=True takes others beside it",
    ):
        grad(both)(1.0)


def nothing(x: Any) -> None:
    np.sum(x)


@pytest.mark.parametrize("transform", [grad, value_and_grad, fnad.hessian])
def test_a_function_that_returns_nothing(transform: Any) -> None:
    with raises(
        errors.NonScalarOutputError,
        "nothing returned None, where grad takes one real element",
        defined(nothing),
        "  return the value: a function without a return statement returns None",
    ):
        transform(nothing)(X)


USES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: np.sum(x**2), "unsupported operand type(s) for ** or pow(): '{}' and 'int'"),
    (lambda x: -x, "bad operand type for unary -: '{}'"),
    (lambda x: x + 1.0, 'can only concatenate {0} (not "float") to {0}'),
    (lambda x: 2.0 * x, "can't multiply sequence by non-int of type 'float'"),
    (lambda x: x[0, 1], "{} indices must be integers or slices, not tuple"),
    (lambda x: x[np.array([0, 1])], "only integer scalar arrays can be converted to a scalar index"),
]


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize(("f", "what"), USES)
@pytest.mark.parametrize(
    "transform", [grad, jit, fnad.jacobian, lambda f: lambda x: fnad.fori_loop(0, 2, lambda i, x: f(x), x)]
)
def test_a_list_where_an_array_was_meant(transform: Any, f: Any, what: str, kind: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError) as caught:
        transform(f)(kind([1.0, 2.0]))
    name = kind.__name__
    assert caught.value.what == f"{what.format(name)}: x is a {name}, which is a tree of numbers and not an array"
    assert caught.value.remedy == "make it an array: np.array(x), in the function or where it is called"


def test_attributes_of_a_list_and_of_none() -> None:
    for given, what in (
        ([1.0], "'list' object has no attribute 'shape': x is a list, which is a tree"),
        (None, "'NoneType' object has no attribute 'shape': x is None"),
    ):
        with pytest.raises(AttributeError, match=what) as caught:
            grad(lambda x: np.sum(x) * x.shape[0])(given)
        assert isinstance(caught.value, errors.FnadError)
    with pytest.raises(errors.ArgumentTypeError, match="and 'int': x is None"):
        grad(lambda x: x**2)(None)
    with pytest.raises(errors.ArgumentTypeError, match=r"of type NoneType .*: x is None"):
        grad(lambda x: np.sum(np.sin(x)))(None)


def test_errors_of_python_about_other_lists_stay_as_they_are() -> None:
    names: Any = ["a", "b"]
    with pytest.raises(TypeError) as caught:
        grad(lambda x: x * len(names**2))(1.0)
    assert not isinstance(caught.value, errors.FnadError)


def test_objects_in_an_array() -> None:
    remedy = "  write np.array(x, dtype=float), with np.nan in the place of None"
    for given, more in (
        ([1, None], ", and has NoneType in it"),
        ([1, 2.0], ""),
        (["a", None], ", and has NoneType, str in it"),
    ):
        with pytest.raises(errors.DtypeError) as caught:
            grad(total)(np.array(given, object))
        assert (caught.value.what, f"  {caught.value.remedy}") == (f"x has dtype object{more}", remedy)


def test_a_long_line_is_cut() -> None:
    text = "def f(x):\n    return " + " + ".join(["np.sin(x)"] * 30) + " + x.detach()\n"
    linecache.cache["long_line.py"] = len(text), None, text.splitlines(keepends=True), "long_line.py"
    names: dict[str, Any] = {"np": np}
    exec(compile(text, "long_line.py", "exec"), names)
    with pytest.raises(errors.FnadError) as caught:
        grad(names["f"])(1.0)
    line = str(caught.value.source).partition("in f:  ")[2]
    assert len(line) == 160
    assert line == f"{text.splitlines()[1].strip()[:158]} …"


@pytest.mark.parametrize(
    ("argument", "path", "offer"),
    [
        (3, "x is i64[]", "3.0"),
        (True, "x is bool[]", "1.0"),
        (np.arange(3), "x is i64[3]", "x.astype(float)"),
        (np.array([True]), "x is bool[1]", "x.astype(float)"),
        (np.uint8(3), "x is u8[]", "x.astype(float)"),
        ({"a": 1, "n": [np.arange(2), 2]}, "x['a'] is i64[]", "1.0"),
    ],
)
def test_grad_in_an_integer_is_refused_with_a_float_offered(argument: Any, path: str, offer: str) -> None:
    lines = (
        f"{path}, which has no derivative",
        HERE,
        f"  pass a float: {offer}; or differentiate in other arguments",
    )
    with raises(errors.NonDifferentiableArgumentError, *lines):
        grad(total)(argument)
    with raises(errors.NonDifferentiableArgumentError, *lines):
        vjp(total, argument)
    with raises(errors.NonDifferentiableArgumentError, *lines):
        jvp(total, (argument,), (argument,))


def test_argnums_out_of_range() -> None:
    remedy = "  pass it by position, or correct argnums; the first is 0"
    with raises(
        errors.ArgnumsError,
        "argnums names argument 1 of total, which was called with 1 positional argument",
        HERE,
        remedy,
    ):
        grad(total, argnums=(0, 1))(X)
    with raises(
        errors.ArgnumsError,
        "argnums names argument -3 of total, which was called with 2 positional arguments",
        HERE,
        remedy,
    ):
        grad(total, argnums=-3)(X, X)
    with raises(
        errors.ArgnumsError,
        "argnums names argument 0 of total, which was called with 0 positional arguments",
        HERE,
        remedy,
    ):
        grad(total)(x=X)


@pytest.mark.parametrize("argnums", [(0, 0), (1, 0, -2)])
def test_argnums_that_name_an_argument_twice(argnums: Any) -> None:
    with raises(
        errors.ArgnumsError,
        "argnums names argument 0 of total twice",
        HERE,
        "  name it once; a negative number counts from the end",
    ):
        grad(total, argnums=argnums)(X, X)


@pytest.mark.parametrize("argnums", ["x", True, None, (0, "x"), ()])
def test_argnums_that_are_no_ints(argnums: Any) -> None:
    with raises(errors.ArgnumsError, f"argnums is {argnums!r}", HERE, "  give an int or a tuple of ints"):
        grad(total, argnums=argnums)


def test_no_pair_where_has_aux_wants_one() -> None:
    lines = "total returned f64[], where has_aux=True wants a pair", defined(total), "  return (output, auxiliary data)"
    with raises(errors.AuxiliaryError, *lines):
        grad(total, has_aux=True)(X)
    with raises(errors.AuxiliaryError, *lines):
        vjp(total, X, has_aux=True)
    with raises(errors.AuxiliaryError, *lines):
        jvp(total, (X,), (X,), has_aux=True)


# ---- arguments and results -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "path", "under_jit"),
    [
        ("abc", "x is of type str", CONSTANT),
        ({"a": "abc"}, "x['a'] is of type str", CONTAINERS),
        (object(), "x is of type object", CONTAINERS),
        (mock.MagicMock(), "x is of type unittest.mock.MagicMock", CONTAINERS),
        ({"a": [1.0, decimal.Decimal(1)]}, "x['a'][1] is of type decimal.Decimal", CONTAINERS),
        ((1.0, {1.0, 2.0}), "x[1] is of type set", CONTAINERS),
        (lambda: 0, "x is of type function", CONSTANT),
        (np.sin, "x is of type numpy.ufunc", CONSTANT),
    ],
)
def test_argument_that_is_no_pytree_of_arrays(argument: Any, path: str, under_jit: str) -> None:
    lines = f"{path}, not an array or a number", HERE, CONTAINERS
    with raises(errors.ArgumentTypeError, *lines):
        grad(total)(argument)
    with raises(errors.ArgumentTypeError, *lines[:2], under_jit):
        jit(total)(argument)
    with raises(errors.ArgumentTypeError, *lines[:2], under_jit):
        jit(total)(x=argument)
    with raises(errors.ArgumentTypeError, *lines):
        vjp(total, argument)


def test_arguments_without_a_name() -> None:
    with raises(errors.ArgumentTypeError, "args[1] is of type str, not an array or a number", HERE, CONSTANT):
        jit(lambda *args: args[0])(1.0, "a")


class Foreign:
    """An array of another library's, as PyTorch's and JAX's are."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return X


def test_arrays_of_other_libraries() -> None:
    what = "x is of type tests.test_errors.Foreign, not an array or a number"
    for transform in (grad, jit):
        with raises(errors.ArgumentTypeError, what, HERE, "  give np.asarray of it"):
            transform(total)(Foreign())
    assert jit(total)(np.asarray(Foreign())) == total(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_subclasses_of_arrays() -> None:
    apart = "  keep data and mask apart, m.data and m.mask, reduce with where=~mask, and fill with np.where(mask, value"
    for argument, name, remedy in (
        (np.ma.array(X), "numpy.ma.MaskedArray", f"{apart}, data)"),
        (np.matrix(X), "numpy.matrix", "  convert it first with np.asarray"),
    ):
        what = f"x is of type {name}, which follows other rules than an ordinary array"
        with raises(errors.ArgumentTypeError, what, HERE, remedy):
            grad(total)(argument)
        with raises(errors.ArgumentTypeError, what, HERE, remedy):
            jit(total)(argument)


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        (X.astype(np.float16), "x has dtype float16"),
        (np.float16(1), "x has dtype float16"),
        ([X.astype(np.longdouble)], f"x[0] has dtype {np.dtype(np.longdouble)}"),
        (np.array(["a"]), "x has dtype <U1"),
        (np.array(["2020-01-01"], "M8[D]"), "x has dtype datetime64[D]"),
        (np.zeros(2, [("a", float)]), "x has dtype [('a', '<f8')]"),
    ],
)
def test_arguments_of_unsupported_dtypes_are_refused_by_name(argument: Any, what: str) -> None:
    lines = f"{what}, which is not supported", HERE, CONVERT
    with raises(errors.DtypeError, *lines):
        grad(total)(argument)
    with raises(errors.DtypeError, *lines):
        jit(total)(argument)


def test_integer_that_does_not_fit() -> None:
    with raises(errors.DtypeError, f"x is {2**63}, which does not fit i64", HERE, "  pass it as a float"):
        jit(total)(2**63)


def test_result_that_is_no_pytree_of_arrays() -> None:
    lines = "labelled(...)[1]['label'] is of type str, not an array or a number", defined(labelled), CONTAINERS
    for call in (lambda: jit(labelled)(X), lambda: vjp(labelled, X), lambda: jvp(labelled, (X,), (X,))):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            call()
        assert str(caught.value).splitlines() == list(lines)


# ---- cotangents and tangents -----------------------------------------------------------------------------------------


def test_cotangent_of_another_shape_or_dtype() -> None:
    _, pullback = vjp(square, X)
    remedy = "  give it the shape and dtype of the output of square"
    with raises(errors.CotangentError, "cotangent is f64[2], but has to be f64[3]", HERE, remedy):
        pullback(np.ones(2))
    in_dtype = "  give it the dtype of the output of square, by .astype(np.float64)"
    for given, name in ((np.ones(3, np.float32), "f32"), (np.ones(3, bool), "bool")):
        with raises(errors.CotangentError, f"cotangent is {name}[3], but has to be f64[3]", HERE, in_dtype):
            pullback(given)
    with raises(errors.CotangentError, "cotangent is f64[], but has to be f64[3]", HERE, remedy):
        pullback(1.0)
    _, pull_total = vjp(total, X)
    with raises(
        errors.CotangentError,
        "cotangent is c128[], but has to be f64[]",
        HERE,
        "  give it the shape and dtype of the output of total",
    ):
        pull_total(1j)


def test_cotangent_of_another_structure() -> None:
    _, pullback = vjp(both, 1.0)
    with raises(
        errors.CotangentError,
        "the structure of cotangent is {'value': *}, that of the output of both is {'value': *, 'square': *}",
        HERE,
        "  give both the same containers",
    ):
        pullback({"value": 1.0})


@pytest.mark.parametrize(
    ("given", "found", "remedy"),
    [
        ([1.0, 0.0, 0.0], "[*, *, *]", "a list is a tree of numbers: give an array, np.array(cotangent)"),
        ((1.0, 0.0), "(*, *)", "a tuple is a tree of numbers: give an array, np.array(cotangent)"),
        (None, "None", "give both the same containers: a list is a tree of numbers, None one without any"),
    ],
)
def test_a_list_or_nothing_in_the_place_of_a_cotangent(given: Any, found: str, remedy: str) -> None:
    what = f"the structure of cotangent is {found}, that of the output of square is *"
    with raises(errors.CotangentError, what, HERE, f"  {remedy}"):
        vjp(square, X)[1](given)


def test_cotangent_of_an_integer() -> None:
    _, pullback = vjp(mixed, X)
    what = "cotangent[1] belongs to i64[], which has no derivative, and so has to be 0"
    with raises(errors.CotangentError, what, HERE, "  give 0 there"):
        pullback((X, 1))


def test_cotangent_that_is_no_array() -> None:
    _, pullback = vjp(square, X)
    with raises(errors.ArgumentTypeError, "cotangent is of type str, not an array or a number", HERE, CONTAINERS):
        pullback("one")


def test_tangents_unlike_their_primals_are_refused_by_path() -> None:
    remedy = "  give it the shape and dtype of the primals"
    with raises(errors.TangentError, "tangents[0] is f64[2], but has to be f64[3]", HERE, remedy):
        jvp(total, (X,), (np.ones(2),))
    remedy = "  give it the dtype of the primals, by .astype(np.float64)"
    with raises(errors.TangentError, "tangents[0]['a'][1] is f32[], but has to be f64[]", HERE, remedy):
        jvp(lambda t: t["a"][0], ({"a": [1.0, 2.0]},), ({"a": [1.0, np.float32(2.0)]},))
    with raises(
        errors.TangentError,
        "the structure of tangents is (*, *), that of the primals is (*,)",
        HERE,
        "  give both the same containers",
    ):
        jvp(total, (X,), (X, X))
    with raises(errors.ArgumentTypeError, "primals is of type numpy.ndarray, not a tuple", HERE, "  write (primals,)"):
        jvp(total, cast("Any", X), cast("Any", X))
    with raises(errors.ArgumentTypeError, "tangents is of type float, not a tuple", HERE, "  write (tangents,)"):
        jvp(total, (X,), cast("Any", 1.0))


# ---- jit -------------------------------------------------------------------------------------------------------------


def test_unhashable_static_argument() -> None:
    remedy = "  give a tuple for a list, or an object that is hashable; arrays cannot be static"
    run = jit(lambda x, n: x, static_argnums=1)
    with raises(
        errors.StaticArgumentError, "the static argument n is of type list, which is not hashable", HERE, remedy
    ):
        run(1.0, [1])
    with raises(
        errors.StaticArgumentError, "the static argument n is of type dict, which is not hashable", HERE, remedy
    ):
        run(1.0, n={})
    what = "the static argument n is of type numpy.ndarray, which is not hashable"
    with raises(errors.StaticArgumentError, what, HERE, remedy):
        run(1.0, X)


def test_static_arguments_that_are_not_there() -> None:
    with raises(
        errors.StaticArgumentError,
        "static_argnums names argument 3 of total, which takes 1",
        HERE,
        "  correct static_argnums; the first argument is 0",
    ):
        jit(total, static_argnums=3)
    with raises(
        errors.StaticArgumentError,
        "static_argnames names 'n', which is no parameter of total",
        HERE,
        "  it has x",
    ):
        jit(total, static_argnames="n")
    with raises(errors.StaticArgumentError, "static_argnums is 'n'", HERE, "  give an int or a tuple of ints"):
        jit(total, static_argnums="n")
    with raises(errors.StaticArgumentError, "static_argnames is 0", HERE, "  give a string or a tuple of strings"):
        jit(total, static_argnames=0)  # type: ignore[arg-type]


# ---- inside the traced function --------------------------------------------------------------------------------------


def test_operands_of_other_shapes_are_refused_at_their_line() -> None:
    def mismatched(x: Any) -> Any:
        return np.sum(x + np.ones(2))

    with pytest.raises(errors.ShapeError) as caught:
        grad(mismatched)(X)
    line = mismatched.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines()[:2] == [
        "operands could not be broadcast together with shapes (3,) (2,)",
        f"  at test_errors.py:{line} in mismatched:  return np.sum(x + np.ones(2))",
    ]


def test_function_without_a_rule() -> None:
    def unruled(x: Any) -> Any:
        return np.sum(np.busday_count(x, x))

    with pytest.raises(errors.UnsupportedFunctionError) as caught:
        grad(unruled)(X)
    line = unruled.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines() == [
        "numpy.busday_count has no rule for traced values",
        f"  at test_errors.py:{line} in unruled:  return np.sum(np.busday_count(x, x))",
        "  compose it from functions that have one, or give it a rule: fnad.register_rule(numpy.busday_count, rule)",
    ]


NO_RULE = {
    "": lambda x: np.ldexp.reduce(x),  # a new object at each look
    ", or give it a rule: fnad.register_rule(scipy.special.nrdtrimn, rule)": lambda x: scipy.special.nrdtrimn(x, x, x),
}


@pytest.mark.parametrize("remedy", NO_RULE)
def test_a_function_without_a_rule_that_stays_the_same_object_can_be_given_one(remedy: str) -> None:
    with pytest.raises(errors.UnsupportedFunctionError) as caught:
        jit(lambda x: NO_RULE[remedy](x))(X)
    assert str(caught.value).endswith(f"compose it from functions that have one{remedy}")


def test_a_ufunc_of_no_module() -> None:
    with pytest.raises(errors.UnsupportedFunctionError) as caught:
        jit(lambda x: np.frompyfunc(abs, 1, 1)(x))(X)
    assert str(caught.value).startswith("numpy.frompyfunc(abs, ...) returns an array of objects")


MEMORY = (
    "a traced value has no memory while tracing: return it from the traced function, and ask the result; its shape, "
    "dtype, size and ndim are known"
)
DTYPES = "check the dtypes, or convert with astype; given "
MISUSES: dict[str, tuple[Any, Any, type[Exception], type[Exception], str, str]] = {
    "negative": (operator.neg, FLAGS, errors.DtypeError, TypeError, "negative, the `-` operator", DTYPES + "bool[2]"),
    "subtract": (lambda b: b - b, FLAGS, errors.DtypeError, TypeError, "boolean subtract", DTYPES + "bool[2]"),
    "floor": (np.floor, 1j, errors.DtypeError, TypeError, "ufunc 'floor' not supported", DTYPES + "c128[]"),
    "shift": (lambda n: n << 1.0, K, errors.DtypeError, TypeError, "ufunc 'left_shift'", DTYPES + "i64[3]"),
    "u8": (
        lambda n: n + 300,
        np.uint8(1),
        errors.IntegerRangeError,
        OverflowError,
        "Python integer 300 out of bounds for uint8",
        "convert the array to a wider dtype, or give a number that fits u8",
    ),
    "astype": (lambda v: v.astype("x"), X, errors.DtypeError, TypeError, "data type 'x'", "complex64, complex128"),
    "memory": (memoryview, X, errors.TracerEscapeError, TypeError, "memoryview: a bytes-like object", MEMORY),
    "operand": (
        lambda v: v + "a",
        X,
        errors.ArgumentTypeError,
        TypeError,
        "unsupported operand type(s) for +: a traced value and 'str'",
        "operators take traced values with arrays, numbers and lists of these",
    ),
    "length": (
        len,
        1.0,
        errors.ArgumentTypeError,
        TypeError,
        "object of type a traced value has no len()",
        "np.atleast_1d makes an array of one element of it",
    ),
    "tobytes": (
        lambda v: v.tobytes(),
        X,
        errors.UnsupportedFunctionError,
        NotImplementedError,
        "numpy.ndarray.tobytes",
        MEMORY,
    ),
    "strides": (
        lambda v: v.strides,
        X,
        errors.UnsupportedFunctionError,
        NotImplementedError,
        "numpy.ndarray.strides",
        MEMORY,
    ),
    "flags": (
        lambda v: v.flags,
        X,
        errors.UnsupportedFunctionError,
        NotImplementedError,
        "numpy.ndarray.flags",
        MEMORY,
    ),
    "ptp": (
        lambda v: v.ptp(),
        X,
        errors.MissingAttributeError,
        AttributeError,
        "a traced value has no 'ptp'",
        "np.ptp(x)",
    ),
    "foo": (
        lambda v: v.foo,
        X,
        errors.MissingAttributeError,
        AttributeError,
        "a traced value has no 'foo'",
        "it has the attributes and methods of numpy.ndarray",
    ),
    "shapes": (
        lambda v: v + np.ones(2),
        X,
        errors.ShapeError,
        ValueError,
        "operands could not be broadcast",
        "check the shapes; given f64[3] and f64[2]",
    ),
    "axis": (
        lambda v: np.sum(v, axis=2),
        X,
        errors.AxisError,
        IndexError,
        "axis 2 is out of bounds",
        "check the axes: they are counted from 0, or from the last one as -1; given f64[3]",
    ),
    "index": (
        lambda v: v[7],
        X,
        errors.OutOfRangeError,
        IndexError,
        "index 7 is out of bounds",
        "check the index against the shape; given f64[3]",
    ),
    "mask": (
        lambda v: v[v[:2] > 0],
        X,
        errors.OutOfRangeError,
        IndexError,
        "boolean index did not match",
        "give a mask of the shape of the array, or of its first axes",
    ),
    "step": (lambda v: v[::0], X, errors.ShapeError, ValueError, "slice step cannot", "give -1 to go backwards"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_what_numpy_refuses_too(name: str) -> None:
    function, value, kind, numpys, what, remedy = MISUSES[name]
    with pytest.raises(kind) as caught:
        jit(lambda x: function(x))(value)
    assert isinstance(caught.value, numpys)
    lines = str(caught.value).splitlines()
    assert what in lines[0]
    assert lines[1].startswith("  at test_errors.py:")
    assert lines[-1].endswith(remedy)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_index_out_of_range_when_run(executor: Any) -> None:
    with fnad.config.override(executor=executor), pytest.raises(errors.OutOfRangeError) as caught:
        jit(lambda x, i: x[i])(X, np.array([1, 9]))
    first, place, last = str(caught.value).splitlines()
    assert first == "index 9 is out of bounds for axis 0 with size 3"
    assert place.startswith("  at test_errors.py:")
    assert last.endswith("keep it in range with np.clip(i, 0, n - 1)")


def test_attributes_that_are_asked_for() -> None:
    assert jit(lambda x: x * (2.0 if hasattr(x, "tobytes") or hasattr(x, "foo") else 1.0))(1.0) == 1.0


def test_asked_for_its_number_after_its_trace() -> None:
    kept: list[Any] = []
    grad(lambda x: (kept.append(x), x)[1])(np.float64(1.0))
    for ask in (float, int, bool, hash, np.asarray, lambda x: x.item()):
        with pytest.raises(errors.UsedAfterTraceError):
            ask(kept[0])


# ---- what is no function, and methods --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("grad", lambda: grad(cast("Any", 3))),
        ("value_and_grad", lambda: value_and_grad(cast("Any", 3))),
        ("jit", lambda: jit(cast("Any", 3))),
        ("vjp", lambda: vjp(cast("Any", 3), X)),
        ("jvp", lambda: jvp(cast("Any", 3), (X,), (X,))),
        ("explain", lambda: fnad.explain(cast("Any", 3), X)),
    ],
)
def test_what_is_no_function(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(errors.ArgumentTypeError) as caught:
        call()
    first, place, last = str(caught.value).splitlines()
    assert first == f"the first argument of {name} has to be a function, not int"
    assert place.startswith("  at test_errors.py:")
    assert last == f"  give the function itself, not its result: {name}(f, ...)"


def test_number_of_cotangents() -> None:
    _, pullback = vjp(square, X)
    remedy = "  give one pytree like the output of square; several arrays go into one tuple"
    with raises(errors.CotangentError, "the pullback was given 2 cotangents, and takes one", HERE, remedy):
        pullback(X, X)
    with raises(errors.CotangentError, "the pullback was given 0 cotangents, and takes one", HERE, remedy):
        pullback()


class Doubled:
    @grad
    def derivative(self, x: Any) -> Any:
        return 2.0 * x


def test_an_unbound_method_is_refused_with_remedies() -> None:
    what = f"self is of type {__name__}.Doubled, not an array or a number"
    remedy = (
        "  transform the bound method, or a function of the other arguments inside the method; or register the class "
        "with optree"
    )
    with raises(errors.ArgumentTypeError, what, HERE, remedy):
        Doubled().derivative(1.0)


class Slotted:
    __slots__ = ("scale",)

    @jit
    def scaled(self, x: Any) -> Any:
        return self.scale * x


def test_methods_of_objects_without_weak_references() -> None:
    what = f"{__name__}.Slotted, whose method scaled is compiled, has no weak references"
    remedy = "  add '__weakref__' to its __slots__, or compile the bound method, fnad.jit(x.method)"
    with raises(errors.ArgumentTypeError, what, HERE, remedy):
        Slotted().scaled(1.0)


# ---- config ----------------------------------------------------------------------------------------------------------


def test_wrong_settings_are_refused_with_the_right_ones() -> None:
    with raises(errors.SettingError, "executor is 'gpu'", "  set it to 'auto' or 'interpreter' or 'compiled'"):
        fnad.config.set_default(executor="gpu")
    settings = (
        "  the settings are: executor, device, matmul_precision, scatter_add, strict_mutation, disable_jit,"
        " traceback_filtering, debug_nans, threads, cache_entries, cache_bytes, disk_cache, disk_cache_bytes"
    )
    with raises(errors.SettingError, "there is no setting 'speed'", settings):
        fnad.config.set_default(speed=1)
    with raises(errors.SettingError, "there is no setting 'speed'", settings), fnad.config.override(speed=1):
        pass
    precisions = "  set it to 'float32' or 'tensorfloat32'"
    with raises(errors.SettingError, "matmul_precision is 'tf32'", precisions):
        fnad.config.set_default(matmul_precision="tf32")
    with raises(errors.SettingError, "cache_bytes is -1", "  set it to an integer that is not negative"):
        fnad.config.set_default(cache_bytes=-1)
    with raises(errors.SettingError, "cache_entries is 1.5", "  set it to an integer that is not negative"):
        fnad.config.set_default(cache_entries=1.5)
    with raises(errors.SettingError, "disk_cache is None", "  set it to True, False or a directory"):
        fnad.config.set_default(disk_cache=None)
    assert fnad.config.current().executor == "auto"


def test_the_structure_of_a_result_is_printed_for_errors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes longer than a line of small code."""
    printed: list[Any] = []
    monkeypatch.setattr(grad_module, "structure_text", lambda structure: printed.append(structure))
    assert value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)
    assert printed == []


# ---- in the code of installed packages -------------------------------------------------------------------------------


def test_an_error_in_an_installed_package_names_the_users_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    (packages / "another_package").mkdir(parents=True)
    code = (
        "import numpy as np",
        "def product(x):",
        "    return times(x)",
        "def times(x):",
        "    return np.ones((2, 4)) @ x",
    )
    (packages / "another_package" / "__init__.py").write_text("\n".join(code))
    monkeypatch.syspath_prepend(packages)
    package = importlib.import_module("another_package")

    def loss(x: Any) -> Any:
        return np.sum(package.product(x))

    line = loss.__code__.co_firstlineno + 1
    for transform in (grad, jit):
        with pytest.raises(errors.ShapeError) as caught:
            transform(loss)(X)
        assert str(caught.value).splitlines()[1:3] == [
            "  at __init__.py:5 in times:  return np.ones((2, 4)) @ x",
            f"  called at test_errors.py:{line} in loss:  return np.sum(package.product(x))",
        ]


@pytest.mark.parametrize("function", [lambda x: x.sum(axis=1), lambda x: x @ np.ones((2, 2))], ids=["axis", "shape"])
def test_errors_can_be_pickled(function: Any) -> None:
    with pytest.raises(fnad.errors.ShapeError) as raised:
        fnad.grad(function)(np.ones(3))
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
