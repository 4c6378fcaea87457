"""Whether what a function reads is what it was, and what it costs to ask."""

from __future__ import annotations

import gc
import importlib
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import forks
from fnad.trace import reads
from fnad.trace.generators import have_drawn, shared_states
from fnad.trace.recording import Recorder
from tests.steps import steps


class Table:
    """Columns of several dtypes, as another library may have: as one array they are objects, made anew each time."""

    def __init__(self, *columns: Any) -> None:
        self.columns = list(columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([column.astype(object) for column in self.columns]).T


class Unpicklable(Table):
    def __reduce__(self) -> Any:
        raise TypeError


class Restless(Table):
    """A table whose pickle counts how often it was asked for."""

    asked = 0

    def __getstate__(self) -> Any:
        self.asked += 1
        return self.asked


def recorded(value: Any) -> Callable[[], bool]:
    """The test that a value has the content that it has now."""
    recorder = Recorder()
    recorder.follow([value])
    return recorder.environment.holds


@pytest.mark.parametrize("kind", [Table, Unpicklable, Restless])
def test_a_table_keeps_its_content(kind: type[Table]) -> None:
    numbers, texts = np.arange(3.0), np.array(["a", "b", "c"])
    holds = recorded(kind(numbers, texts))
    assert holds()
    assert holds()
    for column, old, new in ((numbers, 1.0, np.nan), (texts, "b", "x"), (numbers, 0.0, -0.0)):
        at = list(column).index(old)
        column[at] = new
        assert not holds()
        column[at] = old
        assert holds()


def test_a_table_is_compared_by_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    holds = recorded(Table(np.arange(3.0), np.array(["a", "b", "c"])))
    monkeypatch.setattr(reads, "objects_in", pytest.fail)
    assert holds()


def test_a_table_of_one_dtype_is_compared_to_the_bit() -> None:
    class Column:
        values = np.array([0.0, np.nan])

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.values

    column = Column()
    holds = recorded(column)
    assert holds()
    for values in (np.array([-0.0, np.nan]), np.array([0.0]), np.array([0.0, np.nan], ">f8"), np.zeros(2)):
        column.values = values
        assert not holds()


# ---- random numbers --------------------------------------------------------------------------------------------------


def changes_states(go: Callable[[], object]) -> bool:
    before = shared_states()
    go()
    return have_drawn(before)


@pytest.fixture
def kept_generators() -> Iterator[None]:
    own, state = np.random.get_bit_generator(), random.getstate()
    yield
    np.random.set_bit_generator(own)
    random.setstate(state)


def test_a_shared_generator_that_is_imported_has_not_been_used_yet() -> None:
    """Another thread may import it during a trace."""
    program = """
import sys, numpy, fnad
from fnad.trace.generators import have_drawn, shared_states
before = shared_states()
assert "numpy.random" not in sys.modules
import numpy.random
print(have_drawn(before))
numpy.random.rand()
print(have_drawn(before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_module_that_another_thread_imports_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fnad_half_imported.py").write_text(
        "import sys\nfrom fnad import forks\nSEEN = forks.loaded(__name__)\nassert __name__ in sys.modules"
    )
    module = importlib.import_module("fnad_half_imported")
    assert module.SEEN is None
    assert forks.loaded("fnad_half_imported") is module
    assert forks.loaded("fnad_never_imported") is None


@pytest.mark.usefixtures("kept_generators")
@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.PCG64, np.random.Philox, np.random.SFC64])
def test_each_draw_from_a_shared_generator_is_noticed(bits: Any) -> None:
    """Of numbers that are drawn in pairs the second one too, which leaves the generator's words as they are."""
    np.random.set_bit_generator(bits(0))
    for draw in (np.random.rand, np.random.normal, np.random.normal, lambda: np.random.randint(9)):  # noqa: NPY002
        assert changes_states(draw)
    for draw in (random.random, lambda: random.getrandbits(1), lambda: random.seed(1)):
        assert changes_states(draw)
    assert changes_states(lambda: random.gauss(0.0, 1.0))
    assert changes_states(lambda: random.gauss(0.0, 1.0))


def test_generators_of_ones_own_leave_the_shared_ones_alone() -> None:
    own = np.random.RandomState(0)
    for go in (own.normal, np.random.default_rng(0).normal, random.Random(0).random, np.random.get_state):
        assert not changes_states(go)


# ---- what is followed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", [np.int64(-1), np.int8(-1), np.uint32(2**30), np.float32(-2), np.bool_(True), 1 - 2j]
)
@pytest.mark.parametrize("hold", [lambda n: {"a": n}, lambda n: {"a": [n, n]}, lambda n: SimpleNamespace(a=n).__dict__])
def test_numbers_of_numpy_in_containers_are_compared(number: Any, hold: Callable[[Any], dict[str, Any]]) -> None:
    held = hold(number)
    fast = fnad.jit(lambda x: x * np.sum(held["a"]))
    assert fast(2.0) == 2.0 * np.sum(held["a"])
    held.update(hold(type(number)(3)))
    assert fast(2.0) == 2.0 * np.sum(held["a"])


class InPlaceOfAModule:
    """An object in the place of its own module, whose attributes are found by user code."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def test_user_code_may_be_in_the_place_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = InPlaceOfAModule(sys.modules[__name__])
    monkeypatch.setitem(sys.modules, __name__, module)
    table = Table(np.ones(2))
    fast = fnad.jit(lambda x: x * len(table.columns) + (module.np.pi if module.random is random else 0.0))
    assert fast(1.0) == fast(1.0) == 1 + np.pi


class Row(list[Any]):
    """A list that counts how often its elements are listed."""

    listed = 0

    def __iter__(self) -> Iterator[Any]:
        Row.listed += 1
        return super().__iter__()


def total(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: fnad.grad(total)(x),
    "vjp": lambda x: fnad.vjp(total, x)[0],
    "vmap": lambda x: fnad.vmap(total)(x),
    "jit": lambda x: fnad.jit(total)(x),
    "compiled": fnad.jit(total),
}


@pytest.mark.parametrize("name", CALLS)
def test_data_that_is_not_read_is_not_searched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many functions are called with much data among the globals as with little, after a new name too."""

    def count(size: int) -> int:
        monkeypatch.setitem(globals(), "table", Row([Row([float(i)] * size) for i in range(size)]))
        monkeypatch.setitem(globals(), "records", [{"id": i, "values": [1.0, {"a": i}]} for i in range(size)])
        events: list[str] = []
        sys.setprofile(lambda frame, event, _: events.append(event))
        try:
            CALLS[name](x)
        finally:
            sys.setprofile(None)
        return len(events)

    x = np.ones(3)
    gc.disable()  # what it collects may call functions
    try:
        counts = [count(size) for size in (3, 3, 3, 3, 3, 300)]
    finally:
        gc.enable()
    assert counts[-1] == counts[-2]
    assert Row.listed == 0


def test_a_traced_value_is_read_from_a_list_in_few_steps() -> None:
    """Its class is of fnad, so that it is not searched for methods of user code at each read."""

    def reading(times: int) -> Callable[[], object]:
        def f(x: Any) -> Any:
            row = [x]
            for _ in range(times):
                x = row[0]
            return x

        return lambda: fnad.make_program(f)(np.ones(3))

    few, many = reading(10), reading(110)
    few()
    many()
    assert steps(many) - steps(few) < 60 * 100
