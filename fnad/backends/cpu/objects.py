"""The memory of CPython's and NumPy's objects: all that native code has to know of it.

Where arrays and ufuncs have their addresses no documented function says to native code. So this file is compared with
the Python and the NumPy that run. Unless it `IS_KNOWN` to be right, native code reads no objects: kernels take
addresses, each call goes through Python, NumPy allocates the results, and ufuncs are called. Everything else is
CPython's documented C interface.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

# ---- arrays ----------------------------------------------------------------------------------------------------------

DATA = object.__basicsize__
"""The offset of the data pointer in a NumPy array: right after the header of every Python object."""


TYPE = ctypes.sizeof(ctypes.c_void_p)
"""The offset of the type in the header of every Python object: after the number of references."""

RANK, SHAPE, DESCR, FLAGS = DATA + 8, DATA + 16, DATA + 40, DATA + 48
"""The offsets of the other fields of a NumPy array that native code reads (`PyArrayObject_fields`)."""

C_CONTIGUOUS_ALIGNED = 0x101
"""NumPy's flags of an array that native code reads as it is."""


def has_known_arrays() -> bool:
    """True if an array's fields are where native code reads them."""
    probe = np.empty((2, 3))
    data, type_, shape, dtype = (
        ctypes.c_void_p.from_address(id(probe) + place).value for place in (DATA, TYPE, SHAPE, DESCR)
    )
    rank, flags = (ctypes.c_int.from_address(id(probe) + place).value for place in (RANK, FLAGS))
    found = data, type_, dtype, rank, flags & C_CONTIGUOUS_ALIGNED
    is_known = found == (probe.ctypes.data, id(np.ndarray), id(probe.dtype), 2, C_CONTIGUOUS_ALIGNED)
    return is_known and (*(ctypes.c_ssize_t * 2).from_address(shape or 0),) == (2, 3)


# ---- builtin functions -----------------------------------------------------------------------------------------------

METH_FASTCALL = 0x80


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(name: str, address: int, owner: object) -> Callable[..., Any]:
    """The C function at `address`, which has the convention METH_FASTCALL; it keeps `owner`, its code, alive.

    The function receives `(definition, owner, name)` as what it belongs to. The definition is bytes: the garbage
    collector frees a `ctypes.Structure` in a cycle at once, and a function reads its definition when it is freed.
    """
    encoded = name.encode()
    definition = bytes(MethodDefinition(encoded, address, METH_FASTCALL, None))
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_char_p, ctypes.py_object, ctypes.c_void_p]
    return create(definition, (definition, owner, encoded), None)


def taking_arrays(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays that calls the entry of a kernel (`fnad.backends.cpu.entry`)."""
    return entry if IS_KNOWN else lambda *arrays: entry(*[array.ctypes.data for array in arrays])


def function_of(function: Callable[..., Any]) -> int:
    """The address of the C function of a builtin."""
    address_of = ctypes.pythonapi.PyCFunction_GetFunction
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object]
    return address_of(function)


# ---- ufuncs ----------------------------------------------------------------------------------------------------------


class UfuncLayout(ctypes.Structure):
    """The beginning of PyUFuncObject, part of NumPy's C API: a loop and its data for each typing."""

    _fields_ = (
        ("header", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


def loop_of(ufunc: Any, typing: int) -> tuple[int, int | None]:
    """The addresses of a ufunc's loop for its typing of this number, and of the loop's data, if it has some."""
    layout = UfuncLayout.from_address(id(ufunc))
    return layout.functions[typing], layout.data[typing]


def has_known_loops() -> bool:
    """True if the fields of a ufunc are where `loop_of` reads them."""
    return (*UfuncLayout.from_address(id(np.divmod)).counts[:3],) == (2, 2, 4)


# ---- capsules, in which Cython modules export C functions (`__pyx_capi__`) -------------------------------------------

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def signature(capsule: object) -> str:
    """The name of a capsule, which in Cython is the C signature: `double (double, int __pyx_skip_dispatch)`."""
    return _name(capsule).decode()


def address(capsule: object) -> int:
    """The address of what is in a capsule."""
    return _pointer(capsule, _name(capsule))


def capsule(address: int, name: int) -> object:
    """A capsule of what is at `address`, under the name at the address `name`; both have to stay there."""
    create = ctypes.pythonapi.PyCapsule_New
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return create(address, name, None)


# ---- functions and memory handlers, by the numbers that they have in NumPy's C API -----------------------------------

ALLOCATOR = 128
"""The offset of the functions in a handler (`PyDataMem_Handler`): after its name and version."""

ABI = 0x2000000
"""The version of NumPy's C API that has these numbers."""

FUNCTIONS = {"PyArray_NewFromDescr": 94, "PyArray_NewCopy": 85, "PyArray_Scalar": 60, "PyArray_ScalarAsCtype": 62}
"""The numbers of functions in NumPy's C API."""

_api = ctypes.cast(address(import_module("numpy._core._multiarray_umath")._ARRAY_API), ctypes.POINTER(ctypes.c_void_p))


def numpy_function(name: str) -> int:
    """The address of a NumPy function C API."""
    return _api[FUNCTIONS[name]]


set_handler: Callable[[object], object] = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_api[304])
"""Set the handler that this context allocates with; returns the one before."""

current_handler: Callable[[], object] = ctypes.PYFUNCTYPE(ctypes.py_object)(_api[305])
"""The handler that this context allocates with."""


def default_handler() -> object:
    """NumPy's own handler."""
    return ctypes.py_object.from_address(_api[306]).value


IS_KNOWN = has_known_arrays() and has_known_loops() and ctypes.CFUNCTYPE(ctypes.c_uint)(_api[0])() == ABI
"""True if the memory of objects is as this file says."""
