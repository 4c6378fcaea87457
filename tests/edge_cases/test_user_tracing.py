"""What a traced function reads from outside, what it does with a traced value, and what tells calls apart."""

from __future__ import annotations

import contextvars
import copy
import functools
import math
import numbers
import operator
import random
import statistics
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fnad import config, errors, grad, jit, jvp, value_and_grad, vjp
from tests.together import in_groups

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # what is read changes on purpose

Function = Callable[..., Any]
X = np.array([1.0, 2.0, 3.0])

runs = pytest.mark.parametrize(
    "run",
    [
        pytest.param(jit, id="jit"),
        pytest.param(lambda f: lambda *args: value_and_grad(f)(*args)[0], id="value_and_grad"),
        pytest.param(lambda f: jit(lambda *args: value_and_grad(f)(*args)[0]), id="jit of value_and_grad"),
        pytest.param(lambda f: lambda *args: vjp(f, *args)[0], id="vjp"),
        pytest.param(lambda f: jit(jit(f)), id="jit of jit"),
    ],
)


# ---- row 64: what a function reads from outside ----------------------------------------------------------------------

scale: Any = 2.0
table: Any = {"scale": 2.0, "rows": [1.0, np.array(2.0)]}


def scaled(x: Any) -> Any:
    return np.sum(x) * scale


@runs
def test_row_64_global(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = run(scaled)
    for value in (2.0, 3.0, 3, np.float32(4), np.array(5.0), 2.0, -0.0, 0.0):
        monkeypatch.setitem(globals(), "scale", value)
        found = f(X)
        assert found == scaled(X)
        assert math.copysign(1, found) == math.copysign(1, scaled(X))
        assert found.dtype == np.asarray(scaled(X)).dtype


@runs
def test_row_64_content_of_a_global(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "table", copy.deepcopy(table))
    f = run(lambda x: np.sum(x) * table["scale"] * table["rows"][1] + len(table["rows"]))
    assert f(X) == 26
    table["scale"] = 3.0
    assert f(X) == 38
    table["rows"][1][...] = 1.0
    assert f(X) == 20
    table["rows"].append(1)
    assert f(X) == 21


@runs
def test_row_64_closure(run: Any) -> None:
    factor: Any = 2.0
    f = run(lambda x: np.sum(x) * factor)
    assert f(X) == 12
    factor = 3.0
    assert f(X) == 18
    factor = np.array([1.0, 0.0])[0]
    assert f(X) == 6


@runs
def test_row_64_captured_array_written_to(run: Any) -> None:
    w = np.array([1.0, 2.0, 3.0])
    f = run(lambda x: np.sum(x * w))
    assert f(X) == 14
    w[0] = 10
    assert f(X) == 23
    w *= 0
    assert f(X) == 0


def test_row_64_large_captured_array_written_to() -> None:
    w = np.ones(100_000)
    f = jit(lambda x: np.sum(x * w))
    assert f(np.ones(100_000)) == 100_000
    w[77_777] = 2
    assert f(np.ones(100_000)) == 100_001


@runs
def test_row_64_function_redefined(run: Any) -> None:
    inner: Function = np.sum
    f = run(lambda x: inner(x) * 1.0)
    assert f(X) == 6

    inner = lambda x: np.prod(x) * 2  # noqa: E731
    assert f(X) == 12


@runs
def test_row_64_lambdas_of_a_loop(run: Any) -> None:
    made = [run(lambda x, k=k: np.sum(x) * k) for k in (1.0, 2.0, 3.0)]
    assert [f(X) for f in made] == [6, 12, 18]
    late: list[Function] = []
    for k in (1.0, 2.0):
        late.append(run(lambda x: np.sum(x) * k))  # noqa: B023, PERF401  # what this test is about
    assert [f(X) for f in late] == [12, 12]


@runs
def test_row_64_defaults_and_code(run: Any) -> None:
    def g(x: Any, k: Any = 2.0) -> Any:
        return np.sum(x) * k

    f = run(g)
    assert f(X) == 12
    g.__defaults__ = (1.0,)
    assert f(X) == 6
    g.__code__ = (lambda x, k=None: np.sum(x) * 7.0).__code__
    assert f(X) == 42


class Model:
    offset: Any = 1.0

    def __init__(self, w: Any) -> None:
        self.w = w
        self.layers = [w, w]

    def __call__(self, x: Any) -> Any:
        return np.sum(x * self.w) + self.bias()

    def bias(self) -> Any:
        return self.offset * len(self.layers)

    @property
    def twice(self) -> Any:
        return 2 * self.w

    def through_property(self, x: Any) -> Any:
        return np.sum(x * self.twice)


@runs
@pytest.mark.parametrize(
    "call", [lambda m: m, lambda m: m.__call__, lambda m: lambda x: m(x)], ids=["object", "method", "closure"]
)
def test_row_64_objects(call: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(2.0)
    f = run(call(model))
    assert f(X) == 14
    model.w = 3.0
    assert f(X) == 20
    model.layers.append(1)
    assert f(X) == 21
    monkeypatch.setattr(Model, "offset", 10.0)
    assert f(X) == 48
    model.offset = 0.0
    assert f(X) == 18
    monkeypatch.setattr(Model, "bias", lambda self: 100.0)
    assert f(X) == 118


@runs
def test_row_64_property(run: Any) -> None:
    model = Model(2.0)
    f = run(model.through_property)
    assert f(X) == 24
    model.w = np.array([0.0, 0.0, 1.0])
    assert f(X) == 6


@runs
def test_row_64_other_object_of_one_class(run: Any) -> None:
    models = [Model(1.0), Model(2.0)]
    chosen = models[0]
    f = run(lambda x: chosen(x))
    assert f(X) == 8
    chosen = models[1]
    assert f(X) == 14
    assert run(functools.partial(operator.call, models[0]))(X) == 8


@runs
def test_row_64_partial(run: Any) -> None:
    w = np.array([1.0, 0.0, 0.0])
    f = run(functools.partial(lambda w, x, k: np.sum(w * x) * k, w, k=2.0))
    assert f(X) == 2
    w[1] = 1
    assert f(X) == 6


class Family(type):
    common = 1.0


class Parent(metaclass=Family):
    inherited = 1.0


class Child(Parent):
    pass


local, context = threading.local(), contextvars.ContextVar("context", default=1.0)
local.value = 1.0
numbers_by_name, numbers_in_order = {"w": 1.0}, [1.0]
referent = Model(1.0)
reference, getter = weakref.ref(referent), operator.attrgetter("w")

PLACES: dict[str, tuple[Function, Function]] = {
    "a subclass that gets the name": (lambda: Child.inherited, lambda: setattr(Child, "inherited", 2.0)),
    "a metaclass": (lambda: Parent.common, lambda: setattr(Family, "common", 2.0)),
    "a thread-local": (lambda: local.value, lambda: setattr(local, "value", 2.0)),
    "a context variable": (context.get, lambda: context.set(2.0)),
    "behind a method of a dict": (functools.partial(numbers_by_name.get, "w"), lambda: numbers_by_name.update(w=2.0)),
    "behind a method of a list": (numbers_in_order.__len__, lambda: numbers_in_order.append(2.0)),
    "behind a weak reference": (lambda: reference().w, lambda: setattr(referent, "w", 2.0)),  # type: ignore[union-attr]
    "behind a getter": (lambda: getter(referent), lambda: setattr(referent, "w", 3.0)),
}


@pytest.mark.parametrize("name", PLACES)
def test_row_64_values_in_odd_places(name: str) -> None:
    read, change = PLACES[name]
    f = jit(lambda x: np.sum(x) * read())
    assert f(X) == 6 * read()
    before = read()
    change()
    assert read() != before
    assert f(X) == 6 * read()


def test_row_64_each_thread_has_its_own_values() -> None:
    f = jit(lambda x: np.sum(x) * local.number)
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        local.number = k
        found[k] = f(X)

    for k in range(3):
        thread = threading.Thread(target=work, args=(k,))
        thread.start()
        thread.join()
    assert found == {0: 0, 1: 6, 2: 12}


# ---- row 65: numbers that change by themselves -----------------------------------------------------------------------


generator, own = np.random.default_rng(0), random.Random(0)
DRAWS: dict[str, Function] = {
    "numpy.random": lambda x: x + np.random.normal(),  # noqa: NPY002
    "random": lambda x: x + random.random(),
    "numpy.random.Generator": lambda x: x + np.sum(generator.normal(size=3)),
    "random.Random": lambda x: x + own.random(),
}


@runs
@pytest.mark.parametrize("name", DRAWS)
def test_row_65_random_numbers(name: str, run: Any) -> None:
    f = run(DRAWS[name])
    assert len({float(f(0.0)) for _ in range(3)}) == 3


# ---- row 66: escapes -------------------------------------------------------------------------------------------------


@functools.singledispatch
def doubled(x: Any) -> Any:
    return 0.0 * x


@doubled.register
def _(x: np.ndarray) -> Any:
    return 2.0 * x


@doubled.register
def _(x: float) -> Any:
    return 20.0 * x


ESCAPES: dict[str, Function] = {
    "float": lambda x: float(x[0]) * x[0],
    "item": lambda x: x[0].item() * x[0],
    "int": lambda x: int(x[0]) * x[0],
    "complex": lambda x: complex(x[0]).real * x[0],
    "math": lambda x: math.sin(x[0]) * x[0],
    "asarray": lambda x: np.sum(np.asarray(x) * x),
    "array": lambda x: np.sum(np.array([x[0], x[1]]) * x[0]),
    "np.float64": lambda x: np.float64(x[0]) * x[0],
    "in": lambda x: x[0] * (x[0] in [1.0, 2.0]),
    "min": lambda x: min(x[0], x[1]) * x[0],
    "max of an array": lambda x: max(x) * x[0],
    "sorted": lambda x: sorted(x)[0],
    "sum": lambda x: sum(x),
    "if": lambda x: x[0] if x[0] > 0 else -x[0],
    "while": lambda x: [x := x / 2 for _ in iter(lambda: bool(np.sum(x) > 1), False)] and np.sum(x),
    "and": lambda x: (x[0] > 0 and x[1]) * x[0],
    "not": lambda x: x[0] * (not x[1]),
    "range": lambda x: sum(x[0] for _ in range(x[1])),
    "repeated list": lambda x: len([0.0] * x[2].astype(int)) * x[0],
    "index of a list": lambda x: [1.0, 2.0, 3.0][x[0].astype(int)] * x[0],
    "round": lambda x: round(x[0]) * x[0],
    "format": lambda x: len(f"{x[0]:.3f}") * x[0] * 0,
    "tolist": lambda x: x.tolist()[0] * x[0],
    "tobytes": lambda x: len(x.tobytes()) * x[0],
    "str": lambda x: float(str(x[0])) * x[0],
    "fromiter": lambda x: np.sum(np.fromiter(x, float) * x),
    "full": lambda x: np.sum(np.full(2, x[0]) * x[0]),
    "linspace": lambda x: np.sum(np.linspace(x[0], x[1], 3)),
    "arange": lambda x: np.sum(np.arange(x[0]) * x[0]),
    "vectorize": lambda x: np.sum(np.vectorize(lambda t: t * t)(x)),
    "apply_along_axis": lambda x: np.sum(np.apply_along_axis(lambda t: t * t, 0, x)),
    "object array": lambda x: np.sum(np.array([x[0], None])[:1]) * x[0],
    "buffer": lambda x: memoryview(x)[0] * x[0],
    "hash": lambda x: {x[0]: x[0]}[x[0]] * 2.0,
    "copy": lambda x: np.sum(copy.copy(x) * copy.deepcopy(x)),
    "equality": lambda x: x[0] * 1.0 if x[0] == 1.0 else x[0] * 2.0,
    "operator.index": lambda x: operator.index(x[0].astype(int)) * x[0],
    "divmod": lambda x: divmod(x[0], 0.7)[1] * x[0],
    "pow": lambda x: pow(x[0], 2) * x[1],
    "abs": lambda x: abs(-x[0]) * x[1],
    "reversed": lambda x: next(reversed(x)) * x[0] if hasattr(x, "__reversed__") else list(reversed(x))[0] * x[0],
    "unpacking": lambda x: (lambda a, b, c: a * b + c)(*x),
    "zip": lambda x: sum(a * b for a, b in zip(x, x, strict=True)),
    "math.fsum": lambda x: math.fsum(x),
    "math.hypot": lambda x: math.hypot(x[0], x[1]),
    "np.isscalar": lambda x: x[0] * (2.0 if np.isscalar(x[0]) else 3.0) * (1.0 if np.isscalar(x) else 5.0),
    "numbers": lambda x: x[0] * x[1] if isinstance(x[0], numbers.Real) else x[0],
    "singledispatch": lambda x: np.sum(doubled(x)) * doubled(x[0]),
    "all": lambda x: x[0] * all(x),
    "any": lambda x: x[0] * any(x),
    "interp": lambda x: np.interp(x[0], [0.0, 1.5], [0.0, 3.0]),
    "random": lambda x: x[0] * np.random.default_rng(0).normal(x[0]),
    "mgrid": lambda x: np.sum(np.mgrid[0 : x[0]]),
    "r_": lambda x: np.sum(np.r_[x, x] * 2.0),
    "meshgrid": lambda x: np.sum(np.meshgrid(x, x)[0] * x),
    "polyval": lambda x: np.polyval([1.0, 2.0], x[0]),
    "asarray of a list": lambda x: np.sum(np.asarray([x[0], 1.0])),
    "list times array": lambda x: np.sum([x[0], x[1]] * np.ones(2)),
    "write of a list": lambda x: np.sum(np.ones(3) @ [x[0], x[1], x[2]]),
    "struct": lambda x: np.array([(x[0],)], [("a", float)])["a"][0],
    "ndenumerate": lambda x: sum(v * i[0] for i, v in np.ndenumerate(x)),
    "nditer": lambda x: sum(float(v) for v in np.nditer(x)) * x[0],
    "flat": lambda x: sum(v * v for v in x.flat),
    "out of a list": lambda x: np.multiply(x, [x[0], 1.0, 2.0]).sum(),
    "frombuffer": lambda x: np.frombuffer(x)[0] * x[0],
    "sum with start": lambda x: sum([x[0], x[1]], start=x[2]),
    "math.prod": lambda x: math.prod(x),
    "functools.reduce": lambda x: functools.reduce(operator.mul, x),
    "statistics": lambda x: statistics.mean(x),
    "slice": lambda x: np.sum(np.arange(3.0)[: x[0].astype(int)]) * x[0],
    "np.where one": lambda x: np.sum(x[np.where(x > 1.5)]),
    "mask": lambda x: np.sum(x[x > 1.5] ** 2),
    "nonzero": lambda x: np.sum(x[np.nonzero(x)]),
    "unique": lambda x: np.sum(np.unique(x)),
    "np.piecewise": lambda x: np.sum(np.piecewise(x, [x < 2.5, x >= 2.5], [lambda t: t * t, lambda t: t])),
    "poly": lambda x: np.poly1d([1.0, 0.0, 1.0])(x[0]),
    "Polynomial": lambda x: np.polynomial.Polynomial([1.0, 0.0, 1.0])(x[0]),
    "matrix_power": lambda x: np.sum(np.linalg.matrix_power(np.outer(x, x), 2)),
    "isinstance": lambda x: np.sum(x * x) if isinstance(x, np.ndarray) else x[0],
    "isinstance of a number": lambda x: x[0] * x[1] if isinstance(x[0], (float, np.float64)) else x[0],
}
"""What a user may do without a thought; each has to be right, or where it cannot be, an error."""

REFUSED = {
    *("tobytes", "hash"),
    *("range", "arange", "mgrid", "random"),
    *("object array", "struct", "buffer", "frombuffer"),
}
TEXT = {"str", "format"}


@in_groups("name", sorted(ESCAPES.keys() - REFUSED - TEXT))
def test_row_66_derivative_is_right(name: str) -> None:
    f, x = ESCAPES[name], X + 0.25  # where nothing jumps
    value, gradient = value_and_grad(f)(x)
    steps = 1e-6 * np.eye(3)
    assert value == pytest.approx(float(f(x)))
    np.testing.assert_allclose(gradient, [(f(x + h) - f(x - h)) / 2e-6 for h in steps], atol=1e-7)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_row_66_error_of_what_is_refused(name: str) -> None:
    with pytest.raises(errors.FnadError):
        value_and_grad(ESCAPES[name])(X + 0.25)


@pytest.mark.parametrize("name", sorted(TEXT))
def test_row_66_warning_of_what_decides_by_text(name: str) -> None:
    with pytest.warns(errors.ControlFlowWarning):
        value, _ = value_and_grad(ESCAPES[name])(X + 0.25)
    assert value == ESCAPES[name](X + 0.25)


@pytest.mark.parametrize(
    "name", ["float", "item", "int", "math", "asarray", "array", "np.float64", "if", "range", "min"]
)
def test_row_66_error_names_the_line_of_the_user(name: str) -> None:
    try:
        grad(ESCAPES[name])(X)
    except errors.FnadError as error:
        assert "test_user_tracing.py" in str(error)  # noqa: PT017  # an answer is as right as the error


# ---- row 67: traced values that are kept -----------------------------------------------------------------------------


def test_row_67_kept_in_a_cache() -> None:
    """What a cache keeps of one trace is not found in the next."""

    @functools.lru_cache
    def doubled(x: Any) -> Any:
        return x * 2

    for run, expected in ((grad, lambda x: 8 * x), (jit, lambda x: 4 * x * x)):
        for x in (1.0, 2.0, 3.0):
            try:
                assert run(lambda x: doubled(x) * doubled(x))(x) == expected(x)
            except errors.TracerEscapeError:
                continue


def test_row_67_error_caught_in_a_trace() -> None:
    def f(x: Any) -> Any:
        try:
            x[0].__float__()
        except errors.TracerEscapeError:
            return np.sum(x * x)
        return 0.0 * x[0]

    assert_array_equal(grad(f)(X), 2 * X)
    assert_array_equal(jit(grad(f))(X), 2 * X)


def test_row_67_generator_that_is_suspended_in_a_trace() -> None:
    """A trace that is open in a suspended generator is not the one under way elsewhere."""

    def suspended() -> Any:
        def f(x: Any) -> Any:
            return x * x

        yield grad(f)(3.0)
        yield jit(f)(3.0)

    steps = suspended()
    assert next(steps) == 6
    assert grad(lambda x: x * next(steps))(2.0) == 9


@pytest.mark.parametrize("executor", ["auto", "interpreter", "compiled"])
def test_row_67_threads_trace_at_once(executor: Any) -> None:
    barrier, found = threading.Barrier(4), dict[int, Any]()
    shared = jit(lambda x: np.sum(np.sin(x) * x))

    def work(k: int) -> None:
        def f(x: Any) -> Any:
            barrier.wait(timeout=300)
            y = np.sin(x) * k
            time.sleep(0.001)
            return np.sum(y * x)

        with config.override(executor=executor):
            found[k] = [value_and_grad(f)(X), jit(f)(X), shared(X + k)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        (value, gradient), jitted, other = found[k]
        np.testing.assert_allclose([value, jitted], k * np.sum(np.sin(X) * X))
        np.testing.assert_allclose(gradient, k * (np.sin(X) + X * np.cos(X)))
        np.testing.assert_allclose(other, np.sum(np.sin(X + k) * (X + k)))


# ---- row 68: what tells calls apart ----------------------------------------------------------------------------------


def static(f: Function) -> Function:
    return jit(f, static_argnums=1)


def test_row_68_static_numbers() -> None:
    f = static(lambda x, k: np.array([1.0]) * x * np.copysign(1.0, k))
    assert [f(1.0, k).item() for k in (0.0, -0.0, 0.0, -0.0)] == [1, -1, 1, -1]
    kinds = {int: 1.0, bool: 2.0, float: 3.0, np.float64: 4.0, np.float32: 5.0, np.int64: 6.0, str: 7.0, tuple: 8.0}
    g = static(lambda x, k: x * kinds[type(k)])
    values: list[Any] = [1, True, 1.0, np.float64(1), np.float32(1), np.int64(1), "1", (1,)]
    for _ in range(2):
        assert [g(1.0, value) for value in values] == [kinds[type(value)] for value in values]
    h = static(lambda x, k: x * kinds[type(k[0])])
    for _ in range(2):
        assert [h(1.0, (value,)) for value in values[:7]] == [kinds[type(value)] for value in values[:7]]


def test_row_68_static_nan_is_traced_once() -> None:
    traces: list[Any] = []

    def f(x: Any, k: Any) -> Any:
        traces.append(k)
        return x + k

    g = static(f)
    for nan in (float("nan"), float("nan"), np.nan):
        assert np.isnan(g(1.0, nan))
    assert len(traces) == 1


def test_row_68_mutable_static() -> None:
    with pytest.raises(errors.StaticArgumentError):
        static(lambda x, k: x * k[0])(1.0, [2.0])

    class Box:
        def __init__(self, k: Any) -> None:
            self.k = k

    box = Box(2.0)
    f = static(lambda x, box: x * box.k)
    assert f(1.0, box) == 2
    box.k = 3.0
    assert f(1.0, box) == 3
    assert f(1.0, Box(4.0)) == 4


def test_row_68_order_of_keywords_and_of_keys() -> None:
    f = jit(lambda **named: named["a"] - 2.0 * named["b"])
    assert f(a=1.0, b=2.0) == f(b=2.0, a=1.0) == -3
    g = jit(lambda t: t["a"] - 2.0 * t["b"] if list(t) == ["a", "b"] else t["b"] * 100.0)
    assert (g({"a": 1.0, "b": 2.0}), g({"b": 2.0, "a": 1.0})) == (-3, 200)
    layers = jit(lambda x, t: functools.reduce(lambda x, w: np.tanh(x * w), t.values(), x))
    for t in ({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}):
        assert layers(0.5, t) == pytest.approx(functools.reduce(lambda x, w: np.tanh(x * w), t.values(), 0.5))
    h = jit(lambda x, y=5.0: x * y)
    assert (h(1.0), h(1.0, 2.0), h(1.0, y=3.0), h(y=4.0, x=1.0), h(1.0)) == (5, 2, 3, 4, 5)


def test_row_68_cotangents_and_tangents_may_have_their_keys_in_another_order() -> None:
    f = lambda t: {"p": 2.0 * t["a"], "q": 3.0 * t["b"]}  # noqa: E731
    t = {"a": 1.0, "b": 1.0}
    assert vjp(f, t)[1]({"q": 10.0, "p": 1.0}) == ({"a": 2.0, "b": 30.0},)
    assert jvp(f, (t,), ({"b": 10.0, "a": 1.0},))[1] == {"p": 2.0, "q": 30.0}
    with pytest.raises(errors.CotangentError, match=r"cotangent\['p'\] is f64\[1\]"):
        vjp(f, t)[1]({"q": 10.0, "p": np.ones(1)})


def test_row_68_kinds_of_numbers() -> None:
    f = jit(lambda x, y: x * y)
    x = np.ones(1, np.float32)
    kinds: list[Any] = [
        2.0,
        2,
        np.float64(2),
        np.array(2.0),
        np.float32(2),
        np.int64(2),
        np.array(2),
        True,
        np.True_,
        2j,
    ]
    for _ in range(2):
        for y in kinds:
            assert f(x, y).dtype == (x * y).dtype, type(y)
            assert f(y, x) == y * x
    g = jit(lambda x: x * np.float32(1))
    for y in kinds:
        assert g(y).dtype == np.asarray(y * np.float32(1)).dtype, type(y)


def test_row_68_containers_are_told_apart() -> None:
    f = jit(lambda t: t[0] * (2.0 if isinstance(t, list) else 3.0) + len(t))
    assert (f([1.0]), f((1.0,)), f([1.0, 1.0]), f((1.0, None)), f({0: 1.0})) == (3, 4, 4, 5, 4)


# ---- row 69: layouts, closures of one code ---------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_row_69_layouts_are_told_apart(executor: Any) -> None:
    base = np.arange(12.0).reshape(3, 4)
    square = np.arange(9.0).reshape(3, 3)
    overlapping = np.lib.stride_tricks.as_strided(base, (3, 3), (8, 8))
    layouts = [square, square.T, np.asfortranarray(square), square[::-1], square[:, ::-1], square.astype(">f8")]
    layouts += [base[:, :3], base[:, 1:], base.T[:3], np.broadcast_to(base[0, :3], (3, 3)), overlapping]
    with config.override(executor=executor):
        f = jit(lambda x: np.cumsum(x, axis=0) @ np.sin(x) + x[0] * x[:, :1])
        g = jit(value_and_grad(lambda x: np.sum(np.cumsum(x, axis=1) * x.T)))
        for _ in range(2):
            for x in layouts:
                np.testing.assert_allclose(f(x), np.cumsum(x, axis=0) @ np.sin(x) + x[0] * x[:, :1])
                value, gradient = g(x)
                np.testing.assert_allclose(value, np.sum(np.cumsum(x, axis=1) * x.T))
                weights = x.T[:, ::-1].cumsum(axis=1)[:, ::-1] + np.cumsum(x, axis=1).T
                np.testing.assert_allclose(gradient, weights)


def test_row_69_shapes_and_dtypes_are_told_apart() -> None:
    f = jit(lambda x: np.sum(x * x.shape[0], axis=0) / x.dtype.itemsize)
    kinds = [np.ones(2, dtype) for dtype in (float, np.float32, int, np.int8, bool, complex)]
    kinds += [np.ones(3), np.ones((2, 1)), np.ones((2, 0))]
    for _ in range(2):
        for x in kinds:
            expected = np.sum(x * x.shape[0], axis=0) / x.dtype.itemsize
            found = f(x)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            assert_array_equal(found, expected)
