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
from fnad.backends.numba.operation import Builder, Dtype, Pointer, Value
from fnad.backends.numba.target import Pipeline, Target, Typing, flags, numba_type


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A compiled program.

    `call(*arrays)` runs it, without the GIL, on as many arrays as it has parameters, contiguous and of their dtypes; it
    checks none of this.
    """

    source: str
    call: Callable[..., None]
    library: Any
    symbol: str
    name: str

    def llvm(self) -> str:
        """Return the optimised LLVM IR."""
        return self.library.get_llvm_str().replace(self.symbol, self.name)

    def asm(self) -> str:
        """Return the assembly text."""
        return self.library.get_asm_str().replace(self.symbol, self.name)


@cache
def contexts() -> tuple[Typing, Target]:
    typing = Typing()
    return typing, Target(typing)


def compile_source(source: str, name: str, parameters: Sequence[Dtype]) -> NativeFunction:
    """Compile the function `name` of emitted `source`, whose parameters are flat arrays of these dtypes."""
    namespace: dict[str, Any] = runtime.namespace()
    exec(compile(source, f"<{name}>", "exec"), namespace)
    pointers = [numba_type(Pointer(np.dtype(dtype))) for dtype in parameters]
    with global_compiler_lock:
        typing, target = contexts()
        library = target.codegen().create_library(name)
        lowered = compiler.compile_extra(
            typing, target, namespace[name], pointers, types.void, flags(), {}, library, Pipeline
        )
        symbol = lowered.fndesc.mangled_name
        library.add_ir_module(entry_module(target, library, lowered.fndesc, f"entry.{symbol}"))
        address = library.get_pointer_to_function(f"entry.{symbol}")
    return NativeFunction(source, builtin(name, address, library), library, symbol, name)


def entry_module(target: Target, library: Any, descriptor: Any, entry: str) -> ir.Module:
    """Return the module of the entry that calls the program which `descriptor` describes."""
    module = library.create_ir_module(entry)
    program = target.declare_function(module, descriptor)
    convention = target.call_conv

    def run(builder: Builder, addresses: list[Value]) -> None:
        types_ = descriptor.restype, descriptor.argtypes
        convention.call_function(builder, program, *types_, addresses, attrs=("noinline",))

    add_entry(module, entry, [argument.type for argument in convention.get_arguments(program)], run)
    return module
