"""Nests as Python statements: for loops over scalar statements in the language of `runtime`.

A value is written in the innermost loop that it varies in, once; a value that a nest has just stored is used from its
variable, so that a temporary only read in its own nest is never stored. A temporary of one element that only one
function touches, such as a carried number, is a variable too.

Note [Accurate sums]
    A sum in f64 goes in blocks of `BLOCK` elements, which LLVM adds in the lanes of vectors; the blocks are added with
    compensation (Neumaier 1974). That is at least as accurate as NumPy's pairwise sum. Single precision is summed in
    double precision, which needs neither.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from fnad.backends.numba.accumulators import (
    BLOCK,
    Accumulator,
    accumulators_below,
    effects_in_loops,
    first_loop,
)
from fnad.backends.numba.statements import Block, Statement
from fnad.errors import LoweringError
from fnad.lower.index import Index
from fnad.lower.loops import (
    ArgReduce,
    Call,
    Check,
    Combine,
    Control,
    Effect,
    Item,
    Loop,
    Matrix,
    Product,
    Reduce,
    Running,
    Store,
    controls,
    effect_loads,
    effects,
)
from fnad.lower.nodes import Apply, Branch, Buffer, Checked, Constant, Load, Node, Number, cast, children, loaded
from fnad.lower.text import conditions_text, index_text

LONGEST_LINE = 90


@dataclass(frozen=True, slots=True)
class Layout:
    """Where buffers are: the names of their arrays, those never stored, those in variables, the numbers of tapes."""

    arrays: dict[Buffer, str]
    unread: frozenset[Buffer] = frozenset()
    variables: frozenset[Buffer] = frozenset()
    tapes: tuple[Buffer, ...] = ()


class Emitter:
    """Writes one function: `body` while walking the items, with a block per open loop in `blocks`."""

    def __init__(self, layout: Layout, read: set[Buffer], depth: int) -> None:
        self.layout = layout
        self.read = read
        self.stops = False
        self.body = Block()
        self.blocks: list[Block] = [self.body] * (depth + 1)
        self.loops: list[Loop] = [Loop(d, 0) for d in range(depth)]
        self.accumulators: dict[Reduce | ArgReduce | Running, str] = {}
        self.uses: Tally[Node] = Tally()
        self.loaded: set[tuple[Buffer, Index]] = set()
        self.branches = 0
        self.innermost_branch = 0
        self._numbers = {prefix: count() for prefix in ("v", "acc", "k")}
        self._source = ""

    def emit(self, items: Sequence[Item]) -> None:
        simple = [e for item in items for e in effects(item) if not isinstance(e, Product | Call)]
        self.loaded = {(load.buffer, load.address) for effect in simple for load in effect_loads(effect)}
        self.loaded |= {(load.buffer, load.address) for i in items for c in controls(i) for load in c.read}
        self._items(items)

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            self._count_uses(item)
            self._item(item)

    def _array(self, buffer: Buffer) -> str:
        return self.layout.arrays.get(buffer.root, buffer.root.name)

    def _place(self, buffer: Buffer, address: Index) -> str:
        """Return an element of a buffer: what is assigned to, or read."""
        name = self._array(buffer)
        return name if buffer.root in self.layout.variables else f"{name}[{self._address(address)}]"

    def _name(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers[prefix])}"

    def _add(self, text: str, *buffers: Buffer, block: Block | None = None, stores: Buffer | None = None) -> None:
        roots = tuple(buffer.root for buffer in buffers)
        statement = Statement(text, roots, stores.root if stores is not None else None)
        (block or self.blocks[-1]).statements.append(statement)

    def _count_uses(self, item: Item) -> None:
        """Count how often each node is read in a nest: what is read once needs no name."""
        if isinstance(item, Control):
            return
        self.uses = Tally()
        seen: set[Node] = set()
        for effect in effects(item):
            if isinstance(effect, Store | Check | Reduce | ArgReduce | Running | Combine):
                repeats = effect.step.count("{0}") if isinstance(effect, Reduce | Running) else 1
                self.uses[effect.node] += 2 if isinstance(effect, ArgReduce) else repeats
                self._count_below(effect.node, seen)

    def _count_below(self, root: Node, seen: set[Node]) -> None:
        pending = [root]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            for position, child in enumerate(children(node)):
                self.uses[child] += node.template.count(f"{{{position}}}") if isinstance(node, Apply) else 1
                pending.append(child)

    # ---- items ---------------------------------------------------------------------------------------------------

    def _item(self, item: Item) -> None:
        match item:
            case Loop():
                self._loop(item)
            case Product():
                self._product(item)
            case Store():
                self._comment(item)
                self._store(item, self._value(item.node, name_it=self._is_forwarded(item)))
            case Check():
                self._comment(item)
                self._check(item)
            case Reduce():
                self._comment(item)
                self._reduce(item)
            case ArgReduce():
                self._arg_reduce(item)
            case Running():
                self._running(item)
            case Combine():
                self._comment(item)
                self._combine(item)
            case _:
                raise LoweringError(f"{item} has no source")

    def _comment(self, effect: Effect | Product) -> None:
        text = str(effect.source) if effect.source is not None else ""
        if text and text != self._source:
            self._add(f"# {text}")
        self._source = text

    def _is_forwarded(self, store: Store) -> bool:
        """Say whether a later statement reads what is stored: then it gets a name, to be read from there."""
        return (store.buffer, store.address) in self.loaded

    def _store(self, effect: Store | Check | Reduce | ArgReduce, value: str) -> None:
        place = self._place(effect.buffer, effect.address)
        self._add(f"{place} = {value}", effect.buffer, stores=effect.buffer)
        if value.isidentifier():
            self.blocks[-1].stored[effect.buffer, effect.address] = value

    def _check(self, check: Check) -> None:
        value = self._value(check.node, name_it=True)
        self._store(check, value)
        self._exit(
            f"if i64({value}) != i64({int(check.expected)}):",
            f"status[0], status[1] = i64({-1 - check.number}), i64({value})",
            "return",
        )

    def _exit(self, header: str, *lines: str) -> None:
        block = self.blocks[-1].child(header)
        for line in lines:
            self._add(line, block=block)
        self.blocks[-1].statements.append(block)
        self.stops |= "return" in lines

    # ---- loops ---------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> None:
        self.loops.append(loop)
        folds = [f for f in accumulators_below(loop, self.loops) if f.start == loop.depth]
        blocked = any(f.compensated and f.depth == len(self.loops) for f in folds) and loop.extent > BLOCK
        self._fill_accumulators_in_memory(loop)
        for fold in folds:
            self._open_fold(fold)
        if blocked:
            self._blocked_loop(loop, folds)
        else:
            self._plain_loop(loop, f"for i{loop.depth} in range({loop.extent}):")
        self.loops.pop()
        for fold in folds:
            self._close_fold(fold)

    def _plain_loop(self, loop: Loop, header: str) -> None:
        outer = self.blocks[-1]
        inner = outer.child(header)
        opened = [f for f in accumulators_below(loop, self.loops) if f.compensated and f.depth == len(self.loops)]
        for fold in opened:
            self._add(f"{self.accumulators[fold.effect]} = {fold.zero}")
        self.blocks.append(inner)
        for item in loop.items:
            self._item(item)
        self.blocks.pop()
        outer.statements.append(inner)
        for fold in opened:
            self._compensate(fold)

    def _blocked_loop(self, loop: Loop, folds: Sequence[Accumulator]) -> None:
        outer, depth, extent = self.blocks[-1], loop.depth, loop.extent
        end = f"b{depth} + {BLOCK}" if extent % BLOCK == 0 else f"min(b{depth} + {BLOCK}, {extent})"
        inner = outer.child(f"for b{depth} in range(0, {extent}, {BLOCK}):")
        self.blocks[-1] = inner
        self._plain_loop(loop, f"for i{depth} in range(b{depth}, {end}):")
        self.blocks[-1] = outer
        outer.statements.append(inner)

    # ---- folds ---------------------------------------------------------------------------------------------------

    def _open_fold(self, fold: Accumulator) -> None:
        name = self.accumulators[fold.effect] = self._name("acc")
        if fold.compensated:
            self._add(f"{name}_total, {name}_rest = {fold.zero}, {fold.zero}")
        elif isinstance(fold.effect, ArgReduce):
            self._add(f"{name}, {name}_best = i64(0), {fold.zero}")
        else:
            self._add(f"{name} = {fold.zero}")

    def _compensate(self, fold: Accumulator) -> None:
        name = self.accumulators[fold.effect]
        self._add(f"{name}_total, {name}_rest = compensated_add({name}_total, {name}_rest, {name})")

    def _close_fold(self, fold: Accumulator) -> None:
        effect, name = fold.effect, self.accumulators[fold.effect]
        if isinstance(effect, Running):
            return
        value = f"{name}_total + {name}_rest" if fold.compensated else name
        if isinstance(effect, Reduce) and fold.start != min(effect.depths):
            self._combine_in_memory(effect, value)
            return
        if isinstance(effect, Reduce) and effect.dtype != effect.buffer.dtype:
            value = f"{cast(effect.buffer.dtype)}({value})"
        if not value.isidentifier():
            final = self._name("v")
            self._add(f"{final} = {value}")
            value = final
        self._store(effect, value)

    def _reduce(self, effect: Reduce) -> None:
        if not effect.depths:
            self._fold_of_one(effect)
            return
        element = self._element(effect)
        if len(self.loops) - 1 in effect.depths:
            name = self.accumulators[effect]
            self._add(f"{name} = {_combined(effect.step, element, acc=name)}")
        else:
            self._combine_in_memory(effect, element)

    def _fold_of_one(self, effect: Reduce) -> None:
        value = _combined(effect.step, self._element(effect), acc=effect.init)
        self._store(effect, f"{cast(effect.buffer.dtype)}({value})")

    def _element(self, effect: Reduce) -> str:
        value = self._value(effect.node)
        return value if effect.dtype == effect.node.dtype else f"{cast(effect.dtype)}({value})"

    def _combine_in_memory(self, effect: Reduce, value: str) -> None:
        place = self._place(effect.buffer, effect.address)
        text = _combined(effect.step, value, acc=place)
        self._add(f"{place} = {text}", effect.buffer)
        self.read.add(effect.buffer.root)

    def _fill_accumulators_in_memory(self, loop: Loop) -> None:
        """Before the outermost loop of a fold that accumulates in memory, put its initial value there."""
        for effect, loops in effects_in_loops(loop, self.loops):
            if not isinstance(effect, Reduce) or loop.depth != min(effect.depths, default=-1):
                continue
            if first_loop(effect, len(loops)) != loop.depth:
                self._fill(effect, loops[len(self.loops) :])

    def _fill(self, effect: Reduce, loops: Sequence[Loop]) -> None:
        block = self.blocks[-1]
        for loop in loops:
            if loop.depth in effect.depths:
                continue
            inner = block.child(f"for i{loop.depth} in range({loop.extent}):")
            block.statements.append(inner)
            block = inner
        self._add(f"{self._place(effect.buffer, effect.address)} = {effect.init}", effect.buffer, block=block)

    def _arg_reduce(self, effect: ArgReduce) -> None:
        name, better, counter = self.accumulators[effect], self._name("v"), f"i64(i{self.loops[-1].depth})"
        value = self._value(effect.node, name_it=True)
        self._add(f"{better} = {effect.better.format(value, best=f'{name}_best')}")
        self._add(f"{name} = select({better}, {counter}, {name})")
        self._add(f"{name}_best = select({better}, {value}, {name}_best)")

    def _running(self, effect: Running) -> None:
        name = self.accumulators[effect]
        value = self._value(effect.node, name_it=True)
        combined = _combined(effect.step, value, acc=name)
        self._add(f"{name} = select(i{self.loops[-1].depth} == 0, {value}, {combined})")
        place = self._place(effect.buffer, effect.address)
        self._add(f"{place} = {name}", effect.buffer, stores=effect.buffer)

    def _combine(self, effect: Combine) -> None:
        value = self._value(effect.node)
        place = self._place(effect.buffer, effect.address)
        new = _enclosed(value, effect.step, "{new}")
        text = effect.step.format(old=place, new=new, dtype=cast(effect.buffer.dtype))
        self._add(f"{place} = {text}", effect.buffer)
        self.read.add(effect.buffer.root)
        for block in self.blocks:
            block.forget(effect.buffer)

    # ---- products ------------------------------------------------------------------------------------------------

    def _product(self, product: Product) -> None:
        self._comment(product)
        out, a, b = product.out, product.a, product.b
        self.read.update((a.buffer.root, b.buffer.root, out.buffer.root))
        name = cast(out.buffer.dtype)
        scales = f"{name}(1), {name}(0)"
        if product.n == 1:
            self._matrix_vector(a, (b.buffer, b.offset, b.row_stride), (product.m, product.k), out, scales)
        elif product.m == 1:
            turned = Matrix(b.buffer, b.offset, b.column_stride, b.row_stride)
            self._matrix_vector(turned, (a.buffer, a.offset, a.column_stride), (product.n, product.k), out, scales)
        else:
            sizes = f"{product.m}, {product.n}, {product.k}"
            target = f"{self._array(out.buffer)}, {self._address(out.offset)}, {out.row_stride}"
            text = f"gemm({self._matrix(a)}, {self._matrix(b)}, {target}, {sizes}, {scales})"
            self._add(text, a.buffer, b.buffer, out.buffer)

    def _matrix_vector(
        self, a: Matrix, vector: tuple[Buffer, Index, int], sizes: tuple[int, int], out: Matrix, scales: str
    ) -> None:
        buffer, offset, step = vector
        x = f"{self._array(buffer)}, {self._address(offset)}, {step}"
        y = f"{self._array(out.buffer)}, {self._address(out.offset)}"
        text = f"gemv({self._matrix(a)}, {x}, {y}, {sizes[0]}, {sizes[1]}, {scales})"
        self._add(text, a.buffer, buffer, out.buffer)

    def _matrix(self, matrix: Matrix) -> str:
        transposed = matrix.column_stride != 1
        leading = matrix.column_stride if transposed else matrix.row_stride
        return f"{self._array(matrix.buffer)}, {self._address(matrix.offset)}, {leading}, {transposed}"

    # ---- expressions ---------------------------------------------------------------------------------------------

    def _address(self, index: Index) -> str:
        return index_text(index, self._loaded_names(index))

    def _loaded_names(self, *indices: Index) -> dict[Node, str]:
        """Return the variables of the run-time integers in these indices."""
        return {node: self._value(node, name_it=True) for index in indices for node in loaded(index)}

    def _value(self, node: Node, *, name_it: bool = False) -> str:
        """Return a node as Python: a variable if it is used again or varies further out, else an expression."""
        here, home = self.blocks[-1], self._home(node)
        found = here.find(node)
        if found is not None:
            return found
        if isinstance(node, Constant):
            return constant_text(node.value)
        inner = self.blocks
        self.blocks = inner[: inner.index(home) + 1]
        text = self._text(node)
        if home is not here or name_it or self.uses[node] > 1 or len(text) > LONGEST_LINE:
            text = self._named(text, node)
        self.blocks = inner
        return text

    def _named(self, text: str, node: Node) -> str:
        if not text.isidentifier():
            name = self._name("v")
            self._add(f"{name} = {text}")
            text = name
        self.blocks[-1].names[node] = text
        return text

    def _home(self, node: Node) -> Block:
        """Return the block for a node: that of the innermost loop it varies in; inside a branch, the branch's."""
        if self.branches:
            return self.blocks[-1]
        return self.blocks[max(self.innermost_branch, min(node.depth, len(self.blocks) - 1))]

    def _text(self, node: Node) -> str:
        match node:
            case Load(buffer, address, _):
                self.read.add(buffer.root)
                self.blocks[-1].statements.append(Statement("", (buffer.root,)))
                return self._place(buffer, address)
            case Apply(template, operands, dtype, _):
                texts = [_enclosed(self._value(operand), template, f"{{{n}}}") for n, operand in enumerate(operands)]
                return template.format(*texts, dtype=cast(dtype))
            case Number(index, dtype, _):
                return f"{cast(dtype)}({self._address(index)})"
            case Branch():
                return self._branch(node)
            case Checked():
                return self._checked(node)
            case Constant():
                raise AssertionError("constants have no statement")

    def _branch(self, node: Branch) -> str:
        name = self._name("v")
        indices = [index for index, _, _ in node.conditions]
        header = f"if {conditions_text(node.conditions, self._loaded_names(*indices))}:"
        for text, value in ((header, node.inside), ("else:", node.outside)):
            block = self.blocks[-1].child(text)
            self.blocks = [*self.blocks, block]
            self.branches += 1
            self._add(f"{name} = {self._value(value)}")
            self.branches -= 1
            self.blocks = self.blocks[:-1]
            self.blocks[-1].statements.append(block)
        return name

    def _checked(self, node: Checked) -> str:
        name = self._name("k")
        self._add(f"{name} = {self._value(node.operand)}")
        block = self.blocks[-1].child(f"if {name} < 0 or {name} >= {node.extent}:")
        self._add(f"status[0], {name} = {node.fault}, i64(0)", block=block)
        self.blocks[-1].statements.append(block)
        return name


# ---- text --------------------------------------------------------------------------------------------------------


def _enclosed(text: str, template: str, place: str) -> str:
    """Put an expression with operators in parentheses, unless it goes to places between commas or parentheses only."""
    alone = re.findall(rf"(?:^|\(|, ){re.escape(place)}(?=$|\)|,)", template)
    return text if " " not in _outside_calls(text) or len(alone) == template.count(place) else f"({text})"


def _combined(step: str, element: str, acc: str) -> str:
    """Return one step of a fold; the element is computed before it is combined."""
    product_in_sum = " + " in step and {"*", "/"}.issuperset(_outside_calls(element).split()[1::2])
    return step.format(element if product_in_sum else _enclosed(element, step, "{0}"), acc=acc)


def _outside_calls(text: str) -> str:
    depth, kept = 0, list[str]()
    for character in text:
        depth += character in "(["
        depth -= character in ")]"
        kept.append(character if depth == 0 else "")
    return "".join(kept)


def constant_text(value: np.generic) -> str:
    """Return a scalar as an expression of its dtype; a complex one of its parts, where its literal is another number.

    >>> constant_text(np.float32(0.5)), constant_text(np.complex128(complex(-0.0, np.inf)))
    ('f32(0.5)', 'make_complex(f64(-0.0), f64(inf))')
    """
    if value.dtype.kind == "c" and not _is_literal(value.real, value.imag):
        return f"make_complex({constant_text(value.real)}, {constant_text(value.imag)})"
    return f"{cast(value.dtype)}({value.item()!r})"


def _is_literal(real: np.generic, imag: np.generic) -> bool:
    """Say whether Python's literal of a complex number, a sum or a negative, has the signs of its zeros."""
    has_signs = all(np.isfinite(part) and (part or not np.signbit(part)) for part in (real, imag))
    return has_signs and bool(real or not np.signbit(imag))
