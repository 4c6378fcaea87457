"""A call like the one before, from the user's arguments to the user's results, as one call of a builtin function.

Compared, made and returned are Python objects, so that a microsecond of arithmetic has many of Python around it. Here
all of it is native code (`fnad.backends.cpu.direct_code`), which reads a record of the call before:

    direct(*arguments):
        if the record is in use, or a condition does not hold: return ANOTHER
        match the arguments with the pytree of those before; arrays and numbers go into `objects`
        put new results into `objects`; run each kernel on those that it takes
        return the pytree of the results

What differs in any way is `ANOTHER` call, and so is one that fails by its status: the caller makes it in the general
way, which reports the error. The GIL guards the record, which is in use while a kernel runs without it; the arguments
are held as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from fnad.backends.background import BACKGROUND
from fnad.backends.base import ANOTHER, Array, CallBefore, TreeShape
from fnad.backends.cpu import direct_code, native
from fnad.backends.cpu.direct_code import Tag
from fnad.backends.cpu.loader import LOCK
from fnad.backends.cpu.objects import FUNCTIONS, builtin, function_of, numpy_function
from fnad.ir.types import NAMES
from fnad.trace.parts import MISSING

CONTAINERS = {tuple: "TUPLE", list: "LIST", dict: "DICT"}
NUMBERS = {
    **dict.fromkeys((dtype.type for dtype in NAMES), "SCALAR"),
    float: "NUMBER",
    np.float64: "NUMBER",
    complex: "COMPLEX",
    int: "INTEGER",
    bool: "INTEGER",
}
"""The way in which a direct call reads a number of each type."""

WORD = 8
"""The bytes of a word."""

Calls: TypeAlias = Sequence[tuple[Callable[..., None], Sequence[int]]]


class Kernels(NamedTuple):
    """The builtins to run, each with the positions of its arrays.

    The arrays are those of the arguments, then captured ones, new results, and the memory of the program. The last
    array of the memory is its status, and one is the table of its residual `stacks`, which are freed after each call. A
    result is made by a function with its shape and dtype.
    """

    calls: Calls
    results: Sequence[tuple[Callable[..., Array], tuple[int, ...], np.dtype[Any]]]
    memory: Sequence[Array]
    stacks: Array


def can_be_direct(before: CallBefore) -> bool:
    """True if a call has arguments and results of the kinds that direct calls have."""
    are_known = all(type(value) is np.ndarray or type(value) in NUMBERS for value in before.values)
    return are_known and _is_plain(before.arguments) and _is_plain(before.results)


def _is_plain(tree: TreeShape) -> bool:
    """True if a pytree has Python containers alone, with keys that are compared without user code."""
    is_known = tree.kind is None or tree.kind is NoneType or tree.kind in CONTAINERS
    return is_known and all(type(key) in (str, int) for key in tree.keys) and all(map(_is_plain, tree.children))


class DirectCode:
    """The native function that all direct calls share, which is compiled in the background."""

    def __init__(self) -> None:
        self._address: int | None = None

    def ready(self) -> int | None:
        """The address of the function, if it is there."""
        if self._address is None:
            BACKGROUND.compile(self)
        return self._address

    def compile_in_background(self) -> None:
        """Compile the function."""
        llvm.add_symbol("direct_ndarray", id(np.ndarray))
        for name in FUNCTIONS:
            llvm.add_symbol(name, numpy_function(name))
        with LOCK:
            engine = native.linked(["direct_call"], direct_code)
            self._address = engine.get_function_address("direct_call")
            engine.detach()  # which unloads nothing


CODE = DirectCode()


def direct_call(address: int, before: CallBefore, kernels: Kernels) -> Callable[..., Any]:
    """The builtin function that makes the call before again, or returns `ANOTHER`; its code is at `address`."""
    return builtin("direct", address, _Record(before, kernels).owner)


class _Record:
    """The record of a call, and all that it refers to."""

    def __init__(self, before: CallBefore, kernels: Kernels) -> None:
        self._kept: list[Any] = [kernels]
        cells = [self._cell(value) for value in before.values]
        results = [self._result(n, new, before) for n, new in enumerate(kernels.results)]
        # what is held for a call comes first: arguments, then results
        n, m, captured = len(cells), len(results), len(before.captured)
        objects = self._section([*[0] * (n + m), *map(self._object, [*before.captured, *kernels.memory])])
        order = [*range(n), *range(n + m, n + m + captured), *range(n, n + m)]
        order += range(n + m + captured, n + m + captured + len(kernels.memory))
        record = [
            0,
            len(before.arguments.children),
            max(len(positions) for _, positions in kernels.calls),
            self._object(ANOTHER),
            kernels.memory[-1].ctypes.data,
            objects,
            objects + WORD * (n + m),
            objects + WORD * n,
            self._section(self._conditions(before.conditions)),
            self._section(self._matches(before.arguments.children, zip(before.values, cells, strict=True))),
            self._section(word for words, _ in results for word in words),
            self._section(self._calls(kernels.calls, [objects + WORD * position for position in order])),
            self._section(self._tree(before.results, iter([kind for _, kind in results]))),
            kernels.stacks.ctypes.data,
            kernels.stacks.ctypes.data + kernels.stacks.nbytes,
        ]
        self.owner = np.array(record, np.int64), self._kept

    def _object(self, value: Any) -> int:
        self._kept.append(value)
        return id(value)

    def _section(self, words: Iterable[int]) -> int:
        section = np.array([*words, 0], np.int64)
        self._kept.append(section)
        return section.ctypes.data

    def _conditions(self, conditions: Sequence[tuple[Any, ...]]) -> Iterator[int]:
        for word, *objects in conditions:
            yield from self._words(word, *objects)

    def _words(self, kind: str, *values: Any) -> list[int]:
        """A word and objects, 0 for none."""
        return [Tag[kind], *[0 if value is MISSING else self._object(value) for value in values]]

    # ---- arguments -----------------------------------------------------------------------------------------------

    def _cell(self, value: Any) -> Array | None:
        """The array that a kernel finds a number in, with room for the longest."""
        return None if type(value) is np.ndarray else np.zeros((), complex)

    def _matches(self, trees: Sequence[TreeShape], leaves: Any) -> list[int]:
        return [word for tree in trees for word in self._match(tree, leaves)]

    def _match(self, tree: TreeShape, leaves: Any) -> list[int]:
        if tree.kind is None:
            value, cell = next(leaves)
            if cell is None:
                return [*self._words("ARRAY", np.ndarray, value.dtype), value.ndim, self._section(value.shape)]
            return self._words(NUMBERS[type(value)], type(value), cell)
        if tree.kind is NoneType:
            return self._words("OBJECT", NoneType)
        inside = [self._match(child, leaves) for child in tree.children]
        return [*self._words(CONTAINERS[tree.kind], tree.kind), *self._inside(tree, inside)]

    def _inside(self, tree: TreeShape, children: Sequence[list[int]]) -> list[int]:
        keys = [[self._object(key)] for key in tree.keys] or [[] for _ in children]
        return [len(children), *[word for key, child in zip(keys, children, strict=True) for word in (*key, *child)]]

    # ---- results -------------------------------------------------------------------------------------------------

    def _result(self, n: int, new: Any, before: CallBefore) -> tuple[list[int], str]:
        """The code that makes a result, and the value that the user receives."""
        make, shape, dtype = new
        if not shape and n not in before.arrays:
            return self._words("NUMBER", np.zeros((), dtype)), "NUMBER"
        if make is not np.empty:
            return self._words("ASKED", partial(make, shape, dtype)), "ARRAY"
        return [*self._words("ARRAY", dtype), len(shape), self._section(shape)], "ARRAY"

    def _tree(self, tree: TreeShape, leaves: Any) -> list[int]:
        if tree.kind is None:
            return [Tag[next(leaves)]]
        if tree.kind is NoneType:
            return self._words("OBJECT", None)
        inside = [self._tree(child, leaves) for child in tree.children]
        return [Tag[CONTAINERS[tree.kind]], *self._inside(tree, inside)]

    def _calls(self, calls: Calls, places: Sequence[int]) -> Iterator[int]:
        for call, positions in calls:
            yield from (function_of(call), len(positions), *[places[position] for position in positions])
