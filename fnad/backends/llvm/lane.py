"""Scalars in registers with Python's operators, so that formulas are written as mathematics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Value
from fnad.backends.llvm.scalar import absolute, call, overloaded

DOUBLE, FLOAT = ir.DoubleType(), ir.FloatType()


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A float, an unsigned integer or a bool in a register; numbers become constants of the other operand's type."""

    builder: Builder
    value: Value

    @property
    def is_double(self) -> bool:
        return self.value.type == DOUBLE

    @property
    def is_float(self) -> bool:
        return self.value.type in (DOUBLE, FLOAT)

    def with_value(self, value: Value) -> Self:
        """A lane of the same class."""
        return type(self)(self.builder, value)

    def _combined(self, instruction: str, other: Any, *, swapped: bool = False) -> Self:
        method = getattr(self.builder, "f" + instruction if self.is_float else instruction)
        operands = self.value, self.constant(other)
        return self.with_value(method(*(operands[::-1] if swapped else operands)))

    def compared(self, sign: str, other: Any) -> Lane:
        """A comparison; with nan it is false."""
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_unsigned
        return Lane(self.builder, compare(sign, self.value, self.constant(other)))

    def equals(self, other: Any) -> Lane:
        return self.compared("==", other)

    def is_number(self) -> Lane:
        """False of nan."""
        return self.compared("ord", self)

    def constant(self, other: Any) -> Value:
        """The value of a lane, or a number as a value of this lane's type."""
        return other.value if isinstance(other, Lane) else self.value.type(other)

    def as_double(self) -> Self:
        """A float as f64."""
        return self if self.is_double else self.with_value(self.builder.fpext(self.value, DOUBLE))

    def as_single(self) -> Self:
        """An f64 as f32."""
        return self.with_value(self.builder.fptrunc(self.value, FLOAT))

    def number(self, other: float) -> Self:
        """A number of this lane's type."""
        return self.with_value(self.value.type(other))

    def intrinsic(self, name: str, *others: Any) -> Self:
        """An intrinsic of LLVM on operands of this lane's type."""
        type_ = self.value.type
        operands = (self.value, *map(self.constant, others))
        return self.with_value(call(self.builder, overloaded(f"llvm.{name}", type_), type_, *operands))

    def __add__(self, other: Any) -> Self:
        return self._combined("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Self:
        return self._combined("sub", other)

    def __rsub__(self, other: Any) -> Self:
        return self._combined("sub", other, swapped=True)

    def __mul__(self, other: Any) -> Self:
        return self._combined("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Self:
        return self._combined("div", other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._combined("div", other, swapped=True)

    def __neg__(self) -> Self:
        return self.with_value(self.builder.fneg(self.value))

    def __abs__(self) -> Self:
        return self.with_value(absolute(self.builder, self.value))

    def __and__(self, other: Any) -> Lane:
        return Lane(self.builder, self.builder.and_(self.value, self.constant(other)))

    def __or__(self, other: Any) -> Lane:
        return Lane(self.builder, self.builder.or_(self.value, self.constant(other)))

    def __xor__(self, other: Any) -> Lane:
        return Lane(self.builder, self.builder.xor(self.value, self.constant(other)))

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Lane:
        return Lane(self.builder, self.builder.shl(self.value, self.constant(other)))

    def __rshift__(self, other: Any) -> Lane:
        return Lane(self.builder, self.builder.lshr(self.value, self.constant(other)))

    def __lt__(self, other: Any) -> Lane:
        return self.compared("<", other)

    def __gt__(self, other: Any) -> Lane:
        return self.compared(">", other)

    def __le__(self, other: Any) -> Lane:
        return self.compared("<=", other)

    def __ge__(self, other: Any) -> Lane:
        return self.compared(">=", other)

    def fma(self, factor: Any, term: Any) -> Self:
        """The value self * factor + term, rounded once."""
        return self.intrinsic("fma", factor, term)

    def muladd(self, factor: Any, term: Any) -> Self:
        """The value self * factor + term, rounded once where the processor can, else twice."""
        return self.intrinsic("fmuladd", factor, term)

    def sqrt(self) -> Self:
        return self.intrinsic("sqrt")

    def signed(self, other: Lane) -> Self:
        """The magnitude with the sign of another value."""
        return self.intrinsic("copysign", other)

    def bits(self) -> Lane:
        """The representation of a float."""
        return Lane(self.builder, self.builder.bitcast(self.value, ir.IntType(64 if self.is_double else 32)))

    def as_float(self) -> Lane:
        """The float with this representation."""
        wide = self.value.type == ir.IntType(64)
        return Lane(self.builder, self.builder.bitcast(self.value, DOUBLE if wide else FLOAT))


def where(condition: Lane, a: Any, b: Any) -> Lane:
    """The value a where a condition holds, else b; one of them is a lane."""
    like: Lane = a if isinstance(a, Lane) else b
    return like.with_value(like.builder.select(condition.value, like.constant(a), like.constant(b)))
