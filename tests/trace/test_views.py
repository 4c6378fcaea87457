"""Writes are seen where NumPy's memory says so, and nowhere else."""

import copy
import itertools

import numpy as np
import pytest

import fnad
import fnad.numpy as fnp
from fnad.errors import MutationError, ShapeError, UnsupportedFunctionError
from tests.numpy.against_numpy import check, check_error, sample, traced
from tests.together import some_of

X = sample((3, 4), "f64")
V = sample(4, "f64", 1)


def alias(x, v):
    y = v * 1
    z = y
    z += x[0]
    return y


def slice_view(x, v):
    y = v * 1
    z = y[:1]
    z *= 10
    return y, z


def view_of_a_view(x, v):
    y = x * 1
    z = y.T[1:][::-1]
    z += 1
    y[0, 0] = 7
    z[0, 1] = 9
    return y, z


def rows_swapped(x, v):
    y = x * 1
    y[0], y[1] = y[1], y[0]
    return y


def overlap(x, v):
    y = v * 1
    y[1:] += y[:-1]
    return y


def repeated_index(x, v):
    y, z = v * 1, v * 1
    y[[0, 0]] += v[:2]
    z[[0, 0, 1]] = v[:3]
    np.add.at(z, [2, 2], v[:2])
    np.subtract.at(z, ([3],), 5.0)
    return y, z


def recurrence(x, v):
    y = v * 1
    for i in range(1, 4):
        y[i] = y[i - 1] * y[i]
    return y


def through_rows(x, v):
    y = x * 1
    for row in y:
        row *= 2  # noqa: PLW2901  # it is the row that is written to
        row[0] = 1
    return y


def through_axes(x, v):
    y = x * 1
    np.swapaxes(y, 0, 1)[2] = 9
    np.moveaxis(y, 0, 1)[3] = 8
    y.transpose(1, 0)[0, 0] = 1
    np.flip(y, 0)[0, 1] = 4
    np.rot90(y)[0] = 2
    y[None].squeeze(0)[1, 1] = 5
    np.expand_dims(y, 1)[2, 0, 0] = 6
    np.atleast_3d(y)[1, 2, 0] = 3
    return y


def through_parts(x, v):
    y = x * 1
    left, right = np.split(y, 2, axis=1)
    left[...] = 0
    right += 1
    np.einsum("ii->i", y[:, :3])[...] = 4
    return y


def through_strides(x, v):
    y = x * 1
    y[::2, 1::2] = v[:2]
    y[::-2, ::3] *= 2
    return y


def complex_parts(x, v):
    y = v + 1j * v
    y.real = 3
    y.imag[1:] = v[1:] * 5
    return y


def reshaped_vector(x, v):
    y = v * 1
    y.reshape(2, 2)[0] = 0
    return y


def copies(x, v):
    y = x * 1
    for z in (
        y.copy(),
        np.copy(y),
        y.flatten(),
        copy.copy(y),
        copy.deepcopy(y),
        y[[0, 1]],
        y.astype(float),
        np.array([0.0]) + y,
    ):
        z[0] = 100
    return y


def memory_in_c_order(x, v):
    y, z, w = fnp.zeros((2, 2)), fnp.array([v[:2], v[2:]]), fnp.ones((2, 2, 2))
    y.ravel()[2] = v[0]
    y.reshape(-1)[1] = v[1]
    z.reshape(4, 1)[3, 0] = v[0]
    w[1].ravel()[0] = v[2]
    w[:, :1][0].reshape(2)[1] = v[3]
    np.ascontiguousarray(w)[0, 1, 0] = v[0]
    z.T.ravel()
    return y, z, w


def read_only_views_see_writes(x, v):
    y = x @ x.T
    diagonal, broadcast = np.diagonal(y), np.broadcast_to(y, (2, 3, 3))
    y[0, 0] = 100
    return diagonal, broadcast


def scalars_are_values(x, v):
    s = v.sum()
    t = s
    s += 1
    u = v[0]
    v = v * 0
    return s, t, u, s + v


def a_scalar_that_becomes_an_array(x, v):
    s = v.sum()
    s += v
    return s


def a_0d_array_is_none(x, v):
    y = np.where(v[0] > 0, v[0], 1)
    z = y
    z += 1
    return y


def dtype_stays(x, v):
    y = np.zeros_like(v, dtype=np.float32)
    y += v
    y -= 0.5
    i = np.ones_like(v, dtype=int)
    i *= 3
    i //= 2
    i **= 2
    i %= 3
    return y, i


def outs(x, v):
    y, z, m = x * 0, v * 0, v * 0
    np.add(x, v, out=y)
    np.multiply(x, 2, out=y, where=x > 0.5)
    np.sum(x, axis=0, out=z)
    x.max(0, m)
    q, r = np.divmod(v, 0.3, out=(v * 0, None))
    return y, z, m, q, r, np.clip(v, 0.2, 0.4, out=v * 0)


def functions_that_write(x, v):
    y, z = x * 1, x @ x.T
    np.copyto(y, v)
    np.copyto(y[0], 5, where=v > 0.5)
    np.fill_diagonal(z, [1, 2])
    np.put(y, [0, 5], [7, 8, 9])
    np.putmask(y[1], v > 0.5, v)
    np.put_along_axis(y, np.array([[0], [1], [2]]), 3, axis=1)
    w = v * 1
    w.fill(2)
    return y, z, w


def arguments_are_local(x, v):
    v += 1
    x[0] = v
    return x, v


def matrix_product_in_place(x, v):
    y = x @ x.T
    y @= y
    return y


CASES = [
    alias, slice_view, view_of_a_view, rows_swapped, overlap, repeated_index, recurrence, through_rows,
    through_axes, through_parts, through_strides, complex_parts, reshaped_vector, copies,
    read_only_views_see_writes, scalars_are_values,
    a_scalar_that_becomes_an_array, a_0d_array_is_none, dtype_stays, outs, functions_that_write, arguments_are_local,
    matrix_product_in_place,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_views_of_traced_arrays_read_and_write_as_numpys(function):
    check(function, X, V)


def write_into(make):
    def function(x, v):
        make(x * 1, v * 1)[0] = 0

    return function


REFUSED = {
    "a diagonal": write_into(lambda x, v: np.diagonal(x)),
    "a broadcast": write_into(lambda x, v: np.broadcast_to(v, (3, 4))),
    "a wider shape": lambda x, v: np.add(v, x, out=v),
    "a wider dtype": lambda x, v: np.add(x, v, out=np.zeros_like(x, dtype=int)),
    "an in-place division of integers": lambda x, v: np.zeros_like(x, dtype=int).__itruediv__(2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_numpy(name):
    with pytest.raises((ValueError, TypeError)):
        REFUSED[name](X.copy(), V.copy())
    with pytest.raises((ValueError, TypeError)):
        traced(REFUSED[name], X, V)


def test_a_scalar_cannot_be_written_to():
    check_error(lambda x: np.add(x, 1, out=x.sum()), X)


# ---- Note [View or copy] ---------------------------------------------------------------------------------------------

VIEW_OR_COPY = "NumPy made a view or a copy of aval {}, by its layout in memory, and one of the two was written to"


def test_a_reshape_is_a_view_or_a_copy_nobody_knows():
    def write_the_view(x):
        y = x * 1
        y.reshape(-1)[0] = 1
        return y

    def write_the_base(x):
        y = x * 1
        z = y.ravel()
        y[0] = 1
        return z

    for function, aval in ((write_the_view, r"f64\[3,4\]"), (write_the_base, r"f64\[12\]")):
        with pytest.raises(MutationError, match=VIEW_OR_COPY.format(aval)):
            traced(function, X)


def test_a_reshape_that_is_not_shared_may_be_written():
    def write(x):
        y = (x * 1).reshape(-1)
        y[0] = 1
        z = (x * 1).ravel().copy()
        z += 1
        return y, z, x

    check(write, X)


# ---- every chain of views, written through ---------------------------------------------------------------------------

STEPS = {
    "axes in a circle": lambda a: np.transpose(a, (*range(1, a.ndim), 0)),
    "axes back": lambda a: a.transpose(a.ndim - 1, *range(a.ndim - 1)),
    "axis moved": lambda a: np.moveaxis(a, 0, -1),
    "axis rolled": lambda a: np.rollaxis(a, a.ndim - 1),
    "axes swapped": lambda a: np.swapaxes(a, 0, -1),
    "T": lambda a: a.T,
    "slice": lambda a: a[1:],
    "every other": lambda a: a[..., ::2],
    "backwards": lambda a: a[::-1],
    "flipped": lambda a: np.flip(a, -1),
    "turned": lambda a: np.rot90(a),
    "new axis": lambda a: a[:, None],
    "squeezed": lambda a: np.squeeze(a[:1]),
    "row": lambda a: a[0],
    "split": lambda a: np.split(a, [1], axis=-1)[1],
    "real": lambda a: a.real,
    "imaginary": lambda a: a.imag,
}
"""Views of an array, whatever its layout; of four axes and more extents than one, so that no permutation is another."""

WRITES = {
    "whole": lambda view, v: view.__setitem__(..., v * np.arange(1.0, view.size + 1).reshape(view.shape)),
    "in place": lambda view, v: view.__imul__(v),
    "an element": lambda view, v: view.__setitem__((0,) * view.ndim, v),
    "out": lambda view, v: np.add(view, v, out=view),
}


def through(chain, write, make):
    def f(v):
        whole = make(v)
        view = whole
        for name in chain:
            view = STEPS[name](view)
        WRITES[write](view, v)
        return whole, view * 1

    return f


def check_outcome(f, chain):
    """Compare with NumPy; both refuse where what is seen is read-only, or a number."""
    try:
        expected = f(2.0)
    except (ValueError, TypeError, AttributeError):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            traced(f, np.float64(2.0))
        return
    for x, y in zip(expected, traced(f, np.float64(2.0))[0], strict=True):
        np.testing.assert_array_equal(x, y, err_msg=str(chain))


def made(shape):
    return lambda v: np.arange(float(np.prod(shape))).reshape(shape) * (1 + 0j) * v


CHAINS = [(a,) for a in STEPS] + list(itertools.permutations(STEPS, 2)) + [(a, a) for a in STEPS]


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES)
def test_a_write_through_every_view(write):
    """Values of all chains of two steps, for an array of four axes; some longer ones where axes are permuted."""
    circles = ["axes in a circle", "axes back", "axis moved", "slice", "every other"]
    longer = some_of([*itertools.permutations(circles, 3)], write, 20)
    for chain in CHAINS + longer:
        check_outcome(through(chain, write, made((3, 4, 2, 5))), chain)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_through_views_of_new_memory(write):
    """What NumPy makes in C order is the same memory through reshape and ravel too, as long as that order is kept."""
    shaped = {
        "reshaped": lambda a: a.reshape(-1, a.shape[-1]),
        "raveled": lambda a: np.ravel(a),
        "as rows": lambda a: np.reshape(a, (a.shape[0], -1)),
    }
    keeping = {"slice": STEPS["slice"], "row": STEPS["row"], "new axis": STEPS["new axis"]}
    for make in (fnp.zeros, fnp.ones, fnp.empty):
        for first, second in [*itertools.permutations({**shaped, **keeping}, 2), *[(a, a) for a in shaped]]:
            steps = {**shaped, **keeping}

            def f(v):
                whole = make((3, 4, 5))  # noqa: B023
                whole[...] = v
                view = steps[second](steps[first](whole))  # noqa: B023
                WRITES[write](view, v)
                whole[0] += 1
                return whole, view * 1

            check_outcome(f, (first, second))


def test_a_gradient_through_permuted_axes():
    weights = np.arange(24.0).reshape(2, 3, 4)

    def f(x):
        y = x * 1
        np.transpose(y, (1, 2, 0))[...] *= np.transpose(weights, (1, 2, 0))
        y.transpose(2, 0, 1)[1:] += x.transpose(2, 0, 1)[:-1]
        return np.sum(y * weights)

    expected = weights**2
    expected[..., :-1] += weights[..., 1:]
    np.testing.assert_allclose(fnad.grad(f)(np.ones((2, 3, 4))), expected)


# ---- views of an outer trace -----------------------------------------------------------------------------------------

LAYOUTS = {
    "reshaped": lambda x: x.reshape(3, 2),
    "raveled": lambda x: np.ravel(x)[:2],
    "turned and reshaped": lambda x: x.T.reshape(2, 3),
    "a part reshaped": lambda x: x[:, 1:].reshape(2, 2),
    "reshaped twice": lambda x: x.reshape(6).reshape(3, 2),
    "turned": lambda x: x.T,
    "a part": lambda x: x[1:],
}
PARTS = {
    "row": lambda w: w[0],
    "part": lambda w: w[..., :1],
    "again reshaped": lambda w: w.reshape(-1),
    "T": lambda w: w.T,
}
INNER = {
    "grad": lambda w: fnad.grad(lambda c: c * np.sum(w()))(2.0),
    "twice": lambda w: fnad.grad(lambda c: fnad.grad(lambda d: c * d * np.sum(w()))(2.0))(1.0),
    "jvp": lambda w: fnad.jvp(lambda c: c * np.sum(w()), (2.0,), (1.0,))[1],
    "vjp": lambda w: fnad.vjp(lambda c: c * np.sum(w()), 2.0)[1](1.0)[0],
    "scan": lambda w: fnad.scan(lambda c, _: (c + np.sum(w()), None), 0.0, None, length=1)[0],
    "fori_loop": lambda w: fnad.fori_loop(0, 1, lambda i, c: c + np.sum(w()), 0.0),
    "cond": lambda w: fnad.cond(np.bool_(True), lambda: np.sum(w()), lambda: 0.0),
    "checkpoint": lambda w: fnad.checkpoint(lambda c: c * np.sum(w()))(1.0),
    "jit": lambda w: fnad.jit(lambda c: c * np.sum(w()))(1.0),
}


@pytest.mark.parametrize("inner", INNER)
def test_a_view_of_an_outer_array_is_read_in_an_inner_trace(inner):
    x = np.arange(6.0).reshape(2, 3)
    for layout in LAYOUTS.values():
        for part in PARTS.values():

            def f(x):
                w = layout(x)  # noqa: B023
                kept = part(w)  # noqa: B023
                inside = INNER[inner](lambda: part(w)) + INNER[inner](lambda: kept)  # noqa: B023
                return inside + np.sum(part(w)) + np.sum(kept)  # noqa: B023

            expected = 4 * np.sum(part(layout(x)))
            value, gradient = fnad.value_and_grad(f)(x)
            assert value == pytest.approx(expected)
            assert np.sum(gradient * x) == pytest.approx(expected)  # since f is linear


@pytest.mark.slow
def test_what_was_written_outside_is_seen_inside():
    def f(x):
        y = x * 1
        w, row = y.reshape(3, 2), y[0]
        y[0] = 7.0
        assert fnad.grad(lambda c: c * np.sum(row))(1.0) is not None
        with pytest.raises(MutationError, match="NumPy made a view or a copy"):
            fnad.grad(lambda c: c * np.sum(w[0]))(1.0)
        return fnad.grad(lambda c: c * np.sum(row))(1.0) + np.sum(y)

    assert fnad.value_and_grad(f)(np.ones((2, 3)))[0] == 45.0


def reshaped_in_place(x):
    y = x * 2
    flat, part = y, y[:3]
    y.shape = (2, 3)
    y[1, 2] = x[0] * 5
    part[0] = 7 * x[1]
    assert (flat is y, y.shape, y.flags.writeable, y.flags["W"], y.T.flags.writeable) == (True, (2, 3), *[True] * 3)
    return np.sum(y * np.arange(1.0, 7.0).reshape(2, 3) * part[:1])


def argument_reshaped(x):
    x.shape = 2, -1
    return np.sum((x @ x.T) ** 2)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5, on arrays
def test_the_shape_of_an_array_can_be_set():
    x = np.array([0.3, 1.2, 0.7, -0.4, 2.0, 0.9])
    for f in (reshaped_in_place, argument_reshaped):
        for wrap in (lambda f: f, fnad.jit):
            value, slope = wrap(fnad.value_and_grad(f))(x)
            np.testing.assert_allclose(value, f(x.copy()), rtol=1e-14)
            along = [np.imag(f(x + 1e-30j * unit)) / 1e-30 for unit in np.eye(6)]
            np.testing.assert_allclose(slope, along, rtol=1e-13)
            assert x.shape == (6,)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5, on arrays
@pytest.mark.parametrize(
    ("f", "error", "match"),
    [
        (lambda x: setattr(x, "shape", (4,)), ShapeError, "cannot reshape array of size 6"),
        (lambda x: setattr(x.sum(), "shape", (1,)), MutationError, "read-only"),
        (lambda x: fnad.grad(lambda t: (setattr(x, "shape", (2, 3)), t)[1])(1.0), MutationError, "another trace"),
        (lambda x: x.flags.c_contiguous, UnsupportedFunctionError, "flags has no rule"),
        (lambda x: x.flags["OWNDATA"], UnsupportedFunctionError, "flags has no rule"),
        (lambda x: setattr(x.flags, "writeable", False), UnsupportedFunctionError, "flags has no rule"),
    ],
)
def test_what_of_shape_and_flags_is_an_error(f, error, match):
    with pytest.raises(error, match=match):
        fnad.grad(lambda x: f(x) or x[0])(np.ones(6))
    with pytest.raises(AttributeError):
        fnad.grad(lambda x: x.flags.__wrong__)(np.ones(6))
