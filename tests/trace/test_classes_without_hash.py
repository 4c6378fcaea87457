"""Classes that no table takes: their metaclass has `==`, which is true of all, and therefore no hash."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse  # noqa: F401 # pyright: ignore[reportUnusedImport] which asks each operand for its class

import fnad
from fnad.errors import ArgumentTypeError, StaticArgumentError
from tests.together import together


class Meta(type):  # noqa: PLW1641
    def __eq__(cls, other):
        return True


class Layer(metaclass=Meta):
    scale = 3.0

    def __init__(self, weight=2.0):
        self.weight = weight

    def __call__(self, x):
        return x * self.weight

    def __add__(self, x):
        return x + self.weight

    def __getitem__(self, index):
        return self.weight

    def __iter__(self):
        return iter([1.0, self.weight])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def twice(self):
        return 2 * self.weight

    @fnad.jit
    def compiled(self, x):
        return x * self.weight


class Deeper(Layer):
    pass


class Steps(metaclass=Meta):
    def __init__(self):
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count > 3:
            raise StopIteration
        return float(self.count)


class Rows(list, metaclass=Meta):
    pass


class Stop(Exception, metaclass=Meta):  # noqa: N818
    pass


@dataclasses.dataclass
class Record(metaclass=Meta):
    u: float = 2.0


LAYER, DEEPER, RECORD, ROWS = Layer(), Deeper(), Record(), Rows([1.0, 2.0])


def within(x):
    with LAYER as layer:
        return x * layer.weight


def raising(x):
    try:
        raise Stop  # noqa: TRY301
    except Stop:
        return 2 * x


def filling(x):
    found = np.zeros(3)

    def fill(u):
        u[0] = LAYER(x)
        u[1] = x * ROWS[1]

    fill(found)
    return found.sum()


def storing(x):
    LAYER.kept = x
    found = LAYER.kept * x
    del LAYER.kept
    return found


def counting(x):
    layer, found = Layer(), 0.0
    layer.count = 0
    while layer.count < 3:
        layer.count += 1
        found = found + x * layer.count
    return found


FUNCTIONS = {
    "call": lambda x: LAYER(x),
    "property": lambda x: LAYER.twice * x,
    "operator": lambda x: LAYER + x * x,
    "element": lambda x: LAYER[0] * x,
    "iteration": lambda x: sum(x * v for v in LAYER),
    "iterator": lambda x: sum(x * v for v in Steps()),
    "subclass": lambda x: DEEPER(x),
    "class attribute": lambda x: Layer.scale * x,
    "made in the trace": lambda x: Layer(x)(x),
    "class of an object": lambda x: x if type(LAYER) is Layer else 0 * x,
    "dataclass": lambda x: RECORD.u * x + Record(x).u,
    "list": lambda x: ROWS[0] * x + Rows([x])[0],
    "map": lambda x: [*map(LAYER, [x])][0],
    "region": lambda x: fnad.cond(x > 0, LAYER, lambda y: y, x),
    "inner gradient": lambda x: fnad.grad(LAYER)(x) * x,
    "within": within,
    "raising": raising,
    "filling": filling,
    "storing": storing,
    "counting": counting,
    "compiled method": lambda x: LAYER.compiled(x),
}


def test_objects_of_such_classes_are_used_in_functions():
    with together() as named:
        for name, f in FUNCTIONS.items():
            with named(name):
                slope = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
                for _ in range(3):
                    assert fnad.grad(f)(1.5) == pytest.approx(slope, 1e-6)
                compiled, gradient = fnad.jit(f), fnad.jit(fnad.grad(f))
                for _ in range(3):
                    assert compiled(1.5) == f(1.5)
                    assert gradient(1.5) == pytest.approx(slope, 1e-6)
                np.testing.assert_array_equal(fnad.vmap(f)(np.array([1.0, 2.0])), [f(1.0), f(2.0)])


def test_their_attributes_are_compared():
    layer = Layer()
    scaled = fnad.jit(lambda x: layer(x) * Layer.scale)
    for weight in (2.0, 3.0, 3.0, 2.0):
        layer.weight = weight
        assert scaled(1.0) == 3 * weight


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_their_elements_are_compared():
    rows = Rows([1.0])
    scaled = fnad.jit(lambda x: x * rows[0] * len(rows))
    for value in (1.0, 2.0, 3.0, 4.0, 4.0, 2.0):
        rows[0] = value
        rows.append(value)
        assert scaled(1.0) == value * len(rows)


def test_compiled_methods_take_them():
    assert [Layer(weight).compiled(2.0) for weight in (2.0, 3.0, 2.0)] == [4.0, 6.0, 4.0]


def test_what_has_to_be_hashed_is_refused_with_the_reason():
    with pytest.raises(StaticArgumentError, match=r"static argument layer is of type .*Layer, which is not hashable"):
        fnad.jit(lambda x, layer: x, static_argnums=1)(1.0, LAYER)
    with pytest.raises(ArgumentTypeError, match=r"record is of type .*Record"):
        fnad.grad(lambda record: record.u)(RECORD)
