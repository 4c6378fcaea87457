"""From equations to scalar expressions: what one element of a value is.

`element(atom, indices)` pulls: an elementwise operation becomes one on the elements of its operands at the same
indices, a view maps the indices, a gather loads them, and a materialized value is a load from its buffer. So chains of
these become one expression, and nothing in between is ever stored. An input of a region is bound to a value of the
program around it, and its elements are pulled there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fnad.errors import LoweringError
from fnad.ir.primitive import Concatenation, Contraction, DynamicSlice, Gather, IndexMap, Iota, Scalar
from fnad.ir.program import Atom, Equation, Literal, Var
from fnad.ir.size import is_size
from fnad.ir.types import I64, Aval, Dtype, Shape
from fnad.lower.contraction import Dimensions, contraction_dimensions
from fnad.lower.faults import Fault, out_of_range
from fnad.lower.index import Index, Loaded, as_index, flatten
from fnad.lower.nodes import Buffer, Condition, IndexValue, Node, Nodes
from fnad.lower.target import Target
from fnad.scalar.operations import MULTIPLY

Indices: TypeAlias = Sequence[Index]

INLINED = (Scalar, IndexMap, Concatenation, Iota, Gather, DynamicSlice)
"""The kinds of lowering whose results need no buffer."""


def is_inlined(equation: Equation) -> bool:
    """True if an element of the result is a short expression; that of an outer product is one multiplication."""
    lower = equation.primitive.lower
    return isinstance(lower, INLINED) or (isinstance(lower, Contraction) and _dimensions(equation).is_outer)


def _dimensions(equation: Equation) -> Dimensions:
    x, y = equation.operands
    return contraction_dimensions(x.aval, y.aval, **equation.params)


def place(buffer: Buffer, indices: Indices) -> Index:
    """The address of an element in the memory of its buffer."""
    address = flatten(indices, buffer.aval.shape)
    return address if buffer.memory is None else buffer.offset + address


@dataclass(frozen=True, slots=True)
class Binding:
    """The value that an input of a region is bound to, at these indices of its leading axes."""

    expressions: ElementExpressions
    atom: Atom
    leading: tuple[Index, ...] = ()


@dataclass(slots=True)
class Shared:
    """The state that a program shares with the regions in it."""

    target: Target
    nodes: Nodes = field(default_factory=Nodes)
    temporaries: list[Buffer] = field(default_factory=list[Buffer])
    residual_stacks: list[Buffer] = field(default_factory=list[Buffer])
    faults: list[Fault] = field(default_factory=list[Fault])
    meters: list[str] = field(default_factory=list[str])
    checks: int = 0

    def temporary(self, aval: Aval, depth: int) -> Buffer:
        """A new buffer."""
        buffer = Buffer(f"t{len(self.temporaries)}", aval, depth)
        self.temporaries.append(buffer)
        return buffer

    def residual_stack(self, aval: Aval, depth: int) -> Buffer:
        """A new buffer that grows by rows."""
        buffer = Buffer(f"stack{len(self.residual_stacks)}", aval, depth)
        self.residual_stacks.append(buffer)
        return buffer

    def fault(self, fault: Fault) -> int:
        """The number of a fault."""
        if fault not in self.faults:
            self.faults.append(fault)
        return self.faults.index(fault) + 1

    def meter(self, label: str) -> int:
        """The number of the meter of a label."""
        if label not in self.meters:
            self.meters.append(label)
        return self.meters.index(label)


class ElementExpressions:
    """The definitions of a program's values, and the buffers of those that are materialized.

    `depth` is the number of levels of control flow around it.
    """

    def __init__(self, equations: Sequence[Equation], shared: Shared, depth: int = 0) -> None:
        self.shared = shared
        self.nodes = shared.nodes
        self.depth = depth
        self.buffers: dict[Var, Buffer] = {}
        self.bindings: dict[Var, Binding] = {}
        self.definitions = {var: equation for equation in equations for var in equation.results}
        self._memo: dict[tuple[Var, tuple[Index, ...]], Node] = {}

    def element(self, atom: Atom, indices: Indices) -> Node:
        """The expression of one element of a value."""
        if isinstance(atom, Literal):
            return self.nodes.constant(atom.value)
        buffer = self.buffers.get(atom)
        if buffer is not None:
            return self.nodes.load(buffer, place(buffer, indices))
        bound = self.bindings.get(atom)
        if bound is not None:
            return bound.expressions.element(bound.atom, [*bound.leading, *indices])
        return self.define(atom, indices)

    def define(self, var: Var, indices: Indices) -> Node:
        """The expression of one element by the value's equation, though it may have a buffer."""
        key = (var, tuple(indices))
        found = self._memo.get(key)
        if found is None:
            outer, self.nodes.source = self.nodes.source, self.definitions[var].source
            found = self._memo[key] = self.pull(self.definitions[var], list(indices))
            self.nodes.source = outer
        return found

    def address(self, atom: Atom, indices: Indices) -> tuple[Buffer, Index] | None:
        """The buffer and address of an element, if it is simply an element of a buffer."""
        while isinstance(atom, Var) and atom not in self.buffers:
            bound = self.bindings.get(atom)
            if bound is not None:
                return bound.expressions.address(bound.atom, [*bound.leading, *indices])
            equation = self.definitions[atom]
            lower = equation.primitive.lower
            if not isinstance(lower, IndexMap) or lower.guard is not None:
                return None
            atom, indices = equation.operands[0], self._moved(equation, lower, list(indices))
        if isinstance(atom, Literal):
            return None
        buffer = self.buffers[atom]
        return buffer, place(buffer, indices)

    def whole(self, atom: Atom) -> Buffer | None:
        """The buffer that begins with a value, if there is one."""
        if isinstance(atom, Literal):
            return None
        bound = self.bindings.get(atom)
        if bound is not None:
            return None if bound.leading else bound.expressions.whole(bound.atom)
        buffer = self.buffers.get(atom)
        return buffer if buffer is not None and buffer.offset == Index(0) else None

    def keeps_order(self, view: Equation, indices: Indices) -> bool:
        """True if a view has all elements of its operand in their row-major order, as a reshape has."""
        operand, result = view.operands[0].aval, view.results[0].aval
        if operand.size != result.size or not isinstance(view.primitive.lower, IndexMap):
            return False
        moved = self._moved(view, view.primitive.lower, list(indices))
        return flatten(moved, operand.shape) == flatten(indices, result.shape)

    def _moved(self, equation: Equation, view: IndexMap, indices: list[Index]) -> list[Index]:
        operand, result = equation.operands[0].aval, equation.results[0].aval
        return [as_index(i) for i in view.index(indices, operand, result, **equation.params)]

    def pull(self, equation: Equation, indices: list[Index]) -> Node:
        """The expression of one element of an equation's result."""
        match equation.primitive.lower:
            case Scalar() as scalar:
                operands = (self.element(operand, indices) for operand in equation.operands)
                dtype = equation.results[0].aval.dtype
                return self.nodes.cast(self.nodes.template(scalar.expression(equation.params), dtype, *operands), dtype)
            case IndexMap() as view:
                return self._view(equation, view, indices)
            case Concatenation():
                return self._concatenation(equation, indices)
            case Iota():
                return self.nodes.number(indices[equation.params["axis"]], equation.results[0].aval.dtype)
            case Gather():
                return self.element(equation.operands[0], self.gathered(equation, equation.operands[1:], indices))
            case DynamicSlice():
                return self.element(equation.operands[0], self.boxed(equation, equation.operands[1:], indices))
            case Contraction():
                return self._outer_product(equation, indices)
            case _:
                raise LoweringError(f"{equation.primitive.name} cannot be part of an expression")

    def _view(self, equation: Equation, view: IndexMap, indices: list[Index]) -> Node:
        operand, result = equation.operands[0], equation.results[0]
        conditions = self._conditions(equation, view, indices)
        if any(not _possible(c) for c in conditions) or 0 in operand.aval.shape:
            return self._zero(result.aval.dtype)
        # An index that has one possible value there is that value: what it is part of may simplify.
        known = {index: Index(low) for index, low, high in conditions if high - low == 1}
        moved = [known.get(i, i) for i in self._moved(equation, view, indices)]
        for rest in (index.remainder for index, low, high in conditions if (low, high) == (0, 1)):
            moved = moved if rest is None else [index.where_zero(rest) for index in moved]
        inside = self.element(operand, moved)
        conditions = tuple(map(self._undivided, conditions))
        return self.nodes.branch(conditions, inside, self._zero(result.aval.dtype)) if conditions else inside

    def _conditions(self, equation: Equation, view: IndexMap, indices: list[Index]) -> tuple[Condition, ...]:
        if view.guard is None:
            return ()
        operand, result = equation.operands[0].aval, equation.results[0].aval
        found = view.guard(indices, operand, result, **equation.params)
        return tuple((as_index(index), low, high) for index, low, high in found)

    @staticmethod
    def _undivided(condition: Condition) -> Condition:
        """A condition that a remainder is 0, without the division if it can be."""
        index, low, high = condition
        rest = index.remainder if (low, high) == (0, 1) else None
        return condition if rest is None else (rest.dividend.part(rest.divisor), low, high)

    def _zero(self, dtype: Dtype) -> Node:
        return self.nodes.constant(dtype.type(0))

    def _concatenation(self, equation: Equation, indices: list[Index]) -> Node:
        axis: int = equation.params["axis"]
        end = equation.results[0].aval.shape[axis]
        node: Node | None = None
        for operand in reversed(equation.operands):
            start = end - operand.aval.shape[axis]
            if start < end:
                own = indices[axis] - start if end - start > 1 else Index(0)
                moved = [own if a == axis else i for a, i in enumerate(indices)]
                piece = self.element(operand, moved)
                node = piece if node is None else self.nodes.branch(((indices[axis], 0, end),), piece, node)
            end = start
        return self._zero(equation.results[0].aval.dtype) if node is None else node

    def _outer_product(self, equation: Equation, indices: list[Index]) -> Node:
        dims = _dimensions(equation)
        sides = dims.operand_indices([*indices, *[Index(0)] * len(dims.k)])
        pairs = zip(equation.operands, sides, strict=True)
        return self.nodes.apply(MULTIPLY, *(self.element(operand, side) for operand, side in pairs))

    # ---- run-time indices ----------------------------------------------------------------------------------------

    def gathered(self, equation: Equation, integers: Sequence[Atom], indices: Indices) -> list[Index]:
        """The index at which NumPy's `x[integers]` reads (or writes) for one element of the result."""
        rank = integers[0].aval.ndim
        shape = equation.operands[0].aval.shape
        found = [self._checked(equation, i, indices[:rank], n, n) for i, n in zip(integers, shape, strict=False)]
        return [*found, *indices[rank:]]

    def boxed(self, equation: Equation, starts: Sequence[Atom], indices: Indices) -> list[Index]:
        """The index at which a box with run-time starts reads (or writes) for one element of the box."""
        shape = equation.operands[0].aval.shape
        room = [n - size + 1 for n, size in zip(shape, box_shape(equation), strict=True)]
        bases = [self._checked(equation, s, (), n, r) for s, n, r in zip(starts, shape, room, strict=True)]
        return [base + index for base, index in zip(bases, indices, strict=True)]

    def _checked(self, equation: Equation, integers: Atom, indices: Indices, extent: int, room: int) -> Index:
        """Count a negative integer from the end of its axis, then check that it is below `room`."""
        if room < 1:
            raise LoweringError("an index into an empty axis is left to the interpreter, which says so")
        given = self.element(integers, indices)
        if isinstance(given, IndexValue) and _within(given.index, room):
            return given.index
        if isinstance(integers, Literal) and 0 <= (start := _from_start(integers, extent)) < room:
            return Index(start)
        number = self.nodes.cast(given, I64)
        if is_size(extent):
            size = self.nodes.number(Index(extent), I64)
            wrapped = self.nodes.template("select({0} < i64(0), {0} + {1}, {0})", I64, number, size)
        else:
            wrapped = self.nodes.template(f"select({{0}} < i64(0), {{0}} + i64({extent}), {{0}})", I64, number)
        self.shared.checks += 1
        fault = self.shared.fault(out_of_range(equation.source))
        checked = self.nodes.checked(wrapped, room, fault, self.depth)
        return Index(0, ((Loaded(checked, room), 1),))


def _from_start(integer: Literal, extent: int) -> int:
    given = int(integer.value)
    return given + extent if given < 0 else given


def _within(index: Index, extent: int) -> bool:
    low, high = index.range
    return low >= 0 and high < extent


def _possible(condition: Condition) -> bool:
    index, low, high = condition
    least, greatest = index.range
    return least < high and greatest >= low and low < high


def box_shape(equation: Equation) -> Shape:
    """The shape of the box a dynamic slice reads or a dynamic update writes."""
    if isinstance(equation.primitive.lower, DynamicSlice):
        return equation.results[0].aval.shape
    return equation.operands[1].aval.shape
