"""A size, an axis, an order or a count that is traced: a path for each; without a value an error with the way out."""

import numpy as np
import pytest

import fnad
from fnad.errors import FnadError, TracerEscapeError
from tests.numpy.against_numpy import check, traced
from tests.together import in_groups

X, V, N = np.arange(12.0).reshape(3, 4), np.arange(1.0, 5.0), np.int64(2)

CREATED = {
    "eye": lambda x, v, n: np.eye(n),
    "eye, columns": lambda x, v, n: np.eye(3, n),
    "eye, diagonal": lambda x, v, n: np.eye(3, k=n),
    "identity": lambda x, v, n: np.identity(n),
    "tri": lambda x, v, n: np.tri(3, k=n),
    "indices": lambda x, v, n: np.indices((n, 2)),
    "arange": lambda x, v, n: np.arange(n),
    "arange of two": lambda x, v, n: np.arange(0, n),
    "arange by a step": lambda x, v, n: np.arange(0.0, 5.0, n * 1.0),
    "zeros": lambda x, v, n: np.zeros((n, 2)),
    "full": lambda x, v, n: np.full(n, 1.0),
    "linspace": lambda x, v, n: np.linspace(0, 1, n),
    "diag": lambda x, v, n: np.diag(v, n),
    "diag of a matrix": lambda x, v, n: np.diag(x, n),
    "diagflat": lambda x, v, n: np.diagflat(v, n),
    "tril": lambda x, v, n: np.tril(x, n),
    "triu": lambda x, v, n: np.triu(x, n),
}
SHAPED = {
    "reshape": lambda x, v, n: np.reshape(x, (n, 6)),
    "method": lambda x, v, n: x.reshape(n, 6),
    "resize": lambda x, v, n: np.resize(x, n),
    "broadcast_to": lambda x, v, n: np.broadcast_to(v, (n, 4)),
    "repeat": lambda x, v, n: np.repeat(v, n),
    "tile": lambda x, v, n: np.tile(v, n),
    "roll": lambda x, v, n: np.roll(v, n),
    "rot90": lambda x, v, n: np.rot90(x, n),
    "split": lambda x, v, n: np.split(v, n),
    "split at": lambda x, v, n: np.split(v, [n]),
    "pad": lambda x, v, n: np.pad(v, n),
    "insert": lambda x, v, n: np.insert(v, n, 1.0),
    "delete": lambda x, v, n: np.delete(v, n),
    "vander": lambda x, v, n: np.vander(v, n),
    "windows": lambda x, v, n: np.lib.stride_tricks.sliding_window_view(v, n),
}
COUNTED = {
    "partition": lambda x, v, n: np.partition(v, n),
    "diff": lambda x, v, n: np.diff(v, n),
    "round": lambda x, v, n: v.round(n),
    "fft": lambda x, v, n: np.fft.fft(v, n),
    "polyfit": lambda x, v, n: np.polyfit(v, v, n),
    "matrix_power": lambda x, v, n: np.linalg.matrix_power(x[:, :3], n),
    "tensordot": lambda x, v, n: np.tensordot(v, v, n),
    "norm": lambda x, v, n: np.linalg.norm(v, n),
    "norm of a matrix": lambda x, v, n: np.linalg.norm(x, n),
    "std": lambda x, v, n: np.std(v, ddof=n),
    "nanvar": lambda x, v, n: np.nanvar(v, ddof=n),
    "nanstd": lambda x, v, n: np.nanstd(v, correction=n),
    "cov": lambda x, v, n: np.cov(x, ddof=n),
}
AXES = {
    name: lambda x, v, n, name=name: getattr(np, name)(x, axis=n - 1)
    for name in (
        *("sum", "mean", "std", "max", "argmax", "cumsum", "sort", "argsort", "flip", "diff", "median", "expand_dims"),
        *("squeeze", "unwrap", "trapezoid", "average", "nansum", "any", "ptp"),
    )
} | {
    "concatenate": lambda x, v, n: np.concatenate([x, x], n - 1),
    "stack": lambda x, v, n: np.stack([x, x], n),
    "swapaxes": lambda x, v, n: np.swapaxes(x, n - 1, 0),
    "transpose": lambda x, v, n: np.transpose(x, (n - 1, 0)),
    "take": lambda x, v, n: np.take(x, 0, axis=n - 1),
    "method": lambda x, v, n: x.sum(n - 1),
}
CALLS = {
    f"{kind} {name}": f
    for kind, calls in (("", CREATED | SHAPED | COUNTED), ("axis of", AXES))
    for name, f in calls.items()
}


@in_groups("name", CALLS)
def test_a_traced_size_is_refused_at_its_line(name):
    with pytest.raises(FnadError) as caught:
        traced(CALLS[name], X, V, N)
    assert type(caught.value) is TracerEscapeError
    what, place, remedy = str(caught.value).split("\n")
    assert "traced" in what
    assert place.startswith("  at test_sizes.py:")
    assert remedy.strip()


SLICED = {
    "to": lambda x, v, n: v[:n] * 2,
    "from": lambda x, v, n: x[n - 1 :, : n + 1] * v[0],
    "by": lambda x, v, n: v[::n],
    "back": lambda x, v, n: v[n::-1],
    "of an array": lambda x, v, n: v[0] * OWN[n : n + 2],
}
OWN = np.arange(6.0)


@in_groups("name", [*[name for name in CALLS if name != " arange by a step"], *[f"slice {name}" for name in SLICED]])
def test_a_size_that_depends_on_values(name):
    """Each is a path, in a function that is differentiated and in one that is compiled."""
    call = CALLS.get(name) or SLICED[name.removeprefix("slice ")]

    def f(x, v):
        return call(x, v, np.count_nonzero(v > 2.5))

    compiled, traces = fnad.jit(f), fnad.value_and_grad(lambda x, v: (0.0 * x[0, 0], f(x, v)), has_aux=True)
    for v in (V, V[::-1].copy(), V - 1):
        try:
            expected = f(X, v)
        except (ValueError, IndexError):  # NumPy has no such result
            continue
        for found in (traces(X, v)[0][1], compiled(X, v)):
            assert type(found) is type(expected)
            assert_equal_parts(found, expected)


def assert_equal_parts(found, expected):
    if isinstance(expected, (list, tuple)):
        for one, other in zip(found, expected, strict=True):
            assert_equal_parts(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_derivatives_of_what_is_sliced_by_values():
    def f(x):
        n = np.argmax(x)
        y = x * 1.0
        y[:n] *= 3.0
        return np.sum(y[n:] ** 2) + np.sum(y[:n]) * np.sum(OWN[n : n + 2])

    gradient = fnad.jit(fnad.grad(f))
    for x in (V, V[::-1].copy(), np.array([1.0, 3.0, 2.0, 0.5])):
        wanted = [(f(x + h) - f(x - h)) / 2e-3 for h in 1e-3 * np.eye(4)]
        np.testing.assert_allclose(fnad.grad(f)(x), wanted, atol=1e-9)
        np.testing.assert_allclose(gradient(x), wanted, atol=1e-9)


@pytest.mark.parametrize("name", CREATED)
def test_a_known_size_makes_arrays_as_numpy(name):
    """A size that depends on no input has a number, in an array that is traced."""
    check(lambda x, v: CREATED[name](x, v, np.ones_like(v, int)[0] + 1), X, V)


def test_way_out_of_a_range():
    with pytest.raises(TracerEscapeError) as caught:
        traced(lambda t: np.arange(0, t, 0.5), np.float64(2.0))
    assert "start + step * np.arange(n)" in str(caught.value)
    assert fnad.grad(lambda t: np.sum(0 + t * np.arange(4)))(0.5) == 6
    assert fnad.grad(lambda t: np.sum(np.linspace(0, t, 4)))(2.0) == 2


# ---- comparison with what is no number -------------------------------------------------------------------------------

COMPARED = {
    "None": lambda v: (v == None, v != None),  # noqa: E711
    "reflected": lambda v: (None == v, "a" != v),  # noqa: E711, SIM300
    "a string": lambda v: (v == "a", v != "a", v == b"a"),
    "objects": lambda v: (v == ..., v != object(), v == {}, {1} != v, v == int, v != len, v == slice(1)),  # noqa: E721
    "0-d": lambda v: (np.array(v[0]) == "a", np.array(v[0]) != None),  # noqa: E711
    "identity": lambda v: v * (2.0 if v is None else 3.0) * (1.0 if v[0] is not None else 5.0),
    "scalars": lambda v: v * (2.0 if v[0] == None else 3.0) * (1.0 if v[0] != "a" else 5.0),  # noqa: E711
}


@pytest.mark.parametrize("name", COMPARED)
def test_comparison_with_what_is_no_number(name):
    check(COMPARED[name], V)


def test_order_of_what_is_no_number():
    with pytest.raises(TypeError):
        traced(lambda v: v < None, V)
