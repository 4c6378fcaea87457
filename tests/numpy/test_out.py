"""out= of every function of NumPy's that has it, by name and by position: filled, cast, returned, and shared."""

import inspect
import warnings

import numpy as np
import pytest

from fnad.errors import FnadError
from tests.numpy.against_numpy import check, check_error, sample
from tests.numpy.coverage import MODULES, public, rule_of
from tests.together import in_groups

X, Q, V, K = sample((3, 4), "f64"), sample((4, 4), "f64", 1), sample(4, "f64", 2), np.array([2, 0, 1])
GIVEN = (
    lambda f, x, **out: f(x, **out),
    lambda f, x, **out: f(x, V, **out),
    lambda f, x, **out: f(x, K, 1, **out),
    lambda f, x, **out: f(x, 0.3, **out),
    lambda f, x, **out: f(x, 0.2, 0.7, **out),
    lambda f, x, **out: f([x, x], **out),
    lambda f, x, **out: f(K % 2, [x[0, :3], x[1, :3]], **out),
    lambda f, x, **out: f([True, False, True], x, 0, **out),
    lambda f, x, **out: f([x, Q], **out),
    lambda f, x, **out: f("ij->j", x, **out),
    lambda f, x, **out: f(x, axis=0, **out),
)
"""Calls, of which the first that NumPy can do is used."""

NUMPYS_OWN = {"hfft", "ihfft", "ifft2", "irfft2"}
"""Functions that have the parameter, and in which NumPy leaves it as it is."""


def takes_out(function):
    """Say whether a function has the parameter; some of an older NumPy do not tell."""
    try:
        return "out" in inspect.signature(function).parameters
    except ValueError:
        return False


FUNCTIONS = [
    (module, name)
    for module in ("numpy", "numpy.linalg", "numpy.fft")
    for name in public(MODULES[module])
    if rule_of(module, name) is not None
    and name not in NUMPYS_OWN
    and not isinstance(getattr(MODULES[module], name), np.ufunc)
    and (takes_out(getattr(MODULES[module], name)) or name == "einsum")
]


def call_of(function):
    """Return the call that NumPy can do, and its result."""
    for given in GIVEN:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                found = np.asarray(given(function, X.copy()))
                given(function, X.copy(), out=np.zeros_like(found))
        except Exception:  # noqa: BLE001  # NumPy does not take these
            continue
        return given, found
    raise AssertionError(f"no call of {function} is known")


@in_groups(("module", "name"), FUNCTIONS)
def test_traced_out_receives_what_numpy_writes(module, name):
    function = getattr(MODULES[module], name)
    given, found = call_of(function)

    def into(x):
        y = np.zeros_like(x, shape=found.shape, dtype=found.dtype)
        view = y[...]
        result = given(getattr(MODULES[module], name), x, out=y)
        return result is y, np.array(result), view * 1

    check(lambda x: into(x)[1:], X)
    is_given = []
    check(lambda x: is_given.append(into(x)[0]), X)
    assert is_given == [True, True]


@pytest.mark.parametrize("method", ["sum", "mean", "std", "cumsum", "max", "argmax", "prod", "all", "trace", "round"])
def test_out_of_methods(method):
    shape = np.shape(getattr(Q, method)())

    def into(x):
        y = np.zeros_like(x, shape=shape, dtype=getattr(Q, method)().dtype)
        return getattr(x, method)(out=y) is y and y * 1

    check(into, Q)


METHODS = {
    "clip": lambda x, y: x.clip(-0.5, 0.5, out=y),
    "clip by position": lambda x, y: x.clip(-0.5, 0.5, y),
    "clip below": lambda x, y: x.clip(min=0.1, out=y),
    "compress": lambda x, y: x.compress([True] * len(x), 0, y),
    "take": lambda x, y: x.take([*range(len(x))], 0, y),
    "dot": lambda x, y: x.dot(np.eye(x.shape[1]) * 2, y),
}


@pytest.mark.parametrize("name", METHODS)
def test_out_of_methods_with_arguments(name):
    def into(x):
        y = np.zeros_like(x)
        return METHODS[name](x, y) is y and y * 1

    check(into, X)


def test_out_by_position():
    def f(x):
        y, z, w = np.zeros_like(x), np.zeros_like(x[0]), np.zeros_like(x, shape=())
        return np.exp(x, y), np.sum(x, 0, None, z), np.sum(x, out=w), np.clip(x, 0.2, 0.5, y), z * 1, w * 1

    check(f, X)


def test_out_of_a_wrong_shape_or_dtype_is_refused_as_by_numpy():
    check_error(lambda x: np.sum(x, axis=0, out=np.zeros_like(x)), X)
    check_error(lambda x: np.add.reduce(x, out=np.zeros_like(x)), X)
    check_error(lambda x: np.concatenate([x], out=np.zeros_like(x, shape=(2, 3, 4))), X)
    check(lambda x: (np.clip(x, 0, 1, out=np.zeros_like(x, shape=(2, 3, 4))), np.exp(x[0], out=np.zeros_like(x))), X)
    check_error(lambda x: np.exp(x, out=np.zeros_like(x, int)), X)
    check_error(lambda x: np.multiply(x, 1j, out=np.zeros_like(x)), X)
    buffer = np.zeros((3, 4))
    with pytest.raises(FnadError):
        check(lambda x: np.exp(x, out=buffer), X)


def test_arrays_that_are_sequences():
    check(
        lambda x: (np.concatenate(x), np.stack(x, 1), np.vstack(x), np.hstack(x), np.column_stack(x), np.dstack(x)), X
    )
    check(lambda x: (np.concatenate(x[:, None], axis=1), np.stack([x, x])[0]), X)
    check_error(lambda x: np.concatenate(x[0, 0]), X)
