"""A function with traced values in the place of the arrays that it reads from outside.

`TABLE[i]` and `u = U0.copy(); u[0] = t` ask an ordinary array for what only a traced one can do, if i and t are traced.
Nothing stands between such an array and the code, which is NumPy's own affair. So the function is made once more of the
same code, with a namespace that hands out traced values for arrays: those in its globals, its closure and its defaults,
and those of the functions it finds there. The function itself, its module and its arrays are left alone; what is handed
out cannot be written to, and has the numbers of the array (see `fnad.ir.known`).

Likewise for a function with a cache, `functools.lru_cache`, or one compiled by Numba: on traced values the Python
function in it is called, which neither keeps them nor needs their numbers.

What holds an array in another way, an attribute or a list, is not reached. A function that binds globals or variables
of an enclosing function anew stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from fnad.ir.types import NAMES
from fnad.numpy.namespace import CALLS
from fnad.numpy.operands import as_symbol
from fnad.numpy.views import Broadcast
from fnad.trace.bytecode import rebinds
from fnad.trace.capture import Array, same_bits
from fnad.trace.contents import function_in
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_library


def opened(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `f` to which arrays from outside are traced values.

    It raises `OutsideChanged` where one of them was written to, or bound anew, while it ran.
    """

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        opening = Opening()
        result = opening.value(f)(*args, **kwargs)
        opening.check()
        return result

    return run


class OutsideChanged(BaseException):  # no error: nobody sees it, nor handles it
    """What was read from outside is no longer what was handed out for it, so that the run is void."""


class Opening:
    """What was handed out in one run of a function."""

    def __init__(self) -> None:
        self._functions: dict[int, tuple[FunctionType, FunctionType]] = {}
        self._namespaces: dict[int, Namespace] = {}
        self._cells: dict[int, tuple[CellType, CellType, Any]] = {}
        self._arrays: list[tuple[Array, Array]] = []

    def value(self, value: Any) -> Any:
        """The replacement for a value."""
        if not is_opened(value):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if (function := function_in(value)) is not None:
            return self._inner(value, function)
        if isinstance(value, MethodType):
            return MethodType(self.value(value.__func__), value.__self__)
        named = {name: self.value(arg) for name, arg in value.keywords.items()}
        return functools.partial(self.value(value.func), *map(self.value, value.args), **named)

    def check(self) -> None:
        """Raise where something is no longer what was handed out for it."""
        is_same = all(same_bits(array, before) for array, before in self._arrays)
        if not (is_same and all(cell.cell_contents is content for cell, _, content in self._cells.values())):
            raise OutsideChanged

    def _inner(self, value: Callable[..., Any], function: Any) -> Callable[..., Any]:
        """A function that is the Python function in a value on traced values, and the value on others."""

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (self.value(function) if CALLS["has_traced"]([args, kwargs]) else value)(*args, **kwargs)

        return call

    def _array(self, array: Array) -> Any:
        symbol = as_symbol(array)
        self._arrays.append((array, array.copy()))
        return Handle.concrete(symbol).through((Broadcast(symbol.shape),), symbol)

    # ---- functions ---------------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> FunctionType:
        known = self._functions.get(id(function))
        if known is not None:
            return known[1]
        cells = tuple(map(self._cell, function.__closure__ or ()))
        new = FunctionType(function.__code__, self._namespace(function), function.__name__, None, cells or None)
        self._functions[id(function)] = function, new
        new.__dict__, new.__module__, new.__qualname__ = function.__dict__, function.__module__, function.__qualname__
        new.__defaults__ = function.__defaults__ and tuple(map(self.value, function.__defaults__))
        new.__kwdefaults__ = {name: self.value(value) for name, value in (function.__kwdefaults__ or {}).items()}
        for cell, own, content in list(self._cells.values()):
            if cell is not own and is_empty(own):
                own.cell_contents = self.value(content)
        return new

    def _cell(self, cell: CellType) -> CellType:
        """The cell for a variable: the same for what is handed out as it is, since it may be bound anew."""
        if is_empty(cell) or not is_opened(cell.cell_contents):
            return cell
        return self._cells.setdefault(id(cell), (cell, CellType(), cell.cell_contents))[1]

    def _namespace(self, function: FunctionType) -> Namespace:
        found = self._namespaces.get(id(function.__globals__))
        if found is None:
            found = self._namespaces[id(function.__globals__)] = Namespace(function.__globals__, self)
        return found


class Namespace(dict[str, Any]):
    """The globals of a module, to code that looks names up in it.

    CPython asks `__getitem__` for a global where the namespace is not exactly a dict. Everything else sees what the
    module has.
    """

    def __init__(self, module: dict[str, Any], opening: Opening) -> None:
        super().__init__(module)
        self.module, self._opening = module, opening

    def __getitem__(self, name: str) -> Any:
        return self._opening.value(self.module[name])

    def get(self, name: str, default: Any = None) -> Any:
        return self.module.get(name, default)


def is_opened(value: Any) -> bool:
    """Whether something else is handed out for a value."""
    if isinstance(value, FunctionType):
        is_new = not isinstance(value.__globals__, Namespace)
        return is_new and not (is_library(value.__code__.co_filename) or rebinds(value.__code__))
    if isinstance(value, MethodType) or type(value) is functools.partial or function_in(value) is not None:
        return True
    return type(value) is np.ndarray and value.dtype.newbyteorder("=") in NAMES


def is_empty(cell: CellType) -> bool:
    """Whether the variable of a cell has no value."""
    try:
        cell.cell_contents  # noqa: B018  # it is asked for to see whether there is one
    except ValueError:
        return True
    return False
