"""`fnad doctor`: versions and features of this machine, for bug reports and to find out why something is slow."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

import numpy as np

from fnad import config, disk
from fnad.api.inspect.tables import columns
from fnad.backends.base import BACKENDS, Executor, current_backend
from fnad.cli.usage import one_line
from fnad.errors import FnadError
from fnad.ir.parser import parse_program
from fnad.ir.program import Program
from fnad.ops import collectives
from fnad.placement import on_host
from fnad.transforms.interpret import interpret

PACKAGES = ("fnad", "numpy", "numba", "llvmlite", "scipy", "optree")

SETTINGS = ("FNAD_LOG", "FNAD_TRACEBACK_FILTERING", "NUMBA_DISABLE_JIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that change how programs run, and what is shown of that."""

TRIAL = """
trial(a: f64[1000]) -> f64[] {
  b: f64[1000] = sin(a)
  c: f64[1000] = mul(b, a)
  d: f64[] = reduce_sum(c) axes=(0,)
  return d
}
"""


def report() -> str:
    """The lines of the report."""
    return columns([*_versions(), *_machine(), *_cuda(), ("MPI", _mpi()), *_settings(), ("cache", _cache())])


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"
    for package in PACKAGES:
        yield package, _version(package)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _machine() -> Iterator[tuple[str, str]]:
    try:
        compiler = current_backend().compiler
    except ImportError as error:
        yield "native code", f"not available: {error}"
        return
    yield from compiler.offers()
    yield "native code", _trial(compiler.compile_program)


def _cuda() -> Iterator[tuple[str, str]]:
    """The packages for GPUs that are here, and if one runs."""
    try:
        compiler = BACKENDS["cuda"].compiler
        yield from compiler.offers()
    except FnadError as error:
        yield "CUDA", f"not available: {one_line(error)}"
        return
    yield "CUDA", _trial(compiler.compile_program)


def _mpi() -> str:
    """The library behind `fnad.distributed`, and the number of ranks."""
    try:
        found = collectives.mpi()
    except FnadError as error:
        return f"not available: {one_line(error)}"
    library = found.Get_library_version().partition("\x00")[0].split("\n")[0]
    return f"{' '.join(library.split())[:60]}, {found.COMM_WORLD.Get_size()} ranks, mpi4py {_version('mpi4py')}"


def _trial(compile_program: Callable[[Program], Executor]) -> str:
    """Compile and run a small program; say how long it took and whether the result is right."""
    program, x = parse_program(TRIAL), np.linspace(-1.0, 1.0, 1000)
    start = perf_counter()
    try:
        with config.override(disk_cache=False):
            (found,) = compile_program(program)([x])
    except Exception as error:  # noqa: BLE001  whatever is wrong here is what the report is for
        return f"fails: {type(error).__name__}: {one_line(error)}"
    seconds = perf_counter() - start
    right = np.allclose(on_host(found), interpret(program, [x]), rtol=1e-12)
    return f"a first program was compiled in {seconds:.2f} s and is {'right' if right else 'WRONG'}"


def _cache() -> str:
    cache = disk.current()
    return "none on disk: compiled programs live in memory" if cache is None else cache.refusal or str(cache.directory)


def _settings() -> Iterator[tuple[str, str]]:
    for name in SETTINGS:
        if name in os.environ:
            yield name, os.environ[name]
