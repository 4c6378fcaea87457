"""Device kernels on the host: the printed kernel itself, run by every thread of its grid, in an order that is drawn.

A thread is a generator that stops at barriers and shuffles. What a device would not notice is an error here: two
threads that touch an element without a barrier in between, one of them writing, unless both add to it atomically; a
barrier or a shuffle that not all come to; an index out of bounds. What nobody has stored, in memory that a block shares
or a thread has, is nan or another odd number.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from fnad.kernel.device import SHARED_ARRAYS
from fnad.kernel.launches import Launch
from fnad.kernel.python_source import kernel_text, namespace
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.kernel.statements import STATUS, Kernel

Array = np.ndarray[Any, Any]

MOST_BLOCKS, MOST_THREADS = 2**31 - 1, 1024
"""What CUDA launches at most, of blocks and of threads in each."""


class KernelError(AssertionError):
    """What a kernel must not do."""


def power(x: Any, y: Any) -> Any:
    """The power, as on a device: of the number 0.5 NumPy takes square roots, which differ at -0.0 and -inf."""
    return np.power([x], [y], dtype=np.result_type(x, y))[0]


RESIDENT = 4
"""The most blocks that run at the same time: one begins when another one has ended."""


def run(launch: Launch, arrays: Sequence[Array], schedule: random.Random, warp: int = 32) -> None:
    """Run a launch on flat arrays, in the order of its kernel's parameters; `schedule` draws who goes on."""
    if not (0 < launch.blocks <= MOST_BLOCKS and 0 < launch.threads <= MOST_THREADS):
        raise KernelError(f"{launch.kernel.name} has {launch.blocks} blocks of {launch.threads} threads")
    watched = [Watched(p.name, a.reshape(-1)) for p, a in zip(launch.kernel.parameters, arrays, strict=True)]
    SEEN.clear()
    blocks = list(range(launch.blocks))
    schedule.shuffle(blocks)
    with np.errstate(all="ignore"):
        begin = (Block(launch, number, warp).run(watched, schedule) for number in blocks)
        running = list(islice(begin, RESIDENT))
        while running:
            schedule.shuffle(running)
            goes_on = [next(block, None) for block in running]
            if not any(found is not False for found in goes_on):
                raise KernelError("blocks wait for ever")
            running = [block for block, found in zip(running, goes_on, strict=True) if found is not None]
            running += islice(begin, RESIDENT - len(running))


# ---- memory ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Place:
    """Where a run is: the thread that goes on, its warp, and how many barriers its block and its warp have passed."""

    block: int = 0
    thread: int = 0
    barriers: int = 0
    warp: int = 0
    warp_barriers: int = 0

    @property
    def time(self) -> tuple[int, int, int]:
        return self.barriers, self.warp, self.warp_barriers

    def is_later(self, time: tuple[int, int, int]) -> bool:
        """Whether a barrier was passed after a time of this block."""
        barriers, warp, warp_barriers = time
        return barriers != self.barriers or (warp == self.warp and warp_barriers != self.warp_barriers)


HERE = Place()
SEEN: defaultdict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
"""The threads whose marks each thread has waited for, by block and number."""


class Watched:
    """A flat array that knows who touched its elements since when."""

    def __init__(self, name: str, values: Array) -> None:
        self.name = name
        self.values = values
        self.written: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
        self.read: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
        self.added: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
        self.publishers: dict[int, tuple[int, int]] = {}

    def __getitem__(self, index: Any) -> Any:
        n = self._bounded(index)
        self._note(self.read, n)
        self._check(self.written, n)
        self._check(self.added, n)
        return self.values[n]

    def __setitem__(self, index: Any, value: Any) -> None:
        n = self._bounded(index)
        assert np.asarray(value).dtype == self.values.dtype or isinstance(value, int | float | bool), self.name
        self._note(self.written, n)
        # Whose fault is reported when several threads find one is open.
        if self.name != STATUS.name:
            self._check(self.written, n)
            self._check(self.read, n)
        self._check(self.added, n)
        self.values[n] = value

    def add(self, index: Any, value: Any) -> None:
        """Add to an element at once."""
        n = self._bounded(index)
        assert np.asarray(value).dtype == self.values.dtype, self.name
        self._note(self.added, n)
        self._check(self.read, n)
        self._check(self.written, n)
        self.values[n] += value

    def draw(self, index: Any) -> Any:
        """The number of draws before this one."""
        n = self._bounded(index)
        self.values[n] += 1
        return self.values[n] - 1

    def publish(self, marks: Watched, index: Any, value: Any) -> None:
        """Store a value, and mark that it may be read by those that wait for it."""
        self[index] = value
        n = marks._bounded(index)
        marks.values[n] = 1
        marks.publishers[n] = HERE.block, HERE.thread

    def published(self, marks: Watched, index: Any) -> Any:
        """The value that is marked."""
        SEEN[HERE.block, HERE.thread].add(marks.publishers[int(index)])
        return self[index]

    def _bounded(self, index: Any) -> int:
        n = int(index)
        if not 0 <= n < self.values.size:
            raise KernelError(f"{self.name}[{n}] is out of bounds: it has {self.values.size} elements")
        return n

    @staticmethod
    def _note(table: dict[int, dict[tuple[int, int], tuple[int, int, int]]], n: int) -> None:
        table.setdefault(n, {})[HERE.block, HERE.thread] = HERE.time

    def _check(self, table: dict[int, dict[tuple[int, int], tuple[int, int, int]]], n: int) -> None:
        for (block, thread), time in table.get(n, {}).items():
            is_other = (block, thread) != (HERE.block, HERE.thread)
            is_other &= (block, thread) not in SEEN[HERE.block, HERE.thread]
            if is_other and (block != HERE.block or not HERE.is_later(time)):
                raise KernelError(
                    f"a race for {self.name}[{n}]: thread {thread} of block {block}, "
                    f"and thread {HERE.thread} of block {HERE.block}"
                )


def unset(size: int, dtype: Any) -> Array:
    """An array of odd numbers."""
    return np.full(size, np.nan if dtype.kind in "fc" else dtype.type(np.array(-86).astype(dtype)), dtype)


# ---- threads -----------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """The threads of a block: what each waits for, and what they share."""

    launch: Launch
    number: int
    warp: int
    shared: dict[str, Watched] = field(default_factory=dict[str, Watched])
    barriers: int = 0

    def run(self, arrays: Sequence[Watched], schedule: random.Random) -> Generator[bool, None, None]:
        """Run until all threads have ended; each time that they wait, give whether some go on without other blocks."""
        names = self._names()
        function = compiled(self.launch.kernel)
        exec(function, names)
        body: Any = names[self.launch.kernel.name]
        self.threads: list[Generator[Any, Any, None]] = [body(*arrays) for _ in range(self.launch.threads)]
        self.waiting: dict[int, tuple[Any, ...]] = {}
        self.warp_barriers = [0] * -(-self.launch.threads // self.warp)
        ready: dict[int, Any] = dict.fromkeys(range(self.launch.threads))
        while True:
            order = list(ready)
            schedule.shuffle(order)
            for thread in order:
                self._advance(thread, ready.pop(thread))
            if all(where == ("end",) for where in self.waiting.values()):
                return
            ready = self._released()
            yield bool(ready)

    def _names(self) -> dict[str, Any]:
        names = namespace(kernel_text(self.launch.kernel))
        names |= {
            "power": power,
            "thread": lambda: HERE.thread,
            "block": lambda: self.number,
            "atomic_add": Watched.add,
            "ticket": Watched.draw,
            "publish": Watched.publish,
        }
        names |= {r.name: partial(unset, dtype=dtype) for dtype, r in LOCAL_ARRAYS.items()}
        return names | {r.name: partial(self._shared, dtype) for dtype, r in SHARED_ARRAYS.items()}

    def _shared(self, dtype: Any, size: Any, where: str) -> Watched:
        """The shared array of a place in the text: the same one in each iteration of a loop around it."""
        if where not in self.shared:
            self.shared[where] = Watched(f"shared{len(self.shared)}", unset(int(size), dtype))
        return self.shared[where]

    def _place(self, thread: int) -> None:
        HERE.block, HERE.thread, HERE.barriers = self.number, thread, self.barriers
        HERE.warp = thread // self.warp
        HERE.warp_barriers = self.warp_barriers[HERE.warp]

    def _advance(self, thread: int, value: Any) -> None:
        self._place(thread)
        try:
            self.waiting[thread] = self.threads[thread].send(value)
        except StopIteration:
            self.waiting[thread] = ("end",)

    def _released(self) -> dict[int, Any]:
        """The threads that go on, with what they are given."""
        kinds = {where[:2] for where in self.waiting.values()}
        if len(kinds) == 1 and next(iter(kinds))[0] == "barrier":
            self.barriers += 1
            return dict.fromkeys(self.waiting)
        found = self._awaited()
        if found:
            return found
        for start in range(0, self.launch.threads, self.warp):
            lanes = range(start, min(start + self.warp, self.launch.threads))
            if len({self.waiting[lane][:2] for lane in lanes}) > 1:
                continue
            if self.waiting[start][0].startswith("shuffle"):
                found |= {lane: self._shuffled(lane, lanes) for lane in lanes}
            elif self.waiting[start][0] == "warp_barrier":
                self.warp_barriers[start // self.warp] += 1
                found |= dict.fromkeys(lanes)
        if not found and "published" not in {kind for kind, *_ in kinds}:
            raise KernelError(f"not all threads come to the same barriers and shuffles: {sorted(kinds)}")
        return found

    def _awaited(self) -> dict[int, Any]:
        """The threads that wait for a value that is published, with the value."""
        found: dict[int, Any] = {}
        for thread, (kind, *others) in self.waiting.items():
            if kind == "published" and others[2].values[int(others[3])]:
                self._place(thread)
                found[thread] = Watched.published(*others[1:])
        return found

    def _shuffled(self, lane: int, lanes: range) -> Any:
        kind, _, _, number = self.waiting[lane]
        places = {"shuffle_down": lane + int(number), "shuffle_up": lane - int(number)}
        source = places.get(kind, lane // max(int(number), 1) * int(number))
        value = self.waiting[source][2] if source in lanes else None
        # Beyond the warp there is nothing that a kernel may use.
        return unset(1, np.asarray(self.waiting[lane][2]).dtype)[0] if value is None else value


class _Stops(ast.NodeTransformer):
    """Makes barriers and shuffles the points where a thread stops, and tells shared arrays where they are made."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        where = ast.Constant(f"{node.lineno}:{node.col_offset}")
        if name.startswith("shared_"):
            node.args.append(where)
        if name in ("barrier", "warp_barrier", "shuffle_down", "shuffle_up", "shuffle_first", "published"):
            return ast.Yield(ast.Tuple([ast.Constant(name), where, *node.args], ast.Load()))
        return node


@cache
def compiled(kernel: Kernel) -> Any:
    """A kernel as a generator."""
    tree = ast.parse(kernel_text(kernel))
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    _Stops().visit(function)
    function.body += ast.parse("if 0:\n    yield").body
    return compile(ast.fix_missing_locations(tree), f"<{kernel.name}>", "exec")
