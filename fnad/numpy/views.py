"""Views: results that share memory with an operand, as a chain of steps that can be read through and written through.

A step reads its part of a value, and writes a new part into a value, which returns the whole with that part replaced:

    step.read(step.write(x, part)) = part

A chain of steps reads front to back; to write through it, the last step writes into what the steps before it read, and
so on outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.ops.shape import Ints, broadcast_to, invert, reshape_to, reverse, transpose_to


class Step(Protocol):
    """One way to look at an array."""

    @property
    def obstacle(self) -> str | None:
        """Why a write through this step cannot be followed, or None."""
        ...

    def read(self, x: Symbol) -> Symbol: ...

    def write(self, x: Symbol, part: Symbol) -> Symbol: ...


Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The result of a rule that shares memory with the operand `base`; with no steps, the operand as a 0-d array."""

    base: Symbol
    steps: Steps = ()

    def read(self) -> Symbol:
        return read(self.steps, self.base)


def read(steps: Steps, x: Symbol) -> Symbol:
    """Return what a chain of steps sees of a value."""
    for step in steps:
        x = step.read(x)
    return x


def write(steps: Steps, x: Symbol, part: Symbol) -> Symbol:
    """Return the value with what the chain sees replaced."""
    if not steps:
        return part
    first, rest = steps[0], steps[1:]
    return first.write(x, write(rest, first.read(x), part) if rest else part)


@dataclass(frozen=True, slots=True)
class Permute:
    """Axes in another order."""

    permutation: Ints
    obstacle: str | None = None

    def read(self, x: Symbol) -> Symbol:
        return transpose_to(x, self.permutation)

    def write(self, x: Symbol, part: Symbol) -> Symbol:  # noqa: ARG002
        return transpose_to(part, invert(self.permutation))


@dataclass(frozen=True, slots=True)
class Reshape:
    """The elements in another shape; NumPy makes a view or a copy, depending on the layout in memory."""

    shape: Shape
    obstacle: str | None = None

    def read(self, x: Symbol) -> Symbol:
        return reshape_to(x, self.shape)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        return reshape_to(part, x.shape)


@dataclass(frozen=True, slots=True)
class Reverse:
    """Axes backwards."""

    axes: Ints
    obstacle: str | None = None

    def read(self, x: Symbol) -> Symbol:
        return reverse(x, axes=self.axes)

    def write(self, x: Symbol, part: Symbol) -> Symbol:  # noqa: ARG002
        return reverse(part, axes=self.axes)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Repeated along axes; NumPy's is read-only."""

    shape: Shape
    obstacle: str | None = "assignment destination is read-only"

    def read(self, x: Symbol) -> Symbol:
        return broadcast_to(x, self.shape)

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError(self.obstacle)
