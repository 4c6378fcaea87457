"""Kernels that differ in their numbers only, as one kernel that takes numbers as arguments.

    kernel                     ─▶ Outline, numbers   what it is without its numbers, and these
    numbers of several kernels ─▶ Pattern            the places that have equal numbers in each, and where all agree
    Outline, Pattern           ─▶ kernel             numbers on which all agree are constants, the others parameters

This is anti-unification (Plotkin 1970, "A note on inductive generalization"): it gives the least general kernel of
which all those are instances. Each of them was lowered for its sizes, so what depends on a size is decided by then,
and nothing has to be proved of sizes: code is run with the numbers of a kernel that would be right as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fnad.kernel import statements as code
from fnad.kernel.fourier import FOURIER
from fnad.kernel.linalg import LINALG
from fnad.kernel.python_source import plain_text
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.scalar.operation import BOOL, Dtype, Pointer
from fnad.scalar.template import CASTS

Number: TypeAlias = bytes
"""A number of known dtype, to the bit."""

Leaf: TypeAlias = code.Name | code.Constant

SHORT = 16
"""The most iterations of an inner loop that takes up to three times as long if LLVM does not know their number."""

STATIC = frozenset((*LINALG.values(), *FOURIER.values(), *LOCAL_ARRAYS.values()))
"""Routines whose code depends on their numbers."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A kernel with a variable in the place of each number, in the order of the text."""

    kernel: code.Kernel
    places: tuple[code.Name, ...]

    @property
    def text(self) -> str:
        """The text, by which it is known."""
        return plain_text(self.kernel)


def outlined(kernel: code.Kernel) -> tuple[Outline, tuple[Number, ...]]:
    """A kernel without its numbers, and these."""
    places: list[code.Name] = []
    numbers: list[Number] = []

    def placed(leaf: Leaf) -> code.Expression:
        if isinstance(leaf, code.Name) or leaf.kind == BOOL:
            return leaf
        places.append(code.Name(f"{CASTS[leaf.value.dtype]}_{len(places)}", leaf.value.dtype))
        numbers.append(leaf.value.tobytes())
        return places[-1]

    outline = code.Kernel(kernel.name, kernel.parameters, _with_leaves(kernel.body, placed))
    return Outline(outline, tuple(places)), tuple(numbers)


@dataclass(frozen=True, slots=True)
class Group:
    """Places with equal numbers in each kernel, and this number if all kernels have the same."""

    places: tuple[int, ...]
    number: Number | None

    def value(self, places: Sequence[code.Name]) -> code.Expression:
        """The constant, or the variable of the first place."""
        first = places[self.places[0]]
        return first if self.number is None else code.Constant(np.frombuffer(self.number, first.dtype)[0])


@dataclass(frozen=True, slots=True)
class Pattern:
    """The common numbers of several kernels."""

    groups: tuple[Group, ...]

    @staticmethod
    def of(outline: Outline, numbers: Sequence[Number]) -> Pattern:
        """The pattern of one kernel."""
        every = range(len(numbers))
        keys = [(outline.places[place].kind, numbers[place]) for place in every]
        return Pattern(tuple(Group(places, numbers[places[0]]) for places in _divided(every, keys)))

    def joined(self, numbers: Sequence[Number]) -> Pattern:
        """The pattern of one more kernel."""
        found = (
            Group(places, group.number if group.number == numbers[places[0]] else None)
            for group in self.groups
            for places in _divided(group.places, numbers)
        )
        return Pattern(tuple(found))

    def fits(self, numbers: Sequence[Number]) -> bool:
        """True if a kernel with these numbers is an instance."""
        return all(
            numbers[place] == (numbers[group.places[0]] if group.number is None else group.number)
            for group in self.groups
            for place in group.places
        )

    def arguments(self, outline: Outline, numbers: Sequence[Number]) -> list[np.ndarray[Any, Any]]:
        """The arrays that the kernel takes after those of its instances, for the one with these numbers."""
        return [
            np.frombuffer(b"".join(numbers[group.places[0]] for group in groups), dtype)
            for dtype, groups in self._parameters(outline).items()
        ]

    def kernel(self, outline: Outline) -> code.Kernel:
        """The kernel; it begins by loading its numbers."""
        kernel, places = outline.kernel, outline.places
        parameters = {
            code.Name(f"numbers_{CASTS[d]}", Pointer(d)): groups for d, groups in self._parameters(outline).items()
        }
        loads = [
            code.Assign((places[group.places[0]],), code.Load(array, code.integer(n)))
            for array, groups in parameters.items()
            for n, group in enumerate(groups)
        ]
        values = {places[place].name: group.value(places) for group in self.groups for place in group.places}

        def placed(leaf: Leaf) -> code.Expression:
            return values.get(leaf.name, leaf) if isinstance(leaf, code.Name) else leaf

        return code.Kernel(kernel.name, (*kernel.parameters, *parameters), [*loads, *_with_leaves(kernel.body, placed)])

    def _parameters(self, outline: Outline) -> dict[Dtype, list[Group]]:
        """The groups in which kernels differ, by dtype."""
        found: dict[Dtype, list[Group]] = {}
        for group in self.groups:
            if group.number is None:
                found.setdefault(outline.places[group.places[0]].dtype, []).append(group)
        return found


def _divided(places: Iterable[int], keys: Sequence[Hashable]) -> list[tuple[int, ...]]:
    """Places by the keys that they have."""
    found: dict[Hashable, list[int]] = {}
    for place in places:
        found.setdefault(keys[place], []).append(place)
    return [tuple(each) for each in found.values()]


def _with_leaves(
    statements: Sequence[code.Statement], change: Callable[[Leaf], code.Expression], *, inside: bool = False
) -> list[code.Statement]:
    """Statements with each of their variables and numbers replaced, but those that their code depends on.

    These are the numbers of some routines, and the lengths of short loops `inside` others, which LLVM unrolls.
    """

    def changed(expression: code.Expression) -> code.Expression:
        match expression:
            case code.Name() | code.Constant():
                return change(expression)
            case code.Apply(operation, _, _) if operation in STATIC:
                return expression
            case _:
                return expression.with_parts(changed)

    def whole(statement: code.Statement) -> code.Statement:
        is_loop = isinstance(statement, code.For | code.While)
        length = short_length(statement) if inside and isinstance(statement, code.For) else None
        if length is None:
            statement = statement.with_operands(changed)
        elif isinstance(statement, code.For) and statement.start.number:
            start = changed(statement.start)
            statement = replace(statement, start=start, stop=start + length)
        return statement.with_bodies(lambda body: _with_leaves(body, change, inside=inside or is_loop))

    return list(map(whole, statements))


def short_length(loop: code.For) -> int | None:
    """The distance of a loop from start to end, if it has so few iterations that LLVM unrolls it."""
    start, stop = loop.start.number, loop.stop.number
    if start is None or stop is None or abs(loop.step) != 1 or abs(stop - start) > SHORT:
        return None
    return stop - start
