"""NumPy's functions on traced values, as compositions of primitives: one file a family, all in one table.

For the user it is NumPy under another name, with what NumPy cannot hand on (see `fnad.numpy.namespace`):

>>> import fnad
>>> import fnad.numpy as fnp
>>> fnad.grad(lambda t: fnp.array([t, t**2]).sum())(3.0)
np.float64(7.0)
"""

from typing import Any

from fnad.numpy import (  # noqa: F401 - imported for the rules that they enter, one family each
    bodies,
    creation,
    einsumfunc,
    elementwise,
    fft,
    fourier,
    histograms,
    indexing_routines,
    joining,
    linalg,
    linear_algebra,
    manipulation,
    mathematical,
    methods,
    numerical,
    padding,
    polynomials,
    products,
    quantiles,
    reductions,
    sorting,
    statistics,
    ufunc_methods,
    ufuncs,
)
from fnad.numpy.indexing_routines import c_, r_
from fnad.numpy.namespace import numpy_name
from fnad.numpy.registry import implements, writes

__all__ = ["c_", "implements", "r_", "writes"]


def __getattr__(name: str) -> Any:
    value = numpy_name(name)
    globals()[name] = value
    return value
