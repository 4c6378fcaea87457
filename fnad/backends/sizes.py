"""The record of programs that differ in the sizes of their arrays, which decides if another one has to be compiled.

A backend may have native code that runs programs of many sizes. Whether it does is seen when it compiles some of them,
and from then on expected of the others. A function that comes with one size after the other may also be one whose code
cannot be shared; then only the first few sizes are compiled so early.
"""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from fnad.ir.program import Program

EAGER = 3
"""The number of sizes that are compiled at their second call although each has code of its own."""


class SizeRecord:
    """The programs of one outline. They have it as long as one of them is alive."""

    def __init__(self) -> None:
        self.is_shared = False
        self._alone = 0

    def compiled(self, *, alone: bool) -> None:
        """Note that one was compiled, and whether code was made for it alone."""
        self.is_shared = not alone
        self._alone += alone

    @property
    def is_eager(self) -> bool:
        """True if a new size is compiled when it comes for the second time."""
        return self.is_shared or self._alone < EAGER


_SIZES: WeakValueDictionary[int, SizeRecord] = WeakValueDictionary()


def sizes_of(program: Program) -> SizeRecord:
    """The record of programs that differ from this one in sizes and constants alone."""
    return _SIZES.setdefault(hash(_outline(program)), SizeRecord())


def _outline(program: Program) -> Hashable:
    """A program without sizes: its primitives with the ranks of their operands. Two that share one share estimates."""
    return tuple(
        (
            equation.primitive.name,
            tuple(len(operand.aval.shape) for operand in equation.operands),
            tuple(map(_outline, equation.regions)),
        )
        for equation in program.equations
    )
