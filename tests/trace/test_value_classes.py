"""The class of a traced value and its members, as user code reads them: those of the value that it stands for."""

import builtins
import functools
import importlib
import itertools
import math
import numbers
import threading
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import SupportsFloat, SupportsIndex

import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad.errors import ArgumentTypeError, MissingAttributeError, TracerEscapeError, UnsupportedFunctionError
from fnad.trace.value_classes import KINDS
from tests.numpy.against_numpy import traced

VALUES = [
    *(0.5, 3, True, 0.5 + 1j),
    *(np.float64(0.5), np.float32(0.5), np.int64(3), np.uint8(3), np.bool_(True), np.complex64(0.5)),
    *(np.array(0.5), np.array([0.5, 1.5]), np.array([[1, 2], [3, 4]])),
]
CLASSES = [Hashable, Iterable, Sized, Container, Collection, Iterator, Sequence, Mapping, SupportsFloat, SupportsIndex]
CLASSES += [numbers.Number, numbers.Real, numbers.Integral, np.generic, np.floating, np.ndarray]
CLASSES += [float, int, bool, complex]
NAMES = {
    *("__len__", "__iter__", "__getitem__", "__setitem__", "__contains__", "__index__", "__float__", "__int__"),
    *("__matmul__", "__iadd__", "__and__", "__invert__", "__round__", "__add__", "__lt__", "__bool__", "__hash__"),
    *("shape", "dtype", "ndim", "size", "T", "real", "imag", "conjugate", "conj", "sum", "mean", "astype"),
    *("__array__", "__array_ufunc__", "__array_function__", "__array_priority__", "__complex__"),
    *("__array_interface__", "__array_struct__", "__array_wrap__", "__array_finalize__", "__dlpack__"),
    *("__call__", "__dict__", "__next__", "__enter__", "__mro__", "__name__"),
    *("__or__", "strides", "data", "ctypes", "tobytes"),
    *("__trunc__", "is_integer", "as_integer_ratio", "hex", "bit_length"),
    *("item", "tolist", "copy", "reshape", "dot", "sort", "fill", "flat", "nonexistent"),
}
QUESTIONS = {
    "has": lambda x: [hasattr(x, name) for name in sorted(NAMES)],
    "is an instance": lambda x: [isinstance(x, kind) for kind in CLASSES],
    "is equal to a class": lambda x: [(type(x) == kind, kind == type(x), type(x) != kind) for kind in KINDS],  # noqa: E721
    "is in": lambda x: [type(x) in (float, np.float64), type(x) in [np.ndarray, int], type(x) == type(x + x)],  # noqa: E721
    "is named": lambda x: [type(x).__name__, type(x).__module__, type(x).__qualname__, x.__class__, repr(type(x))],
    "has the bases of": lambda x: [type(x).mro(), type(x).__mro__, type(x).__base__, type(x).__bases__],
    "is of a class with bases": lambda x: [kind in type(x).__mro__ for kind in (float, np.floating, np.ndarray)],
    "is iterable": np.iterable,
    "is a scalar": np.isscalar,
    "is itself as an array": lambda x: [np.asarray(x) is x, np.asanyarray(x) is x, np.array(x) is x],
    "is an array": lambda x: (hasattr(x, "__array__"), getattr(x, "__array__", None) is None),
    "has priority": lambda x: getattr(x, "__array_priority__", None),
}


def answer(question, x):
    try:
        return question(x)
    except (TypeError, ValueError):
        return "refused"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}{np.shape(value)}")
def test_traced_values_answer_questions_of_kind_as_their_values(value):
    found = {}
    traced(lambda x: [x, found.update({name: answer(ask, x) for name, ask in QUESTIONS.items()})][:1], value)
    assert found == {name: answer(ask, value) for name, ask in QUESTIONS.items()}


def written(x):
    x[...] = 1


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}{np.shape(value)}")
def test_what_python_does_with_it(value):
    attempts = {
        "len": len,
        "iter": lambda x: list(iter(x)) and "elements",
        "unpack": lambda x: [*x] and "elements",
        "for": lambda x: sum(1 for _ in x),
        "item": lambda x: x[()] is not None,
        "matmul": lambda x: x @ x is not None,
        "write": written,
    }
    found = {}
    traced(lambda x: [x, found.update({name: answer(do, x) for name, do in attempts.items()})][:1], value)
    assert found == {name: answer(do, np.copy(value) if np.ndim(value) else value) for name, do in attempts.items()}


@pytest.mark.parametrize("test", ['hasattr(x, "__len__")', 'hasattr(x, "__iter__")', "isinstance(x, Iterable)"])
def test_the_branch_of_a_scalar(test):
    f = eval(f"lambda x: 100 * x if {test} else x**2", {"Iterable": Iterable})
    assert fnad.grad(f)(3.0) == fnad.grad(f)(np.float64(3.0)) == fnad.jit(fnad.grad(f))(3.0) == 6.0
    assert fnad.grad(lambda x: np.sum(f(x)))(np.ones(2)).tolist() == [100.0, 100.0]


def test_a_class_that_is_called():
    assert fnad.grad(lambda x: x * type(x)(2) + type(x)(3.5))(1.0) == 2.0
    assert fnad.jit(lambda x: np.add(x, type(x)(1)))(np.float32(1)).dtype == np.float32


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_a_class_that_is_called_with_a_traced_value(kind):
    """The class of one value makes another one of its kind, as the class itself does outside."""
    for f in (lambda x: type(x)(3 * x), lambda x: x.__class__(3 * x), lambda x: sum(map(type(x), [x, 2 * x]))):
        value, slope = fnad.jit(fnad.value_and_grad(f))(kind(0.5))
        assert (value, slope) == (1.5, 3.0)
        assert value.dtype == np.dtype(kind)
    assert fnad.grad(lambda x: np.sum(x * type(x[0])(x[1] ** 2)))(np.array([2.0, 3.0])).tolist() == [9.0, 39.0]
    with pytest.raises(ArgumentTypeError, match="interpreted as an integer"):
        fnad.grad(lambda x: type(x)(2 * x).sum())(np.ones(2))


def test_numpy_asks_a_python_number_for_an_array():
    with pytest.raises(TracerEscapeError, match="asked for an ordinary array"):
        fnad.grad(lambda x: x * scipy.linalg.blas.dasum(x))(1.5)


# ---- what is not there -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["strides", "tobytes", "ctypes"])
def test_what_numpy_has_and_a_traced_value_lacks_is_not_answered_by_no(name):
    for value in (np.ones(2), np.array(1.0)):
        assert fnad.grad(lambda x: np.sum(x * hasattr(x, name)))(value).all()
        for ask in (lambda x: getattr(x, name), lambda x: getattr(x, name, 2.0)):
            with pytest.raises(UnsupportedFunctionError, match=rf"numpy.ndarray.{name} has no rule"):
                traced(ask, value)


@pytest.mark.parametrize(("name", "value"), [("hex", 1.0), ("as_integer_ratio", np.float64(1)), ("bit_length", 3)])
def test_what_asks_for_the_number(name, value):
    assert traced(lambda x: x + hasattr(x, name), value)[0] == value + 1
    with pytest.raises(TracerEscapeError, match=f"asked for its {name}"):
        traced(lambda x: getattr(x, name)(), value)


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_the_integers_around_a_number(kind):
    f = lambda x: math.floor(x) * x + math.ceil(x)  # noqa: E731
    assert fnad.grad(f)(kind(2.5)) == fnad.jit(fnad.grad(f))(kind(2.5)) == 2.0
    if hasattr(kind, "__trunc__"):
        assert fnad.grad(lambda x: math.trunc(x) * x)(kind(2.5)) == 2.0
    else:
        with pytest.raises(TypeError, match="__trunc__"):
            fnad.grad(lambda x: math.trunc(x) * x)(kind(2.5))


def test_whether_a_number_is_an_integer():
    def f(x):
        return x**2 if x.is_integer() else -x

    for kind in (float, np.float32, np.float64):
        jitted = fnad.jit(fnad.value_and_grad(f))
        assert [tuple(map(float, jitted(kind(x)))) for x in (2.0, 0.5, np.inf)] == [(4, 4), (-0.5, -1), (-np.inf, -1)]
    with pytest.raises(TracerEscapeError, match="truth value"):
        fnad.fori_loop(0, 2, lambda i, x: f(x), 2.0)


def test_a_python_number_has_no_methods_of_arrays():
    with pytest.raises(MissingAttributeError, match=r"has no 'sum'\n.*\n  write np.sum\(x\)"):
        fnad.grad(lambda x: x.sum())(1.0)
    with pytest.raises(ArgumentTypeError, match=r"a traced value is not subscriptable"):
        fnad.grad(lambda x: x[0])(1.0)


# ---- Python's numbers --------------------------------------------------------------------------------------------

A = np.ones(2, np.float32)
ON_NUMBERS = [
    *(lambda x: (x != 0) + (x != 5), lambda x: (x != 0) - (x != 5), lambda x: (x != 0) * 1.5, lambda x: -(x != 0)),
    *(lambda x: ~(x != 0), lambda x: abs(x != 0), lambda x: +(x != 0), lambda x: (x != 0) / (x != 5)),
    *(lambda x: (x != 0) & (x != 5), lambda x: (x != 0) | 2, lambda x: (x != 0) ^ (x != 5), lambda x: (x != 0) ** 2),
    *(lambda x: sum([x != 0, x != 5]), lambda x: divmod(x != 0, 2), lambda x: (x != 0) << 3, lambda x: A * (x != 0)),
    *(lambda x: np.int8(3) * (x != 0), lambda x: np.add(x != 0, x != 5), lambda x: (x != 0) // True),
    *(lambda x: x + x, lambda x: True + (x != 0), lambda x: (x != 0).real, lambda x: x - True),
    *(lambda x: (x != 0).conjugate(), lambda x: np.True_ + (x != 0), lambda x: x < 1, lambda x: (x != 0) % 2),
    *(lambda x: A * x.real, lambda x: A * x.imag, lambda x: A * x.conjugate(), lambda x: A * np.real(x)),
    *(lambda x: A * np.asarray(x), lambda x: A * np.copy(x), lambda x: A * np.reshape(x, ())),
    *(
        lambda x: A * np.squeeze(x),
        lambda x: A * np.transpose(x),
        lambda x: A * np.array(x),
        lambda x: A * np.atleast_1d(x),
    ),
    lambda x: A * abs(x),
]


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # as Python 3.12 says itself
@pytest.mark.parametrize("value", [0.5, 1, True, 0.5j])
def test_python_numbers_compute_as_pythons(value):
    for number, f in enumerate(ON_NUMBERS):
        expected = answer(f, value)
        found = answer(lambda x: traced(lambda x: f(x), x)[0], value)  # noqa: B023
        if isinstance(expected, str):
            assert found == expected, number
        else:
            assert np.asarray(found).dtype == np.asarray(expected).dtype, number
            np.testing.assert_array_equal(found, expected, err_msg=str(number))


def test_comparisons_of_arrays_are_numpys():
    f = lambda x: (x > 0) + (x < 5)  # noqa: E731
    for value in (np.float64(1), np.array(1.0), np.ones(2)):
        assert np.asarray(fnad.jit(f)(value)).dtype == bool
    assert fnad.jit(f)(1.0) == 2
    with pytest.raises(TypeError):
        fnad.jit(lambda x: -(x > 0))(np.ones(2))


def test_a_power_with_a_modulus():
    for f in (lambda n: pow(n, 2, 3), lambda n: pow(2, n, 3), lambda n: pow(2, 2, n)):
        for value in (2, np.int64(2)):
            with pytest.raises((UnsupportedFunctionError, ArgumentTypeError), match=r"(?s)pow.*test_value_classes.py"):
                traced(f, value)


def test_an_element_in_an_array():
    f = lambda x: np.sum(x) if 2.0 in x else 0.0 * np.sum(x)  # noqa: E731
    fast = fnad.jit(f)
    for value in ([1.0, 2.0], [1.0, 3.0], [2.0, 2.0]):
        assert fast(np.array(value)) == f(np.array(value))
    assert fnad.jit(f)(np.eye(2) * 2) == 4.0


# ---- identity ----------------------------------------------------------------------------------------------------


def same_as_float(x):
    return x**2 if type(x) is float else 100 * x


def same_as_number(x):
    return x**2 if np.float64 is type(x) else 100 * x


def not_an_array(x):
    return np.sum(100 * x) if type(x) is not np.ndarray else np.sum(x**2)


def is_float(x):
    return type(x) is float


def asked_elsewhere(x):
    return x**2 if is_float(x) else 100 * x


def a_subclass(x):
    return x**2 if issubclass(type(x), (float, np.ndarray)) else 100 * x


def of_another(x, y=1.0):
    return x**2 if type(x) is type(y) else 100 * x


def of_no_number(x):
    return 100 * x if type(x) is str or type(x) is not type(x) else x**2


def in_a_set(x):
    return x**2 if type(x) in {float, np.ndarray} else 100 * x


def by_builtins(x, type=None):  # noqa: A002
    return builtins.pow(builtins.max(x, -9.0), 2) if builtins.type(x) in {float, np.ndarray} else 100 * x


def under_another_name(x):
    kind = type
    return x**2 if kind(x) is float or kind(x) is np.ndarray else 100 * x


def by_a_key(x):
    ((kind, _),) = itertools.groupby([x], key=type)
    return x**2 if kind is float or kind is np.ndarray else 100 * x


def in_a_set_of_several(x):
    return x**2 if set(map(type, [x])) <= {float, np.ndarray} else 100 * x


def from_a_table(x):
    return {float: lambda: x**2, np.ndarray: lambda: x**2}.get(type(x), lambda: 100 * x)()


def kept(x):
    kind = type(x)
    return x**2 if kind is float or kind is np.ndarray else 100 * x


def nothing_else(x):
    return x if type(x) is float else 7.0


def two_away(x):
    return asked_elsewhere(x)


def within(x):
    def inner(y):
        return y**2 if type(y) is float else 100 * y

    return inner(x)


def comprehended(x):
    return sum([y**2 if type(y) is float else 100 * y for y in (x,)])


def wrapped(f):
    @functools.wraps(f)
    def run(*args):
        return f(*args)

    return run


decorated = wrapped(is_float)


def by_a_decorated_one(x):
    return x**2 if decorated(x) else 100 * x


BY_IDENTITY = [same_as_float, same_as_number, not_an_array, asked_elsewhere, a_subclass, of_another, of_no_number]
BY_IDENTITY += [
    by_builtins,
    under_another_name,
    by_a_key,
    in_a_set,
    in_a_set_of_several,
    from_a_table,
    kept,
    two_away,
    within,
    comprehended,
    by_a_decorated_one,
]


class Layer:
    def __call__(self, x):
        return self.one(x)

    def one(self, x):
        return x**2 if self.is_array(x) else 100 * x

    @staticmethod
    def is_array(x):
        return type(x) is np.ndarray


LAYER = Layer()


def by_a_method(x):
    return LAYER.one(x)


BY_IDENTITY += [by_a_method, Layer(), Layer().one, lambda x: Layer()(x)]


@pytest.mark.parametrize("f", BY_IDENTITY)
def test_classes_asked_by_identity(f):
    for value in (3.0, np.float64(3.0), np.float32(3.0), np.array(3.0), np.array([3.0])):
        expected = 6.0 if np.sum(f(value)) == 9.0 else 100.0
        assert np.sum(fnad.grad(f)(value)) == expected
        assert np.sum(fnad.jit(fnad.grad(f))(value)) == expected


def test_a_class_that_is_all_that_is_asked_for():
    assert fnad.grad(nothing_else)(1.0) == 1.0
    assert fnad.grad(lambda x: nothing_else(x) + 0.0)(np.float64(1.0)) == 0.0


class Judge:
    """Methods that do nothing else with what they are given."""

    def verdict(self, x):
        return 2.0 if type(x) is float else 1.0

    @staticmethod
    def by_no_object(x):
        return 2.0 if type(x) is float else 1.0

    @property
    def by_property(self):
        return lambda x: 2.0 if type(x) is float else 1.0


def local_judge():
    class Local:
        def verdict(self, x):
            return 2.0 if type(x) is float else 1.0

    return Local()


CASE = [SimpleNamespace(judges={"own": Judge(), "local": local_judge()})]
TABLE = {"a": [lambda x: 2.0 if type(x) is float else 1.0]}
HIDDEN = {
    "argument": lambda x, box: x * box["judge"].verdict(x),
    "argument's static method": lambda x, box: x * box["judge"].by_no_object(x),
    "attribute of an argument": lambda x, box: x * box["judges"][0].judge.verdict(x),
    "of a class in a function": lambda x, box: x * box["local"].verdict(x),
    "global": lambda x, box: x * CASE[0].judges["own"].verdict(x),
    "global of a class in a function": lambda x, box: x * CASE[0].judges["local"].verdict(x),
    "property": lambda x, box: x * CASE[0].judges["own"].by_property(x),
    "table": lambda x, box: x * TABLE["a"][0](x),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_classes_asked_by_identity_by_methods_that_no_name_leads_to(name):
    f = HIDDEN[name]
    box = {"judge": Judge(), "judges": [SimpleNamespace(judge=Judge())], "local": local_judge()}
    for value, slope in ((3.0, 2.0), (np.float64(3.0), 1.0)):
        assert fnad.grad(f)(value, box) == slope
        assert fnad.jit(fnad.grad(lambda x: f(x, box)))(value) == slope


@pytest.mark.parametrize("name", ["global", "global of a class in a function", "table"])
@pytest.mark.parametrize("begins_first", [True, False])
def test_classes_asked_by_identity_while_a_trace_in_another_thread_ends(name, begins_first):
    f, inside, may_end = HIDDEN[name], threading.Event(), threading.Event()

    def other(x):
        inside.set()
        assert may_end.wait(60)
        return f(x, None)

    def around(x):
        future = running or pool.submit(fnad.grad(other), 1.0)
        may_end.set()
        assert future.result() == 2.0
        return f(x, None)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(fnad.grad(other), 1.0) if begins_first else None
        assert inside.wait(60 * begins_first) == begins_first
        assert fnad.grad(around)(1.0) == 2.0


ASKING = "class Later:\n    def later(self, x):\n        return 2.0 if type(x) is float else 1.0\n"


def test_code_without_source_that_asks_for_a_class_is_refused():
    """No hook reaches its `type(x)`, nor that of what it calls."""
    space, in_a_file = {"np": np}, {"scale": is_float}
    exec(f"{ASKING}def scale(x):\n    return Later().later(x)\ndef f(x):\n    return scale(x) * x", space)
    exec("def f(x):\n    return x * 3.0 if scale(x) else x", in_a_file)
    f, scale, box = space["f"], space["scale"], [space["Later"]()]
    for function in (f, lambda x: x * scale(x), lambda x: x * box[0].later(x), lambda x: [f][0](x), in_a_file["f"]):
        for transform in (fnad.grad, fnad.jit):
            with pytest.raises(TracerEscapeError, match="compares the class of a value by type"):
                transform(function)(3.0)
    space["scale"] = lambda x: 3.0
    assert fnad.grad(f)(1.0) == 3.0


def test_classes_asked_by_identity_by_an_argument():
    for layer in (Layer(), lambda x: [Layer()][0].one(x)):
        run = lambda x: [layer][0](x)  # noqa: B023, E731
        assert fnad.grad(run)(3.0) == 100.0
        assert np.sum(fnad.grad(lambda x: np.sum(run(x)))(np.array([3.0]))) == 6.0  # noqa: B023


def test_classes_asked_by_identity_in_functions_made_anew():
    def made():
        asks = lambda x: type(x) is float  # noqa: E731
        return lambda x: x**2 if asks(x) else 100 * x

    kept = [made(), made(), fnad.jit(made()), wrapped(made()), functools.partial(wrapped(made()))]
    for f in (*kept, *kept, made(), wrapped(made())):
        assert fnad.grad(f)(3.0) == 6.0


def test_classes_asked_by_identity_in_an_installed_package(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "installed_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        """
def is_float(x):
    return by_another(x)


def by_another(x):
    return type(x) is float


class Checked:
    def __init__(self, x):
        self.found = type(x) is float

    def is_float(self, x):
        return by_another(x)

    def never_called(self, x):
        return type(x) is str
"""
    )
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    package = importlib.import_module("installed_package")
    checked = package.Checked(1.0)
    by_function = lambda x: x**2 if package.is_float(x) else 100 * x  # noqa: E731
    by_object = lambda x: x**2 if package.Checked(x).found else 100 * x  # noqa: E731
    by_method = lambda x: x**2 if checked.is_float(x) else 100 * x  # noqa: E731

    def by_import(x):
        from installed_package import is_float  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        return x**2 if is_float(x) else 100 * x

    for f in (by_function, by_object, by_method, by_import):
        assert fnad.grad(f)(3.0) == 6.0
