"""The ufuncs of scipy.special, called from native loops on one element at a time.

SciPy exports most of its f64 functions as C function pointers (`scipy.special.cython_special`), which are called like
any C function. For the others (f32, which SciPy does not always compute in f64; complex numbers; several results;
private functions; functions missing from older versions) the C loop of the ufunc is called for one element, which takes
some 30 ns more. Both give the ufunc's result to the bit, and without the GIL. An error that `scipy.special.errstate`
turns into an exception is raised when the program returns; the entry points do not report all errors.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import capsule
from fnad.backends.llvm import cast
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Kinds, Value, Values
from fnad.backends.llvm.scalar import llvm_type
from fnad.scalar.operation import INDEX
from fnad.scalar.scipy_ufunc import UFUNC, UfuncOperation, scipy_function

Dtypes: TypeAlias = Sequence[Dtype]

PREFIX = "scipy_special_"
F64 = np.dtype(np.float64)
BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
ADDRESS = BYTE.as_pointer()


def emitter(function: UfuncOperation) -> Emit:
    """The emitter of a function: a call of its entry point if it has one, else of its ufunc's loop."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        entry = entry_point(function.ufunc, tuple(kinds))
        if entry is None:
            return call_loop(builder, function, kinds, values)
        return builder.call(declared(builder.module, entry, values), [*values, WORD(0)])

    return emit


# ---- entry points ------------------------------------------------------------------------------------------------


@cache
def entry_point(name: str, dtypes: tuple[Dtype, ...]) -> str | None:
    """The symbol of the entry point of a ufunc that takes these dtypes and gives f64, if there is one."""
    found = capsules().get(name, {})
    address = next((capsule.address(found[s]) for s in signatures(dtypes) if s in found), None)
    return None if address is None else registered(f"{PREFIX}{name}_{letters(dtypes)}", address)


@cache
def capsules() -> dict[str, dict[str, Any]]:
    """The capsules of cython_special by function and signature; __pyx_fuse_0_1eval_jacobi belongs to eval_jacobi."""
    found: dict[str, dict[str, Any]] = {}
    for symbol, function in import_module("scipy.special.cython_special").__pyx_capi__.items():
        name = re.sub(r"^__pyx_fuse(_\d+)+", "", symbol)
        found.setdefault(name, {})[capsule.signature(function)] = function
    return found


def signatures(dtypes: Dtypes) -> list[str]:
    """The C signatures that a function of i64 and f64 may have; none for other dtypes."""
    if any(dtype not in (INDEX, F64) for dtype in dtypes):
        return []
    integers = ["Py_ssize_t", *(["long"] if np.dtype("long") == INDEX else [])]
    return [
        f"double ({', '.join(i if dtype == INDEX else 'double' for dtype in dtypes)}, int __pyx_skip_dispatch)"
        for i in integers
    ]


def registered(symbol: str, address: int) -> str:
    """The symbol, registered with LLVM."""
    llvm.add_symbol(symbol, address)
    return symbol


def letters(dtypes: Dtypes) -> str:
    return "".join(dtype.char for dtype in dtypes)


def declared(module: ir.Module, symbol: str, values: Values) -> ir.Function:
    """An entry point, declared as pure; its last operand means nothing to Cython."""
    known = module.globals.get(symbol)
    if known is not None:
        return known
    type_ = ir.FunctionType(ir.DoubleType(), [*(value.type for value in values), WORD])
    function = ir.Function(module, type_, name=symbol)
    for attribute in ("nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    return function


# ---- loops of ufuncs ---------------------------------------------------------------------------------------------


class UfuncLayout(ctypes.Structure):
    """The beginning of PyUFuncObject, part of NumPy's C API: a loop and its data for each typing."""

    _fields_ = (
        ("header", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


@cache
def loop_of(name: str, dtypes: tuple[Dtype, ...]) -> tuple[str, str, tuple[Dtype, ...]]:
    """The symbols of the loop that the ufunc would choose and of its data, and the dtypes of operands and results."""
    ufunc: Any = scipy_function(name)
    resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
    number = typings(ufunc).index(resolved)
    layout = UfuncLayout.from_address(id(ufunc))
    symbol = f"{PREFIX}{name}_{letters(resolved)}"
    registered(f"{symbol}_loop", layout.functions[number])
    registered(f"{symbol}_data", layout.data[number] or layout.functions[number])  # a loop without data reads none
    return f"{symbol}_loop", f"{symbol}_data", resolved


def typings(ufunc: Any) -> list[tuple[Dtype, ...]]:
    """The dtypes of operands and results of each loop of a ufunc, in order."""
    return [tuple(map(np.dtype, typing.replace("->", ""))) for typing in ufunc.types]


def call_loop(builder: Builder, function: UfuncOperation, kinds: Kinds, values: Values) -> Value:
    """Call the loop of a ufunc on one element; it advances the pointers to its operands, so they are set each time."""
    loop, data, dtypes = loop_of(function.ufunc, tuple(kinds))
    places = [place(builder, llvm_type(dtype)) for dtype in dtypes]
    for kind, value, dtype, slot in zip(kinds, values, dtypes, places, strict=False):
        builder.store(cast.cast(builder, kind, dtype, value), slot)
    pointers = place(builder, ir.ArrayType(ADDRESS, len(places)))
    for n, slot in enumerate(places):
        builder.store(builder.bitcast(slot, ADDRESS), builder.gep(pointers, [WORD(0), WORD(n)]))
    length, steps = constants(builder.module, "one", 1), constants(builder.module, "steps", *[0] * len(places))
    first = builder.gep(pointers, [WORD(0), WORD(0)])
    builder.call(external_loop(builder.module, loop), [first, length, steps, external_data(builder.module, data)])
    result = len(kinds) + (function.output or 0)
    return cast.cast(builder, dtypes[result], kinds[-1], builder.load(places[result]))


def place(builder: Builder, type_: ir.Type) -> Value:
    """A stack slot, allocated once at the function's entry."""
    with builder.goto_entry_block():
        return builder.alloca(type_)


def constants(module: ir.Module, name: str, *numbers: int) -> Value:
    """The address of constant numbers."""
    name = f"{PREFIX}{name}{len(numbers)}"
    known = module.globals.get(name)
    if known is None:
        type_ = ir.ArrayType(LONG, len(numbers))
        known = ir.GlobalVariable(module, type_, name=name)
        known.linkage, known.global_constant, known.initializer = "internal", True, type_(numbers)
    return known.bitcast(LONG.as_pointer())


def external_loop(module: ir.Module, symbol: str) -> ir.Function:
    known = module.globals.get(symbol)
    if known is not None:
        return known
    type_ = ir.FunctionType(ir.VoidType(), [ADDRESS.as_pointer(), LONG.as_pointer(), LONG.as_pointer(), ADDRESS])
    return ir.Function(module, type_, name=symbol)


def external_data(module: ir.Module, symbol: str) -> Value:
    known = module.globals.get(symbol)
    return known if known is not None else ir.GlobalVariable(module, BYTE, name=symbol)


INSTRUCTIONS: dict[str, Callable[..., Any]] = {UFUNC: emitter}
