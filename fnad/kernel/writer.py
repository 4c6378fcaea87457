"""The writer of a kernel's statements: blocks, variables for values, addresses, stores.

Every value gets its own variable, assigned once, in the block of the innermost loop that it varies in: what does not
vary in a loop is computed before it, since nodes know their depth. Within a branch everything is computed in the
branch. Memory is named after the buffers; `layout` maps them to arrays afterwards.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING

from fnad.ir.size import is_size
from fnad.ir.types import Dtype
from fnad.kernel import statements as code
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.lower import index as indices
from fnad.lower import loop_ir, nodes
from fnad.lower.index import Index
from fnad.lower.loop_ir import NestLoop
from fnad.lower.nodes import Buffer, Node, loaded
from fnad.lower.rows import Row
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX, Pointer
from fnad.scalar.operations import ADD, AND, MIN, SELECT, SUBTRACT
from fnad.scalar.template import cast_to, instantiate

if TYPE_CHECKING:
    from fnad.kernel.across import RowLoop


@dataclass(slots=True)
class Block:
    """The statements of a block, the variables of the values computed in it, and where a task keeps its fault."""

    parent: Block | None = None
    statements: list[code.Statement] = field(default_factory=list[code.Statement])
    names: dict[Node, code.Expression] = field(default_factory=dict[Node, code.Expression])
    fault: tuple[code.Name, code.Expression] | None = None

    def find(self, node: Node) -> code.Expression | None:
        """The variable that holds a value here."""
        block: Block | None = self
        while block is not None:
            name = block.names.get(node)
            if name is not None:
                return name
            block = block.parent
        return None

    def status(self) -> tuple[code.Name, code.Expression]:
        """The place of a fault that is found here: that of the task, or of the kernel around all tasks."""
        block: Block | None = self
        while block is not None:
            if block.fault is not None:
                return block.fault
            block = block.parent
        return code.STATUS, code.integer(0)


def array_of(buffer: Buffer) -> code.Name:
    """The memory of a buffer."""
    return code.Name(buffer.root.name, Pointer(buffer.dtype))


def counter(depth: int) -> code.Name:
    """The counter of the loop at a depth."""
    return code.Name(f"i{depth}", INDEX, code.Role.COUNTER)


def block_of(depth: int) -> code.Name:
    """The first iteration of a block of the loop at a depth."""
    return code.Name(f"b{depth}", INDEX, code.Role.COUNTER)


class Writer:
    """Writes statements on values and memory, with a block per open loop in `blocks`.

    Within a loop across a tile `loop_over_rows` is the one over its rows.
    """

    def __init__(self, depth: int, rows: Mapping[Buffer, Row], target: Target) -> None:
        self.target = target
        self.rows = rows
        self.body = Block()
        self.blocks = [self.body] * (depth + 1)
        self.loops = [NestLoop(d, 0) for d in range(depth)]
        self.changing: set[str] = set()
        self.branches = 0
        self.innermost_branch = 0
        self.is_parallel = False
        self.own: dict[loop_ir.Effect, tuple[code.Name, code.Expression, Index]] = {}
        self.loop_over_rows: RowLoop | None = None
        self.numbers = {prefix: count() for prefix in ("v", "acc", "k", "part", "lane")}
        self._source = ""

    # ---- statements --------------------------------------------------------------------------------------------------

    @property
    def here(self) -> Block:
        return self.blocks[-1]

    def add(self, *statements: code.Statement) -> None:
        self.here.statements.extend(statements)

    def name(self, prefix: str, dtype: Dtype) -> code.Name:
        return code.Name(f"{prefix}{next(self.numbers[prefix])}", dtype)

    def assign(self, prefix: str, value: code.Expression) -> code.Name:
        """A new variable with this value."""
        name = self.name(prefix, value.dtype)
        self.add(code.Assign((name,), value))
        return name

    def exit(self, condition: code.Expression, *statements: code.Statement) -> None:
        self.add(code.If(condition, list(statements)))

    @contextmanager
    def block(self, *, level: bool = True) -> Generator[list[code.Statement], None, None]:
        """Write a block, one level deeper if it is a loop's, which the caller adds to a statement."""
        outer, block = self.blocks, Block(self.here)
        self.blocks = [*outer, block] if level else [*outer[:-1], block]
        yield block.statements
        self.blocks = outer

    @contextmanager
    def loop_over(
        self, counter: code.Name, stop: code.Expression | int, start: code.Expression | int = 0, step: int = 1,
        kind: code.LoopKind = code.LoopKind.PLAIN, *, level: bool = False,
    ) -> Generator[None, None, None]:  # fmt: skip
        """Write a loop; none if nothing is in it."""
        with self.block(level=level) as body:
            yield
        if body:
            first, end = (code.integer(bound) if isinstance(bound, int) else bound for bound in (start, stop))
            self.add(code.For(counter, first, end, step, body, kind))

    @contextmanager
    def where(self, *conditions: code.Expression) -> Generator[None, None, None]:
        """Write a branch that is taken where all conditions hold; without conditions there is none."""
        with self.block(level=False) as body:
            yield
        self.add(*([code.If(reduce(partial(code.apply, AND), conditions), body)] if conditions else body))

    @contextmanager
    def each_of(self, count: int) -> Generator[code.Name, None, None]:
        """Write a loop over the numbers up to a count."""
        element = code.Name("e", INDEX)
        with self.loop_over(element, count):
            yield element

    @contextmanager
    def in_loops(self, loops: Sequence[NestLoop]) -> Generator[None, None, None]:
        """Write loops that follow one another."""
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(self.loop_over(counter(loop.depth), loop.extent))
            yield

    def comment(self, effect: loop_ir.Effect | loop_ir.Product | loop_ir.LibraryCall) -> None:
        text = str(effect.source) if effect.source is not None else ""
        if text and text != self._source:
            self.add(code.Comment(text, effect.source))
        self._source = text

    # ---- memory ------------------------------------------------------------------------------------------------------

    def store(self, effect: loop_ir.Effect, value: code.Expression) -> None:
        """Store a value from a variable that is assigned only once, so that a later load can become that variable."""
        if not isinstance(value, code.Constant) and not (
            isinstance(value, code.Name) and value.name not in self.changing
        ):
            value = self.assign("v", value)
        self.add(code.Store(*self.destination(effect), value))

    def destination(self, effect: loop_ir.Effect) -> tuple[code.Name, code.Expression]:
        """The place that an effect writes: a fold of a parallel loop among the task's own results."""
        if effect not in self.own:
            return array_of(effect.buffer), self.place(effect.buffer, effect.address)
        array, start, index = self.own[effect]
        return array, start + self.address(index)

    def place(self, buffer: Buffer, address: Index) -> code.Expression:
        """An address in the memory of a buffer, of which there may be a row or a tile only."""
        row = self.rows.get(buffer.root)
        if row is None:
            return self.address(address)
        found, stride = self.address(row.place(address)), row.stride(address)
        if not stride:
            return found
        number = counter(row.loop.depth) - block_of(row.loop.depth)
        return plus(number if stride == 1 else code.integer(stride) * number, found)

    def address(self, index: Index) -> code.Expression:
        """An index as an expression."""
        return _sum(index, {node: self.value(node) for node in loaded(index)})

    # ---- values ------------------------------------------------------------------------------------------------------

    @staticmethod
    def step(template: str, dtype: Dtype, **operands: code.Expression) -> code.Expression:
        return instantiate(template, code.EXPRESSIONS, dtype, operands)

    @staticmethod
    def cast(value: code.Expression, dtype: Dtype) -> code.Expression:
        if value.kind == dtype:
            return value
        if isinstance(value, code.Constant):
            return code.Constant(cast_to(dtype).plain(value.value))
        return code.apply(cast_to(dtype), value)

    @staticmethod
    def select(condition: code.Expression, a: code.Expression, b: code.Expression) -> code.Expression:
        return code.apply(SELECT, condition, a, b)

    def value(self, node: Node) -> code.Expression:
        """The constant or the variable of a value."""
        if isinstance(node, nodes.ScalarConstant):
            return code.Constant(node.value)
        found = self.here.find(node)
        if found is not None:
            return found
        inner, home = self.blocks, self.home(node)
        self.blocks = inner[: inner.index(home) + 1]
        name = self.here.names[node] = self.computed(node)
        self.blocks = inner
        return name

    def home(self, node: Node) -> Block:
        """The block for a node: that of the innermost loop it varies in; inside a branch, the branch's."""
        rows = self.loop_over_rows
        if self.branches or (rows is not None and node.depth > rows.depth):
            return self.here
        return self.blocks[max(self.innermost_branch, min(node.depth, len(self.blocks) - 1))]

    def computed(self, node: Node) -> code.Expression:
        rows = self.loop_over_rows
        if rows is not None and node in rows.kept:
            return self.assign("v", code.Load(rows.kept[node], rows.number))
        match node:
            case nodes.BufferLoad(buffer, address):
                return self.assign("v", code.Load(array_of(buffer), self.place(buffer, address), node.source))
            case nodes.ScalarOperation(operation, operands):
                return self.assign("v", code.apply(operation, *map(self.value, operands), source=node.source))
            case nodes.IndexValue(index, dtype, _):
                return self.assign("v", self.cast(self.address(index), dtype))
            case nodes.Branch():
                return self.branch(node)
            case nodes.Checked():
                return self.checked(node)
            case nodes.ScalarConstant():
                raise AssertionError("constants need no variable")

    def branch(self, node: nodes.Branch) -> code.Name:
        name = self.name("v", node.dtype)
        self.changing.add(name.name)
        condition = self.conditions(node.conditions)
        bodies: list[list[code.Statement]] = []
        for value in (node.inside, node.outside):
            self.branches += 1
            with self.block() as body:
                self.add(code.Assign((name,), self.value(value)))
            self.branches -= 1
            bodies.append(body)
        self.add(code.If(condition, *bodies))
        return name

    def checked(self, node: nodes.Checked) -> code.Name:
        name = self.assign("k", self.value(node.operand))
        self.changing.add(name.name)
        out = (name < 0) | (name >= node.extent)
        self.exit(out, code.Store(*self.here.status(), code.integer(node.fault)), code.Assign((name,), code.integer(0)))
        return name

    def conditions(self, conditions: Sequence[nodes.Condition]) -> code.Expression:
        """The conjunction of conditions, without the bounds that always hold."""
        found: list[code.Expression] = []
        for index, low, high in conditions:
            (least, greatest), number = index.range, self.address(index)
            found += [number >= low] if least < low else []
            found += [number < high] if greatest >= high else []
        result, *others = found
        for other in others:
            result = result & other
        return result


def end_of(start: code.Expression, length: int, extent: int) -> code.Expression:
    """The end of a block of a loop."""
    end = start + length
    return end if not is_size(extent) and extent % length == 0 else code.apply(MIN, end, code.integer(extent))


def plus(a: code.Expression, b: code.Expression) -> code.Expression:
    """A sum, unless the second number is 0."""
    return a if isinstance(b, code.Constant) and not b.value else a + b


def _sum(index: Index, names: dict[Node, code.Expression]) -> code.Expression:
    total: code.Expression | None = None
    for atom, coefficient in index.terms:
        term, size = _atom(atom, names), abs(coefficient)
        if size != 1:
            term = code.integer(size) * term
        if total is None:
            total = -term if coefficient < 0 else term
        else:
            total = code.apply(SUBTRACT if coefficient < 0 else ADD, total, term)
    if total is None:
        return code.integer(index.constant)
    if index.constant == 0:
        return total
    return code.apply(SUBTRACT if index.constant < 0 else ADD, total, code.integer(abs(index.constant)))


def _atom(atom: indices.Atom, names: dict[Node, code.Expression]) -> code.Expression:
    match atom:
        case indices.Counter(depth, _):
            return counter(depth)
        case indices.Loaded(node, _):
            return names[node]
        case indices.Quotient(dividend, divisor):
            return _sum(dividend, names) // divisor
        case indices.Remainder(dividend, divisor):
            return _sum(dividend, names) % divisor


def local(array: code.Name, size: int) -> code.Assign:
    """The statement that makes an array of a kernel's own."""
    return code.Assign((array,), code.apply(LOCAL_ARRAYS[array.dtype], code.integer(size)))
