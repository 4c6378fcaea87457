"""NumPy's functions on traced values, as compositions of primitives: one file a family, all in one table.

For the user it is NumPy under another name, with what NumPy cannot hand on (see `fnad.numpy.namespace`):

>>> import fnad
>>> import fnad.numpy as fnp
>>> fnad.grad(lambda t: fnp.array([t, t**2]).sum())(3.0)
np.float64(7.0)
"""

import sys
from typing import Any

from fnad.numpy import (  # noqa: F401 - imported for the rules that they enter, one family each
    array_api,
    cardinal_sine,
    choosing,
    complex_domain,
    contractions,
    convolutions,
    counting,
    covariance,
    creating,
    cumulative,
    differences,
    elements,
    factorizations,
    fft,
    fitting,
    fourier,
    grids,
    indexing,
    interpolation,
    joining,
    layout,
    linalg,
    methods,
    moving,
    multi_index,
    norms,
    padding,
    polynomials,
    products,
    properties,
    quantiles,
    ranks,
    rearranging,
    reductions,
    selecting,
    sets,
    sorting,
    special,
    statistics,
    summation,
    systems,
    tapers,
    ufunc_methods,
    ufuncs,
    windows,
    without_nan,
    writing,
)
from fnad.numpy.namespace import CALLS, numpy_name
from fnad.numpy.registry import implements, writes
from fnad.numpy.sequences import c_, r_

__all__ = ["c_", "implements", "r_", "writes"]


def __getattr__(name: str) -> Any:
    value = numpy_name(name)
    if isinstance(value, type):
        return CALLS["standing_for"](value, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    globals()[name] = value
    return value
