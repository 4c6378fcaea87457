"""A formula as a function of the module, which LLVM inlines before it vectorises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Emit, Kinds, Value, Values
from fnad.backends.llvm.lane import Lane

Formula: TypeAlias = Callable[[Lane], Lane]

PREFIX = "fnad."
"""The first part of the names of these functions."""


def defined(name: str, formula: Formula) -> Emit:
    """The emitter that calls a formula of one f64 or f32."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        (x,) = values
        symbol = f"{PREFIX}{name}.{x.type}"
        return builder.call(builder.module.globals.get(symbol) or define(builder.module, symbol, x.type, formula), [x])

    return emit


def define(module: ir.Module, symbol: str, type_: ir.Type, formula: Formula) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(type_, [type_]), name=symbol)
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(formula(Lane(builder, function.args[0])).value)
    return function
