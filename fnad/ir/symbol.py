"""Symbols: the values that rules and passes compute with while a program is built.

A symbol stands for an atom of the program that its builder is making. Arithmetic on symbols is that of the IR: strict,
without broadcasting or promotion, except that a Python number takes the symbol's dtype and shape, so that rules read
like formulas: `1.0 - y * y`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fnad.ir.program import Atom
from fnad.ir.types import Aval, Dtype, Shape
from fnad.upward import UPWARD

if TYPE_CHECKING:
    from fnad.ir.builder import Builder


def _methods(name: str) -> tuple[Callable[[Symbol, Any], Symbol], Callable[[Symbol, Any], Symbol]]:
    """The method of an operator by the primitive of this name, and the method with the operands exchanged."""

    def method(x: Any, y: Any) -> Symbol:
        return getattr(UPWARD, name)(x, y)

    return method, lambda x, y: method(y, x)


class Symbol:
    """An atom together with the builder whose program it belongs to."""

    __slots__ = ("atom", "aval", "builder")

    def __init__(self, builder: Builder, atom: Atom, aval: Aval) -> None:
        self.builder = builder
        self.atom = atom
        self.aval = aval

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> Dtype:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    __add__, __radd__ = _methods("add")
    __sub__, __rsub__ = _methods("sub")
    __mul__, __rmul__ = _methods("mul")
    __truediv__, __rtruediv__ = _methods("div")

    def __neg__(self) -> Symbol:
        return UPWARD.neg(self)

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value: rules decide on avals and params only")

    def __repr__(self) -> str:
        return f"Symbol({self.aval})"
