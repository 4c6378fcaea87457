"""Operations of a program whose operand can reach a point where they, or their derivative, are not finite.

Ranges (`fnad/ir/ranges.py`) are followed from the inputs, of which nothing is known, through each equation by the
`bounds` of its primitive; what moves elements has the ranges of its operands. An operation is a finding if its operand
may lie where it is `singular`.

Conditions narrow ranges. In `select(c, x, y)` the operand x counts where c holds; so does whatever is elementwise and
leads to x alone, since derivatives there are 0 elsewhere, whatever the operation gives (Note [Strong zero] in
`fnad/ops/arithmetic.py`). Branches of `cond` count under its condition. The carry of a loop has the range of all its
steps: what moves from one to the next is taken to go on as far as its sign allows.

That is all: that x**2 + y**2 - 2*x*y is not negative, that a sum of exponentials is positive where they underflow, or
what Python's own code has checked before, is not known. So a finding need not be a fault, and code without a finding is
finite in real arithmetic only, for inputs that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from fnad.control.scan import scan_as_loop
from fnad.control.while_loop import while_as_loop
from fnad.ir import primitive as kinds
from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Primitive
from fnad.ir.program import Atom, Equation, Literal, Program, Source, Var
from fnad.ir.ranges import NONZERO, Range, Singular
from fnad.ir.types import BOOL, is_complex
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, eq, ge, gt, le, lt, ne, select
from fnad.ops.piecewise import abs_

STEPS = 4
"""The number of steps of a loop that are followed before ranges are widened."""

Condition: TypeAlias = tuple[Var, bool]
Conditions: TypeAlias = frozenset[Condition]


class Finding(NamedTuple):
    """An operation, its operand's range, where it would have to lie, and what the operation is elsewhere."""

    equation: Equation
    found: Range
    required: Range
    singular: Singular

    @property
    def source(self) -> Source | None:
        """The user's line."""
        return self.equation.source


def findings(program: Program, ranges: Sequence[Range] = (), holding: Iterable[Condition] = ()) -> list[Finding]:
    """The findings of a program in its order, each line and operation once.

    `ranges` are those of the last inputs, such as captured arrays; `holding` are conditions that hold, as Python's `if`
    has found.
    """
    unknown = [Range() for _ in range(len(program.inputs) - len(ranges))]
    analysis = _Analysis(program, [*unknown, *ranges], frozenset(holding))
    return list({(f.source, f.equation.primitive): f for f in reversed(analysis.findings)}.values())[::-1]


def range_of(value: object) -> Range:
    """The range of the elements of an array."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or not array.size or not np.isfinite(array).all():
        return Range()
    return Range(float(array.min()), float(array.max()), nonzero=bool((array != 0).all()))


class _Analysis:
    """The ranges of the values of a program, by one walk; `results` are those of its outputs."""

    def __init__(self, program: Program, ranges: Sequence[Range], holding: Conditions) -> None:
        self.ranges: dict[Var, Range] = dict(zip(program.inputs, map(replace, ranges), strict=True))
        self.definitions = {var: e for e in program.equations for var in e.results}
        self.conditions = conditions_of(program)
        self.holding = holding
        self.findings: list[Finding] = []
        for equation in program.equations:
            results = self._results(equation)
            self.ranges.update(zip(equation.results, map(replace, results), strict=True))
        self.results = [self.range(atom) for atom in program.outputs]

    def range(self, atom: Atom, conditions: Conditions = frozenset()) -> Range:
        """The range of a value where these conditions hold; of a literal itself."""
        if isinstance(atom, Literal):
            return range_of(atom.value)
        if is_complex(atom.aval.dtype) or atom.aval.dtype == BOOL:
            return Range()
        known = self.ranges[atom]
        narrowed = known
        for condition, holds in conditions | self.holding:
            narrowed = self._implied(condition, holds, atom, narrowed)
        return known if narrowed is known else narrowed

    def _results(self, equation: Equation) -> Sequence[Range]:
        if equation.regions:
            return self._through_regions(equation)
        if equation.primitive is select:
            return [self._chosen(equation)]
        conditions = self.conditions.get(equation.results[0], frozenset()) if equation.results else frozenset()
        by_element = isinstance(equation.primitive.axes, Elementwise)
        conditions = conditions if by_element else frozenset()
        by_atom = {atom: self.range(atom, conditions) for atom in equation.operands if isinstance(atom, Var)}
        operands = [by_atom[atom] if isinstance(atom, Var) else self.range(atom) for atom in equation.operands]
        if equation.results and equation.results[0].aval.shape and not by_element:
            operands = list(map(replace, operands))  # elements of an array meet others of it: x @ x.T has no squares
        self._check(equation, operands)
        if equation.primitive.bounds is not None and not is_complex(equation.results[0].aval.dtype):
            return [equation.primitive.bounds(*operands, **equation.params)]
        moved = _moved(equation.primitive, operands)
        return [moved] if moved is not None else [Range() for _ in equation.results]

    def _check(self, equation: Equation, operands: Sequence[Range]) -> None:
        is_used = not equation.results or equation.results[0] in self.conditions
        for singular in equation.primitive.singular if is_used else ():
            required = singular.required(*operands, **equation.params)
            if required is not None and not operands[singular.operand].lies_in(required):
                self.findings.append(Finding(equation, operands[singular.operand], required, singular))

    # ---- conditions ----------------------------------------------------------------------------------------------

    def _chosen(self, equation: Equation) -> Range:
        condition, on_true, on_false = equation.operands
        if isinstance(condition, Literal):
            return self.range(on_true if condition.value else on_false)
        pair = [(on_true, True), (on_false, False)]
        first, second = [self.range(atom, frozenset({(condition, holds)})) for atom, holds in pair]
        return first | second

    def _implied(self, condition: Var, holds: bool, atom: Var, known: Range) -> Range:
        """The range of a value, given the truth of a condition on it."""
        equation = self.definitions.get(condition)
        if equation is None:
            return known
        if equation.primitive is bitwise_not and isinstance(equation.operands[0], Var):
            return self._implied(equation.operands[0], not holds, atom, known)
        if equation.primitive is (bitwise_and if holds else bitwise_or):
            for part in equation.operands:
                known = self._implied(part, holds, atom, known) if isinstance(part, Var) else known
            return known
        if equation.primitive not in COMPARISONS:
            return known
        left, right = equation.operands
        for mine, other, compared in ((left, right, equation.primitive), (right, left, MIRRORED[equation.primitive])):
            if isinstance(other, Var) and other not in self.ranges:
                continue
            implied = COMPARISONS[compared if holds else OPPOSITE[compared]](self.range_alone(other))
            if mine is atom:
                known = known & implied
            elif self._is_magnitude(mine, atom) and implied.is_nonzero:
                known = known & NONZERO
        return known

    def range_alone(self, atom: Atom) -> Range:
        """The range of a value whatever holds."""
        return range_of(atom.value) if isinstance(atom, Literal) else self.ranges[atom]

    def _is_magnitude(self, atom: Atom, of: Var) -> bool:
        equation = self.definitions.get(atom) if isinstance(atom, Var) else None
        return equation is not None and equation.primitive is abs_ and equation.operands[0] is of

    # ---- regions -------------------------------------------------------------------------------------------------

    def _through_regions(self, equation: Equation) -> Sequence[Range]:
        match equation.primitive.lower:
            case kinds.Cond():
                return self._branches(equation)
            case kinds.Inlined():
                return self._region(equation.regions[0], list(map(self.range, equation.operands)))
            case kinds.ScanLoop() | kinds.WhileLoop():
                return self._loop(equation)
            case _:
                return [Range() for _ in equation.results]

    def _region(self, region: Program, operands: Sequence[Range]) -> list[Range]:
        inner = _Analysis(region, operands, frozenset())
        self.findings += inner.findings
        return inner.results

    def _branches(self, equation: Equation) -> list[Range]:
        index, *operands = equation.operands
        found: list[list[Range]] = []
        for number, region in enumerate(equation.regions):
            is_bool = isinstance(index, Var) and index.aval.dtype == BOOL
            holding: Conditions = frozenset({(index, bool(number))}) if is_bool else frozenset()  # type: ignore[arg-type]
            found.append(self._region(region, [self.range(atom, holding) for atom in operands]))
        return [_hull(ranges) for ranges in zip(*found, strict=True)]

    def _loop(self, equation: Equation) -> list[Range]:
        as_loop = scan_as_loop if isinstance(equation.primitive.lower, kinds.ScanLoop) else while_as_loop
        loop = as_loop(equation.params, equation.regions)
        consts, carry, xs = loop.groups.split([self.range(atom) for atom in equation.operands[loop.head :]])
        for step in range(2 * STEPS):
            results = _Analysis(loop.body, [*consts, *carry, *xs], frozenset()).results[: len(carry)]
            grown = [old | new for old, new in zip(carry, results, strict=True)]
            if all(map(Range.same, grown, carry)):
                break
            carry = grown if step < STEPS else list(map(Range.widened, grown, carry))
        else:
            carry = [Range() for _ in carry]
        found = self._region(loop.body, [*consts, *carry, *xs])
        counted = [Range(0.0)] * loop.counts
        return [*carry, *counted, *found[len(carry) :]]


COMPARISONS: Mapping[Primitive, Callable[[Range], Range]] = {
    gt: lambda other: Range(low=other.low, above=True),
    ge: lambda other: Range(low=other.low, above=other.above),
    lt: lambda other: Range(high=other.high, below=True),
    le: lambda other: Range(high=other.high, below=other.below),
    eq: lambda other: other,
    ne: lambda other: NONZERO if other.low == other.high == 0 else Range(),
}
"""The range of a value that compares so with one of another range."""

OPPOSITE = {gt: le, le: gt, lt: ge, ge: lt, eq: ne, ne: eq}
MIRRORED = {gt: lt, lt: gt, ge: le, le: ge, eq: eq, ne: ne}


def conditions_of(program: Program) -> dict[Var, Conditions]:
    """For each value that is used, the conditions under which alone it counts."""
    found: dict[Var, Conditions] = {}

    def use(atom: Atom, conditions: Conditions) -> None:
        if isinstance(atom, Var):
            found[atom] = found[atom] & conditions if atom in found else conditions

    for atom in program.outputs:
        use(atom, frozenset())
    for equation in reversed(program.equations):
        if not equation.primitive.effect and not any(var in found for var in equation.results):
            continue
        by_element = isinstance(equation.primitive.axes, Elementwise) and len(equation.results) == 1
        own = found[equation.results[0]] if by_element else frozenset[Condition]()
        if equation.primitive is select and isinstance(equation.operands[0], Var):
            condition, on_true, on_false = equation.operands
            use(condition, own)
            use(on_true, own | {(equation.operands[0], True)})
            use(on_false, own | {(equation.operands[0], False)})
        else:
            for atom in equation.operands:
                use(atom, own)
    return found


def _hull(ranges: Sequence[Range]) -> Range:
    found = ranges[0]
    for other in ranges[1:]:
        found = found | other
    return found


def _moved(primitive: Primitive, operands: Sequence[Range]) -> Range | None:
    """The range of what has elements of its operands alone."""
    match primitive.lower:
        case kinds.IndexMap(_, guard):
            return operands[0] if guard is None else operands[0] | Range.of(0.0)
        case kinds.Gather() | kinds.DynamicSlice():
            return operands[0]
        case kinds.DynamicUpdate():
            return operands[0] | operands[1]
        case kinds.Concatenation():
            return _hull(operands)
        case _:
            return None
