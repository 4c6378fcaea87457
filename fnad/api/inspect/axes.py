"""Axes for plots by Matplotlib, which is optional and imported only here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fnad.errors import MissingPackageError


def axes_for(ax: Any, what: str) -> Any:
    """`ax`, or new axes of Matplotlib if it is None; raises `MissingPackageError` without Matplotlib."""
    if ax is not None:
        return ax
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError as error:
        problem = f"{what} is drawn by Matplotlib, which cannot be imported: {error}"
        raise MissingPackageError(problem, remedy="pip install matplotlib") from None
    return pyplot.subplots(layout="constrained")[1]
