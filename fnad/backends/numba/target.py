"""Numba, narrowed to the language of emitted code.

Numba types a call by searching the overloads of a function, and loads some two thousand of them before its first
compilation. Emitted code calls operations only, each of which knows its result and its instructions. So it is compiled
in a typing context and a target context of its own, where Python's operators are operations too, and nothing else is
known but `range`: that halves the time of each compilation, and takes a third off the first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import codegen, compiler, cpu, typed_passes, types, untyped_passes
from numba.core.compiler_machinery import PassManager
from numba.core.datamodel import models
from numba.core.typing import builtins, context, signature, templates
from numba.core.typing.typeof import typeof_impl
from numba.cpython import numbers, rangeobj, tupleobj

from fnad.backends.numba.operation import BOOL, Builder, Dtype, Kind, Operation, Pointer, Values
from fnad.backends.numba.operators import OPERATORS

# Numba's modules that register how constants, ranges and tuples are lowered: to import them is to use them.
LOWERING = (numbers, rangeobj, tupleobj)

# ---- types -------------------------------------------------------------------------------------------------------


class OperationType(types.Callable, types.Opaque):
    """The Numba type of an operation: typing asks the operation itself."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(f"{operation.name} at {id(operation)}")

    def get_call_type(self, context: Any, args: Values, kws: Any) -> Any:
        operands = [types.unliteral(arg) for arg in args]
        return signature(numba_type(self.operation.result(*map(kind_of, operands))), *operands)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Operation:
        return self.operation


models.register_default(OperationType)(models.OpaqueModel)
type_of = cache(OperationType)


@typeof_impl.register(Operation)
def type_of_operation(operation: Operation, context: Any) -> OperationType:
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
    return Pointer(dtype_of(type_.dtype)) if isinstance(type_, types.CPointer) else dtype_of(type_)


def dtype_of(type_: Any) -> Dtype:
    return BOOL if type_ == types.boolean else np.dtype(type_.name)


# ---- contexts ----------------------------------------------------------------------------------------------------


class Range(builtins.Range):
    key = range


def language() -> templates.Registry:
    """Return what Numba types by itself: loops over ranges, and the parts of a tuple."""
    registry = templates.Registry()
    for template in ("GetIter", "IterNext", "PairFirst", "PairSecond", "StaticGetItemTuple"):
        registry.register(getattr(builtins, template))
    registry.register_global(range, types.Function(Range))
    return registry


LANGUAGE = language()


class Typing(context.BaseContext):
    """The types of emitted code."""

    def _load_builtins(self) -> None:
        self.install_registry(LANGUAGE)

    def resolve_value_type(self, val: Any) -> Any:
        return type_of(OPERATORS[val]) if is_operator(val) else super().resolve_value_type(val)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        callee = type_of(OPERATORS[func]) if is_operator(func) else func
        if isinstance(callee, OperationType):
            return callee.get_call_type(self, args, kws)
        return super().resolve_function_type(callee, args, kws)


def is_operator(value: Any) -> bool:
    return callable(value) and value in OPERATORS


class Library(codegen.AOTCodeLibrary):
    """A module on its way to machine code, optimised once: emitted code is one function, and counts no references."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the whole module's passes."""

    def _optimize_final_module(self) -> None:
        generator: Any = self.codegen
        generator.optimize(self._final_module)


class Codegen(codegen.JITCPUCodegen):
    """Object code for this very CPU; Numba's own engine would keep every module until the process ends."""

    _library_class = Library

    def optimize(self, module: Any) -> None:
        passes, builder = self._module_pass_manager()
        passes.run(module, builder)

    def _add_module(self, module: Any) -> None:
        """Add nothing to Numba's engine."""


class Target(cpu.CPUContext):
    """The instructions of emitted code."""

    def __init__(self, typing: Typing) -> None:
        super().__init__(typing)
        self._internal_codegen = Codegen("fnad")

    def load_additional_registries(self) -> None:
        """Load nothing: the language is complete."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Callable[..., Any]:
        if not isinstance(fn, OperationType):
            return super().get_function(fn, sig, _firstcall)

        def lower(builder: Builder, args: Values, location: Any = None) -> Any:
            value = fn.operation.emit(builder, [kind_of(arg) for arg in sig.args], args)
            return self.get_dummy_value() if value is None else value

        return lower

    def get_constant_generic(self, builder: Builder, ty: Any, val: Any) -> Any:
        if isinstance(ty, OperationType):
            return self.get_dummy_value()
        return super().get_constant_generic(builder, ty, val)

    def post_lowering(self, mod: ir.Module, library: Any) -> None:
        """Link nothing: Numba's run-time system serves arrays and strings, of which emitted code has none."""


# ---- passes ------------------------------------------------------------------------------------------------------


class Pipeline(compiler.Compiler):
    """Numba's passes without those for closures, overloads, literal types, rewrites: emitted code has none of these."""

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
    """Return how emitted code is compiled: no wrappers, NumPy's error model, parameters that do not overlap."""
    chosen: Any = compiler.Flags()
    chosen.no_compile = True  # the entry is linked in before the machine code is made
    chosen.no_cpython_wrapper = True
    chosen.no_cfunc_wrapper = True
    chosen.error_model = "numpy"
    chosen.noalias = True
    return chosen
