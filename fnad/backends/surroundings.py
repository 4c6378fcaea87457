"""The surroundings of native code: fnad's own sources, the libraries that it calls, Python, the CPU.

Of packages the place, the size and the time of change of their files count, for a version may stand for several states
of a checkout. Nothing is imported for it, since a program that is not on disk is interpreted at first.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fnad import disk, version

LIBRARIES = "numpy", "scipy", "llvmlite"
CPU_LINES = b"model name", b"flags", b"CPU part", b"Features"


@cache
def surroundings() -> bytes:
    """A digest of all of it."""
    return disk.digest(*(repr(part).encode() for part in (*_software(), *_machine()))).encode()


def _software() -> Iterator[object]:
    yield from (
        version.__version__,
        np.__version__,
        sys.version,
        sys.implementation.cache_tag,
        getattr(sys, "abiflags", ""),
    )
    yield from _sources()
    for name in LIBRARIES:
        try:
            origin = getattr(find_spec(name), "origin", None)
            yield origin, origin and state(Path(origin).stat())
        except (OSError, ValueError):
            yield os.urandom(16)


def _sources() -> Iterator[object]:
    """The sources of fnad; where they are not files, or changed since they were loaded, what runs is nobody else's."""
    try:
        found = sorted(files(str(Path(disk.__file__).parent)))
    except OSError:
        found = []
    yield [(path, *state(status)) for path, status in found]
    if not found or any(max(status.st_mtime_ns, status.st_ctime_ns) > version.LOADED for _, status in found):
        yield os.urandom(16)


def _machine() -> Iterator[object]:
    yield from (sys.platform, platform.machine())
    with suppress(OSError, ValueError, AttributeError):  # the version of glibc, where that is the C library
        yield os.confstr("CS_GNU_LIBC_VERSION")
    with suppress(OSError), Path("/proc/cpuinfo").open("rb") as file:
        first = file.read(2**14).partition(b"\n\n")[0]
        yield [line for line in first.splitlines() if line.startswith(CPU_LINES)]
        return
    yield os.environ.get("PROCESSOR_IDENTIFIER") or platform.node()  # of Windows; elsewhere the machine


def files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The sources in a folder and those below."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                yield entry.path, entry.stat()
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from files(entry.path)


def state(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
