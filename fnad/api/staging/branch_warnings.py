"""Warnings where the derivative of the path that Python took is hardly what was meant.

A branch that is taken at one point only, `if x == 0:`, has a derivative of its own, which need not be that of the
function there. The text of a number, `f"{x:.2f}"`, is constant in a derivative. And a loop without an iteration, as
Newton's method does where its first guess is right, leaves a result in which its argument does not occur: the program's
derivative is 0, that of the solution is not. A `while_loop` that takes no step from a known start is such a loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from fnad.api.staging.leaves import Function, function_name
from fnad.api.staging.stage import Staged
from fnad.errors import ControlFlowWarning
from fnad.ir.program import Atom, Program, Source, Var
from fnad.ir.walk import between
from fnad.ops.comparison import eq, ne
from fnad.ops.floating_point import bits
from fnad.trace.capture import Guard
from fnad.trace.source import ends_loop, is_in_loop
from fnad.transforms.activity import active_vars

_shown: dict[str | tuple[str, type[Warning], int], int] = {}
"""The warnings given so far, in the way of Python's own: each is given once for a line."""


def check_decisions(f: Function, staged: Staged, name: Callable[[int], str]) -> None:
    """Warn of what Python decided by the leaves that a function is differentiated in; errors call leaf i `name(i)`."""
    guards = [guard for guard in staged.guards if guard.is_own]
    if guards:
        _check_equalities(staged, guards)
        _check_dependence(f, staged, guards, name)


def _check_equalities(staged: Staged, guards: Sequence[Guard]) -> None:
    active = active_vars(staged.program, staged.wrt)
    definitions = {var: equation for equation in staged.program.equations for var in equation.results}
    for guard in guards:
        equation = definitions.get(guard.atom) if isinstance(guard.atom, Var) else None
        if equation is None or guard.of_loop or ends_loop(guard.source) or not active.intersection(equation.operands):
            continue
        if equation.primitive is bits:
            _warn(
                guard.source,
                "the text of a number is constant in a derivative, and so is what is computed from it",
                "write a text that is only shown in the arguments of print or a logger; else compute with the number",
            )
        elif equation.primitive is (eq if guard.expected else ne):
            _warn(
                guard.source,
                "a derivative is taken where two floats are equal, and is that of the branch for this point alone",
                "decide by an inequality, or give the branch the derivative that the function has there",
            )


def _check_dependence(f: Function, staged: Staged, guards: Sequence[Guard], name: Callable[[int], str]) -> None:
    """Warn of leaves that decide on the iterations of a loop, and have no part in the output otherwise."""
    program = staged.program
    used = ancestors(program, program.outputs[: staged.outputs])
    unused = [i for i in range(staged.leaves) if program.inputs[i] not in used]
    dependent = descendants(program, [program.inputs[i] for i in unused])
    guard = next((g for g in guards if g.atom in dependent and (g.of_loop or is_in_loop(g.source))), None)
    if guard is not None:
        deciding = ancestors(program, [guard.atom])
        names = " and ".join(name(i) for i in unused if program.inputs[i] in deciding)
        _warn(
            guard.source,
            f"{function_name(f)} depends on {names} through control flow only: its derivative is 0",
            "if the loop comes closer to a solution, differentiate that: fnad.fixed_point, fnad.root",
        )


def ancestors(program: Program, atoms: Sequence[Atom]) -> set[Atom]:
    """The atoms that some of a program depend on, with themselves."""
    return {*atoms}.union(*(equation.operands for equation in between(program, program.inputs, atoms).equations))


def descendants(program: Program, atoms: Sequence[Atom]) -> set[Atom]:
    """The atoms of a program that depend on some, with themselves."""
    found = set(atoms)
    if found:
        for equation in program.equations:
            if not found.isdisjoint(equation.operands):
                found.update(equation.results)
    return found


def _warn(source: Source | None, what: str, remedy: str) -> None:
    file, line = (source.file, source.line) if source is not None else ("<unknown>", 1)
    text = f"{what}\n  at {source}\n  {remedy}"
    warnings.warn_explicit(text, ControlFlowWarning, file, line, registry=_shown)
