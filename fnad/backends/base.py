"""What every backend makes of a program: an executor. And which backends there are, by name.

An executor takes a list of arrays, one for each input of the program, and returns a list of arrays, one for each
output. Arguments have exactly the inputs' dtypes, in native byte order, and shapes; their strides, alignment and
writability are whatever the caller's are, and the executor never writes to them. Results have exactly the outputs'
dtypes and shapes, a 0-d array where the shape is []; each is fresh: it shares memory with no argument, no other result
and nothing the executor keeps. An executor may be called from several threads at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from fnad import config
from fnad.ir.program import Program

if TYPE_CHECKING:
    from fnad.lower.loop_ir import LoopProgram  # not before a program is compiled

Array: TypeAlias = "np.ndarray[Any, Any]"
Executor: TypeAlias = Callable[[Sequence[Array]], list[Array]]


class Native(Protocol):
    """An executor of native code, with workspaces: arrays for temporaries that are at hand for its next call."""

    def __call__(self, arguments: Sequence[Array], /) -> list[Array]: ...

    @property
    def nbytes(self) -> int:
        """The memory that the code takes, about."""
        ...

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspaces that no call has."""
        ...

    def free_workspaces(self) -> int:
        """Free them; return how many bytes that is."""
        ...

    @property
    def functions(self) -> Sequence[Any]:
        """The native functions; none where there is nothing to compute."""
        ...

    def llvm(self) -> str:
        """Return the optimised LLVM IR of all native functions."""
        ...

    def asm(self) -> str:
        """Return the assembly of all native functions."""
        ...


class Planned(Protocol):
    """A program on its way to native code: as loop nests, and as the source that is compiled."""

    @property
    def loops(self) -> LoopProgram: ...

    @property
    def source(self) -> str: ...


class Compiler(Protocol):
    """What the module of a backend offers."""

    def plan(self, program: Program) -> Planned:
        """Lower a program and write its source."""
        ...

    def compile_program(self, program: Program, donated: Sequence[int] = ()) -> Native:
        """Return native code; it may put results into the memory of the inputs at the positions `donated`."""
        ...

    def offers(self) -> Iterator[tuple[str, str]]:
        """Yield what the machine offers to compiled programs, and what it is called."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend by the name of its module, which is imported when the first program is compiled.

    Compiling is expected to take `setup` seconds where the module is not loaded yet, `program` for any program and
    `equation` for each of its equations, as measured on one core; a factor of two in it hardly matters.
    """

    module: str
    setup: float
    program: float
    equation: float

    @property
    def compiler(self) -> Compiler:
        """The module, imported now if it was not; raises `ImportError` where the machine lacks what it needs."""
        return cast("Compiler", import_module(self.module))

    def expected_cost(self, equations: int) -> float:
        """Return the seconds that compiling a program of so many equations is expected to take."""
        setup = 0.0 if self.module in sys.modules else self.setup
        return setup + self.program + self.equation * equations


BACKENDS: dict[config.BackendName, Backend] = {
    "cpu": Backend("fnad.backends.numba.executor", setup=0.2, program=0.04, equation=0.0015),
}


def current_backend() -> Backend:
    """Return the backend that the settings name."""
    return BACKENDS[config.current().backend]
