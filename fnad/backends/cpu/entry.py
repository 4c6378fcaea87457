"""The entry from Python into native code: a builtin function that takes NumPy arrays and passes on their addresses.

Asking arrays for their addresses in Python can take longer than running the whole program. So every kernel gets its own
entry, compiled with it, with the calling convention of CPython's METH_FASTCALL builtins: it loads each array's data
pointer, releases the GIL and runs the kernel. It checks nothing. An exception that ended the run, such as
KeyboardInterrupt, is raised. Where the memory of arrays is not known, an entry takes addresses as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from fnad.backends.cpu.objects import DATA, IS_KNOWN
from fnad.backends.llvm.emitter import Builder, Value
from fnad.backends.llvm.scalar import call

OBJECT = ir.IntType(8).as_pointer()
LONG = ir.IntType(64)
NONE = "_Py_NoneStruct"


def add_entry(
    module: ir.Module, name: str, parameters: Sequence[ir.Type], run: Callable[[Builder, list[Value]], None]
) -> None:
    """Define the builtin `name` in `module`; `run` emits the call of the kernel on the addresses of its arguments."""
    entry = ir.Function(module, ir.FunctionType(OBJECT, [OBJECT, OBJECT.as_pointer(), LONG]), name=name)
    builder = ir.IRBuilder(entry.append_basic_block())
    addresses = [data_of(builder, entry.args[1], n, parameter) for n, parameter in enumerate(parameters)]
    thread = call(builder, "PyEval_SaveThread", OBJECT)
    run(builder, addresses)
    call(builder, "PyEval_RestoreThread", ir.VoidType(), thread)
    error = call(builder, "PyErr_Occurred", OBJECT)
    with builder.if_then(builder.icmp_unsigned("!=", error, ir.Constant(OBJECT, None)), likely=False):
        builder.ret(ir.Constant(OBJECT, None))
    none = module.globals.get(NONE) or ir.GlobalVariable(module, ir.IntType(8), name=NONE)
    call(builder, "Py_IncRef", ir.VoidType(), none)
    builder.ret(none)


def data_of(builder: Builder, arguments: Value, position: int, type_: ir.Type) -> Value:
    """The address of the data of the array `arguments[position]`."""
    array = builder.load(builder.gep(arguments, [LONG(position)]))
    if not IS_KNOWN:
        return builder.bitcast(call(builder, "PyLong_AsVoidPtr", OBJECT, array), type_)
    return builder.load(builder.bitcast(builder.gep(array, [LONG(DATA)]), type_.as_pointer()))
