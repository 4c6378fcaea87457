"""The entry from Python into native code: a builtin function that takes NumPy arrays and passes on their addresses.

Asking arrays for their addresses in Python can take longer than running the whole program. So every kernel gets its own
entry, compiled with it, with the calling convention of CPython's METH_FASTCALL builtins: it loads each array's data
pointer, releases the GIL and runs the kernel. It checks nothing. An exception that ended the run, such as
KeyboardInterrupt, is raised.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.ir as ir
import numpy as np

from fnad.backends.llvm.emitter import Builder, Value

OBJECT = ir.IntType(8).as_pointer()
LONG = ir.IntType(64)
METH_FASTCALL = 0x80
# The offset of the data pointer in a NumPy array: right after the header of every Python object.
DATA = object.__basicsize__


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def add_entry(
    module: ir.Module, name: str, parameters: Sequence[ir.Type], run: Callable[[Builder, list[Value]], None]
) -> None:
    """Define the builtin `name` in `module`; `run` emits the call of the kernel on the addresses of its arguments."""
    check_layout()
    entry = ir.Function(module, ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), LONG]), name=name)
    builder = ir.IRBuilder(entry.append_basic_block())
    addresses = [data_of(builder, entry.args[1], n, parameter) for n, parameter in enumerate(parameters)]
    thread = builder.call(of_python(module, "PyEval_SaveThread", OBJECT), [])
    run(builder, addresses)
    builder.call(of_python(module, "PyEval_RestoreThread", ir.VoidType(), OBJECT), [thread])
    error = builder.call(of_python(module, "PyErr_Occurred", OBJECT), [])
    with builder.if_then(builder.icmp_unsigned("!=", error, ir.Constant(OBJECT, None)), likely=False):
        builder.ret(ir.Constant(OBJECT, None))
    none = ir.GlobalVariable(module, ir.IntType(8), name="_Py_NoneStruct")
    builder.call(of_python(module, "Py_IncRef", ir.VoidType(), OBJECT), [none])
    builder.ret(none)


def data_of(builder: Builder, arguments: Value, position: int, type_: ir.Type) -> Value:
    """The address of the data of the array `arguments[position]`."""
    array = builder.load(builder.gep(arguments, [LONG(position)]))
    return builder.load(builder.bitcast(builder.gep(array, [LONG(DATA)]), type_.as_pointer()))


def check_layout() -> None:
    """Raise ImportError if an array's data pointer is not where an entry reads it."""
    probe = np.empty(1)
    if ctypes.c_void_p.from_address(id(probe) + DATA).value != probe.ctypes.data:
        raise ImportError(
            f"NumPy {np.__version__} lays out its arrays in an unknown way: install another version of NumPy"
        )


def of_python(module: ir.Module, name: str, result: ir.Type, *operands: ir.Type) -> ir.Function:
    """CPython's function `name`."""
    return ir.Function(module, ir.FunctionType(result, operands), name=name)


def builtin(name: str, address: int, owner: object) -> Callable[..., None]:
    """The entry at `address` as a Python function that keeps `owner`, its code, alive."""
    definition = MethodDefinition(name.encode(), address, METH_FASTCALL, None)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return create(ctypes.addressof(definition), (definition, owner), None)
