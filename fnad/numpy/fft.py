"""numpy.fft under NumPy's names, with what NumPy itself cannot hand on: lists of traced values.

>>> import fnad
>>> import fnad.numpy as fnp
>>> fnad.grad(lambda t: fnp.fft.fft([t, 2.0 * t]).real.sum())(3.0)
np.float64(2.0)
"""

import numpy as np

from fnad.numpy.namespace import names_of

__getattr__ = names_of(np.fft, __name__)
