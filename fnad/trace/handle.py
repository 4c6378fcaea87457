"""A handle on a value: what a traced array is, apart from NumPy.

The IR has no mutation. A cell holds the symbol that some memory stands for at present; a write puts another symbol
there. A handle is a cell and a chain of view steps. Handles that share memory share a cell, so what is written through
one is read by all, as in NumPy. What a view reads is kept until the cell's version changes.

Note [View or copy]
    Whether NumPy's reshape returns a view or a copy depends on the layout of the array in memory, which a trace knows
    only of what NumPy makes in C order, such as zeros. It matters only when one of the two is written to and the other
    is read afterwards: then there is no answer, and reading is an error. So a write through such a step goes to memory
    of its own, and what it may have changed too is closed.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import ReferenceType, ref

import numpy as np

from fnad.errors import MutationError
from fnad.ir.builder import Builder, current_builder
from fnad.ir.known import known_value
from fnad.ir.program import Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.numpy.operands import WeakSymbol, strong
from fnad.numpy.views import ImaginaryPart, NoImaginaryPart, RealPart, Reshape, Steps, read, settled, write
from fnad.ops.shape import iota, reshape_to
from fnad.trace import escape
from fnad.trace.capture import note_write
from fnad.upward import UPWARD

Array: TypeAlias = "np.ndarray[Any, Any]"


MANY = 2**20
"""Elements of a memory up to which views of it are compared element by element."""


class Cell:
    """The present value of some memory; `is_open` until nobody can tell it (Note [View or copy]).

    It is surely in C order where `in_order` says so. `lent` are ordinary arrays that were given out in its place, as
    long as somebody has them.
    """

    is_written = False
    written_at: Source | None = None
    in_order = False
    version = 0
    is_open = True
    lent: tuple[ReferenceType[Array], ...] = ()

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol


class Handle:
    """A traced value: an array, or where `is_scalar` a NumPy or Python number, which cannot be written to."""

    __slots__ = ("__weakref__", "_cell", "_steps", "_symbol", "_version", "aval", "is_scalar")

    def __init__(self, symbol: Symbol, *, is_scalar: bool = False) -> None:
        if not is_scalar and type(symbol) is WeakSymbol:
            symbol = strong(symbol)
        self._cell = Cell(symbol)
        self._steps: Steps = ()
        self._symbol = symbol
        self._version = 0
        self.aval: Aval = symbol.aval
        self.is_scalar = is_scalar

    @property
    def is_weak(self) -> bool:
        """True if it stands for a Python number, whose dtype gives way to that of an array beside it."""
        return isinstance(self._symbol, WeakSymbol)

    @property
    def cell(self) -> Cell:
        """Its memory."""
        return self._cell

    @property
    def is_alive(self) -> bool:
        """True if its trace is under way."""
        return self._cell.symbol.builder.alive

    def is_within(self, trace: Builder) -> bool:
        """True if it is a value of this trace, or of one within it."""
        builder: Any = self._cell.symbol.builder
        while builder is not None and builder is not trace:
            builder = getattr(builder, "outer", None)
        return builder is trace

    @property
    def symbol(self) -> Symbol:
        """The value at present; what an inner trace reads of it is a value of that trace, and read anew."""
        cell = self._cell
        is_current = self._version == cell.version
        if is_current and self._symbol.builder is cell.symbol.builder:
            return self._symbol
        if not (is_current or (cell.is_open and self._is_certain())):
            raise view_or_copy(self.aval)
        symbol = read(self._steps, cell.symbol)
        if symbol.builder is cell.symbol.builder:
            self._symbol, self._version = symbol, cell.version
        return symbol

    def through(self, steps: Steps, symbol: Symbol) -> Handle:
        """A handle on the same memory, seen through these steps, which is this symbol at present."""
        handle = UPWARD.fresh_handle_of(symbol, False)
        handle._cell = self._cell
        handle._steps = (*self._steps, *steps)
        if self._cell.in_order:
            handle._steps = settled(handle._steps, self._cell.symbol.aval.shape)
        handle._version = self._cell.version
        return handle

    @property
    def is_written(self) -> bool:
        """True if its memory was written to, here or in an inner trace that has a copy of it."""
        return self._cell.is_written

    @property
    def written_at(self) -> Source | None:
        """The place of the last write into its memory."""
        return self._cell.written_at

    def note_written(self, source: Source | None) -> None:
        """Note a write into its memory, or into that of a copy that an inner function received for it."""
        self._cell.is_written, self._cell.written_at = True, source

    def shares_memory(self, other: Handle) -> bool:
        """True if both are handles on one memory."""
        return self._cell is other._cell and not self.is_scalar

    def overlaps(self, other: Handle) -> bool:
        """True if both see an element of one memory, or may do so."""
        if not self.shares_memory(other):
            return False
        mine, theirs = self._elements(), other._elements()
        return mine is None or theirs is None or bool(np.intersect1d(mine, theirs).size)

    def _elements(self) -> Array | None:
        """The numbers of the elements of its memory that it sees; None where only the run knows, or there are many."""
        memory = self._cell.symbol.aval
        if memory.size > MANY:
            return None
        parts = (RealPart, ImaginaryPart, NoImaginaryPart)
        steps = tuple(step for step in self._steps if not isinstance(step, parts))
        numbers = reshape_to(iota(dtype=I64, shape=(memory.size,), axis=0), memory.shape)
        return known_value(read(steps, numbers))

    def in_order(self) -> Handle:
        """The handle itself, of new memory that NumPy lays out in C order."""
        self._cell.in_order = True
        return self

    def write(self, symbol: Symbol) -> None:
        """Replace the value, of the same aval, in this and all handles that share its memory."""
        self.check_writeable()
        if not self._is_certain():
            self._detach()
        cell = self._cell
        symbol = cell.symbol.builder.lift(symbol)
        cell.symbol = write(self._steps, cell.symbol, symbol)
        note_write(cell.symbol.aval)
        self.note_written(cell.symbol.builder.source)
        cell.version += 1
        self._symbol, self._version = symbol, cell.version

    def become(self, view: Handle) -> None:
        """See the memory as a view of it in another shape does, which is made in place, so that nothing is copied."""
        self.check_writeable()
        shared = [step._replace(is_certain=True) if isinstance(step, Reshape) else step for step in view._steps]
        self._cell, self._steps, self.aval = view._cell, tuple(shared), view.aval
        self._symbol, self._version = view._symbol, view._version

    def lend(self, array: Array) -> Array:
        """An ordinary array in the place of this one; neither is written to as long as both are there."""
        array.flags.writeable = False
        self._cell.lent += (ref(array),)
        return array

    def _is_certain(self) -> bool:
        return all(step.is_certain for step in self._steps)

    def _detach(self) -> None:
        """Go on with memory of its own, and close what may have been the same memory."""
        symbol = self.symbol
        self._cell.is_open = False
        self._cell.version += 1
        self._cell, self._steps = Cell(symbol), ()

    @property
    def is_writeable(self) -> bool:
        """True if NumPy has an array in its place that can be written to."""
        return not self.is_scalar and all(step.is_writeable for step in self._steps)

    def check_writeable(self) -> None:
        """Raise where it cannot be written to: `ReadOnlyError` if NumPy refuses a write to an array, too."""
        if not self.is_writeable:
            raise escape.read_only(MutationError) if self.is_scalar else escape.read_only()
        if self._cell.symbol.builder is not current_builder():
            raise MutationError.here(
                f"a traced value of aval {self.aval} was written to inside another trace",
                remedy="return the new value from the inner function, and write it outside",
            )
        if any(array() is not None for array in self._cell.lent):
            raise MutationError.here(
                f"an array of aval {self.aval} was written to that had been given out as an ordinary array",
                remedy="give out a copy, np.array(x, copy=True), if it is written to later",
            )


class Aside:
    """A value that handles its own operations."""

    __slots__ = ()

    def operated(self, ufunc: Any, operands: Any) -> Any:
        """The result of an operator on this value and others."""
        return NotImplemented

    def operated_in_place(self, ufunc: Any, operand: Any) -> Any:
        """The value after an augmented assignment."""
        return NotImplemented


class Deferred(Aside, Handle):
    """A handle that gets its memory when that is asked for; what it is computed with, it sees to itself."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in STATE or self.has_memory:
            return super().__getattr__(name)  # type: ignore[misc]  # that of traced values, of which it is one
        Handle.__init__(self, self.made())
        return getattr(self, name)

    @property
    def symbol(self) -> Symbol:
        """The value, of memory that is had from now on."""
        if not self.has_memory:
            Handle.__init__(self, self.made())
        return super().symbol

    @property
    def has_memory(self) -> bool:
        """True if its memory was asked for."""
        raise NotImplementedError

    def made(self) -> Symbol:
        """The content of the memory."""
        raise NotImplementedError


TRACED: set[int] = set()
"""The identities of the classes of traced values with memory from the beginning: not that of selections."""

STATE = frozenset(Handle.__slots__) - {"__weakref__"}
"""The attributes of a new handle."""


class Elements:
    """An object taken for an array or a list: that of its elements."""

    __slots__ = ()

    def elements(self) -> Any:
        raise NotImplementedError


def view_or_copy(aval: Aval) -> MutationError:
    """The error for a value that may or may not have been written to."""
    return MutationError.here(
        f"NumPy made a view or a copy of aval {aval}, by its layout in memory, and one of the two was written to",
        remedy="make it a copy with .copy() before the write, or index the array itself",
    )
