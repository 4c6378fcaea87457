"""Emitted source to native code: Numba types and lowers it, LLVM optimises it, an entry of its own calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock

from fnad.backends.numba import runtime
from fnad.backends.numba.entry import add_entry, builtin
from fnad.backends.numba.operation import Pointer
from fnad.backends.numba.target import Pipeline, Target, Typing, flags, numba_type


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A compiled program.

    `call(*arrays)` runs it, without the GIL, on contiguous arrays of its parameters' dtypes, as many as it has parameters; it checks
    none of this.
    """

    source: str
    call: Callable[..., None]
    library: Any

    def llvm(self) -> str:
        """Return the optimised LLVM IR."""
        return self.library.get_llvm_str()

    def asm(self) -> str:
        """Return the assembly text."""
        return self.library.get_asm_str()


@cache
def contexts() -> tuple[Typing, Target]:
    typing = Typing()
    return typing, Target(typing)


def compile_source(source: str, name: str, parameters: Sequence[np.dtype[Any]]) -> NativeFunction:
    """Compile the function `name` of the emitted `source`, whose parameters are flat arrays of these dtypes."""
    namespace = runtime.namespace()
    exec(compile(source, f"<{name}>", "exec"), namespace)
    pointers = [numba_type(Pointer(np.dtype(dtype))) for dtype in parameters]
    with global_compiler_lock:
        typing, target = contexts()
        library = target.codegen().create_library(name)
        lowered = compiler.compile_extra(typing, target, namespace[name], pointers, types.void, flags(), {}, library, Pipeline)
        entry = f"entry.{lowered.fndesc.mangled_name}"
        library.add_ir_module(entry_module(target, library, lowered.fndesc, entry))
        address = library.get_pointer_to_function(entry)
    return NativeFunction(source, builtin(name, address, library), library)


def entry_module(target: Target, library: Any, descriptor: Any, entry: str) -> ir.Module:
    """Return the module with the entry that calls the program `descriptor` describes."""
    module = library.create_ir_module(entry)
    program = target.declare_function(module, descriptor)

    def run(builder: ir.IRBuilder, addresses: list[ir.Value]) -> None:
        target.call_conv.call_function(builder, program, descriptor.restype, descriptor.argtypes, addresses, attrs=("noinline",))

    add_entry(module, entry, [argument.type for argument in target.call_conv.get_arguments(program)], run)
    return module
