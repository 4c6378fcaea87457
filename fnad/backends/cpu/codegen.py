"""LLVM's passes and code generation for this CPU, configured as Numba does.

The instructions of a kernel follow from its types, so neither Numba's front end nor its import is needed, only
llvmlite, Numba's own code generator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad import forks
from fnad.backends.cpu import system, vector_math
from fnad.backends.llvm.passes import free, take_apart

forks.take(getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None))  # of each call of llvmlite

Result = TypeVar("Result")


@cache
def target() -> Any:
    """The kind of machine that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    found = llvm.Target.from_triple(llvm.get_process_triple())
    system.register()
    # From the first engine on LLVM knows the symbols of the process.
    llvm.create_mcjit_compiler(llvm.parse_assembly(""), found.create_target_machine(jit=True))
    return found


TUNING = "+prefer-no-gather,+prefer-no-scatter"
"""No vectors from elements that lie apart, on processors that have instructions for it.

They take as long as scalar loads and stores. LLVM, for which they are cheap, would take the rows of a matrix as lanes
where a loop along a row is short, with a gather for each column.
"""

WIDE = ",-prefer-256-bit"
"""The widest vectors, on Intel's processors too. LLVM prefers half of them there."""

LOWEST, HIGHEST = 0, 3
"""LLVM's levels of code generation: the fastest one, and the one of the best code."""


def machine(level: int = HIGHEST) -> Any:
    """The target machine: this CPU with its features."""
    return _machine(level)


@cache
def _machine(level: int) -> Any:
    is_x86 = target().name.startswith("x86")
    relocation = "static" if is_x86 else "default"
    tuning = TUNING + WIDE * (vector_math.preferred_bytes() == 64) if is_x86 else ""
    features = f"{llvm.get_host_cpu_features().flatten()},{tuning}"
    return target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=level, reloc=relocation, codemodel="jitdefault", jit=True
    )


def plain(module: ir.Module) -> Any:
    """The module as LLVM reads it; it is taken apart."""
    parsed = llvm.parse_assembly(str(module))
    take_apart(module)
    parsed.verify()
    return parsed


def optimized(module: ir.Module) -> Any:
    """The module after LLVM's passes at their second level, loops vectorised; it is taken apart.

    The third one unrolls further: it takes up to three times as long, and its code was never faster and often slower.
    """
    parsed = plain(module)
    options = llvm.PipelineTuningOptions(speed_level=2)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine(), options)
    passes = builder.getModulePassManager()
    on_large_stack(lambda: passes.run(parsed, builder))
    free(passes)
    return parsed


def object_code(module: Any, level: int = HIGHEST) -> bytes:
    """The machine code of a module."""
    return on_large_stack(lambda: machine(level).emit_object(module))


STACK = 2**23
"""The bytes of stack that LLVM has: it visits expressions recursively, and a thread of a user may have 64 KB."""


def on_large_stack(run: Callable[[], Result]) -> Result:
    """The result or error of a function, which runs in a thread of its own unless this is the main thread."""
    if threading.current_thread() is threading.main_thread():
        return run()
    found: list[Result] = []
    raised: list[BaseException] = []

    def in_thread() -> None:
        try:
            found.append(run())
        except BaseException as error:  # noqa: BLE001 (the caller's, whatever it is)
            raised.append(error)

    before = threading.stack_size(STACK)
    try:
        (thread := threading.Thread(target=in_thread)).start()
    finally:
        threading.stack_size(before)
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def new_module(name: str, kind: type[ir.Module] = ir.Module) -> ir.Module:
    """An empty module of a kind for this machine."""
    module = kind(name)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine().target_data)
    return module
