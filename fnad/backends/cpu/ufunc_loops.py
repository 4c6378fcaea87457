"""The C loops of NumPy's ufuncs, called from native code.

A loop (`PyUFuncGenericFunction`, part of NumPy's C API) takes the addresses of its operands and results, the extents,
the strides in bytes, and the ufunc's data. That of a generalized ufunc takes the number of matrices before their sizes,
and the strides between matrices before those within one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu.objects import loop_of
from fnad.backends.llvm.emitter import Builder, Dtype, Value
from fnad.records import dataclass

BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
ADDRESS = BYTE.as_pointer()


@dataclass(frozen=True, slots=True)
class UfuncLoop:
    """A loop, by the symbols of its function and its data."""

    function: str
    data: str

    def call(self, builder: Builder, places: Sequence[Value], extents: Sequence[int], strides: Sequence[int]) -> None:
        """Call the loop on the operands and results at these addresses."""
        pointers = place(builder, ir.ArrayType(ADDRESS, len(places)))
        for n, address in enumerate(places):
            builder.store(builder.bitcast(address, ADDRESS), builder.gep(pointers, [WORD(0), WORD(n)]))
        first = builder.gep(pointers, [WORD(0), WORD(0)])
        numbers = [constants(builder.module, extents), constants(builder.module, strides)]
        builder.call(_function(builder.module, self.function), [first, *numbers, _data(builder.module, self.data)])


def registered_loop(ufunc: Any, dtypes: tuple[Dtype, ...], symbol: str) -> UfuncLoop:
    """The loop of a ufunc for operands and results of these dtypes; its symbols begin with this one."""
    function, data = loop_of(ufunc, typings(ufunc).index(dtypes))
    symbol = f"{symbol}_{''.join(dtype.char for dtype in dtypes)}"
    # A loop without data reads none.
    return UfuncLoop(registered(f"{symbol}_loop", function), registered(f"{symbol}_data", data or function))


def registered(symbol: str, address: int) -> str:
    """The symbol, registered with LLVM."""
    llvm.add_symbol(symbol, address)
    return symbol


def typings(ufunc: Any) -> list[tuple[Dtype, ...]]:
    """The dtypes of operands and results of each loop of a ufunc, in order."""
    return [tuple(map(np.dtype, typing.replace("->", ""))) for typing in ufunc.types]


def place(builder: Builder, type_: ir.Type) -> Value:
    """A stack slot, allocated once at the function's entry."""
    with builder.goto_entry_block():
        return builder.alloca(type_)


def constants(module: ir.Module, numbers: Sequence[int]) -> Value:
    """The address of constant numbers."""
    name = f"fnad_numbers_{'_'.join(map(str, numbers))}"
    known = module.globals.get(name)
    if known is None:
        type_ = ir.ArrayType(LONG, len(numbers))
        known = ir.GlobalVariable(module, type_, name=name)
        known.linkage, known.global_constant, known.initializer = "internal", True, type_(numbers)
    return known.bitcast(LONG.as_pointer())


def _function(module: ir.Module, symbol: str) -> ir.Function:
    known = module.globals.get(symbol)
    if known is not None:
        return known
    type_ = ir.FunctionType(ir.VoidType(), [ADDRESS.as_pointer(), LONG.as_pointer(), LONG.as_pointer(), ADDRESS])
    return ir.Function(module, type_, name=symbol)


def _data(module: ir.Module, symbol: str) -> Value:
    known = module.globals.get(symbol)
    return known if known is not None else ir.GlobalVariable(module, BYTE, name=symbol)
