"""The equations that a rule makes of its arguments, kept by the arguments' kinds: they are added without the rule.

A rule computes with symbols, of which it sees the avals and nothing else, and with what it is given beside them. So it
makes the same equations of any symbols of these avals. It is run once, on symbols of a program of its own, and its
equations are added to the program under construction from then on: to infer, compare and convert takes most of the time
of a trace, and programs call the same functions on the same shapes over and over. It is run so when its kinds of
arguments come the second time.

A function that depends on more than that is run each time. Examples are arrays from outside, which are compared by
their content, values that are known while tracing or decide, and user code. So are effects, warnings of the user's
line, and errors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import EllipsisType, FunctionType, NoneType
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from fnad.ir.builder import Builder, Repeated, current_builder, taking
from fnad.ir.content import key_of_params
from fnad.ir.known import any_known
from fnad.ir.program import Atom, Equation, Literal
from fnad.ir.symbol import Symbol
from fnad.ir.types import NAMES
from fnad.numpy.operands import WeakSymbol, contains_symbol
from fnad.numpy.registry import OF_AVALS, OF_PLACES, UNSET, Bound
from fnad.numpy.views import ArrayView
from fnad.trace.capture import TRIED
from fnad.trace.handle import TRACED

MOST = 4096
_EXPANSIONS: dict[Any, Expansion | None] = {}
"""By rule and kinds of arguments; None where the rule is run each time."""

_MET: set[Any] = set()
"""The rules and kinds of arguments that came once: slices that move through an array hardly come twice."""


class NotRepeatableError(Exception):
    """The rule depends on more than the kinds of its arguments."""


# ---- the kinds of arguments ------------------------------------------------------------------------------------------

EXACT = {*map(id, (int, str, NoneType, EllipsisType, type(UNSET)))}
"""Classes, by identity, of which equal values of one class are the same to a rule, and differ from the others'."""

TYPED = (bool, bytes, np.dtype, type)
FLOATS = {*map(id, (float, complex))}


def kind_of(value: Any, symbols: list[Symbol]) -> Any:
    """The parts of an argument that a rule reads; its symbols are appended to a list. Raises if the rule reads more."""
    kind = type(value)
    if id(kind) in TRACED:
        value = value.symbol
        kind = type(value)
    if kind is Symbol or kind is WeakSymbol:
        if isinstance(value.atom, Literal):  # which rules convert while tracing
            raise NotRepeatableError
        symbols.append(value)
        return value.aval if kind is Symbol else (kind, value.aval)
    if id(kind) in EXACT:
        return value
    if id(kind) in FLOATS:
        return kind, struct.pack("dd", value.real, value.imag)
    if kind is tuple or kind is list:
        return kind, *[kind_of(part, symbols) for part in value]
    if kind is slice:
        return slice, *[kind_of(part, symbols) for part in (value.start, value.stop, value.step)]
    if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in "biufc":
        return kind, value.tobytes()
    if isinstance(value, TYPED):
        return kind, value
    raise NotRepeatableError


@cache
def is_own(rule: Any) -> bool:
    """True if a rule belongs to fnad, with all its parts."""
    if isinstance(rule, Bound):
        return is_own(rule.rule)
    if isinstance(rule, partial):
        return is_own(rule.func)
    parts = [cell.cell_contents for cell in getattr(rule, "__closure__", None) or ()]
    return str(rule.__module__).startswith("fnad.") and all(is_own(p) for p in parts if isinstance(p, FunctionType))


# ---- an expansion ----------------------------------------------------------------------------------------------------


class RuleRecorder(Builder):
    """The program of a rule on symbols of given kinds."""

    def capture(self, value: Any) -> NoReturn:
        raise NotRepeatableError

    def bake(self, array: Any) -> NoReturn:
        raise NotRepeatableError

    def warn(self, message: str, category: type[Warning]) -> NoReturn:
        raise NotRepeatableError


Make: TypeAlias = Callable[[Builder, Sequence[Symbol], Sequence[Atom]], Any]
"""The function that makes the result of a rule from its operands, their atoms and those of all results."""


class Expansion(NamedTuple):
    """The equations of a rule, constants among their operands with keys, and the function that makes the result.

    If it `raises`, the rule decides in the body of a `try` whether its operations fail.
    """

    repeated: tuple[Repeated, ...]
    constants: list[Literal]
    keys: list[Any]
    make: Make
    raises: bool

    def on(self, operands: Sequence[Symbol], builder: Builder) -> Any:
        """The result of the rule for these operands; its equations are added."""
        atoms = list[Atom]()
        for operand in operands:
            atoms.append(operand.atom if operand.builder is builder else builder.lift(operand).atom)
        keys: list[Any] = atoms
        if self.constants:
            keys = atoms + self.keys
            atoms = atoms + self.constants
        builder.repeat(self.repeated, atoms, keys)
        return self.make(builder, operands, atoms)


def expansion(rule: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]) -> Expansion:
    """The expansion of a rule on arguments of these kinds."""
    recorder, inputs = RuleRecorder(), list[Symbol]()
    with recorder.active():
        operands = [_like(value, recorder, inputs) for value in operands]
        options = {name: _like(value, recorder, inputs) for name, value in options.items()}
        returned = _with_reads(rule(*operands, **options))
    constants = _constants(recorder.equations)
    places: dict[Atom, int] = {atom: i for i, atom in enumerate([*[symbol.atom for symbol in inputs], *constants])}
    repeated = tuple([_repeated(equation, places) for equation in recorder.equations])
    raises = any(equation.primitive.raises for equation in recorder.equations)
    make = _make(returned, inputs, places)
    return Expansion(repeated, constants, [literal.key for literal in constants], make, raises)


def _constants(equations: Sequence[Equation]) -> list[Literal]:
    operands = dict.fromkeys(atom for equation in equations for atom in equation.operands)
    return [_finite(atom) for atom in operands if isinstance(atom, Literal)]


def _finite(literal: Literal) -> Literal:
    if not np.isfinite(literal.value):  # of numbers that overflow NumPy warns each time
        raise NotRepeatableError
    return literal


def _like(value: Any, recorder: RuleRecorder, inputs: list[Symbol]) -> Any:
    """An argument of the same kind, with inputs of the recorder's in the place of symbols."""
    if isinstance(value, Symbol):
        found = recorder.input(value.aval)
        inputs.append(type(value)(recorder, found.atom, value.aval))
        return inputs[-1]
    if isinstance(value, (list, tuple)):
        return type(value)([_like(part, recorder, inputs) for part in value])
    if isinstance(value, slice):
        return slice(*[_like(part, recorder, inputs) for part in (value.start, value.stop, value.step)])
    return value


def _with_reads(returned: Any) -> Any:
    """The result of a rule, with the reads of views, whose steps must be of known numbers."""
    if isinstance(returned, ArrayView):
        if contains_symbol(returned.steps):
            raise NotRepeatableError
        return replace(returned, seen=returned.read())
    return type(returned)(map(_with_reads, returned)) if type(returned) in (list, tuple) else returned


def _repeated(equation: Equation, places: dict[Atom, int]) -> Repeated:
    if equation.primitive.effect or equation.regions:
        raise NotRepeatableError
    operands = taking([places[atom] for atom in equation.operands])
    for result in equation.results:
        places[result] = len(places)
    primitive, params = equation.primitive, equation.params
    inferred = primitive.infer(*[atom.aval for atom in equation.operands], **params)
    return Repeated(primitive, operands, params, key_of_params(equation), inferred)


def _make(returned: Any, inputs: Sequence[Symbol], places: dict[Atom, int]) -> Make:
    """A function that makes a result like this one."""
    if isinstance(returned, Symbol):
        return _make_symbol(returned, inputs, places)
    if isinstance(returned, ArrayView):
        view, base, seen = returned, *[_make_symbol(s, inputs, places) for s in (returned.base, returned.read())]
        kept = view.steps, view.in_order, view.is_array, view.is_copy, view.is_same
        if not view.steps:  # all of the base is seen
            return lambda *found: ArrayView(made := base(*found), *kept, made)
        return lambda *found: ArrayView(base(*found), *kept, seen(*found))
    if type(returned) in (list, tuple):
        kind, parts = type(returned), [_make(part, inputs, places) for part in returned]
        return lambda *found: kind([part(*found) for part in parts])
    if returned is None or type(returned) in (bool, int, str):
        return lambda *_: returned
    raise NotRepeatableError


def _make_symbol(symbol: Symbol, inputs: Sequence[Symbol], places: dict[Atom, int]) -> Make:
    given = next((place for place, own in enumerate(inputs) if own is symbol), None)
    if given is not None:
        return lambda builder, operands, atoms: operands[given]
    if type(symbol) is not Symbol:
        raise NotRepeatableError
    atom, aval = symbol.atom, symbol.aval
    if isinstance(atom, Literal):
        literal = _finite(atom)
        return lambda builder, operands, atoms: Symbol(builder, literal, aval)
    place = places[atom]
    return lambda builder, operands, atoms: Symbol(builder, atoms[place], aval)


# ---- running a rule --------------------------------------------------------------------------------------------------


def follow(rule: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The result of a rule for its arguments, by its expansion if there is one."""
    if rule in OF_PLACES:
        return rule(*operands, **options)
    symbols: list[Symbol] = []
    if rule in OF_AVALS:
        operands = [_captured(operand) if id(type(operand)) in HOLDING else operand for operand in operands]
    try:
        key = key_of(rule, operands, options, symbols)
    except NotRepeatableError:
        return rule(*operands, **options)
    try:
        found = _EXPANSIONS[key]
    except KeyError:
        found = _attempt(key, rule, operands, options) if came_before(key) else None
    if found is None or (found.raises and TRIED.values) or (rule not in OF_AVALS and any_known(symbols)):
        return rule(*operands, **options)
    return found.on(symbols, current_builder())


def again(
    rule: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], symbols: list[Symbol], builder: Builder
) -> Any:
    """The result of a rule for the user's arguments, by its expansion; UNSET if there is none.

    Most calls have one: of their arguments nothing else need be made. Symbols of traced values are appended to a list.
    """
    try:
        found = None if rule in OF_PLACES else _EXPANSIONS.get(key_of(rule, args, kwargs, symbols))
    except NotRepeatableError:
        return UNSET
    if found is None or (found.raises and TRIED.values) or (rule not in OF_AVALS and any_known(symbols)):
        return UNSET
    return found.on(symbols, builder)


def key_of(rule: Any, args: Sequence[Any], kwargs: Mapping[str, Any], symbols: list[Symbol]) -> tuple[Any, ...]:
    """A rule and the kinds of arguments; symbols are appended to a list. Raises where that is not all it sees."""
    key = [rule]
    if rule in OF_AVALS:
        key += [kind_of(_captured(arg) if id(type(arg)) in HOLDING else arg, symbols) for arg in args]
    else:
        key += [kind_of(arg, symbols) for arg in args]
    if kwargs:
        key += [(name, kind_of(value, symbols)) for name, value in kwargs.items()]
    return tuple(key)


HOLDING = {*map(id, (np.ndarray, list, tuple))}


def _captured(value: Any) -> Any:
    """The symbol of an array with an fnad dtype, also in lists; anything else itself."""
    kind = type(value)
    if kind is np.ndarray:
        return current_builder().capture(value) if value.dtype in NAMES else value
    return kind(map(_captured, value)) if kind is list or kind is tuple else value


def came_before(key: Any) -> bool:
    """True if a rule was met before with these kinds of arguments; from now on it was."""
    if key in _MET:
        return True
    if len(_MET) >= MOST:
        _MET.clear()
    _MET.add(key)
    return False


def _attempt(
    key: Any, rule: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]
) -> Expansion | None:
    if len(_EXPANSIONS) >= MOST:
        _EXPANSIONS.clear()
    try:
        found = expansion(rule, operands, options) if is_own(rule) else None
    except Exception:  # noqa: BLE001 - the rule is run, and raises it again
        found = None
    _EXPANSIONS[key] = found
    return found
