"""`c += t`, `c[i] = t` and `out=c` for an array that user code made: all its names and views have the result."""

import array
import functools
import operator
from types import SimpleNamespace

import numpy as np
import pytest

import fnad
from fnad.errors import MutationError
from tests.numpy.against_numpy import traced

V = np.array([1.0, 2.0, 3.0])
SHARED = np.zeros(3)
TABLE = SimpleNamespace(rows=np.eye(3), kept=[np.zeros(3)])


def several_operators(v):
    c = np.zeros(3)
    c += v
    c *= 2 * v
    c -= c[0]
    c /= v
    return c


def in_a_loop(v):
    c = np.zeros(3)
    for i in range(3):
        c += v**i
    return c


def elements_of_a_list(v):
    rows = [np.zeros(3), np.ones(3)]
    for i in range(2):
        rows[i] += v**2
    return rows[0] * rows[1]


def an_attribute(v):
    holder = SimpleNamespace(c=np.zeros(3))
    holder.c += v**2
    return holder.c


def a_view_alone(v):
    c = np.zeros((1, 3))[0]
    c += v**2
    return c


def another_dtype(v):
    c = np.zeros(3, np.float32)
    c += v**2
    return c * v


def a_closure(v):
    c = np.zeros(3)

    def add():
        nonlocal c
        c += v**2

    add()
    return c


def an_alias(v):
    c = np.zeros(3)
    d = c
    c += v**2
    return d


def a_view_of_the_target(v):
    c = np.zeros(3)
    d = c[1:]
    c += v**2
    return d


def a_view_as_the_target(v):
    c = np.zeros(3)
    d = c[1:]
    d += v[1:] ** 2
    return c


def a_transposed_view(v):
    c = np.zeros((3, 2))
    c.T[1] = v**2
    return c


def a_reshaped_view(v):
    c = np.zeros((3, 2))
    c.reshape(-1)[::2] += v**2
    return c


def a_parameter(v):
    def add(c):
        c += v**2

    c = np.zeros(3)
    add(c)
    return c


def an_element_of_a_list_too(v):
    c = np.zeros(3)
    kept = [c]
    c += v**2
    return kept[0]


def a_key_of_a_dict(v):
    c = {"a": np.zeros(3)}
    b = c["a"]
    c["a"][1:] += v[:2] ** 2
    return b


def an_element(v):
    c = np.zeros(3)
    c[0] = v[1] ** 2
    return c


def at_a_mask(v):
    c = np.zeros(3)
    c[v > 1.5] = v[0] ** 2
    return c


def an_output(v):
    c = np.zeros(3)
    d = c[:2]
    np.multiply(v, v, out=c)
    return d


def outputs(v):
    c, d, e = np.zeros(3), np.zeros(()), np.zeros(3)
    np.add.reduce(v**2, out=d)
    (v**2).cumsum(out=c)
    np.sum(np.stack([v, v**2]), axis=0, out=e)
    return c * d + e


def functions_that_write(v):
    c = np.zeros(3)
    d = c[:]
    np.copyto(c, v**2)
    np.put(c, 0, v[1] ** 2)
    np.add.at(c, [1, 1], v[2] ** 2)
    operator.iadd(c, v)
    return d


def a_copy_of_a_global(v):
    c = TABLE.rows.copy()
    c[1] += v**2
    return c


def an_array_of_a_local_class(v):
    class Sums:
        def __init__(self):
            self.total = np.zeros(3)

        def add(self, v):
            self.total += v

    sums = Sums()
    sums.add(v)
    sums.add(v**2)
    return sums.total


def arrays_of_lists(v):
    joined, products = np.concatenate([[1.0], [2.0, 3.0]]), np.outer([1.0, 2.0], [3.0, 4.0])
    other, points = joined, np.interp([0.5, 1.0], [0.0, 1.0], [1.0, 2.0])
    joined += v**2
    products.T[0] = v[:2] * other[1]
    points *= products[1]
    return np.concatenate([other * points[0], points])


def draws(v):
    noise = np.random.default_rng(0).normal(size=3)
    noise *= v**2
    return noise


FUNCTIONS = [
    *(several_operators, in_a_loop, elements_of_a_list, an_attribute, a_view_alone, another_dtype, a_closure),
    *(an_alias, a_view_of_the_target, a_view_as_the_target, a_transposed_view, a_reshaped_view, a_parameter),
    *(an_element_of_a_list_too, a_key_of_a_dict, an_element, at_a_mask, an_output, outputs, functions_that_write),
    *(a_copy_of_a_global, an_array_of_a_local_class, arrays_of_lists, draws),
]


def weighted(function, v):
    """Return the results with different weights, and their sum."""
    found = function(v)
    return np.sum(found * np.cos(np.arange(1.0 * np.size(found))).reshape(np.shape(found))), found


def differences(function, h):
    """Return the derivatives by central differences; the functions are polynomials of low degree."""
    return [(weighted(function, V + h * e)[0] - weighted(function, V - h * e)[0]) / (2 * h) for e in np.eye(3)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit], ids=["plain", "jit"])
def test_values_and_derivatives(transform, function):
    expected, is_single = function(V), function is another_dtype
    run = transform(fnad.value_and_grad(lambda v: weighted(function, v), has_aux=True))
    (_, found), slope = run(V)
    assert np.asarray(found).dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if is_single else 1e-14)
    np.testing.assert_allclose(
        slope, differences(function, 1e-2 if is_single else 1e-4), rtol=1e-4 if is_single else 1e-6
    )
    np.testing.assert_array_equal(transform(function)(V), found)


def test_an_array_of_a_module_is_not_written_into():
    def function(v):
        global SHARED  # noqa: PLW0603
        SHARED += v
        return np.sum(SHARED)

    kept = SHARED
    for run in (lambda f: traced(f, V), lambda f: fnad.grad(f)(V), lambda f: fnad.jit(f)(V)):
        with pytest.raises(MutationError):
            run(function)
        assert SHARED is kept
        np.testing.assert_array_equal(SHARED, 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda v: np.add(v, 1, out=np.zeros(3)),
        lambda v: np.sum(v, out=np.zeros(())),
        lambda v: np.add.reduce(v, out=np.zeros(())),
        lambda v: v.cumsum(out=np.zeros(3)),
    ],
)
def test_one_run_refuses_an_output(write):
    with pytest.raises(MutationError) as raised:
        traced(write, V)
    assert str(raised.value).startswith("a traced value cannot be written into an ordinary array\n  at ")


def put_first(u, v):
    u[0] = v[1] * v[0]


def added(u, v):
    u += v


def set_flat(u, v):
    u.flat = v


def set_imaginary(u, v):
    z = np.zeros(3, complex)
    z.imag = v
    u += abs(z) ** 2


WRITES = {
    "element": put_first,
    "in place": added,
    "out": lambda u, v: np.add(u, v, out=u),
    "copyto": lambda u, v: np.copyto(u, v * v),
    "a method": lambda u, v: u.put([0, 2], v[:2]),
    "__setitem__": lambda u, v: u[::-1].T.__setitem__(0, v[1]),
    "an index": lambda u, v: u.__setitem__((v + 0.5).astype(int)[0], 2.0),
    "flat": set_flat,
    "setattr": lambda u, v: setattr(u, "flat", v),
    "imaginary parts": set_imaginary,
    "map": lambda u, v: list(map(u.__setitem__, range(3), v)),
    "a partial function": lambda u, v: functools.partial(u.__setitem__, 0)(v[0]),
    "operator": lambda u, v: operator.setitem(u, 0, v[0]),
    "a function of NumPy": lambda u, v: np.fill_diagonal(u.reshape(1, 3), v[0]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("caught", [None, ValueError], ids=["passed over", "raised anew"])
def test_an_error_that_user_code_catches_is_followed_by_a_second_run(write, caught):
    def function(v):
        u = np.zeros(3)
        try:
            write(u, v)
        except Exception as error:
            if caught is not None:
                raise caught from error
        return np.sum(u * v)

    for transform in (lambda f: f, fnad.jit):
        value, slope = transform(fnad.value_and_grad(function))(V)
        assert value == pytest.approx(function(V))
        expected = [(function(V + 1e-4 * e) - function(V - 1e-4 * e)) / 2e-4 for e in np.eye(3)]
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_code_that_takes_no_traced_values_is_an_error_where_user_code_handles_that():
    """The other branch has the same value there, and another derivative."""

    def function(v):
        try:
            total = array.array("d", v)[0]
        except Exception:  # noqa: BLE001 - a user's own
            total = v[0] ** 2
        return total * np.zeros(3).sum() + total

    for transform in (fnad.value_and_grad, fnad.jit):
        with pytest.raises(fnad.errors.TracerEscapeError, match=r"total = array"):
            transform(function)(V)


def read_only(u):
    u.flags.writeable = False
    return u


def put(u, index, value):
    u[index] = value


def add(u, v):
    u += v


REFUSED = {
    "an element of a read-only array": lambda u, v: put(read_only(u), 0, v[0]),
    "a read-only array": lambda u, v: add(read_only(u), v),
    "a copy to a read-only array": lambda u, v: np.copyto(read_only(u), v),
    "a broadcast array": lambda u, v: put(np.broadcast_to(u, (2, 3)), 0, v),
    "memory of bytes": lambda u, v: put(np.frombuffer(bytes(24)), 0, v[0]),
    "too many elements": lambda u, v: put(u, slice(2), v),
    "too many elements of out": lambda u, v: np.add(u, v, out=u[:2]),
    "no such element": lambda u, v: put(u, 7, v[0]),
    "no such axis": lambda u, v: put(u, (0, 0), v[0]),
    "no such place": lambda u, v: np.put(u, [9], v),
    "another dtype": lambda u, v: add(np.zeros(3, int), v),
    "a vector as a number": lambda u, v: u.fill(v),
    "no such element to take": lambda u, v: (np.take(v, [9]), v.take(9)),
    "no such element along an axis": lambda u, v: np.take_along_axis(v, np.array([9]), 0),
    "a mask that is too long": lambda u, v: np.compress([0, 0, 0, 0, 1], v),
    "choices that there are not": lambda u, v: np.choose([7], [v]),
    "no such axis of a sum": lambda u, v: v.sum(axis=1),
    "no such position": lambda u, v: np.unravel_index(np.array([9]), (3,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_by_an_error_of_its_class(name):
    """User code that catches it goes on as with NumPy, though nothing uses the result."""

    def function(v):
        u = np.ones(3)
        try:
            REFUSED[name](u, v)
        except Exception as error:  # noqa: BLE001 - which takes errors of fnad, too
            kinds = ValueError, IndexError, TypeError, np.exceptions.AxisError
            return np.sum(u * v) * sum(2**i for i, kind in enumerate(kinds, 1) if isinstance(error, kind))
        return -np.sum(v)

    expected = function(V.copy())
    assert expected > 0
    assert fnad.value_and_grad(function)(V)[0] == fnad.jit(function)(V) == expected


def test_draws_that_are_written_to_are_drawn_anew():
    def function(v, rng):
        noise = rng.normal(size=3)
        noise *= v
        return noise.sum()

    rng, plain = np.random.default_rng(0), np.random.default_rng(0)
    fast = fnad.jit(lambda v: function(v, rng))
    np.testing.assert_allclose([fast(2.0) for _ in range(6)], [function(2.0, plain) for _ in range(6)], rtol=1e-14)
    assert rng.bit_generator.state == plain.bit_generator.state


def test_an_output_of_a_draw_is_that_array():
    def function(x):
        rng, held = np.random.default_rng(0), np.empty(3)
        rng.random(out=SHARED)
        held[:] = SHARED
        noise = rng.normal(size=3)
        noise += x
        return (noise * held).sum()

    expected = function(1.0)
    assert fnad.jit(function)(1.0) == pytest.approx(expected, rel=1e-14)
    SHARED[:] = 0.0
