"""Code without source under `jit`: what it reads is current at each call; a comparison of classes is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import fnad
from fnad.errors import TracerEscapeError
from tests.together import together


@dataclass(order=True)
class Size:
    """A class whose methods are made of texts."""

    x: float
    parts: list[float] = field(default_factory=list)
    calls: int = 0


TEXT = """
class Scaled:
    def __init__(self, v, k=1.0):
        self.v, self.k = v, k
    def __add__(self, other):
        return Scaled(self.v * other.k + K)
    @property
    def double(self):
        return self.v * 2 * self.k

def numbers(n):
    for i in range(n):
        yield K * i

def chosen(x, kind):
    return x * 2 if kind(x) is float else x

def product(x):
    return np.sin(x) * K
"""


def made() -> dict[str, Any]:
    """Names of a text that is in no file."""
    names: dict[str, Any] = {"np": np, "K": 2.0}
    exec(TEXT, names)
    return names


def changes() -> dict[str, tuple[Callable[[Any], Any], Callable[[], object]]]:
    """Functions that code without source reads for, each with a change of what is read."""
    names, a, b = made(), Size(1.0, [2.0]), Size(1.0, [2.0])
    p = names["Scaled"](1.0)

    def add() -> None:
        names["K"] += 1.0

    def set_k() -> None:
        p.k += 1.0

    def grow() -> None:
        b.x += 1.0

    return {
        "==": (lambda x: x if a == b else 2 * x, grow),
        "==, of a list": (lambda x: x if a == b else 2 * x, lambda: b.parts.append(1.0)),
        "in": (lambda x: x if b in [a] else 2 * x, grow),
        "<": (lambda x: x if a < b else 2 * x, grow),
        "repr": (lambda x: x * len(repr(b)), lambda: setattr(b, "x", 1234.5)),
        "an operator": (lambda x: (p + p).v * x, add),
        "an attribute": (lambda x: (p + p).v * x, set_k),
        "a property": (lambda x: p.double * x, set_k),
        "a generator": (lambda x: sum(names["numbers"](3)) * x, add),
        "called in C": (lambda x: sum(map(float, names["numbers"](3))) * x, add),
        "a function": (lambda x: names["product"](x), add),
        "an argument": (
            lambda x: sorted([x, 2 * x], key=lambda _: 1)[0] * names["numbers"](2).__next__() + p.double,
            set_k,
        ),
    }


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_what_is_read_is_current() -> None:
    with together() as check:
        for name in changes():
            with check(name):
                f, change = changes()[name]
                run = fnad.jit(f)
                assert run(1.5) == f(1.5)
                for _ in range(3):
                    change()
                    assert run(1.5) == f(1.5)


def test_classes_made_by_dataclass_and_namedtuple_are_traced_once() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(1)
        size, pair = Size(x), Pair(1.0, x)._replace(array=4.0)
        size.calls += 1
        return size.x * pair.traced * pair.array / (4.0 * x) if size == size and Size(5.0) > OUTER else 2 * x

    run = fnad.jit(f)
    assert [run(1.0), run(2.0), run(3.0)] == [1.0, 2.0, 3.0]
    assert len(runs) == 1


OUTER = Size(1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: made()["chosen"](x, type),
        lambda x: x * 2 if eval(compile("type(x) is float", "s", "eval")) else x,
    ],
)
def test_a_comparison_of_classes_is_refused(f: Any) -> None:
    assert f(1.0) == 2.0
    for transform in (fnad.grad, fnad.jit):
        with pytest.raises(TracerEscapeError, match=r"compares the class of a value by type, and .* has no source"):
            transform(f)(1.0)


def test_type_is_called_by_its_method() -> None:
    assert fnad.jit(lambda x: x * 2 if type.__call__(type, x) is float else x)(1.0) == 2.0


class Pair(NamedTuple):
    """A class whose constructor has no source."""

    array: Any
    traced: Any


def test_a_named_tuple_of_an_array_and_a_traced_value() -> None:
    array = np.array([1.0, 2.0])
    gradient = fnad.grad(lambda x: np.sum(Pair(array, x).array * Pair(array, x).traced))
    assert gradient(array).tolist() == fnad.jit(gradient)(array).tolist() == [1.0, 2.0]
