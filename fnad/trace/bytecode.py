"""What the user's code reads, and which instruction a frame is at: all that is known here of CPython's bytecode.

Python hands an operation on without saying who asks: `__index__` is called for `table[i]` and for `range(i)`, and a
look-up of `np.zeros` comes from the user's line or from compiled code below it, which has no frame of its own. The
instruction says which. Each such question is answered with no where the instructions do not prove a yes. Which names
code reads has to be known completely, though, and code in which constants stand for globals has to do all else as
before. So an import of this file ends with an error where the instructions are those of a version that is not in
`VERSIONS`.

A name may be used without its value having any say in what the code computes: `calls.append(x)`, `count += 1`,
`self.calls += 1`. Programs are often watched in this way, and such names are told apart.
"""

from __future__ import annotations

import ctypes
import dis
import inspect
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from types import CodeType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from fnad.codes import remembered
from fnad.records import NamedTuple


class Version(NamedTuple):
    """How a version writes what is asked here.

    `reads` and `stores` are the instructions for elements, each with the number of values that make the index; `pairs`
    those that stand for two. An attribute that is called as a method is loaded by a `LOAD_METHOD` of its own, or by a
    `LOAD_ATTR` with the lowest bit set (`is_method_bit`); for any other callee, the NULL that calls have is pushed
    before its expression or behind it (`is_null_behind`). A cell that goes to a function is loaded by an instruction of
    its own, or as a local variable (`is_cell_local`). Behind the load of a global there are `caches` units. Of a run
    CPython keeps the address of the function behind so many others (`function`).
    """

    reads: Mapping[str, int]
    stores: Mapping[str, int]
    local: frozenset[str]
    pairs: Mapping[str, tuple[str, str]]
    is_method_bit: bool
    is_null_behind: bool
    is_cell_local: bool
    caches: int
    function: int


_3_11 = Version(
    reads={"BINARY_SUBSCR": 1},
    stores={"STORE_SUBSCR": 1},
    local=frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF"}),
    pairs={},
    is_method_bit=False,
    is_null_behind=False,
    is_cell_local=False,
    caches=5,
    function=0,
)
_3_12 = _3_11._replace(
    reads={"BINARY_SUBSCR": 1, "BINARY_SLICE": 2},
    stores={"STORE_SUBSCR": 1, "STORE_SLICE": 2},
    local=frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"}),
    is_method_bit=True,
    caches=4,
    function=2,
)
_3_13 = _3_12._replace(
    pairs={
        "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
        "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
        "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    },
    is_null_behind=True,
    is_cell_local=True,
)
VERSIONS = {(3, 11): _3_11, (3, 12): _3_12, (3, 13): _3_13}


def version_of(name: str, number: tuple[int, int]) -> Version:
    """The facts about a version of an implementation of Python; raises `ImportError` for an unknown one."""
    if name != "cpython" or number not in VERSIONS:
        known = ", ".join("{}.{}".format(*version) for version in VERSIONS)
        found = "{} {}.{}".format(name, *number)
        raise ImportError(f"fnad reads the bytecode of CPython {known}, not that of {found}: install one of these")
    return VERSIONS[number]


VERSION = version_of(sys.implementation.name, sys.version_info[:2])

WORD = ctypes.sizeof(ctypes.c_void_p)


WORD_AT = ctypes.c_void_p.from_address


def address_of_function(frame: FrameType) -> int:
    """Where the function is that a frame runs: Python says its code alone, which many functions may have."""
    run = WORD_AT(id(frame) + object.__basicsize__ + WORD).value or 0  # behind the frame that called
    return WORD_AT(run + VERSION.function * WORD).value or 0


def function_of(frame: FrameType) -> FunctionType:
    """The function that a frame runs."""
    return ctypes.cast(address_of_function(frame), ctypes.py_object).value


ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
ATTRIBUTES = ATTRIBUTE | {"STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IMPORT_FROM"}
CALL = frozenset({"CALL", "PRECALL"})
CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})
CONNECTING = frozenset({"PUSH_NULL", "KW_NAMES", "PRECALL", "NOP"})
TAKING = ATTRIBUTE | {"LOAD_SUPER_ATTR", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS"}
PUSHING_NOTHING = ("POP_", "STORE_", "DELETE_", "JUMP", "PRECALL", "KW_NAMES", "NOP")
"""How the names of instructions begin that leave no value."""
GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
OUTER = frozenset(
    {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
)
NAMING = GLOBAL | OUTER | ATTRIBUTES
REBINDING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
REBINDING_FREE = frozenset({"STORE_DEREF", "DELETE_DEREF"})

UNIT = 2
"""Bytes of an instruction, or of each unit of its cache."""
MATMUL = bytes([dis.opmap["BINARY_OP"], 4, 0, 0])
"""The operator @, with its cache."""
AUGMENTED = 13
"""From this operand on, the operator of an instruction is one of augmented assignments, as `+=`."""
MOST_CONSTANTS = 256
"""So many are loaded by one instruction each."""

ASKING = {"getattr", "hasattr", "vars", "dir", "attrgetter", "methodcaller", "__dict__", "__getattribute__"}
EVALUATION = {"globals", "eval", "exec"}
"""Through these a name of a module may be read that stands nowhere in the code."""
REFLECTION = ASKING | EVALUATION
IMPORTING = {"__import__", "modules"}


class Step(NamedTuple):
    """An instruction, with its operand and its line; `effect` is by how much it makes the stack higher."""

    offset: int
    name: str
    arg: int
    value: Any
    is_target: bool
    effect: int
    line: int


class Path(NamedTuple):
    """An expression `root.a.b`: how the variable is loaded, or a module imported, its name, and the attributes."""

    how: str
    root: str
    attributes: tuple[str, ...]

    def value(self, frame: FrameType) -> Any:
        """The value of the expression in a frame, found without running any code; None if that needs some."""
        value = variable(frame, self.how, self.root)
        for name in self.attributes:
            value = attribute(value, name)
        return value


class Lookup(NamedTuple):
    """A look-up `owner.name`, or `callee(owner, …)`, which is one of any name where the callee is `getattr`.

    Whether what is found is called at once is `is_called`.
    """

    owner: Path
    name: str | None
    callee: Path | None = None
    is_called: bool = False

    def is_of(self, frame: FrameType, owner: object, name: str) -> bool:
        """Whether it is of this attribute of this object, and of nothing else, in a frame that is at it."""
        how, root, attributes = self.owner
        if self.name == name and how == "LOAD_GLOBAL" and not attributes and root in frame.f_globals:  # as most are
            return frame.f_globals[root] is owner
        if self.callee is None:
            return self.name == name and self.owner.value(frame) is owner
        return self.callee.value(frame) is getattr and self.owner.value(frame) is owner


# ---- which instruction a frame is at ---------------------------------------------------------------------------------


def is_called(frame: FrameType) -> bool:
    """Whether a frame is at an instruction that loads an attribute which is called at once."""
    return is_callee_at(frame.f_code, frame.f_lasti)


def reads_element(frame: FrameType) -> bool:
    """Whether a frame is at `x[i]`."""
    return name_at(frame.f_code, frame.f_lasti) in VERSION.reads


def stores_element(frame: FrameType) -> bool:
    """Whether a frame is at `x[i] = …`."""
    return name_at(frame.f_code, frame.f_lasti) in VERSION.stores


def indexed(frame: FrameType) -> Any:
    """The object that a frame at `x[i]` or `x[i] = …` indexes, if x is a variable; else None."""
    container = container_at(frame.f_code, frame.f_lasti)
    return None if container is None else container.value(frame)


def calls_a_global(frame: FrameType, names: AbstractSet[str]) -> bool:
    """Whether a frame is at the call of a global of one of these names, `hasattr(x, "size")`."""
    return _callee_at(frame.f_code, frame.f_lasti) in names


@remembered
def _callee_at(code: CodeType, offset: int) -> str | None:
    steps, at = steps_to(code, offset)
    end = at + (steps[at].name == "PRECALL")  # the interpreter may run the two as one
    return next((steps[i].value for i in _calls_of_globals(steps) if _end_of_call(steps, i) == end), None)


def is_augmented_assignment(frame: FrameType) -> bool:
    """Whether a frame is at `x += …` or another of its kind."""
    steps, at = steps_to(frame.f_code, frame.f_lasti)
    return steps[at].name == "BINARY_OP" and str(steps[at].value).endswith("=")


def is_modulo(frame: FrameType) -> bool:
    """Whether a frame is at `x % y` or `x %= y`."""
    steps, at = steps_to(frame.f_code, frame.f_lasti)
    return steps[at].name == "BINARY_OP" and steps[at].value in ("%", "%=")


@remembered
def rebinds(code: CodeType) -> bool:
    """Whether code, or what is defined in it, binds globals or one of its free variables to something else."""
    return _rebinds(code, frozenset(code.co_freevars))


def _rebinds(code: CodeType, free: AbstractSet[str]) -> bool:
    for step in steps_of(code):
        if step.name in REBINDING or (step.name in REBINDING_FREE and step.value in free):
            return True
    return any(_rebinds(inner, free) for inner in _inner(code))


@remembered
def sets_alone(code: CodeType, name: str) -> bool:
    """Whether a variable that functions defined in code share is its own, and nobody sets it but a run of it.

    A generator may have begun long before it sets one.
    """
    is_own = name in code.co_cellvars and not code.co_flags & RESUMED
    return is_own and not any(_rebinds(inner, {name}) for inner in _inner(code))


CHECKING = {"isinstance", "issubclass"}
"""Functions that compare a class with others by their bases, which a traced value answers itself."""


@remembered
def asks_for_classes(code: CodeType) -> bool:
    """Whether code, or what is defined in it, calls `type(x)` and does more with it than load an attribute.

    It may do so too where it hands `type` on, as `map(type, xs)`, `key=type`, `f = type` and `[type][0]` do.
    """
    if "type" not in names_of(code):
        return False
    steps = steps_of(code)
    if any(steps[i].value == "type" and _keeps_class(steps, i) for i in _calls_of_globals(steps)):
        return True
    return bool(_handed_on(steps, "type")) or any(map(asks_for_classes, _inner(code)))


@remembered
def stores_type(code: CodeType) -> bool:
    """Whether code, or what is defined in it, hands `type` on to what may keep it: `self.kind = type`."""
    if "type" not in names_of(code):
        return False
    steps = steps_of(code)
    return any(not _is_of_map_or_local(steps, at) for at in _handed_on(steps, "type")) or any(
        map(stores_type, _inner(code))
    )


@remembered
def attributes_stored(code: CodeType) -> frozenset[str]:
    """The names of the attributes that code, or what is defined in it, sets."""
    own = frozenset(step.value for step in steps_of(code) if step.name == "STORE_ATTR")
    return own.union(*map(attributes_stored, _inner(code)))


@remembered
def hands_on(code: CodeType, names: AbstractSet[str]) -> bool:
    """Whether code, or what is defined in it, loads one of these variables, not to call it or to set an attribute."""
    steps = steps_of(code)
    loads = [at for at, step in enumerate(steps) if step.name in VERSION.local and step.value in names]
    if any(_end_of_variable(steps, at) is None and steps[at + 2].name != "STORE_ATTR" for at in loads):
        return True
    return any(hands_on(inner, names) for inner in _inner(code))


def _end_of_variable(steps: Sequence[Step], at: int) -> int | None:
    """The call of a variable that is loaded; None where it is not called at once."""
    null = at + 1 if VERSION.is_null_behind else at - 1
    return _end_of_call(steps, max(at, null)) if steps[max(null, 0)].name == "PUSH_NULL" else None


@remembered
def strings_of(code: CodeType) -> frozenset[str]:
    """The strings in code, and in what is defined in it."""
    own = frozenset(constant for constant in code.co_consts if isinstance(constant, str))
    return own.union(*map(strings_of, _inner(code)))


def _is_of_map_or_local(steps: Sequence[Step], at: int) -> bool:
    before, behind = steps[max(at - 1, 0)], steps[at + 1]
    return (before.name, before.value) == ("LOAD_GLOBAL", "map") or behind.name == "STORE_FAST"


def _keeps_class(steps: Sequence[Step], at: int) -> bool:
    end = _end_of_call(steps, at)
    if end is None or steps[end + 1].name in ATTRIBUTE:
        return False
    return steps[end].arg == 1 or steps[end].name == "CALL_FUNCTION_EX"


def _handed_on(steps: Sequence[Step], name: str) -> list[int]:
    """The loads of a global that is a class which are no callee, no base, and not asked or compared at once."""
    loads = [at for at, step in enumerate(steps) if step.name == "LOAD_GLOBAL" and step.value == name]
    loads = [at for at in loads if not steps[at].arg & 1 or _end_of_call(steps, at) is None]
    if not loads:
        return []
    checks = [at for at in _calls_of_globals(steps) if steps[at].value in CHECKING]
    checked = {i for at in checks for i in range(at, _end_of_call(steps, at) or at)}
    others = ATTRIBUTE | {"IS_OP"}
    return [at for at in loads if at not in checked and steps[at + 1].name not in others and not _is_base(steps, at)]


def _is_base(steps: Sequence[Step], at: int) -> bool:
    """Whether a load is among the bases of a class, which follow its name."""
    first = next(
        (i for i in range(at - 1, 0, -1) if not steps[i].name.startswith("LOAD_") or steps[i].name == "LOAD_CONST"), 0
    )
    return steps[first].name == "LOAD_CONST" and steps[first - 1].name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")


# ---- which names code reads ------------------------------------------------------------------------------------------


class Reads(NamedTuple):
    """The names a code object reads or writes.

    `extended` are globals and free variables it only appends to, `counted` those it only counts up, `tallied` those
    of which it only counts up elements, `unused` all three; `counters` are attributes it only counts up, or
    elements of which, whatever has them, `sought` the other attributes, and its own name, under which a class may
    have it. `modules` are those it imports, each with the number of leading dots. `strings` are those of its
    constants that look like names; `reflects` says that it may ask for names by strings. `handles` says that it
    goes on after some exception, so that it may be seen there whether an attribute is missing. `evaluated` has the
    lines that may read any name, `made` the code of functions that it defines.
    """

    names: frozenset[str]
    extended: frozenset[str]
    counted: frozenset[str]
    tallied: frozenset[str]
    unused: frozenset[str]
    attributes: frozenset[str]
    counters: frozenset[str]
    sought: frozenset[str]
    strings: frozenset[str]
    modules: tuple[tuple[int, str], ...]
    reflects: bool
    handles: bool
    evaluated: tuple[int, ...]
    made: tuple[CodeType, ...]


@remembered
def reads_of(code: CodeType) -> Reads:
    """The names that a code object reads; functions defined in it have code objects of their own."""
    steps = steps_of(code)
    global_names = frozenset(step.value for step in steps if step.name in GLOBAL and step.value.isidentifier())
    attributes = frozenset(step.value for step in steps if step.name in ATTRIBUTES)
    used = global_names | attributes
    matched = [steps[i - 1].value for i, step in enumerate(steps) if step.name == "MATCH_CLASS"]
    reflects = bool(matched) or not REFLECTION.isdisjoint(used)
    strings = frozenset(c for c in code.co_consts if isinstance(c, str) and c.isidentifier()).union(*matched)
    evaluated = tuple(step.line for step in steps if step.name in GLOBAL and step.value in EVALUATION)
    inner = tuple(constant for constant in code.co_consts if isinstance(constant, CodeType))
    extended = _only(steps, _extends, {n for c in inner for n in {*c.co_freevars} - reads_of(c).extended})
    counted = _only(steps, _counts, {n for c in inner for n in {*c.co_freevars} - reads_of(c).counted})
    tallied = _only(steps, _tallies, {n for c in inner for n in {*c.co_freevars} - reads_of(c).tallied})
    imports = [i for i, step in enumerate(steps) if step.name == "IMPORT_NAME"]
    modules = [(steps[i - 2].value or 0, steps[i].value) for i in imports]
    modules += [(0, name) for name in _dotted(code) if not IMPORTING.isdisjoint(used)]
    handles = bool(code.co_exceptiontable)
    counters = _counters(steps)
    names = global_names, extended, counted, tallied, extended | counted | tallied
    sought = attributes, counters, (attributes - counters) | {code.co_name}
    return Reads(*names, *sought, strings, tuple(modules), reflects, handles, evaluated, inner)


def line_naming(code: CodeType, name: str) -> int | None:
    """The first line of code that names a variable or an attribute so."""
    return next((step.line for step in steps_of(code) if step.name in NAMING and step.value == name), None)


def _dotted(code: CodeType) -> Iterator[str]:
    """The strings that may be names of modules."""
    return (c for c in code.co_consts if isinstance(c, str) and c and all(map(str.isidentifier, c.split("."))))


def _only(
    steps: Sequence[Step], used: Callable[[Sequence[Step], int], bool], otherwise: AbstractSet[str]
) -> frozenset[str]:
    """The names whose loads are all `used` in this way, but those that inner functions use `otherwise`."""
    loads = [i for i, step in enumerate(steps) if step.name in OUTER]
    others = {steps[i].value for i in loads if steps[i].name != "LOAD_CLOSURE" and not used(steps, i)}
    return frozenset(steps[i].value for i in loads) - others - otherwise


def _extends(steps: Sequence[Step], load: int) -> bool:
    return steps[load + 1].name in ATTRIBUTE and steps[load + 1].value in ("append", "add")


def _counts(steps: Sequence[Step], load: int) -> bool:
    store = steps[load + 3] if _adds_constant(steps, load) else steps[load]
    return store.name in ("STORE_GLOBAL", "STORE_DEREF") and store.value == steps[load].value


def _adds_constant(steps: Sequence[Step], load: int) -> bool:
    """Whether what is loaded is at once an operand beside a constant."""
    return [step.name for step in steps[load + 1 : load + 3]] == ["LOAD_CONST", "BINARY_OP"]


TALLY = [
    *(("LOAD_CONST", None), ("COPY", 2), ("COPY", 2), ("BINARY_SUBSCR", None), ("LOAD_CONST", None)),
    *(("BINARY_OP", None), ("SWAP", 3), ("SWAP", 2), ("STORE_SUBSCR", None)),
]
"""The instructions of `x["n"] += 1` behind the load of x, with their operands where these matter."""


def _tallies(steps: Sequence[Step], load: int) -> bool:
    following = steps[load + 1 : load + 1 + len(TALLY)]
    return len(following) == len(TALLY) and all(
        step.name == name and arg in (None, step.arg) for step, (name, arg) in zip(following, TALLY, strict=True)
    )


def _counters(steps: Sequence[Step]) -> frozenset[str]:
    """The attributes that code only counts up.

    It does not matter of which object: what is read under such a name goes nowhere but to attributes of this name.
    """
    stores = {load: store for load in range(len(steps)) if (store := _store_of_count(steps, load)) is not None}
    counting = {*stores, *stores.values()}
    others = {step.value for i, step in enumerate(steps) if step.name in ATTRIBUTES and i not in counting}
    return frozenset(steps[load].value for load in stores) - others


def _store_of_count(steps: Sequence[Step], load: int) -> int | None:
    """The store of `x.n += 1`, `x.n = x.n + 1` or `x.n[0] += 1`, by the load of the attribute."""
    if steps[load].name != "LOAD_ATTR" or is_method(steps[load]):
        return None
    if _tallies(steps, load):
        return load + len(TALLY)
    if not _adds_constant(steps, load):
        return None
    stores = range(load + 3, len(steps))
    store = next((i for i in stores if steps[i].name == "STORE_ATTR" and steps[i].value == steps[load].value), None)
    if store is None:
        return None
    is_augmented = store == load + 4 and (steps[load + 3].name, steps[load + 3].arg) == ("SWAP", 2)
    return store if is_augmented or _start_of_value(steps, store) == load + 3 else None


@remembered
def globals_of(code: CodeType) -> frozenset[str]:
    """The globals that code, or what is defined in it, loads and does not bind."""
    loaded = {name for inner in _inner(code) for name in globals_of(inner)}.union(_names(code, "LOAD_GLOBAL", 1))
    return frozenset(loaded.difference(*[_names(code, operation, 0) for operation in REBINDING]))


def _names(code: CodeType, operation: str, bits: int) -> Iterator[str]:
    """The names that an instruction has, in whose operand so many bits come before the name's number.

    Found without `dis`, which takes a hundred times as long: this is asked of all code that names lead to.
    """
    operations, operands = code.co_code[::UNIT], code.co_code[1::UNIT]
    at = operations.find(dis.opmap[operation])
    while at >= 0:
        start = at
        while start and operations[start - 1] == dis.EXTENDED_ARG:
            start -= 1
        yield code.co_names[int.from_bytes(operands[start : at + 1]) >> bits]
        at = operations.find(dis.opmap[operation], at + 1)


@remembered
def names_of(code: CodeType) -> frozenset[str]:
    """The names of globals, attributes and modules in code, and in what is defined in it."""
    return frozenset(code.co_names).union(*map(names_of, _inner(code)))


def _inner(code: CodeType) -> Iterator[CodeType]:
    """What is defined in code."""
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


# ---- what code writes into -------------------------------------------------------------------------------------------


@remembered
def stores_into(code: CodeType) -> bool:
    """Whether code, or what is defined in it, has `x[i] = …` or `x += …`; found without `dis`, as names are."""
    has_elements = any(dis.opmap[name] in code.co_code[::UNIT] for name in VERSION.stores)
    return has_elements or _greatest(code, "BINARY_OP") >= AUGMENTED or any(map(stores_into, _inner(code)))


@remembered
def most_arguments(code: CodeType) -> int:
    """With how many arguments code, or what is defined in it, calls anything; how many are unpacked is not known."""
    if dis.opmap["CALL_FUNCTION_EX"] in code.co_code[::UNIT]:
        return MOST_CONSTANTS
    own = max(_greatest(code, name) for name in CALLS & dis.opmap.keys())
    return max([own, *map(most_arguments, _inner(code))])


def _greatest(code: CodeType, name: str) -> int:
    """The greatest operand of an instruction, -1 where there is none."""
    operations, operands = code.co_code[::UNIT], code.co_code[1::UNIT]
    own = (operand for operation, operand in zip(operations, operands, strict=True) if operation == dis.opmap[name])
    return max(own, default=-1)


# ---- constants in the place of globals -------------------------------------------------------------------------------


def with_constants(
    code: CodeType,
    values: Mapping[str, Any],
    only_called: AbstractSet[str],
    comparing: Mapping[str, Callable[[bool], Any]] = MappingProxyType({}),
) -> CodeType:
    """The code with constants in the place of globals, for those in `only_called` where it calls them.

    The load of a global has room for it with its cache, so nothing else moves. Where what a call returns is called at
    once, `type(x)(y)`, the callee stays. Those in `comparing` are replaced where they are handed on too, and where they
    are compared by identity: what is made of whether by `is not` is multiplied with the other operand.
    """
    constants: list[Any] = list(_with_inner(code, lambda inner: with_constants(inner, values, only_called, comparing)))
    steps, words = steps_of(code), bytearray(code.co_code)
    called = set(_calls_of_globals(steps))
    handed_on = {at for name in comparing for at in _handed_on(steps, name)}
    for at, step in enumerate(steps):
        if step.name == "LOAD_GLOBAL" and step.value in values:
            behind = steps[at + 1]
            if at in called or at in handed_on or not (step.arg & 1 or step.value in only_called):
                constants.append(values[step.value])
                _overwrite(words, step.offset, _load(len(constants) - 1, is_called=bool(step.arg & 1)))
            elif step.value in comparing and behind.name == "IS_OP" and not behind.is_target:
                constants.append(comparing[step.value](bool(behind.arg)))
                load = _load(len(constants) - 1, is_called=False) + _instruction("SWAP", 2) + MATMUL
                _put_all(words, step.offset, steps[at + 2].offset, load)
    return code.replace(co_code=bytes(words), co_consts=tuple(constants))


def with_calls_by(
    code: CodeType, call: Callable[..., Any], variable: Callable[[str], Any], names: AbstractSet[str] | None = None
) -> CodeType:
    """The code with `call(f, a)` in the place of `f(a)` where f is no global and no method.

    Where there are `names`, that of variables of these names alone, and with "[]" among them, of all.

    A method is called with its object where the NULL of any other call is, so the two are one instruction each way. In
    `f(*args)` the NULL has to stay one, and what is called is `variable("f")`. It is done where there is room, which is
    not where a version loads two local variables by one instruction.
    """
    constants = [*_with_inner(code, lambda inner: with_calls_by(inner, call, variable, names)), call]
    steps, words = steps_of(code), bytearray(code.co_code)

    def is_meant(name: str | None) -> bool:
        return names is None or "[]" in names or name in names

    if len(constants) <= MOST_CONSTANTS:
        for at in _calls_of_values(steps):
            if is_meant(_variable_called(steps, at)):
                _put_first(words, steps, at, _instruction("LOAD_CONST", len(constants) - 1))
    unpacking = [at for at in _variables_called(steps) if is_meant(steps[at].value)]
    for at in unpacking[: max(MOST_CONSTANTS - len(constants), 0)]:
        start = steps[at].offset
        words[start : start + UNIT] = _instruction("LOAD_CONST", len(constants))
        constants.append(variable(str(steps[at].value)))
    return code.replace(co_code=bytes(words), co_consts=tuple(constants))


def with_methods_by(
    code: CodeType,
    call: Callable[..., Any],
    find: Callable[[str], Any],
    hook: Callable[[str], Any],
    read: Any,
    modules: AbstractSet[str],
    names: AbstractSet[str] | None = None,
) -> CodeType:
    """The code with `call(x.f, a)` in the place of `x.f(a)`, and `call(g[i], a)` in that of `g[i](a)`.

    What stands for a function of a module is met where it is looked up, so calls of these globals stay as they are.
    The attribute is `find("f") @ x`, a global `read @ "g"`: an operator takes fewer units than a call, and there is
    room for it in the caches of what loaded them. A NULL behind a callee that begins with a global is left out.
    In the place of `x.f(*args)`, whose NULL has to stay one, the callee is `hook("f") @ x`. Where there are `names`,
    that is done for attributes whose names, with a dot before, are among them, and for elements if "[]" is.
    """

    def change(inner: CodeType) -> CodeType:
        return with_methods_by(inner, call, find, hook, read, modules, names)

    constants = [*_with_inner(code, change), call, read]
    by_call, by_read = (_instruction("LOAD_CONST", len(constants) - i) for i in (2, 1))
    steps, words, swap = steps_of(code), bytearray(code.co_code), _instruction("SWAP", 2)
    calls = [at for at in _calls_of_attributes(steps, modules) if names is None or _is_called_by(names, steps, at)]
    for at in calls[: max(MOST_CONSTANTS - len(constants), 0)]:
        is_global, name = steps[at].name == "LOAD_GLOBAL", steps[at].value
        named = _instruction("LOAD_CONST", len(constants))
        constants.append(name if is_global else find(name))
        loads = by_call + by_read + named + MATMUL if is_global else named + swap + MATMUL + by_call + swap
        _put_all(words, steps[at].offset, steps[at + 1].offset, loads)
        if (null := _null_behind(steps, at)) is not None:
            words[steps[null].offset : steps[null].offset + UNIT] = _instruction("NOP", 0)
    unpacking = [at for at in _calls_of_unpacked(steps) if not _is_of(steps, at, modules)]
    unpacking = [at for at in unpacking if names is None or f".{steps[at].value}" in names]
    for at in unpacking[: max(MOST_CONSTANTS - len(constants), 0)]:
        named = _instruction("LOAD_CONST", len(constants))
        constants.append(hook(steps[at].value))
        _put_all(words, steps[at].offset, steps[at + 1].offset, named + swap + MATMUL)
    return code.replace(co_code=bytes(words), co_consts=tuple(constants), co_stacksize=code.co_stacksize + 1)


def _calls_of_unpacked(steps: Sequence[Step]) -> dict[int, int]:
    """The loads of attributes that are called with arguments that are unpacked, each with its call."""
    ends = {at: _end_of_call(steps, at + VERSION.is_null_behind) for at, s in enumerate(steps) if s.name == "LOAD_ATTR"}
    is_unpacked = {at: end for at, end in ends.items() if end is not None and steps[end].name == "CALL_FUNCTION_EX"}
    return {at: end for at, end in is_unpacked.items() if not is_method(steps[at])}


def _calls_of_attributes(steps: Sequence[Step], modules: AbstractSet[str] = frozenset()) -> list[int]:
    """The loads of methods, and of what other callees begin with that has room for a hook, of no modules."""
    ends = {at: _end_of_begun(steps, at) for at in range(len(steps))}
    begun = {*{end: at for at, end in reversed(ends.items()) if end is not None}.values()}  # the first of each call
    return [
        at
        for at, step in enumerate(steps)
        if (is_method(step) and not _is_of(steps, at, modules)) or (at in begun and not _is_in(steps, at, modules))
    ]


def _is_in(steps: Sequence[Step], at: int, modules: AbstractSet[str]) -> bool:
    """Whether a global is one of these modules, or an attribute is of one."""
    return steps[at].value in modules if steps[at].name == "LOAD_GLOBAL" else _is_of(steps, at, modules)


def _is_called_by(names: AbstractSet[str], steps: Sequence[Step], at: int) -> bool:
    """Whether a callee has an attribute of one of these names with a dot before, or is no method and "[]" is one."""
    is_global = steps[at].name == "LOAD_GLOBAL"
    return (not is_method(steps[at]) and "[]" in names) or f".{steps[at + is_global].value}" in names


def _variable_called(steps: Sequence[Step], at: int) -> str | None:
    """The name of the variable whose call has a NULL; None where the callee is none."""
    load = at - 1 if VERSION.is_null_behind else at + 1
    is_variable = steps[load].name in VERSION.local and _end_of_variable(steps, load) is not None
    return steps[load].value if is_variable else None


def _is_of(steps: Sequence[Step], at: int, modules: AbstractSet[str]) -> bool:
    path = _path(steps, at)
    return path is not None and path.how == "LOAD_GLOBAL" and path.root in modules


def _end_of_begun(steps: Sequence[Step], at: int) -> int | None:
    """The call of a callee that begins with a load and goes on, if that has room for a hook; not of `f(*args)`."""
    if VERSION.is_null_behind:
        null = _null_behind(steps, at)
        end = None if null is None else _end_of_call(steps, null)
    elif steps[at].name != "LOAD_GLOBAL" or not steps[at].arg & 1 or _end_of_call(steps, at) is not None:
        return None
    else:
        end = None if steps[at + 1].name in CALLS | CONNECTING else _end_of_null(steps, at, -1)
    return None if end is None or steps[end].name == "CALL_FUNCTION_EX" else end


def _null_behind(steps: Sequence[Step], at: int) -> int | None:
    """The NULL behind a callee that begins with a global or an attribute that an instruction loads, and goes on."""
    step = steps[at]
    is_roomy = (step.name == "LOAD_GLOBAL" and not step.arg & 1) or (step.name == "LOAD_ATTR" and not is_method(step))
    for i, before, after in _levels(steps, at) if VERSION.is_null_behind and is_roomy else ():
        if steps[i].name == "PUSH_NULL" and before == 0 and i > at + 1:  # beside it there is that of another call
            return None if steps[i].is_target else i
        if after < 0:
            return None
    return None


def _put_all(words: bytearray, start: int, end: int, instructions: bytes) -> None:
    """Put instructions in the place of one with its caches, and nothing in that of the rest of it."""
    while start and words[start - UNIT] == dis.EXTENDED_ARG:
        start -= UNIT
    rest = (end - start - len(instructions)) // UNIT
    words[start:end] = instructions + bytes([dis.opmap["NOP"], 0]) * rest


@remembered
def attribute_called_at(code: CodeType, offset: int) -> tuple[Path | None, str] | None:
    """The attribute that an instruction calls, "" for an element of a global, and of what it is if that is known.

    None where it is no such call.
    """
    steps, call = steps_to(code, offset)
    for at in _calls_of_attributes(steps):
        end = _end_of_null(steps, at, -1) if is_method(steps[at]) else _end_of_begun(steps, at)
        if end is not None and call in (end, end - 1) and steps[call].name in CALLS | CALL:
            return (_path(steps, at), str(steps[at].value)) if is_method(steps[at]) else (None, "")
    at = next((at for at, end in _calls_of_unpacked(steps).items() if end == call), None)
    return None if at is None else (_path(steps, at), str(steps[at].value))


@remembered
def calls_values(code: CodeType) -> bool:
    """Whether code, or what is defined in it, calls what is no global and no method."""
    steps = steps_of(code)
    is_calling = any(True for _ in _calls_of_values(steps)) or bool(_variables_called(steps))
    return is_calling or any(map(calls_values, _inner(code)))


def _with_inner(code: CodeType, change: Callable[[CodeType], CodeType]) -> Iterator[Any]:
    return (change(constant) if isinstance(constant, CodeType) else constant for constant in code.co_consts)


def _calls_of_values(steps: Sequence[Step]) -> Iterator[int]:
    """The NULLs beside callees that are no globals, where the call is one of arguments that are not unpacked."""
    for at, step in enumerate(steps):
        if step.name == "PUSH_NULL":
            end = _end_of_call(steps, at) if VERSION.is_null_behind else _end_of_null(steps, at)
            is_plain = end is not None and steps[end].name != "CALL_FUNCTION_EX"
            if is_plain and (not VERSION.is_null_behind or _is_alone(steps, at - 1)):
                yield at


def _variables_called(steps: Sequence[Step]) -> list[int]:
    """The loads of variables that are called with arguments that are unpacked."""
    ends = {at: _end_of_variable(steps, at) for at in range(len(steps)) if _is_alone(steps, at)}
    return [at for at, end in ends.items() if end is not None and steps[end].name == "CALL_FUNCTION_EX"]


def _is_alone(steps: Sequence[Step], at: int) -> bool:
    """Whether an instruction is the load of a variable alone, for which a byte is enough."""
    is_load = steps[at].name in VERSION.local and steps[at].arg < 256
    return is_load and steps[at - 1].offset != steps[at].offset and not steps[at + 1].is_target


def _put_first(words: bytearray, steps: Sequence[Step], at: int, load: bytes) -> None:
    """Load something before a callee in the place of the NULL beside it."""
    null = steps[at].offset
    if VERSION.is_null_behind:
        words[null : null + UNIT] = words[null - UNIT : null]
        null -= UNIT
    words[null : null + UNIT] = load


def _calls_of_globals(steps: Sequence[Step]) -> Iterator[int]:
    """The loads of globals that are called, but for those with a result that is called at once."""
    for at, step in enumerate(steps):
        if step.name == "LOAD_GLOBAL" and step.arg & 1 and (end := _end_of_call(steps, at)) is not None:
            beside = steps[end + 1] if VERSION.is_null_behind else steps[max(at - 1, 0)]
            if beside.name != "PUSH_NULL":
                yield at


def _end_of_call(steps: Sequence[Step], at: int) -> int | None:
    """The call of what an instruction loads beside a NULL; None where that is part of a callee, or cannot be told.

    It is the callee if nothing takes it from the stack before: where it is on top, only what pushes another value
    follows, and what makes the stack so low again pushes none.
    """
    for i, before, after in _levels(steps, at):
        name = steps[i].name
        if name in CALLS and after == -1:
            return i
        is_taken = not _only_pushes(steps[i]) if before == 0 else after == 0 and not name.startswith(PUSHING_NOTHING)
        if is_taken or after < 0:
            return None
    return None


def _end_of_null(steps: Sequence[Step], at: int, level: int = 0) -> int | None:
    """The call that takes a NULL which was pushed before the callee; after it the stack is at most so much higher."""
    return next((i for i, _, after in _levels(steps, at) if after <= level and steps[i].name in CALLS), None)


def _levels(steps: Sequence[Step], at: int) -> Iterator[tuple[int, int, int]]:
    """The instructions behind one, with by how much the stack is higher before and after each."""
    level, targets = 0, dict[int, int]()
    for i in range(at + 1, len(steps)):
        step = steps[i]
        before = targets.get(step.offset, level)
        level = before + step.effect
        yield i, before, level
        if dis.opmap[step.name] in dis.hasjrel:
            targets[step.value] = before + dis.stack_effect(dis.opmap[step.name], step.arg, jump=True)


def _only_pushes(step: Step) -> bool:
    """Whether an instruction takes nothing from the stack, or is part of a call."""
    is_load = step.name.startswith("LOAD_") and step.name not in TAKING
    return is_load or step.name in CONNECTING or (step.name.startswith("BUILD_") and step.arg == 0)


def _load(constant: int, *, is_called: bool) -> bytes:
    """The instructions that load a constant, beside a NULL if it is called."""
    load, null = _instruction("LOAD_CONST", constant), _instruction("PUSH_NULL", 0) if is_called else b""
    return load + null if VERSION.is_null_behind else null + load


def _instruction(name: str, arg: int) -> bytes:
    prefix = _instruction("EXTENDED_ARG", arg >> 8) if arg > 255 else b""
    return prefix + bytes([dis.opmap[name], arg & 255])


def _overwrite(words: bytearray, start: int, load: bytes) -> None:
    """Put instructions in the place of the load of a global, and nothing in that of the rest of it."""
    end = start + UNIT * (1 + VERSION.caches)
    while start and words[start - UNIT] == dis.EXTENDED_ARG:
        start -= UNIT
    rest = (end - start - len(load)) // UNIT
    words[start:end] = load + bytes([dis.opmap["NOP"], 0]) * rest


# ---- instructions ----------------------------------------------------------------------------------------------------


@remembered
def steps_of(code: CodeType) -> tuple[Step, ...]:
    """The instructions of a code object."""
    cells = {*code.co_cellvars, *code.co_freevars} if VERSION.is_cell_local else set[str]()
    line, steps = code.co_firstlineno, list[Step]()
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        line = line if positions is None or positions.lineno is None else positions.lineno
        steps += [_with_cells(step, cells) for step in _steps(instruction, line)]
    return tuple(steps)


def _with_cells(step: Step, cells: set[str]) -> Step:
    return step._replace(name="LOAD_CLOSURE") if step.name == "LOAD_FAST" and step.value in cells else step


def _steps(instruction: dis.Instruction, line: int) -> Iterator[Step]:
    name, offset, is_target = instruction.opname, instruction.offset, instruction.is_jump_target
    if name in VERSION.pairs:
        for part, variable in zip(VERSION.pairs[name], instruction.argval, strict=True):
            yield Step(offset, part, 0, variable, is_target, dis.stack_effect(dis.opmap[part], 0), line)
            is_target = False
    elif name != "EXTENDED_ARG":
        value = instruction.argrepr if name == "BINARY_OP" else instruction.argval
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        yield Step(offset, name, instruction.arg or 0, value, is_target, effect, line)


def place_at(code: CodeType, offset: int) -> tuple[int, int] | None:
    """The line and column where an instruction comes from; None where that is not known."""
    width = len(code.co_code) // sum(1 for _ in code.co_positions())
    line, _, column, _ = next(islice(code.co_positions(), offset // width, None))
    return None if line is None or column is None else (line, column)


def steps_to(code: CodeType, offset: int) -> tuple[Sequence[Step], int]:
    """The instructions, and the number of the one at an offset, or whose inline cache is there."""
    steps = steps_of(code)
    return steps, bisect_right(steps, offset, key=lambda step: step.offset) - 1


@remembered
def name_at(code: CodeType, offset: int) -> str:
    """The name of the instruction at an offset."""
    steps, at = steps_to(code, offset)
    return steps[at].name


@remembered
def lookup_at(code: CodeType, offset: int) -> Lookup | None:
    """The attribute that an instruction may load, and of what; None if it loads none, or that cannot be told."""
    steps, at = steps_to(code, offset)
    step = steps[at]
    if step.name in CALL:
        return _called(steps, at)
    owner = _path(steps, at) if step.name in ATTRIBUTE else None
    owner = _imported(steps, at) if step.name == "IMPORT_FROM" else owner
    return None if owner is None else Lookup(owner, str(step.value), is_called=is_callee_at(code, offset))


@remembered
def is_callee_at(code: CodeType, offset: int) -> bool:
    """Whether an instruction loads an attribute that is called: a method, or what stands beside a NULL."""
    steps, at = steps_to(code, offset)
    step, behind = steps[at], steps[at + 1].name
    if step.name not in ATTRIBUTE:
        return False
    if is_method(step):
        return True
    if VERSION.is_null_behind:
        return behind == "PUSH_NULL"
    first = next(i for i in range(at - 1, -1, -1) if steps[i].name not in ATTRIBUTE)
    has_null = steps[first].name == "LOAD_GLOBAL" and bool(steps[first].arg & 1)
    return behind not in ATTRIBUTE and (has_null or steps[max(first - 1, 0)].name == "PUSH_NULL")


def is_method(step: Step) -> bool:
    """Whether an instruction loads an attribute as a method that is called."""
    return step.name == "LOAD_METHOD" or (VERSION.is_method_bit and step.name == "LOAD_ATTR" and bool(step.arg & 1))


@remembered
def container_at(code: CodeType, offset: int) -> Path | None:
    """The variable that an instruction indexes; None where that is no variable."""
    steps, at = steps_to(code, offset)
    start: int | None = at
    for _ in range({**VERSION.reads, **VERSION.stores}.get(steps[at].name, 0)):
        start = None if start is None else _start_of_value(steps, start)
    found = None if start in (None, at) else _path(steps, start)
    return None if found is None or found.attributes else found


def _start_of_value(steps: Sequence[Step], end: int) -> int | None:
    """The start of the instructions that push the value on top of the stack; None if they branch."""
    height = 0
    for i in range(end - 1, -1, -1):
        if steps[i].is_target:
            return None
        height += steps[i].effect
        if height >= 1:
            return i if height == 1 else None
    return None


def _path(steps: Sequence[Step], end: int) -> Path | None:
    """The expression whose value is on top of the stack before an instruction, if it is of this form."""
    names: list[str] = []
    for i in range(end - 1, -1, -1):
        if steps[i + 1].is_target:
            return None
        step = steps[i]
        if step.name in VERSION.local or step.name in ("LOAD_GLOBAL", "LOAD_NAME"):
            return Path(step.name, step.value, tuple(reversed(names)))
        if step.name != "LOAD_ATTR" or is_method(step):
            return None
        names.append(step.value)
    return None


def _called(steps: Sequence[Step], at: int) -> Lookup | None:
    """The look-up that a call of two or three arguments is if it is one of `getattr`."""
    count, start = steps[at].arg, at - (steps[at - 1].name == "PRECALL")
    if count not in (2, 3):
        return None
    ends: list[int] = []
    for _ in range(count):
        ends.append(start)
        found = _start_of_value(steps, start)
        if found is None:
            return None
        start = found
    owner, callee = _path(steps, ends[-1]), _path(steps, start - (steps[start - 1].name == "PUSH_NULL"))
    return None if owner is None or callee is None else Lookup(owner, None, callee)


def _imported(steps: Sequence[Step], at: int) -> Path | None:
    """The module that `from module import name` takes names of; None for one that is named by dots."""
    while steps[at].name == "IMPORT_FROM" or steps[at].name.startswith("STORE_"):
        at -= 1
    is_absolute = steps[at].name == "IMPORT_NAME" and steps[at - 2].value in (0, None)
    return Path("IMPORT_NAME", steps[at].value, ()) if is_absolute else None


# ---- values ----------------------------------------------------------------------------------------------------------


def variable(frame: FrameType, how: str, name: str) -> Any:
    """The value that an instruction loads under a name in a frame; None if there is nothing."""
    if how == "LOAD_GLOBAL":
        space = frame.f_globals
        return space[name] if name in space else frame.f_builtins.get(name)
    if how == "IMPORT_NAME":
        return sys.modules.get(name)
    spaces = (frame.f_locals,) if how in VERSION.local else (frame.f_locals, frame.f_globals, frame.f_builtins)
    return next((space[name] for space in spaces if name in space), None)


def attribute(value: Any, name: str) -> Any:
    """An attribute that is just there, in an object or a class of its; None where code of its own decides."""
    if issubclass(type(value), ModuleType):
        return vars(value).get(name)
    is_plain = type(value).__getattribute__ in (object.__getattribute__, type.__getattribute__)
    return inspect.getattr_static(value, name, None) if is_plain else None
