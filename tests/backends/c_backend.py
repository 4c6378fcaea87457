"""A small backend: programs as the C source of exports, compiled by gcc."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fnad.backends.base import Array, CallBefore
from fnad.backends.standalone import c_source
from fnad.backends.standalone.program import Standalone, lowered, standalone
from fnad.ir.program import Program
from fnad.kernel.plan import Plan

FLAGS = "-O2", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-lm"


class Executor:
    """The shared library of a program, which is called with the addresses of arrays."""

    is_alone = is_loaded = False
    functions: Sequence[Any] = ()
    workspace_bytes = 0

    def __init__(self, program: Standalone) -> None:
        self.results = [(result.aval.shape, result.aval.dtype) for result in program.results]
        self.faults = program.faults
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "program.c"), Path(folder, "program.so")
            source.write_text(c_source.source(program), encoding="utf-8")
            Path(folder, f"{program.name}.h").write_text(c_source.header(program), encoding="utf-8")
            subprocess.run(["gcc", str(source), "-o", str(library), *FLAGS], check=True)
            self.nbytes = library.stat().st_size
            self.run = getattr(ctypes.CDLL(str(library)), program.name)
        self.run.restype = ctypes.c_int64

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        given = [np.require(argument, None, "CA") for argument in arguments]
        results = [np.empty(shape, dtype) for shape, dtype in self.results]
        if status := self.run(*(ctypes.c_void_p(array.ctypes.data) for array in (*given, *results))):
            raise self.faults[status - 1].error
        return results

    def direct(self, before: CallBefore) -> None:
        """None: each call goes through Python."""

    def free_workspaces(self) -> int:
        return 0


def compiled_ahead(program: Program) -> Standalone:
    arguments = [f"x{n}" for n, _ in enumerate(program.inputs)]
    variant = lowered(program, "program", len(arguments), (), with_blas=False)
    return standalone("program", arguments, [f"out{n}" for n, _ in enumerate(program.outputs)], [variant])


def plan(program: Program) -> Plan:
    return compiled_ahead(program).variants[0].plan


def compile_program(program: Program, donated: Sequence[int] = ()) -> Executor:
    """Compile a program; no result takes the memory of an argument."""
    return Executor(compiled_ahead(program))


def kept(key: str) -> None:
    """None: nothing is kept on disk."""


def keep(key: str, native: Executor) -> None:
    """Nothing."""


def offers() -> Iterator[tuple[str, str]]:
    yield "compiler", "gcc"
