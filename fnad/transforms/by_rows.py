"""Updates of which each row of a new array has one at most, as those of the gradient of `x[np.arange(n), labels]`.

The array is the same number everywhere before. So an element is known by itself: it is updated if its place in the row
is that of the row's update. Nothing is stored at computed places, and no order of updates is to be kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fnad.ir.primitive import IndexMap, Iota, Scatter
from fnad.ir.program import Atom, Equation, Literal, Var
from fnad.ir.types import Shape


def rows_of(equation: Equation, definitions: Mapping[Var, Equation]) -> dict[int, int] | None:
    """The axes of an array that number its rows, with the axis of the indices that each is; None if it has none."""
    if not isinstance(equation.primitive.lower, Scatter):
        return None
    operand, _, *integers = equation.operands
    found = counted_axes(operand, integers, definitions)
    is_one = found and _counts_once(integers[0].aval.shape, found.values())
    return found if is_one and _is_one_number(operand, definitions) else None


def each_is_updated_once(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """True if no place comes again among those of a scatter: all axes of its indices count, but those of one place."""
    operand, _, *integers = equation.operands
    return _counts_once(integers[0].aval.shape, counted_axes(operand, integers, definitions).values())


def _counts_once(shape: Shape, counted: Collection[int]) -> bool:
    return all(extent == 1 or number in counted for number, extent in enumerate(shape))


def counted_axes(operand: Atom, integers: Sequence[Atom], definitions: Mapping[Var, Equation]) -> dict[int, int]:
    """The axes of an array that indices count from the first place to the last, along which of their own axes."""
    found: dict[int, int] = {}
    for axis, (integer, extent) in enumerate(zip(integers, operand.aval.shape, strict=False)):
        made = definitions.get(integer) if isinstance(integer, Var) else None
        if made is not None and isinstance(made.primitive.lower, Iota):
            number = made.params["axis"]
            if integer.aval.shape[number] == extent and number not in found.values():
                found[axis] = number
    return found


def _is_one_number(atom: Atom, definitions: Mapping[Var, Equation]) -> bool:
    made = definitions.get(atom) if isinstance(atom, Var) else None
    if made is None:
        return isinstance(atom, Literal)
    lower = made.primitive.lower
    return isinstance(lower, IndexMap) and lower.guard is None and isinstance(made.operands[0], Literal)
