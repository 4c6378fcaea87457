"""scipy.optimize on traced values."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fnad.scipy.rule import body_of

rosen = body_of("scipy.optimize.rosen")
rosen_der = body_of("scipy.optimize.rosen_der")
rosen_hess = body_of("scipy.optimize.rosen_hess")
rosen_hess_prod = body_of("scipy.optimize.rosen_hess_prod")


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.optimize"), name)
