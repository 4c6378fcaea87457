"""The last call of a compiled function, ready to be made again.

Most calls are like the one before. Their arguments have the same form, structure, types, dtypes and shapes, the
settings are the same, and the values that the function reads are unchanged. Their path is native code, and has come
twice in a row where it has guards. Such a call compares each of these and runs the native code. Any other one is looked
up by its signature (`functions/jit.py`). What came some times in a row is one call of a builtin, where the backend has
one (`Native.direct`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from fnad import config
from fnad.api.running.forms import CallForm
from fnad.api.running.paths import TracedPath
from fnad.api.staging.leaves import Array, Structure, array_of, flatten, to_user
from fnad.backends.base import ANOTHER, CallBefore, TreeShape
from fnad.ir.types import NAMES
from fnad.placement import is_drivers

NUMBERS = {*map(id, (bool, int, float, complex, *(dtype.type for dtype in NAMES)))}
"""Types, by identity, of numbers that are as good as any other of the type, except an int that is too large."""

INTEGERS = range(-(2**63), 2**63)
"""The integers that are not."""


OFTEN = 8
"""The calls in a row after which a direct call is prepared, which takes as long as some fifty direct calls.

While the code of direct calls is being compiled, the next attempt is after twice as many calls.
"""


class Ready:
    """A call of a path; `values` are the leaves of the traced arguments, of this structure.

    `form` is None if all arguments are positional and traced.

    `direct` makes the call by a builtin, or returns `ANOTHER`; it holds while the program has native code.
    """

    __slots__ = (
        "_are_leaves",
        "_calls",
        "_kinds",
        "_next",
        "_settings",
        "_structure",
        "direct",
        "form",
        "path",
        "program",
    )

    def __init__(
        self,
        path: TracedPath,
        form: CallForm | None,
        args: tuple[Any, ...],
        values: Sequence[Any],
        structure: Structure,
    ) -> None:
        self.path, self.form = path, form
        self._structure, self._settings = structure, config.current()
        self.program = path.programs[0]
        self.direct: Callable[..., Any] = _not_direct
        self._calls, self._next = 0, OFTEN
        self._are_leaves = len(values) == len(args) and all(map(is_, values, args))
        self._kinds = [
            (type(value), None, ()) if id(type(value)) in NUMBERS else (type(value), value.dtype, value.shape)
            for value in values
        ]

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The result for these arguments, or `ANOTHER`; raise `GuardFailed` for another path."""
        path = self.path
        if config.current() is not self._settings or not path.environment.holds():
            return ANOTHER
        arrays = self._arrays(args)
        results = None if arrays is None else path.run_ready(arrays)
        if results is None:
            return ANOTHER
        self._calls += 1
        if self._calls == self._next:
            self._next *= 2
            self.direct = self._made_direct(args) or _not_direct
        return path.output.rebuild([to_user(result) for result in results])

    def _made_direct(self, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        path = self.path
        conditions = path.environment.conditions()
        if conditions is None or path.output.halves or path.draws:
            return None
        values, structure = flatten(args)
        trees, output = tree_of(structure), path.output
        before = CallBefore(
            values, trees, path.captured, tree_of(output.structure), output.arrays, [*config.conditions(), *conditions]
        )
        return self.program.direct(before)

    def _arrays(self, args: tuple[Any, ...]) -> list[Array] | None:
        """The leaves as arrays, if they are as those of the call before."""
        if self._are_leaves:
            values: Sequence[Any] = args
            is_like = len(args) == len(self._kinds)
        else:
            values, structure = flatten(args)
            is_like = structure == self._structure
        if not is_like:
            return None
        arrays: list[Array] = []
        for value, (kind, dtype, shape) in zip(values, self._kinds, strict=True):
            if type(value) is not kind:
                return None
            if dtype is None:
                if kind is int and value not in INTEGERS:
                    return None
                arrays.append(array_of(value))
            elif value.dtype is dtype and value.shape == shape:
                arrays.append(value)
            else:
                return None
        return arrays


def _not_direct(*_: Any) -> Any:
    return ANOTHER


def tree_of(structure: Structure) -> TreeShape:
    """The pytree of a structure."""
    keys = tuple(structure.entries()) if structure.type is dict else ()
    return TreeShape(structure.type, tuple(map(tree_of, structure.children())), keys)


def ready(
    path: TracedPath,
    form: CallForm | None,
    args: tuple[Any, ...],
    values: Sequence[Any],
    structure: Structure,
    *,
    again: bool,
) -> Ready | None:
    """A call that has just been made, ready to be made again, if it can be; `again` if its path came twice in a row."""
    settings = config.current()
    is_native = path.is_compiled and settings.executor != "interpreter" and not settings.debug_nans
    if (path.guards and not again) or len(path.programs) > 1 or path.written or not is_native:
        return None
    return Ready(path, form, args, values, structure) if all(map(is_given_as_it_is, values)) else None


def is_given_as_it_is(value: Any) -> bool:
    """True if a program takes the memory of a value, or any other number of its type, and nothing made of it."""
    if type(value) is np.ndarray:
        return value.dtype in NAMES  # in another byte order it is copied
    return id(type(value)) in NUMBERS or is_drivers(value)
