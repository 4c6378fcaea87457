"""x.flat and x.flags of a traced array: its elements in C order, and whether it can be written to.

How it lies in memory, a trace does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fnad.numpy.methods import flat_getitem, flat_setitem
from fnad.trace import escape
from fnad.trace.dispatch import assign, call, call_function, call_ufunc, check_number
from fnad.trace.handle import Elements, Handle
from fnad.trace.operators import COMPARISONS
from fnad.trace.source import is_called_by


class Flat(Elements):
    """An iterator over the elements of a traced array, as NumPy's flatiter."""

    __slots__ = ("_base", "index")
    __hash__ = None  # pyright: ignore[reportAssignmentType]  # as NumPy's

    def __init__(self, base: Handle) -> None:
        self._base = base
        self.index = 0

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The class that `isinstance` reads."""
        return np.flatiter

    @property
    def base(self) -> Any:
        return self._base

    @property
    def coords(self) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(self.index, self._base.aval.shape))

    def __len__(self) -> int:
        return self._base.aval.size

    def __iter__(self) -> Iterator[Any]:
        self.index = 0
        return self

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def __getitem__(self, index: Any) -> Any:
        return call(flat_getitem, (self._base, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        check_number(value, self._base.aval.dtype)
        assign(flat_setitem, self._base, index, value)

    def copy(self) -> Any:
        return self[...]

    elements = copy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.copy(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)


def _compared(ufunc: np.ufunc) -> Callable[[Flat, Any], Any]:
    return lambda flat, other: ufunc(flat.copy(), other)


for _name, _ufunc in COMPARISONS.items():
    setattr(Flat, f"__{_name}__", _compared(_ufunc))


KNOWN = {"writeable", "WRITEABLE", "W"}
CONTIGUOUS = {"contiguous", "c_contiguous", "C_CONTIGUOUS"}
"""The flags that NumPy and SciPy read before they copy an array for C; a traced array needs no copy."""


class Flags:
    """The flags of a traced array."""

    __slots__ = ("_array",)

    def __init__(self, array: Handle) -> None:
        object.__setattr__(self, "_array", array)

    def __getitem__(self, name: Any) -> bool:
        if name in CONTIGUOUS and is_called_by("scipy.", "numpy."):
            return True
        return self._array.is_writeable if name in KNOWN else self._refuse()

    def __getattr__(self, name: str) -> bool:
        if name.startswith("__"):
            raise AttributeError(f"the flags of a traced value have no {name!r}", name=name, obj=self)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()

    def _refuse(self) -> Any:
        """Raise the error for flags, because they are not a method."""
        return escape.attribute_asked(self._array.aval, self._array.__class__, "flags")
