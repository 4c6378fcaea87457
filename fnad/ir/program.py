"""The intermediate representation: static, typed, single-assignment programs.

    program  ::= name, inputs: [Var], equations: [Equation], outputs: [Var | Literal]
    equation ::= results: [Var], primitive, operands: [Var | Literal], params: {name: static value},
                 regions: [program], source: file, line, function
    Var      ::= aval            (identity is equality; a printed name is made when printing)
    Literal  ::= scalar value    (its aval has shape [])
    aval     ::= dtype, shape    written f64[3,4], i32[], bool[7]
    static value ::= int | float | bool | str | None | dtype | tuple of static values

Regions are programs of their own and are closed: whatever they use from outside is an operand of their equation.

The text form, which `printer` writes and `parser` reads:

    loss(a: f64[3], b: f64[3]) -> f64[] {
      # model.py:3 in loss:  return np.sum(2.0 * np.sin(a) * b)
      c: f64[3] = sin(a)
      d: f64[3] = mul(c, b)
      e: f64[] = reduce_sum(d) axes=(0,)
      f: f64[] = mul(2.0:f64, e)
      return f
    }

    program   ::= name "(" [typed {"," typed}] ")" "->" [aval {"," aval}] "{" {equation} "return" [atom {"," atom}] "}"
    typed     ::= word ":" aval
    equation  ::= [typed {"," typed}] "=" word "(" [atom {"," atom}] ")" {word "=" static} ["{" {program} "}"]
    atom      ::= word | literal
    name      ::= word | string
    aval      ::= dtype "[" [size {"," size}] "]"      size ::= integer | "?"      (the rows of a residual stack)
    literal   ::= number ":" dtype            (without space between; of a float also its bits, in hexadecimal)
    static    ::= number | string | "True" | "False" | "None" | dtype | "(" [static {"," static}] ")"

A list may end in a comma; a comment runs from `#` to the end of its line. Strings are those of JSON. `return`, `inf`
and `nan` name no value. Blanks and line breaks are free, except that params are on the line of what precedes them.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fnad.ir.constant import scalar_text
from fnad.ir.printer import print_program
from fnad.ir.types import Aval, aval_of

if TYPE_CHECKING:
    from fnad.ir.primitive import Primitive

Params: TypeAlias = Mapping[str, Any]


@dataclass(slots=True, eq=False)  # not frozen, as nothing is here that is made for each line traced: that takes longer
class Var:
    """A value: the result of one equation, or an input. Two are equal only when they are the same object."""

    aval: Aval

    def __str__(self) -> str:
        """The text of a value that has no definition."""
        return "?"


class Literal:
    """A scalar constant; its `key` is the constant to the bit: 0.0 and -0.0 differ, a NaN equals itself."""

    __slots__ = ("aval", "key", "value")

    def __init__(self, value: np.generic) -> None:
        self.value = value
        self.aval = aval_of(value)
        self.key: tuple[str, bytes] = value.dtype.char, value.tobytes()

    def __str__(self) -> str:
        return scalar_text(self.value)


Atom: TypeAlias = Var | Literal


LONGEST = 160
"""The most characters shown of a line of user code."""


def shortened(text: str) -> str:
    """A line of user code, cut where it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


@dataclass(frozen=True, slots=True)
class Source:
    """The place in user code of an equation; `mode` names the derivative of that line that the equation is part of."""

    file: str
    line: int
    function: str
    mode: str = field(default="", compare=False)

    def differentiated(self, mode: str) -> Source:
        """The source of what this mode makes of the equations of this one."""
        return Source(self.file, self.line, self.function, f"{mode} of {self.mode}" if self.mode else mode)

    def __str__(self) -> str:
        text = shortened(linecache.getline(self.file, self.line).strip())
        place = f"{self.file.rpartition(os.sep)[2]}:{self.line} in {self.function}"
        return f"{place}:  {text}" if text else place


def keywords(params: Params, regions: tuple[Program, ...]) -> Params:
    """Params, with the regions, if any, as one more."""
    return {**params, "regions": regions} if regions else params


@dataclass(slots=True, eq=False)
class Equation:
    """One application of a primitive."""

    results: tuple[Var, ...]
    primitive: Primitive
    operands: tuple[Atom, ...]
    params: Params = field(default_factory=dict[str, Any])
    regions: tuple[Program, ...] = ()
    source: Source | None = None
    static: Any = field(default=None, init=False, repr=False)
    """Its params as a key, once somebody has asked for that (`fnad.ir.content`)."""

    @property
    def keywords(self) -> Params:
        """The keyword arguments of inference and evaluation."""
        return keywords(self.params, self.regions)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Program:
    """A function from arrays to arrays."""

    name: str
    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    asked: frozenset[Atom] = field(default=frozenset(), repr=False)
    """The values that Python read while they were traced."""
    content: Any = field(default=None, init=False, repr=False)
    """Its `content_key`, once somebody has asked for that."""
    is_live: bool = field(default=False, init=False, repr=False)
    """True if `dce` has found that the outputs need all equations."""
    is_simple: bool = field(default=False, init=False, repr=False)
    """True if `simplify` has found that it changes nothing."""

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        return tuple(var.aval for var in self.inputs)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        return tuple(atom.aval for atom in self.outputs)

    def __str__(self) -> str:
        return print_program(self)

    __repr__ = __str__


class ValueEnvironment:
    """The values of a program's atoms during a walk: `read` operands, `write` results."""

    __slots__ = ("_values",)

    def __init__(self, variables: Iterable[Var] = (), values: Iterable[Any] = ()) -> None:
        self._values: dict[Var, Any] = dict(zip(variables, values, strict=True))

    def read(self, atoms: Iterable[Atom]) -> list[Any]:
        return [atom if isinstance(atom, Literal) else self._values[atom] for atom in atoms]

    def write(self, variables: Iterable[Var], values: Iterable[Any]) -> None:
        self._values.update(zip(variables, values, strict=True))
