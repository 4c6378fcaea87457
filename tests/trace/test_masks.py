"""Masks: what is selected of traced arrays is what NumPy selects, differentiated, and under jit on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.config import override
from fnad.errors import FnadError, OutOfRangeError, PathsWarning, TracerEscapeError

X = np.array([0.3, -1.1, 2.0, 0.7, -0.2])
OTHERS = [np.array([-0.3, 1.1, 2.5, -0.7, 0.9]), np.array([0.6, 0.1, 3.0, 0.8, 0.2]), X + 1e-3]
WEIGHTS = np.arange(1.0, 6.0)


class Held:
    weights = WEIGHTS
    names = np.array(["a", "b", "c", "d", "e"])


def tiny_in_place_of_some(x):
    b = x * 1.0
    b[np.where(b < 0)] = 1e-3
    return np.sum(np.log(b))


def written_under_masks(x):
    d, e = x * 2.0, np.outer(x, x)
    d[x > 0] = np.sqrt(x[x > 0])
    d[x < 0] = x[x < 0][::-1] * WEIGHTS[: int(np.sum(x < 0))]
    d[x > 9] = np.zeros(0)
    e[x > 0, 1:3] *= 2.0
    e[:, x > 1] = np.reshape(x, (5, 1))
    return np.sum(d**2) + np.sum(e**3)


def a_copy(x):
    part = x[x > 0]
    part[0] = part[-1] * 2.0
    alias = part
    alias *= x[x > 0]
    return np.sum(part) + np.sum(x**2)


def views_of_a_selection(z):
    part = (z * (1 + 2j))[z > 0]
    part.real[...] = 3.0 * z[0].real
    part[1:] += 1
    return np.sum(part.imag * WEIGHTS[: len(part)]) + part.real.sum()


GUARDED = {
    "its length": lambda x: np.sum(x) * len(x[x > 0]) + x[x > 1].size + x[x > 0].shape[0],
    "an element": lambda x: x[x > 0][0] * x[x > 0][-1],
    "a part": lambda x: np.sum(x[x > 0][::2] ** 2) + np.sum(x[x > 0][x[x > 0] < 1]),
    "iteration": lambda x: sum(v**2 for v in x[x > 0]),
    "in order": lambda x: np.sum(np.sort(x[x > 0])[:2] * [2, 1]) + np.median(x[x > 0]),
    "running": lambda x: np.cumsum(x[x > 0])[-2] * x[x > 0].cumsum()[0],
    "reshaped": lambda x: np.sum(x[x > 0].reshape(-1, 1) * x[x < 9]) + x[x > 0].T[0] + np.ravel(x[x > 0])[0],
    "beside others": lambda x: np.sum(np.concatenate([x, x[x > 0]]) ** 2) + np.sum(np.stack([x[x > 0], x[x > 0] ** 2])),
    "two masks": lambda x: np.sum(x[x > 0][:2] * x[x < 1][:2]) + np.sum(x[x > 0] * x[~(x <= 0)]),
    "an array of its size": lambda x: np.sum(x[x > 0] * WEIGHTS[: x[x > 0].size]),
    "a norm": lambda x: np.linalg.norm(x[x > 0]) + np.outer(x[x > 0], x).sum(),
    "rows": lambda x: np.outer(x, x)[x > 0].T.sum() + np.prod(np.outer(x, x)[x > 0], axis=1).sum(),
    "an axis behind": lambda x: np.outer(x, x)[:, x > 0].prod(axis=0).sum() + np.outer(x, x)[1, x < 1].sum(),
    "with integers": lambda x: np.outer(x, x)[x > 0, 1].sum() + np.outer(x, x)[[0, 1]][:, x > 0].sum(),
    "one bool": lambda x: np.sum(x[x[0] > 0]) + np.sum(WEIGHTS[x[1] > 0]) + np.sum(x[x[2] > 0, None] ** 2),
    "an array's": lambda x: np.sum(WEIGHTS[x > 0][:2] * x[x > 0][:2]) + np.sum(Held.weights[x > 0] * 1.0) * x[0],
    "of names": lambda x: len("".join(Held.names[x > 0])) * np.sum(x),
    "where": lambda x: np.sum(x[np.where(x > 0)] ** 2) + sum(x[i] for i in np.nonzero(x < 1)[0]),
    "nonzero": lambda x: np.sum(x[np.flatnonzero(x > 0)]) * np.argwhere(x > 0).size + (x > 0).nonzero()[0][0] * x[0],
    "compress": lambda x: (
        np.sum(np.compress(x > 0, x) ** 2) + np.prod(np.extract(x < 1, x)) + (x.compress(x > 0)).sum()
    ),
    "delete": lambda x: np.prod(np.delete(x, x > 1)) + np.sum(np.repeat(x, np.where(x > 0, 2, 1)) ** 2),
    "unique": lambda x: np.sum(np.unique(np.clip(x, 0, 1)) * 2) + np.sum(np.unique(x, return_index=True)[1] * x),
    "sets": lambda x: np.sum(np.setdiff1d(x, [0.7, 2.0]) ** 2) + np.sum(np.union1d(x, x[:2] + 1)),
    "in both": lambda x: np.sum(np.intersect1d(x, x[1:]) ** 3) + np.sum(np.setxor1d(x, x[2:] * 2) ** 2),
    "trimmed": lambda x: np.sum(np.trim_zeros(np.where(x > 0, x, 0)) ** 2) + np.sum(x[np.ix_(x > 0)] ** 2),
    "counted": lambda x: np.sum(x[: len(np.bincount((x > 0).astype(int)))] ** 2),
    "in place": tiny_in_place_of_some,
    "written": written_under_masks,
    "a copy": a_copy,
    "returned": lambda x: np.sum(fnad.vjp(lambda y: y[y > 0] ** 2, x)[0] * 3.0),
}
"""Scalars of real arrays that ask for more than the whole array and the mask, analytic where the masks are constant."""


OTHERWISE = ("a norm", "returned", "sets")
"""Those that are not analytic there."""


def complex_step(f, x):
    return np.array([np.imag(f(x + 1e-30j * e)) / 1e-30 for e in np.eye(len(x))])


@pytest.mark.parametrize("name", GUARDED)
def test_as_numpy_on_every_path(name):
    f = GUARDED[name]
    plain, jitted = fnad.value_and_grad(f), fnad.jit(fnad.value_and_grad(f))
    for x in [X, *OTHERS, X]:
        for value, gradient in (plain(x), jitted(x)):
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            if name not in OTHERWISE:
                np.testing.assert_allclose(gradient, complex_step(f, x), rtol=1e-12, atol=1e-14)
    with override(executor="compiled"):
        np.testing.assert_allclose(fnad.jit(f)(X), f(X), rtol=1e-12)


def test_derivatives_where_the_complex_step_does_not_apply():
    positive = X > 0
    gradient = fnad.grad(lambda x: np.linalg.norm(x[x > 0]))(X)
    np.testing.assert_allclose(gradient, np.where(positive, X, 0) / np.linalg.norm(X[positive]), rtol=1e-14)
    np.testing.assert_allclose(fnad.grad(GUARDED["returned"])(X), np.where(positive, 6 * X, 0), rtol=1e-14)
    of_sets = fnad.grad(lambda x: np.sum(np.setdiff1d(x, [0.7, 2.0]) ** 2) + np.sum(np.union1d(x, [0.3, 9.0]) ** 3))(X)
    np.testing.assert_allclose(of_sets, 2 * X * [1, 1, 0, 0, 1] + 3 * X**2, rtol=1e-14)
    np.testing.assert_allclose(fnad.hessian(lambda x: np.prod(x[x > 0][:2]))(X)[0], [0, 0, 1, 0, 0])
    z = X + 0j
    assert fnad.jit(views_of_a_selection)(z) == views_of_a_selection(z)


def test_a_mask_is_one_answer():
    """A mask that is asked for often is compared once, and one that is not needed not at all."""
    free = fnad.jit(lambda x: x[x > 0].mean() * np.sum(x[x > 0] ** 2) - np.max(x[x < 1]))
    asking = fnad.jit(lambda x: x[x > 0][0] * len(x[x > 0]) + x[x > 0].size)
    for x in (X, *OTHERS):
        free(x)
        asking(x)
    assert str(free.paths()).count("->") == 0
    shown = str(asking.paths())
    assert "3 paths" in shown
    assert shown.count("-> 3 of 5") == 2  # as the masks are, which are told apart
    assert shown.count("-> 5 of 5") == 1


def test_more_masks_than_paths_warn_and_compute():
    some = fnad.jit(lambda x: np.sort(x[x > 0]))
    masks = [(n >> np.arange(8)) % 2 == 1 for n in range(70)]
    with pytest.warns(PathsWarning, match=r"(?s)takes more than 64 paths.*choose with np.where\(mask, a, b\)"):
        found = [some(np.where(mask, 2.0, -1.0)) for mask in masks]
    assert [len(result) for result in found] == [mask.sum() for mask in masks]


def test_selections_of_arrays_of_different_dimensions():
    """NumPy aligns the last axes of what is selected, which are not those of the whole arrays."""

    def beside(x, y):
        return x[y > 0] * y[y > 0]

    def written(x, y):
        z = x * 1.0
        z[y > 0] = y[y > 0]
        return z

    x = np.arange(1.0, 10.0).reshape(3, 3)
    for y in (np.array([-1.0, 2.0, -1.0]), np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 3.0])):
        for f in (beside, written):
            try:
                expected = f(x, y)
            except ValueError:
                with pytest.raises(ValueError, match="broadcast"):
                    fnad.jit(f)(x, y)
            else:
                np.testing.assert_array_equal(fnad.jit(f)(x, y), expected)


# ---- every member of arrays ------------------------------------------------------------------------------------------

ARGUMENTS = {
    **dict.fromkeys(("argpartition", "partition", "repeat", "item"), (1,)),
    **dict.fromkeys(("astype", "view"), (np.float64,)),
    "take": ([0, 1],),
    "reshape": (-1, 1),
    "swapaxes": (0, 0),
    "dot": (np.ones(3),),
    "searchsorted": (0.5,),
    "compress": ([True],),
    "choose": ([X[:3], X[:3]],),
    "put": (0, 1.0),
    "fill": (2.0,),
    "clip": (0, 1),
}
"""Arguments for a selection of three elements."""


def of_member(name, chosen):
    member = getattr(chosen, name)
    return member(*ARGUMENTS.get(name, ())) if callable(member) else member


def outcome(f, x):
    """The sum of what a function computes, if it is an array, and the first line of its error."""

    def total(x):
        found = f(x)
        return 1.0 * sum(map(np.sum, [found])) if isinstance(found, (np.ndarray, np.generic)) else 0.0

    try:
        return fnad.jit(total)(x), None
    except (FnadError, ValueError, TypeError) as error:
        return None, str(error).split("\n")[0]


@pytest.mark.slow
def test_every_member_of_an_array():
    """A selection does what the elements taken by number do; in vmap it may also be an error that says so."""
    names = [name for name in dir(np.ndarray) if not name.startswith("__")]
    assert len(names) > 60
    for name in names:
        value, error = outcome(lambda x: of_member(name, x[x > 0]), X)  # noqa: B023
        taken, refusal = outcome(lambda x: of_member(name, x[[0, 2, 3]]), X)  # noqa: B023
        assert error == refusal, name
        if error is None:
            np.testing.assert_allclose(value, taken, rtol=1e-14, err_msg=name)
        _, error = outcome(lambda x: fnad.vmap(lambda row: [of_member(name, row[row > 0]), row][1])(x), X[None])  # noqa: B023
        assert error in (None, refusal) or "depends on a traced value, the mask" in error, (name, error)


# ---- where nobody has the arguments ----------------------------------------------------------------------------------

UNKNOWN = {
    "its length": lambda x: len(x[x > 0]) * x,
    "an element": lambda x: x[x > 0][0],
    "in order": lambda x: np.sort(x[x > 0]),
    "beside others": lambda x: np.concatenate([x, x[x > 0]]),
    "as it is": lambda x: x[x > 0],
    "an array's": lambda x: WEIGHTS[x > 0][0],
    "nonzero": lambda x: np.nonzero(x > 0)[0],
    "where": lambda x: x[np.where(x > 0)],
    "unique": np.unique,
    "sets": lambda x: np.setdiff1d(x, [1.0]),
    "compress": lambda x: np.compress(x > 0, x),
    "one bool": lambda x: x[x[0] > 0],
    "as many values": lambda x: x.__setitem__(x > 0, WEIGHTS[:3]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_in_the_body_of_a_loop_it_is_an_error(name):
    with pytest.raises(TracerEscapeError, match=r"(?s)test_masks.py:\d+.*np.where\(mask, a, b\), reduce with where="):
        fnad.map(UNKNOWN[name], np.stack([X, X]))


@pytest.mark.parametrize("name", sorted(UNKNOWN.keys() - {"as many values"}))
def test_in_the_rows_of_vmap_each_row_has_its_mask(name):
    row = UNKNOWN[name]
    for rows in (np.stack([X, 1.5 * X]), X[None]):
        for run in (fnad.vmap(row), fnad.jit(fnad.vmap(row))):
            np.testing.assert_allclose(run(rows), [row(x) for x in rows], rtol=1e-14)


def test_what_needs_no_mask_works_there():
    def row(x):
        y = x * 1.0
        y[x > 0] = np.exp(x[x > 0]) * x[x > 0].mean()
        y[x < 0] *= 2.0
        return y.sum() + (x[x > 0] @ x[x > 0]) + x[x > 1].astype(np.float32).sum() + np.max(x[x > 0].clip(0, 1) ** 2)

    rows = np.stack([X, *OTHERS])
    np.testing.assert_allclose(fnad.vmap(row)(rows), [row(x) for x in rows], rtol=1e-7)


def test_a_mask_of_another_shape():
    for f in (lambda x: x[x[:2] > 0], lambda x: x.__setitem__(x[:2] > 0, 1.0), lambda x: x[None][x > 0]):
        with pytest.raises(OutOfRangeError, match="boolean index did not match"):
            fnad.jit(f)(X)


# ---- random programs -------------------------------------------------------------------------------------------------

CONDITIONS = [lambda a: a > 0, lambda a: a <= 1, lambda a: (a % 2) == 0, lambda a: np.abs(a) >= 2, lambda a: a != a[0]]
MADE = [
    lambda a, m: a[m],
    lambda a, m: np.sort(a[m])[::-1],
    lambda a, m: np.unique(a[m]),
    lambda a, m: a[np.nonzero(m)],
    lambda a, m: np.compress(m, a) * len(a[m]),
    lambda a, m: a[m] * a[m].sum(),
    lambda a, m: np.cumsum(a[m] + 1),
    lambda a, m: np.setdiff1d(a, a[m]),
]
WRITTEN = [
    lambda a, m: a.__setitem__(m, a[m] * 2),
    lambda a, m: a.__setitem__(m, a[m][::-1]),
    lambda a, m: a.__setitem__(~m, -1.0),
    lambda a, m: a.__setitem__(np.flatnonzero(m)[:2], a[-1]),
    lambda a, m: a.__setitem__(m, np.arange(1.0 * a[m].size)),
]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, len(CONDITIONS) - 1), st.integers(0, len(MADE) + len(WRITTEN) - 1)), max_size=4),
    st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=2, max_size=4),
)
def test_random_programs_of_masks_compute_as_numpy(steps, inputs):
    """A program of masks, jitted, on inputs that take different paths: NumPy's results."""

    def program(x):
        a, found = x * 1.0, []
        for condition, made in steps:
            mask = CONDITIONS[condition](a)
            if made < len(MADE):
                found.append(MADE[made](a, mask))
            else:
                WRITTEN[made - len(MADE)](a, mask)
        return (a, *found)

    jitted = fnad.jit(program)
    for x in inputs:
        for expected, result in zip(program(np.array(x, float)), jitted(np.array(x, float)), strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("function", [np.real, np.imag, np.sort, np.cumsum, np.flip, np.ravel, np.fft.fft, np.diff])
def test_a_function_of_a_selection_alone_gets_its_elements(function):
    """The mask is decided when the function asks for the value, whatever else was asked for before."""

    def chosen(z):
        return np.sum(np.abs(function(z[z.real > 0])) ** 2)

    z = np.array([1.0, -2.0, 3.0, -4.0, 5.0]) * (1.0 + 0.5j)
    value, pullback = fnad.vjp(chosen, z)
    assert value == pytest.approx(chosen(z))
    step = 1e-6
    slopes = [(chosen(z + step * e) - chosen(z - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(pullback(1.0)[0].real, slopes, atol=1e-6)
