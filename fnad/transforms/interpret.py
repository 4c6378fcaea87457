"""Running a program equation by equation with NumPy, which defines its meaning for every backend.

Values live in the numbered slots of one list: arguments first, then constants, then results. A slot is cleared after
its last use, so that no more memory is held than needed. Errors get the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from fnad.blocks import Holding, LocalBlocks
from fnad.errors import FnadError, OutOfRangeError
from fnad.ir.program import Atom, Equation, Literal, Params, Program, Source

NEVER = float("inf")


class Run(Protocol):
    """A program ready to run. Loops that go on after the deadline, a time of `perf_counter`, raise `TimeUpError`."""

    def __call__(self, arguments: Sequence[Any], deadline: float = NEVER) -> list[Any]: ...


IN_RANGE = "the index comes from the arguments: check them, or keep it in range with np.clip(i, 0, n - 1)"


class EquationStep(NamedTuple):
    """One equation: the slots of its operands, of its results, and those that are not read afterwards.

    What has regions `is_limited`: its loops, or those within, have a deadline.
    """

    evaluate: Callable[..., Any]
    is_limited: bool
    operands: tuple[int, ...]
    params: Params
    results: tuple[int, ...]
    dead: tuple[int, ...]
    source: Source | None


def interpret(program: Program, arguments: Sequence[Any], deadline: float = NEVER) -> list[Any]:
    """The outputs of the program on these arrays."""
    return prepare(program)(arguments, deadline)


def prepare(program: Program) -> Run:
    """The function that runs the program; its results may share memory with one another and the arguments."""
    slots, constants = _slots(program)
    steps = _steps(program, slots)
    outputs = [slots[atom] for atom in program.outputs]
    room = [*constants, *[None] * (len(slots) - len(program.inputs) - len(constants))]

    def run(arguments: Sequence[Any], deadline: float = NEVER) -> list[Any]:
        values = [*arguments, *room]
        with np.errstate(all="ignore"):
            _execute(steps, values, deadline)
        return [values[slot] for slot in outputs]

    return run


def region_runner(region: Program) -> Run:
    """`prepare(region)`, made only once, since a region is run many times; or what stands for it, see `regions_by`."""
    runner = _BY.innermost
    if runner is not None:
        return runner(region)
    run = _RUNNERS.get(region)
    if run is None:
        run = _RUNNERS[region] = prepare(region)
    return run


_RUNNERS: WeakKeyDictionary[Program, Run] = WeakKeyDictionary()
_BY: LocalBlocks[Callable[[Program], Run] | None] = LocalBlocks()


def regions_by(runner: Callable[[Program], Run] | None) -> Holding[Callable[[Program], Run] | None]:
    """Have the primitives evaluated in this block run their regions by this function; None is the usual way."""
    return _BY.holding(runner)


class TimeUpError(Exception):
    """A loop exceeded its time limit; it is to be compiled instead."""


def check_time(deadline: float) -> None:
    """Raise `TimeUpError` if the time is up; a loop calls this at each step."""
    if perf_counter() > deadline:
        raise TimeUpError


# ---- steps -----------------------------------------------------------------------------------------------------------


def _execute(steps: Sequence[EquationStep], values: list[Any], deadline: float) -> None:
    for evaluate, is_limited, operands, params, results, dead, source in steps:
        try:
            if is_limited:
                result = evaluate(*[values[slot] for slot in operands], **params, deadline=deadline)
            else:
                result = evaluate(*[values[slot] for slot in operands], **params)
        except OutOfRangeError as error:
            raise error.at(source, IN_RANGE) from None
        except FnadError as error:
            raise error.at(source) from None
        if isinstance(result, tuple):
            for slot, value in zip(results, result, strict=True):
                values[slot] = value
        else:
            values[results[0]] = result
        for slot in dead:
            values[slot] = None


def _slots(program: Program) -> tuple[dict[Atom, int], list[np.generic]]:
    literals = [atom for atom in _read_atoms(program) if isinstance(atom, Literal)]
    results = [var for equation in program.equations for var in equation.results]
    atoms = dict.fromkeys([*program.inputs, *literals, *results])
    return {atom: slot for slot, atom in enumerate(atoms)}, [atom.value for atom in dict.fromkeys(literals)]


def _read_atoms(program: Program) -> Iterable[Atom]:
    for equation in program.equations:
        yield from equation.operands
    yield from program.outputs


def _steps(program: Program, slots: dict[Atom, int]) -> list[EquationStep]:
    read = set(program.outputs)
    steps: list[EquationStep] = []
    for equation in reversed(program.equations):
        last = {atom for atom in (*equation.operands, *equation.results) if atom not in read}
        read |= last
        steps.append(_step(equation, slots, tuple(slots[atom] for atom in last)))
    return steps[::-1]


def _step(equation: Equation, slots: dict[Atom, int], dead: tuple[int, ...]) -> EquationStep:
    operands = tuple(slots[atom] for atom in equation.operands)
    results = tuple(slots[var] for var in equation.results)
    return EquationStep(
        equation.primitive.evaluate, bool(equation.regions), operands, equation.keywords, results, dead, equation.source
    )
