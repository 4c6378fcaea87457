"""Emitted source to native code: Numba types and lowers it, LLVM optimises it, an entry of its own calls it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock

from fnad.backends.numba import runtime
from fnad.backends.numba.entry import add_entry
from fnad.backends.numba.loader import load
from fnad.backends.numba.operation import Builder, Dtype, Pointer, Value
from fnad.backends.numba.target import Library, Pipeline, Target, Typing, flags, numba_type


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A compiled program.

    `call(*arrays)` runs it, without the GIL, on as many arrays as it has parameters, contiguous and of their dtypes; it
    checks none of this.
    """

    source: str
    name: str
    parameters: tuple[Dtype, ...]
    call: Callable[..., None]

    def llvm(self) -> str:
        """Return the optimised LLVM IR; it is made anew, for the code alone is kept."""
        return self._text(Library.get_llvm_str)

    def asm(self) -> str:
        """Return the assembly text, made anew likewise."""
        return self._text(Library.get_asm_str)

    def _text(self, write: Callable[[Library], str]) -> str:
        with global_compiler_lock:
            library, symbol = translate(self.source, self.name, self.parameters)
            library.finalize()
            return write(library).replace(symbol, self.name)


def compile_source(source: str, name: str, parameters: Sequence[Dtype]) -> NativeFunction:
    r"""Compile the function `name` of emitted `source`, whose parameters are flat arrays of these dtypes.

    The source is in the language of `runtime`; an operand of another dtype than its operation takes is an OperandError.

    >>> source = "def double(x, out):\n    for i in range(3):\n        out[i] = x[i] + x[i]"
    >>> function = compile_source(source, "double", [np.dtype("f8")] * 2)
    >>> out = np.empty(3)
    >>> function.call(np.arange(3.0), out)
    >>> out
    array([0., 2., 4.])
    """
    dtypes = tuple(np.dtype(dtype) for dtype in parameters)
    with global_compiler_lock, garbage_left_alone():
        library, symbol = translate(source, name, dtypes)
        code = library.emit_native_object()
    return NativeFunction(source, name, dtypes, load(name, code, entry_of(symbol)))


@contextmanager
def garbage_left_alone() -> Generator[None, None, None]:
    """Pause the collector: Numba makes a hundred thousand objects that all live to the end, and each search is vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def translate(source: str, name: str, parameters: Sequence[Dtype]) -> tuple[Library, str]:
    """Return a library with the program and its entry, in LLVM IR, and the symbol of the program."""
    namespace: dict[str, Any] = runtime.namespace()
    exec(compile(source, f"<{name}>", "exec"), namespace)
    pointers = [numba_type(Pointer(dtype)) for dtype in parameters]
    typing, target = contexts()
    library = target.codegen().create_library(name)
    lowered = compiler.compile_extra(
        typing, target, namespace[name], pointers, types.void, flags(), {}, library, Pipeline
    )
    library.add_ir_module(entry_module(target, library, lowered.fndesc))
    return library, lowered.fndesc.mangled_name


@cache
def contexts() -> tuple[Typing, Target]:
    typing = Typing()
    return typing, Target(typing)


def entry_of(symbol: str) -> str:
    return f"entry.{symbol}"


def entry_module(target: Target, library: Library, descriptor: Any) -> ir.Module:
    """Return the module of the entry that calls the program which `descriptor` describes."""
    entry = entry_of(descriptor.mangled_name)
    module = library.create_ir_module(entry)
    program = target.declare_function(module, descriptor)
    convention = target.call_conv

    def run(builder: Builder, addresses: list[Value]) -> None:
        types_ = descriptor.restype, descriptor.argtypes
        convention.call_function(builder, program, *types_, addresses, attrs=("noinline",))

    add_entry(module, entry, [argument.type for argument in convention.get_arguments(program)], run)
    return module
