"""The scan that does what the blocks of a segment do, each read after it or not as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fnad.control.flow import FARTHEST, NUMBER, OUTSIDE, Flow, Segment, distance, growth, integers, step_of
from fnad.control.repeats import Step, View
from fnad.control.scan import scan
from fnad.ir.builder import Builder
from fnad.ir.primitive import Primitive
from fnad.ir.program import Atom, Literal, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.arithmetic import add, mul
from fnad.ops.conversion import convert
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.shape import broadcast_in_dim, concatenate, iota, reshape, reverse, slice_, transpose


class Written:
    """A program under construction in the place of another one, whose values are looked up as they are needed."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.known: dict[Var, Symbol] = {}
        self.rows: dict[Var, tuple[Symbol, int]] = {}

    def value(self, atom: Atom) -> Symbol:
        """A value of the other program in this one."""
        if isinstance(atom, Literal):
            return self.builder.literal(atom.value)
        found = self.known.get(atom)
        if found is None:
            array, k = self.rows[atom]
            found = self.known[atom] = reshaped(self.builder, boxed(self.builder, array, 0, k, k + 1), atom.aval.shape)
        return found

    def view(self, view: View) -> Symbol:
        """The value of a view."""
        return shown(self.builder, self.value(view.root), view.steps)


def bound(builder: Builder, primitive: Primitive, *operands: Symbol, **params: Any) -> Symbol:
    """The one result of an equation."""
    return builder.bind(primitive, operands, params)


def shown(builder: Builder, x: Symbol, steps: Sequence[Step]) -> Symbol:
    """The result of these view steps on a value."""
    for step in steps:
        x = builder.bind(step.primitive, (x,), step.params)
    return x


def reshaped(builder: Builder, x: Symbol, shape: Sequence[int]) -> Symbol:
    return x if x.shape == tuple(shape) else bound(builder, reshape, x, shape=tuple(shape))


def boxed(builder: Builder, x: Symbol, axis: int, start: int, limit: int) -> Symbol:
    """A slice along one axis."""
    if (start, limit) == (0, x.shape[axis]):
        return x
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    limits = tuple(limit if a == axis else n for a, n in enumerate(x.shape))
    return bound(builder, slice_, x, starts=starts, limits=limits, strides=(1,) * x.ndim)


def moved(builder: Builder, x: Symbol, source: int, target: int) -> Symbol:
    """An axis at another place."""
    order = [a for a in range(x.ndim) if a != source]
    order.insert(target, source)
    return x if order == list(range(x.ndim)) else bound(builder, transpose, x, permutation=tuple(order))


# ---- boxes that move -------------------------------------------------------------------------------------------------


class SlidingBox(NamedTuple):
    """Part of an array that moves by `by` along `axis` from block to block, in which it has one element there."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    axis: int
    by: int

    @property
    def rest(self) -> tuple[int, ...]:
        """Its shape without that axis."""
        return self.sizes[: self.axis] + self.sizes[self.axis + 1 :]

    def at(self, k: int) -> tuple[int, ...]:
        """The start in a block."""
        return tuple(s + self.by * k if a == self.axis else s for a, s in enumerate(self.starts))

    def is_beside(self, other: SlidingBox) -> bool:
        """True if two boxes have no element in common, wherever along the axis."""
        pairs = zip(self.starts, self.sizes, other.starts, other.sizes, strict=True)
        apart = [a + m <= b or b + n <= a for a, m, b, n in pairs]
        return any(flag for axis, flag in enumerate(apart) if axis != self.axis)

    def is_like(self, other: SlidingBox) -> bool:
        """True if they are the same but for the place along the axis."""
        starts, others = (box.starts[: box.axis] + box.starts[box.axis + 1 :] for box in (self, other))
        return (starts, self.rest) == (others, other.rest)

    def after(self, written: SlidingBox) -> int | None:
        """The number of blocks after which a written element is read here; None if it never is."""
        blocks, rest = divmod(written.starts[self.axis] - self.starts[self.axis], self.by)
        return None if rest else blocks


def move_of(shape: Sequence[int], places: Sequence[Any]) -> tuple[int, int] | None:
    """The axis along which a part moves from block to block, and how far, if evenly and it has one element there."""
    moves = [step_of(starts) for starts in places]
    axes = [axis for axis, by in enumerate(moves) if by != 0]
    if len(axes) != 1 or shape[axes[0]] != 1 or (by := moves[axes[0]]) is None:
        return None
    return axes[0], by


def box_of(step: Step, places: Sequence[Any]) -> SlidingBox | None:
    """The part that a slice reads, if it moves evenly along one axis, in which it reads one element."""
    found = move_of(step.results[0].aval.shape, places) if step.primitive is slice_ else None
    if found is None or any(s != 1 for a, s in enumerate(step.params["strides"]) if a != found[0]):
        return None
    return SlidingBox(step.params["starts"], step.results[0].aval.shape, *found)


def rows_of(builder: Builder, x: Symbol, step: Step, axis: int, by: int, count: int) -> Symbol:
    """The rows that a slice reads in each block while it moves along an axis."""
    starts, limits, strides = (list(step.params[name]) for name in ("starts", "limits", "strides"))
    starts[axis] = min(starts[axis], starts[axis] + by * (count - 1))
    limits[axis], strides[axis] = starts[axis] + abs(by) * (count - 1) + 1, abs(by)
    x = bound(builder, slice_, x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))
    return moved(builder, x if by > 0 else bound(builder, reverse, x, axes=(axis,)), axis, 0)


# ---- numbers that grow -----------------------------------------------------------------------------------------------


def numbers(builder: Builder, values: Sequence[np.generic]) -> Symbol:
    """Numbers as a vector: a counter where they grow evenly, else a table."""
    form = growth(values)
    if form is None:
        return bound(builder, concatenate, *[_filled(builder, value, (1,)) for value in values], axis=0)
    count = bound(builder, iota, dtype=I64, shape=(len(values),), axis=0)
    if values[0].dtype.kind in "iu":
        return _converted(builder, _plus(builder, _times(builder, count, form.by), form.first), values[0].dtype)
    vector = _converted(builder, _plus(builder, count, np.int64(form.begin)), values[0].dtype)
    return _plus(builder, _times(builder, vector, form.by), form.first)


def _converted(builder: Builder, x: Symbol, dtype: Any) -> Symbol:
    return x if x.dtype == dtype else bound(builder, convert, x, dtype=dtype)


def _plus(builder: Builder, x: Symbol, value: np.generic | None) -> Symbol:
    if value is None or (value == 0 and value.dtype.kind == "i"):
        return x
    return bound(builder, add, x, _filled(builder, value, x.shape))


def _times(builder: Builder, x: Symbol, value: np.generic) -> Symbol:
    return x if value == 1 else bound(builder, mul, x, _filled(builder, value, x.shape))


def _filled(builder: Builder, value: np.generic, shape: Sequence[int]) -> Symbol:
    number = builder.literal(value)
    return bound(builder, broadcast_in_dim, number, shape=tuple(shape), dims=()) if shape else number


# ---- the body --------------------------------------------------------------------------------------------------------


class ScanBody:
    """The body of a scan under construction, with what the scan takes from the program around it."""

    def __init__(self, outer: Written, count: int) -> None:
        self.outer, self.count = outer, count
        self.builder = Builder()
        self.consts: dict[Atom, tuple[Symbol, Symbol]] = {}
        self.xs: dict[Atom, tuple[Symbol, Symbol]] = {}
        self.carried: dict[Any, tuple[Symbol, Symbol, Any]] = {}
        self.rows: list[Symbol] = []

    def _input(self, group: dict[Atom, tuple[Symbol, Symbol]], given: Symbol, aval: Aval) -> Symbol:
        if given.atom not in group:
            group[given.atom] = given, self.builder.input(aval)
        return group[given.atom][1]

    def constant(self, given: Symbol) -> Symbol:
        """A value of the program around it."""
        return self._input(self.consts, given, given.aval)

    def row(self, given: Symbol) -> Symbol:
        """The row of this step of an array that the scan goes over."""
        return self._input(self.xs, given, given.aval.with_shape(given.shape[1:]))

    def carry(self, key: Any, init: Symbol, update: Any) -> Symbol:
        """A carried value, which starts as `init`; `update()` is what the next step takes."""
        if key not in self.carried:
            self.carried[key] = init, self.builder.input(init.aval), update
        return self.carried[key][1]

    def bind(self, name: str) -> tuple[list[Symbol], list[Symbol]]:
        """Add the scan to the program around it: what is carried at the end, by key, and the rows."""
        groups = (
            list(self.consts.values()),
            [(init, taken) for init, taken, _ in self.carried.values()],
            list(self.xs.values()),
        )
        self.builder.inputs = [taken.atom for group in groups for _, taken in group]  # type: ignore[misc]
        nexts = [update() for _, _, update in self.carried.values()]
        body = self.builder.finish(name, [*nexts, *self.rows])
        params = {"consts": len(groups[0]), "carry": len(groups[1]), "length": self.count, "reverse": False}
        operands = [given for group in groups for given, _ in group]
        found = list(self.outer.builder.bind(scan, operands, params, (body,)))
        return found[: len(nexts)], found[len(nexts) :]


class Rolling:
    """A segment that becomes a scan; `external` has, by the place of a result in a block, the blocks read after it."""

    def __init__(self, flow: Flow, segment: Segment, external: Mapping[int, set[int]], outer: Written) -> None:
        self.flow, self.segment, self.external, self.outer = flow, segment, external, outer
        start, period, self.count = segment.start, segment.period, segment.count
        self.size, self.codes = segment.size, segment.codes
        self.lines = flow.lines[start : start + period]
        self.first = flow.first[start]
        self.views = flow.views(start, period)
        columns = iter(segment.starts.T)
        self.places = [list(islice(columns, len(view.starts))) for view in self.views]
        self.body = ScanBody(outer, self.count)
        self.values: dict[int, Symbol] = {}
        self.filled = self._filled()

    # ---- arrays that are filled --------------------------------------------------------------------------------------

    def _filled(self) -> dict[int, Filled]:
        """The arrays of which each block writes the next element and reads some, by the place of the update."""
        found: dict[int, Filled] = {}
        place = slot = 0
        for line in self.lines:
            if line.primitive is dynamic_update_slice:
                filled = self._filled_at(place, slot)
                if filled is not None:
                    found[place] = filled
            place, slot = place + len(line.results), slot + len(line.operands)
        return found

    def _filled_at(self, place: int, slot: int) -> Filled | None:
        view, update = self.views[slot], slot + 1
        starts = range(slot + 2, slot + 2 + view.root.aval.ndim)
        is_last = not self.external.get(place, set()) - {self.count - 1}
        if view.steps or self.codes[slot] != place - self.size or not is_last:
            return None
        box = self._box_written(starts, _shape(self.views[update]))
        if box is None:
            return None
        readers = [s for s, code in enumerate(self.codes) if code > OUTSIDE and code % self.size == place and s != slot]
        is_filled = all(self._reads(s, place, box, view.root) for s in readers)
        return Filled(place, update, box, view.root) if is_filled else None

    def _box_written(self, slots: Sequence[int], sizes: tuple[int, ...]) -> SlidingBox | None:
        """The box that the blocks write, if each writes one element along one axis, side by side."""
        places = [integers(self._roots(slot)) for slot in slots]
        if any(starts is None for starts in places):
            return None
        move = move_of(sizes, places)
        if move is None or move[1] not in (1, -1):
            return None
        box = SlidingBox(tuple([int(starts[0]) for starts in places]), sizes, *move)
        return box if min(*box.starts, *box.at(self.count - 1)) >= 0 else None

    def _reads(self, slot: int, place: int, written: SlidingBox, init: Atom) -> bool:
        """True if an operand reads one element of an array that is filled, which is `init` at the start."""
        view, places = self.views[slot], self.places[slot]
        if self.codes[slot] < 0 and view.root is not init:
            return False
        if not view.steps or self.codes[slot] not in (place, place - self.size):
            return False
        ndim = view.steps[0].results[0].aval.ndim
        box = box_of(view.steps[0], places[:ndim])
        if box is None or (box.axis, box.by) != (written.axis, written.by):
            return False
        if any(step_of(starts) != 0 for starts in places[ndim:]):
            return False
        blocks = self._blocks_after(slot, box, written)
        return blocks is None or (box.is_like(written) and blocks <= FARTHEST)

    def _blocks_after(self, slot: int, box: SlidingBox, written: SlidingBox) -> int | None:
        """The number of blocks after which a written element is read; None for the element's value at the start."""
        blocks = None if box.is_beside(written) else box.after(written)
        earliest = 0 if self.codes[slot] >= 0 else 1
        return blocks if blocks is not None and earliest <= blocks < self.count else None

    def _element(self, slot: int, filled: Filled) -> Symbol:
        view = self.views[slot]
        step, rest = view.steps[0], view.steps[1:]
        box = box_of(step, self.places[slot][: step.results[0].aval.ndim])
        assert box is not None
        blocks = self._blocks_after(slot, box, filled.box)
        if blocks is None:
            found = self._row(self.outer.value(filled.init), step, box.axis, box.by)
        elif blocks == 0:
            found = self.operand(filled.update)
        else:
            found = reshaped(self.body.builder, self._written(filled, blocks), filled.box.sizes)
        return shown(self.body.builder, found, rest)

    def _written(self, filled: Filled, blocks: int) -> Symbol:
        """The values written so many blocks before, without the axis that the blocks move along."""
        builder, at, shape = self.outer.builder, filled.box.at(-blocks), filled.box.rest
        limits = tuple(s + n for s, n in zip(at, filled.box.sizes, strict=True))
        init = bound(builder, slice_, self.outer.value(filled.init), starts=at, limits=limits, strides=(1,) * len(at))
        init = reshaped(builder, init, shape)
        if blocks > 1:
            self._written(filled, blocks - 1)
            return self.body.carry((filled.place, "written", blocks), init, lambda: self._written(filled, blocks - 1))
        newest = lambda: reshaped(self.body.builder, self.operand(filled.update), shape)  # noqa: E731
        return self.body.carry((filled.place, "written", blocks), init, newest)

    # ---- operands ----------------------------------------------------------------------------------------------------

    def operand(self, slot: int) -> Symbol:
        """An operand in the body."""
        view, code = self.views[slot], self.codes[slot]
        if code > OUTSIDE and code % self.size in self.filled:
            return self._element(slot, self.filled[code % self.size])
        if code <= OUTSIDE:
            return self._from_outside(slot)
        root = self.values[code] if code >= 0 else self._carried(slot)
        return self._moving(root, view.steps, self.places[slot])

    def _from_outside(self, slot: int) -> Symbol:
        view, places = self.views[slot], self.places[slot]
        if self.codes[slot] == NUMBER:
            return self._moving(self._number(slot), view.steps, places)
        given = self.outer.value(view.root)
        fixed = done = 0  # the steps up to the last slice before those that move, and the axes of slices in them
        for i, step in enumerate(view.steps):
            if step.primitive is not slice_:
                continue
            here = places[done : done + len(step.params["starts"])]
            if any(step_of(starts) != 0 for starts in here):
                move = move_of(step.results[0].aval.shape, here)
                if move is None:
                    break
                found = self._row(shown(self.outer.builder, given, view.steps[:i]), step, *move)
                return self._moving(found, view.steps[i + 1 :], places[done + len(here) :])
            fixed, done = i + 1, done + len(here)
        taken = self.body.constant(shown(self.outer.builder, given, view.steps[:fixed]))
        return self._moving(taken, view.steps[fixed:], places[done:])

    def _row(self, x: Symbol, step: Step, axis: int, by: int) -> Symbol:
        rows = rows_of(self.outer.builder, x, step, axis, by, self.count)
        return reshaped(self.body.builder, self.body.row(rows), step.results[0].aval.shape)

    def _roots(self, slot: int) -> list[Atom]:
        """The roots of an operand in each block."""
        return self.flow.atoms(self.segment.roots[:, slot])

    def _number(self, slot: int) -> Symbol:
        roots = self._roots(slot)
        literals = [root for root in roots if isinstance(root, Literal)]
        assert len(literals) == len(roots)
        if len({literal.key for literal in literals}) == 1:
            return self.body.builder.literal(literals[0].value)
        return self.body.row(numbers(self.outer.builder, [literal.value for literal in literals]))

    def _carried(self, slot: int) -> Symbol:
        """A value of a block before, from a chain of carried values, the newest first."""
        code = self.codes[slot]
        blocks = distance(code, self.size)
        place = code + blocks * self.size
        inits = tuple(reversed(self.flow.atoms(self.segment.roots[:blocks, slot])))
        return self._register(place, inits)

    def _register(self, place: int, inits: tuple[Atom, ...]) -> Symbol:
        *newer, oldest = inits
        key = place, tuple([init.key if isinstance(init, Literal) else init for init in inits])
        if newer:
            self._register(place, tuple(newer))
        init = self.outer.value(oldest)
        return self.body.carry(key, init, lambda: self._register(place, tuple(newer)) if newer else self.values[place])

    def _moving(self, x: Symbol, steps: Sequence[Step], places: Sequence[Any]) -> Symbol:
        """The result of view steps on a value in the body, whose slices may move."""
        builder, done = self.body.builder, 0
        for step in steps:
            count = len(step.params["starts"]) if step.primitive is slice_ else 0
            here = places[done : done + count]
            done += count
            moves = any(step_of(starts) != 0 for starts in here)
            x = self._moving_slice(x, step, here) if moves else shown(builder, x, (step,))
        return x

    def _moving_slice(self, x: Symbol, step: Step, places: Sequence[Any]) -> Symbol:
        builder = self.body.builder
        strides, shape = step.params["strides"], step.results[0].aval.shape
        sizes = tuple([(n - 1) * stride + 1 for n, stride in zip(shape, strides, strict=True)])
        x = bound(builder, dynamic_slice, x, *map(self._place, places), sizes=sizes)
        if all(stride == 1 for stride in strides):
            return x
        return bound(builder, slice_, x, starts=(0,) * len(sizes), limits=sizes, strides=strides)

    def _place(self, starts: Any) -> Symbol:
        """The start of a slice along an axis in a step."""
        if step_of(starts) == 0:
            return self.body.builder.literal(starts[0])
        return self.body.row(numbers(self.outer.builder, list(starts)))

    # ---- the whole ---------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Add the scan to the program around it, with what is read of it later."""
        builder, place, slot = self.body.builder, 0, 0
        self.outer.builder.source = self.lines[0].source
        for equation in self.lines:
            slots = range(slot, slot + len(equation.operands))
            if place not in self.filled:
                builder.source = equation.source
                operands = [self.operand(s) for s in slots]
                found = builder.bind(equation.primitive, operands, equation.params, equation.regions)
                self.values.update(enumerate(found if isinstance(found, tuple) else (found,), place))
            place, slot = place + len(equation.results), slot + len(equation.operands)
        finals, rows, arrays = self._wanted()
        carried, ys = self.body.bind("step")
        ends = dict(zip(self.body.carried, carried, strict=True))
        self.body.carried.clear()  # whose updates refer to all this, which would be garbage for the collector
        for place, key in finals.items():
            self.outer.known[self._var(place, self.count - 1)] = ends[key]
        for place, i in rows.items():
            for k in self.external[place]:
                self.outer.rows[self._var(place, k)] = ys[i], k
        for filled, i in arrays:
            self.outer.known[self._var(filled.place, self.count - 1)] = self._assembled(filled, ys[i])

    def _wanted(self) -> tuple[dict[int, Any], dict[int, int], list[tuple[Filled, int]]]:
        """The values read after the loop: the last values by the key of the carry, rows, arrays that were filled."""
        finals: dict[int, Any] = {}
        rows: dict[int, int] = {}
        arrays: list[tuple[Filled, int]] = []
        for place, blocks in self.external.items():
            if place in self.filled:
                filled = self.filled[place]
                update = self.operand(filled.update)
                arrays.append((filled, len(self.body.rows)))
                self.body.rows.append(reshaped(self.body.builder, update, filled.box.rest))
            elif blocks == {self.count - 1}:
                finals[place] = self._final(place)
            else:
                rows[place] = len(self.body.rows)
                self.body.rows.append(self.values[place])
        for update in [update for _, _, update in list(self.body.carried.values())]:
            update()  # which may carry more
        return finals, rows, arrays

    def _final(self, place: int) -> Any:
        """The key of the carry that ends with the last value of a place."""
        for key in self.body.carried:
            if key[0] == place and len(key[1]) == 1 and key[1] != "written":
                return key
        key = place, ("last",)
        init = _filled(self.outer.builder, self.values[place].dtype.type(0), self.values[place].shape)
        self.body.carry(key, init, lambda: self.values[place])
        return key

    def _assembled(self, filled: Filled, rows: Symbol) -> Symbol:
        """The array after the last block."""
        builder, box = self.outer.builder, filled.box
        x = moved(builder, rows, 0, box.axis)
        if box.by < 0:
            x = bound(builder, reverse, x, axes=(box.axis,))
        starts = box.at(0 if box.by > 0 else self.count - 1)
        places = [builder.literal(np.int64(start)) for start in starts]
        return bound(builder, dynamic_update_slice, self.outer.value(filled.init), x, *places)

    def _var(self, place: int, block: int) -> Var:
        return self.flow.result(self.first + block * self.size + place)


class Filled(NamedTuple):
    """An array of which each block writes the next part: where, what, and the array at the start."""

    place: int
    update: int
    box: SlidingBox
    init: Atom


def _shape(view: View) -> tuple[int, ...]:
    return (view.steps[-1].results[0] if len(view.steps) else view.root).aval.shape
