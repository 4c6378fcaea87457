"""numpy.linalg under NumPy's names, with what NumPy itself cannot hand on: lists of traced values.

>>> import fnad
>>> import fnad.numpy as fnp
>>> fnad.grad(lambda t: fnp.linalg.det([[t, 1.0], [2.0, t]]))(3.0)
np.float64(6.0)
"""

from typing import Any

import numpy as np

from fnad.numpy.namespace import followed


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = followed(getattr(np.linalg, name))
    return value
