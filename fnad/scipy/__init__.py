"""SciPy's functions that traced values cannot reach through NumPy's protocols, under SciPy's module paths.

They are what SciPy's own names find on traced values too (`fnad.trace.exchange`).
"""

from importlib import import_module
from types import ModuleType

_MODULES = (
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


def __getattr__(name: str) -> ModuleType:
    """Import a module when it is first asked for."""
    if name in _MODULES:
        return import_module(f"fnad.scipy.{name}")
    raise AttributeError(f"module 'fnad.scipy' has no attribute {name!r}")
