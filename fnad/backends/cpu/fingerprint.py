"""What native code depends on besides its kernel: fnad's own code, the libraries it calls, Python, the CPU.

Of packages the place, the size and the time of change of their files count, for a version may stand for several states
of a checkout.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

from fnad import disk
from fnad.backends.cpu import vector_math
from fnad.version import __version__

LIBRARIES = "numpy", "scipy", "llvmlite"


@cache
def fingerprint() -> bytes:
    """A digest of all of it."""
    return disk.digest(*(repr(part).encode() for part in (*surroundings(), *machine()))).encode()


def surroundings() -> Iterator[object]:
    """The software."""
    yield from (__version__, np.__version__, llvm.llvm_version_info)
    yield from (sys.version, sys.implementation.cache_tag, sys.abiflags if hasattr(sys, "abiflags") else "")
    yield from (sys.platform, libc(), llvm.get_process_triple(), vector_math.available())
    yield sorted(files(str(Path(disk.__file__).parent)))
    for name in LIBRARIES:
        origin = getattr(find_spec(name), "origin", None)
        yield origin, origin and state(Path(origin).stat())


def machine() -> Iterator[object]:
    """The CPU."""
    yield llvm.get_host_cpu_name()
    yield llvm.get_host_cpu_features().flatten()


def libc() -> str | None:
    """The version of glibc, where that is the C library."""
    return os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", ()) else None


def files(folder: str) -> Iterator[tuple[str, int, int]]:
    """The sources in a folder and those below."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                yield entry.path, *state(entry.stat())
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from files(entry.path)


def state(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
