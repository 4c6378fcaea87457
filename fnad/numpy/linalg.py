"""numpy.linalg under NumPy's names, with what NumPy itself cannot hand on: lists of traced values.

>>> import fnad
>>> import fnad.numpy as fnp
>>> fnad.grad(lambda t: fnp.linalg.det([[t, 1.0], [2.0, t]]))(3.0)
np.float64(6.0)
"""

import numpy as np

from fnad.numpy.namespace import names_of

__getattr__ = names_of(np.linalg, __name__)
