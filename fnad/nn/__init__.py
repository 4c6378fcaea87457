"""The layers that take more than a line of NumPy: convolution and pooling.

Arrays are batch × channels × space, with any number of spatial axes. The rest of a network is plain NumPy, and its
parameters are a pytree.
"""

from fnad.nn.convolution import conv
from fnad.nn.pooling import avg_pool, max_pool

__all__ = ["avg_pool", "conv", "max_pool"]
