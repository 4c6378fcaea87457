"""`jit`: what is traced again and when, static arguments, and that nothing read from outside is ever stale.

Programs run in the interpreter here, but for the tests of compilation: it is quicker to start.
"""

from __future__ import annotations

import array
import collections
import contextlib
import cProfile
import dataclasses
import functools
import gc
import itertools
import math
import re
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.stats
from numpy.testing import assert_array_equal

import fnad
from fnad import grad, jit, value_and_grad
from fnad.api.functions import jit as jit_module
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol
from fnad.ops.arithmetic import mul
from fnad.ops.shape import constant
from fnad.trace.environment import Environment
from fnad.trace.recording import Recorder
from tests.together import together

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # what is read changes on purpose

X = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with fnad.config.override(executor="interpreter"):
        yield


# ---- when it is traced -----------------------------------------------------------------------------------------------


def test_traced_once_for_each_signature() -> None:
    traces: list[str] = []

    @jit
    def f(x: Any, y: Any = 1.0) -> Any:
        traces.append("f")
        return np.sum(x * y)

    for x in (X, 2 * X, X[::-1], np.asfortranarray(X)):
        assert f(x) == np.sum(x)
    assert len(traces) == 1
    for x in (X.astype(np.float32), np.ones(3), 1.0, np.float64(1.0), np.ones((1, 2))):
        f(x)
        f(x)
    assert len(traces) == 6
    f(X, 2.0)
    f(X, 3.0)
    f(X, y=4.0)
    f(y=4.0, x=X)
    f(x=X, y=4.0)
    assert len(traces) == 10


def test_programs_may_be_watched() -> None:
    count = 0
    seen: set[str] = set()
    calls = collections.deque[int]()

    @jit
    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        seen.add("f")
        calls.append(1)
        return x * 2.0

    for _ in range(3):
        assert f(2.0) == 4.0
    assert (count, seen, len(calls)) == (1, {"f"}, 1)


def test_a_list_that_an_inner_function_extends_is_not_what_a_program_depends_on() -> None:
    seen: list[float] = []
    traces: list[str] = []

    @jit
    def f(x: Any) -> Any:
        traces.append("f")
        fnad.callback(lambda v: seen.append(float(v)), x)
        return x if x > 0 else -x

    for x in (1.0, -1.0, 2.0, -2.0, 3.0):
        assert f(x) == abs(x)
    assert (len(traces), seen) == (2, [1.0, -1.0, 2.0, -2.0, 3.0])


def test_a_counter_that_is_used_is_not_just_watched() -> None:
    count = 0
    calls: list[int] = []

    def used() -> int:
        return count + len(calls)

    @jit
    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        calls.append(1)
        return x * used()

    assert [f(1.0) for _ in range(3)] == [2.0, 4.0, 6.0]


def test_keywords_reach_the_function_in_the_order_of_the_call() -> None:
    first = jit(lambda **kwargs: next(iter(kwargs.values())) - kwargs["a"] * kwargs["b"], static_argnames="s")
    for _ in range(2):
        assert first(a=1.0, b=2.0) == -1.0
        assert first(b=2.0, a=1.0) == 0.0
        assert first(s=5, a=1.0, b=2.0) == 3.0
        assert first(a=1.0, s=5, b=2.0) == -1.0


def test_number_and_numpy_scalar_promote_differently() -> None:
    f = jit(lambda x, c: x * c)
    x = np.ones(2, np.float32)
    assert f(x, 2.0).dtype == np.float32
    assert f(x, np.float64(2.0)).dtype == np.float64
    assert f(x, np.array(2.0)).dtype == np.float64
    assert f(x, 2).dtype == np.float32
    assert f(x, True).dtype == np.float32


def test_transparent_to_transforms() -> None:
    f = jit(lambda x: np.sum(np.exp(x) * x))
    expected = np.exp(X) * (X + 1)
    assert_array_equal(grad(f)(X), expected)
    assert_array_equal(jit(grad(f))(X), expected)
    assert_array_equal(jit(jit(grad(jit(f))))(X), expected)


def test_a_compiled_function_that_uses_outer_values() -> None:
    def outer(x: Any) -> Any:
        inner = jit(lambda y: y * x)
        return inner(3.0) * inner(x)

    assert grad(outer)(2.0) == 3 * 3 * 4.0
    assert jit(outer)(2.0) == 3 * 2.0**3


def test_a_jitted_function_may_call_itself() -> None:
    @functools.partial(jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x * power(x, n - 1) if n else 1.0

    assert power(2.0, 5) == 32.0


def test_an_exception_while_tracing_leaves_nothing_behind() -> None:
    fail = True

    @jit
    def f(x: Any) -> Any:
        if fail:
            raise RuntimeError("not yet")
        return x * 2.0

    for _ in range(2):
        with pytest.raises(RuntimeError, match="not yet"):
            f(1.0)
    assert sys.getprofile() is None
    fail = False
    assert f(1.0) == 2.0


def test_a_jitted_function_runs_in_several_threads() -> None:
    f = jit(grad(lambda x: np.sum(np.sin(x) * x)))
    found: list[Any] = []

    def work(n: int) -> None:
        found.extend(np.allclose(f(np.ones(n + i)), np.full(n + i, np.cos(1) + np.sin(1)), 1e-15) for i in range(10))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


def test_many_signatures_and_traces_are_given_up_in_time() -> None:
    factor = 0.0
    f = jit(lambda x: x * factor)
    for i in range(30):
        factor = float(i)
        assert f(1.0) == factor


def test_functions_of_numpy() -> None:
    assert jit(np.sin)(0.5) == np.sin(0.5)
    assert jit(functools.partial(np.multiply, 3.0))(2.0) == 6.0


def test_several_environments_are_kept_for_a_signature() -> None:
    traces: list[float] = []
    rate = 0.0

    @jit
    def f(x: Any) -> Any:
        traces.append(rate)
        return x * rate

    for rate in [*range(8)] * 3:
        assert f(1.0) == rate
    assert traces == [*range(8)]
    rate = 8
    assert f(1.0) == rate
    rate = 0  # the oldest has been given up for it
    assert f(1.0) == 0
    assert traces == [*range(9), 0]
    rate = 8
    assert f(1.0) == rate
    assert len(traces) == 10


SIGNS = [
    *[kind(sign * 0.0) for kind in (float, np.float64, np.float32) for sign in (1, -1)],
    *[kind(complex(*parts)) for kind in (complex, np.complex64) for parts in ((0.0, 0.0), (-0.0, 0.0), (0.0, -0.0))],
]


def signed(x: Any, zero: Any) -> Any:
    return np.copysign(x, np.real(zero)) + 0.5 * np.copysign(x, np.imag(zero))


def test_a_zero_from_outside_is_another_number_if_its_sign_changes() -> None:
    """Numbers that are equal and of one type differ in their bits; so do those in tuples and attributes."""
    zero, pair, where = SIGNS[0], (SIGNS[0],), types.SimpleNamespace()
    reads = lambda: zero, lambda: pair[0], lambda: where.zero
    functions = [jit(lambda x, read=read: signed(x, read())) for read in reads]
    with together() as check:
        for zero in [*SIGNS, *reversed(SIGNS)]:
            where.zero, pair = zero, (zero,)
            for place, f in enumerate(functions):
                with check((place, type(zero), zero)):
                    assert f(2.0) == signed(2.0, zero)


def test_the_oldest_signatures_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "SIGNATURES", 3)
    traces: list[int] = []

    @jit
    def f(x: Any) -> Any:
        traces.append(len(x))
        return x

    for n in (1, 2, 3, 1, 4, 4, 3, 2, 1):
        f(np.ones(n))
    assert traces == [1, 2, 3, 4, 1]


# ---- static arguments ------------------------------------------------------------------------------------------------


def describe(x: Any, value: Any = None) -> Any:
    return x * 0.0 + hash((type(value).__name__, repr(value))) % 1000003


@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float
    steps: int = 1


@pytest.mark.parametrize(
    "values",
    [
        (1, True, 1.0, np.float64(1.0), np.int64(1), np.float32(1.0), 1 + 0j),
        (0.0, -0.0, 0, False, np.float32(0.0), np.float32(-0.0)),
        ((0.0,), (-0.0,), (0,), (False,), ((0.0,),)),
        (frozenset({1}), frozenset({1.0})),
        (Setting(0.0), Setting(-0.0), Setting(0), Setting(0.0, 2)),
        ("a", "b", b"a", None, math.nan),
    ],
)
def test_static_arguments_are_told_apart(values: tuple[Any, ...]) -> None:
    f = jit(describe, static_argnames="value")
    for _ in range(2):
        for value in values:
            assert f(1.0, value) == describe(1.0, value), repr(value)
            assert f(1.0, value=value) == describe(1.0, value), repr(value)


def test_equal_static_arguments_are_the_same() -> None:
    traces: list[Any] = []

    def f(x: Any, value: Any) -> Any:
        traces.append(value)
        return x

    run = jit(f, static_argnums=-1)
    for make in (lambda: float("nan"), lambda: np.float32("nan"), lambda: (1, "a", 2.5), lambda: Setting(0.5)):
        traces.clear()
        run(1.0, make())
        run(1.0, make())
        assert len(traces) == 1


def test_static_in_the_middle_and_by_name() -> None:
    f = jit(
        lambda a, n, b, *, mode="plus": a * n + b if mode == "plus" else a * n - b,
        static_argnums=1,
        static_argnames="mode",
    )
    assert f(2.0, 3, 1.0) == 7.0
    assert f(2.0, 3, 1.0, mode="minus") == 5.0
    assert f(2.0, b=1.0, n=4) == 9.0
    assert f(b=1.0, n=2, a=2.0, mode="minus") == 3.0


def test_attributes_of_a_static_object_are_followed() -> None:
    @dataclasses.dataclass(eq=False)
    class Model:
        scale: float

        @functools.partial(jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    model = Model(2.0)
    assert model(3.0) == 6.0
    model.scale = 5.0
    assert model(3.0) == 15.0


# ---- what is read from outside ---------------------------------------------------------------------------------------

scale: Any = 1.0
table: Any = None


def set_global(name: str, value: Any) -> None:
    globals()[name] = value


def of_scale(x: Any) -> Any:
    return x * scale


def test_a_changed_global_is_read_anew() -> None:
    f = jit(of_scale)
    for value in (2.0, 3.0, 2, np.float32(4.0), -0.0, 0.0, 2.0):
        set_global("scale", value)
        assert (f(1.0), math.copysign(1, f(1.0))) == (value, math.copysign(1, value))
    del globals()["scale"]
    with pytest.raises(NameError):
        f(1.0)
    set_global("scale", 7.0)
    assert f(1.0) == 7.0


def test_a_global_that_is_read_in_a_function_called() -> None:
    set_global("scale", 2.0)
    f = jit(grad(lambda x: np.sum(of_scale(x) * x)))
    assert_array_equal(f(X), 4 * X)
    set_global("scale", 3.0)
    assert_array_equal(f(X), 6 * X)


def test_a_changed_variable_of_a_closure_is_read_anew() -> None:
    scale = 2.0
    nothing: Any

    def f(x: Any) -> Any:
        return x * scale + (nothing if scale > 100 else 0.0)

    run = jit(f)
    assert run(1.0) == 2.0
    scale = 3.0
    assert run(1.0) == 3.0
    nothing, scale = 5.0, 101.0
    assert run(1.0) == 106.0


def test_a_function_redefined() -> None:
    def original(x: Any) -> Any:
        return x * 2.0

    helper = original
    run = jit(lambda x: helper(x))
    assert run(1.0) == 2.0

    def redefined(x: Any) -> Any:
        return x * 3.0

    helper = redefined
    assert run(1.0) == 3.0
    helper.__code__ = (lambda x: x * 4.0).__code__
    assert run(1.0) == 4.0


def test_changed_defaults_are_read_anew() -> None:
    def f(x: Any, a: Any = 2.0, *, b: Any = 1.0) -> Any:
        return x * a + b

    run = jit(lambda x: f(x))
    assert run(1.0) == 3.0
    f.__defaults__ = (5.0,)
    assert run(1.0) == 6.0
    f.__kwdefaults__ = {"b": 10.0}
    assert run(1.0) == 15.0
    default = [2.0]
    run = jit(lambda x, d=default: x * d[0])
    assert run(1.0) == 2.0
    default[0] = 3.0
    assert run(1.0) == 3.0


def test_lambdas_of_a_loop() -> None:
    late = [jit(lambda x: x * k) for k in range(3)]  # noqa: B023
    assert [f(1.0) for f in late] == [2.0, 2.0, 2.0]
    bound = [jit(lambda x, k=k: x * k) for k in range(3)]
    assert [f(1.0) for f in bound] == [0.0, 1.0, 2.0]
    made = []
    for k in range(3):
        made.append(jit(lambda x: x * k))  # noqa: B023
        assert made[-1](1.0) == k
    assert [f(1.0) for f in made] == [2.0, 2.0, 2.0]


def test_same_code_other_closure() -> None:
    def times(k: Any) -> Any:
        return lambda x: x * k

    f, g = jit(times(2.0)), jit(times(3.0))
    assert (f(1.0), g(1.0), f(1.0)) == (2.0, 3.0, 2.0)
    choice = times(2.0)
    run = jit(lambda x: choice(x))
    assert run(1.0) == 2.0
    choice = times(5.0)
    assert run(1.0) == 5.0


def test_changed_captured_arrays_are_read_anew() -> None:
    w = np.array([1.0, 2.0])
    run = jit(lambda x: np.sum(w * x))
    assert run(X) == 5.0
    w[0] = 10.0
    assert run(X) == 14.0
    w = np.zeros(2)
    assert run(X) == 0.0
    w = np.ones((3, 2))
    assert run(X) == 9.0
    w = w.reshape(2, 3)
    with pytest.raises(fnad.errors.ShapeError):
        run(X)


def following(value: Any) -> Environment:
    """What is recorded of a value from outside."""
    recorder = Recorder()
    recorder.follow(value)
    return recorder.environment


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int16, np.bool_, ">f8"])
def test_any_change_of_an_array_is_seen(size: int, dtype: Any) -> None:
    w = np.zeros(size, dtype)
    environment = following([w])
    assert environment.holds()
    w[size // 2] = 1
    assert not environment.holds()


def test_bits_of_an_array_count() -> None:
    for n in (1, 5000):
        w = np.zeros(n)
        environment = following(w)
        w[-1] = -0.0
        assert not environment.holds()
        w[-1] = np.nan
        environment = following(w)
        assert environment.holds()


def test_values_of_an_array_that_python_reads() -> None:
    w = np.array([1.0])
    run = jit(lambda x: x * 2.0 if w[0] > 0 else x * 3.0)
    assert run(1.0) == 2.0
    w[0] = -1.0
    assert run(1.0) == 3.0


def test_a_view_of_a_changing_array() -> None:
    base = np.ones(4)
    view = base[:2]
    view.flags.writeable = False
    run = jit(lambda x: np.sum(view * x))
    assert run(X) == 3.0
    base[0] = 10.0
    assert run(X) == 12.0


def test_read_only_arrays_are_not_compared() -> None:
    w = np.ones(10)
    w.flags.writeable = False
    environment = following(w)
    assert not environment.reads


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1.0, 2.0], lambda v: v.__setitem__(0, 5.0)),
        ([1.0], lambda v: v.append(2.0)),
        ({"a": 1.0}, lambda v: v.update(a=2.0)),
        ({"a": 1.0}, lambda v: v.update(b=2.0)),
        ({1.0}, lambda v: v.add(2.0)),
        ([[{"a": (np.ones(2),)}]], lambda v: v[0][0]["a"][0].__setitem__(0, 3.0)),
        (collections.deque([1.0]), lambda v: v.append(2.0)),
        (collections.OrderedDict(a=1.0, b=2.0), lambda v: v.move_to_end("a")),
        (collections.defaultdict(float, a=1.0), lambda v: v["b"]),
        (collections.UserDict(a=1.0), lambda v: v.update(a=3.0)),
        (collections.ChainMap({"a": 1.0}), lambda v: v.update(a=3.0)),
        (bytearray(b"a"), lambda v: v.append(1)),
        (array.array("d", [1.0]), lambda v: v.append(2.0)),
        (types.MappingProxyType(_inner := {"a": 1.0}), lambda v: _inner.update(a=3.0)),
        (np.array([1.0, None]), lambda v: v.__setitem__(0, 2.0)),
        (np.array([[1.0], None], object), lambda v: v[0].append(2.0)),
        (functools.partial(max, [1.0]), lambda v: v.args[0].append(2.0)),
    ],
)
def test_a_changed_container_ends_what_was_read_of_it(value: Any, change: Any) -> None:
    environment = following(value)
    assert environment.holds()
    change(value)
    assert not environment.holds()


class Parameters(collections.UserDict[str, float]):
    """A dict as a class of the user's: what it has stands in an attribute that code of the standard library reads."""


class Text(collections.UserString):
    pass


Weights: Any = type("Weights", (scipy.sparse.csr_array,), {})
Curve: Any = type("Curve", (scipy.interpolate.CubicSpline,), {})
KNOTS = np.arange(4.0)


@pytest.mark.parametrize(
    ("make", "read", "change"),
    [
        (lambda: scipy.sparse.csr_array(np.eye(3)), lambda m, x: m @ x, lambda m: m.__setitem__((0, 0), 5.0)),
        (lambda: scipy.sparse.coo_array(np.eye(3)), lambda m, x: m @ x, lambda m: setattr(m, "data", 2 * m.data)),
        (lambda: Weights(np.eye(3)), lambda m, x: m @ x, lambda m: setattr(m, "data", 2 * m.data)),
        (
            lambda: scipy.interpolate.CubicSpline(KNOTS, KNOTS**3),
            lambda s, x: x * float(s(1.5)),
            lambda s: s.c.fill(2.0),
        ),
        (lambda: Curve(KNOTS, KNOTS**3), lambda s, x: x * s(1.5), lambda s: s.c.fill(2.0)),
        (lambda: scipy.stats.norm(0.0, 2.0), lambda d, x: d.logpdf(x), lambda d: setattr(d, "args", (1.0, 3.0))),
        (lambda: Parameters(a=1.0), lambda p, x: x * p["a"], lambda p: p.update(a=3.0)),
        (lambda: collections.UserString("ab"), lambda s, x: x * len(s), lambda s: setattr(s, "data", "abc")),
        (lambda: Text("ab"), lambda s, x: x * len(s), lambda s: setattr(s, "data", "abc")),
    ],
    ids=["csr", "coo", "class of csr", "spline", "class of spline", "distribution", "dict", "text", "class of text"],
)
def test_what_code_of_libraries_reads_from_objects(make: Any, read: Any, change: Any) -> None:
    value, x = make(), np.array([0.5, 1.0, 2.0])
    function = jit(lambda x: np.sum(read(value, x)))
    gradient = value_and_grad(lambda x: np.sum(read(value, x)))
    for _ in range(2):
        for _ in range(3):
            np.testing.assert_allclose(function(x), np.sum(read(value, x)))
            np.testing.assert_allclose(gradient(x)[0], np.sum(read(value, x)))
        change(value)


class Hiding:
    """An object with no attributes but elements of a dict, not even a class, as NumPy's files of arrays have one."""

    def __init__(self, elements: dict[str, Any]) -> None:
        object.__setattr__(self, "elements", elements)

    def __getattribute__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "elements")[name]
        except KeyError:
            raise AttributeError(name) from None


def test_an_object_that_hides_its_class(tmp_path: Path) -> None:
    elements = {"a": 2.0}
    hiding = Hiding(elements)
    run = jit(lambda x: x * hiding.a)
    assert run(1.0) == 2.0
    elements["a"] = 3.0
    assert run(1.0) == 3.0
    np.savez(tmp_path / "arrays.npz", w=X)
    with np.load(tmp_path / "arrays.npz") as arrays:
        run = jit(lambda x: x * arrays["w"] + arrays.f.w)
        assert_array_equal(run(2.0), 3 * X)
        assert_array_equal(run(2.0), 3 * X)


def test_a_distribution_is_not_traced_again_when_others_draw() -> None:
    normal = scipy.stats.norm(0.0, 2.0)
    run = jit(lambda x: normal.logpdf(x))
    for _ in range(3):
        run(1.0)
        np.random.random()  # noqa: NPY002  (the generator that distributions share)
    assert run.paths()[0].runs == 3


def test_subclasses_of_containers_with_attributes() -> None:
    class Parameters(dict[str, Any]):
        scale = 2.0

    parameters = Parameters(a=1.0)
    run = jit(lambda x: x * parameters["a"] * parameters.scale)
    assert run(1.0) == 2.0
    parameters["a"] = 3.0
    assert run(1.0) == 6.0
    parameters.scale = 5.0
    assert run(1.0) == 15.0


class Base:
    bias = 1.0


class Layer(Base):
    def __init__(self, w: Any) -> None:
        self.w = w
        self.noise = 0

    def __call__(self, x: Any) -> Any:
        return self.apply(x) + self.bias

    def apply(self, x: Any) -> Any:
        return np.sum(self.w * x)

    @property
    def doubled(self) -> Any:
        return self.w * 2.0


def test_methods_and_attributes() -> None:
    layers = [Layer(np.ones(2)), Layer(2 * np.ones(2))]
    run = jit(lambda x: sum(layer(x) for layer in layers))
    assert run(X) == 11.0
    layers[1].w[0] = 0.0
    assert run(X) == 9.0
    layers[0].w = np.zeros(2)
    assert run(X) == 6.0
    layers[0].bias = 5.0  # type: ignore[misc]  # hides that of the class
    assert run(X) == 10.0
    Base.bias = 2.0
    try:
        assert run(X) == 11.0
    finally:
        Base.bias = 1.0
    layers.append(Layer(np.ones(2)))
    assert run(X) == 14.0
    layers[0].apply = lambda x: 100.0  # type: ignore[method-assign]
    assert run(X) == 114.0


def test_bound_methods_callables_and_properties() -> None:
    layer = Layer(np.ones(2))
    by_method, by_object, by_property = jit(layer.apply), jit(layer), jit(lambda x: layer.doubled * x)
    assert (by_method(X), by_object(X)) == (3.0, 4.0)
    assert_array_equal(by_property(X), 2 * X)
    layer.w = 3.0
    assert (by_method(X), by_object(X)) == (9.0, 10.0)
    assert_array_equal(by_property(X), 6 * X)


def test_an_attribute_that_is_not_used_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[int] = []
    layer = Layer(2.0)

    @jit
    def f(x: Any) -> Any:
        traces.append(1)
        return layer(x)

    f(1.0)
    layer.noise = 7
    f(1.0)
    assert len(traces) == 1
    monkeypatch.setattr(Layer, "apply", lambda self, x: x * 10.0)
    assert f(1.0) == 11.0


def test_changed_slots_are_read_anew() -> None:
    class Slotted:
        __slots__ = ("a", "late")

    thing = Slotted()
    thing.a = 2.0
    run = jit(lambda x: x * thing.a + getattr(thing, "late", 0.0))
    assert run(1.0) == 2.0
    thing.a = 3.0
    assert run(1.0) == 3.0
    thing.late = 1.0
    assert run(1.0) == 4.0


def test_attributes_asked_for_by_strings() -> None:
    thing = types.SimpleNamespace(w0=1.0, w1=2.0)
    computed = jit(lambda x: sum(getattr(thing, f"w{i}") * x for i in range(2)))
    optional = jit(lambda x: x * getattr(thing, "extra", 1.0))
    listed = jit(lambda x: x * len(vars(thing)))
    assert (computed(1.0), optional(1.0), listed(1.0)) == (3.0, 1.0, 2.0)
    thing.w1 = 5.0
    assert computed(1.0) == 6.0
    thing.extra = 4.0
    assert (optional(1.0), listed(1.0)) == (4.0, 3.0)


def test_classes_and_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    class Config:
        rate = 2.0

    module = types.ModuleType("settings")
    module.rate = 3.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "settings", module)

    def f(x: Any) -> Any:
        import settings  # type: ignore[import-not-found]  # noqa: PLC0415
        from settings import rate  # type: ignore[import-not-found]  # noqa: PLC0415

        return x * Config.rate * settings.rate * rate

    run = jit(f)
    assert run(1.0) == 18.0
    Config.rate = 1.0
    assert run(1.0) == 9.0
    module.rate = 2.0  # type: ignore[attr-defined]
    assert run(1.0) == 4.0


def test_functions_reached_in_odd_ways() -> None:
    factor = 2.0
    offset = [1.0]

    def times(x: Any) -> Any:
        return x * factor + offset[0]

    registry = {"times": times}
    for call in (
        lambda x: registry["times"](x),
        lambda x: next(map(times, [x])),
        functools.partial(lambda f, x: f(x), times),
        np.vectorize(times, otypes=[object]).pyfunc,
        functools.lru_cache(lambda: times)(),
    ):
        factor, offset[0] = 2.0, 1.0
        run = jit(call)
        assert run(1.0) == 3.0
        factor = 4.0
        assert run(1.0) == 5.0
        offset[0] = 0.0
        assert run(1.0) == 4.0


def test_operators_of_objects() -> None:
    class Scaled:
        def __init__(self, k: float) -> None:
            self.k = k

        def __mul__(self, x: Any) -> Any:
            return x * self.k

    scaled = Scaled(2.0)
    run = jit(lambda x: scaled * x)
    assert run(1.0) == 2.0
    scaled.k = 3.0
    assert run(1.0) == 3.0
    Scaled.__mul__ = lambda self, x: x * 10.0  # type: ignore[method-assign]
    assert run(1.0) == 10.0


def test_a_cached_function() -> None:
    rate = 2.0

    @functools.lru_cache
    def table() -> Any:
        return np.array([rate])

    run = jit(lambda x: x * table()[0])
    assert run(1.0) == 2.0
    rate = 3.0
    assert run(1.0) == 2.0  # as Python has it
    table.cache_clear()
    rate = 5.0
    assert run(1.0) == 5.0


def test_what_the_function_changes_itself() -> None:
    history: list[float] = []
    total = 0.0
    thing = types.SimpleNamespace(n=0)

    @jit
    def f(x: Any) -> Any:
        nonlocal total
        history.append(1.0)
        total = total + 1.0
        thing.n += 1
        return x * (len(history) + 10 * total + 100 * thing.n)

    assert [f(1.0) for _ in range(3)] == [111.0, 222.0, 333.0]


def test_iterators_are_never_reused() -> None:
    numbers = itertools.count()
    run = jit(lambda x: x + next(numbers))
    assert [run(0.0) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_objects_of_other_libraries_that_convert_to_arrays() -> None:
    class Tensor:
        __slots__ = ("_data",)

        def __init__(self, data: Any) -> None:
            self._data = data

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self._data, dtype)

    tensor = Tensor(np.ones(2))
    run = jit(lambda x: np.sum(x * np.asarray(tensor)))
    assert run(X) == 3.0
    tensor._data[0] = 5.0
    assert run(X) == 7.0


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda: number[0], "the list number has another content, where element 0 was 2, and is 3"),
        (lambda: float(weights[0]), "the ndarray weights has another content, where element 0 was 2.0, and is 3.0"),
        (lambda: thing.n, "n was 2, and is 3"),
        (lambda: next(numbers) * 0, "an iterator is read"),
    ],
)
def test_a_function_that_is_traced_too_often(read: Callable[[], Any], what: str) -> None:
    def often(x: Any) -> Any:
        return x + read()

    def exercise() -> None:
        for i in range(10):
            number[0], weights[0], thing.n = i, i, i
            run(1.0)

    run = jit(often)
    with pytest.warns(fnad.errors.RetraceWarning) as caught:
        exercise()
    first, *lines, remedy = str(caught[0].message).splitlines()
    assert len(caught) == 1
    assert first == f"often was traced again 3 times, and ran 0 times without: {what}"
    assert all(line.startswith("  at test_jit.py:") and "lambda: " in line for line in lines)
    assert remedy == "  pass what changes as an argument"
    assert caught[0].filename == __file__


class Counter:
    def __init__(self) -> None:
        self.calls, self.cache, self.seen, self.began = 0, dict[int, int](), list[int](), 0.0

    def counts(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return x * 2.0 if self.calls else x

    def keeps(self, x: Any) -> Any:
        self.cache[len(self.cache)] = 1
        return x * 2.0

    def lists(self, x: Any) -> Any:
        seen = self.seen
        seen.append(1)
        return x * 2.0

    def times(self, x: Any) -> Any:
        self.began = time.perf_counter()
        return x * 2.0


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("counts", r"calls was 3, and is 4\n  at test_jit.py:\d+ in counts:  self.calls = self.calls \+ 1"),
        ("keeps", r"the dict cache has another content.*\n  at test_jit.py:\d+ in keeps:  self.cache\[.*"),
        (
            "lists",
            r"the list seen has another content: it had 3 elements, and has 4\n  at .* in lists:  seen = self.seen",
        ),
        ("times", r"began was \d.*, and is \d.*\n  at test_jit.py:\d+ in times:  self.began = time.*"),
    ],
)
def test_a_function_that_itself_writes_what_it_reads(name: str, what: str) -> None:
    run = jit(getattr(Counter(), name))
    for _ in range(3):
        run(1.0)
    with pytest.warns(fnad.errors.RetraceWarning) as caught:
        run(1.0)
    again = f"{name} was traced again 3 times, and ran 0 times without: "
    remedy = "the function itself writes to this: return the new value instead, and keep it outside"
    assert re.fullmatch(f"{again}{what}\n  {remedy}", str(caught[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(1.0) == 2.0


def test_a_change_now_and_then_is_no_matter() -> None:
    run = jit(lambda x: x + thing.n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(12):
            thing.n = i
            for _ in range(3):
                run(1.0)


number: list[int] = [0]
weights = np.zeros(1)
thing = types.SimpleNamespace(n=0)
numbers = itertools.count()


def test_retracing_the_same_program_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.ones(2)
    run = jit(lambda x: np.sum(np.cosh(w * x)))
    run(X)
    monkeypatch.setattr("fnad.api.running.execution.TieredProgram", None)
    w[0] = 7.0
    assert run(X) == np.cosh(7.0) + np.cosh(2.0)


def test_the_memory_of_results_is_theirs() -> None:
    constant = np.ones(2)
    run = jit(lambda x: (x * 2.0, constant))
    first = run(X)
    second = run(3 * X)
    assert_array_equal(first[0], 2 * X)
    second[1][:] = 9.0
    assert_array_equal(run(X)[1], [1.0, 1.0])
    assert_array_equal(constant, [1.0, 1.0])


# ---- code of the user's that fnad calls -----------------------------------------------------------------------------


class Axis:
    """An axis whose number the code of its class looks up."""

    def __init__(self) -> None:
        self.number = 0

    def __index__(self) -> int:
        return self.number


def test_what_is_read_while_numpy_is_called_is_watched_too() -> None:
    axis, scale, own = Axis(), [2.0], [2.0]
    ufunc = np.frompyfunc(max, 2, 1)

    @fnad.numpy.implements((ufunc, "reduce"))
    def rule(array: Any) -> Any:
        return mul(as_symbol(array), constant(own[0], F64, array.shape))

    def scaled(row: Any) -> Any:
        return row * scale[0]

    def f(x: Any) -> Any:
        rows = np.apply_along_axis(scaled, 1, x)
        return np.sum(x, axis), rows[0], ufunc.reduce(x[0])

    run = jit(f)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert [part.tolist() for part in run(x)] == [[4.0, 6.0], [2.0, 4.0], [2.0, 4.0]]
    axis.number = 1
    assert run(x)[0].tolist() == [3.0, 7.0]
    scale[0] = 3.0
    assert run(x)[1].tolist() == [3.0, 6.0]
    own[0] = 3.0
    assert run(x)[2].tolist() == [3.0, 6.0]


class Scaled:
    """A pytree whose leaf is not what it was made of, as a global says."""

    def __init__(self, array: Any) -> None:
        self.array = array


optree.register_pytree_node(
    Scaled, lambda tree: ((tree.array,), None), lambda _, parts: Scaled(of_scale(*parts)), namespace="fnad"
)


class Table:
    def to_numpy(self) -> Any:
        return of_scale(X)


def with_rules(f: Callable[[Any], Any], pull: Callable[[Any], Any] = of_scale) -> Any:
    """A function whose forward rule calls it."""
    made = fnad.custom_vjp(f)
    made.defvjp(lambda x: (f(x), None), lambda _, ct: (pull(ct),))
    return made


def pushed(f: Callable[[Any], Any]) -> Any:
    made = fnad.custom_jvp(f)
    made.defjvp(lambda xs, dxs: (f(*xs), f(*dxs)))
    return made


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fnad.jvp(lambda tree: np.sum(tree.array**2), (Scaled(x),), (Scaled(x),))[1],
        lambda x: grad(lambda x, tree: np.sum(x * tree.array))(x, Scaled(x)),
        lambda x: grad(lambda x, tree: np.sum(x * tree.array))(x, tree=Scaled(X)),
        lambda x: grad(lambda x: (np.sum(x), Scaled(x)), has_aux=True)(x)[1].array,
        lambda x: fnad.vjp(lambda x: Scaled(x**2), x)[0].array,
        lambda x: x * fnad.vjp(lambda t: t * 1.0, Table())[0],
        lambda x: fnad.linearize(lambda x: of_scale(x**2), x)[1](x),
        lambda x: x * fnad.eval_shape(lambda x: np.ones(int(scale)), x).shape[0],
        lambda x: fnad.vmap(of_scale)(x),
        lambda x: fnad.vmap(lambda tree: tree.array)(Scaled(x)),
        lambda x: fnad.cond(x[0] > 0.0, of_scale, lambda x: x, x),
        lambda x: fnad.cond(x[0] > 0.0, lambda tree: tree.array, lambda tree: x, Scaled(x)),
        lambda x: fnad.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, of_scale(s[1])), (0, x))[1],
        lambda x: fnad.while_loop(lambda s: s[0] < of_scale(2.0), lambda s: s * 3.0, x),
        lambda x: fnad.fori_loop(0, 2, lambda _, s: of_scale(s), x),
        lambda x: fnad.fori_loop(0, 2, lambda _, tree: Scaled(tree.array), Scaled(x)).array,
        lambda x: fnad.scan(lambda s, _: (of_scale(s), None), x, None, 2)[0],
        lambda x: fnad.scan(lambda s, tree: (s, tree.array), x, Scaled(x))[1],
        lambda x: fnad.checkpoint(of_scale)(x),
        lambda x: fnad.checkpoint(lambda tree: tree.array)(Scaled(x)),
        lambda x: with_rules(of_scale)(x),
        lambda x: with_rules(lambda tree: tree.array, Scaled)(Scaled(x)),
        lambda x: with_rules(lambda x: Scaled(x * 3.0), lambda ct: ct.array)(x).array,
        lambda x: grad(lambda x: np.sum(with_rules(of_scale)(x)))(x),
        lambda x: pushed(of_scale)(x),
        lambda x: fnad.jvp(pushed(of_scale), (x,), (x,))[1],
        lambda x: fnad.fixed_point(lambda y: of_scale(y) / 4 + x, x),
        lambda x: fnad.root(lambda y: y - of_scale(x), x),
        lambda x: fnad.odeint(lambda y, t: of_scale(y), x, np.array([0.0, 0.1])),
        lambda x: x * fnad.scipy.integrate.quad(lambda t: of_scale(t), 0.0, 1.0)[0],
    ],
)
def test_what_a_transform_calls_within_is_watched(f: Callable[[Any], Any]) -> None:
    """What is fnad's own around the user's functions is not."""
    compiled = jit(f)
    set_global("scale", 1.0)
    before = compiled(X)
    set_global("scale", 2.0)
    assert_array_equal(compiled(X), jit(f)(X))
    assert not np.array_equal(compiled(X), before)


# ---- profilers -------------------------------------------------------------------------------------------------------


def test_a_profiler_goes_on() -> None:
    found: list[str] = []
    sys.setprofile(lambda frame, event, arg: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        jit(lambda x: of_scale(x))(1.0)
        profiler = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert "of_scale" in found
    assert profiler is not None


def test_the_c_profiler_goes_on() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    jit(lambda x: x * 2.0)(1.0)
    math.gcd(4, 6)
    profiler.disable()
    assert any("gcd" in str(entry.code) for entry in profiler.getstats())


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_slots_of_a_library_are_watched() -> None:
    half = Fraction(1, 2)
    compiled = jit(lambda x: x * half._numerator)  # type: ignore[attr-defined]
    assert compiled(2.0) == 2.0
    half._numerator = 3  # type: ignore[attr-defined]
    assert compiled(2.0) == 6.0


def test_what_is_read_after_an_equation_is_refused_is_watched() -> None:
    def f(x: Any) -> Any:
        with contextlib.suppress(ValueError):
            np.reshape(x, (3, 3))
        return of_scale(x)

    compiled = jit(f)
    for scale in (1.0, 2.0):
        set_global("scale", scale)
        assert_array_equal(compiled(X), scale * X)


def test_few_things_are_looked_at() -> None:
    set_global("scale", 1.0)
    recorder = Recorder()
    recorder.follow(of_scale)
    with recorder.active():
        grad(lambda x: np.sum(of_scale(x)))(X)
    names = [read.name for read in recorder.environment.reads.values()]
    assert {name for name in names if name} == {"np", "of_scale", "scale", "sum"}
    assert names.count("") <= 9  # the function, and what `grad` is given, with its variables


def test_a_callback_of_the_garbage_collector_reads_nothing_for_the_function() -> None:
    """It runs whenever it likes, in the middle of a trace too."""
    traces: list[str] = []

    def f(x: Any) -> Any:
        traces.append("f")
        _ = [[] for _ in range(100)]  # which collects garbage
        return x * 2

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    gc.callbacks.append(note_collection)
    try:
        jitted = jit(f)
        assert [jitted(1.0), jitted(1.0), jitted(1.0)] == [2.0, 2.0, 2.0]
    finally:
        gc.callbacks.remove(note_collection)
        gc.set_threshold(*threshold)
    assert len(traces) == 1
    assert collections_seen > 0


collections_seen = 0


def note_collection(phase: str, info: dict[str, int]) -> None:
    global collections_seen  # noqa: PLW0603  # what it reads changes at each run
    collections_seen += 1


# ---- compiled --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_at_the_first_call(dtype: Any) -> None:
    f = value_and_grad(lambda x: np.sum(np.sin(x) * x))
    x = np.linspace(0, 3, 1000).astype(dtype)
    run = jit(f)
    with fnad.config.override(executor="auto"):
        value, gradient = run(x)
    np.testing.assert_allclose(value, np.sum(np.sin(x) * x), rtol=1e-5)
    np.testing.assert_allclose(gradient, np.cos(x) * x + np.sin(x), rtol=1e-5, atol=1e-6)
    assert gradient.dtype == dtype
    assert str(run.paths()).endswith("ran 1 time, compiled")
