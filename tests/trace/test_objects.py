"""Traced values in objects: arrays of objects, dataclasses, caches, compiled functions, tables, what outlives them."""

import copy
import dataclasses
import functools
import math
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

import fnad
from fnad.errors import (
    ArgumentTypeError,
    MissingAttributeError,
    OutOfRangeError,
    TracerEscapeError,
    UnsupportedFunctionError,
)
from fnad.numpy import array as array_of_fnad

X = np.array([0.3, 1.0, 2.0, 0.7])


def check(f, *points):
    """Compare with NumPy and with the complex step, plain and under jit, and again at other points."""
    jitted, plain = fnad.jit(f), fnad.value_and_grad(f)
    for t in points or (1.5, 0.25, 1.5):
        value, derivative = plain(t)
        np.testing.assert_allclose([value, jitted(t)], float(f(t)), rtol=1e-13)
        np.testing.assert_allclose(derivative, np.imag(f(t + 1e-30j)) / 1e-30, rtol=1e-13)


# ---- arrays of objects and copies ------------------------------------------------------------------------------------


def filled(t):
    a = np.empty((2, 2), dtype=object)
    a[:] = [[t, 1], [0, t]]
    a[0, 1] = 3 * t
    return (a @ a)[0, 1] + a.astype(type(t))[1, 1] * 2


class Prior:
    """An operand that asks to be asked first."""

    __array_priority__ = 1000

    def __init__(self, value):
        self.value = value

    def __rmul__(self, other):
        return other * self.value

    __radd__ = __rmul__


def updated_objects(t):
    a = np.array([t, 2 * t, 1.0], dtype=object)
    a += t
    a *= t * X[:3]
    a -= 2
    return a.sum()


def filled_objects(t):
    a = np.zeros((2, 2), dtype=object)
    a[0] = [t, t * t]
    a[:, 1] = 3 * t
    a[1:] = t * X[:2]
    return a.sum() + a[0, 0] * a[0, 1]


OBJECTS = {
    "updated": updated_objects,
    "rows": filled_objects,
    "converted": lambda t: (
        (t * X).astype(object).sum() + (t * X).astype("O")[1] * (t * X)[:1].astype(np.dtype(object))[0]
    ),
    "with None": lambda t: np.array([t, None], dtype=object)[0] * t,
    "a power": lambda t: np.sum(np.array([t, 2 * t], dtype=object) ** 2),
    "full": lambda t: np.full((2,), t, dtype=object).sum() * np.full(3, fill_value=t, dtype="O")[2],
    "a product": lambda t: (np.array([[t, 1], [0, t]], object) @ np.array([[t, 2], [0, t]], object))[0, 1],
    "of arrays": lambda t: np.array([t * X, X], dtype="object").sum() + np.array([t * X, [1]], dtype=object)[0].sum(),
    "beside floats": lambda t: np.sum(np.array([t, t * t], dtype=object) * X[:2] * (t * X[:2])),
    "as an operand": lambda t: np.dot(np.array([t, 2 * t], dtype=object), t * X[:2]),
    "with texts": lambda t: sum(np.array([[t, "a"], [t * t, "b"]], dtype=object)[:, 0]),
    "joined": lambda t: np.concatenate([np.array([t], dtype=object), np.array([t * t], dtype=object)]).sum(),
    "by fnad's name": lambda t: array_of_fnad([t, t], dtype=np.dtype(object)).sum(),
    "filled": filled,
    "lists": lambda t: np.trace(np.array([[t, 1], [0, t]]) @ np.asarray([[t, 1], [0, t]])),
    "copies": lambda t: copy.copy(t) * copy.deepcopy([t, {"a": t * X}])[1]["a"].sum(),
    "a class with priority": lambda t: t * Prior(3.0) + ((t * X) * Prior(2.0)).sum() + (t + Prior(t)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_arrays_of_objects(name):
    check(OBJECTS[name])


def test_an_array_of_objects_is_returned_as_numbers():
    found = fnad.jit(lambda t: np.array([t, t * t], dtype=object))(3.0)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [3.0, 9.0])


MASKED = np.ma.array(X, mask=X > 1)


def test_what_is_computed_of_masked_arrays_alone_is_numpys():
    f = lambda x: np.sum(x * MASKED.filled(0.0) * MASKED.mean() * MASKED[0], where=~MASKED.mask)  # noqa: E731
    np.testing.assert_allclose(fnad.grad(f)(X), np.where(MASKED.mask, 0.0, X * MASKED.mean() * X[0]))


# ---- functions with a cache, and compiled ones -----------------------------------------------------------------------


@functools.lru_cache
def squared(t):
    return t * t


@functools.cache
def recursive(n, t):
    return t * n if n < 2 else recursive(n - 1, t) + t * recursive(n - 2, t)


def cached_inside():
    power = functools.lru_cache(maxsize=None)(lambda t, k=2: t**k)
    return lambda t: power(t, k=3) + power(t) + power(2.0)


@numba.njit
def weighted(t):
    total = t * 0
    for i in range(3):
        total += t * i
    return total


@numba.njit
def over_elements(x):
    out = np.empty_like(x)
    for i in numba.prange(x.size):
        out[i] = weighted(x[i]) * np.exp(x[i])
    return out.sum()


@numba.njit
def fill(out, t):
    for i in range(out.size):
        out[i] = t**i


@numba.vectorize
def doubled_below_1(t):
    return 2 * t if t < 1 else t * t


@numba.guvectorize("(),(n)->(),(n)")
def moments(t, x, total, powers):
    total[0] = 0
    for i in range(x.size):
        total[0] += t * x[i]
        powers[i] = x[i] ** 2


@numba.guvectorize([(numba.float64[:], numba.float64[:], numba.float64[:])], "(),(n)->()")
def scaled_sum(t, x, total):
    total[0] = t[0] * x.sum()


class Filling:
    """Compiled functions that no name of a function's leads to."""

    functions = SimpleNamespace(fill=fill)

    def __init__(self):
        self.run = [fill]

    def total(self, t):
        out = np.zeros(3, complex if np.iscomplexobj(t) else float)
        self.run[0](out, t)
        return applied(self.functions.fill, out[1:], t) + self.functions.fill.py_func.__code__.co_argcount


def applied(function, out, *args):
    function(out, *args)
    return out.sum()


def pure(t):
    """The ufuncs above, as they compute with complex numbers too."""
    elements = sum((2 * x if x.real < 1 else x * x) for x in t * X)
    return elements * 2 + sum(t * X**2) * 2 + np.sum((t * X) ** 2) + t * t * X.sum()


def by_ufuncs(t):
    if np.iscomplexobj(t):
        return pure(t)
    total, written = np.zeros(2), np.zeros(4)
    moments(t, np.stack([X**2, X**2]), total, np.zeros((2, 4)))
    moments(t, t * X, np.zeros(()), written)
    doubled = doubled_below_1(t * X, out=np.zeros(4)) + doubled_below_1(t * X)
    return doubled.sum() + total.sum() + written.sum() + scaled_sum(t, t * X)


CALLED = {
    "compiled, in an object": Filling().total,
    "compiled ufuncs": by_ufuncs,
    "a cache": lambda t: squared(t) + squared(2.0),
    "recursion": lambda t: recursive(5, t) + recursive(4, 2.0),
    "a cache in a closure": cached_inside(),
    "as a default": lambda t, f=squared: f(t) * t,
    "itself": squared,
    "compiled": lambda t: weighted(t) * weighted(2.0) + over_elements(t * X),
    "compiled itself": weighted,
}


@pytest.mark.parametrize("name", CALLED)
def test_functions_with_a_cache_and_compiled_ones(name):
    check(CALLED[name])


def test_no_cache_holds_a_traced_value():
    squared.cache_clear()
    for transform in (fnad.grad, fnad.jit):
        transform(CALLED["a cache"])(1.5)
    assert squared.cache_info().currsize == 1  # 2.0


class Cached:
    calls = 0

    @functools.lru_cache  # noqa: B019  # as it is found
    def squared(self, t, k=2):
        type(self).calls += 1
        return t**k

    @staticmethod
    @functools.lru_cache
    def tripled(t):
        return 3 * t

    @classmethod
    @functools.cache
    def halved(cls, t):
        return t / 2


class Derived(Cached):
    @functools.lru_cache  # noqa: B019
    def squared(self, t, k=2):
        return super().squared(t, k=k) + 1


MODEL, DERIVED = Cached(), Derived()
HELD: Any = {"f": functools.lru_cache(lambda t: t * t), "g": [squared]}
CACHED: dict[str, Any] = {
    "of an instance": lambda t: MODEL.squared(t) + MODEL.squared(2.0),
    "with options": lambda t: MODEL.squared(t, k=3),
    "of the class": lambda t: Cached.squared(MODEL, t),
    "static": lambda t: MODEL.tripled(t) * Cached.halved(t),
    "in dicts and lists": lambda t: HELD["f"](t) * HELD["g"][0](t),
    "behind a partial function": lambda t: SimpleNamespace(f=functools.partial(HELD["f"])).f(t),
}


@pytest.mark.parametrize("name", CACHED)
def test_caches_on_methods_and_in_containers(name):
    check(CACHED[name])


def test_a_cache_on_a_method_that_is_called_by_super():
    check(lambda t: DERIVED.squared(t))


def test_no_cache_on_a_method_holds_a_traced_value():
    Cached.squared.cache_clear()
    for transform in (fnad.grad, fnad.jit):
        transform(CACHED["of an instance"])(1.5)
    assert Cached.squared.cache_info().currsize == 1  # 2.0
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(MODEL.squared(x)))(np.array([1.0, 2.0])), [2.0, 4.0])


def test_a_cache_is_met_in_a_call_of_unpacked_arguments():
    assert fnad.grad(lambda t: MODEL.squared(*[t]))(1.5) == fnad.grad(lambda t: MODEL.squared(t))(1.5)


def test_what_finds_values_by_hash_is_an_error():
    with pytest.raises(TracerEscapeError, match=r"f.__wrapped__\(x\)"):
        fnad.grad(lambda t: len({t}))(1.5)


# ---- dataclasses -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Layer:
    w: Any
    activation: Any = np.tanh


@dataclasses.dataclass
class Net:
    first: Layer
    scale: float
    name: str = "net"

    def __post_init__(self):
        self.width = self.scale * 2


def energy(net):
    return np.sum(net.first.activation(net.first.w) ** 2) * net.scale + net.width + len(net.name)


def test_dataclasses_are_pytrees():
    for activation in (np.sin, np.cos):
        net = Net(Layer(X, activation), 2.0)
        gradient = fnad.grad(energy)(net)
        assert (type(gradient), gradient.name, gradient.first.activation) == (Net, "net", activation)
        slope = {np.sin: np.cos, np.cos: lambda x: -np.sin(x)}[activation](X)
        np.testing.assert_allclose(gradient.first.w, 4 * activation(X) * slope, rtol=1e-14)
        np.testing.assert_allclose(gradient.scale, np.sum(activation(X) ** 2), rtol=1e-14)
        assert gradient.width == 1.0  # an attribute like others
    jitted = fnad.jit(lambda net: dataclasses.replace(net, scale=energy(net)))
    for name in ("net", "another", "net"):
        net = Net(Layer(X), 2.0, name)
        found = jitted(net)
        assert (found.name, found.scale) == (name, pytest.approx(energy(net), rel=1e-14))
    np.testing.assert_array_equal(fnad.vmap(lambda layer: layer.w * 2)(Layer(X)), X * 2)
    assert fnad.scan(lambda c, _: (Layer(c.w * 2.0), None), Layer(1.0), None, 3)[0].w == 8.0


def test_a_dataclass_with_what_is_no_leaf():
    with pytest.raises(ArgumentTypeError, match=r"Layer.activation is of type set, neither an array nor hashable"):
        fnad.grad(lambda layer: np.sum(layer.w))(Layer(X, {1}))


def test_a_method_of_a_dataclass_watches_its_object():
    @dataclasses.dataclass
    class Model:
        w: Any

        @fnad.jit
        def run(self, x):
            return self.w * x

    model = Model(X)
    np.testing.assert_array_equal(model.run(2.0), X * 2)
    model.w = X * 10
    np.testing.assert_array_equal(model.run(2.0), X * 20)


# ---- what outlives a trace -------------------------------------------------------------------------------------------

TABLE: dict[str, Any] = {}
LOG: list[Any] = []
last: Any = None


class Fit:
    shared: Any = None

    def __init__(self):
        self.parts = {}

    def store(self, t):
        self.w = t * 2
        return self.w

    def deep(self, t):
        self.parts["a"] = t + 1
        return t

    def through(self, t):
        return self.store(t) + 1

    def of_class(self, t):
        Fit.shared = t
        return t


def in_global(t):
    global last  # noqa: PLW0603  # as it is found
    last = t * 2
    return last


def in_table(t):
    TABLE["a"] = t
    return TABLE["a"] * 2


def in_list(t):
    LOG.append(t)
    return LOG[-1] * 2


def in_closure():
    state, kept = {"n": 0}, None

    def of_dict(t):
        state["n"] = 0.5 + t
        return state["n"]

    def of_variable(t):
        nonlocal kept
        kept = t
        return kept

    return of_dict, of_variable


KEPT = {
    "an attribute": (Fit().store, "'w' of an object of class Fit", "self.w = t * 2"),
    "in a method within": (Fit().through, "'w' of an object of class Fit", "self.w = t * 2"),
    "an attribute's dict": (Fit().deep, "'a' of a dict", 'self.parts["a"] = t + 1'),
    "a class": (Fit().of_class, "'shared' of Fit", "Fit.shared = t"),
    "a global": (in_global, "'last' of the module", "last = t * 2"),
    "a table": (in_table, "'a' of a dict", 'TABLE["a"] = t'),
    "a list": (in_list, "a list", "LOG.append(t)"),
    "a dict around": (in_closure()[0], "'n' of a dict", 'state["n"] = 0.5 + t'),
    "a variable around": (in_closure()[1], "a variable of an enclosing function", "kept = t"),
}


@pytest.mark.parametrize("transform", [lambda f: f, fnad.grad, fnad.value_and_grad, lambda f: fnad.grad(fnad.grad(f))])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_stored_under_jit_is_an_error_at_once(name, transform):
    f, what, line = KEPT[name]
    with pytest.raises(TracerEscapeError) as error:
        fnad.jit(transform(f))(1.5)
    first, place, _ = str(error.value).split("\n")
    assert first == f"a traced value of aval f64[] was stored in {what}, which is there after the trace"
    assert place.endswith(f":  {line}")


def test_what_a_function_makes_for_itself_may_hold_traced_values():
    def f(t):
        class Made:
            value = t

            def product(self):
                return self.value * t

        fit, table, kept = Fit(), {}, [t, Made().product()]
        fit.w = t

        def step():
            nonlocal kept
            fit.w = fit.w * t
            table["a"] = fit.w
            kept = [t, *kept]

        step()
        step()
        return fit.w + table["a"] + sum(kept)

    assert fnad.jit(f)(1.5) == f(1.5)
    check(f)


# ---- Series and DataFrames -------------------------------------------------------------------------------------------


def test_a_table_whose_methods_are_not_those_of_an_array_is_refused():
    class Series:
        """As one of polars."""

        def to_numpy(self):
            return np.array([1.0, 2.0, 3.0])

        def std(self):
            return np.std(self.to_numpy(), ddof=1)

    for transform in (fnad.grad, fnad.jit, fnad.value_and_grad):
        with pytest.raises(ArgumentTypeError, match=r"methods are not those of an array\n.*\n.*x\.to_numpy\(\)"):
            transform(lambda s: s.std())(Series())
    assert fnad.jit(lambda s: s.std(ddof=1))(Series().to_numpy()) == Series().std()


def test_pandas_objects_are_taken_as_arrays():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0, 3.0], index=list("abc"))
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(fnad.grad(lambda s: np.sum(s**2))(series), 2 * series.to_numpy())
    np.testing.assert_array_equal(fnad.grad(lambda d: np.sum(d**2))(table), 2 * table.to_numpy())
    np.testing.assert_allclose(fnad.jit(lambda x, d, s: x @ d + s.mean())(x, table, series), x @ table.to_numpy() + 2)
    np.testing.assert_array_equal(fnad.jit(lambda n: n * 2)(pandas.Series([1, 2, 3])), [2, 4, 6])
    beside = {
        "left": (lambda x, d: np.sum(x * d["a"]), table["a"]),
        "right": (lambda x, d: np.sum(d["a"] * x) + x @ d.b.values, table["a"] + table["b"]),
        "a matrix": (lambda x, d: np.sum(np.dot(d.T, x)), table["a"] + table["b"]),
        "a condition": (lambda x, d: np.sum(np.where(d["a"] > 1, x, 0)), [0, 1, 1]),
        "a mask": (lambda x, d: np.sum(x[d["a"] > 1]), [0, 1, 1]),
        "values": (lambda x, d: np.sum(d.to_numpy().T * x), table["a"] + table["b"]),
        "a global": (lambda x, _: np.sum(x * series.to_numpy()), series),
    }
    for name, (f, expected) in beside.items():
        for gradient in (fnad.grad(f)(x, table), fnad.jit(lambda x: fnad.grad(f)(x, table))(x)):  # noqa: B023
            np.testing.assert_array_equal(gradient, expected, err_msg=name)
    by_pandas = (
        lambda x: (x * table["a"]).std(),
        lambda x: (table["a"] * x).var(),
        lambda x: np.multiply(x, table["a"]).std(),
        lambda x: (np.outer(x, x) @ table["a"]).std(),
        lambda x: (table * x[0]).mean().sum(),
        lambda x: (x * pandas.Series([1.0, np.nan, 3.0])).mean(),
        lambda x: (x[:2] - table).std().sum(),
        lambda x: (x * table["a"] + x * table["b"]).std(),
    )
    for f in by_pandas:
        value, slope = fnad.value_and_grad(f)(x)
        assert value == pytest.approx(f(x), rel=1e-14)
        by_differences = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        np.testing.assert_allclose(slope, by_differences, rtol=1e-6, atol=1e-8)
    for refused in (
        lambda x: x * series + x * table["a"],
        lambda x: np.ones((2, 1)) * x * series,
        lambda x: x * series + x * series[::-1],
    ):
        with pytest.raises(UnsupportedFunctionError, match="traced Series or DataFrame"):
            fnad.grad(lambda x: np.sum(refused(x)))(x)  # noqa: B023
    for error, f in (
        (OutOfRangeError, lambda d: d["a"].sum()),
        (MissingAttributeError, lambda d: d.iloc[0].sum()),
        (MissingAttributeError, lambda d: d.index.sum()),
    ):
        with pytest.raises(error, match=r"df\['a'\].to_numpy\(\)"):
            fnad.jit(f)(table)
    with pytest.raises(
        ArgumentTypeError, match=r"(?s)d is of type pandas\..*DataFrame .*dtype object.*df\[names\].to_nu"
    ):
        fnad.grad(lambda d: np.sum(d))(pandas.DataFrame({"a": [1.0], "b": ["x"]}))
    for f in (
        lambda x: pandas.DataFrame({"a": x})["a"].mean(),
        lambda x: pandas.DataFrame({"a": x}).shift(1).sum().sum(),
    ):
        with pytest.raises((TracerEscapeError, UnsupportedFunctionError), match=r"s.to_numpy\(\)"):
            fnad.grad(f)(x)
    with pytest.raises(TracerEscapeError, match="compiled code has no signature"):
        fnad.grad(lambda x: pandas.Series(x).diff().sum())(x)


WRAPPED: dict[str, Any] = {
    "a function in C": (functools.lru_cache(math.factorial), 3, 6),
    "a partial": (functools.cache(functools.partial(pow, 2)), 3, 8),
    "a class": (functools.lru_cache(complex), 2, 2),
    "a cached function": (functools.lru_cache(functools.lru_cache(abs)), -3, 3),
    "a method": (functools.cache("ab".count), "a", 1),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_a_cache_wraps_may_be_no_function_in_python(name: str) -> None:
    cached, argument, value = WRAPPED[name]
    assert fnad.jit(lambda x: x * cached(argument))(2.0) == 2.0 * value
    assert fnad.grad(lambda x: x * abs(cached(argument)))(2.0) == value
