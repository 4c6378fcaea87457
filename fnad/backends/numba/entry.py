"""The way from Python into native code: a builtin function that takes NumPy arrays and passes on their addresses.

Reading addresses in Python costs more than many a program's whole run. So every program gets an entry of its own, compiled with
it, with the calling convention of CPython's METH_FASTCALL builtins: it loads each array's data pointer, releases the GIL and
runs the program. It checks nothing: its arguments must be as many NumPy arrays as the program has parameters.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

OBJECT = ir.IntType(8).as_pointer()
METH_FASTCALL = 0x80
# Where a NumPy array keeps its data pointer: right after the header every Python object has.
DATA = object.__basicsize__


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def add_entry(module: ir.Module, name: str, parameters: Sequence[ir.Type], run: Callable[[ir.IRBuilder, list[ir.Value]], None]) -> None:
    """Define the builtin `name` in `module`; `run` writes the call of the program on the addresses of its arguments."""
    check_layout()
    entry = ir.Function(module, ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), ir.IntType(64)]), name=name)
    builder = ir.IRBuilder(entry.append_basic_block())
    addresses = [data_of(builder, entry.args[1], position, parameter) for position, parameter in enumerate(parameters)]
    thread = builder.call(declare(module, "PyEval_SaveThread", OBJECT), [])
    run(builder, addresses)
    builder.call(declare(module, "PyEval_RestoreThread", ir.VoidType(), OBJECT), [thread])
    none = ir.GlobalVariable(module, ir.IntType(8), name="_Py_NoneStruct")
    builder.call(declare(module, "Py_IncRef", ir.VoidType(), OBJECT), [none])
    builder.ret(none)


def data_of(builder: ir.IRBuilder, arguments: ir.Value, position: int, type_: ir.Type) -> ir.Value:
    """Return the address of the data of the array `arguments[position]`."""
    array = builder.load(builder.gep(arguments, [ir.IntType(64)(position)]))
    field = builder.gep(array, [ir.IntType(64)(DATA)])
    return builder.load(builder.bitcast(field, type_.as_pointer()))


def check_layout() -> None:
    """Raise ImportError if NumPy does not keep the data pointer of an array where the entry looks for it."""
    probe = np.empty(1)
    if ctypes.c_void_p.from_address(id(probe) + DATA).value != probe.ctypes.data:
        raise ImportError(f"NumPy {np.__version__} lays out arrays in a way this version of fnad does not know; install another NumPy")


def declare(module: ir.Module, name: str, result: ir.Type, *operands: ir.Type) -> ir.Value:
    """Return CPython's function `name`."""
    return ir.Function(module, ir.FunctionType(result, operands), name=name)


def builtin(name: str, address: int, owner: object) -> Callable[..., None]:
    """Return the entry at `address` as a Python function that keeps `owner`, its code, alive."""
    definition = MethodDefinition(name.encode(), address, METH_FASTCALL, None)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return create(ctypes.addressof(definition), (definition, owner), None)
