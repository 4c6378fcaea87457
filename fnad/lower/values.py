"""Values: the loop nests of a program, one materialized value after the other.

Each materialized value becomes one nest over the shape of its result (of its operand, if it is a fold), which `fuse`
merges into the nests before it. A large matrix product becomes a BLAS call on strided matrices, so that a transpose
before it costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from fnad.errors import ExportError, LoweringError
from fnad.ir import primitive as kinds
from fnad.ir.program import Atom, Equation, Program, Source, Var
from fnad.ir.size import estimate
from fnad.ir.types import I64, Aval, Dtype, Shape, is_inexact
from fnad.ir.walk import use_counts
from fnad.lower import loop_ir
from fnad.lower.collapse import collapse
from fnad.lower.contraction import Dimensions, contraction_dimensions, matrix, strides
from fnad.lower.divide import divide
from fnad.lower.expressions import ElementExpressions, Shared, is_inlined, place
from fnad.lower.faults import of_error
from fnad.lower.fuse import Nests
from fnad.lower.in_place import reusable, sampled
from fnad.lower.index import Index, Loaded, as_index, count_loops, counter, counters, flatten, unflattened
from fnad.lower.materialize import is_read_twice, materialized_values
from fnad.lower.narrow import folded_along_rows
from fnad.lower.nodes import Buffer, Node, ScalarConstant, loads
from fnad.lower.order import reads_first
from fnad.lower.padded_sums import folded
from fnad.lower.target import is_addition
from fnad.lower.tiles import PARTS, by_rows, by_terms, tiled, worth_narrow, worth_rows, worth_terms
from fnad.scalar.operations import MULTIPLY
from fnad.scalar.template import instantiate
from fnad.transforms.by_rows import each_is_updated_once, rows_of
from fnad.transforms.dce import has_effect

Combination: TypeAlias = kinds.Scatter | kinds.ScatterRuns | kinds.Accumulation | kinds.DynamicUpdate

IS_IT = "select(({0} == {1}) | ({0} != {0}), {2}, {3})"
"""The index of an element if it is the extremum or a nan, otherwise the number of elements."""


class Values:
    """The values of a program, or of a region in `depth` levels of control flow, lowered to nests one by one."""

    def __init__(self, program: Program, shared: Shared, depth: int = 0, nests: Nests | None = None) -> None:
        self.program = program = reads_first(program)
        self.shared = shared
        self.depth = depth
        self.expressions = ElementExpressions(program.equations, shared, depth)
        self.nests = Nests(shared.target.costs.largest_nest) if nests is None else nests
        self.own: dict[Var, Buffer] = {}
        self.copies: dict[Atom, list[tuple[Buffer, Sequence[int]]]] = defaultdict(list)
        self.reused: dict[Var, Var] = {}
        self.narrow = folded_along_rows(program) if shared.target.multiplies else frozenset[Var]()
        self.source: Source | None = None

    def compute(
        self, stored: Sequence[tuple[Atom, Buffer]], read: Sequence[Atom] = (), whole: Sequence[Atom] = ()
    ) -> None:
        """Compute what is materialized, and store what has a buffer; `read` is read at the end, `whole` in a loop."""
        for atom, buffer in stored:
            if isinstance(atom, Var) and atom in self.expressions.definitions:
                self.own.setdefault(atom, buffer)
        last = [*(atom for atom, _ in stored), *read, *whole]
        materialized = materialized_values(
            self.program, self.shared.target.costs, [atom for atom, _ in stored], read, whole
        )
        # Before looking for reuse: a sample with a buffer no longer keeps the array alive that it is taken from.
        materialized |= sampled(self.program, materialized, last)
        # A region's inputs with a buffer are carries and may be overwritten; a program's inputs belong to the caller.
        carried = {var for var in self.program.inputs if var in self.expressions.buffers} if self.depth else set[Var]()
        self.reused = reusable(self.program, materialized, last, carried)
        self._pass_on_buffers()
        materialized |= self._write_parts_in_place(set(last), materialized)
        for equation in self.program.equations:
            self._check_indices_of_nothing(equation)
            if materialized.intersection(equation.results) or has_effect(equation):
                self.source = self.expressions.nodes.source = equation.source
                try:
                    self.materialize(equation)
                except ExportError as error:
                    raise error.at(equation.source) from None
        for atom, buffer in stored:
            if not isinstance(atom, Var) or self.own.get(atom) is not buffer:
                self.copy(atom, buffer)

    def _pass_on_buffers(self) -> None:
        """Give an operand the buffer of the result that takes its memory, so that it is computed there."""
        for result, operand in reversed(self.reused.items()):
            if result in self.own and operand in self.expressions.definitions:
                self.own[operand] = self.own[result]

    def _write_parts_in_place(self, last: AbstractSet[Atom], materialized: AbstractSet[Var]) -> set[Var]:
        """Give what is put together, by concatenations and reshapes, the part of the array that it ends up in.

        Otherwise each element of a reshaped concatenation would have to find its operand by division, and the rows that
        a loop stacks would be copied. Inside of control flow a buffer may hold what is still to be read.
        """
        uses, inside = use_counts(self.program), set[Var]()
        for equation in () if self.depth else reversed(self.program.equations):
            if len(equation.results) != 1:
                continue
            (result,), parts = equation.results, list(self._parts(equation))
            own = self.own.get(result)
            if own is None and result in materialized and any(self._is_stacked(operand) for operand, _ in parts):
                own = self.own[result] = self.temporary(result.aval)
            if own is None:
                continue
            for operand, start in parts:
                if uses[operand] == 1 and operand not in last and self._is_put_together(operand):
                    self.own[operand] = own.part(operand.aval, Index(start), self.depth)
                    inside.add(operand)
        return inside

    def _is_put_together(self, var: Var) -> bool:
        equation = self.expressions.definitions.get(var)
        if equation is None or isinstance(equation.primitive.lower, kinds.Concatenation) or self._is_stacked(var):
            return equation is not None
        return any(self._is_put_together(operand) for operand, _ in self._parts(equation))

    def _is_stacked(self, var: Var) -> bool:
        """True if a value is what a loop of known length stacks."""
        equation = self.expressions.definitions.get(var)
        if equation is None or not isinstance(equation.primitive.lower, kinds.ScanLoop) or var.aval.is_residual_stack:
            return False
        return equation.results.index(var) >= equation.params["carry"]

    def _parts(self, equation: Equation) -> Iterator[tuple[Var, int]]:
        """The operands whose elements lie together and in their order in the result, and where they begin."""
        shape, start = equation.results[0].aval.shape, 0
        match equation.primitive.lower:
            case kinds.Concatenation():
                lies_together = prod(shape[: equation.params["axis"]]) == 1
            case kinds.IndexMap(_, None):
                lies_together = self.expressions.keeps_order(equation, counters(shape, self.depth))
            case _:
                return
        for operand in equation.operands if lies_together else ():
            if isinstance(operand, Var):
                yield operand, start
            start += operand.aval.size

    def taken(self, result: Var) -> Buffer | None:
        """The buffer of a result that takes the memory of an operand; None if it gets its own."""
        if result not in self.reused:
            return None
        memory, own = self.expressions.buffers[self.reused[result]], self.own.get(result)
        fits = own is None or (own.root is memory.root and own.offset == memory.offset)
        return memory.again(self.depth) if fits else None

    def items(self) -> list[loop_ir.Item]:
        """The nests, with loops collapsed and divided where possible."""
        target, nodes = self.shared.target, self.expressions.nodes
        self.nests.share(target.costs.shared_bytes)
        nests = [collapse(tiled(item, target.costs, nodes), nodes) for item in self.nests.items()]
        return nests if target.grid is not None else [divide(item, nodes) for item in nests]

    # ---- one materialized value --------------------------------------------------------------------------------------

    def materialize(self, equation: Equation) -> None:
        """Compute the results of an equation into their buffers, or into new ones."""
        if any(atom.aval.is_residual_stack for atom in (*equation.operands, *equation.results)):
            raise LoweringError(f"{equation.primitive.name} takes no residual stack")
        is_call = isinstance(equation.primitive.lower, kinds.Library)
        if is_call:
            self._disown_parts(equation.results)
        buffers = tuple(self.taken(v) or self.own.get(v) or self.temporary(v.aval) for v in equation.results)
        (self._call if is_call else self._compute_in_loops)(equation, buffers)
        self.expressions.buffers.update(zip(equation.results, buffers, strict=True))

    def _disown_parts(self, results: Sequence[Var]) -> None:
        """Let results that belong into a part of a buffer be copied there: a library call writes whole arrays."""
        for var in results:
            if var in self.own and self.own[var].offset != Index(0):
                del self.own[var]

    def temporary(self, aval: Aval) -> Buffer:
        return self.shared.temporary(aval, self.depth)

    def _compute_in_loops(self, equation: Equation, buffers: tuple[Buffer, ...]) -> None:
        buffer = buffers[0]
        match equation.primitive.lower:
            case kinds.Fold() as fold:
                self._fold(equation, fold, buffer)
            case kinds.ArgFold(better, extremum):
                if is_read_twice(equation, self.shared.target.costs):
                    self._arg_fold_in_two(equation, extremum, buffer)
                else:
                    self._arg_fold(equation, better, extremum, buffer)
            case kinds.Cumulative(step):
                self._scan(equation, step, buffer)
            case kinds.Scatter() | kinds.ScatterRuns() | kinds.Accumulation() | kinds.DynamicUpdate() as kind:
                self._combine(equation, kind, buffer)
            case kinds.Contraction() | kinds.SpanContraction() if not is_inlined(equation):
                self._contraction(equation, buffer)
            case kinds.Concatenation():
                self._concatenate(equation, buffer)
            case kinds.GuardCheck() | kinds.StepCount():
                self._end_or_count(equation, buffer)
            case _ if is_inlined(equation):
                shape = buffer.aval.shape
                self._nest(shape, lambda i: self._store(buffer, i, self.expressions.define(equation.results[0], i)))
            case kind:
                raise LoweringError(f"{equation.primitive.name} has no loops ({type(kind).__name__})")

    def _store(self, buffer: Buffer, indices: Sequence[Index], node: Node) -> loop_ir.BufferStore:
        return loop_ir.BufferStore(buffer, place(buffer, indices), node, self.source)

    def copy(self, atom: Atom, buffer: Buffer) -> None:
        """Store a value into a buffer, cast to its dtype."""
        if atom.aval.is_residual_stack:
            raise LoweringError("a residual stack is not copied")
        element, cast = self.expressions.element, self.expressions.nodes.cast
        self._nest(buffer.aval.shape, lambda i: self._store(buffer, i, cast(element(atom, i), buffer.dtype)))

    def _nest(
        self,
        shape: Shape,
        effect: Callable[[list[Index]], loop_ir.Effect],
        span: Callable[[Index], tuple[Node, Node]] | None = None,
    ) -> None:
        """Place the nest over a shape with this effect; an axis of size 1 needs no loop, an empty one no nest.

        Of the second loop only a span may change something, that of the first one's index: both are loops then.
        """
        if 0 in shape:
            return
        made = effect(counters(shape, self.depth))
        if loop_ir.is_there(made):
            return
        outer = loop_ir.nested(shape, made, self.depth)
        if span is not None:
            assert isinstance(outer, loop_ir.NestLoop)
            (inner,) = outer.items
            assert isinstance(inner, loop_ir.NestLoop)
            inner.span = span(counter(self.depth, shape[0]))
        self.nests.place(outer)

    # ---- folds ---------------------------------------------------------------------------------------------------

    def _fold(self, equation: Equation, fold: kinds.Fold, buffer: Buffer) -> None:
        shape, element = folded(equation, fold, self.expressions)
        self._reduce(buffer, shape, equation.params["axes"], fold, element)

    def _reduce(
        self,
        buffer: Buffer,
        shape: Shape,
        axes: Sequence[int],
        fold: kinds.Fold,
        element: Callable[[list[Index]], Node],
        span: Callable[[Index], tuple[Node, Node]] | None = None,
    ) -> None:
        """Fold over axes; long sums are of a wider dtype. See Note [Accurate sums]."""
        depths, end = depths_of(shape, axes, self.depth), self.depth + count_loops(shape)
        is_in_memory, length = depths != set(range(end - len(depths), end)), prod(estimate(shape[a]) for a in axes)
        narrow = buffer.dtype
        dtype = self.shared.target.accumulator(narrow, length, is_in_memory=is_in_memory) if fold.sum else narrow
        is_sum = fold.sum and is_inexact(dtype)
        step = "accumulate({acc}, {0})" if is_sum else fold.step
        if 0 in shape:
            start = self.expressions.nodes.template(fold.init, buffer.dtype)
            self._nest(buffer.aval.shape, lambda i: self._store(buffer, i, start))
            return
        init = self._initial(fold.init, dtype)
        is_wider = is_in_memory and dtype != narrow
        target = self.temporary(buffer.aval.with_dtype(dtype)) if is_wider else buffer

        def effect(indices: list[Index]) -> loop_ir.Reduce:
            kept = [index for axis, index in enumerate(indices) if axis not in axes]
            address = place(target, kept)
            return loop_ir.Reduce(
                target, address, element(indices), init, step, is_sum, dtype, frozenset(depths), self.source
            )

        self._nest(shape, effect, span)
        if target is not buffer:
            self._narrow(target, buffer)

    def _initial(self, template: str, dtype: Dtype) -> np.generic:
        """The initial value of a fold."""
        start = self.expressions.nodes.template(template, dtype)
        assert isinstance(start, ScalarConstant)
        return start.value

    def _narrow(self, source: Buffer, target: Buffer) -> None:
        """Store values cast to the dtype of another buffer."""
        nodes = self.expressions.nodes
        self._nest(
            target.aval.shape,
            lambda i: self._store(target, i, nodes.cast(nodes.load(source, place(source, i)), target.dtype)),
        )

    def _arg_fold(self, equation: Equation, better: str, extremum: kinds.Fold, buffer: Buffer) -> None:
        operand, axis = equation.operands[0], equation.params["axis"]
        init = self._initial(extremum.init, operand.aval.dtype)

        def effect(indices: list[Index]) -> loop_ir.ArgReduce:
            kept = [index for a, index in enumerate(indices) if a != axis]
            node = self.expressions.element(operand, indices)
            return loop_ir.ArgReduce(buffer, place(buffer, kept), node, init, better, self.source)

        self._nest_along(operand.aval.shape, axis, effect)

    def _arg_fold_in_two(self, equation: Equation, extremum: kinds.Fold, buffer: Buffer) -> None:
        """Fold to the extremum, then to the first index of it or of a nan: both folds vectorise."""
        operand, axis = equation.operands[0], equation.params["axis"]
        shape, nodes = operand.aval.shape, self.expressions.nodes
        best = self.temporary(buffer.aval.with_dtype(operand.aval.dtype))
        none = nodes.number(Index(shape[axis]), I64)

        def index(indices: list[Index]) -> Node:
            kept = [index for a, index in enumerate(indices) if a != axis]
            number = nodes.number(indices[axis], I64)
            found = nodes.load(best, place(best, kept))
            return nodes.template(IS_IT, I64, element(indices), found, number, none)

        element = partial(self.expressions.element, operand)
        self._reduce(best, shape, (axis,), extremum, element)
        self._reduce(buffer, shape, (axis,), kinds.Fold("{highest}", "minimum({acc}, {0})"), index)

    def _scan(self, equation: Equation, step: str, buffer: Buffer) -> None:
        operand, axis = equation.operands[0], equation.params["axis"]
        n = operand.aval.shape[axis]

        def effect(indices: list[Index]) -> loop_ir.Scan:
            if equation.params["reverse"]:
                indices = [n - 1 - index if a == axis else index for a, index in enumerate(indices)]
            address, node = place(buffer, indices), self.expressions.element(operand, indices)
            return loop_ir.Scan(buffer, address, node, step, self.source)

        self._nest_along(operand.aval.shape, axis, effect)

    def _nest_along(self, shape: Shape, axis: int, effect: Callable[[list[Index]], loop_ir.Effect]) -> None:
        """Place a nest whose innermost loop runs along `axis`, even if its size is 1."""
        if 0 in shape:
            return
        others = tuple(n for a, n in enumerate(shape) if a != axis)
        depth = self.depth + count_loops(others)
        outer = counters(others, self.depth)
        innermost = counter(depth, shape[axis])
        inner = loop_ir.NestLoop(depth, shape[axis], [effect([*outer[:axis], innermost, *outer[axis:]])])
        self.nests.place(loop_ir.nested(others, inner, self.depth))

    # ---- writes into part of an array ------------------------------------------------------------------------------

    def _concatenate(self, equation: Equation, buffer: Buffer) -> None:
        """Store each operand at its place, so that no element has to find its operand."""
        axis, start = equation.params["axis"], 0
        for operand in equation.operands:
            self._nest(operand.aval.shape, partial(self._piece, buffer, operand, axis, start))
            start += operand.aval.shape[axis]

    def _piece(self, buffer: Buffer, operand: Atom, axis: int, start: int, indices: list[Index]) -> loop_ir.BufferStore:
        moved = [index + start if a == axis else index for a, index in enumerate(indices)]
        return self._store(buffer, moved, self.expressions.element(operand, indices))

    def _combine(self, equation: Equation, kind: Combination, buffer: Buffer) -> None:
        match kind:
            case kinds.Scatter(step, _):
                self._scatter(equation, step, buffer)
            case kinds.ScatterRuns(step):
                self._scatter_runs(equation, step, buffer)
            case kinds.Accumulation(index):
                self._accumulate(equation, index, buffer)
            case kinds.DynamicUpdate():
                self._update(equation, buffer)

    def _scatter(self, equation: Equation, step: str, buffer: Buffer) -> None:
        operand, updates, *integers = equation.operands
        rows = rows_of(equation, self.expressions.definitions)
        if rows is not None and not self._takes_memory(buffer, operand):
            self._scatter_by_rows(equation, step, rows, buffer)
            return
        is_once = each_is_updated_once(equation, self.expressions.definitions)
        self._write(
            buffer, operand, updates, lambda indices: self.expressions.gathered(equation, integers, indices), step,
            is_once=is_once, in_any_order=self.expressions.shared.target.adds_atomically and is_addition(equation),
        )  # fmt: skip

    def _scatter_by_rows(self, equation: Equation, step: str, rows: Mapping[int, int], buffer: Buffer) -> None:
        """Store each element, updated if it is at the place of the update of its row."""
        operand, updates, *integers = equation.operands
        rank, expressions, nodes = integers[0].aval.ndim, self.expressions, self.expressions.nodes

        def effect(indices: list[Index]) -> loop_ir.BufferStore:
            numbers = {number: indices[axis] for axis, number in rows.items()}
            places = [numbers.get(number, Index(0)) for number in range(rank)] + indices[len(integers) :]
            where = expressions.gathered(equation, integers, places)
            old, new = expressions.element(operand, indices), expressions.element(updates, places)
            value = instantiate(step, nodes, buffer.dtype, {"old": old, "new": new})
            for index, found in zip(indices, where, strict=True):
                if index != found:
                    number, wanted = nodes.number(index, I64), nodes.number(found, I64)
                    value = nodes.template("select({0} == {1}, {2}, {3})", buffer.dtype, number, wanted, value, old)
            return self._store(buffer, indices, value)

        self._nest(buffer.aval.shape, effect)

    def _scatter_runs(self, equation: Equation, step: str, buffer: Buffer) -> None:
        operand, updates, order, *integers = equation.operands
        shape, count = integers[0].aval.shape, order.aval.size
        if not count:
            if not self._takes_memory(buffer, operand):
                self.copy(operand, buffer)
            return
        elements = updates.aval.shape[len(shape) :]
        number = self.expressions.element(order, [counter(self.depth + count_loops(elements), count)])
        which = unflattened(Index(0, ((Loaded(number, count), 1),)), shape)
        indices = [*which, *counters(elements, self.depth)]
        address = place(buffer, self.expressions.gathered(equation, integers, indices))
        if not self._takes_memory(buffer, operand):
            self.copy(operand, buffer)
        elif any(load.buffer.root is buffer.root for load in loads([self.expressions.element(updates, indices)])):
            updates = self.aside(updates)
        update = loop_ir.Update(
            buffer, address, self.expressions.element(updates, indices), step, self.source, in_runs=True
        )
        self.nests.place(loop_ir.nested((*elements, count), update, self.depth))

    def _accumulate(self, equation: Equation, index: kinds.Rule, buffer: Buffer) -> None:
        """Fill with zeros and add, both within the loops over the axes that stay: so a row is in the cache.

        The loops over places in windows are outside of those over windows, as in the interpreter, for in those
        memory is contiguous.
        """
        operand, nodes = equation.operands[0], self.expressions.nodes
        if 0 in operand.aval.shape:
            self._nest(buffer.aval.shape, lambda i: self._store(buffer, i, nodes.constant(buffer.dtype.type(0))))
            return
        where = partial(index, operand=operand.aval, result=buffer.aval, **equation.params)
        shape, kept = operand.aval.shape, buffer.aval.ndim
        moved = where(indices := counters(shape, self.depth))
        stays = next((n for n in range(kept) if moved[n] is not indices[n]), kept)
        order = [*range(stays), *range(kept, len(shape)), *range(stays, kept)]
        permuted = counters(tuple(shape[axis] for axis in order), self.depth)
        indices = [permuted[order.index(axis)] for axis in range(len(shape))]
        address = place(buffer, [as_index(n) for n in where(indices)])
        update = loop_ir.Update(
            buffer, address, self.expressions.element(operand, indices), "{old} + {new}", self.source
        )
        places = counters(buffer.aval.shape, self.depth)
        zero = self._store(buffer, places, nodes.constant(buffer.dtype.type(0)))
        start = self.depth + count_loops(shape[:stays])
        inner = [
            loop_ir.nested(buffer.aval.shape[stays:], zero, start),
            loop_ir.nested(tuple(shape[axis] for axis in order[stays:]), update, start),
        ]
        for item in loop_ir.nest(shape[:stays], inner, self.depth):
            self.nests.place(item)

    def _update(self, equation: Equation, buffer: Buffer) -> None:
        operand, update, *starts = equation.operands
        self._write(
            buffer, operand, update, lambda indices: self.expressions.boxed(equation, starts, indices), "{new}",
            is_once=True,
        )  # fmt: skip

    def _write(
        self, buffer: Buffer, operand: Atom, new: Atom, where: Callable[[list[Index]], list[Index]], step: str,
        *, is_once: bool, in_any_order: bool = False,
    ) -> None:  # fmt: skip
        """Combine an array into another one, in a copy of it or in place.

        All new elements are computed from the array as it was: also where not each element `is_once` among the places.
        """

        def combine(new: Atom) -> Callable[[list[Index]], loop_ir.Update]:
            return lambda indices: loop_ir.Update(
                buffer, place(buffer, where(indices)), self.expressions.element(new, indices), step, self.source,
                in_any_order=in_any_order,
            )  # fmt: skip

        if not self._takes_memory(buffer, operand):
            self.copy(operand, buffer)
        elif new.aval.size > 1 and _reads_what_is_new(combine(new)(counters(new.aval.shape, self.depth)), is_once):
            new = self.aside(new)
        self._nest(new.aval.shape, combine(new))

    def _takes_memory(self, buffer: Buffer, operand: Atom) -> bool:
        given = self.expressions.buffers.get(operand) if isinstance(operand, Var) else None
        return given is not None and given.root is buffer.root and given.offset == buffer.offset

    def aside(self, atom: Atom) -> Var:
        """A variable bound to a copy of a value."""
        copied, buffer = Var(atom.aval), self.temporary(atom.aval)
        self.copy(atom, buffer)
        self.expressions.buffers[copied] = buffer
        return copied

    # ---- indices without elements --------------------------------------------------------------------------------

    def _check_indices_of_nothing(self, equation: Equation) -> None:
        """Check indices through which no element is read or written: no other loop would find one out of range."""
        match equation.primitive.lower:
            case kinds.Gather() | kinds.DynamicSlice():
                moved, integers = equation.results[0], equation.operands[1:]
            case kinds.Scatter() | kinds.DynamicUpdate():
                moved, integers = equation.operands[1], equation.operands[2:]
            case _:
                return
        if moved.aval.size == 0:
            self.source = equation.source
            for n, integer in enumerate(integers):
                checked = self.temporary(integer.aval.with_dtype(I64))
                self._nest(integer.aval.shape, partial(self._index_of_nothing, equation, integers, n, checked))

    def _index_of_nothing(
        self, equation: Equation, integers: Sequence[Atom], n: int, checked: Buffer, indices: list[Index]
    ) -> loop_ir.BufferStore:
        expressions = self.expressions
        if isinstance(equation.primitive.lower, kinds.Gather | kinds.Scatter):
            found = expressions.gathered(equation, integers, indices)
        else:
            found = expressions.boxed(equation, integers, [Index(0)] * len(integers))
        return self._store(checked, indices, expressions.nodes.number(found[n], I64))

    # ---- guards and steps ------------------------------------------------------------------------------------------

    def _end_or_count(self, equation: Equation, buffer: Buffer) -> None:
        params, address = equation.params, place(buffer, ())
        node = self.expressions.element(equation.operands[0], ())
        if isinstance(equation.primitive.lower, kinds.GuardCheck):
            item = loop_ir.Check(buffer, address, node, params["expected"], params["number"], self.source)
        elif self.shared.target.counts_steps:
            item = loop_ir.Count(buffer, address, node, self.shared.meter(params["label"]), self.source)
        else:
            item = self._store(buffer, (), node)
        self.nests.place(item)

    # ---- contractions and calls ----------------------------------------------------------------------------------

    def _contraction(self, equation: Equation, buffer: Buffer) -> None:
        if isinstance(equation.primitive.lower, kinds.SpanContraction):
            self._contract_spans(equation, buffer)
            return
        x, y = equation.operands
        dims = contraction_dimensions(x.aval, y.aval, **equation.params)
        m, k, n = (prod(sizes) for sizes in (dims.m, dims.k, dims.n))
        target = self.shared.target
        is_multiplied = target.multiplies and is_inexact(buffer.dtype)
        is_small = estimate(m * k * n) < target.costs.smallest_product
        if not is_multiplied or is_small or m == n == 1 or 0 in dims.batch:
            self._contract_in_loops(x, y, dims, buffer)
        else:
            self._multiply_matrices(x, y, dims, buffer, not self.narrow.isdisjoint((x, y, *equation.results)))

    def _contract_in_loops(self, x: Atom, y: Atom, dims: Dimensions, buffer: Buffer) -> None:
        shape = (*dims.batch, *dims.m, *dims.n, *dims.k)
        axes = range(len(shape) - len(dims.k), len(shape))

        def element(indices: list[Index]) -> Node:
            left, right = dims.operand_indices(indices)
            operands = self.expressions.element(x, left), self.expressions.element(y, right)
            return self.expressions.nodes.apply(MULTIPLY, *operands)

        total = kinds.Fold("{dtype}(0)", "{acc} + {0}", sum=is_inexact(buffer.dtype))
        self._reduce(buffer, shape, axes, total, element)

    def _contract_spans(self, equation: Equation, buffer: Buffer) -> None:
        """Of each row of x only the columns in its span count.

        Where that is no loop, on a grid or in a single row, the others are read, as if they were 0.
        """
        x, y, first, last = equation.operands
        element, nodes = self.expressions.element, self.expressions.nodes

        def product(indices: list[Index]) -> Node:
            row, column, other = indices
            operands = element(x, [row, column]), element(y, [row, other])
            if is_loop:
                return nodes.apply(MULTIPLY, *operands)
            number, (low, high) = nodes.number(column, I64), span(row)
            inside = "select(({0} >= {1}) & ({0} <= {2}), {3} * {4}, {dtype}(0))"
            return nodes.template(inside, x.aval.dtype, number, low, high, *operands)

        def span(row: Index) -> tuple[Node, Node]:
            return element(first, [row]), element(last, [row])

        shape, total = (*x.aval.shape, y.aval.shape[1]), kinds.Fold("{dtype}(0)", "{acc} + {0}", sum=True)
        is_loop = self.shared.target.grid is None and 1 not in shape[:2]
        self._reduce(buffer, shape, (0,), total, product, span if is_loop else None)

    def _multiply_matrices(self, x: Atom, y: Atom, dims: Dimensions, buffer: Buffer, is_narrow: bool) -> None:
        m, k, n = (prod(sizes) for sizes in (dims.m, dims.k, dims.n))
        batch = counters(dims.batch, self.depth)
        a = self._matrix(x, dims, dims.m, dims.k, dims.left_axes)
        b = self._matrix(y, dims, dims.k, dims.n, dims.right_axes)
        out = loop_ir.Matrix(buffer, buffer.offset + flatten(batch, dims.batch) * (m * n), n, 1)
        product = loop_ir.Product(out, a, b, m, k, n, self.source)
        self.nests.place(loop_ir.nested(dims.batch, self._divided(product, dims, is_narrow), self.depth))

    def _divided(self, product: loop_ir.Product, dims: Dimensions, is_narrow: bool) -> loop_ir.Item:
        """A large product as a loop, over its terms if a loop computes an operand of it, or else over its rows.

        It may be a smaller one where its matrix `is_narrow` and loops fold along the rows.
        """
        costs, depth = self.shared.target.costs, self.depth + count_loops(dims.batch)
        if worth_terms(product, costs) or (is_narrow and worth_narrow(product.k, product.m, product.n, costs)):
            parts = self.temporary(Aval(product.out.buffer.dtype, (PARTS, product.m * product.n)))
            by_term = by_terms(replace(product, parts=parts), dims.k, depth, costs)
            if self.nests.joins(loop_ir.nested(dims.batch, by_term, self.depth)):
                return by_term
        if not (worth_rows(product, costs) or (is_narrow and worth_narrow(product.m, product.k, product.n, costs))):
            return product
        product = product if dims.batch else replace(product, b=self._by_rows(product.b, product.k, product.n))
        return by_rows(product, dims.m, depth, costs)

    def _by_rows(self, matrix: loop_ir.Matrix, rows: int, columns: int) -> loop_ir.Matrix:
        """A matrix whose rows lie together, from a copy if need be: the BLAS would transpose it again for each tile."""
        if matrix.column_stride == 1:
            return matrix
        copied = self.temporary(Aval(matrix.buffer.dtype, (rows, columns)))

        def effect(indices: list[Index]) -> loop_ir.BufferStore:
            address = matrix.offset + indices[0] * matrix.row_stride + indices[1] * matrix.column_stride
            return self._store(copied, indices, self.expressions.nodes.load(matrix.buffer, address))

        self._nest(copied.aval.shape, effect)
        return loop_ir.Matrix(copied, Index(0), columns, 1)

    def _matrix(self, atom: Atom, dims: Dimensions, rows: Shape, columns: Shape, axes: Sequence[int]) -> loop_ir.Matrix:
        """An operand as a strided matrix for each iteration of the batch loops, from a copy if it is none."""
        shape = (*dims.batch, *rows, *columns)
        indices = counters(shape, self.depth)
        permuted = [indices[axes.index(a)] for a in range(len(axes))]
        found = self.expressions.address(atom, permuted)
        # A copy that another product takes is a matrix of this one too, if transposed.
        copies = [(buffer, place(buffer, [permuted[a] for a in order])) for buffer, order in self.copies[atom]]
        for buffer, address in copies if found is None else [found, *copies]:
            spread = strides(address, indices, shape)
            as_is = matrix(buffer, address, spread, dims.batch, rows, columns, indices) if spread is not None else None
            if as_is is not None:
                return as_is
        copied = self.temporary(Aval(atom.aval.dtype, shape))
        self.copies[atom].append((copied, axes))

        def effect(copy_indices: list[Index]) -> loop_ir.BufferStore:
            moved = [copy_indices[axes.index(a)] for a in range(len(axes))]
            return self._store(copied, copy_indices, self.expressions.element(atom, moved))

        self._nest(shape, effect)
        offset = flatten(counters(dims.batch, self.depth), dims.batch) * (prod(rows) * prod(columns))
        return loop_ir.Matrix(copied, offset, prod(columns), 1)

    def _call(self, equation: Equation, results: tuple[Buffer, ...]) -> None:
        target, primitive = self.shared.target, equation.primitive
        if isinstance(primitive.lower, kinds.Library) and not target.calls(primitive.lower):
            raise LoweringError(f"{primitive.name} is left to the interpreter: {target.name} has no routine for it")
        routine = self._native_routine(equation)
        if routine is not None:
            self._call_natively(equation, routine, results)
            return
        operands = tuple(self._whole(atom) for atom in equation.operands)
        self.nests.place(loop_ir.LibraryCall(primitive, dict(equation.keywords), operands, results, self.source))

    def _native_routine(self, equation: Equation) -> kinds.Routine | None:
        """The routine that native code calls, if the target has it and no array is empty or too large for its sizes."""
        lower, target = equation.primitive.lower, self.shared.target
        if not isinstance(lower, kinds.Library) or lower.native is None:
            return None
        routine = lower.native(*(atom.aval for atom in equation.operands), **equation.params)
        if routine is None or routine.name not in target.instructions:
            return None
        has_sizes = all(0 < atom.aval.size < 2**31 for atom in (*equation.operands, *equation.results))
        has_kinds = all(atom.aval.dtype.kind in routine.kinds for atom in equation.operands)
        return routine if has_sizes and has_kinds else None

    def _call_natively(self, equation: Equation, routine: kinds.Routine, results: tuple[Buffer, ...]) -> None:
        """Call a routine on buffers of the dtypes that it takes."""
        operands = tuple(self._whole(atom, dtype_in(routine, atom.aval.dtype)) for atom in equation.operands)
        dtypes = [dtype_in(routine, buffer.dtype) for buffer in results]
        computed = tuple(
            buffer if dtype == buffer.dtype else self.temporary(Aval(dtype, buffer.aval.shape))
            for buffer, dtype in zip(results, dtypes, strict=True)
        )
        faults = tuple(self.shared.fault(of_error(error, self.source)) for error in routine.errors)
        params = dict(equation.params)
        call = loop_ir.LibraryCall(equation.primitive, params, operands, computed, self.source, routine, faults)
        self.nests.place(call)
        for given, buffer in zip(computed, results, strict=True):
            if given is not buffer:
                self._narrow(given, buffer)

    def _whole(self, atom: Atom, dtype: Dtype | None = None) -> Buffer:
        """The buffer that a value fills, or that of a copy, in a dtype if one is given."""
        dtype = dtype or atom.aval.dtype
        found = self.expressions.whole(atom) if dtype == atom.aval.dtype else None
        if found is not None:
            return found
        buffer = self.temporary(Aval(dtype, atom.aval.shape))
        self.copy(atom, buffer)
        return buffer


def dtype_in(routine: kinds.Routine, dtype: Dtype) -> Dtype:
    """The dtype in which a routine takes or gives values; of integers i64."""
    if not is_inexact(dtype):
        return I64
    return np.result_type(dtype, np.float64) if routine.in_double else dtype


def _reads_what_is_new(effect: loop_ir.Update, is_once: bool) -> bool:
    """True if a new element may be computed from one that is new: from its own place only if that comes again."""
    found = (load for load in loads([effect.node]) if load.buffer.root is effect.buffer.root)
    return any(load.address != effect.address or not is_once for load in found)


# ---- loops over shapes -------------------------------------------------------------------------------------------


def depths_of(shape: Shape, axes: Sequence[int], start: int) -> set[int]:
    """The depths of the loops over these axes; the first loop is at depth `start`."""
    return {start + count_loops(shape[:axis]) for axis in axes if shape[axis] != 1}
