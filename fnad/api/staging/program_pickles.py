"""Programs with their pytrees, pickled as text, arrays and examples of the pytrees."""

from __future__ import annotations

from collections.abc import Sequence
from pickle import PicklingError, UnpicklingError
from typing import Any, NamedTuple

from fnad.api.staging.leaves import Array, Structure, leaves_of
from fnad.api.staging.stage import Output
from fnad.backends.keys import is_told
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.walk import all_equations
from fnad.placement import on_host
from fnad.version import __version__


class ProgramOfTrees(NamedTuple):
    """A program called `name`; its inputs are the leaves of arguments of these `names`, then captured arrays."""

    name: str
    program: Program
    names: Sequence[str]
    structure: Structure
    output: Output
    captured: Sequence[Array]

    def __reduce__(self) -> Any:
        text, captured = pickled_code(self.name, self.program, self.captured)
        trees = [structure.unflatten(range(structure.num_leaves)) for structure in (self.structure, self.output[0])]
        return _restored, (__version__, self.name, text, [*self.names], *trees, self.output[1:], captured)


def pickled_code(name: str, program: Program, captured: Sequence[Array]) -> tuple[str, list[Array]]:
    """A program as text, and its captured arrays on the host; raise `PicklingError` if it calls user functions."""
    if not all(map(is_told, all_equations(program))):
        raise PicklingError(f"{name} calls functions of this process: leave callbacks out of it")
    return print_program(program), list(map(on_host, captured))


def _restored(
    version: str, name: str, text: str, names: list[str], arguments: Any, result: Any, marks: Any, captured: list[Array]
) -> ProgramOfTrees:
    """The program of a text of this version of fnad; `arguments` and `result` are examples of pytrees."""
    if version != __version__:
        raise UnpicklingError(
            f"fnad {version} pickled {name}, and this process has fnad {__version__}: "
            "install one version on all workers, or use fnad.save"
        )
    structures = [leaves_of((tree,), lambda _: name)[1].children()[0] for tree in (arguments, result)]
    return ProgramOfTrees(name, parse_program(text), names, structures[0], Output(structures[1], *marks), captured)
