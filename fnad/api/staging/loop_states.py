"""The variables of a loop at the begin of a step: a state, and the values that are carried.

Note [States]
    A state is what the variables are apart from the values that are carried. A number is part of the state until it
    has had several values; then it is carried. A variable that is 0.0 before the loop and a traced float in it makes
    two states. If each way from the first is one from the second with the number put in, both have the ways of the
    second (`fnad.control.ways`). So it is with an array from before the loop that steps replace by new ones.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fnad.api.staging.loop_items import as_number
from fnad.control.ways import Way, is_instance, put_in
from fnad.ir.builder import Builder
from fnad.ir.program import Literal
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.operands import HalfSymbol, as_symbol
from fnad.trace.capture import note_write
from fnad.trace.handle import Aside, Cell, Handle
from fnad.trace.listed import HELD, Listed
from fnad.trace.looping import Answers, Refused
from fnad.trace.tracer import Tracer

MOST_STATES, MOST_VALUES = 12, 2
"""The most states of a loop; the most values of a number in states before it is carried."""

Where = tuple[Any, ...]
"""The place of a value: the name of a variable and numbers of elements, or the number of an array."""


WaysOf = Mapping[int, Mapping[Answers, Way]]
"""The ways from each state, by the answers that Python gets on them."""


class LoopSlot(NamedTuple):
    """A value that is carried: where it is, and its type."""

    where: Where
    aval: Aval
    weak: bool = False
    is_scalar: bool = False


class LoopState(NamedTuple):
    """A state: what each variable is, and the numbers of the slots that have values in it."""

    number: int
    parts: tuple[tuple[str, Any], ...]
    slots: tuple[int, ...]


class RestartError(Exception):
    """A number has to be carried, or a loop in a step has more ways: the ways are recorded anew."""


class States:
    """The states of a loop that a trace has met.

    `numbers` has the number of each state for all traces, `carried` where numbers are that are carried. The arrays
    that the variables lead to are `cells`, whose values are carried wherever steps write into them.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        start: Mapping[str, Any],
        cells: Mapping[int, Cell],
        numbers: dict[Hashable, int],
        carried: set[Where],
    ) -> None:
        self.names, self.numbers, self.carried = names, numbers, carried
        self.cells = list(cells.values())
        self.slots: dict[LoopSlot, int] = {}
        self.met: dict[int, LoopState] = {}
        self._before = {id(value) for value in start.values()}
        self.lent: set[Where] = set()
        self._objects: list[Any] = []
        self._values: dict[tuple[Where, type], set[Any]] = {}

    def clear(self) -> None:
        """Forget the states of this trace."""
        for known in (self.slots, self.met, self._objects, self._values):
            known.clear()

    def slot_of(self, number: int) -> int:
        """The slot of the array of this number."""
        slot = LoopSlot(("array", number), self.cells[number].symbol.aval)
        return self.slots.setdefault(slot, len(self.slots))

    def of(self, namespace: Mapping[str, Any], leaves: dict[int, Symbol]) -> LoopState:
        """The state of variables; the values that are carried are put into `leaves`."""
        for i, cell in enumerate(self.cells):
            leaves[self.slot_of(i)] = cell.symbol
        memory: dict[int, Any] = {}
        found = [(name, namespace[name]) for name in self.names if name in namespace]
        parts = tuple((name, self._part(value, (name,), leaves, memory)) for name, value in found)
        number = self.numbers.setdefault(parts, len(self.numbers))
        if number not in self.met:
            if len(self.met) >= MOST_STATES:
                self.carry_all("its variables have ever other values that are not numbers")
            self.met[number] = LoopState(number, parts, tuple(sorted(leaves)))
        return self.met[number]

    def variables(self, state: LoopState, symbols: Mapping[int, Symbol]) -> dict[str, Any]:
        """The variables in a state, with these values for those that are carried."""
        return {name: self._value(part, symbols) for name, part in state.parts}

    def write(self, changed: Iterable[int], symbols: Mapping[int, Symbol], builder: Builder) -> None:
        """Write the values behind the loop into the arrays that it has changed."""
        changed = set(changed)
        for i, cell in enumerate(self.cells):
            slot = self.slot_of(i)
            if slot in changed:
                if cell.lent:
                    raise Refused("a step writes into an array that is in a list")
                cell.symbol, cell.version = symbols[slot], cell.version + 1
                cell.is_written, cell.written_at = True, builder.source
                note_write(cell.symbol.aval)

    def values_in(self, special: Any, general: Any) -> dict[int, Literal | int] | None:
        """The values of a state for the slots that another one has there; None if they differ otherwise.

        Each is a number, or the slot of an array from before the loop.
        """
        if special == general:
            return {}
        match special, general:
            case ("object", number), ("carried", slot) if not slot.is_scalar:
                own = self._slot_of_object(number)
                return None if own is None or own.aval != slot.aval else {self.slots[slot]: self.slots[own]}
            case ("number", kind, key), ("carried", slot) if slot.is_scalar and kind in (float, int, np.float64):
                number: Any = np.asarray(number_of(kind, key))[()]
                return {self.slots[slot]: Literal(number)} if number.dtype == slot.aval.dtype else None
            case tuple(), tuple() if len(special) == len(general):
                found = [self.values_in(*pair) for pair in zip(special, general, strict=True)]
                return None if None in found else {slot: x for each in found if each for slot, x in each.items()}
            case _:
                return None

    def _slot_of_object(self, number: int) -> LoopSlot | None:
        """The slot of an object that is all of an array from before the loop."""
        value = self._objects[number]
        if not isinstance(value, Handle) or isinstance(value, Aside) or value.symbol.atom is not value.cell.symbol.atom:
            return None
        own = (LoopSlot(("array", i), value.aval) for i, cell in enumerate(self.cells) if cell is value.cell)
        return next(own, None)

    # ---- what a variable is ------------------------------------------------------------------------------------------

    def _part(self, value: Any, where: Where, leaves: dict[int, Symbol], memory: dict[int, Any]) -> Any:
        if isinstance(value, Handle):
            return self._traced(value, where, leaves, memory)
        if type(value) is tuple:
            return "tuple", tuple(self._part(part, (*where, i), leaves, memory) for i, part in enumerate(value))
        if type(value) in (int, float, complex) or isinstance(value, np.generic):
            return self._number(value, where, leaves)
        if value is None or isinstance(value, (bool, str, bytes)):
            return "constant", type(value), value
        return self._object(value)

    def _object(self, value: Any) -> Any:
        """An object that no step changes, by its identity."""
        number = next((i for i, known in enumerate(self._objects) if known is value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return "object", number

    def _number(self, value: Any, where: Where, leaves: dict[int, Symbol]) -> Any:
        kind = type(value)
        is_own = kind in (int, float)
        if where in self.carried and kind is not complex:
            symbol = as_symbol(value)
            return self._carried(LoopSlot(where, symbol.aval, is_own, True), symbol, leaves)
        key = value if kind is int else np.asarray(value).tobytes()
        values = self._values.setdefault((where, kind), set())
        values.add(key)
        if len(values) > MOST_VALUES and kind is not complex:
            self.carried.add(where)
            raise RestartError
        return "number", kind, key

    def carry_all(self, why: str) -> NoReturn:
        """Carry all numbers that have had several values; refuse the loop for this reason if there are none."""
        several = {where for (where, _), values in self._values.items() if len(values) > 1} - self.carried
        if not several:
            raise Refused(why)
        self.carried |= several
        raise RestartError

    def _traced(self, value: Handle, where: Where, leaves: dict[int, Symbol], memory: dict[int, Any]) -> Any:
        if not value.is_alive:  # of a step before, which no way reads
            return "nothing", None
        if isinstance(value, Aside) or type(value.symbol) is HalfSymbol:
            raise Refused(f"{where[0]} is a traced value that no loop carries")
        if not value.is_scalar:
            if id(value) in self._before:
                return self._object(value)
            is_shared = memory.setdefault(id(value.cell), value) is not value
            if is_shared or any(value.cell is cell for cell in self.cells):
                raise Refused(f"{where[0]} shares memory with another variable")
            if value.cell.lent and where not in self.lent:  # to a list, so that no step may write into it
                self.lent.add(where)
                raise RestartError
        return self._carried(LoopSlot(where, value.aval, value.is_weak, value.is_scalar), value.symbol, leaves)

    def _carried(self, slot: LoopSlot, symbol: Symbol, leaves: dict[int, Symbol]) -> Any:
        leaves[self.slots.setdefault(slot, len(self.slots))] = symbol
        return "carried", slot

    def _value(self, part: Any, symbols: Mapping[int, Symbol]) -> Any:
        match part:
            case "tuple", parts:
                return tuple(self._value(each, symbols) for each in parts)
            case "carried", slot:
                symbol = symbols[self.slots[slot]]
                if slot.is_scalar:
                    return as_number(symbol, slot.weak)
                found = Tracer(symbol)
                if slot.where in self.lent:
                    found.lend(HELD)
                return found
            case "object", number:
                return self._objects[number]
            case "number", kind, key:
                return number_of(kind, key)
            case "constant", _, value:
                return value
            case _:
                return None


def number_of(kind: type, key: Any) -> Any:
    """A number by its class and its bits."""
    if kind is int:
        return key
    found = np.frombuffer(key, np.dtype(kind))[0]
    return found if issubclass(kind, np.generic) else found.item()


def cells_of(values: Iterable[Any], builder: Builder, depth: int = 3) -> dict[int, Cell]:
    """The memory of traced arrays of a trace that values lead to."""
    found: dict[int, Cell] = {}
    for value in values:
        if isinstance(value, Handle):
            if not (value.is_scalar or isinstance(value, Aside)) and value.cell.symbol.builder is builder:
                found[id(value.cell)] = value.cell
        elif type(value) is Listed:
            found |= cells_of([*value.columns, value.number] if value.is_spread else value.data, builder, depth - 1)
        elif depth and isinstance(value, (list, tuple, set)):
            found |= cells_of(value, builder, depth - 1)
        elif depth and isinstance(value, dict):
            found |= cells_of(value.values(), builder, depth - 1)
        elif depth and type(value).__module__ not in ("builtins", "numpy") and hasattr(value, "__dict__"):
            found |= cells_of(vars(value).values(), builder, depth - 1)
    return found


# ---- states that are others with values put in ---------------------------------------------------------------------


def joined(
    states: States, ways: Sequence[Way]
) -> tuple[list[Way], dict[int, dict[int, Literal | int]], dict[int, int]]:
    """The ways without those of states that are others with values put in; these values, and these others.

    They do not depend on the order in which states and ways were met, which is another one in each row of `vmap`.
    """
    ways = sorted(ways, key=lambda way: (way.state, way.answers))
    of = {state: {way.answers: way for way in ways if way.state == state} for state in sorted(states.met)}
    instances = _instances(states, of)
    alike = _alike(of, instances)
    values = {special: instances[special, other] for special, other in alike.items()}
    found: list[Way] = []
    for way in ways:
        if way.state not in alike:
            members = [m for m in ways if alike.get(m.state) == way.state and m.answers == way.answers]
            outputs = {**way.outputs, **put_in(values.get(way.next, {}), way.outputs)}
            others = {member.state: member.next for member in members if member.next != way.next}
            found.append(way._replace(outputs=outputs, others=others))
    return found, values, alike


def _alike(of: WaysOf, instances: Mapping[tuple[int, int], object]) -> dict[int, int]:
    """The states that are others with values put in, each with that one: a step leads from both into one, too.

    A state may be one of several others, of which each has the values in slots of its own.
    """
    general = of.keys() - {special for special, _ in instances}
    alike = {special: other for special, other in instances if other in general}
    for special in list(alike):
        alike |= {
            own: other
            for own, other in _followings(of, special, alike[special])
            if other in general and (own, other) in instances
        }
    while True:
        parted = [s for s in alike if any(alike.get(x, x) != alike.get(y, y) for x, y in _followings(of, s, alike[s]))]
        if not parted:
            return alike
        del alike[parted[0]]


def _followings(of: WaysOf, special: int, general: int) -> list[tuple[int, int]]:
    """The states into which the same ways lead from two states."""
    return [(way.next, of[general][key].next) for key, way in of[special].items()]


def _instances(states: States, of: WaysOf) -> dict[tuple[int, int], dict[int, Literal | int]]:
    """The pairs of states where the first, and all that follows from it, is the second with values put in."""
    met = [states.met[number] for number in of]
    pairs = {(x.number, y.number): states.values_in(x.parts, y.parts) for x in met for y in met}
    found = {pair: values for pair, values in pairs.items() if values and _are_instances(of, *pair, values)}
    while True:
        left = {pair: values for pair, values in found.items() if _go_on_alike(of, *pair, found)}
        if len(left) == len(found):
            return found
        found = left


def _are_instances(of: WaysOf, special: int, general: int, values: dict[int, Literal | int]) -> bool:
    """True if each way from a state is one from another with these values put in."""
    ways, others = of[special], of[general]
    return ways.keys() == others.keys() and all(is_instance(ways[key], others[key], values) for key in ways)


def _go_on_alike(of: WaysOf, special: int, general: int, pairs: Container[tuple[int, int]]) -> bool:
    return all(own == other or (own, other) in pairs for own, other in _followings(of, special, general))
