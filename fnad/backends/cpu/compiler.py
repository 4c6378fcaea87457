"""Kernels to native code: their instructions, LLVM's passes, and for each an entry point that Python calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fnad.backends.cpu import codegen
from fnad.backends.cpu.entry import add_entry
from fnad.backends.cpu.loader import ENTRY, LOCK, NativeCode, key_of, native_code
from fnad.backends.cpu.target import CPU
from fnad.backends.llvm.emitter import Builder, Value
from fnad.backends.llvm.instructions import add_function, arrays_in_frame
from fnad.kernel.layout import Layout
from fnad.kernel.python_source import plain_text
from fnad.kernel.statements import SCRATCH, STATUS, Kernel, Name, assigned
from fnad.scalar.operation import Pointer


@dataclass(frozen=True, slots=True)
class NativeFunction(NativeCode):
    """A compiled kernel, to look into."""

    kernel: Kernel

    def llvm(self) -> str:
        """The optimised LLVM IR, generated again, since only the machine code is kept."""
        with LOCK:
            return str(translate(self.kernel))

    def asm(self) -> str:
        """The assembly text, generated again as well."""
        with LOCK:
            return codegen.machine().emit_assembly(translate(self.kernel))


def compile_kernel(kernel: Kernel, text: str = "") -> NativeFunction:
    """Compile a kernel, whose parameters are flat arrays; those with the same `text`, if it is given, share code."""
    code = native_code(key_of(text or plain_text(kernel)), lambda: translate(kernel))
    return NativeFunction(code.key, code.call, code.nbytes, kernel)


def by_position(kernel: Kernel) -> Kernel:
    """A kernel with its arrays named by their positions, but for what parallel loops need: status and scratch."""
    names = {p.name: f"a{n}" for n, p in enumerate(kernel.parameters) if p not in (STATUS, SCRATCH)}
    made = dict.fromkeys(target.name for target in assigned(kernel.body) if isinstance(target.kind, Pointer))
    names |= {name: f"l{n}" for n, name in enumerate(made)}
    parameters = tuple(
        Name(names.get(parameter.name, parameter.name), parameter.kind) for parameter in kernel.parameters
    )
    return Kernel("kernel", parameters, Layout(names).place(kernel.body))


def translate(kernel: Kernel) -> Any:
    """The optimised module with a kernel and its entry."""
    return codegen.optimized(module_of(kernel))


def module_of(kernel: Kernel) -> Any:
    """The module with a kernel and its entry, as it is generated."""
    module = codegen.new_module(kernel.name)
    add_kernel(module, kernel, ENTRY)
    return module


def add_kernel(module: Any, kernel: Kernel, entry: str) -> None:
    """Define a kernel in a module, and the function that Python calls under the name `entry`."""
    function = add_function(module, kernel, CPU)

    def run(builder: Builder, addresses: list[Value]) -> None:
        given = dict(zip(kernel.parameters, addresses, strict=True))
        large = arrays_in_frame(builder, kernel, given[SCRATCH]) if SCRATCH in given else []
        builder.call(function, [*addresses, *large], attrs=("noinline",))

    add_entry(module, entry, [argument.type for argument in function.args[: len(kernel.parameters)]], run)
