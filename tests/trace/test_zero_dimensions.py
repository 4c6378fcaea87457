"""Arrays without dimensions are arrays, and numbers are numbers, as in NumPy: in arguments, results and between."""

import copy
import warnings

import numpy as np
import pytest

import fnad
from fnad.trace.tracer import FUNCTIONS as FUNCTIONS_OF_TRACER
from fnad.trace.tracer import METHODS as METHODS_OF_TRACER
from tests.numpy.against_numpy import check
from tests.numpy.coverage import MODULES, public, rule_of
from tests.together import in_groups

A, S, P = np.array(0.5), np.float64(0.5), 0.5


def added_in_place(x):
    y = x
    y += 1
    return x * 10


def written(x):
    y = np.array(x)
    z = y
    y[...] = y * 3
    y[()] += x
    return z + x


FUNCTIONS = {
    "added in place": added_in_place,
    "written": written,
    "transposed": lambda x: np.transpose(x),
    "an array of it": lambda x: np.array(x),
    "a sum": lambda x: np.sum(x),
    "a product": lambda x: x * 2,
    "what is handed in": lambda x: x,
    "a view": lambda x: x[...] if isinstance(x, np.ndarray) else x,
    "by pieces": lambda x: np.piecewise(x, [x > 0.3], [np.sin, np.cos]),
    "a constant": lambda x: np.array(2.0),
    "a number": lambda x: np.float64(2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [A, S, P], ids=["array", "scalar", "number"])
def test_kind_of_results(name, x):
    f = FUNCTIONS[name]
    expected = f(copy.deepcopy(x))
    for run in (fnad.jit(f), lambda x: fnad.vjp(f, x)[0], lambda x: fnad.jvp(f, (x,), (1.0,))[0]):
        found = run(copy.deepcopy(x))
        assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
        assert found == expected
    if name not in ("a constant", "a number"):
        value, gradient = fnad.value_and_grad(f)(x)
        assert isinstance(value, np.ndarray) == isinstance(expected, np.ndarray)
        assert gradient == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)
    assert A == 0.5


def test_kinds_are_told_apart():
    run = fnad.jit(added_in_place)
    assert [run(A), run(S), run(P), run(A), run(S)] == [15, 5, 5, 15, 5]
    assert A == 0.5


def test_in_containers_and_nested():
    f = fnad.jit(lambda t: {"a": added_in_place(t["a"]), "s": added_in_place(t["s"])})
    found = f({"a": A, "s": S})
    assert (found["a"], found["s"]) == (15, 5)
    assert fnad.grad(lambda x: fnad.jit(added_in_place)(x) * x)(A) == 20
    assert fnad.grad(lambda x: added_in_place(x) * x)(A) == 30
    assert fnad.jit(lambda x: fnad.value_and_grad(added_in_place)(x)[0])(A) == 15


# ---- every function --------------------------------------------------------------------------------------------------

GIVEN = ((), (1,), (0.25,), (0.25, 0.75), ([0.2, 0.4],), ([0.0, 1.0], [0.0, 2.0]))
"""Arguments that go with a first one: the first of these that NumPy takes is used."""

APART = {"histogramdd", "empty_like", "min_scalar_type", "result_type", "common_type", "take", "polyint"}
"""Functions of samples with dimensions, without values, that return dtypes, and that take floats for integers."""

VALUES_DECIDE = {
    *(
        "arange",
        "argwhere",
        "extract",
        "flatnonzero",
        "tri",
        "tril_indices",
        "trim_zeros",
        "triu_indices",
        "item",
        "tolist",
    ),
    *("bartlett", "blackman", "hamming", "hanning", "kaiser"),
    *("intersect1d", "setdiff1d", "setxor1d", "union1d"),
    *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
"""Functions whose result has a shape, or is a number, that depends on a traced value."""

FUNCTION_NAMES = [
    f"{module}.{name}"
    for module in ("numpy", "numpy.linalg", "numpy.fft")
    for name in public(MODULES[module])
    if rule_of(module, name) is not None and name not in VALUES_DECIDE | APART
]
ATTRIBUTES = {"T", "mT", "real", "imag", "flat", "ndim", "dtype"}
MEMBERS = sorted((FUNCTIONS_OF_TRACER.keys() | METHODS_OF_TRACER.keys() | ATTRIBUTES) - VALUES_DECIDE - APART)


def called(function):
    """Return a call of a function that NumPy can do, with what it takes beside the first argument; None if none."""
    for given in GIVEN:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                found = function(np.array(0.5), *given)
        except Exception:  # noqa: BLE001  # NumPy does not take these
            continue
        return (lambda x, given=given: function(x, *given)) if found is not None else None
    return None


@pytest.mark.parametrize("x", [A, S, P], ids=["array", "scalar", "number"])
@in_groups("name", FUNCTION_NAMES)
def test_functions_of_zero_dimensions_return_as_numpy(name, x):
    check_function(name, x)


def check_function(name, x):
    module, _, function = name.rpartition(".")
    owner = MODULES[module]
    run = called(lambda x, *given: getattr(owner, function)(x, *given))
    if run is not None:
        check(run, x)


@pytest.mark.parametrize("x", [A, S], ids=["array", "scalar"])
@in_groups("name", MEMBERS)
def test_methods_and_attributes_of_zero_dimensions_return_as_numpy(name, x):
    check_member(name, x)


def check_member(name, x):
    def member(x, *given):
        found = getattr(x, name)
        found = found(*given) if callable(found) else found
        return list(found) if isinstance(found, np.flatiter) else found if not isinstance(found, np.dtype) else None

    run = called(member)
    if run is not None and hasattr(x, name):
        check(run, x)


OF_NO_AXIS = [np.sum, np.prod, np.max, np.any, np.add.reduce, np.argmax, np.cumsum, np.cumprod, np.ptp, np.nansum]

CALLS = {
    "indices": lambda x: (x[()], x[...], x[None], x[..., None]),
    "elements": lambda x: (np.array([x, 2.0])[0], np.take(np.arange(3.0), 0) * x),
    "casts": lambda x: (x.astype("f"), x.astype(float), x.astype(float, copy=False), np.astype(x, "f")),
    "copies": lambda x: (x.copy(), np.copy(x), copy.copy(x), copy.deepcopy(x), np.array(x, copy=True), np.asarray(x)),
    "shapes": lambda x: (x.reshape(()), np.reshape(x, ()), x.reshape(1), np.squeeze(x), np.broadcast_to(x, ())),
    "axes": lambda x: (np.moveaxis(x, (), ()), np.expand_dims(x, ()), np.roll(x, 1), np.flip(x), np.transpose(x)),
    "repetitions": lambda x: (np.tile(x, ()), np.repeat(x, 1), np.resize(x, ()), np.full((), x), np.full_like(x, 1)),
    "products": lambda x: (np.dot(x, x), np.inner(x, x), np.tensordot(x, x, 0), np.kron(x, x), np.vdot(x, x)),
    "einsum": lambda x: (np.einsum("->", x), np.einsum(",->", x, x), np.outer(x, x)[0, 0], np.ones(2) * x @ np.ones(2)),
    "choices": lambda x: (np.where(True, x, x), np.clip(x, 0, 1), x.clip(0, 1), np.select([True], [x])),
    "piecewise": lambda x: (np.piecewise(x, [x > 0], [1, 2]), np.piecewise(x, [x > 0], [lambda a: a * 2, 3])),
    "parts": lambda x: (np.real(x), np.imag(x), np.conj(x), np.angle(x), x.real, x.imag, x.conj()),
    "several": lambda x: (np.modf(x), np.frexp(x), divmod(x, 1), np.divmod(x, 1), np.broadcast_arrays(x, x)),
    "rounded": lambda x: (np.round(x, 1), x.round(1), np.fix(x), np.nan_to_num(x), np.sinc(x), np.i0(x)),
    "methods of ufuncs": lambda x: (np.add.reduce(x), np.add.outer(x, x), np.multiply.outer(x, 2.0)),
    "sums": lambda x: (np.sum(x), x.sum(), np.cumsum(x), np.mean(x), np.std(x), np.median(x), np.nansum(x), np.ptp(x)),
    "tables": lambda x: (np.interp(x, [0, 1], [0, 1]), np.polyval([1, 2], x), np.searchsorted([0.0, 1.0], x)),
    "writes": lambda x: (np.add(x, 1, out=np.zeros_like(x)), np.zeros_like(x), np.ones_like(x), np.isin(x, [1])),
    "axes of none": lambda x: [f(x, axis=a) for f in OF_NO_AXIS for a in (0, -1)],
    "transforms": lambda x: (np.fft.fftn(x), np.cov(x * np.arange(3.0)), np.corrcoef(x * np.arange(3.0))),
}


@pytest.mark.parametrize("x", [A, S], ids=["array", "scalar"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_of_zero_dimensions_return_as_numpy(name, x):
    check(CALLS[name], x)


@pytest.mark.parametrize("c", [2.0, np.float64(2)], ids=["Python", "NumPy"])
def test_a_number_is_handed_on_to_a_function_as_one(c):
    kinds = []

    def f(x, c):
        kinds.append((isinstance(c, np.ndarray), type(c) is float))
        return x * c

    for call in (
        lambda x, c: np.apply_along_axis(f, 0, x, c),
        lambda x, c: np.apply_along_axis(f, 0, x, c=c),
        lambda x, c: np.piecewise(x, [x > 2], [f, f], c),
    ):
        expected = call(np.arange(3.0), c)
        of_numpy = kinds[-1]
        np.testing.assert_array_equal(fnad.jit(call)(np.arange(3.0), c), expected)
        assert kinds[-1] == of_numpy
