"""Numba, narrowed to the language of emitted code.

Numba types a call by searching the overloads of a function, and loads some two thousand of them before its first compilation.
Emitted code calls operations only, each of which knows its result and its instructions; so it is compiled in a typing and a target
context of its own, where Python's operators are operations too (`operators`), and nothing else is known but `range`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import compiler, cpu, fastmathpass, typed_passes, types, untyped_passes
from numba.core.compiler_machinery import PassManager
from numba.core.datamodel import models
from numba.core.typing import builtins, context, signature, templates
from numba.core.typing.typeof import typeof_impl
from numba.cpython import numbers, rangeobj, tupleobj  # noqa: F401  how Numba lowers constants, range, tuples

from fnad.backends.numba.operation import BOOL, Kind, Operation, Pointer
from fnad.backends.numba.operators import OPERATORS

# Sums may be reordered and products fused, so that loops vectorise; nan, infinities and the accuracy of functions are as written.
FAST_MATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


class OperationType(types.Callable, types.Opaque):
    """The Numba type of an operation: typing asks the operation itself."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(f"{operation.name} at {id(operation)}")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Any) -> Any:
        operands = [types.unliteral(arg) for arg in args]
        return signature(numba_type(self.operation.result(*map(kind_of, operands))), *operands)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Operation:
        return self.operation


models.register_default(OperationType)(models.OpaqueModel)
type_of = cache(OperationType)


@typeof_impl.register(Operation)
def _(operation: Operation, context: Any) -> OperationType:
    return type_of(operation)


@cache
def numba_type(kind: Kind) -> Any:
    """Return the Numba type of a kind."""
    if isinstance(kind, Pointer):
        return types.CPointer(numba_type(kind.dtype))
    if isinstance(kind, tuple):
        return types.Tuple([numba_type(part) for part in kind])
    if kind is None:
        return types.void
    return types.boolean if kind == BOOL else getattr(types, kind.name)


@cache
def kind_of(type_: Any) -> Kind:
    """Return the kind of a Numba type."""
    if isinstance(type_, types.CPointer):
        return Pointer(kind_of(type_.dtype))
    return BOOL if type_ == types.boolean else np.dtype(type_.name)


class Range(builtins.Range):
    key = range


LANGUAGE = templates.Registry()
for template in (builtins.GetIter, builtins.IterNext, builtins.PairFirst, builtins.PairSecond, builtins.StaticGetItemTuple):
    LANGUAGE.register(template)
LANGUAGE.register_global(range, types.Function(Range))


class Typing(context.BaseContext):
    """The types of emitted code."""

    def _load_builtins(self) -> None:
        self.install_registry(LANGUAGE)

    def resolve_value_type(self, val: Any) -> Any:
        return type_of(OPERATORS[val]) if is_operator(val) else super().resolve_value_type(val)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        operation = type_of(OPERATORS[func]) if is_operator(func) else func
        if isinstance(operation, OperationType):
            return operation.get_call_type(self, args, kws)
        return super().resolve_function_type(func, args, kws)


def is_operator(value: Any) -> bool:
    return callable(value) and value in OPERATORS


class Target(cpu.CPUContext):
    """The instructions of emitted code."""

    def load_additional_registries(self) -> None:
        """Load nothing: the language is complete."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Callable[..., Any]:
        if not isinstance(fn, OperationType):
            return super().get_function(fn, sig, _firstcall)

        def lower(builder: ir.IRBuilder, args: Sequence[Any], location: Any = None) -> Any:
            value = fn.operation.emit(builder, [kind_of(arg) for arg in sig.args], args)
            return self.get_dummy_value() if value is None else value

        return lower

    def get_constant_generic(self, builder: ir.IRBuilder, ty: Any, val: Any) -> Any:
        return self.get_dummy_value() if isinstance(ty, OperationType) else super().get_constant_generic(builder, ty, val)

    def post_lowering(self, mod: ir.Module, library: Any) -> None:
        """Numba's own links its run-time system, for arrays and strings, which emitted code has none of."""
        fastmathpass.rewrite_module(mod, self.fastmath)


class Pipeline(compiler.CompilerBase):
    """Numba's passes without those for what emitted code has not: closures, overloads to inline, literal types, rewrites."""

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("fnad")
        passes.add_pass(untyped_passes.TranslateByteCode, "read the bytecode")
        passes.add_pass(untyped_passes.FixupArgs, "bind the parameters")
        passes.add_pass(untyped_passes.IRProcessing, "find live variables")
        passes.add_pass(typed_passes.NopythonTypeInference, "infer types")
        passes.add_pass(typed_passes.NativeLowering, "lower to LLVM")
        passes.add_pass(typed_passes.NoPythonBackend, "collect the result")
        passes.finalize()
        return [passes]


def flags() -> compiler.Flags:
    """Return how emitted code is compiled: not finished, no wrappers, NumPy's errors, parameters that do not overlap."""
    chosen = compiler.Flags()
    chosen.no_compile = True
    chosen.no_cpython_wrapper = True
    chosen.no_cfunc_wrapper = True
    chosen.error_model = "numpy"
    chosen.fastmath = cpu.FastMathOptions(set(FAST_MATH))
    chosen.noalias = True
    return chosen
