"""The features of this machine that compiled programs use: CPU, vector math, BLAS, cores."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

import llvmlite.binding as llvm
import numpy as np

from fnad import config
from fnad.backends.cpu import functions, vector_math
from fnad.ir.types import NAMES

TELLING = ("avx512f", "avx2", "fma", "avx", "sse4.1", "neon", "sve")
"""The CPU features that determine the vector width of loops."""


def offers() -> Iterator[tuple[str, str]]:
    """The features, as pairs of a label and a description."""
    yield "CPU", f"{llvm.get_host_cpu_name()} ({' '.join(cpu_features()) or 'no vector features'})"
    yield "vector math", vector_math.describe()
    yield "scalar math", scalar_math()
    yield "BLAS", blas()
    yield "threads", f"{config.current().threads} (config.threads), for long loops"


def scalar_math() -> str:
    """The functions that loops call for one element after the other, by dtype."""
    called = {
        kind: [f.name for f in functions.FUNCTIONS if not functions.is_on_vectors(f, np.dtype(kind))]
        for kind in ("f8", "f4")
    }
    shown = (f"{NAMES[np.dtype(kind)]}: {', '.join(names)}" for kind, names in called.items() if names)
    return "; ".join(shown) or "none"


def cpu_features() -> list[str]:
    """Those features that this CPU has."""
    features = vector_math.features()
    return [name for name in TELLING if features.get(name)]


def blas() -> str:
    """Name and version of the BLAS that SciPy brings."""
    config = cast("dict[str, Any]", import_module("scipy").show_config(mode="dicts"))
    built = config["Build Dependencies"]["blas"]
    return f"{built['name']} {built['version']}, of SciPy"
