"""Emitters, which turn operations and routines into LLVM instructions.

An emitter is a function (builder, kinds, values) -> value of the operands' kinds, which have passed the operation's
typing rule, and their LLVM values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import llvmlite.ir as ir

from fnad.scalar.operation import Dtype

Builder: TypeAlias = ir.IRBuilder
Value: TypeAlias = ir.Value
# The emitter knows which kinds it may get.
Kinds: TypeAlias = Sequence[Any]
Values: TypeAlias = Sequence[Any]
Emit: TypeAlias = Callable[[Builder, Kinds, Values], Any]
Instructions: TypeAlias = dict[str, Emit]

__all__ = ["Builder", "Dtype", "Emit", "Instructions", "Kinds", "Value", "Values", "by_kind"]


def by_kind(**emitters: Emit) -> Emit:
    """The emitter that chooses one by the NumPy kind of the first operand: `f=…, iu=…`."""
    chosen = {letter: emitter for letters, emitter in emitters.items() for letter in letters}

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Any:
        return chosen[kinds[0].kind](builder, kinds, values)

    return emit
