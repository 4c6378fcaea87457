"""The ways through one step of a loop, put together as a body that decides: a tree of `cond`.

A way is what a run of the step recorded: equations, and the decisions among them, in order. Ways that decide the same
share the equations up to the decision where they part. Where a decision has an answer that no way has, the step is
left undone: it returns what it was given, and the status `UNSEEN`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fnad.control.branch_memory import COUNTS, choose, key_of, read_box
from fnad.control.invariant import is_expensive
from fnad.control.row_scan import lies_inside, places_of
from fnad.control.signatures import Symbols
from fnad.ir.builder import Captured, current_builder
from fnad.ir.content import content_key, key_of_params
from fnad.ir.primitive import DynamicSlice
from fnad.ir.program import Atom, Equation, Literal, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ops.comparison import bitwise_and, bitwise_or, eq, lt, select
from fnad.ops.shape import reshape, slice_

T = TypeVar("T")

RUNNING, EXIT, UNSEEN = 0, 1, 2
"""The status of a loop: it goes on, it has ended, or its next step goes a way that is not known."""


class WayDecision(NamedTuple):
    """The value that Python decided by, the answer, and the number of equations before.

    The value is one of `values`, if these are known.
    """

    atom: Atom
    answer: int
    position: int
    source: Source | None
    values: AbstractSet[int] = frozenset()


class Way(NamedTuple):
    """A way through a step, from one state to another.

    `inputs` are the variables for the values that are carried, and `counter` that for the number of the step; `outside`
    are those for values from around the loop. `outputs` are what the values become that the next state has. From states
    that are alike this one, the next states are `others`.
    """

    state: int
    counter: Var
    inputs: Mapping[int, Var]
    outside: tuple[tuple[Var, Captured], ...]
    equations: tuple[Equation, ...]
    decisions: tuple[WayDecision, ...]
    outputs: Mapping[int, Atom]
    next: int
    exits: bool
    others: Mapping[int, int] = MappingProxyType({})

    @property
    def answers(self) -> tuple[int, ...]:
        return tuple(decision.answer for decision in self.decisions)


class DifferError(Exception):
    """Two runs of a step that decided the same did not do the same."""


class _Run:
    """A way as it becomes part of a body: the symbols of its atoms so far."""

    def __init__(self, way: Way, counter: Symbol, values: Symbols) -> None:
        self.way = way
        self.symbols: dict[Atom, Symbol] = {way.counter: counter}
        self.symbols.update((var, values[slot]) for slot, var in way.inputs.items())
        builder = current_builder()
        for var, value in way.outside:
            self.symbols[var] = value if isinstance(value, Symbol) else builder.capture(value)
        for equation in way.equations:
            self._read_before(equation)

    def _read_before(self, equation: Equation) -> None:
        """Read a part of an array from outside before the loop: its cotangent in a step is as large as the part."""
        value = self.symbols.get(equation.operands[0]) if equation.primitive in (slice_, reshape) else None
        if value is None or value.builder is current_builder() or equation.results[0].aval.ndim > value.ndim:
            return
        builder, source = value.builder, value.builder.source
        with builder.innermost():
            builder.source = equation.source
            self.symbols[equation.results[0]] = builder.bind(equation.primitive, [value], equation.params)
        builder.source = source

    def copy(self) -> _Run:
        made = object.__new__(_Run)
        made.way, made.symbols = self.way, dict(self.symbols)
        return made

    def read(self, atom: Atom) -> Symbol:
        return current_builder().literal(atom.value) if isinstance(atom, Literal) else self.symbols[atom]

    def latest(self, output: Atom | None, value: Symbol) -> Symbol:
        """The content so far of an array that becomes an output; otherwise the value at the begin of the step."""
        makers = {var: equation for equation in self.way.equations for var in equation.results}
        while value.shape and isinstance(output, Var) and output not in self.symbols:
            operands = makers[output].operands if output in makers else ()
            output = next((atom for atom in operands if atom.aval == value.aval), None)
        return self.symbols[output] if value.shape and isinstance(output, Var) else value

    def end(self, depth: int) -> int:
        """The number of equations before a decision."""
        decisions = self.way.decisions
        return decisions[depth].position if depth < len(decisions) else len(self.way.equations)


class Form(NamedTuple):
    """The carries of a loop besides the number of the step and values: its state, and its status.

    If it `skips`, steps behind one that is left undone do nothing; otherwise the loop ends there.
    """

    has_state: bool
    has_status: bool
    skips: bool = False


class _Ends(NamedTuple):
    """The results at the ends of a tree of decisions: of a way, and of a decision that has no way.

    `settled` has the results of ways that need not decide any more, or None. If `goes_on`, no way that is taken exits.
    """

    leaf: Callable[[_Run], list[Symbol]]
    unseen: Callable[[_Run], list[Symbol]]
    settled: Callable[[Sequence[_Run]], list[Symbol] | None] = lambda _: None
    goes_on: bool = False


class LoopBody:
    """The body of a loop: (counter, state, status, values…) -> the same of the next step, with what its form has.

    States that are `alike` another one have its ways; a step from a state that `lacks_ways` is left undone. `count` is
    the number of steps, if it is known. If ways that exit do nothing else, the `test` of the loop decides that, and the
    body has the other ways. `around` has the numbers of steps of the loops around, by their counters.
    """

    def __init__(
        self,
        ways: Sequence[Way],
        form: Form,
        alike: Mapping[int, int],
        lacks_ways: bool,
        count: int | None,
        around: Mapping[Atom, int],
    ) -> None:
        self.ways, self.form, self.count, self.around = ways, form, count, around
        self.lacks_ways = lacks_ways
        self.ends = count is None or any(way.exits for way in ways)
        self.exits_first = self.ends and _exits_first(ways)
        self.alike = alike
        self.meets_unseen = False

    def test(self, counter: Symbol, *carried: Symbol) -> list[Symbol]:
        """True if the loop goes on."""
        form, literal = self.form, current_builder().literal
        running: list[Symbol] = []
        if form.has_status:
            running.append(eq(carried[form.has_state], _number(RUNNING)))
        if self.count is not None:
            running.append(lt(counter, _number(self.count)))
        if not self.exits_first:
            return [reduce(bitwise_and, running)]
        go_on, leave = [literal(np.bool_(True))], [literal(np.bool_(False))]

        def settled(runs: Sequence[_Run]) -> list[Symbol] | None:
            return None if any(run.way.exits for run in runs) else go_on

        def tested() -> list[Symbol]:
            return self._decide(self._runs(counter, carried), carried, _Ends(lambda _: leave, lambda _: go_on, settled))

        return choose(reduce(bitwise_and, running), tested, lambda: leave) if running else tested()

    def __call__(self, counter: Symbol, *carried: Symbol) -> list[Symbol]:
        counts = self.around if self.count is None else {**self.around, counter.atom: self.count}
        with COUNTS.holding(counts):
            return [counter + 1, *self._step(counter, carried)]

    def _step(self, counter: Symbol, carried: Sequence[Symbol]) -> list[Symbol]:
        form = self.form
        state = carried[0] if form.has_state else None
        values = carried[form.has_state + form.has_status :]

        def heads(following: Symbol | None, status: int) -> list[Symbol]:
            found = [] if following is None else [following]
            return [*found, _number(status)] if form.has_status else found

        def unseen(run: _Run) -> list[Symbol]:
            self.meets_unseen = True
            kept = [run.latest(run.way.outputs.get(i), value) for i, value in enumerate(values)]
            return [*heads(state, UNSEEN), *kept]  # without copies of arrays: these values are not read

        def leaf(run: _Run) -> list[Symbol]:
            way = run.way
            kept = [run.read(way.outputs[i]) if i in way.outputs else value for i, value in enumerate(values)]
            return [*heads(_next(way, state), EXIT if way.exits else RUNNING), *kept]

        runs = self._runs(counter, carried)

        def step() -> list[Symbol]:
            return self._decide(runs, carried, _Ends(leaf, unseen, goes_on=self.exits_first))

        if not form.skips:
            return step()
        return choose(eq(carried[form.has_state], _number(RUNNING)), step, lambda: [*carried])

    def _runs(self, counter: Symbol, carried: Sequence[Symbol]) -> list[_Run]:
        """The ways at the begin of a step, with the rows that they read."""
        values = carried[self.form.has_state + self.form.has_status :]
        runs = [_Run(way, counter, values) for way in sorted(self.ways, key=lambda way: (way.state, way.answers))]
        for run in runs if self.count is not None else ():
            _read_rows(run, self.count or 0)
        return runs

    def _decide(self, runs: Sequence[_Run], carried: Sequence[Symbol], ends: _Ends) -> list[Symbol]:
        """The results of the way through a step that is taken from the state at hand."""
        numbers = sorted({way.state for way in self.ways})

        def of_state(number: int) -> list[Symbol]:
            return _choose([run.copy() for run in runs if run.way.state == number], 0, 0, ends)

        rest = (lambda: ends.unseen(runs[0])) if self.lacks_ways else _later(of_state, numbers.pop())
        for number in numbers:
            members = [number, *[other for other, own in self.alike.items() if own == number]]
            rest = _one(carried[0], members, _later(of_state, number), rest)
        return rest()


def _exits_first(ways: Sequence[Way]) -> bool:
    """True if the ways that exit change nothing, and decide it by little work, which a test may do before each step."""
    exits = [way for way in ways if way.exits]
    return len(exits) < len(ways) and all(_only_exits(way) for way in exits) and any(exits)


def _only_exits(way: Way) -> bool:
    stays = way.next == way.state and all(after == before for before, after in way.others.items())
    if not (stays and way.decisions and all(atom is way.inputs.get(i) for i, atom in way.outputs.items())):
        return False
    decides = all(decision.atom.aval.dtype == np.bool_ for decision in way.decisions)
    return decides and all(map(_is_cheap, way.equations[: way.decisions[-1].position]))


def _is_cheap(equation: Equation) -> bool:
    return not (equation.regions or equation.primitive.effect or is_expensive(equation, runs=True))


def _next(way: Way, state: Symbol | None) -> Symbol | None:
    """The state after a way, from this one."""
    following = None if state is None else _number(way.next)
    for number, other in way.others.items() if state is not None else ():
        following = select(eq(state, _number(number)), _number(other), following)
    return following


def _read_rows(run: _Run, count: int) -> None:
    """Read what a step reads at places that only its number decides: not in a branch, where derivatives copy arrays."""
    places: dict[Atom, tuple[int, int]] = {run.way.counter: (1, 0)}
    read: set[Atom] = {var for var, _ in run.way.outside}
    for equation in run.way.equations:
        name, (first, *rest) = equation.primitive.name, equation.operands or (None,)
        starts = places_of(equation, places)
        if isinstance(equation.primitive.lower, DynamicSlice):
            sizes = zip(starts[1:], first.aval.shape if first else (), equation.params["sizes"], strict=False)
            is_inside = all(place and lies_inside(*_ends(place, count), length, n) for place, length, n in sizes)
            if first not in read or len(rest) != len(first.aval.shape) or not is_inside:
                continue
            read.update(equation.results)
        elif places.keys().isdisjoint(equation.results) and not (
            name == "reshape" and first in read and first in run.symbols
        ):
            continue
        _go_on([equation], [run])
        read.update(equation.results if name == "reshape" else ())


def _ends(place: tuple[int, int], count: int) -> tuple[int, int]:
    first, last = sorted((place[1], place[0] * (count - 1) + place[1]))
    return first, last


def _later(function: Callable[[int], list[Symbol]], number: int) -> Callable[[], list[Symbol]]:
    return lambda: function(number)


def _number(value: int) -> Symbol:
    return current_builder().literal(np.int64(value))


def _choose(runs: list[_Run], depth: int, start: int, ends: _Ends) -> list[Symbol]:
    """The results of the way that is taken, of those that have decided the same so far."""
    settled = ends.settled(runs)
    if settled is not None:
        return settled
    first, *others = runs
    end = first.end(depth)
    if any(other.end(depth) != end or len(other.way.decisions) <= depth for other in others):
        raise DifferError
    for place in range(start, end):
        _go_on([run.way.equations[place] for run in runs], runs)
    if depth == len(first.way.decisions):
        return ends.leaf(first)
    found: dict[int, list[_Run]] = {}
    for run in runs:
        found.setdefault(run.way.decisions[depth].answer, []).append(run)
    asked = {id(run.read(run.way.decisions[depth].atom).atom) for run in runs if not _is_literal(run, depth)}
    if len(asked) > 1:
        raise DifferError
    builder, source = current_builder(), first.way.decisions[depth].source
    builder.source = source
    pred = first.read(first.way.decisions[depth].atom)

    def go_on(answer: int) -> Callable[[], list[Symbol]]:
        return lambda: _choose([run.copy() for run in found[answer]], depth + 1, end, ends)

    left = [answer for answer, own in found.items() if not (ends.goes_on and _leaves(own, depth + 1))]
    if len(left) < len(found):  # the test of the loop had the other answer
        return go_on(left[0])() if left else ends.unseen(first)
    branches = {answer: go_on(answer) for answer in found}
    if branches.keys() == first.way.decisions[depth].values:
        return _among(pred, branches, branches.popitem()[1])
    return _among(pred, branches, lambda: ends.unseen(first))


def _leaves(runs: Sequence[_Run], depth: int) -> bool:
    """True if ways end in the loop's exit whatever else they decide."""
    if len(runs[0].way.decisions) == depth:
        return runs[0].way.exits
    found: dict[int, list[_Run]] = {}
    for run in runs:
        found.setdefault(run.way.decisions[depth].answer, []).append(run)
    return len(found) == 2 and all(_leaves(own, depth + 1) for own in found.values())


def _is_literal(run: _Run, depth: int) -> bool:
    return isinstance(run.way.decisions[depth].atom, Literal)


def _go_on(equations: Sequence[Equation], runs: Sequence[_Run]) -> None:
    """Add the next equation, which is the same in all runs."""
    known = [run.symbols.get(e.results[0]) for e, run in zip(equations, runs, strict=True) if e.results]
    if known and known[0] is not None:  # it was read before
        if any(symbol is None or symbol.atom is not known[0].atom for symbol in known):
            raise DifferError
        return
    builder, first = current_builder(), equations[0]
    operands = [runs[0].read(atom) for atom in first.operands]
    keys = [key_of(symbol) for symbol in operands]
    for equation, run in zip(equations[1:], runs[1:], strict=True):
        if equation.primitive is not first.primitive or _static_key(equation) != _static_key(first):
            raise DifferError
        if [key_of(run.read(atom)) for atom in equation.operands] != keys:
            raise DifferError
    builder.source = first.source
    if isinstance(first.primitive.lower, DynamicSlice):
        results = read_box(operands[0], operands[1:], first.params["sizes"])
    else:
        results = builder.bind(first.primitive, operands, first.params, first.regions)
    found = results if isinstance(results, tuple) else (results,)
    for equation, run in zip(equations, runs, strict=True):
        run.symbols.update(zip(equation.results, found, strict=True))


def _static_key(equation: Equation) -> Any:
    return key_of_params(equation), tuple(map(content_key, equation.regions))


def _among(
    value: Symbol, branches: Mapping[int, Callable[[], list[Symbol]]], rest: Callable[[], list[Symbol]]
) -> list[Symbol]:
    """The results of the branch for a bool or an integer, or of the `rest`."""
    if value.dtype == np.bool_:
        return choose(value, branches.get(True, rest), branches.get(False, rest))
    for answer, branch in reversed(list(branches.items())):
        rest = _one(value, [answer], branch, rest)
    return rest()


def _one(
    value: Symbol, answers: Sequence[int], branch: Callable[[], list[Symbol]], rest: Callable[[], list[Symbol]]
) -> Callable[[], list[Symbol]]:
    def chosen() -> list[Symbol]:
        same = [eq(value, current_builder().literal(value.dtype.type(answer))) for answer in answers]
        return choose(reduce(bitwise_or, same), branch, rest)

    return chosen


def evaluated(way: Way, values: Mapping[Var, Any]) -> dict[Atom, Any] | None:
    """The values of the atoms of a way on these inputs; None if a decision is another one."""
    env: dict[Atom, Any] = {**values}
    start = 0
    with np.errstate(all="ignore"):
        for decision in way.decisions:
            _evaluate(way.equations[start : decision.position], env)
            start = decision.position
            if _value(decision.atom, env) != decision.answer:
                return None
        _evaluate(way.equations[start:], env)
    return env


def _evaluate(equations: Sequence[Equation], env: dict[Atom, Any]) -> None:
    for equation in equations:
        operands = [_value(atom, env) for atom in equation.operands]
        results = equation.primitive.evaluate(*operands, **equation.keywords)
        env.update(zip(equation.results, results if isinstance(results, tuple) else (results,), strict=True))


def _value(atom: Atom, env: Mapping[Atom, Any]) -> Any:
    return np.asarray(atom.value) if isinstance(atom, Literal) else env[atom]


def put_in(values: Mapping[int, Literal | int], atoms: Mapping[int, T]) -> dict[int, Literal | T]:
    """The values of a state for the slots that another one has: numbers, and the content of other slots."""
    found = {slot: value if isinstance(value, Literal) else atoms.get(value) for slot, value in values.items()}
    return {slot: value for slot, value in found.items() if value is not None}


def is_instance(special: Way, general: Way, values: Mapping[int, Literal | int]) -> bool:
    """True if a way is another one with values put in for some of its inputs, equation by equation."""
    same: dict[Atom, Any] = {general.counter: special.counter}
    inputs = {**special.inputs, **put_in(values, special.inputs)}
    for slot, var in general.inputs.items():
        found = inputs.get(slot)
        same[var] = found.key if isinstance(found, Literal) else found
    outside = {_identity(value): var for var, value in special.outside}
    same.update((var, outside.get(_identity(value))) for var, value in general.outside)

    def agree(special: Atom, general: Atom) -> bool:
        found = special.key if isinstance(special, Literal) else special
        other = general.key if isinstance(general, Literal) else same.get(general)
        return found is other or (isinstance(special, Literal) and found == other)

    if len(special.equations) != len(general.equations) or special.exits != general.exits:
        return False
    for one, other in zip(special.equations, general.equations, strict=True):
        if one.primitive is not other.primitive or _static_key(one) != _static_key(other):
            return False
        if len(one.operands) != len(other.operands) or not all(map(agree, one.operands, other.operands)):
            return False
        same.update(zip(other.results, one.results, strict=True))
    pairs = zip(special.decisions, general.decisions, strict=True)
    if not all(agree(x.atom, y.atom) and x.position == y.position for x, y in pairs):
        return False
    outputs = {**put_in(values, special.outputs), **special.outputs}
    return all(agree(outputs.get(slot, _NOTHING), atom) for slot, atom in general.outputs.items())


_NOTHING = Literal(np.bool_(False))


def _identity(value: Captured) -> int:
    return id(value.atom if isinstance(value, Symbol) else value)
