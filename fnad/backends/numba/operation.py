"""What a runtime name is: one operation with two meanings, native and plain.

Emitted source calls names such as `sin`, `f32` or `gemm`. Each of them is an `Operation`:

    result  kinds of the operands -> kind of the result     typing
    emit    builder, kinds, values -> value                 native: LLVM instructions, written where it is called
    plain   values -> value                                 in NumPy, when the source runs as plain Python

so the same source runs compiled and interpreted, with the same values. A kind is a NumPy dtype (a scalar), a `Pointer`
to scalars, a tuple of kinds, or None for no result. Nothing here knows Numba; `target` tells Numba about operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import llvmlite.ir as ir
import numpy as np

Dtype: TypeAlias = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A flat, contiguous array of `dtype`, known by its address."""

    dtype: Dtype


Kind: TypeAlias = Dtype | Pointer | tuple[Dtype, ...] | None
Builder: TypeAlias = ir.IRBuilder
Value: TypeAlias = ir.Value
# The kinds and values an emitter is given have passed `result`: what each may be, it knows.
Kinds: TypeAlias = Sequence[Any]
Values: TypeAlias = Sequence[Any]
Emit: TypeAlias = Callable[[Builder, Kinds, Values], Any]

BOOL = np.dtype(np.bool_)
INDEX = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One name of the runtime; calling it from Python gives the plain meaning."""

    name: str
    result: Callable[..., Kind]
    emit: Emit
    plain: Callable[..., Any]

    def __call__(self, *operands: Any) -> Any:
        return self.plain(*operands)

    def __repr__(self) -> str:
        return self.name


class OperandError(TypeError):
    """An operation met operands it has no meaning for: the source lacks a cast."""


def itself(dtype: Dtype) -> Kind:
    return dtype


def to_bool(dtype: Dtype) -> Kind:
    return BOOL


def among(letters: str, result: Callable[[Dtype], Kind] = itself) -> Callable[..., Kind]:
    """Return a typing rule: operands of one dtype, of a NumPy kind in `letters`; `result` makes the result's of it."""

    def rule(*kinds: Kind) -> Kind:
        first = kinds[0]
        if any(kind != first for kind in kinds):
            raise OperandError(f"operands need one dtype, not {', '.join(map(str, kinds))}: cast them first")
        if not isinstance(first, np.dtype) or first.kind not in letters:
            raise OperandError(f"operands need a dtype of kind {' or '.join(letters)}, not {first}")
        return result(first)

    return rule


def by_kind(**emitters: Emit) -> Emit:
    """Return the emitter that chooses one by the NumPy kind of the first operand: `f=…, iu=…`."""
    chosen = {letter: emitter for letters, emitter in emitters.items() for letter in letters}

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Any:
        return chosen[kinds[0].kind](builder, kinds, values)

    return emit
