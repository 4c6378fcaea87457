"""A formula as a function of the module, which LLVM inlines before it vectorises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Kinds, Value, Values
from fnad.backends.llvm.lane import Lane

Formula: TypeAlias = Callable[..., Lane]

PREFIX = "fnad."
"""The first part of the names of these functions."""


def defined(name: str, formula: Formula, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a call of a formula of numbers that are all f64 or all f32."""
    types = [value.type for value in values]
    symbol = f"{PREFIX}{name}.{types[0]}"
    function = builder.module.globals.get(symbol) or define(builder.module, symbol, types, formula)
    return builder.call(function, values)


def define(module: ir.Module, symbol: str, types: Sequence[ir.Type], formula: Formula) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(types[0], types), name=symbol)
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(formula(*(Lane(builder, argument) for argument in function.args)).value)
    return function
