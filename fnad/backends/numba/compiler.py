"""Emitted source to native code: Numba types and lowers it, LLVM optimises it, a small C entry calls it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import compiler, cpu, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_constant
from numba.core.registry import cpu_target
from numba.core.typing import signature
from numba.core.typing.typeof import typeof_impl
from numba.np import numpy_support

from fnad.backends.numba import runtime
from fnad.backends.numba.entry import add_entry, builtin
from fnad.backends.numba.operation import Kind, Operation, Pointer

FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


class OperationType(types.Callable, types.Opaque):
    """The Numba type of an operation: typing asks the operation itself, so nothing is searched or unified."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(f"operation({operation.name})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Any) -> Any:
        operands = [types.unliteral(arg) for arg in args]
        return signature(numba_type(self.operation.result(*map(kind_of, operands))), *operands)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Operation:
        return self.operation


def numba_type(kind: Kind) -> Any:
    if isinstance(kind, Pointer):
        return types.CPointer(numba_type(kind.dtype))
    if isinstance(kind, tuple):
        return types.Tuple([numba_type(part) for part in kind])
    return types.void if kind is None else numpy_support.from_dtype(kind)


def kind_of(type_: Any) -> Kind:
    if isinstance(type_, types.CPointer):
        return Pointer(numpy_support.as_dtype(type_.dtype))
    return numpy_support.as_dtype(type_)


def implementation(operation: Operation) -> Any:
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
        value = operation.emit(builder, [kind_of(arg) for arg in sig.args], args)
        return context.get_dummy_value() if sig.return_type == types.void else value

    return lower


models.register_default(OperationType)(models.OpaqueModel)
_types: dict[Operation, OperationType] = {}


@typeof_impl.register(Operation)
def _(operation: Operation, context: Any) -> OperationType:
    if operation not in _types:
        _types[operation] = OperationType(operation)
    return _types[operation]


@lower_constant(OperationType)
def _(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    return context.get_dummy_value()


@lower_builtin(operator.getitem, types.CPointer(types.boolean), types.Integer)
def _(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> ir.Value:
    """Numba itself cannot load a bool through a pointer: it is a byte in memory and one bit in a register."""
    pointer, index = args
    return builder.trunc(builder.load(builder.gep(pointer, [index])), ir.IntType(1))


@lower_builtin(operator.setitem, types.CPointer(types.boolean), types.Integer, types.boolean)
def _(context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]) -> None:
    pointer, index, value = args
    builder.store(builder.zext(value, ir.IntType(8)), builder.gep(pointer, [index]))


for operation in runtime.OPERATIONS:
    lower_builtin(operation, types.VarArg(types.Any))(implementation(operation))


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A compiled program.

    `call(*arrays)` runs it on as many contiguous arrays, of the right dtypes, as it has parameters, which it does not check, and releases the
    GIL meanwhile.
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


def compile_source(source: str, name: str, parameters: Sequence[np.dtype[Any]]) -> NativeFunction:
    """Compile the function `name` of the emitted `source`, whose parameters are flat arrays of these dtypes."""
    namespace = runtime.namespace()
    exec(compile(source, f"<{name}>", "exec"), namespace)
    arguments = [types.CPointer(numpy_support.from_dtype(np.dtype(dtype))) for dtype in parameters]
    with global_compiler_lock:
        target = cpu_target.target_context
        library = target.codegen().create_library(name)
        lowered = compiler.compile_extra(
            cpu_target.typing_context, target, namespace[name], arguments, types.void, flags(), {}, library
        )
        entry = f"entry.{lowered.fndesc.mangled_name}"
        library.add_ir_module(entry_module(target, library, lowered.fndesc, entry))
        address = library.get_pointer_to_function(entry)
    return NativeFunction(source, builtin(name, address, library), library)


def entry_module(target: Any, library: Any, descriptor: Any, entry: str) -> ir.Module:
    module = library.create_ir_module(entry)
    program = target.declare_function(module, descriptor)

    def run(builder: ir.IRBuilder, addresses: list[ir.Value]) -> None:
        target.call_conv.call_function(builder, program, descriptor.restype, descriptor.argtypes, addresses)

    add_entry(module, entry, [argument.type for argument in target.call_conv.get_arguments(program)], run)
    return module


def flags() -> compiler.Flags:
    """Return how Numba compiles: no wrappers, NumPy's error model, parameters that do not overlap."""
    chosen = compiler.Flags()
    chosen.no_compile = True
    chosen.no_cpython_wrapper = True
    chosen.no_cfunc_wrapper = True
    chosen.error_model = "numpy"
    chosen.fastmath = cpu.FastMathOptions(FAST_MATH)
    chosen.noalias = True
    return chosen
