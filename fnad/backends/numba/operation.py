"""What a runtime name is: one operation with two meanings, native and plain.

Emitted source calls names such as `sin`, `f32` or `gemm`. Each of them is an `Operation`:

    result  kinds of the operands -> kind of the result     typing
    emit    builder, kinds, values -> value                 the native meaning: LLVM instructions, inlined where it is called
    plain   values -> value                                 the meaning in NumPy, when the source runs as plain Python

so the same source runs compiled and interpreted, with the same values. A kind is a NumPy dtype (a scalar), a `Pointer` to
scalars, a tuple of kinds, or None for no result. Nothing here knows Numba; `compiler` tells Numba about operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import llvmlite.ir as ir
import numpy as np


@dataclass(frozen=True, slots=True)
class Pointer:
    """A flat, contiguous array of `dtype`, known by its address."""

    dtype: np.dtype[Any]


Kind: TypeAlias = "np.dtype[Any] | Pointer | tuple[Kind, ...] | None"
Result: TypeAlias = Callable[..., Kind]
Emit: TypeAlias = Callable[[ir.IRBuilder, Sequence[Any], Sequence[Any]], Any]

BOOL = np.dtype(np.bool_)
INDEX = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One name of the runtime; calling it from Python gives the plain meaning."""

    name: str
    result: Result
    emit: Emit
    plain: Callable[..., Any]

    def __call__(self, *operands: Any) -> Any:
        return self.plain(*operands)

    def __repr__(self) -> str:
        return self.name


class OperandError(TypeError):
    """An operation met operands it has no meaning for: the source lacks a cast."""


def among(letters: str, result: Callable[[np.dtype[Any]], Kind] = lambda dtype: dtype) -> Result:
    """Return a typing rule: operands of one dtype whose NumPy kind is in `letters`; `result` makes the result's of it."""

    def rule(*kinds: Kind) -> Kind:
        first = kinds[0]
        if any(kind != first for kind in kinds):
            raise OperandError(f"operands need one dtype, not {', '.join(map(str, kinds))}: cast them first")
        if not isinstance(first, np.dtype) or first.kind not in letters:
            raise OperandError(f"operands need a dtype of kind {' or '.join(letters)}, not {first}")
        return result(first)

    return rule


def to_bool(dtype: np.dtype[Any]) -> Kind:
    return BOOL


def by_kind(**emitters: Emit) -> Emit:
    """Return the emitter that chooses by the NumPy kind of the first operand: by_kind(f=…, iu=…)."""
    chosen = {letter: emitter for letters, emitter in emitters.items() for letter in letters}

    def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> Any:
        return chosen[kinds[0].kind](builder, kinds, values)

    return emit
