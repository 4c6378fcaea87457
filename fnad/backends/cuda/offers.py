"""The requirements of programs for a GPU: the parts that are here, and the packages that bring the rest."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fnad.backends.cuda import libdevice, tools
from fnad.backends.cuda.driver import current
from fnad.errors import LoweringError

ALL = "pip install 'fnad[cuda]'"
CUPY = {"cupy-cuda13x": 13, "cupy-cuda12x": 12, "cupy": 12}
"""CuPy's packages, with the version of CUDA that the driver has to be for; that of fnad's kernels, PTX 8.0, is 12."""

LIBRARIES = ("cublas", "cusolver", "cusparse", "cufft", "curand", "cuda-nvrtc")
"""CUDA's libraries that CuPy calls, by the names of their packages without "nvidia-"."""

PROGRAMS = (("ptxas", "nvidia-cuda-nvcc", "==13.0.*"), ("nvdisasm", "nvidia-cuda-nvdisasm", ">=13"))
"""NVIDIA's programs with their packages; a later disassembler reads what an earlier assembler writes."""

ASSEMBLY = "only for machine code and registers in `fnad dump` and `fnad.explain`"


def offers() -> Iterator[tuple[str, str]]:
    """Each part with where it is or what brings it, then the GPU; raises `DeviceError` where none can be used."""
    yield "libdevice", found(lambda: str(libdevice.path()), f"pip install '{libdevice.PACKAGE}==13.0.*'")
    yield "CuPy", version_of(*CUPY) or f"missing: {ALL}"
    yield "CUDA libraries", libraries()
    yield "cuda-core", f"{version_of('cuda-core') or 'not installed'} (not used)"
    for name, package, wanted in PROGRAMS:
        place = partial(tools.program, package, name)
        yield name, found(place, f"pip install '{package}{wanted}' ({ASSEMBLY})")
    yield "CUDA driver", driver()
    yield "GPU", current().description


def found(place: Callable[[], str], brings: str) -> str:
    """The place of a part, or the package that brings it."""
    try:
        return place()
    except LoweringError:
        return f"missing: {brings}"


def version_of(*packages: str) -> str | None:
    """The version of the first of these packages that is installed."""
    for package in packages:
        try:
            return f"{version(package)} ({package})"
        except PackageNotFoundError:
            pass
    return None


def libraries() -> str:
    """The libraries that are here, of packages or of a toolkit, and those that are not."""
    here, missing = [], []
    for library in LIBRARIES:
        name = library.removeprefix("cuda-")
        in_toolkits = (Path(folder, "lib64", f"lib{name}.so").exists() for folder in tools.toolkits())
        is_here = version_of(f"nvidia-{library}") or any(in_toolkits)
        (here if is_here else missing).append(name)
    text = ", ".join(here)
    return f"{text}{'; ' * bool(here)}missing: {', '.join(missing)}: {ALL}" if missing else text


def driver() -> str:
    """The version of CUDA that NVIDIA's driver is for."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return "missing: NVIDIA's driver, which no Python package has, is not installed"
    number = ctypes.c_int()
    if status := library.cuDriverGetVersion(ctypes.byref(number)):
        return f"fails with CUDA's error {status}"
    name = f"for CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    wanted = next((CUPY[package] for package in CUPY if version_of(package)), 13)
    return name if number.value >= wanted * 1000 else f"{name}: too old, it takes one for CUDA {wanted} or later"
