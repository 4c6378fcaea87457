"""Functions that put traced values into arrays NumPy made for them, or read arrays from outside at traced indices."""

import functools
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest
import scipy.signal

import fnad
from fnad.errors import FnadError, MutationError, TracerEscapeError

START = np.array([1.0, 2.0, 3.0, 4.0])
TABLE = np.arange(6.0) ** 2
ORDER = np.array([3, 1, 0, 2, 2, 1])
X = np.array([0.5, 1.5, 2.5])
calls = 0


def filled(x):
    u = np.zeros(4)
    u[0] = 1.0
    for i in range(1, 4):
        u[i] = u[i - 1] * x[i - 1]
    return u.sum()


def started(x):
    u = START.copy()
    u[1:] += x
    u[0] = x[0] ** 2
    return np.sum(u * u)


def looked_up(x):
    i = np.floor(x * 2).astype(int)
    return np.sum(TABLE[i] * x + TABLE[ORDER[i] + 1])


def interpolated(x, table=TABLE, *, step=0.5):
    at = np.clip(np.floor(x / step).astype(int), 0, len(table) - 2)
    t = x / step - at
    return np.sum((1 - t) * table[at] + t * table[at + 1])


def row_of(x):
    return TABLE[np.rint(x).astype(int)] * x


def through_a_helper(x):
    return sum(row_of(x[i : i + 1]).sum() for i in range(3))


def recursive(x, depth=2):
    return looked_up(x) if depth == 0 else x[0] * recursive(x, depth - 1)


def closed_over():
    weights, start = np.array([1.0, 2.0, 3.0]), np.ones((3, 3))

    def inner(x):
        u = np.array(start)
        u[1] = x
        return weights[x.astype(int)] @ u @ x

    return lambda x: inner(x) * 2


def accumulated(x):
    total, rows = np.zeros(2), np.empty((3, 2))
    for i, a in enumerate(x):
        rows[i] = a, a * a
        total += rows[i]
    np.multiply(rows, 2.0, out=rows)
    return total.prod() + rows.sum()


class Model:
    def __init__(self):
        self.table = TABLE


MODEL = Model()
FUNCTIONS = {
    "filled": filled,
    "started": started,
    "looked up": looked_up,
    "a default": interpolated,
    "a helper": through_a_helper,
    "recursive": recursive,
    "closed over": closed_over(),
    "accumulated": accumulated,
    "a part": functools.partial(lambda w, x: w[x.astype(int)] @ x, START),
    "take of an attribute": lambda x: np.sum(np.take(MODEL.table, x.astype(int)) * x),
    "a view of it": lambda x: TABLE.reshape(2, 3).T[x.astype(int)].sum() * x[0],
}


def differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivatives(name):
    f = FUNCTIONS[name]
    before = START.copy(), TABLE.copy()
    value, gradient = fnad.value_and_grad(f)(X + 0.1)
    assert value == pytest.approx(f(X + 0.1), rel=1e-14)
    np.testing.assert_allclose(gradient, differences(f, X + 0.1), rtol=1e-6)
    np.testing.assert_allclose(fnad.jvp(f, (X + 0.1,), (np.ones(3),))[1], gradient.sum(), rtol=1e-14)
    np.testing.assert_allclose(fnad.vjp(f, X + 0.1)[1](1.0)[0], gradient, rtol=1e-14)
    compiled = fnad.jit(fnad.value_and_grad(f))(X + 0.1)
    np.testing.assert_allclose(compiled[1], gradient, rtol=1e-13)
    assert fnad.jit(f)(X + 0.1) == pytest.approx(value, rel=1e-14)
    second = fnad.jvp(fnad.grad(f), (X + 0.1,), (np.ones(3),))[1]
    np.testing.assert_allclose(second, differences(lambda x: fnad.grad(f)(x).sum(), X + 0.1), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(START, before[0])
    np.testing.assert_array_equal(TABLE, before[1])


def test_what_is_outside_may_change():
    table = np.array([1.0, 2.0])

    def f(x):
        return table[x.astype(int)].sum() * x[0]

    run = fnad.jit(f)
    assert run(np.array([1.0])) == 2
    table[1] = 5.0
    assert run(np.array([1.0])) == 5
    table = np.array([7.0, 8.0])
    assert run(np.array([1.0])) == 8


# ---- what cannot be followed -----------------------------------------------------------------------------------------


def test_an_array_from_outside_is_not_written_to():
    buffer = np.zeros(3)

    def f(x):
        buffer[0] = x[0]
        return buffer.sum()

    with pytest.raises(MutationError, match="was written into an ordinary array"):
        fnad.grad(f)(X)
    np.testing.assert_array_equal(buffer, 0)


def test_an_array_written_to_by_who_holds_it():
    table = np.arange(4.0)
    holder = Model()
    holder.table = table

    def f(x):
        mine = table
        holder.table[0] += 1.0
        return mine[x.astype(int)].sum() * x[0]

    assert fnad.value_and_grad(f)(np.ones(3))[0] == 3.0
    assert fnad.value_and_grad(f)(np.zeros(3) + 0.5)[1][0] == 6.0  # the third call, which finds it two larger


def test_functions_that_bind_names_outside():
    def f(x):
        global calls  # noqa: PLW0603
        calls += 1
        return TABLE[x.astype(int)].sum()

    before = calls
    np.testing.assert_array_equal(fnad.grad(f)(X), 0.0)
    assert calls == before + 1

    count = 0

    def g(x):
        nonlocal count
        count += 1
        return np.sum(x * count)

    assert fnad.grad(lambda x: g(x) * TABLE[x.astype(int) + 1][0])(X).sum() == 3
    assert count == 1


def test_a_variable_bound_anew_meanwhile():
    table = np.arange(4.0)

    def replace():
        nonlocal table
        table = table + 1

    def f(x):
        replace()
        return table[x.astype(int)].sum() * x[0]

    assert fnad.grad(f)(np.full(3, 0.5))[0] == 3.0
    assert fnad.grad(f)(np.full(3, 0.5))[0] == 6.0


def test_attributes_of_functions_are_their_own():
    def f(x):
        f.calls += 1
        return TABLE[x.astype(int)].sum() * x[0]

    f.calls = 0
    fnad.grad(f)(X)
    assert f.calls == 1


def test_an_array_in_an_attribute_is_read_at_traced_places():
    def f(x):
        return MODEL.table[x.astype(int)].sum()

    assert fnad.jit(f)(X) == MODEL.table[X.astype(int)].sum()


# ---- how often a function runs ---------------------------------------------------------------------------------------


LARGE = np.ones(2**15)


def test_a_function_runs_once_whatever_it_writes_into_its_arguments():
    def f(x, buffer, others):
        runs.append(buffer.flags.writeable)
        buffer[0] = 2.0
        others["words"][0] = "a word"
        others["objects"][0] = x[0]
        np.sort(buffer)
        return np.sum(x * buffer) + others["objects"][0]

    runs = []
    others = {"words": np.array(["one", "two"]), "objects": np.array([None, 1]), "long": np.ones(2, np.longdouble)}
    np.testing.assert_array_equal(fnad.grad(f)(X, START[:3], others), [3.0, *START[1:3]])
    assert runs == [True]
    assert others["words"][0] == "one"
    assert others["objects"][0] is None


def test_any_refusal_of_a_view_brings_copies():
    def f(x, buffer):
        runs.put(buffer.flags.writeable)
        if not buffer.flags.writeable:
            raise ValueError("this buffer must be writable")
        return np.sum(x * buffer[:3])

    runs = SimpleQueue()
    np.testing.assert_array_equal(fnad.grad(f)(X, LARGE), LARGE[:3])
    assert [runs.get() for _ in range(runs.qsize())] == [False, True]


def test_a_value_error_of_the_users_is_raised_as_it_is():
    def f(x, *others):
        runs.put(x)
        raise ValueError("read-only, I say")

    for others, count in (((), 1), ((START,), 1), ((LARGE,), 2)):
        runs = SimpleQueue()
        with pytest.raises(ValueError, match=r"^read-only, I say$") as raised:
            fnad.grad(f)(X, *others)
        assert runs.qsize() == count
        assert raised.value.__context__ is None


def first_is(u, value):
    """Write into an array that another function has made, which needs a second run."""
    u[0] = value
    return u


def fills(x, buffer=None):
    if buffer is not None:
        buffer[0] = 2.0
    u = first_is(np.zeros(3), x[0])
    return np.sum(u * x) if buffer is None else np.sum(u * buffer[:3])


def test_a_function_that_fills_and_writes_into_an_argument_runs_twice():
    f, runs = counted(fills)
    np.testing.assert_array_equal(fnad.grad(f)(X, np.ones(3)), [2.0, 0.0, 0.0])
    assert runs.qsize() == 2


def in_a_loop(x):
    u = np.ones(4)
    for i in range(1, 4):
        u[i] = u[i - 1] * x[0]
    return u.sum()


def accumulated(x):
    u = np.zeros(3)
    u += x
    return u.sum()


def through_a_view(x):
    u = np.zeros((3, 2))
    column = u.T[1]
    column[:] = x
    return u.sum()


def in_rows(x):
    rows = [np.zeros(3) for _ in range(2)]
    for row in rows:
        row[0] = x[1]
    return rows[0][0] * rows[1][0]


def by_functions(x):
    y = 2 * x[0]
    u, v = np.zeros(3), np.empty(2)
    np.add(y, 1, out=u[:1])
    v.fill(y)
    return u.sum() * v.sum()


def within(x):
    u = np.zeros(3)

    def add():
        u[1] = x[1]

    add()
    return u.sum()


def in_an_attribute(x):
    class Sums:
        def __init__(self):
            self.kept = np.zeros(3)
            self.kept[0] += x[0]

    return Sums().kept.sum()


def of_a_copy(x):
    u, v = START.copy(), np.copy(TABLE)
    u[0], v[1] = x[0], x[1]
    return u.sum() * v.sum()


def appended(x):
    rows = []
    rows.append(np.zeros(2))
    rows[0][0] = x[0]
    return rows[0].sum()


FILLING = (
    *(filled, started, in_a_loop, accumulated, through_a_view, in_rows, by_functions, within, in_an_attribute),
    *(of_a_copy, appended),
)


@pytest.mark.parametrize("f", FILLING)
def test_a_function_that_fills_what_it_makes_runs_once(f):
    run, runs = counted(f)
    slope = fnad.grad(run)(X)
    assert runs.qsize() == 1
    np.testing.assert_allclose(slope, [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)], rtol=1e-6, atol=1e-8)
    assert fnad.jit(f)(X) == pytest.approx(f(X), rel=1e-14)


def test_an_array_that_is_filled_with_ordinary_numbers_is_ordinary():
    def f(x):
        u, v, w = np.zeros((2, 2)), np.zeros(len(x)), np.zeros(3, "U3")
        for i in range(2):
            u[i, 0] = i
        for i in range(x.shape[0]):
            v[i] = i
        w[0] = str(x.dtype)
        kinds.append({type(u), type(v), type(w)})
        return u.sum() * v.sum() * x.sum()

    kinds = []
    fnad.grad(f)(X)
    assert kinds == [{np.ndarray}]


def test_a_function_never_runs_a_third_time():
    f, runs = counted(fills)
    with pytest.raises(MutationError, match=r"in first_is:  u\[0\] = value\n  make the array with fnad\.numpy"):
        fnad.grad(f)(X, LARGE)
    assert runs.qsize() == 2
    with fnad.config.override(strict_mutation=True), pytest.raises(MutationError, match="strict_mutation forbids"):
        fnad.jit(lambda x: fnad.grad(f)(x, np.ones(3)))(X)
    assert runs.qsize() <= 4


def counted(f):
    """Return a function like `f`, and the queue that grows where it runs: that of an abandoned run stays."""
    runs = SimpleQueue()

    @functools.wraps(f)
    def run(*args):
        runs.put(0)
        return f(*args)

    return run, runs


def in_a_list(x):
    tables = [np.arange(3.0), np.arange(3.0) + x[0]]
    return fnad.scan(lambda c, i: (c + tables[0][i] * tables[1][i], None), x[1], np.arange(3))[0]


INNER = {
    "grad": lambda f: lambda x: np.sum(fnad.grad(f)(x)),
    "jit": lambda f: lambda x: fnad.jit(f)(x),
    "scan": lambda f: lambda x: fnad.scan(lambda c, _: (c + f(x), None), 0.0 * x[0], length=2)[0],
    "cond": lambda f: lambda x: fnad.cond(x[0] > 0.0, f, lambda x: x[0], x),
    "checkpoint": lambda f: lambda x: fnad.checkpoint(f)(x),
    "jit of grad of checkpoint": lambda f: lambda x: np.sum(fnad.jit(fnad.grad(fnad.checkpoint(f)))(x)),
}
OUTER = {"grad": fnad.grad, "jit": fnad.jit, "jit of grad": lambda f: fnad.jit(fnad.grad(f))}


def test_large_traced_arguments_of_an_inner_function():
    def f(x, y):
        y[0] = 2.0
        return np.sum(x * y[:3])

    with fnad.config.override(executor="interpreter"):
        for run in (fnad.jit(fnad.grad(f)), fnad.grad(lambda x, y: np.sum(fnad.grad(f)(x, y) * x))):
            np.testing.assert_array_equal(run(X, LARGE), [2.0, 1.0, 1.0])


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_functions_within_functions_run_twice(inner, outer):
    def refused(x):
        return fills(x).__float__()

    f, runs = counted(fills)
    g, runs_of_g = counted(INNER[inner](f))
    with fnad.config.override(executor="interpreter"):
        alone = OUTER[outer](INNER[inner](lambda x: x[0] * x[0]))(X)
        np.testing.assert_array_equal(OUTER[outer](g)(X), alone)
    assert (runs.qsize(), runs_of_g.qsize()) == (2, 2)
    f, runs = counted(refused)
    g, runs_of_g = counted(INNER[inner](f))
    with pytest.raises(TracerEscapeError, match="its float"):
        OUTER[outer](g)(X)
    assert (runs.qsize(), runs_of_g.qsize()) == (2, 2)


ALONE = {
    "scan": lambda f: fnad.scan(lambda c, _: (c + f(X * c), None), 1.0, length=1)[0],
    "while_loop": lambda f: fnad.while_loop(lambda c: c < 1.25, lambda c: c + f(X * c), 1.0),
    "cond": lambda f: fnad.cond(np.True_, f, np.sum, X) + 1.0,
    "vmap": lambda f: fnad.vmap(f)(X[None])[0] + 1.0,
    "map": lambda f: fnad.map(f, X[None])[0] + 1.0,
    "checkpoint": lambda f: fnad.checkpoint(f)(X) + 1.0,
}


@pytest.mark.parametrize("name", ALONE)
def test_a_function_that_fills_in_control_flow_alone(name):
    """What it does to others, it does once: of the run that came to nothing nothing is left."""
    seen = []

    def f(x):
        fnad.callback(seen.append, x[0])
        return fills(x)

    with fnad.config.override(executor="interpreter"):
        assert ALONE[name](f) == 1.25
    assert len(seen) == 1


def test_arrays_that_only_the_outermost_function_makes():
    assert fnad.grad(in_a_list)(X).tolist() == [3.0, 1.0, 0.0]


def test_no_handler_of_the_users_sees_the_first_run():
    def f(x):
        try:
            return np.sum(fnad.grad(fills)(x))
        except Exception:  # noqa: BLE001
            return 100.0 * x[0]

    assert fnad.grad(f)(X)[0] == 2.0


def test_what_ended_the_second_run_is_the_cause_of_the_error():
    def f(x):
        assert np.ones(3).flags.owndata, "mine"  # which a traced array has not
        return first_is(np.zeros(3), x[0]).sum()

    with pytest.raises(MutationError) as raised:
        fnad.grad(f)(X)
    assert "flags" in str(raised.value.__cause__)


# ---- nothing is left -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: float(first_is(np.zeros(3), x[0])), "in <lambda>:  .* float(first_is"),
        (lambda x: scipy.signal.find_peaks(first_is(np.zeros(3), x[0])), "scipy.signal.find_peaks has no rule"),
        (lambda x: first_is(first_is(np.zeros(3), x[0]), x), "f64[3] does not broadcast|could not broadcast"),
        (lambda x: np.sum(first_is(first_is(np.zeros(3), x[0]) * X, x[1]) + x[2].__float__()), "its float"),
    ],
    ids=["float", "SciPy", "the same line later", "a copy"],
)
@pytest.mark.parametrize("transform", [fnad.grad, fnad.jit])
def test_the_error_is_that_of_the_attempt_that_got_further(transform, f, error):
    with pytest.raises(FnadError) as raised:
        transform(f)(X)
    assert re.search(error.replace("(", r"\(").replace("[", r"\["), str(raised.value)), raised.value


def test_the_error_is_the_first_where_the_second_attempt_fails_before():
    def f(x):
        assert np.ones(3).flags.owndata  # which a traced array has not
        return first_is(np.zeros(3), x[0]).sum()

    with pytest.raises(MutationError, match=r"in first_is:  u\[0\] = value\n  make the array with fnad\.numpy"):
        fnad.grad(f)(X)


def test_nothing_is_left_of_a_second_attempt():
    with pytest.raises(FnadError):
        fnad.grad(lambda x: float(first_is(np.zeros(3), x[0])))(X)
    assert type(np.zeros(1)) is np.ndarray
    assert fnad.grad(lambda x: x[0] * (type(np.zeros(1)) is np.ndarray))(X)[0] == 1


def test_an_exception_is_not_taken_for_an_escape_of_the_attempt_before():
    def refuse(u):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fnad.grad(lambda x: (u := np.zeros(3), u.__setitem__(0, x[0]), int("mine"), refuse(u)))(X)


def test_an_exception_of_the_users_passes():
    def f(x):
        u = np.zeros(3)
        u[0] = x[0]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fnad.grad(f)(X)
    assert fnad.grad(lambda x: x[0] * (type(np.zeros(1)) is np.ndarray))(X)[0] == 1


class Odd:
    """An object of a class whose module is no text, as those of Cython's functions."""

    __module__ = property(lambda self: "unknown")  # pyright: ignore[reportAssignmentType]

    def __call__(self, x):
        return x


def test_a_class_whose_module_is_no_text():
    assert isinstance(Odd.__module__, property)
    square = Odd()

    def opened(x):
        u = np.zeros(2)
        u[0] = square(x)
        return u.sum()

    assert fnad.grad(opened)(2.0) == 1.0


def test_another_thread_gets_ordinary_arrays_during_a_trace():
    barrier = threading.Barrier(2)

    def plain(x):
        barrier.wait(60)
        made = [type(np.zeros(2)) is np.ndarray for _ in range(100)]
        return x[0] * all(made)

    def fills(x):
        u = np.zeros(2)
        u[1] = x[1]
        return u.sum()

    def fills_beside_it(x):
        barrier.wait(60)
        return fills(x)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(fnad.grad(plain), X)
        second = [pool.submit(fnad.grad(f), X) for f in (fills_beside_it, *[fills] * 19)]
        assert first.result()[0] == 1
        assert all(found.result()[1] == 1 for found in second)
