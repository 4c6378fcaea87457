"""The C functions that native code calls, by symbol: those of the process, and what fnad registers with LLVM."""

from __future__ import annotations

from importlib import import_module

import llvmlite.binding as llvm

from fnad.backends.cpu import codegen

FAMILIES = {
    "_ZGV": "vector_math",
    "fnad_": "blas",
    "linalg_": "linalg",
    "mpi_": "mpi",
    "scipy_special_": "scipy_special",
    "threads_": "threads",
}
"""The modules that register symbols with these prefixes."""


def available(symbol: str) -> bool:
    """True if there is such a function, which is then registered; code that is linked without it ends the process."""
    codegen.target()
    if llvm.address_of_symbol(symbol) is None:
        for prefix, family in FAMILIES.items():
            if symbol.startswith(prefix):
                _register(symbol, family)
    return llvm.address_of_symbol(symbol) is not None


def _register(symbol: str, family: str) -> None:
    try:
        import_module(f"fnad.backends.cpu.{family}").register(symbol)
    except (LookupError, ValueError, TypeError, AttributeError):  # this version of the library does not have it
        return
