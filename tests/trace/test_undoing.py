"""A run that is abandoned changes nothing: the function runs again and finds all as the first run found it."""

from __future__ import annotations

import bisect
import heapq
import io
import itertools
import operator
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fnad


class Source:
    """An object whose attributes and elements functions change."""

    count = 0
    of_class = 0

    def __init__(self) -> None:
        self.values = [1.0]
        self.array = np.zeros(2)
        self.iterator = iter(range(1, 50))
        self.flag = False
        self._size = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> int:
        self.count += 1
        return self.count

    @property
    def size(self) -> int:
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size


class Slots:
    __slots__ = ("count",)


total = 0


def of_global() -> Callable[[], float]:
    def step() -> float:
        global total  # noqa: PLW0603
        total = total + 2
        return total

    globals()["total"] = 0
    return step


def of_variable() -> Callable[[], float]:
    count = 0

    def step() -> float:
        nonlocal count
        count += 1
        return count

    return step


def of_attributes() -> Callable[[], float]:
    def step() -> float:
        source.count += 1
        source.flag = not source.flag
        source.size = source.size + 3
        source.array += 1.0
        Source.of_class += 1
        setattr(source, name, getattr(source, name, 0) + 1)
        slots.count = getattr(slots, "count", 0) + 1
        return (
            source.count
            + source.flag
            + source.size
            + source.array[0]
            + getattr(source, name)
            + slots.count
            + Source.of_class
        )

    source, slots, Source.of_class, name = Source(), Slots(), 0, "made"
    return step


def of_containers() -> Callable[[], float]:
    def step() -> float:
        values.append(1.0)
        values[0] += 2.0
        table["new"] = table.get("new", 0.0) + 1.0
        ordered.setdefault(len(ordered), 1.0)
        grouped[0].append(3.0)
        ring.rotate(1)
        ring[0] += 1
        members.add(len(members))
        alias = values
        alias += [4.0]
        push(7.0)
        heapq.heappush(heap, -len(heap))
        bisect.insort(order, len(order))
        del values[1]
        contents = (values, table.values(), ordered.values(), grouped[0], ring, members, heap, order)
        return float(sum(sum(part) * 2**i for i, part in enumerate(contents)))

    values, table, ordered, grouped = [1.0, 2.0], {"old": 1.0}, OrderedDict[int, float](), defaultdict(list)
    ring, members, heap, order = deque([1, 2, 3], maxlen=3), {0}, [0], [0]
    push = values.append
    return step


def of_iterators() -> Callable[[], float]:
    def step() -> float:
        found = [next(made), next(iter(counts)), *itertools.islice(source.iterator, 2), next(source)]
        first, (_, second) = next(lines), next(zip(range(2), table["iterator"], strict=False))
        for each in squares:
            found.append(each)
            break
        return sum(found) + float(first) + second

    made, counts, squares = iter([1.0] * 9 + [2.0]), itertools.count(1), (i**2 for i in range(30))
    lines, table, source = iter(map(str, range(40))), {"iterator": iter(range(50))}, Source()
    return step


def of_draws() -> Callable[[], float]:
    def step() -> float:
        drawn = numbers.normal() + old.uniform() + random.random() + own.gauss()
        drawn += np.random.standard_normal()  # noqa: NPY002
        random.shuffle(cards)
        return drawn + cards[0]

    numbers, old, own, cards = np.random.default_rng(1), np.random.RandomState(2), random.Random(3), list(range(20))
    random.seed(4)
    np.random.seed(5)  # noqa: NPY002
    return step


def of_a_file() -> Callable[[], float]:
    def step() -> float:
        first, second = float(file.readline()), float(next(file))
        for line in file:
            return first + second * float(line)
        return 0.0

    file = io.StringIO("\n".join(map(str, range(40))))
    return step


def of_records() -> Callable[[], float]:
    state = SimpleNamespace(step=0, log=[])

    def step() -> float:
        state.step += 1
        state.log += [state.step]
        return len(state.log) + state.step / 8

    return step


class Strict:
    x: int

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


def of_methods_of_classes() -> Callable[[], float]:
    def step() -> float:
        strict.x += 1
        object.__setattr__(point, "x", point.x + 2)
        list.append(values, 1.0)
        operator.iadd(values, [2.0])
        operator.setitem(table, "a", table["a"] + 3.0)
        return strict.x + point.x / 8 + sum(values) * 64 + table["a"] * 512

    strict, point, values, table = Strict(), SimpleNamespace(x=0), [1.0], {"a": 1.0}
    strict.x = 0
    return step


MAKING = [
    *(of_global, of_variable, of_attributes, of_containers, of_iterators, of_draws, of_a_file, of_records),
    of_methods_of_classes,
]


def filling(step: Callable[[], float]) -> Callable[..., Any]:
    """Return a function that runs twice, because it fills an array."""

    def f(t: float) -> Any:
        values = np.zeros(2)
        values[0] = t * step()
        return values.sum()

    return f


def within(step: Callable[[], float]) -> Callable[..., Any]:
    """Return a function that runs twice, because a function in it fills an array."""
    return lambda t: fnad.jit(lambda t: fnad.checkpoint(filling(step))(t))(t)


def writing(step: Callable[[], float]) -> Callable[..., Any]:
    """Return a function that runs twice, because it writes into a large argument."""

    def f(t: float, values: Any) -> Any:
        values[0] = step()
        return t * values[0]

    return lambda t: fnad.grad(f)(t, np.ones(2**15))


@pytest.mark.parametrize("make", MAKING, ids=lambda make: make.__name__)
@pytest.mark.parametrize("way", [filling, within, writing], ids=lambda way: way.__name__)
@pytest.mark.parametrize("transform", ["grad", "jit"])
def test_a_function_that_runs_twice_changes_what_one_run_does(make: Any, way: Any, transform: str) -> None:
    plain = make()
    expected = [plain() for _ in range(3)]
    f = way(make())
    compiled = fnad.jit(f)
    run = compiled if transform == "jit" else f if way is writing else fnad.grad(f)
    assert [float(run(1.0)) for _ in range(3)] == pytest.approx(expected, rel=1e-15)


ITERATORS: dict[str, Callable[[], Iterator[float]]] = {
    "count": lambda: itertools.count(1.0),
    "cycle": lambda: itertools.cycle([1.0, 2.0]),
    "reversed": lambda: reversed([2.0, 1.0]),
    "map": lambda: map(float, range(1, 9)),
    "filter": lambda: filter(None, [1.0, 2.0]),
}


@pytest.mark.parametrize("name", ITERATORS)
def test_a_second_run_reads_an_iterator_of_a_class_that_a_trace_called(name: str) -> None:
    def f(t: float, filled: Any) -> Any:
        filled[0] = next(values)
        return t * filled[0]

    make = ITERATORS[name]
    assert fnad.grad(lambda t: t * next(make()))(1.0) == next(make())
    values, expected = make(), make()
    for _ in range(2):
        assert fnad.grad(f)(1.0, np.ones(2**15)) == next(expected)


def test_an_iterator_among_the_arguments() -> None:
    def f(t: float, batches: Iterator[float]) -> Any:
        values = np.zeros(2)
        values[0] = t * next(batches)
        return values.sum()

    batches = iter([1.0, 2.0, 3.0])
    assert [fnad.grad(f)(1.0, batches) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_iterators_that_do_more_are_themselves() -> None:
    def f(t: float) -> Any:
        values = np.zeros(4)
        values.flat[1] = 2.0
        values[0] = t * len(values.flat) + values.flat[1]
        return values.sum()

    assert fnad.grad(f)(1.0) == 4.0


def test_a_replayed_iterator_is_what_it_replays() -> None:
    def f(t: float) -> Any:
        sent.append((isinstance(batches, Generator), batches.send(None)))
        values = np.zeros(2)
        values[0] = t
        return values.sum()

    sent: list[Any] = []
    batches = (i for i in range(9))
    fnad.grad(f)(1.0)
    assert [is_generator for is_generator, _ in sent] == [True]


WRITES: dict[str, Callable[[Any], Any]] = {
    "an element": lambda g: operator.setitem(g, 0, g[0] + 1.0),
    "a method of the class": lambda g: g.__setitem__(0, g[0] + 1.0),
    "an operator": lambda g: g.__iadd__(1.0),
    "a method": lambda g: g.fill(g[0] + 1.0),
    "a function": lambda g: np.copyto(g, g + 1.0),
    "put": lambda g: np.put(g, [0], g[0] + 1.0),
    "place": lambda g: np.place(g, [True, False], [g[0] + 1.0]),
    "at": lambda g: np.add.at(g, [0], 1.0),
    "out": lambda g: np.add(g, 1.0, out=g),
    "out by place": lambda g: np.add(g, 1.0, g),
    "a reduction": lambda g: np.sum(g[:, None] + 1.0, axis=1, out=g),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_trace_that_begins_again_for_a_loop_writes_once(write: Callable[[Any], Any]) -> None:
    array = np.zeros(2)

    def f(x: Any, a: Any) -> Any:
        write(array)
        s = 0.0
        for v in x:
            if v > a:
                s = s + v
        return s

    x = np.cos(np.arange(200.0))
    assert fnad.jit(f)(x, 0.1) == pytest.approx(x[x > 0.1].sum(), rel=1e-12)
    assert array[0] == 1.0
