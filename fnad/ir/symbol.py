"""Symbols: the values that rules and passes compute with while a program is built.

A symbol stands for an atom of the program that its builder is making. Arithmetic on symbols is that of the IR: strict,
without broadcasting or promotion, except that a Python number takes the symbol's dtype and shape, so that rules read
like formulas: `1.0 - y * y`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fnad.ir.program import Atom
from fnad.ir.types import Aval, Dtype, Shape
from fnad.upward import UPWARD

if TYPE_CHECKING:
    from fnad.ir.builder import Builder


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

    def __add__(self, other: Any) -> Symbol:
        return UPWARD.add(self, other)

    def __radd__(self, other: Any) -> Symbol:
        return UPWARD.add(other, self)

    def __sub__(self, other: Any) -> Symbol:
        return UPWARD.sub(self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return UPWARD.sub(other, self)

    def __mul__(self, other: Any) -> Symbol:
        return UPWARD.mul(self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return UPWARD.mul(other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return UPWARD.div(self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return UPWARD.div(other, self)

    def __neg__(self) -> Symbol:
        return UPWARD.neg(self)

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value: rules decide on avals and params only")

    def __repr__(self) -> str:
        return f"Symbol({self.aval})"
