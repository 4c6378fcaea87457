"""Cotangents and tangents: pytrees that have to match another in structure, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.api.staging.leaves import LeafError, Operand, Structure, flatten, leaf_of, path, structure_text
from fnad.errors import FnadError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype, is_inexact
from fnad.numpy.operands import as_symbol
from fnad.trace.source import current_source


class ExpectedTree(NamedTuple):
    """The expected form of a pytree called `name`: the structure and the avals of what errors call `like`."""

    name: str
    like: str
    structure: Structure
    avals: Sequence[Aval]
    error: type[FnadError]

    def match(self, tree: Any) -> list[Operand]:
        """The leaves of inexact dtype, as programs receive them; raise the error for what does not match.

        Integers become floats, and a Python number takes the dtype asked for. Where that is an integer or bool, the
        leaf has to be 0.
        """
        values, structure = flatten(tree)
        if structure != self.structure:
            values = self._in_order(tree, structure)
            tree = self.structure.unflatten(values)
        operands: list[Operand] = []
        for i, (value, aval) in enumerate(zip(values, self.avals, strict=True)):
            try:
                if is_inexact(aval.dtype):
                    operands.append(self._fitted(value, aval))
                else:
                    self._check_zero(value, aval)
            except LeafError as error:
                raise error.at(path((tree,), i, lambda _: self.name), current_source()) from None
        return operands

    def _in_order(self, tree: Any, structure: Structure) -> list[Any]:
        """The leaves of a pytree whose keys stand in another order; raise the error where more is different."""
        if structure <= self.structure <= structure:
            return self.structure.flatten_up_to(tree)
        found, wanted = structure_text(structure), structure_text(self.structure)
        raise self.error.here(
            f"the structure of {self.name} is {found}, that of {self.like} is {wanted}",
            remedy=self._structure_remedy(tree, found),
        )

    def _structure_remedy(self, tree: Any, found: str) -> str:
        if self.structure.is_leaf() and isinstance(tree, (list, tuple)):
            return f"a {type(tree).__name__} is a tree of numbers: give an array, np.array({self.name})"
        more = ": a list is a tree of numbers, None one without any" if "[" in found or "None" in found else ""
        return f"give both the same containers{more}"

    def _fitted(self, value: Any, aval: Aval) -> Operand:
        given, found, weak, *_ = leaf_of(value)
        if found == aval:
            return given
        if found.dtype.kind in "iu" and found.shape == aval.shape:
            return as_symbol(given, aval.dtype) if isinstance(given, Symbol) else given.astype(aval.dtype)
        if weak and isinstance(given, np.ndarray) and not aval.shape and _converts(found.dtype, aval.dtype):
            return given.astype(aval.dtype)
        raise LeafError(self.error, f"is {found}, but has to be {aval}", self._leaf_remedy(found, aval))

    def _leaf_remedy(self, found: Aval, aval: Aval) -> str:
        if found.shape == aval.shape and _converts(found.dtype, aval.dtype):
            return f"give it the dtype of {self.like}, by .astype(np.{aval.dtype})"
        return f"give it the shape and dtype of {self.like}"

    def _check_zero(self, value: Any, aval: Aval) -> None:
        leaf = leaf_of(value)
        if bool(np.any(value)) if isinstance(leaf.value, Symbol) else leaf.value.any():
            what = f"belongs to {aval}, which has no derivative, and so has to be 0"
            raise LeafError(self.error, what, "give 0 there")


def _converts(given: Dtype, wanted: Dtype) -> bool:
    return given.kind in "bif" or wanted.kind == "c"
