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
Emit: TypeAlias = Callable[[ir.IRBuilder, Sequence[Any], Sequence[ir.Value]], ir.Value]


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
    """An operation met operands it has no meaning for; the emitter forgot a cast."""


def same(*kinds: Kind) -> Kind:
    """Return the one kind all operands have."""
    if any(kind != kinds[0] for kind in kinds):
        raise OperandError(f"operands of one dtype are needed, not {', '.join(map(str, kinds))}; the emitter casts them first")
    return kinds[0]


def among(allowed: str) -> Result:
    """Return a typing rule: operands of one dtype, whose NumPy kind letter is in `allowed`; the result has it too."""

    def result(*kinds: Kind) -> Kind:
        kind = same(*kinds)
        if not isinstance(kind, np.dtype) or kind.kind not in allowed:
            raise OperandError(f"a dtype of kind {'/'.join(allowed)} is needed, not {kind}")
        return kind

    return result
