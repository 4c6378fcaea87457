"""PyCapsules, in which Cython modules export C functions (`__pyx_capi__`)."""

from __future__ import annotations

import ctypes

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def signature(capsule: object) -> str:
    """The name of a capsule, which in Cython is the C signature: `double (double, int __pyx_skip_dispatch)`."""
    return _name(capsule).decode()


def address(capsule: object) -> int:
    """The address of the function in a capsule."""
    return _pointer(capsule, _name(capsule))
