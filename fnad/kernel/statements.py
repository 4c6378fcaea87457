"""The kernel language: typed statements on scalars and flat arrays.

    kernel     ::= name, parameters: [Name of an array], body: [statement]
    statement  ::= Assign(target, value) | Store(array, index, value) | Evaluate(call) | Comment(text)
                 | For(counter, start, stop, step, [statement], kind) | While([statement])
                 | If(condition, [statement], [statement]) | Break | Return
    expression ::= Name(name, kind) | Constant(value) | Load(array, index) | Apply(operation, operands)

Expressions are equal if they have the same structure, and statements only if they are the same object. Python's
operators make expressions, and integers on their right become indices: `a * b + 1` adds 1 to a product.

Every expression has a kind: a NumPy dtype for a scalar, a `Pointer` for a flat array, a tuple for several scalars. The
operations are those of one table (`fnad.scalar`): nothing is promoted, a cast is an operation. An index is an i64.
`While` runs until a `Break` or a `Return`. Arrays that are parameters do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from operator import is_
from typing import Self, TypeAlias, TypeVar

import numpy as np

from fnad.ir.program import Source
from fnad.ir.size import computed, is_size
from fnad.scalar import operations as scalar
from fnad.scalar.operation import INDEX, Dtype, Kind, Operation, Pointer

T = TypeVar("T")


class Role(Enum):
    """The purpose of a variable or an array, as far as passes depend on it."""

    COUNTER = "the counter of a loop, or the first iteration of a block of it"
    OWN = "an array in the registers of a device thread"


def _operator(operation: Operation) -> Callable[[Expression, Expression | int], Apply]:
    """The method of expressions that makes an operation, on an index if the other operand is an integer."""
    return lambda self, other: apply(operation, self, other if isinstance(other, Operable) else integer(other))


class Operable:
    """The operators of expressions; `equals` and `differs` compare values, since `==` compares structures."""

    __slots__ = ()

    __add__ = _operator(scalar.ADD)
    __sub__ = _operator(scalar.SUBTRACT)
    __mul__ = _operator(scalar.MULTIPLY)
    __truediv__ = _operator(scalar.DIVIDE)
    __floordiv__ = _operator(scalar.FLOOR_DIVIDE)
    __mod__ = _operator(scalar.REMAINDER)
    __and__ = _operator(scalar.AND)
    __or__ = _operator(scalar.OR)
    __lt__ = _operator(scalar.LESS)
    __le__ = _operator(scalar.LESS_EQUAL)
    __gt__ = _operator(scalar.GREATER)
    __ge__ = _operator(scalar.GREATER_EQUAL)
    equals = _operator(scalar.EQUAL)
    differs = _operator(scalar.NOT_EQUAL)

    def __neg__(self) -> Apply:
        assert isinstance(self, Expression)
        return apply(scalar.NEGATIVE, self)

    @property
    def dtype(self) -> Dtype:
        """The dtype of a scalar, or of the elements of an array."""
        assert isinstance(self, Expression)
        dtype = self.kind.dtype if isinstance(self.kind, Pointer) else self.kind
        assert isinstance(dtype, np.dtype)
        return dtype

    @property
    def number(self) -> int | None:
        """The integer that the expression is; None if it is not a constant."""
        return None

    def with_parts(self, change: Change) -> Self:
        """The expression with the expressions that it is made of transformed."""
        return self


@dataclass(frozen=True, slots=True)
class Name(Operable):
    """A scalar variable or an array, known by its name."""

    name: str
    kind: Kind
    role: Role | None = field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Name) and self.name == other.name and self.kind == other.kind)

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Operable):
    """A number of its dtype; constants are equal if their bits are."""

    value: np.generic

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    @property
    def _bits(self) -> tuple[np.dtype, bytes]:
        return self.value.dtype, self.value.tobytes()

    @property
    def kind(self) -> Kind:
        return self.value.dtype

    @property
    def number(self) -> int:
        return int(self.value)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class Load(Operable):
    """An element of an array, for a line of user code if the source is known."""

    array: Name
    index: Expression
    source: Source | None = field(default=None, compare=False)

    @property
    def kind(self) -> Kind:
        return self.array.dtype

    def with_parts(self, change: Change) -> Load:
        index = change(self.index)
        return self if index is self.index else Load(self.array, index, self.source)


@dataclass(frozen=True, slots=True)
class Apply(Operable):
    """An operation on operands of the kinds that it takes, for a line of user code if the source is known."""

    operation: Operation
    operands: tuple[Expression, ...]
    kind: Kind
    source: Source | None = field(default=None, compare=False)

    def with_parts(self, change: Change) -> Apply:
        parts = tuple(map(change, self.operands))
        return self if all(map(is_, parts, self.operands)) else Apply(self.operation, parts, self.kind, self.source)


Expression: TypeAlias = Name | Constant | Load | Apply
Change: TypeAlias = Callable[[Expression], Expression]
ChangeOfBody: TypeAlias = "Callable[[Sequence[Statement]], list[Statement]]"


class StatementParts:
    """The expressions and the blocks of a statement, and the statement with others."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions of the statement, without those of its blocks."""
        return ()

    @property
    def bodies(self) -> tuple[list[Statement], ...]:
        """The blocks in the statement."""
        return ()

    def with_operands(self, change: Change) -> Self:
        """The statement with each of its expressions transformed, but not those of its blocks."""
        return self

    def with_bodies(self, change: ChangeOfBody) -> Self:
        """The statement with each of its blocks transformed."""
        return self

    def expressions(self) -> list[Expression]:
        """All expressions of the statement, inner ones included, without those of its blocks."""
        return subexpressions(*self.operands)

    def loads(self) -> Iterator[Load]:
        """The elements that the statement reads, without those that its blocks read."""
        return (expression for expression in self.expressions() if isinstance(expression, Load))

    def names(self) -> Iterator[Name]:
        """The variables and arrays that the statement takes, without arrays of which it reads elements."""
        return (expression for expression in self.expressions() if isinstance(expression, Name))


@dataclass(frozen=True, slots=True, eq=False)
class Assign(StatementParts):
    """target = value; of an operation with several results, one target each."""

    targets: tuple[Name, ...]
    value: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.value,)

    def with_operands(self, change: Change) -> Assign:
        value = change(self.value)
        return self if value is self.value else Assign(self.targets, value)


@dataclass(frozen=True, slots=True, eq=False)
class Store(StatementParts):
    """array[index] = value."""

    array: Name
    index: Expression
    value: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.index, self.value

    def with_operands(self, change: Change) -> Store:
        index, value = change(self.index), change(self.value)
        return self if index is self.index and value is self.value else Store(self.array, index, value)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(StatementParts):
    """A call for its effect."""

    call: Apply

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.call,)

    def with_operands(self, change: Change) -> Evaluate:
        call = change(self.call)
        assert isinstance(call, Apply)
        return Evaluate(call)


@dataclass(frozen=True, slots=True, eq=False)
class Comment(StatementParts):
    """A comment: the line of the user's program that the following statements come from."""

    text: str
    source: Source | None = None


class LoopKind(Enum):
    """The kinds of counted loops; a device unrolls those of elements and of vectors."""

    PLAIN = "iterations in order"
    PARALLEL = "iterations that may run on several threads"
    SPAN = "iterations of which there is hardly ever more than one"
    ELEMENTS = "the elements of a row that a device thread has"
    VECTOR = "the neighbouring elements that a device thread takes at once"
    ROWS = "the rows that the groups of a block have"


@dataclass(frozen=True, slots=True, eq=False)
class For(StatementParts):
    """The body for counter = start, start + step, … up to stop, exclusive.

    No iteration of a parallel loop touches what another one writes, variables that one assigns are its own, and none
    ends the run.
    """

    counter: Name
    start: Expression
    stop: Expression
    step: int
    body: list[Statement] = field(default_factory=list["Statement"])
    kind: LoopKind = LoopKind.PLAIN

    @property
    def is_parallel(self) -> bool:
        return self.kind is LoopKind.PARALLEL

    @property
    def counted(self) -> range | None:
        """The values of the counter, if they are known."""
        start, stop = self.start.number, self.stop.number
        return None if start is None or stop is None else range(start, stop, self.step)

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.start, self.stop

    @property
    def bodies(self) -> tuple[list[Statement], ...]:
        return (self.body,)

    def with_operands(self, change: Change) -> For:
        return For(self.counter, change(self.start), change(self.stop), self.step, self.body, self.kind)

    def with_bodies(self, change: ChangeOfBody) -> For:
        return For(self.counter, self.start, self.stop, self.step, change(self.body), self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class While(StatementParts):
    """The body, repeated until a `Break` or a `Return`."""

    body: list[Statement]

    @property
    def bodies(self) -> tuple[list[Statement], ...]:
        return (self.body,)

    def with_bodies(self, change: ChangeOfBody) -> While:
        return While(change(self.body))


@dataclass(frozen=True, slots=True, eq=False)
class If(StatementParts):
    """`then` where the condition, a bool, holds, else `otherwise`."""

    condition: Expression
    then: list[Statement]
    otherwise: list[Statement] = field(default_factory=list["Statement"])

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.condition,)

    @property
    def bodies(self) -> tuple[list[Statement], ...]:
        return self.then, self.otherwise

    def with_operands(self, change: Change) -> If:
        return If(change(self.condition), self.then, self.otherwise)

    def with_bodies(self, change: ChangeOfBody) -> If:
        return If(self.condition, change(self.then), change(self.otherwise))


@dataclass(frozen=True, slots=True)
class Break(StatementParts):
    """The end of the innermost loop."""


@dataclass(frozen=True, slots=True)
class Return(StatementParts):
    """The end of the kernel."""


Statement: TypeAlias = Assign | Store | Evaluate | Comment | For | While | If | Break | Return


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A function on flat arrays, without a result."""

    name: str
    parameters: tuple[Name, ...]
    body: list[Statement]


def apply(operation: Operation, *operands: Expression, source: Source | None = None) -> Apply:
    """The operation on these operands; raises `OperandError` if it has no meaning for their kinds."""
    return Apply(operation, operands, operation.result(*(operand.kind for operand in operands)), source)


class Expressions:
    """Makes expressions from templates."""

    def constant(self, value: np.generic) -> Expression:
        return Constant(value)

    def apply(self, operation: Operation, *operands: Expression) -> Expression:
        return apply(operation, *operands)


EXPRESSIONS = Expressions()

STATUS = Name("status", Pointer(INDEX))
"""Why a run ended early: a positive fault number, or a negative guard number and the value found.

Its third number is given: the number of threads for parallel loops. Those after it are kept from run to run.
"""

THREADS = 2
"""The place of the number of threads in `STATUS`."""

ACCOUNT = 3
"""The place in `STATUS` of what the threads of parallel loops gained and lost: see `fnad/backends/cpu/threads.py`."""

STATUS_SIZE = 6
"""The numbers of the status, behind which a program that counts the steps of loops has two for each."""

STOPPED = 2**62 - 1
"""The status where a parallel loop was interrupted."""

SCRATCH = Name("scratch", Pointer(INDEX))
"""The memory of a kernel's own large arrays, and of those of its tasks on this thread: see `scratch.py`."""

STACKS = Name("stacks", Pointer(INDEX))
"""The table of residual stacks."""

COUNTERS = Name("counters", Pointer(INDEX))
"""The counters of loops in Python around the kernel."""


SIZES = Name("sizes", Pointer(INDEX))
"""The sizes that a program for all sizes is given."""

MOST_SIZES = 8
SIZE = tuple(Name(f"size{k or ''}", INDEX) for k in range(MOST_SIZES))
"""The sizes of the axes, in a program for all sizes."""


def integer(value: int) -> Expression:
    """An index as a constant, or as a polynomial in the sizes of axes."""
    if not is_size(value):
        return Constant(INDEX.type(value))
    operations = (partial(apply, operation) for operation in (scalar.ADD, scalar.MULTIPLY))
    return computed(value, SIZE, integer, *operations)


def subexpressions(*roots: Expression) -> list[Expression]:
    """Expressions and all their subexpressions, in the order of the text."""
    found: list[Expression] = []
    pending = [*reversed(roots)]
    while pending:
        expression = pending.pop()
        found.append(expression)
        if isinstance(expression, Apply):
            pending += expression.operands[::-1]
        elif isinstance(expression, Load):
            pending.append(expression.index)
    return found


def names_read(*roots: Expression) -> list[Name]:
    """The variables and arrays that expressions read, in the order of the text."""
    read = (part.array if isinstance(part, Load) else part for part in subexpressions(*roots))
    return [name for name in read if isinstance(name, Name)]


def walk(statements: Sequence[Statement]) -> list[Statement]:
    """All statements, nested ones included, in the order of the text."""
    found: list[Statement] = []
    for statement in statements:
        found.append(statement)
        for body in statement.bodies:
            found += walk(body)
    return found


def stores(statements: Sequence[Statement]) -> list[Store]:
    """All stores in statements, nested ones included."""
    return [statement for statement in walk(statements) if isinstance(statement, Store)]


def loads(statements: Sequence[Statement]) -> list[Load]:
    """The elements that statements read, nested ones included."""
    return [load for statement in walk(statements) for load in statement.loads()]


def assigned(statements: Sequence[Statement]) -> Iterator[Name]:
    """The variables and arrays that statements assign, each as often as they do."""
    for statement in walk(statements):
        if isinstance(statement, Assign):
            yield from statement.targets
