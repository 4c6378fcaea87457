"""scipy.spatial on traced values."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return (
        import_module("fnad.scipy.spatial.distance")
        if name == "distance"
        else getattr(import_module("scipy.spatial"), name)
    )
