"""One core, one thread: the environment of a fair run, and the words that say where it took place."""

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("fnad", "numpy", "numba", "scipy", "jax", "torch", "autograd", "casadi")

ONE_THREAD = {
    **dict.fromkeys(
        (
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "BLIS_NUM_THREADS",
            "VECLIB_MAXIMUM_THREADS",
            "NUMBA_NUM_THREADS",
        ),
        "1",
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
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


def environment() -> dict[str, str]:
    """Return this process's environment with one thread a pool, no override that slows, and nothing kept on disk."""
    taken = {name: value for name, value in os.environ.items() if name not in OVERRIDES}
    return taken | ONE_THREAD | {"FNAD_CACHE_DIR": ""}


def pin_to_one_core() -> None:
    """Keep this process and its children on the last core it may use; a no-op where the system cannot."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def describe() -> dict[str, str]:
    """Return machine, versions and date, as a report's head."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "threads": "one, on one core",
        "versions": ", ".join([f"Python {platform.python_version()}", *map(version, PACKAGES)]),
    }


def processor() -> str:
    """Return the processor's name as Linux gives it, else as Python does."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def version(package: str) -> str:
    """Return `package version`, or that it is not installed."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} not installed"
