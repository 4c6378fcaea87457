"""The rules of the IR, checked, so that a pass that breaks one is found at once and not by a wrong result.

Each value is defined once and before its use; operands, params and regions are what the primitive takes; results have
the avals that inference gives; constants are NumPy scalars; regions are closed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from fnad.errors import FnadError, VerificationError
from fnad.ir.constant import static_text
from fnad.ir.primitive import Primitive
from fnad.ir.printer import Names, name_values, print_equation
from fnad.ir.program import Atom, Equation, Params, Program, Var, keywords
from fnad.ir.types import Aval

INFERENCE_ERRORS = (FnadError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of an inference rule on operands and params that it does not take."""


def verify(program: Program) -> None:
    """Raise `VerificationError` at the first equation that breaks a rule of the IR.

    >>> from fnad.ir.program import Program, Var
    >>> from fnad.ir.types import F64, Aval
    >>> x, y = Var(Aval(F64)), Var(Aval(F64))
    >>> verify(Program("same", (x,), (), (x,)))
    >>> verify(Program("undefined", (x,), (), (y,)))
    Traceback (most recent call last):
    fnad.errors.VerificationError: undefined: ...
    """
    for fault in _redefined(program.inputs, set()):
        raise VerificationError(f"{program.name}: {fault} among its inputs")
    defined = set(program.inputs)
    for equation in program.equations:
        for fault in _faults(equation, defined):
            text = _shown(equation, name_values(program))
            raise VerificationError(f"{program.name}: {fault}\n  in {text}", source=equation.source)
        defined.update(equation.results)
    for fault in _atom_faults("output", program.outputs, defined):
        raise VerificationError(f"{program.name}: {fault}")


def _shown(equation: Equation, names: Names) -> str:
    try:
        return print_equation(equation, names)
    except INFERENCE_ERRORS:  # a param or a constant that has no text
        return f"an equation of {equation.primitive.name}"


def infer_results(
    primitive: Primitive, avals: Sequence[Aval], params: Params, regions: tuple[Program, ...] = ()
) -> tuple[Aval, ...]:
    """The avals of the results; raises one of `INFERENCE_ERRORS` if the primitive does not take these operands."""
    given = keywords(params, regions)
    _signature(primitive.infer).bind(*avals, **given)
    inferred = primitive.infer(*avals, **given)
    return inferred if isinstance(inferred, tuple) else (inferred,)


@cache
def _signature(infer: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(infer)


# ---- one equation ------------------------------------------------------------------------------------------------


def _faults(equation: Equation, defined: set[Var]) -> Iterator[str]:
    yield from _atom_faults("operand", equation.operands, defined)
    yield from _redefined(equation.results, defined)
    yield from _param_faults(equation.params)
    for region in equation.regions:
        verify(region)
    yield from _inference_faults(equation)


def _atom_faults(role: str, atoms: Iterable[Atom], defined: set[Var]) -> Iterator[str]:
    for position, atom in enumerate(atoms):
        if isinstance(atom, Var):
            if atom not in defined:
                yield f"{role} {position} is not defined before its use"
        elif not isinstance(atom.value, np.generic):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield f"{role} {position} is a constant of type {type(atom.value).__name__}, not a NumPy scalar"


def _redefined(variables: Iterable[Var], defined: set[Var]) -> Iterator[str]:
    seen: set[Var] = set()
    for var in variables:
        if var in defined or var in seen:
            yield f"a value of aval {var.aval} is defined twice"
        seen.add(var)


def _param_faults(params: Params) -> Iterator[str]:
    for name, value in params.items():
        try:
            static_text(value)
        except INFERENCE_ERRORS as error:
            yield f"param {name}: {error}"


def _inference_faults(equation: Equation) -> Iterator[str]:
    declared = tuple(var.aval for var in equation.results)
    try:
        avals = [atom.aval for atom in equation.operands]
        inferred = infer_results(equation.primitive, avals, equation.params, equation.regions)
    except INFERENCE_ERRORS as error:
        yield f"{equation.primitive.name} does not take this: {error}"
        return
    if inferred != declared:
        yield f"{', '.join(map(str, declared))} is declared where inference gives {', '.join(map(str, inferred))}"
