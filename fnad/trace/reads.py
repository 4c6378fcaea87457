"""Which names a code object reads: globals, attributes, modules.

A name may be used without its value having any say in what the code computes: `calls.append(x)`, `count += 1`. Programs
are often watched in this way, and such names are told apart.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from dis import Instruction
from types import CodeType
from typing import NamedTuple

from fnad.codes import remembered

LOAD = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IMPORT_FROM"}
ASKING = {"getattr", "hasattr", "vars", "dir", "attrgetter", "methodcaller", "__dict__", "__getattribute__"}
EVALUATION = {"globals", "eval", "exec"}
"""Through these a name of a module may be read that stands nowhere in the code."""
REFLECTION = ASKING | EVALUATION
IMPORTING = {"__import__", "import_module", "modules"}


class Reads(NamedTuple):
    """The names a code object reads or writes.

    `extended` are globals and free variables it only appends to, `counted` those it only counts up. `modules` are
    those it imports, each with the number of leading dots. `strings` are those of its constants that look like names;
    `reflects` says that it may ask for names by strings. `handles` says that it goes on after some exception, so
    that it may be seen there whether an attribute is missing. `evaluated` has the lines that may read any name.
    """

    names: frozenset[str]
    extended: frozenset[str]
    counted: frozenset[str]
    attributes: frozenset[str]
    strings: frozenset[str]
    modules: tuple[tuple[int, str], ...]
    reflects: bool
    handles: bool
    evaluated: tuple[int, ...]


@remembered
def reads_of(code: CodeType) -> Reads:
    """Return what a code object reads; functions defined in it have code objects of their own."""
    steps = list(dis.get_instructions(code))
    global_names = frozenset(step.argval for step in steps if step.opname in GLOBAL and step.argval.isidentifier())
    attributes = frozenset(step.argval for step in steps if step.opname in ATTRIBUTE)
    used = global_names | attributes
    matched = [steps[i - 1].argval for i, step in enumerate(steps) if step.opname == "MATCH_CLASS"]
    reflects = bool(matched) or not REFLECTION.isdisjoint(used)
    strings = frozenset(c for c in code.co_consts if isinstance(c, str) and c.isidentifier()).union(*matched)
    evaluated = tuple(line for line, step in _lines(steps) if step.opname in GLOBAL and step.argval in EVALUATION)
    extended, counted = _only(steps, _extends), _only(steps, _counts)
    imports = [i for i, step in enumerate(steps) if step.opname == "IMPORT_NAME"]
    modules = [(steps[i - 2].argval or 0, steps[i].argval) for i in imports]
    modules += [(0, name) for name in _dotted(code) if not IMPORTING.isdisjoint(used)]
    handles = bool(code.co_exceptiontable)
    return Reads(global_names, extended, counted, attributes, strings, tuple(modules), reflects, handles, evaluated)


def _lines(steps: Sequence[Instruction]) -> list[tuple[int, Instruction]]:
    return [(step.positions.lineno or 0, step) for step in steps if step.positions is not None]


def _dotted(code: CodeType) -> Iterator[str]:
    """Yield the strings that may be names of modules."""
    return (c for c in code.co_consts if isinstance(c, str) and c and all(map(str.isidentifier, c.split("."))))


# ---- names whose values have no say ---------------------------------------------------------------------------------


def _only(steps: Sequence[Instruction], used: Callable[[Sequence[Instruction], int], bool]) -> frozenset[str]:
    """Return the names whose loads are all `used` in this way."""
    loads = [i for i, step in enumerate(steps) if step.opname in LOAD]
    return frozenset(steps[i].argval for i in loads) - {steps[i].argval for i in loads if not used(steps, i)}


def _extends(steps: Sequence[Instruction], load: int) -> bool:
    following = steps[load + 1]
    return following.opname in ("LOAD_METHOD", "LOAD_ATTR") and following.argval in ("append", "add")


def _counts(steps: Sequence[Instruction], load: int) -> bool:
    constant, operation, store = [*steps[load + 1 : load + 4], *[steps[load]] * 3][:3]
    return (
        constant.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
        and operation.opname == "BINARY_OP"
        and store.opname in ("STORE_GLOBAL", "STORE_DEREF")
        and store.argval == steps[load].argval
    )
