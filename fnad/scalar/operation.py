"""Scalar operations: a name, a typing rule and the meaning in NumPy.

    result  kinds of the operands -> kind of the result     typing
    plain   values -> value                                 the meaning, on NumPy scalars

How a target implements it (LLVM instructions, a library call) is up to the target. A kind is a NumPy dtype (a
scalar), a `Pointer` to scalars, a tuple of dtypes, or None for no result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Dtype: TypeAlias = np.dtype[Any]

BOOL = np.dtype(np.bool_)
INDEX = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A flat, contiguous array of `dtype`, passed by its address."""

    dtype: Dtype


Kind: TypeAlias = Dtype | Pointer | tuple[Dtype, ...] | None


class OperandError(TypeError):
    """An operation on operands it is not defined for: a cast is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A name that scalar expressions may call; called from Python it has its plain meaning.

    `symbol` is the operator it is written with, if it has one.
    """

    name: str
    result: Callable[..., Kind]
    plain: Callable[..., Any]
    symbol: str | None = None

    def __call__(self, *operands: Any) -> Any:
        return self.plain(*operands)

    def __repr__(self) -> str:
        return self.name


def itself(dtype: Dtype) -> Kind:
    return dtype


def to_bool(dtype: Dtype) -> Kind:
    return BOOL


def real_dtype(dtype: Dtype) -> Dtype:
    """The dtype of the parts of a complex `dtype`; any other unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_dtype(dtype: Dtype) -> Dtype:
    """The complex dtype with parts of this one."""
    return np.dtype(f"c{2 * dtype.itemsize}")


def among(letters: str, result: Callable[[Dtype], Kind] = itself) -> Callable[..., Kind]:
    """A typing rule: operands of one dtype, of a NumPy kind in `letters`; `result` maps it to the result's."""

    def rule(*kinds: Kind) -> Kind:
        first = kinds[0]
        if any(kind != first for kind in kinds):
            raise OperandError(f"operands need one dtype, not {', '.join(map(str, kinds))}: cast them first")
        if not isinstance(first, np.dtype) or first.kind not in letters:
            raise OperandError(f"operands need a dtype of kind {' or '.join(letters)}, not {first}")
        return result(first)

    return rule


def takes(*operands: Dtype, gives: Dtype) -> Callable[..., Kind]:
    """The typing rule for operands of exactly these dtypes."""

    def rule(*kinds: Kind) -> Kind:
        if kinds != operands:
            raise OperandError(
                f"operands need dtypes {', '.join(map(str, operands))}, not {', '.join(map(str, kinds))}"
            )
        return gives

    return rule
