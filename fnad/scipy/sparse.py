"""scipy.sparse: products of a sparse matrix, which is a constant, with traced vectors and matrices."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.numpy.bodies import XP
from fnad.scipy.rule import method_of


def _product(self: Any, other: Any) -> Any:
    """What `self @ other` is: for each stored element a product, which is added to its row."""
    if self.ndim != 2 or other.ndim not in (1, 2):
        raise ShapeError(f"a sparse matrix of shape {self.shape} times a traced array of shape {other.shape}")
    if other.shape[0] != self.shape[1]:
        n, rows = self.shape[1], other.shape[0]
        raise ShapeError(f"matmul: dimension mismatch with signature (n,k={n}),(k={rows},m)->(n,m)")
    stored = self.tocoo()
    values = stored.data if other.ndim == 1 else stored.data[:, None]
    terms = values * XP.take(other, stored.col, axis=0)
    result = XP.zeros((self.shape[0], *other.shape[1:]), dtype=np.result_type(self.dtype, other.dtype))
    XP.add.at(result, stored.row, terms)
    return result


def _times(self: Any, other: Any) -> Any:
    if not XP.ndim(other):
        raise _scaled()
    return _product(self, other)


def _times_from_the_right(self: Any, other: Any) -> Any:
    return XP.transpose(_times(self.transpose(), XP.transpose(other)))


def _products(kind: str) -> SimpleNamespace:
    """The products of a class of SciPy's."""
    left = method_of(f"{kind}._matmul_dispatch")(_times)
    return SimpleNamespace(
        _matmul_dispatch=left, _rmatmul_dispatch=method_of(f"{kind}._rmatmul_dispatch")(_times_from_the_right)
    )


_spbase = _products("scipy.sparse._base:_spbase")
_coo_base = _products("scipy.sparse._coo:_coo_base")


def _scaled() -> Exception:
    return ShapeError(
        "a sparse matrix times a traced number would be a traced sparse matrix, which there is not",
        remedy="multiply the vector with the number: (t * x) in A @ (t * x)",
    )


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.sparse"), name)
