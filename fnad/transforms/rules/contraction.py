"""Transposes around `dot_general`, which takes its operands' axes in any order."""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ops.contraction import Axes, dot_general, free_axes
from fnad.ops.shape import Ints
from fnad.transforms.pattern import Rule
from fnad.transforms.rewrite import used_once


def _through(permutation: Ints, contract: Ints, batch: Ints) -> tuple[Ints, Ints] | None:
    """The operand's axes for those of its transpose, if its free axes keep their order."""
    free = [permutation[a] for a in free_axes(len(permutation), contract, batch)]
    if free != sorted(free):
        return None
    return tuple(permutation[a] for a in contract), tuple(permutation[a] for a in batch)


def _transposed_left(x: Symbol, p: Ints, y: Symbol, contract: Axes, batch: Axes) -> Symbol | None:
    found = _through(p, contract[0], batch[0])
    if found is None:
        return None
    return dot_general(x, y, contract=(found[0], contract[1]), batch=(found[1], batch[1]))


def _transposed_right(x: Symbol, y: Symbol, p: Ints, contract: Axes, batch: Axes) -> Symbol | None:
    found = _through(p, contract[1], batch[1])
    if found is None:
        return None
    return dot_general(x, y, contract=(contract[0], found[0]), batch=(batch[0], found[1]))


def _swap(product: Symbol, x: Symbol, y: Symbol, contract: Axes, batch: Axes, p: Ints) -> Symbol | None:
    """Put y first where the result has y's free axes before those of x, unless it is also needed as it is."""
    count = len(batch[0])
    first = x.ndim - len(contract[0])
    swapped = (*range(count), *range(first, product.ndim), *range(count, first))
    if p != swapped or not used_once(product):
        return None
    return dot_general(y, x, contract=contract[::-1], batch=batch[::-1])


CONTRACTION = (
    Rule(
        "dot_general(transpose(x, permutation=p), y, contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_left,
    ),
    Rule(
        "dot_general(x, transpose(y, permutation=p), contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_right,
    ),
    Rule(
        "transpose(product := dot_general(x, y, contract=contract, batch=batch), permutation=p) = dot_general(y, x)",
        _swap,
        up_to="rounding",
    ),
)
