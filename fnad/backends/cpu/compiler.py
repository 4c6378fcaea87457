"""Kernels to native code: their instructions, LLVM's passes, and for each an entry point that Python calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from fnad.backends.cpu import codegen
from fnad.backends.cpu.entry import add_entry
from fnad.backends.cpu.loader import load, object_code
from fnad.backends.cpu.target import CPU
from fnad.backends.llvm.emitter import Builder, Value
from fnad.backends.llvm.instructions import add_function
from fnad.kernel.layout import Layout
from fnad.kernel.parser import parse_kernel
from fnad.kernel.python_source import plain_text
from fnad.kernel.statements import STATUS, Kernel, Name
from fnad.scalar.operation import Dtype

ENTRY = "entry"
_lock = Lock()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class NativeFunction:
    """A compiled kernel.

    `call(*arrays)` runs it, without the GIL, on as many arrays as it has parameters, contiguous and of their dtypes; it
    checks none of this. Its code has `nbytes` bytes.
    """

    kernel: Kernel
    call: Callable[..., None]
    nbytes: int

    def llvm(self) -> str:
        """The optimised LLVM IR, generated again, since only the machine code is kept."""
        with _lock:
            return str(translate(self.kernel))

    def asm(self) -> str:
        """The assembly text, generated again as well."""
        with _lock:
            return codegen.machine().emit_assembly(translate(self.kernel))


def compile_kernel(kernel: Kernel) -> NativeFunction:
    """Compile a kernel, whose parameters are flat arrays."""
    with _lock:
        code = object_code(plain_text(kernel), lambda: translate(kernel))
        return NativeFunction(kernel, load(kernel.name, code, ENTRY), len(code))


def compile_source(source: str, name: str, parameters: Sequence[Dtype]) -> NativeFunction:
    r"""Compile the printed kernel `name`, whose parameters are flat arrays of these dtypes.

    Raises OperandError where an operand has a dtype that its operation does not take.

    >>> import numpy as np
    >>> source = "def double(x, out):\n    for i in range(3):\n        out[i] = x[i] + x[i]"
    >>> function = compile_source(source, "double", [np.dtype("f8")] * 2)
    >>> out = np.empty(3)
    >>> function.call(np.arange(3.0), out)
    >>> out
    array([0., 2., 4.])
    """
    return compile_kernel(parse_kernel(source, name, parameters))


def by_position(kernel: Kernel) -> Kernel:
    """A kernel with its parameters named by their positions, but for the status, which has the number of threads."""
    names = {p.name: f"a{n}" for n, p in enumerate(kernel.parameters) if p != STATUS} | {STATUS.name: STATUS.name}
    parameters = tuple(Name(names[parameter.name], parameter.kind) for parameter in kernel.parameters)
    return Kernel("kernel", parameters, Layout(names).place(kernel.body))


def translate(kernel: Kernel) -> Any:
    """The optimised module with a kernel and its entry."""
    module = codegen.new_module(kernel.name)
    function = add_function(module, kernel, CPU)

    def run(builder: Builder, addresses: list[Value]) -> None:
        builder.call(function, addresses, attrs=("noinline",))

    add_entry(module, ENTRY, [argument.type for argument in function.args], run)
    return codegen.optimized(module)
