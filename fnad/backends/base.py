"""Executors, which every backend makes of programs, and the table of backends by name.

An executor takes a list of arrays, one for each input of the program, and returns a list of arrays, one for each
output. Arguments have exactly the inputs' dtypes, in native byte order, and shapes; their strides, alignment and
writability are whatever the caller's are, and the executor never writes to them. Results have exactly the outputs'
dtypes and shapes, a 0-d array where the shape is []; each is fresh: it shares memory with no argument, no other result
and nothing that the executor retains. An executor may be called from several threads at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from fnad import config
from fnad.ir.program import Program

if TYPE_CHECKING:
    from fnad.lower.loop_ir import LoopProgram  # not before a program is compiled
    from fnad.lower.nodes import Buffer

Array: TypeAlias = "np.ndarray[Any, Any]"
Executor: TypeAlias = Callable[[Sequence[Array]], list[Array]]


ANOTHER: Any = object()
"""The result of a direct call whose arguments are unlike those before."""


class TreeShape(NamedTuple):
    """A pytree without its leaves: the class of the container, None for a leaf; what is in it; the keys of a dict."""

    kind: type | None
    children: tuple[TreeShape, ...] = ()
    keys: tuple[Any, ...] = ()


class CallBefore(NamedTuple):
    """A call of a compiled function, to be made again while `conditions` hold.

    The leaves of its arguments, the pytree that they are in, and what the program takes beside them; the pytree of its
    results, of which those at `arrays` are arrays also without dimensions.
    """

    values: Sequence[Any]
    arguments: TreeShape
    captured: Sequence[Array]
    results: TreeShape
    arrays: frozenset[int]
    conditions: Sequence[tuple[Any, ...]]


class Native(Protocol):
    """An executor of native code, with workspaces: arrays for temporaries that are kept for its next call."""

    def __call__(self, arguments: Sequence[Array], /) -> list[Array]: ...

    @property
    def nbytes(self) -> int:
        """The approximate memory of the code, in bytes."""
        ...

    @property
    def is_alone(self) -> bool:
        """True if code was compiled for it that runs no program of other sizes."""
        ...

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspaces not in use, in bytes."""
        ...

    def free_workspaces(self) -> int:
        """Free these workspaces; return the number of bytes freed."""
        ...

    @property
    def is_loaded(self) -> bool:
        """True if it was loaded from disk, so that there is nothing to look into."""
        ...

    @property
    def functions(self) -> Sequence[Any]:
        """The native functions; none if there is nothing to compute."""
        ...

    def direct(self, before: CallBefore) -> Callable[..., Any] | None:
        """A function from the arguments of a call like the one before to its results, or to `ANOTHER`; or None."""
        ...

    def llvm(self) -> str:
        """The optimised LLVM IR of all native functions."""
        ...

    def asm(self) -> str:
        """The assembly of all native functions."""
        ...


class Planned(Protocol):
    """A program before compilation: its loop nests, and the source that is compiled."""

    @property
    def loops(self) -> LoopProgram: ...

    @property
    def places(self) -> Mapping[Buffer, str]:
        """The buffers that need memory, and the name of the array of each."""
        ...

    @property
    def source(self) -> str: ...

    @property
    def nbytes(self) -> int:
        """The memory of inputs, outputs and temporaries, in bytes; residual stacks not counted."""
        ...


class Compiler(Protocol):
    """The interface of a backend's module."""

    def plan(self, program: Program) -> Planned:
        """Lower a program and write its source."""
        ...

    def compile_program(self, program: Program, donated: Sequence[int] = ()) -> Native:
        """Compile a program; results may be written to the memory of the inputs at the positions `donated`."""
        ...

    def kept(self, key: str) -> Native | None:
        """The native code of an earlier process, by its key on disk."""
        ...

    def keep(self, key: str, native: Any) -> None:
        """Keep what was compiled on disk."""
        ...

    def offers(self) -> Iterator[tuple[str, str]]:
        """The features of this machine that compiled programs use, as pairs of a label and a description."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend by the name of its module, which is imported when the first program is compiled.

    Compiling is expected to take `setup` seconds if the module is not loaded yet, `program` for any program, `equation`
    for each of its equations and `loop` for each that has loops of its own; or only `lowered` for each equation where
    code of other sizes is there for it, as measured on one core; a factor of two hardly matters. What is on disk takes
    `load`, and half of the setup.
    """

    module: str
    setup: float
    program: float
    equation: float
    loop: float = 0.0
    lowered: float = 0.0
    load: float = 0.003

    @property
    def compiler(self) -> Compiler:
        """The module, imported on first use; raises `ImportError` if the machine lacks what it needs."""
        return cast("Compiler", import_module(self.module))

    def expected_cost(self, equations: int, loops: int = 0, *, is_shared: bool = False) -> float:
        """The expected time to compile a program, in seconds, if its code `is_shared` or not.

        It has this many equations, of which so many have `loops` of their own.
        """
        if is_shared:
            return self.lowered * equations
        return self._setup + self.program + self.equation * equations + self.loop * loops

    def expected_load(self) -> float:
        """The expected time to load a program that is on disk, in seconds."""
        return self._setup / 2 + self.load

    @property
    def _setup(self) -> float:
        return 0.0 if self.module in sys.modules else self.setup


BACKENDS: dict[config.DeviceName, Backend] = {
    "cpu": Backend("fnad.backends.cpu.executor", setup=0.1, program=0.02, equation=0.0004, loop=0.012, lowered=0.0002),
    "cuda": Backend("fnad.backends.cuda.executor", setup=0.5, program=0.1, equation=0.0004),
}


STANDALONE = "fnad.backends.standalone.forms"
"""The module of the forms in which programs leave the process."""

PROFILE = "fnad.backends.cpu.profile"
"""The module that samples programs by lines of user code."""


def current_backend() -> Backend:
    """The backend that the settings name."""
    return BACKENDS[config.current().device]
