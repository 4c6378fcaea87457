"""User pytrees as operands of the trace under way, and its results as pytrees.

A leaf that stands for a Python number gives way to the dtype of an array beside it: a carry that starts as 0.0 is f32
in a loop over f32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.api.staging.inlining import traced
from fnad.api.staging.leaves import Leaf, Structure, leaves_of, path, to_user, unflatten
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.numpy.operands import PYTHON_TYPES, as_symbol
from fnad.ops.conversion import convert_to
from fnad.trace.tracer import Tracer


class LeafType(NamedTuple):
    """The type of a leaf: its aval, and if it stands for a Python number."""

    aval: Aval
    weak: bool = False

    @property
    def example(self) -> Any:
        """A value that promotes as the leaf does."""
        return PYTHON_TYPES[self.aval.dtype.kind](0) if self.weak else self.aval.dtype

    @property
    def has_derivative(self) -> bool:
        return is_inexact(self.aval.dtype)


def leaf_types(leaves: Iterable[Leaf]) -> list[LeafType]:
    """The types of leaves."""
    return [LeafType(leaf.aval, leaf.weak) for leaf in leaves]


def joined(first: LeafType, second: LeafType) -> LeafType:
    """The type that both promote to; their shapes are the same."""
    dtype = np.result_type(first.example, second.example)
    return LeafType(Aval(dtype, first.aval.shape), first.weak and second.weak)


class Tree(NamedTuple):
    """A pytree, taken apart; errors call it `name`."""

    name: str
    leaves: list[Leaf]
    structure: Structure

    @classmethod
    def of(cls, name: str, tree: Any) -> Tree:
        """Take a pytree of arrays and numbers apart."""
        leaves, structure = leaves_of((tree,), lambda _: name)
        return cls(name, leaves, structure)

    @property
    def types(self) -> list[LeafType]:
        return leaf_types(self.leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree of these leaves."""
        return unflatten(self.structure, leaves)[0]

    def path(self, index: int, name: str | None = None) -> str:
        """The name of a leaf in errors, in a pytree of another name if one is given."""
        return path(unflatten(self.structure, range(len(self.leaves))), index, lambda _: name or self.name)

    def operands(self, types: Sequence[LeafType]) -> list[Symbol]:
        """The leaves as operands, in the dtypes of these types."""
        return [convert_to(symbol(leaf), t.aval.dtype) for leaf, t in zip(self.leaves, types, strict=True)]

    def rebuilt(self, symbols: Iterable[Symbol], types: Iterable[LeafType]) -> Any:
        """The pytree of these results, as the user gets it."""
        return self.unflatten(map(as_tracer, symbols, types))


def symbol(leaf: Leaf) -> Symbol:
    """A leaf as an operand; a number is a constant of the program."""
    return as_symbol(leaf.value if isinstance(leaf.value, Symbol) or leaf.is_array else to_user(leaf.value))


def as_tracer(symbol: Symbol, leaf_type: LeafType) -> Tracer:
    """A result as the user gets it."""
    return traced(symbol, weak=leaf_type.weak)
