"""SciPy's functions that traced values cannot reach through NumPy's protocols, under SciPy's module paths.

SciPy's own names lead to them on traced values too (`fnad.trace.stand_ins`).
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fnad.scipy import (
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = (
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        """Import a module when it is first asked for."""
        if name in __all__:
            return import_module(f"fnad.scipy.{name}")
        raise AttributeError(f"module 'fnad.scipy' has no attribute {name!r}")
