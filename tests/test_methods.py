"""`jit` on methods: objects are watched as closures are, and go when nobody else has them."""

from __future__ import annotations

import collections
import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad import errors, grad, jit

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # what is read changes on purpose

traces: list[str] = []


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    traces.clear()
    with fnad.config.override(executor="interpreter"):
        yield


def logged(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def run(*args: Any) -> Any:
        return f(*args)

    return run


class Base:
    offset = 0.0

    def doubled(self, x: Any) -> Any:
        return 2.0 * x


class Layer(Base):  # noqa: PLW1641  # not hashable
    rate = 3.0

    def __init__(self, w: Any) -> None:
        self.w = w
        self.calls: list[float] = []
        self.count = 0

    def __eq__(self, other: object) -> bool:
        return True

    @jit
    def apply(self, x: Any) -> Any:
        traces.append("apply")
        return x * self.w + self.offset + getattr(self, "extra", 0.0)

    @logged
    @jit
    def decorated(self, x: Any) -> Any:
        return x * self.w

    @jit
    def above(self, x: Any) -> Any:
        return super().doubled(x)

    @property
    @jit
    def total(self) -> Any:
        return np.sum(self.w)

    @classmethod
    @jit
    def of_class(cls, x: Any) -> Any:
        return x * cls.rate

    @jit
    @classmethod
    def of_class_inside(cls, x: Any) -> Any:
        return x * cls.rate

    @staticmethod
    @jit
    def of_none(x: Any) -> Any:
        return x + 1.0

    @jit
    @staticmethod
    def of_none_inside(x: Any) -> Any:
        return x + 1.0

    @jit
    def history(self, x: Any) -> Any:
        self.calls.append(1.0)
        return x * len(self.calls)

    @jit
    def counted(self, x: Any) -> Any:
        self.count += 1
        return x * self.count

    @functools.partial(jit, static_argnames="times")
    def repeated(self, x: Any, times: int) -> Any:
        return self.w * x * times

    @jit
    def over_children(self, x: Any) -> Any:
        return x * sum(child.w * child.parent.w for child in self.children) + self.activation(x)  # type: ignore[attr-defined]


def test_objects_are_watched() -> None:
    first, second = Layer(2.0), Layer(np.ones(2))
    assert [first.apply(1.0), first.apply(2.0), Layer.apply(first, 3.0)] == [2.0, 4.0, 6.0]
    assert_array_equal(second.apply(1.0), [1.0, 1.0])
    assert len(traces) == 2
    first.w = 5.0
    second.w[0] = 7.0
    assert first.apply(1.0) == 5.0
    assert_array_equal(second.apply(1.0), [7.0, 1.0])
    first.extra = 1.0  # type: ignore[attr-defined]
    assert first.apply(1.0) == 6.0
    first.offset = 2.0
    assert first.apply(1.0) == 8.0
    vars(first)["w"] = 1.0
    assert [first.apply(1.0), first.decorated(2.0), first.total] == [4.0, 2.0, 1.0]
    first.w = 4.0
    assert [first.decorated(2.0), first.total, first.repeated(1.0, 3), first.repeated(1.0, times=2)] == [8, 4, 12, 8]
    first.__dict__ = {"w": 9.0}
    assert first.apply(1.0) == 9.0


def test_classes_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Derived(Layer):
        rate = 4.0

    layer, derived = Layer(1.0), Derived(1.0)
    assert [layer.of_class(1.0), Layer.of_class_inside(1.0), derived.of_class(1.0), derived.above(1.0)] == [3, 3, 4, 2]
    assert [layer.of_none(1.0), Layer.of_none(1.0), layer.of_none_inside(1.0)] == [2.0, 2.0, 2.0]
    monkeypatch.setattr(Layer, "rate", 5.0)
    monkeypatch.setattr(Base, "doubled", lambda self, x: 7.0 * x)
    assert [layer.of_class(1.0), Layer.of_class_inside(1.0), derived.of_class(1.0), derived.above(1.0)] == [5, 5, 4, 7]
    layer.__class__ = Derived
    assert layer.apply(1.0) == 1.0
    assert layer.of_class(1.0) == 4.0


def test_what_a_method_changes_itself() -> None:
    layer = Layer(1.0)
    assert [layer.history(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert [layer.counted(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


def family() -> Layer:
    """A layer with all sorts of references back to it."""
    layer: Any = Layer(2.0)
    layer.children = [Layer(1.0), Layer(3.0)]
    for child in layer.children:
        child.parent = layer
    layer.activation = lambda x: x * layer.w
    layer.by_name = {"self": layer, "method": layer.doubled}
    layer.queue, layer.default = collections.deque([layer]), lambda x, of=layer: x * of.w
    return layer


def test_objects_that_refer_to_each_other() -> None:
    layer: Any = family()
    f = layer.over_children
    assert f(1.0) == f(1.0) == 2.0 * 4.0 + 2.0
    layer.children[1].w = 5.0
    assert f(1.0) == 2.0 * 6.0 + 2.0
    layer.children.pop()
    assert f(1.0) == 2.0 + 2.0
    layer.children = [layer.children[0], layer.children[0]]
    assert f(1.0) == 4.0 + 2.0
    layer.children[0].parent = Layer(10.0)
    assert f(1.0) == 20.0 + 2.0
    layer.activation = lambda x: 0.0
    assert f(1.0) == 20.0
    layer.activation = layer.doubled
    assert f(1.0) == 22.0
    layer.activation = layer.children[0].parent.apply
    assert f(1.0) == 30.0
    layer.children[0].parent.w = 1.0
    assert f(1.0) == 3.0


def test_objects_with_jitted_methods_are_freed() -> None:
    for make in (lambda: Layer(1.0), family):
        layer: Any = make()
        reference, paths = weakref.ref(layer), len(Layer.apply.paths())
        assert layer.apply(1.0) == layer.apply(1.0)
        assert len(Layer.apply.paths()) == paths + 1
        assert (layer.above(1.0), layer.history(1.0), layer.counted(1.0)) == (2.0, 1.0, 1.0)
        if hasattr(layer, "children"):
            assert layer.over_children(1.0) == 10.0
        del layer
        gc.collect()
        assert reference() is None
        assert len(Layer.apply.paths()) == paths


def test_classes_with_jitted_methods_are_freed() -> None:
    kind: Any = type("Passing", (Layer,), {})
    reference, layer = weakref.ref(kind), kind(2.0)
    assert layer.apply(1.0) == 2.0
    del kind, layer
    gc.collect()
    assert reference() is None


def test_jitted_methods_within_transforms_read_changes() -> None:
    layer = Layer(2.0)
    layer.w = np.array([1.0, 2.0])
    f = lambda x: np.sum(layer.apply(x) ** 2)  # noqa: E731
    expected = 2 * layer.w**2
    assert_array_equal(grad(f)(np.ones(2)), expected)
    assert_array_equal(jit(grad(f))(np.ones(2)), expected)
    layer.w[0] = 3.0
    assert_array_equal(jit(grad(f))(np.ones(2)), [18.0, 8.0])
    twice = jit(lambda x: layer.apply(layer.apply(x)))
    assert_array_equal(twice(1.0), layer.w**2)


class Point(NamedTuple):
    x: Any
    y: Any

    @jit
    def norm(self) -> Any:
        traces.append("norm")
        return np.sqrt(self.x**2 + self.y**2)


def test_a_pytree_is_an_argument() -> None:
    assert [Point(3.0, 4.0).norm(), Point(6.0, 8.0).norm()] == [5.0, 10.0]
    assert traces == ["norm"]


class Unhashable:
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, scale: float) -> None:
        self.scale = scale


def test_a_function_that_becomes_a_method() -> None:
    f = jit(lambda self, x: x * (self.scale if isinstance(self, Unhashable) else self))
    assert f(2.0, 3.0) == 6.0
    with pytest.raises(errors.ArgumentTypeError):
        f(Unhashable(1.0), 3.0)
    Unhashable.scaled = f  # type: ignore[attr-defined]
    one = Unhashable(4.0)
    assert [one.scaled(3.0), f(one, 1.0), f(2.0, 3.0)] == [12.0, 4.0, 6.0]  # type: ignore[attr-defined]
    with pytest.raises(errors.ArgumentTypeError):
        one.scaled("text")  # type: ignore[attr-defined]
