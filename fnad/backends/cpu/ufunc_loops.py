"""The C loops of NumPy's ufuncs, called from native code.

A loop (`PyUFuncGenericFunction`, part of NumPy's C API) takes the addresses of its operands and results, the extents,
the strides in bytes, and the ufunc's data. That of a generalized ufunc takes the number of matrices before their sizes,
and the strides between matrices before those within one. Where the memory of ufuncs is not known
(`fnad.backends.cpu.objects`), a loop calls the ufunc through Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu.objects import IS_KNOWN, loop_of
from fnad.backends.llvm.emitter import Builder, Dtype, Value
from fnad.kernel.linalg import core_dimensions, size_names

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
    typing = typings(ufunc).index(dtypes)
    function, data = loop_of(ufunc, typing) if IS_KNOWN else (called(ufunc, dtypes), None)
    symbol = f"{symbol}_{''.join(dtype.char for dtype in dtypes)}"
    # A loop without data reads none.
    return UfuncLoop(registered(f"{symbol}_loop", function), registered(f"{symbol}_data", data or function))


# ---- loops in Python -------------------------------------------------------------------------------------------------

Loop = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_void_p,
)
INFINITY = float("inf")
_CALLED: dict[int, Any] = {}
"""The functions at the addresses of loops in Python."""


def called(ufunc: Any, dtypes: Sequence[Dtype]) -> int:
    """The address of a loop that calls a ufunc, and raises the flag for invalid operations where the ufunc does."""
    signature, count = ufunc.signature or ",".join(["()"] * len(dtypes)), len(dtypes)
    names, cores = size_names(signature), core_dimensions(signature)

    def run(places: Any, extents: Any, strides: Any, _: Any) -> None:
        sizes, within, invalid = dict(zip(names, extents[1 : len(names) + 1], strict=True)), count, []
        arrays: list[Any] = []
        for place, dtype, core, outer in zip(places[:count], dtypes, cores, strides[:count], strict=True):
            inner = strides[within : within + len(core)]
            within += len(core)
            arrays.append(memory(place, dtype, (extents[0], *[sizes[name] for name in core]), (outer, *inner)))
        with np.errstate(all="ignore", invalid="call", call=lambda *_: invalid.append(INFINITY)):
            ufunc(*arrays[: ufunc.nin], out=(*arrays[ufunc.nin :],))
        [number - number for number in invalid]

    function = Loop(run)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    _CALLED[address] = function
    return address


def memory(place: int, dtype: Dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The array at an address."""
    size = dtype.itemsize + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True) if extent)
    held: Any = (ctypes.c_byte * size).from_address(place)
    return np.ndarray(shape, dtype, held, 0, strides)


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
