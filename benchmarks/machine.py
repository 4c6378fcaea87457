"""One core, one thread, or two: the environment of a fair run, and the words that say where it took place."""

import datetime
import os
import platform
from importlib import metadata
from itertools import chain
from pathlib import Path

PACKAGES = ("fnad", "numpy", "numba", "scipy", "jax", "torch", "autograd", "casadi", "cupy-cuda13x")

POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

JAX = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",  # allows float64; float32 stays float32
}

# A library chooses its own kernels for the processor, and Python keeps the bytecode it made.
OVERRIDES = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "NPY_DISABLE_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
    "PYTHONDONTWRITEBYTECODE",
)


def environment(cores: int) -> dict[str, str]:
    """Return this process's environment with every pool of threads set to `cores` and nothing slowed by an override."""
    kept = {name: value for name, value in os.environ.items() if name not in OVERRIDES}
    flags = f"--xla_cpu_multi_thread_eigen={str(cores > 1).lower()} intra_op_parallelism_threads={cores}"
    return kept | dict.fromkeys(POOLS, str(cores)) | JAX | {"XLA_FLAGS": flags}


def environment_of_device() -> dict[str, str]:
    """Return this process's environment for a GPU, with all cores of the host; products of f32 are of f32."""
    jax = {"JAX_ENABLE_X64": "1", "JAX_DEFAULT_MATMUL_PRECISION": "highest", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return dict(os.environ) | jax


ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(cores: int) -> None:
    """Keep this process and its children on the last cores it may use; a no-op where the system cannot."""
    if ALLOWED:
        os.sched_setaffinity(0, ALLOWED[-cores:])


def describe() -> dict[str, str]:
    """Return machine, versions and date, as a report's head."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "threads": {"1": "one, on one core"}.get(threads := os.environ.get("OMP_NUM_THREADS", "any"), threads),
        "versions": ", ".join([f"Python {platform.python_version()}", *chain.from_iterable(map(version, PACKAGES))]),
    }


def processor() -> str:
    """Return the processor's name as Linux gives it, else as Python does."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def version(package: str) -> list[str]:
    """Return `package version`, or nothing if it is not installed."""
    try:
        return [f"{package} {metadata.version(package)}"]
    except metadata.PackageNotFoundError:
        return []
