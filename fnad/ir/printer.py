"""The text of a program, in the grammar of `fnad.ir.program`.

Values are named a, b, …, z, aa, … in the order of their definition, in each region anew; inputs may have names of their
own. `print_annotated` adds, as comments, the user's lines that the equations come from; both texts parse back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, product
from typing import TYPE_CHECKING, TypeAlias

from fnad.ir.constant import static_text

if TYPE_CHECKING:
    from fnad.ir.program import Atom, Equation, Program, Var

Names: TypeAlias = "Mapping[Var, str]"
Remarks: TypeAlias = "Callable[[Iterable[Equation]], Iterator[str | None]]"

LETTERS = "abcdefghijklmnopqrstuvwxyz"

RESERVED = frozenset({"return", "inf", "nan"})
"""Words that cannot name a value."""

WIDTH = 100
"""The length up to which a signature stays on one line."""


def print_program(program: Program) -> str:
    """The text of a program.

    >>> from fnad.ir.builder import trace
    >>> from fnad.ir.types import F64, Aval
    >>> print(print_program(trace(lambda x: [x], Aval(F64, (3,)), name="same")))
    same(a: f64[3]) -> f64[3] {
      return a
    }
    """
    return "\n".join(_program_lines(program, _no_remarks))


def print_annotated(program: Program, inputs: Sequence[str] = ()) -> str:
    """The text of a program with the user's source lines as comments; the first inputs have these names."""
    return "\n".join(_program_lines(program, _sources, inputs))


def print_equation(equation: Equation, names: Names) -> str:
    """The text of one equation, its regions included."""
    return "\n".join(_equation_lines(equation, names, _no_remarks))


# ---- names -------------------------------------------------------------------------------------------------------


def name_values(program: Program, inputs: Sequence[str] = ()) -> dict[Var, str]:
    """The name of every value of a program, without those of its regions; the first inputs have the names given."""
    defined = [*program.inputs, *(var for equation in program.equations for var in equation.results)]
    free = (name for name in names_in_order() if name not in inputs)
    return dict(zip(dict.fromkeys(defined), chain(inputs, free)))  # noqa: B905 the names do not end


def names_in_order() -> Iterator[str]:
    """The names a, b, …, z, aa, ab, … without the reserved words."""
    for length in count(1):
        for letters in product(LETTERS, repeat=length):
            if (name := "".join(letters)) not in RESERVED:
                yield name


# ---- lines -------------------------------------------------------------------------------------------------------


def _program_lines(program: Program, remarks: Remarks, inputs: Sequence[str] = ()) -> Iterator[str]:
    names = name_values(program, inputs)
    yield from _signature(program, names)
    for equation, remark in zip(program.equations, remarks(program.equations), strict=True):
        if remark is not None:
            yield f"  # {remark}"
        yield from _indented(_equation_lines(equation, names, remarks))
    yield f"  return {_atoms(program.outputs, names)}".rstrip()
    yield "}"


def _signature(program: Program, names: Names) -> Iterator[str]:
    name = program.name if program.name.isidentifier() and program.name.isascii() else static_text(program.name)
    inputs = _typed(program.inputs, names)
    outputs = f"-> {', '.join(map(str, program.out_avals))} {{".replace("  ", " ")
    line = f"{name}({', '.join(inputs)}) {outputs}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{name}("
    yield from (f"    {text}," for text in inputs)
    yield f") {outputs}"


def _equation_lines(equation: Equation, names: Names, remarks: Remarks) -> Iterator[str]:
    call = f"{equation.primitive.name}({_atoms(equation.operands, names)})"
    params = [f"{name}={static_text(value)}" for name, value in equation.params.items()]
    results = ", ".join(_typed(equation.results, names))
    line = " ".join([results, "=", call, *params]).lstrip()
    yield f"{line} {{" if equation.regions else line
    for region in equation.regions:
        yield from _indented(_program_lines(region, remarks))
    if equation.regions:
        yield "}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _typed(variables: Iterable[Var], names: Names) -> list[str]:
    return [f"{names[var]}: {var.aval}" for var in variables]


def _atoms(atoms: Iterable[Atom], names: Names) -> str:
    return ", ".join(str(names.get(atom, atom)) for atom in atoms)  # type: ignore[arg-type]


# ---- remarks -----------------------------------------------------------------------------------------------------


def _no_remarks(equations: Iterable[Equation]) -> Iterator[str | None]:
    return (None for _ in equations)


def _sources(equations: Iterable[Equation]) -> Iterator[str | None]:
    """The source of each equation where it differs from that of the equation before."""
    before = None
    for equation in equations:
        source = equation.source
        yield str(source) if source is not None and source != before else None
        before = source or before
