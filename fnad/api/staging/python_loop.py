"""One loop of Python while its ways are recorded, and the equation that it becomes.

`fnad.api.staging.python_loops` has the loops of a function, which are traced together.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from functools import reduce
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fnad.api.staging.loop_items import Items, as_number
from fnad.api.staging.loop_states import LoopSlot, LoopState, RestartError, States, Where, cells_of, joined
from fnad.api.staging.save_policy import run_scan, run_while
from fnad.control.closures import Closed, closed
from fnad.control.loop import Groups
from fnad.control.python_numbers import FLOAT, WIDEST, Interval, UnsafeError, check_numbers
from fnad.control.row_scan import with_rows
from fnad.control.ways import (
    EXIT,
    RUNNING,
    UNSEEN,
    DifferError,
    Form,
    LoopBody,
    Way,
    WayDecision,
    evaluated,
    put_in,
)
from fnad.ir.builder import Captured, current_builder
from fnad.ir.program import Literal, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.comparison import bitwise_or, eq, select
from fnad.ops.shape import zeros_like
from fnad.trace import guards
from fnad.trace.capture import Trace
from fnad.trace.handle import Cell
from fnad.trace.looping import LOOPING, Answers, Given, Parted, Refused, Step, StepValues, set_variables, variables
from fnad.trace.shadow import Shadow

if TYPE_CHECKING:
    from fnad.api.staging.python_loops import PythonLoops
    from fnad.trace.listed import Listed

MOST_WAYS, MOST_GUESSED, MOST_RECORDED = 64, 16, 1500
"""The most ways of a loop, from all its states; the number of ways from which on none is guessed; the most steps that
Python runs in a trace to record ways."""


class Known:
    """The record of a loop from one trace to the next.

    `answers` are those that Python got on each way, with False for those that are guessed; `failed` are those that no
    way has from a state. `carried` are numbers that are carried, `states` has the number of each state.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.answers: dict[Answers, bool] = {}
        self.failed: set[tuple[int, Answers]] = set()
        self.carried: set[Where] = set()
        self.states: dict[Hashable, int] = {}
        self.refused: Refused | None = None


class Left(NamedTuple):
    """A loop that Python left while a step of it ran, with the state and the answers that were given, if any were."""

    known: Known
    given: tuple[int, Answers] | None


class PythonLoop:
    """A loop while its ways are recorded.

    `state`, `values`, `count` and `status` are those of the step at hand, where the arguments at hand are known.
    """

    def __init__(
        self, loops: PythonLoops, known: Known, place: tuple[Any, ...], frame: FrameType, items: Items
    ) -> None:
        self.loops, self.known, self.frame, self.items = loops, known, frame, items
        self.place, self.names, self.after = place[:2], *place[4:6]
        builder = current_builder()
        assert isinstance(builder, Trace)
        self.builder = builder
        self.has_values = not values_of(builder).is_given
        self.most, self.number = items.most, None if items.lists else items.most
        self.start = variables(frame)
        reached = [*self.start.values(), *(each for each in loops.lists if each.builder is builder)]
        self.states = States(self.names, self.start, cells_of(reached, builder), known.states, known.carried)
        self.ways: list[Way] = []
        self.values: dict[int, Any] = {}
        self.count, self.status = 0, RUNNING
        self.row, self.rows = 0, 1
        self.lists = [(each, [0]) for each in loops.lists if each.is_spread]
        self._at_hand_of: dict[int, Any] = {}
        loops.used.append(known)

    # ---- the steps ---------------------------------------------------------------------------------------------------

    def run(self) -> Generator[Any]:
        """Have Python run a step for each way; then the variables have their values behind the loop."""
        try:
            while True:
                try:
                    yield from self._record_all()
                except RestartError:
                    self._restore()
                    self.states.clear()
                    self.ways.clear()
                else:
                    break
            self._finish()
        except Refused as refused:
            refused.loop = refused.loop or self.known
            raise
        except DifferError:
            if not self.loops.decides_first:
                self.loops.decides_first = True
                raise Parted from None
            refused = Refused("two runs of a step that decide the same do not do the same")
            refused.loop = self.known
            raise refused from None

    def _restore(self) -> None:
        set_variables(self.frame, {name: self.start[name] for name in self.names if name in self.start}, ())

    def _begin(self) -> tuple[LoopState, dict[int, Symbol]]:
        leaves: dict[int, Symbol] = {}
        return self.states.of(self.start, leaves), leaves

    def _record_all(self) -> Generator[Any]:
        tried: set[tuple[int, Answers]] = set()
        self.row, self.rows, self.last = 0, 1, set[int]()
        while self.row < self.rows:
            yield from self._record_row(tried)
            self.last.add(self.state.number)
            self.row += 1
        if self.rows > 1 and len(self._general(self.last, joined(self.states, self.ways)[2])) > 1:
            try:
                self.states.carry_all("rows of vmap leave it in several ways")
            except Refused:
                self.loops.parts_rows()
                raise

    def _record_row(self, tried: set[tuple[int, Answers]]) -> Generator[Any]:
        """Record the ways of one row under `vmap`, or of the arguments at hand."""
        self.state, leaves = self._begin()
        self.values, self.count, self.status = dict(leaves), 0, RUNNING
        self._at_hand_of.clear()
        yield from self._record_known(tried)
        while self.has_values and self.status == RUNNING and (self.number is None or self.count < self.number):
            if not self._follow():
                yield from self._record(self.state, None)
                if not self._follow():
                    raise Refused("a step does not decide as it did a moment ago")
                yield from self._record_known(tried)

    def _record_known(self, tried: set[tuple[int, Answers]]) -> Generator[Any]:
        """Record the ways that were met before, from all states."""
        pending = True
        while pending:
            pairs = [(state, answers) for state in self.states.met.values() for answers in self.known.answers]
            pending = [pair for pair in pairs if (pair[0].number, pair[1]) not in tried | self.known.failed]
            for state, answers in pending:
                tried.add((state.number, answers))
                if not self._has_way(state.number, answers):
                    yield from self._record(state, answers)

    def _has_way(self, state: int, answers: Answers) -> bool:
        return any(way.state == state and way.answers == answers for way in self.ways)

    def _follow(self) -> bool:
        """Take a step on a way that is recorded; false if there is none."""
        for place, way in enumerate(self.ways):
            if way.state != self.state.number:
                continue
            given: dict[Var, Any] = {way.counter: np.int64(self.count)}
            given.update((var, self._at_hand(self.values[slot])) for slot, var in way.inputs.items())
            given.update((var, self._at_hand(value)) for var, value in way.outside)
            env = evaluated(way, given)
            if env is None:
                continue
            self.ways.insert(0, self.ways.pop(place))  # the next step mostly goes the same way
            for slot, atom in way.outputs.items():
                self.values[slot] = np.asarray(atom.value) if isinstance(atom, Literal) else env[atom]
            self.state, self.count = self.states.met[way.next], self.count + 1
            self.status = EXIT if way.exits else RUNNING
            return True
        return False

    def _at_hand(self, value: Any) -> Any:
        """A value as an array."""
        if not isinstance(value, Symbol):
            return value
        found = self._symbol_at_hand(value)
        if found is None:
            raise Refused("it depends on values that are not known while tracing")
        return found

    def _symbol_at_hand(self, symbol: Symbol) -> Any:
        """The value of a symbol, in this row if rows differ; None if it is not known."""
        found = self._at_hand_of.get(id(symbol.atom))
        if found is None:
            value, has_rows = guards.rows_at_hand(symbol) or (None, False)
            if has_rows and value is not None:
                self.rows = len(value)
                value = value[self.row]
            found = self._at_hand_of[id(symbol.atom)] = symbol, value
        return found[1]

    def _record(self, state: LoopState, answers: Answers | None) -> Generator[Any]:
        """Run a step in Python: with the values at hand, or with these answers to what it asks."""
        loops, states = self.loops, self.states
        loops.recorded += 1
        if loops.recorded > MOST_RECORDED:
            raise Refused("its steps and those of loops in them go too many ways")
        values = StepValues(self._symbol_at_hand) if answers is None else Given(answers)
        trace = Trace(lambda _: values)  # pyright: ignore[reportArgumentType]  # the root of what Python asks
        before, grown = [(cell, cell.symbol) for cell in states.cells], loops.grown
        lengths = [each.most for each, _ in self.lists]
        try:
            with trace.active():
                counter = trace.argument(Aval(I64), np.asarray(self.count))
                if self.number is not None:
                    loops.counts[counter.atom] = self.number
                symbols = {slot: self._input(trace, slot) for slot in state.slots}
                for number, cell in enumerate(states.cells):
                    cell.symbol, cell.version = symbols[states.slot_of(number)], cell.version + 1
                set_variables(self.frame, states.variables(state, symbols), self.names)
                step = Step(self.frame, self.place, self.most, self.items.lists)
                LOOPING.steps.append(step)
                try:
                    with step.recorder.active():
                        number = as_number(counter, weak=True)
                        step.exits = not self.items.have(number)
                        if not step.exits:
                            yield self.items.at(number)
                finally:
                    LOOPING.steps.remove(step)
                step.check()
                leaves: dict[int, Symbol] = {}
                after = states.of(variables(self.frame), leaves)
                outputs = {slot: trace.lift(symbol).atom for slot, symbol in leaves.items()}
        except GeneratorExit:
            loops.left.append(Left(self.known, None if answers is None else (state.number, answers)))
            raise
        finally:
            self._leave(before, lengths)
        if values.has_strayed:
            if self.ways and self._has_more_ways(grown):
                raise RestartError
            return
        self._reserve()
        inputs = {slot: symbol.atom for slot, symbol in symbols.items() if isinstance(symbol.atom, Var)}
        is_first = not self.ways
        self._add(trace, Way(state.number, counter.atom, inputs, (), (), (), outputs, after.number, step.exits))  # pyright: ignore[reportArgumentType]
        begins_again = not is_first and self._has_more_ways(grown)
        self._note(self.ways[-1])
        if begins_again:
            raise RestartError

    def _leave(self, before: Sequence[tuple[Cell, Symbol]], lengths: Sequence[int]) -> None:
        """Have memory and lists as before a step, and record by how much the step extends the lists."""
        for (each, by), most in zip(self.lists, lengths, strict=True):
            by[0], each.most = max(by[0], each.most - most), most
        for cell, symbol in before:
            cell.symbol, cell.version = symbol, cell.version + 1

    def _reserve(self) -> list[tuple[Listed, int]]:
        """The lists, with the most elements behind the loop; the trace begins again if there is no room for them."""
        return [(each, each.reserved(by, self.most)) for each, (by,) in self.lists]

    def _has_more_ways(self, before: int) -> bool:
        """True if a loop in this step has more ways than in the steps before."""
        return self.loops.grown != before

    def _add(self, trace: Trace, way: Way) -> None:
        """Add a way with what was recorded of it."""
        outside = tuple(zip(trace.captured_variables, trace.captured, strict=True))
        ends, guards = self.loops.ends, trace.guards.values()
        decisions = tuple(
            WayDecision(g.atom, g.expected, g.position, g.source, ends.get(g.atom, frozenset())) for g in guards
        )
        way = way._replace(outside=outside, equations=tuple(trace.equations), decisions=decisions)
        self._try_other_ends(way)
        self.ways = [known for known in self.ways if (known.state, known.answers) != (way.state, way.answers)]
        self.ways.append(way)
        if len(self.ways) > MOST_WAYS:
            raise Refused(f"its steps go more than {MOST_WAYS} ways")

    def _try_other_ends(self, way: Way) -> None:
        """Add the answers by which a loop in the step ends in another state, such as a loop that takes no step."""
        for place, decision in enumerate(way.decisions):
            for end in decision.values - {decision.answer}:
                if len(self.known.answers) < MOST_GUESSED:
                    self.known.answers.setdefault((*way.answers[:place], end, *way.answers[place + 1 :]), False)

    def _note(self, way: Way) -> None:
        """Note the answers of a way for later traces."""
        if not self.known.answers.get(way.answers):
            self.known.answers[way.answers] = True
            self.loops.grown += 1

    def _input(self, trace: Trace, slot: int) -> Symbol:
        """The input of a step for a carried value."""
        aval = next(known.aval for known, number in self.states.slots.items() if number == slot)
        symbol = trace.input(aval)
        if slot in self.values and isinstance(symbol.atom, Var):
            value = self.values[slot]
            trace.values.enter(symbol.atom, value if isinstance(value, Symbol) else np.asarray(value))
        return symbol

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Make the equation of the loop, and set the variables."""
        if not self.ways:
            return self._stray()
        for each, most in self._reserve():
            each.most = most
        start, leaves = self._begin()
        self._check_numbers(leaves)
        ways, values, alike = joined(self.states, self.ways)
        for slot, value in put_in(values.get(start.number, {}), leaves).items():
            leaves[slot] = self.builder.literal(value.value) if isinstance(value, Literal) else value
        changed = [slot for slot in range(len(self.states.slots)) if _changes(ways, slot)]
        places = {slot: place for place, slot in enumerate(changed)}
        ways = [_placed(way, places, leaves) for way in ways]
        ends = self._ends(ways)
        alike_behind = self._alike_behind(ends)
        lacking = self._without_ways(start.number, alike)
        has_state = len({*alike_behind.values()}) > 1 or len({way.state for way in ways}) + len(lacking) > 1
        avals = {number: slot.aval for slot, number in self.states.slots.items()}
        init = [self.builder.lift(leaves[slot]) if slot in leaves else zeros_like(avals[slot]) for slot in changed]
        body, found = self._loop(ways, start.number, init, has_state, alike, bool(lacking))
        count, status = (self.count - (self.status == EXIT), RUNNING) if body.exits_first else (self.count, self.status)
        heads = [count, *[self.state.number] * has_state, *[status] * body.form.has_status]
        self._enter(found, [*heads, *[self.values.get(s) if s in self.state.slots else None for s in changed]])
        if body.meets_unseen and self._is_unseen(found[len(heads) - 1]):
            return self._stray()
        several = len({*alike_behind.values()}) > 1
        number = self._end(found[1], alike, alike_behind) if several else next(iter(alike_behind.values()))
        if number not in self.states.met:
            return self._stray()
        symbols = {**leaves, **dict(zip(changed, found[len(heads) :], strict=True))}
        self.states.write(changed, symbols, self.builder)
        set_variables(self.frame, self.states.variables(self.states.met[number], symbols), self.names)
        return None

    def _without_ways(self, start: int, alike: Mapping[int, int]) -> set[int]:
        """The states in which a step may begin, except those of ways."""
        begins = {start, *(way.next for way in self.ways if not way.exits)}
        return {alike.get(number, number) for number in begins} - {way.state for way in self.ways}

    def _general(self, states: set[int], alike: Mapping[int, int]) -> dict[Any, int]:
        """States by what the variables are behind the loop, those that are alike another one as that."""
        return {self._behind(number): number for number in {alike.get(number, number) for number in states}}

    def _behind(self, number: int) -> tuple[Any, ...]:
        """The parts of a state that code behind the loop reads."""
        return tuple(part for part in self.states.met[number].parts if part[0] in self.after)

    def _alike_behind(self, ends: set[int]) -> dict[int, int]:
        """For each state in which the loop may end the first one that code behind it cannot tell from that."""
        first: dict[Any, int] = {}
        return {number: first.setdefault(self._behind(number), number) for number in sorted(ends)}

    def _end(self, state: Symbol, alike: Mapping[int, int], alike_behind: Mapping[int, int]) -> int | None:
        """The number of the state in which the loop ends, which guards the path."""
        if self.rows == 1:
            literal = self.builder.literal
            for number, first in alike_behind.items():
                if first != number:
                    same = eq(state, literal(np.int64(number)))
                    state = select(same, literal(np.int64(first)), state)
            self.loops.ends[state.atom] = frozenset(alike_behind.values())
            return guards.integer(state)
        ((behind, number),) = self._general(self.last, alike).items()
        members = [other for other in self.states.met if self._behind(alike.get(other, other)) == behind]
        same = [eq(state, self.builder.literal(np.int64(member))) for member in members]
        return number if guards.truth(reduce(bitwise_or, same)) else None

    def _is_unseen(self, status: Symbol) -> bool:
        return guards.truth(eq(status, self.builder.literal(np.int64(UNSEEN)))) is not False

    def _ends(self, ways: Sequence[Way]) -> set[int]:
        """The numbers of the states in which the loop may end."""
        last = [way for way in ways if self.number is not None or way.exits]
        return {number for way in last for number in (way.next, *way.others.values())}

    def _stray(self) -> None:
        """Note that the answers which are given are not those of a way: the step around is not recorded."""
        values = values_of(self.builder)
        if not values.is_given:
            raise Refused("a step goes a way that is not known")
        values.has_strayed = True
        self._restore()

    def _check_numbers(self, leaves: Mapping[int, Symbol]) -> None:
        """Refuse the loop where what it computes of Python's numbers alone may be what Python would not."""
        own = {n: slot for slot, n in self.states.slots.items() if slot.weak and slot.where in self.known.carried}
        start = {number: _interval(slot, leaves.get(number)) for number, slot in own.items()}
        try:
            check_numbers(self.ways, start, self.number)
        except UnsafeError:
            why = "it computes with Python's numbers what may be too large for 64 bits, or divides by them"
            raise Refused(why) from None

    def _loop(
        self,
        ways: Sequence[Way],
        state: int,
        given: list[Symbol],
        has_state: bool,
        alike: Mapping[int, int],
        lacks_ways: bool,
    ) -> tuple[LoopBody, list[Symbol]]:
        """The body of the loop, and what is carried behind the loop."""
        count = self.number

        def of(form: Form) -> tuple[LoopBody, list[Symbol], Closed]:
            return self._step(LoopBody(ways, form, alike, lacks_ways, count, self.loops.counts), state, given)

        body, init, step = of(Form(has_state, True))
        if body.meets_unseen and count is not None and not body.ends:
            body, init, step = of(Form(has_state, True, skips=True))
        elif not body.meets_unseen and (body.exits_first or not body.ends):
            body, init, step = of(Form(has_state, False))
        if not body.ends and count is not None:
            by_rows = with_rows(step, init, count)
            consts, init, rows = by_rows.step.captured, by_rows.init, by_rows.rows
            groups = Groups(len(consts), len(init), len(rows))
            return body, by_rows.carried(run_scan(by_rows.step.program, groups, [*consts, *init, *rows], count))
        test = closed(body.test, [symbol.aval for symbol in init], "test")
        found = run_while(test.program, step.program, (test.captured, step.captured), init, None)
        return body, list(found)[: len(init)]

    def _step(self, body: LoopBody, state: int, given: list[Symbol]) -> tuple[LoopBody, list[Symbol], Closed]:
        form = body.form
        heads = [0, *[state] * form.has_state, *[RUNNING] * form.has_status]
        init = [*[self.builder.literal(np.int64(number)) for number in heads], *given]
        return body, init, closed(body, [symbol.aval for symbol in init], "step")

    def _enter(self, results: Sequence[Symbol], values: Sequence[Any]) -> None:
        """Note what the results are for the arguments at hand, which is known already."""
        for symbol, value in zip(results, values, strict=True) if self.has_values and self.rows == 1 else ():
            at_root = guards.outermost(symbol)
            if at_root is None or value is None or isinstance(value, Symbol) or not isinstance(at_root.builder, Trace):
                continue
            if isinstance(at_root.builder.values, Shadow) and isinstance(at_root.atom, Var):
                at_root.builder.values.put(at_root.atom, np.asarray(value, at_root.aval.dtype))


def values_of(trace: Trace) -> Shadow:
    """The values that answer what Python asks in a trace."""
    while not isinstance(trace.values, Shadow) and isinstance(trace.outer, Trace):
        trace = trace.outer
    assert isinstance(trace.values, Shadow)
    return trace.values


def _interval(slot: LoopSlot, start: Symbol | None) -> Interval:
    """The interval of a number of Python that is carried, at the start; it may not be there yet."""
    if slot.aval.dtype.kind != "i":
        return FLOAT
    if start is None:
        return Interval(0, 0)
    return Interval(int(start.atom.value), int(start.atom.value)) if isinstance(start.atom, Literal) else WIDEST


def _changes(ways: Sequence[Way], slot: int) -> bool:
    """True if some way changes a carried value, or some state does not have it."""
    return any(way.outputs.get(slot) is not way.inputs.get(slot) or slot not in way.outputs for way in ways)


def _placed(way: Way, places: Mapping[int, int], leaves: Mapping[int, Symbol]) -> Way:
    """The way with the values that are carried by their places; others are values from outside."""
    inputs = {places[slot]: var for slot, var in way.inputs.items() if slot in places}
    same: tuple[tuple[Var, Captured], ...] = tuple(
        (var, leaves[slot]) for slot, var in way.inputs.items() if slot not in places
    )
    outputs = {places[slot]: atom for slot, atom in way.outputs.items() if slot in places}
    return way._replace(inputs=inputs, outputs=outputs, outside=(*way.outside, *same))
