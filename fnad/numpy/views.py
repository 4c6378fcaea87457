"""Views: results that share memory with an operand, as a chain of steps that can be read through and written through.

A step reads its part of a value, and writes a new part into a value, which returns the whole with that part replaced:

    step.read(step.write(x, part)) = part

A chain of steps reads front to back; to write through it, the last step writes into what the steps before it read, and
so on outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import current_builder
from fnad.ir.program import Literal
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval, Dtype, Shape
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.ops.comparison import select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.shape import (
    Ints,
    broadcast_to,
    constant,
    invert,
    pad,
    reshape_to,
    reverse,
    slice_,
    transpose_to,
    zeros_like,
)


class ViewStep(Protocol):
    """One way to look at an array."""

    @property
    def is_certain(self) -> bool:
        """True if NumPy shares memory here whatever the layout of the array."""
        ...

    @property
    def is_writeable(self) -> bool: ...

    def read(self, x: Symbol) -> Symbol: ...

    def write(self, x: Symbol, part: Symbol) -> Symbol: ...


Steps: TypeAlias = tuple[ViewStep, ...]


@dataclass(slots=True, eq=False)
class ArrayView:
    """The result of a rule that shares memory with the operand `base`, seen through `steps`.

    Around a symbol that is no operand it is new memory: a NumPy array even without dimensions, not a scalar. Whether
    that is surely in C order is `in_order`. What is seen of a scalar is a scalar, unless `is_array` says otherwise.
    With `is_copy` it is what is seen at present, in new memory, and a scalar only of a scalar; with `is_same` the
    operand itself, if that is an array. What is `seen` is there once it was read.
    """

    base: Symbol
    steps: Steps = ()
    in_order: bool = False
    is_array: bool = False
    is_copy: bool = False
    is_same: bool = False
    seen: Symbol | None = None

    def read(self) -> Symbol:
        if self.seen is None:
            self.seen = read(self.steps, self.base)
        return self.seen


def read(steps: Steps, x: Symbol) -> Symbol:
    """The view of a value through a chain of steps."""
    for step in steps:
        x = step.read(x)
    return x


def write(steps: Steps, x: Symbol, part: Symbol) -> Symbol:
    """The value with what the chain sees replaced."""
    if not steps:
        return part
    first, rest = steps[0], steps[1:]
    return first.write(x, write(rest, first.read(x), part) if rest else part)


def settled(steps: Steps, shape: Shape) -> Steps:
    """The steps to a part of memory in C order: there NumPy makes a view of what still is in that order."""
    if all(step.is_certain for step in steps):
        return steps
    found: list[ViewStep] = []
    in_order = True
    for step in steps:
        found.append(step._replace(is_certain=True) if in_order and isinstance(step, Reshape) else step)
        in_order = in_order and keeps_order(step, shape)
        if in_order:
            shape = step.shape if isinstance(step, Reshape) else step.counts if isinstance(step, Box) else shape
    return tuple(found)


def keeps_order(step: ViewStep, shape: Shape) -> bool:
    """True if what a step sees of memory in C order lies there without gaps and in that order too."""
    match step:
        case Reshape():
            return True
        case Permute(permutation):
            return permutation == tuple(sorted(permutation))
        case Box():
            first = next((axis for axis, n in enumerate(step.counts) if n != 1), len(shape))
            whole = (1,) * len(shape) == step.strides
            return whole and step.counts[first + 1 :] == shape[first + 1 :]
        case _:
            return False


class Permute(NamedTuple):
    """Axes in another order."""

    permutation: Ints
    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return transpose_to(x, self.permutation)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return transpose_to(part, invert(self.permutation))


class Reshape(NamedTuple):
    """The elements in another shape: for more than axes of size 1, NumPy copies where the layout asks for it."""

    shape: Shape
    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return reshape_to(x, self.shape)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return reshape_to(part, x.shape)


class Reverse(NamedTuple):
    """Axes backwards."""

    axes: Ints
    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return reverse(x, axes=self.axes)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return reverse(part, axes=self.axes)


def place(index: int) -> Symbol:
    """A place in an array, as an operand."""
    literal = _place(index)
    return Symbol(current_builder(), literal, literal.aval)


@lru_cache(maxsize=4096)
def _place(index: int) -> Literal:
    return Literal(np.int64(index))


class Box(NamedTuple):
    """The elements `starts` <= index < `limits`, every `strides`-th."""

    starts: Ints
    limits: Ints
    strides: Ints
    is_certain: bool = True
    is_writeable: bool = True

    @property
    def counts(self) -> Shape:
        """The number of elements of each axis."""
        return tuple(len(range(*span)) for span in zip(self.starts, self.limits, self.strides, strict=True))

    def read(self, x: Symbol) -> Symbol:
        return slice_(x, starts=self.starts, limits=self.limits, strides=self.strides)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        if part.shape == x.shape:
            return part
        if part.aval.size == 0 or all(stride == 1 for stride in self.strides):
            return dynamic_update_slice(x, part, *map(place, self.starts))
        return select(self._spread(constant(True, BOOL, part.shape), x.shape), self._spread(part, x.shape), x)

    def _spread(self, part: Symbol, whole: Shape) -> Symbol:
        """A part in its place in the whole, with zeros around."""
        last = [a + (n - 1) * s for a, n, s in zip(self.starts, part.shape, self.strides, strict=True)]
        high = tuple(n - 1 - i for n, i in zip(whole, last, strict=True))
        return pad(part, low=self.starts, high=high, interior=tuple(s - 1 for s in self.strides))


class MovingBox(NamedTuple):
    """A box of static size at starts that are known when the program runs."""

    starts: tuple[Symbol, ...]
    sizes: Ints
    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return dynamic_slice(x, *self.starts, sizes=self.sizes)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return dynamic_update_slice(x, part, *self.starts)


class Broadcast(NamedTuple):
    """Repeated along axes."""

    shape: Shape
    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        return broadcast_to(x, self.shape)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("a broadcast array is read-only")


class RealPart(NamedTuple):
    """The real parts of complex numbers."""

    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return real(x)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return complex_(part, imag(x))


class NoImaginaryPart(NamedTuple):
    """The imaginary parts of real numbers."""

    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        return zeros_like(x)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("the imaginary parts of real numbers are read-only")


class Cast(NamedTuple):
    """The elements in another dtype, which NumPy copies."""

    dtype: Dtype
    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        return to_dtype(x, self.dtype)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("elements in another dtype are a copy")


class ImaginaryPart(NamedTuple):
    """The imaginary parts of complex numbers."""

    is_certain: bool = True
    is_writeable: bool = True

    def read(self, x: Symbol) -> Symbol:
        return imag(x)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return complex_(real(x), part)


# ---- what an array holds after something is stored into it -----------------------------------------------------------


def stored(name: str, value: Any, out: Any, where: Any = True, casting: Any = "same_kind") -> Symbol:
    """The value of `out` after the result `value` of the function `name` is stored into it, where `where` says."""
    symbol = as_symbol(value)
    check_cast(name, symbol.dtype, out.dtype, casting)
    check_fits(symbol.shape, out.shape)
    new = broadcast_to(to_dtype(symbol, out.dtype), out.shape)
    if where is True:
        return new
    return select(broadcast_to(as_symbol(where, np.dtype(bool)), out.shape), new, as_symbol(out))


def check_cast(name: str, source: Dtype, target: Dtype, casting: Any = "same_kind") -> None:
    """Raise as NumPy where a result may not be stored into an array of this dtype."""
    if not np.can_cast(source, target, casting):
        raise DtypeError(
            f"Cannot cast {name} output from {source!r} to {target!r} with casting rule {casting!r}",
            remedy="convert it with astype, or make the array of the wider dtype",
        )


def check_fits(source: Shape, target: Shape) -> None:
    """Raise as NumPy where a value does not broadcast to the shape it is stored into."""
    fits = len(source) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(source), reversed(target), strict=False)
    )
    if not fits:
        raise ShapeError(f"could not broadcast input array from shape {source} into shape {target}")


def fitted(value: Any, part: Aval) -> Symbol:
    """A value in the dtype and shape of the part it is written to."""
    symbol = as_symbol(value, part.dtype)
    extra = symbol.ndim - part.ndim
    if extra > 0 and all(n == 1 for n in symbol.shape[:extra]):
        symbol = reshape_to(symbol, symbol.shape[extra:])
    check_fits(symbol.shape, part.shape)
    return broadcast_to(symbol, part.shape)
