"""A handle on a value: what a traced array is, apart from NumPy.

The IR has no mutation. A cell holds the symbol that an array stands for at present; a write puts another symbol there.
A handle is a cell and a chain of view steps. Handles that share memory share a cell, so what is written through one is
read by all, as in NumPy. What a view reads is kept until the cell's version changes.
"""

from __future__ import annotations

from fnad.errors import MutationError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.operands import WeakSymbol
from fnad.numpy.views import Steps, read, write
from fnad.trace.source import current_source


class Cell:
    """The present value of some memory."""

    __slots__ = ("symbol", "version")

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.version = 0


class Handle:
    """A traced value: an array, or where `is_scalar` a NumPy or Python number, which cannot be written to."""

    __slots__ = ("__weakref__", "_cell", "_steps", "_symbol", "_version", "aval", "is_scalar")

    def __init__(self, symbol: Symbol, *, is_scalar: bool = False) -> None:
        self._cell = Cell(symbol)
        self._steps: Steps = ()
        self._symbol = symbol
        self._version = 0
        self.aval: Aval = symbol.aval
        self.is_scalar = is_scalar

    @property
    def is_weak(self) -> bool:
        """Whether it stands for a Python number, whose dtype gives way to that of an array beside it."""
        return isinstance(self._symbol, WeakSymbol)

    @property
    def symbol(self) -> Symbol:
        """The value at present."""
        if self._version == self._cell.version:
            return self._symbol
        self._check(self._steps, "read")
        symbol = read(self._steps, self._cell.symbol)
        if symbol.builder is self._cell.symbol.builder:
            self._symbol, self._version = symbol, self._cell.version
        return symbol

    def view(self, steps: Steps) -> Handle:
        """Return a handle on the same memory, seen through these steps."""
        symbol = read(steps, self.symbol)
        handle = type(self)(symbol)
        handle._cell = self._cell
        handle._steps = (*self._steps, *steps)
        handle._version = self._cell.version if symbol.builder is self._cell.symbol.builder else -1
        return handle

    def write(self, symbol: Symbol) -> None:
        """Replace the value, of the same aval, in this and all handles that share its memory."""
        if self.is_scalar:
            raise MutationError("a scalar cannot be written to", source=current_source())
        self._check(self._steps, "written to")
        cell = self._cell
        if cell.symbol.builder is not current_builder():
            raise MutationError(
                f"a traced value of aval {self.aval} was written to inside another trace",
                source=current_source(),
                remedy="return the new value from the inner function instead",
            )
        cell.symbol = write(self._steps, cell.symbol, symbol)
        cell.version += 1
        self._symbol, self._version = symbol, cell.version

    def _check(self, steps: Steps, verb: str) -> None:
        for step in steps:
            if step.obstacle is not None:
                raise MutationError(
                    f"a view of aval {self.aval} cannot be {verb} after a write: {step.obstacle}",
                    source=current_source(),
                    remedy="copy it first, with its copy method",
                )
